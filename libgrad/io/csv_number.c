/* csv_number.c - numbers from texts, as C writes them, in every locale. */
#include <math.h>
#include <stdlib.h>
#include "csv.h"

static const char *skip_blanks(const char *s)
{
        while (*s == ' ' || *s == '\t')
                s++;
        return s;
}

static const char *skip_digits(const char *s)
{
        while (*s >= '0' && *s <= '9')
                s++;
        return s;
}

/* Behind digits, a point and digits, of which there is one at least; NULL: this is none. */
static const char *skip_decimal(const char *s)
{
        const char *point = skip_digits(s), *end = *point == '.' ? skip_digits(point + 1) : point;
        return end - s > (*point == '.') ? end : NULL;
}

/* Behind a word of small letters that the text begins with, in letters of any size; NULL: it does not. */
static const char *skip_word(const char *s, const char *word)
{
        for (; *word; s++, word++)
                if ((*s | 0x20) != *word)
                        return NULL;
        return s;
}

/* Behind "inf", "infinity" or "nan"; NULL: this is none. */
static const char *skip_special(const char *s)
{
        const char *end = skip_word(s, "infinity");
        end = end ? end : skip_word(s, "inf");
        return end ? end : skip_word(s, "nan");
}

/* Where the number begins that a text is; NULL: it is none. strtod takes more: hexadecimal, and "nan(...)". */
static const char *find_number(const char *text, bool *ret_finite)
{
        const char *begin = skip_blanks(text), *s = begin + (*begin == '+' || *begin == '-'), *end = skip_special(s);
        *ret_finite = !end;
        if (!end && (end = skip_decimal(s)) && (*end == 'e' || *end == 'E')) {
                const char *digits = end + 1 + (end[1] == '+' || end[1] == '-');
                end = skip_digits(digits) > digits ? skip_digits(digits) : NULL;
        }
        return end && !*skip_blanks(end) ? begin : NULL;
}

static const char *get_float(const char *text, lg_dtype dtype, void *ret)
{
        bool finite;
        const char *begin = find_number(text, &finite);
        if (!begin)
                return "is no number";
        if (dtype == LG_F32)
                *(float *)ret = strtof(begin, NULL);
        else
                *(double *)ret = strtod(begin, NULL);
        const bool large = dtype == LG_F32 ? isinf(*(float *)ret) : isinf(*(double *)ret);
        return !finite || !large ? NULL : dtype == LG_F32 ? "is too large for f32" : "is too large for f64";
}

static const char *get_whole(const char *text, int64_t *ret)
{
        const char *s = skip_blanks(text), *digits;
        const bool minus = *s == '-';
        int64_t v = 0;
        s += *s == '+' || *s == '-';
        for (digits = s; *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(v, 10, &v) ||
                    __builtin_sub_overflow(v, *s - '0', &v)) /* there are more below 0 */
                        return "is too large for i64";
        if (s == digits)
                return "is no whole number";
        if (*s == '.')
                for (s++; *s == '0';)
                        s++;
        if (*skip_blanks(s))
                return "is no whole number";
        if (!minus && v == INT64_MIN)
                return "is too large for i64";
        *ret = minus ? v : -v;
        return NULL;
}

const char *lg__csv_number(const char *text, lg_dtype dtype, void *ret)
{
        return dtype == LG_I64 ? get_whole(text, ret) : get_float(text, dtype, ret);
}
