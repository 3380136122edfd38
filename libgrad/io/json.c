/* json.c - checks and reads JSON: the headers of files, and whole files. */
#include "json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tensor/tensor.h"

#define DEEPEST 3
#define DEEPEST_ANY 64
#define TOO_MUCH ((int64_t)1 << 53) /* doubles do not hold every integer from here on */

static bool wrong(lg__json *p, const char *what)
{
        p->wrong = what;
        return false;
}

/* Returns the next byte, or NUL at the end, where NUL is never valid JSON. */
static char peek(const lg__json *p)
{
        return p->s < p->end ? *p->s : '\0';
}

static bool is_blank(char ch)
{
        return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

static void skip_blanks(lg__json *p)
{
        while (is_blank(peek(p)))
                p->s++;
}

/* Appends n decoded bytes to p->to, unless p->to is NULL because the text is only being checked. */
static void emit(lg__json *p, const char *bytes, int n)
{
        if (!p->to)
                return;
        memcpy(p->to, bytes, (size_t)n);
        p->to += n;
}

static void emit_utf8(lg__json *p, int code)
{
        static const int marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
        const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        char s[4];
        for (int i = n - 1; i > 0; i--, code >>= 6)
                s[i] = (char)(0x80 | (code & 0x3f));
        s[0] = (char)(marks[n] | code);
        emit(p, s, n);
}

/* Returns the value of the four hexadecimal digits after \u, or -1 if there are not four. */
static int hex4(lg__json *p)
{
        int v = 0;
        for (int i = 0; i < 4; i++, p->s++) {
                char ch = peek(p);
                int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                            : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                            : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                                     : -1;
                if (digit < 0)
                        return -1;
                v = v * 16 + digit;
        }
        return v;
}

/* Decodes an escape sequence after its backslash. Returns false and sets p->wrong if the sequence is invalid. */
static bool escape(lg__json *p)
{
        static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        char ch = peek(p);
        const char *letter = ch ? strchr(letters, ch) : NULL;
        if (letter) {
                emit(p, &meanings[letter - letters], 1);
                p->s++;
                return true;
        }
        if (ch != 'u')
                return wrong(p, "an unknown escape");
        p->s++;
        int v = hex4(p);
        if (v < 0)
                return wrong(p, "\\u without four hexadecimal digits");
        if (v == 0)
                return wrong(p, "\\u0000 in a string");
        if (v >= 0xd800 && v <= 0xdfff) {
                const bool paired = v < 0xdc00 && p->end - p->s >= 2 && p->s[0] == '\\' && p->s[1] == 'u';
                p->s += paired ? 2 : 0;
                const int low = paired ? hex4(p) : -1;
                if (low < 0xdc00 || low > 0xdfff)
                        return wrong(p, "a surrogate without its other half");
                v = 0x10000 + ((v & 0x3ff) << 10) + (low & 0x3ff);
        }
        emit_utf8(p, v);
        return true;
}

static bool string(lg__json *p)
{
        if (peek(p) != '"')
                return wrong(p, "a name in quotes was expected");
        for (p->s++; p->s < p->end && *p->s != '"';) {
                int n = lg__utf8_length((lg__span){p->s, (size_t)(p->end - p->s)});
                if (!n)
                        return wrong(p, "this is not UTF-8");
                if ((unsigned char)*p->s < 0x20)
                        return wrong(p, "a control character in a string");
                bool escaped = *p->s == '\\';
                if (!escaped)
                        emit(p, p->s, n);
                p->s += n;
                if (escaped && !escape(p))
                        return false;
        }
        if (p->s == p->end)
                return wrong(p, "a string does not end");
        p->s++;
        emit(p, "", 1);
        return true;
}

static int64_t digits(lg__json *p)
{
        const char *first = p->s;
        while (peek(p) >= '0' && peek(p) <= '9')
                p->s++;
        return p->s - first;
}

/* Reads any number. p->number is -1 unless it is written as a whole one from 0 to 2^53 - 1. */
static bool number_of_any_kind(lg__json *p)
{
        const char *first = p->s;
        p->s += peek(p) == '-';
        const char *whole = p->s;
        int64_t n = digits(p);
        bool valid = n > 0 && (n == 1 || *whole != '0');
        p->number = *first == '-' || n > 16 ? -1 : 0;
        for (int64_t i = 0; i < n && p->number >= 0; i++)
                p->number = p->number * 10 + (whole[i] - '0');
        if (peek(p) == '.') {
                p->s++;
                valid = digits(p) > 0 && valid;
                p->number = -1;
        }
        if (peek(p) == 'e' || peek(p) == 'E') {
                p->s++;
                p->s += peek(p) == '+' || peek(p) == '-';
                valid = digits(p) > 0 && valid;
                p->number = -1;
        }
        if (p->number >= TOO_MUCH)
                p->number = -1;
        return valid || wrong(p, "this is no number");
}

static bool number(lg__json *p)
{
        const char *first = p->s;
        int64_t v = 0;
        if (p->any)
                return number_of_any_kind(p);
        for (; peek(p) >= '0' && peek(p) <= '9'; p->s++) {
                v = v * 10 + (*p->s - '0');
                if (v >= TOO_MUCH)
                        return wrong(p, "a number of 2^53 or more");
        }
        if (*first == '0' && p->s - first > 1)
                return wrong(p, "a number with a zero before it");
        if (peek(p) == '.' || peek(p) == 'e' || peek(p) == 'E')
                return wrong(p, "a number that is not written as a whole one");
        p->number = v;
        return true;
}

/* Reads true, false or null. */
static bool word(lg__json *p)
{
        static const char *const words[] = {"true", "false", "null"};
        for (int i = 0; i < 3; i++) {
                const size_t n = strlen(words[i]);
                if ((size_t)(p->end - p->s) >= n && !memcmp(p->s, words[i], n)) {
                        p->s += n;
                        return true;
                }
        }
        return wrong(p, "a value was expected");
}

static bool value(lg__json *p, int depth);

/* Checks the values of an array or the members of an object, up to the closing bracket. Returns false if invalid. */
static bool values(lg__json *p, char closing, int depth)
{
        if (depth > (p->any ? DEEPEST_ANY : DEEPEST))
                return wrong(p, p->any ? "this is nested more than 64 deep" : "this is nested more than 3 deep");
        p->s++;
        skip_blanks(p);
        for (bool first = true; peek(p) != closing; first = false) {
                if (!first && peek(p) != ',')
                        return wrong(p, closing == '}' ? "a comma or } was expected" : "a comma or ] was expected");
                p->s += !first;
                skip_blanks(p);
                if (closing == '}') {
                        if (!string(p))
                                return false;
                        skip_blanks(p);
                        if (peek(p) != ':')
                                return wrong(p, "a colon was expected");
                        p->s++;
                        skip_blanks(p);
                }
                if (!value(p, depth))
                        return false;
                skip_blanks(p);
        }
        p->s++;
        return true;
}

static bool value(lg__json *p, int depth)
{
        char ch = peek(p);
        if (ch == '{')
                return values(p, '}', depth + 1);
        if (ch == '[')
                return values(p, ']', depth + 1);
        if (ch == '"')
                return string(p);
        if ((ch >= '0' && ch <= '9') || (p->any && ch == '-'))
                return number(p);
        if (p->any)
                return word(p);
        return wrong(p, ch == '-' ? "a negative number" : "a string, a whole number, [ or { was expected");
}

bool lg__json_check(lg__span text, const char **ret_wrong, size_t *ret_at)
{
        lg__json p = {.s = text.s, .end = text.s + text.bytes};
        bool ok = peek(&p) == '{' || wrong(&p, "{ was expected");
        if (ok && value(&p, 0)) {
                while (peek(&p) == ' ')
                        p.s++;
                ok = p.s == p.end || wrong(&p, "only spaces may follow the object");
        }
        *ret_wrong = p.wrong;
        *ret_at = (size_t)(p.s - text.s);
        return !p.wrong;
}

bool lg__json_check_any(lg__span text, const char **ret_wrong, size_t *ret_at)
{
        lg__json p = {.s = text.s, .end = text.s + text.bytes, .any = true};
        skip_blanks(&p);
        if (peek(&p) != '{')
                wrong(&p, "{ was expected");
        else if (value(&p, 0)) {
                skip_blanks(&p);
                if (p.s != p.end)
                        wrong(&p, "nothing may follow the object");
        }
        *ret_wrong = p.wrong;
        *ret_at = (size_t)(p.s - text.s);
        return !p.wrong;
}

bool lg__json_next(lg__json *p)
{
        while (is_blank(*p->s) || *p->s == ',' || *p->s == ':')
                p->s++;
        if (*p->s != '}' && *p->s != ']')
                return true;
        p->s++;
        return false;
}

const char *lg__json_string(lg__json *p)
{
        const char *first = p->to;
        string(p);
        return first;
}

const char *lg__json_member(lg__json *p)
{
        if (!lg__json_next(p))
                return NULL;
        const char *name = lg__json_string(p);
        lg__json_next(p);
        return name;
}

int64_t lg__json_number(lg__json *p)
{
        number(p);
        return p->number;
}

double lg__json_real(lg__json *p)
{
        const locale_t was = lg__point_begin();
        const double v = strtod(p->s, NULL);
        lg__point_end(was);
        number(p);
        return v;
}

bool lg__json_true(lg__json *p)
{
        const bool yes = *p->s == 't';
        lg__json_skip(p);
        return yes;
}

void lg__json_pick(lg__json p, int count, const char *const *names, lg__json *ret)
{
        memset(ret, 0, (size_t)count * sizeof *ret);
        if (!p.s || *p.s++ != '{')
                return;
        for (const char *name; (name = lg__json_member(&p)); lg__json_skip(&p))
                for (int i = 0; i < count; i++)
                        if (!strcmp(name, names[i]))
                                ret[i] = p;
}

void lg__json_skip(lg__json *p)
{
        lg__json skipped = {.s = p->s, .end = p->end, .any = p->any};
        value(&skipped, 0);
        p->s = skipped.s;
}

bool lg__json_put_string(const char *s, bool (*put)(void *to, const char *piece, size_t bytes), void *to)
{
        bool ok = put(to, "\"", 1);
        while (ok && *s) {
                size_t plain = 0;
                while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
                        plain++;
                ok = put(to, s, plain);
                s += plain;
                if (ok && *s) {
                        char escape[8];
                        if (*s == '"' || *s == '\\')
                                snprintf(escape, sizeof escape, "\\%c", *s);
                        else
                                snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*s);
                        ok = put(to, escape, strlen(escape));
                        s++;
                }
        }
        return ok && put(to, "\"", 1);
}
