/* csv.c - opens CSV files (RFC 4180), names their columns, frees them.
 *
 * A file is parsed in place: fields are written over bytes that were already read. No field needs more bytes than
 * before: quotes are removed, and the NUL that ends a field replaces its separator.
 */
#include <string.h>
#include "csv.h"

static void destroy(lg__object *o)
{
        lg_csv *t = (lg_csv *)o;
        lg_ctx *c = o->ctx;
        for (lg__csv_texts *texts = t->texts, *next; texts; texts = next) {
                next = texts->next;
                lg__free(c, texts, lg__csv_texts_bytes(texts->count));
        }
        for (int64_t i = 0; t->missing && i < t->missing_count; i++)
                lg__strfree(c, t->missing[i]);
        lg__free(c, t->missing, (size_t)t->missing_count * sizeof *t->missing);
        lg__free(c, t->numbers, t->numbers_bytes);
        lg__free(c, t->names, (size_t)t->column_count * sizeof *t->names);
        lg__free(c, t->rows, (size_t)t->row_room * sizeof *t->rows);
        lg__free(c, t->file.data, (size_t)t->file.room);
        lg__strfree(c, t->path);
}

static const lg__type type = {.destroy = destroy};

/* ---- parsing ---- */

typedef struct parser {
        lg_csv *t;
        char separator;
        bool trim;
        const char *at, *end;
        char *to;
        int64_t line;
} parser;

static bool bad(const parser *p, int64_t line, const char *what)
{
        return lg__fail(p->t->object.ctx, LG_ERR_FORMAT, "lg_csv_open: %s, line %lld: %s", p->t->path, (long long)line,
                        what);
}

static bool at_line_end(const parser *p)
{
        return p->at == p->end || *p->at == '\n' || *p->at == '\r';
}

static void skip_line_end(parser *p)
{
        if (p->at == p->end)
                return;
        p->at += p->at[0] == '\r' && p->at + 1 < p->end && p->at[1] == '\n' ? 2 : 1;
        p->line++;
}

static void skip_blanks(parser *p)
{
        while (p->trim && p->at < p->end && (*p->at == ' ' || *p->at == '\t') && *p->at != p->separator)
                p->at++;
}

/* Skips lines that are empty or, with .trim, blank. Returns false at the end of the file. */
static bool find_row(parser *p)
{
        while (p->at < p->end) {
                const char *begin = p->at;
                skip_blanks(p);
                if (!at_line_end(p)) {
                        p->at = begin;
                        return true;
                }
                skip_line_end(p);
        }
        return false;
}

static bool copy_quoted(parser *p)
{
        const int64_t first = p->line;
        for (p->at++; p->at < p->end; p->at++) {
                if (*p->at == '"') {
                        p->at++;
                        if (p->at == p->end || *p->at != '"') {
                                skip_blanks(p);
                                return at_line_end(p) || *p->at == p->separator ||
                                       bad(p, p->line, "text follows the quote that ends a field");
                        }
                }
                p->line += *p->at == '\n' || (*p->at == '\r' && p->at + 1 < p->end && p->at[1] != '\n');
                *p->to++ = *p->at;
        }
        return bad(p, first, "a quote begins a field that does not end");
}

static void copy_plain(parser *p)
{
        const char *begin = p->to;
        while (!at_line_end(p) && *p->at != p->separator)
                *p->to++ = *p->at++;
        while (p->trim && p->to > begin && (p->to[-1] == ' ' || p->to[-1] == '\t'))
                p->to--;
}

/* Parses a field and the separator after the field. Sets *ret_more to whether the row has another field. */
static bool get_field(parser *p, bool *ret_more)
{
        skip_blanks(p);
        if (p->at < p->end && *p->at == '"') {
                if (!copy_quoted(p))
                        return false;
        } else {
                copy_plain(p);
        }
        *ret_more = !at_line_end(p);
        if (*ret_more)
                p->at++;
        else
                skip_line_end(p);
        *p->to++ = '\0';
        return true;
}

static bool get_row(parser *p)
{
        lg_csv *t = p->t;
        if (!lg__grow(t->object.ctx, &t->rows, t->row_count, &t->row_room, sizeof *t->rows))
                return false;
        lg__csv_row *row = &t->rows[t->row_count++];
        *row = (lg__csv_row){.text = p->to, .line = p->line};
        int64_t fields = 0;
        for (bool more = true; more; fields++)
                if (!get_field(p, &more))
                        return false;
        if (t->row_count == 1)
                t->column_count = fields;
        return fields == t->column_count ||
               lg__fail(t->object.ctx, LG_ERR_FORMAT,
                        "lg_csv_open: %s, line %lld: %lld fields; the first line has %lld", t->path,
                        (long long)row->line, (long long)fields, (long long)t->column_count);
}

/* Parses t->file into t->row_count rows of t->column_count fields. */
static bool parse(lg_csv *t, const lg_csv_options *o)
{
        parser p = {.t = t, .separator = o->separator ? o->separator : ',', .trim = o->trim};
        p.at = p.to = t->file.data;
        p.end = p.at + t->file.bytes;
        p.line = 1;
        const char *zero = memchr(t->file.data, 0, t->file.bytes);
        if (zero)
                return lg__fail(t->object.ctx, LG_ERR_FORMAT,
                                "lg_csv_open: %s is no text: byte %lld is zero (UTF-16 must become UTF-8)", t->path,
                                (long long)(zero - t->file.data));
        if (t->file.bytes >= 3 && !memcmp(p.at, "\xef\xbb\xbf", 3)) /* UTF-8 byte order mark */
                p.at += 3;
        while (find_row(&p))
                if (!get_row(&p))
                        return false;
        return t->row_count > 0 ||
               lg__fail(t->object.ctx, LG_ERR_FORMAT, "lg_csv_open: %s has no line with anything in it", t->path);
}

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

/* Copies the texts that count as missing (by default "", "NA" and "?"), as the caller's last only for the call. */
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

/* Names the columns after the first row, which is removed from the rows, or "0", "1", ... if there is no header. */
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
                t->numbers_bytes += (size_t)snprintf(NULL, 0, "%zu", i) + 1;
        char *to = t->numbers = lg__alloc(c, t->numbers_bytes);
        for (size_t i = 0; to && i < count; i++) {
                t->names[i] = to;
                to += sprintf(to, "%zu", i) + 1;
        }
        return t->numbers;
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
        if (t->path && keep_missing(t, (lg_names){o.missing.count, o.missing.items}) &&
            lg__whole_read(c, "lg_csv_open", path, &t->file) && parse(t, &o) && name_columns(t, o.no_header))
                return t;
        return lg__object_destroy(t);
}

/* ---- properties ---- */

int64_t lg_csv_rows(const lg_csv *t)
{
        return t ? t->row_count : 0;
}

lg_names lg_csv_columns(const lg_csv *t)
{
        return t ? (lg_names){t->column_count, t->names} : (lg_names){0, NULL};
}

void lg_csv_close(lg_csv *t)
{
        lg__object_destroy(t);
}
