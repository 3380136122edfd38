/* csv_columns.c - columns of a CSV file as tensors: numbers, whole numbers, and texts as codes. */
#include <stdlib.h>
#include <string.h>
#include "csv.h"
#include "tensor/create.h"
#include "text.h"

/* ---- columns by name ---- */

/* "a", "b" and more, as far as there is room. */
static lg__quote column_list(const lg_csv *t)
{
        lg__quote all = {""};
        for (int64_t i = 0; i < t->column_count; i++) {
                lg__quote one = lg__quoted(t->names[i]);
                if (strlen(all.s) + strlen(one.s) + 8 > sizeof all.s) { /* with ", " and ", ..." */
                        strcat(all.s, ", ...");
                        break;
                }
                strcat(all.s, i ? ", " : "");
                strcat(all.s, one.s);
        }
        return all;
}

/* -1: an error. */
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

/* "op: FILE, line 7, column "age": TEXT what" */
static bool bad(const lg_csv *t, const char *op, int64_t row, int64_t column, const char *text, const char *what)
{
        return lg__fail(t->object.ctx, LG_ERR_FORMAT, "%s: %s, line %lld, column %s: %s %s", op, t->path,
                        (long long)t->rows[row].line, lg__quoted(t->names[column]).s, lg__quoted(text).s, what);
}

static const char must_fill[] = "stands for a missing value; .missing_as fills it";

/* ---- numbers ---- */

/* What is asked of a table: values of some columns, one row behind the other. */
typedef struct wanted {
        const char *op;
        lg_names names;
        lg_dtype dtype;
        bool fills;
        const void *filling; /* of the dtype */
        int64_t *columns;    /* of the names */
        const char **fields; /* of a row, up to the last column that is asked for */
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
                } else if ((wrong = lg__csv_number(text, w->dtype, out))) {
                        return bad(t, w->op, row, w->columns[i], text, wrong);
                }
        }
        return true;
}

static bool find_columns(const lg_csv *t, wanted *w)
{
        for (int64_t i = 0; i < w->names.count; i++) {
                w->columns[i] = find_column(t, w->op, w->names.items[i]);
                if (w->columns[i] < 0)
                        return false;
                if (w->columns[i] >= w->field_count)
                        w->field_count = w->columns[i] + 1;
        }
        return true;
}

static lg_tensor *get_values(const lg_csv *t, const wanted *w, lg_shape shape)
{
        lg_tensor *to = lg__tensor_empty(t->object.ctx, lg_cpu(), w->dtype, shape);
        char *out = to ? lg__data(to) : NULL;
        const int64_t bytes = w->names.count * (int64_t)lg__dtype_bytes(w->dtype);
        locale_t was = lg__point_begin();
        bool ok = to;
        for (int64_t i = 0; ok && i < t->row_count; i++, out += bytes)
                ok = get_row(t, w, i, out);
        lg__point_end(was);
        if (ok)
                return to;
        lg__tensor_release(to);
        return NULL;
}

static lg_tensor *get_columns(const lg_csv *t, wanted w, lg_shape shape)
{
        lg_ctx *c = t->object.ctx;
        if (w.names.count < 1 || !w.names.items)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: no columns are named", w.op);
        if ((uint64_t)w.names.count > SIZE_MAX / sizeof *w.columns)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld columns are named", w.op, (long long)w.names.count);
        const size_t columns = (size_t)w.names.count * sizeof *w.columns,
                     fields = (size_t)t->column_count * sizeof *w.fields;
        w.columns = lg__alloc(c, columns);
        w.fields = w.columns ? lg__alloc(c, fields) : NULL;
        lg_tensor *to = w.fields && find_columns(t, &w) ? get_values(t, &w, shape) : NULL;
        lg__free(c, w.fields, fields);
        lg__free(c, w.columns, columns);
        return to;
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

/* ---- texts ---- */

typedef struct entry {
        const char *text;
        double number; /* that it is; only while texts are sorted by it */
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

/* Sorted texts without those that are there twice; returns how many are left. */
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
                ok = !lg__csv_number(entries[i].text, LG_F64, v) && *v == *v;
        }
        lg__point_end(was);
        return ok;
}

static const lg__csv_texts *keep_texts(lg_csv *t, int64_t column, const entry *entries, int64_t count)
{
        lg_ctx *c = t->object.ctx;
        const size_t bytes = (size_t)count * sizeof(const char *) + 1;
        const char **items = lg__alloc(c, bytes);
        lg__csv_texts *texts = items ? lg__alloc(c, sizeof *texts) : NULL;
        if (!texts) {
                lg__free(c, items, bytes);
                return NULL;
        }
        for (int64_t i = 0; i < count; i++)
                items[i] = entries[i].text;
        *texts = (lg__csv_texts){t->texts, column, items, count, bytes};
        return t->texts = texts;
}

/* The different texts of a column, collected when they are first asked for; NULL: an error. */
static const lg__csv_texts *texts_of(lg_csv *t, int64_t column)
{
        lg_ctx *c = t->object.ctx;
        for (const lg__csv_texts *known = t->texts; known; known = known->next)
                if (known->column == column)
                        return known;
        const size_t bytes = ((size_t)t->row_count + 1) * sizeof(entry);
        entry *entries = lg__alloc(c, bytes);
        if (!entries)
                return NULL;
        int64_t count = 0;
        for (int64_t i = 0; i < t->row_count; i++) {
                const char *text = field_of(t, i, column);
                if (!is_missing(t, text) && (!count || strcmp(entries[count - 1].text, text) != 0))
                        entries[count++].text = text;
        }
        count = make_unique(entries, count);
        if (are_numbers(entries, count))
                qsort(entries, (size_t)count, sizeof *entries, by_number);
        const lg__csv_texts *texts = keep_texts(t, column, entries, count);
        lg__free(c, entries, bytes);
        return texts;
}

lg_names lg_csv_texts(lg_csv *t, const char *column)
{
        const int64_t i = t && lg__ok(t->object.ctx) ? find_column(t, "lg_csv_texts", column) : -1;
        const lg__csv_texts *texts = i < 0 ? NULL : texts_of(t, i);
        return texts ? (lg_names){texts->count, texts->items} : (lg_names){0, NULL};
}

/* ---- codes ---- */

typedef struct codes {
        entry *entries; /* sorted by text */
        int64_t count;
        bool fills;
        int64_t filling;
} codes;

/* The code of a text is its place in the list. */
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
        if (o.texts.items && o.texts.count >= 0) /* none, too: as the other file has them */
                return encode(t, i, (lg_names){o.texts.count, o.texts.items}, k);
        if (o.texts.count)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_categories: .texts has %lld texts at NULL",
                                (long long)o.texts.count);
        const lg__csv_texts *own = texts_of(t, i);
        return own ? encode(t, i, (lg_names){own->count, own->items}, k) : NULL;
}
