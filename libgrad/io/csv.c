/* csv.c - opens CSV files, names their columns, frees them. */
#include <string.h>
#include "csv.h"
#include "text.h"

static void free_texts(lg_ctx *c, char **texts, int64_t count)
{
        for (int64_t i = 0; texts && i < count; i++)
                lg__strfree(c, texts[i]);
        lg__free(c, texts, (size_t)count * sizeof *texts);
}

static void destroy(lg__object *o)
{
        lg_csv *t = (lg_csv *)o;
        lg_ctx *c = o->ctx;
        for (lg__csv_texts *texts = t->texts, *next; texts; texts = next) {
                next = texts->next;
                lg__free(c, texts->items, texts->bytes);
                lg__free(c, texts, sizeof *texts);
        }
        free_texts(c, t->missing, t->missing_count);
        lg__free(c, t->numbers, t->numbers_bytes);
        lg__free(c, t->names, (size_t)t->column_count * sizeof *t->names);
        lg__free(c, t->rows, (size_t)t->row_room * sizeof *t->rows);
        lg__whole_free(c, &t->file);
        lg__strfree(c, t->path);
}

static const lg__type type = {.destroy = destroy};

/* ---- opening ---- */

static bool check_options(lg_ctx *c, const char *path, const lg_csv_options *o)
{
        if (!path)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_open: the path is NULL");
        if (o->separator == '"' || o->separator == '\n' || o->separator == '\r')
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_open: .separator is a quote or the end of a line");
        if (o->missing.count < 0 || (o->missing.count && !o->missing.items))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_open: .missing has %lld texts at NULL",
                                (long long)o->missing.count);
        for (int64_t i = 0; i < o->missing.count; i++)
                if (!o->missing.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_csv_open: text %lld of .missing is NULL", (long long)i);
        return true;
}

/* What counts as missing; the caller's texts last no longer than the call. */
static bool keep_missing(lg_csv *t, lg_names texts)
{
        static const char *const usual[] = {"", "NA", "?"};
        lg_ctx *c = t->object.ctx;
        if (!texts.count)
                texts = (lg_names){sizeof usual / sizeof *usual, usual};
        t->missing = lg__alloc(c, (size_t)texts.count * sizeof *t->missing);
        if (!t->missing)
                return false;
        t->missing_count = texts.count;
        for (int64_t i = 0; i < texts.count; i++)
                if (!(t->missing[i] = lg__strdup(c, texts.items[i])))
                        return false;
        return true;
}

/* The bytes of a number in digits, with the zero behind it, which go to `to` unless that is NULL. */
static size_t number_text(char *to, size_t number)
{
        size_t bytes = 2;
        for (size_t rest = number; rest > 9; rest /= 10)
                bytes++;
        for (size_t i = bytes - 1; to && i-- > 0; number /= 10)
                to[i] = (char)('0' + number % 10);
        return bytes;
}

/* The first row, or "0", "1", ... */
static bool name_columns(lg_csv *t, bool no_header)
{
        lg_ctx *c = t->object.ctx;
        const size_t count = (size_t)t->column_count;
        t->names = lg__alloc(c, count * sizeof *t->names);
        if (!t->names)
                return false;
        if (!no_header) {
                const char *name = t->rows->text;
                for (size_t i = 0; i < count; i++, name = lg__csv_next(name))
                        t->names[i] = name;
                memmove(t->rows, t->rows + 1, (size_t)--t->row_count * sizeof *t->rows);
                return true;
        }
        for (size_t i = 0; i < count; i++)
                t->numbers_bytes += number_text(NULL, i);
        t->numbers = lg__alloc(c, t->numbers_bytes);
        char *to = t->numbers;
        for (size_t i = 0; to && i < count; to += number_text(to, i++))
                t->names[i] = to;
        return to;
}

lg_csv *lg_csv_open_with(lg_ctx *c, const char *path, const lg_csv_options *options)
{
        lg_csv_options o;
        if (!lg__take(c, "lg_csv_open", options, &o, sizeof o) || !check_options(c, path, &o))
                return NULL;
        lg_csv *t = lg__object_new(c, &type, sizeof *t);
        if (!t)
                return NULL;
        t->path = lg__strdup(c, path);
        const lg__csv_form form = {.separator = o.separator ? o.separator : ',', .trim = o.trim};
        if (t->path && keep_missing(t, (lg_names){o.missing.count, o.missing.items}) &&
            lg__whole_read(c, "lg_csv_open", path, &t->file) && lg__csv_parse(t, form) && name_columns(t, o.no_header))
                return t;
        lg__object_destroy(&t->object);
        return NULL;
}

/* ---- what is in it ---- */

int64_t lg_csv_rows(const lg_csv *t)
{
        return t ? t->row_count : 0;
}

lg_names lg_csv_columns(const lg_csv *t)
{
        return t ? (lg_names){t->column_count, t->names} : (lg_names){0, NULL};
}

void lg_csv_free(lg_csv *t)
{
        if (t)
                lg__object_destroy(&t->object);
}
