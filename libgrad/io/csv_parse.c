/* csv_parse.c - takes a CSV file (RFC 4180) apart, in place: fields are written over what was read already.
 *
 * A field never grows by that: it loses its quotes, and its separator makes room for the zero behind it.
 */
#include <string.h>
#include "csv.h"

#define FIRST_ROOM 64

typedef struct parser {
        lg_csv *t;
        lg__csv_form form;
        const char *at, *end;
        char *to;
        int64_t line;
} parser;

static bool bad(const parser *p, int64_t line, const char *what)
{
        return lg__fail(p->t->object.ctx, LG_ERR_FORMAT, "lg_csv_open: %s, line %lld: %s", p->t->path, (long long)line,
                        what);
}

/* ---- lines ---- */

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
        while (p->form.trim && p->at < p->end && (*p->at == ' ' || *p->at == '\t') && *p->at != p->form.separator)
                p->at++;
}

/* Skips lines without anything in them; false at the end of the file. */
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

/* ---- fields ---- */

static bool copy_quoted(parser *p)
{
        const int64_t first = p->line;
        for (p->at++; p->at < p->end; p->at++) {
                if (*p->at == '"') {
                        p->at++;
                        if (p->at == p->end || *p->at != '"') {
                                skip_blanks(p);
                                return at_line_end(p) || *p->at == p->form.separator ||
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
        while (!at_line_end(p) && *p->at != p->form.separator)
                *p->to++ = *p->at++;
        while (p->form.trim && p->to > begin && (p->to[-1] == ' ' || p->to[-1] == '\t'))
                p->to--;
}

/* One field and the separator behind it; *ret_more: another one follows in its row. */
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

/* ---- rows ---- */

static lg__csv_row *new_row(lg_csv *t)
{
        if (t->row_count == t->row_room) {
                const int64_t room = t->row_room ? 2 * t->row_room : FIRST_ROOM;
                lg_ctx *c = t->object.ctx;
                lg__csv_row *rows = lg__alloc(c, (size_t)room * sizeof *rows);
                if (!rows)
                        return NULL;
                if (t->rows)
                        memcpy(rows, t->rows, (size_t)t->row_count * sizeof *rows);
                lg__free(c, t->rows, (size_t)t->row_room * sizeof *rows);
                t->rows = rows;
                t->row_room = room;
        }
        return &t->rows[t->row_count++];
}

static bool get_row(parser *p)
{
        lg_csv *t = p->t;
        lg__csv_row *row = new_row(t);
        if (!row)
                return false;
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

bool lg__csv_parse(lg_csv *t, lg__csv_form form)
{
        parser p = {.t = t, .form = form, .at = t->file.data, .end = t->file.data + t->file.bytes, .line = 1};
        const char *zero = memchr(t->file.data, 0, t->file.bytes);
        if (zero)
                return lg__fail(t->object.ctx, LG_ERR_FORMAT,
                                "lg_csv_open: %s is no text: byte %lld is zero (UTF-16 must become UTF-8)", t->path,
                                (long long)(zero - t->file.data));
        if (t->file.bytes >= 3 && !memcmp(p.at, "\xef\xbb\xbf", 3)) /* the mark of UTF-8 */
                p.at += 3;
        p.to = t->file.data;
        while (find_row(&p))
                if (!get_row(&p))
                        return false;
        return t->row_count > 0 ||
               lg__fail(t->object.ctx, LG_ERR_FORMAT, "lg_csv_open: %s has no line with anything in it", t->path);
}
