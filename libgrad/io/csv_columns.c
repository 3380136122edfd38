/* csv_columns.c - columns of a CSV file as tensors: numbers, integers, and texts as integer codes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "csv.h"
#include "text.h"

/* ---- finding columns ---- */

/* Returns the quoted names of the columns, separated by commas, as far as a message has space. */
static lg__quote column_list(const lg_csv *t)
{
        lg__quote all = {""};
        for (int64_t i = 0; i < t->column_count; i++) {
                lg__quote one = lg__quoted(t->names[i]);
                if (strlen(all.s) + strlen(one.s) + 8 > sizeof all.s) { /* space for ", " and ", ..." */
                        strcat(all.s, ", ...");
                        break;
                }
                strcat(all.s, i ? ", " : "");
                strcat(all.s, one.s);
        }
        return all;
}

/* Returns the index of a column, or -1 and sets LG_ERR_ARGUMENT if there is not exactly one of that name. */
static int64_t find_column(const lg_csv *t, const char *op, const char *name)
{
        int64_t found = -1;
        for (int64_t i = 0; name && i < t->column_count; i++) {
                if (strcmp(t->names[i], name) != 0)
                        continue;
                if (found >= 0) {
                        lg__fail(t->object.ctx, LG_ERR_ARGUMENT, "%s: %s has two columns that are called %s", op,
                                 t->path, lg__quoted(name).s);
                        return -1;
                }
                found = i;
        }
        if (found < 0)
                lg__fail(t->object.ctx, LG_ERR_ARGUMENT, "%s: %s has no column %s; there are %s", op, t->path,
                         name ? lg__quoted(name).s : "NULL", column_list(t).s);
        return found;
}

static const char *field_of(const lg_csv *t, int64_t row, int64_t column)
{
        const char *field = t->rows[row].text;
        while (column--)
                field = lg__csv_next(field);
        return field;
}

static bool is_missing(const lg_csv *t, const char *text)
{
        for (int64_t i = 0; i < t->missing_count; i++)
                if (!strcmp(t->missing[i], text))
                        return true;
        return false;
}

/* Sets the error "op: FILE, line 7, column "age": TEXT what". Returns false. */
static bool bad(const lg_csv *t, const char *op, int64_t row, int64_t column, const char *text, const char *what)
{
        return lg__fail(t->object.ctx, LG_ERR_FORMAT, "%s: %s, line %lld, column %s: %s %s", op, t->path,
                        (long long)t->rows[row].line, lg__quoted(t->names[column]).s, lg__quoted(text).s, what);
}

static const char must_fill[] = "stands for a missing value; .missing_as fills it";

/* ---- parsing numbers: the syntax of C, in any locale ---- */

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

/* Returns the end of "digits[.digits]" with at least one digit, or NULL if s does not begin so. */
static const char *skip_decimal(const char *s)
{
        const char *point = skip_digits(s), *end = *point == '.' ? skip_digits(point + 1) : point;
        return end - s > (*point == '.') ? end : NULL;
}

/* Returns the end of "inf", "infinity" or "nan", in upper or lower case, or NULL if s begins with none of them. */
static const char *skip_special(const char *s)
{
        static const char *const words[] = {"infinity", "inf", "nan"};
        for (int i = 0; i < 3; i++)
                if (!strncasecmp(s, words[i], strlen(words[i])))
                        return s + strlen(words[i]);
        return NULL;
}

/* Returns the start of the number in a text, or NULL if the text is not a number. Checks the syntax before strtod() is
 * called, which also accepts hexadecimal numbers and "nan(...)". */
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
                    __builtin_sub_overflow(v, *s - '0', &v)) /* v is negative, as -INT64_MIN would overflow */
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

/* Parses a text as f32, f64 or i64 between lg__point_begin() and lg__point_end(). A float may have a point and an
 * exponent or be inf or nan; an integer may end with a point and zeros. Blanks around numbers are skipped. Returns
 * NULL, or what is wrong with the text, such as "is no number". */
static const char *get_number(const char *text, lg_dtype dtype, void *ret)
{
        return dtype == LG_I64 ? get_whole(text, ret) : get_float(text, dtype, ret);
}

/* ---- columns of numbers ---- */

/* A request for the values of some columns, in every row. */
typedef struct wanted {
        const char *op;
        lg_names names;
        lg_dtype dtype;
        bool fills;
        const void *filling; /* replaces missing values, of type `dtype` */
        int64_t *columns;    /* index of each requested column */
        const char **fields; /* fields of the current row, up to the last requested column */
        int64_t field_count;
} wanted;

static bool get_row(const lg_csv *t, const wanted *w, int64_t row, char *out)
{
        const size_t width = lg__dtype_bytes(w->dtype);
        const char *field = t->rows[row].text;
        for (int64_t i = 0; i < w->field_count; i++, field = lg__csv_next(field))
                w->fields[i] = field;
        for (int64_t i = 0; i < w->names.count; i++, out += width) {
                const char *text = w->fields[w->columns[i]], *wrong;
                if (is_missing(t, text)) {
                        if (!w->fills)
                                return bad(t, w->op, row, w->columns[i], text, must_fill);
                        memcpy(out, w->filling, width);
                } else if ((wrong = get_number(text, w->dtype, out))) {
                        return bad(t, w->op, row, w->columns[i], text, wrong);
                }
        }
        return true;
}

static lg_tensor *get_columns(const lg_csv *t, wanted w, lg_shape shape)
{
        lg_ctx *c = t->object.ctx;
        if (w.names.count < 1 || !w.names.items)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: no columns are named", w.op);
        if ((uint64_t)w.names.count > SIZE_MAX / sizeof *w.columns)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld columns are named", w.op, (long long)w.names.count);
        const size_t columns = (size_t)w.names.count * sizeof *w.columns,
                     fields = (size_t)t->column_count * sizeof *w.fields,
                     row = (size_t)w.names.count * lg__dtype_bytes(w.dtype);
        w.columns = lg__alloc(c, columns);
        w.fields = w.columns ? lg__alloc(c, fields) : NULL;
        bool ok = w.fields;
        for (int64_t i = 0; ok && i < w.names.count; i++) {
                w.columns[i] = find_column(t, w.op, w.names.items[i]);
                w.field_count = w.columns[i] >= w.field_count ? w.columns[i] + 1 : w.field_count;
                ok = w.columns[i] >= 0;
        }
        lg_tensor *to = ok ? lg__tensor_empty(c, lg_cpu(), w.dtype, shape) : NULL;
        locale_t was = lg__point_begin();
        ok = to;
        for (int64_t i = 0; ok && i < t->row_count; i++)
                ok = get_row(t, &w, i, (char *)lg__data(to) + (size_t)i * row);
        lg__point_end(was);
        lg__free(c, w.fields, fields);
        lg__free(c, w.columns, columns);
        return lg__created(to, ok, false);
}

lg_tensor *lg_csv_numbers_with(lg_csv *t, lg_names_in columns, const lg_csv_numbers_options *options)
{
        lg_csv_numbers_options o;
        lg_ctx *c = t ? t->object.ctx : NULL;
        if (!lg__take(c, "lg_csv_numbers", options, &o, sizeof o))
                return NULL;
        if (o.dtype && o.dtype != LG_F32 && o.dtype != LG_F64)
                return lg__fail(c, LG_ERR_DTYPE, "lg_csv_numbers: .dtype is %s; it is f32 or f64",
                                lg_dtype_name(o.dtype));
        const double filling = lg__option(o.missing_as, 0);
        const float filling32 = (float)filling;
        const wanted w = {.op = "lg_csv_numbers",
                          .names = columns,
                          .dtype = o.dtype ? o.dtype : LG_F32,
                          .fills = o.missing_as != 0,
                          .filling = o.dtype == LG_F64 ? (const void *)&filling : &filling32};
        return get_columns(t, w, LG_SHAPE(t->row_count, columns.count));
}

lg_tensor *lg_csv_integers_with(lg_csv *t, const char *column, const lg_csv_integers_options *options)
{
        lg_csv_integers_options o;
        if (!lg__take(t ? t->object.ctx : NULL, "lg_csv_integers", options, &o, sizeof o))
                return NULL;
        const int64_t filling = lg__whole_option(o.missing_as, 0);
        const wanted w = {.op = "lg_csv_integers",
                          .names = {1, &column},
                          .dtype = LG_I64,
                          .fills = o.missing_as != 0,
                          .filling = &filling};
        return get_columns(t, w, LG_SHAPE(t->row_count));
}

/* ---- different texts of a column ---- */

typedef struct entry {
        const char *text;
        double number; /* value of the text, while texts are sorted by number */
        int64_t code;
} entry;

static int by_text(const void *a, const void *b)
{
        return strcmp(((const entry *)a)->text, ((const entry *)b)->text);
}

static int by_number(const void *a, const void *b)
{
        const double x = ((const entry *)a)->number, y = ((const entry *)b)->number;
        return x < y ? -1 : x > y ? 1 : by_text(a, b);
}

/* Sorts the texts and removes duplicates. Returns how many texts are left. */
static int64_t make_unique(entry *entries, int64_t count)
{
        int64_t n = 0;
        qsort(entries, (size_t)count, sizeof *entries, by_text);
        for (int64_t i = 0; i < count; i++)
                if (!n || strcmp(entries[n - 1].text, entries[i].text) != 0)
                        entries[n++] = entries[i];
        return n;
}

static bool are_numbers(entry *entries, int64_t count)
{
        locale_t was = lg__point_begin();
        bool ok = true;
        for (int64_t i = 0; ok && i < count; i++) {
                double *v = &entries[i].number;
                ok = !get_number(entries[i].text, LG_F64, v) && *v == *v;
        }
        lg__point_end(was);
        return ok;
}

/* Returns the different texts of a column, which are collected on the first call. After an error .items is NULL. */
static lg_names texts_of(lg_csv *t, int64_t column)
{
        lg_ctx *c = t->object.ctx;
        for (const lg__csv_texts *known = t->texts; known; known = known->next)
                if (known->column == column)
                        return (lg_names){known->count, known->items};
        const size_t bytes = ((size_t)t->row_count + 1) * sizeof(entry);
        entry *entries = lg__alloc(c, bytes);
        if (!entries)
                return (lg_names){0, NULL};
        int64_t count = 0;
        for (int64_t i = 0; i < t->row_count; i++) {
                const char *text = field_of(t, i, column);
                if (!is_missing(t, text) && (!count || strcmp(entries[count - 1].text, text) != 0))
                        entries[count++].text = text;
        }
        count = make_unique(entries, count);
        if (are_numbers(entries, count))
                qsort(entries, (size_t)count, sizeof *entries, by_number);
        lg__csv_texts *texts = lg__alloc(c, lg__csv_texts_bytes(count));
        if (texts) {
                *texts = (lg__csv_texts){.next = t->texts, .column = column, .count = count};
                for (int64_t i = 0; i < count; i++)
                        texts->items[i] = entries[i].text;
                t->texts = texts;
        }
        lg__free(c, entries, bytes);
        return texts ? (lg_names){count, texts->items} : (lg_names){0, NULL};
}

lg_names lg_csv_texts(lg_csv *t, const char *column)
{
        const int64_t i = t && lg__ok(t->object.ctx) ? find_column(t, "lg_csv_texts", column) : -1;
        return i < 0 ? (lg_names){0, NULL} : texts_of(t, i);
}

/* ---- codes ---- */

typedef struct codes {
        entry *entries; /* texts with their codes, sorted by text */
        int64_t count;
        bool fills;
        int64_t filling;
} codes;

/* Sets the code of each text to its index in `texts`. Returns false with an error if a text is NULL or occurs twice. */
static bool make_codes(lg_ctx *c, lg_names texts, codes *k)
{
        for (int64_t i = 0; i < texts.count; i++) {
                if (!texts.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_categories: text %lld is NULL", (long long)i);
                k->entries[i] = (entry){.text = texts.items[i], .code = i};
        }
        k->count = texts.count;
        qsort(k->entries, (size_t)k->count, sizeof *k->entries, by_text);
        for (int64_t i = 1; i < k->count; i++)
                if (!strcmp(k->entries[i - 1].text, k->entries[i].text))
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_categories: %s is in .texts twice",
                                        lg__quoted(k->entries[i].text).s);
        return true;
}

static bool put_codes(const lg_csv *t, int64_t column, const codes *k, int64_t *out)
{
        for (int64_t i = 0; i < t->row_count; i++) {
                const entry key = {.text = field_of(t, i, column)};
                const entry *found = bsearch(&key, k->entries, (size_t)k->count, sizeof key, by_text);
                if (found)
                        out[i] = found->code;
                else if (is_missing(t, key.text) && k->fills)
                        out[i] = k->filling;
                else
                        return bad(t, "lg_csv_categories", i, column, key.text,
                                   is_missing(t, key.text) ? must_fill : "is none of .texts");
        }
        return true;
}

static lg_tensor *encode(lg_csv *t, int64_t column, lg_names texts, codes k)
{
        lg_ctx *c = t->object.ctx;
        const size_t bytes = ((size_t)texts.count + 1) * sizeof(entry);
        k.entries = lg__alloc(c, bytes);
        lg_tensor *y = k.entries && make_codes(c, texts, &k)
                               ? lg__tensor_empty(c, lg_cpu(), LG_I64, LG_SHAPE(t->row_count))
                               : NULL;
        bool ok = y && put_codes(t, column, &k, lg__data(y));
        lg__free(c, k.entries, bytes);
        return lg__created(y, ok, false);
}

lg_tensor *lg_csv_categories_with(lg_csv *t, const char *column, const lg_csv_categories_options *options)
{
        lg_csv_categories_options o;
        lg_ctx *c = t ? t->object.ctx : NULL;
        if (!lg__take(c, "lg_csv_categories", options, &o, sizeof o))
                return NULL;
        const codes k = {.fills = o.missing_as != 0, .filling = lg__whole_option(o.missing_as, 0)};
        const int64_t i = find_column(t, "lg_csv_categories", column);
        if (i < 0)
                return NULL;
        if (o.texts.items && o.texts.count >= 0) /* also if count is 0: the other table's column has no texts */
                return encode(t, i, (lg_names){o.texts.count, o.texts.items}, k);
        if (o.texts.count)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_categories: .texts has %lld texts at NULL",
                                (long long)o.texts.count);
        const lg_names own = texts_of(t, i);
        return own.items ? encode(t, i, own, k) : NULL;
}
