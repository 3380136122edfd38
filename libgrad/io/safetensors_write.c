/* safetensors_write.c - writes safetensors files, header and values, to a sink. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "safetensors.h"
#include "sink.h"

#define BOUNCE ((size_t)1 << 18) /* bytes per call of `read`: whole elements of every dtype */
#define MOST_DATA ((int64_t)1 << 53)

#define BAD(f, format, ...) lg__fail((f)->sink.ctx, LG_ERR_ARGUMENT, "%s: " format, (f)->sink.op, __VA_ARGS__)

typedef struct writer {
        lg__sink sink;
        const lg__weight_out **order; /* tensors in the order of the file */
        int64_t count;
        const lg__meta *meta;
        int64_t metas;
        bool counting; /* put() counts bytes without writing them */
        int64_t bytes; /* bytes that put() got since the start of the header */
} writer;

/* ---- checks ---- */

static int64_t bytes_of(const lg__weight_out *e)
{
        return lg__shape_numel(e->shape) * (int64_t)lg__dtype_bytes(e->dtype);
}

static bool check_tensor(const writer *f, const lg__weight_out *e)
{
        if (!e->name)
                return BAD(f, "%s", "the name of a tensor is NULL");
        lg__quote name = lg__quoted(e->name);
        if (!lg__is_utf8(e->name))
                return BAD(f, "the tensor's name %s is not UTF-8", name.s);
        if (!strcmp(e->name, "__metadata__"))
                return BAD(f, "no tensor can be called %s", name.s);
        if (!lg__weight_dtype_name(e->dtype))
                return BAD(f, "%s has no dtype", name.s);
        if (!lg__shape_valid(f->sink.ctx, f->sink.op, e->shape))
                return false;
        return e->data || e->read || !bytes_of(e) || BAD(f, "%s has neither data nor a function", name.s);
}

static bool check_metas(const writer *f)
{
        for (int64_t i = 0; i < f->metas; i++) {
                const lg__meta *m = &f->meta[i];
                if (!m->key || !m->value)
                        return BAD(f, "a string of the metadata, %s, is NULL", lg__quoted(m->key ? m->key : "").s);
                if (!lg__is_utf8(m->key) || !lg__is_utf8(m->value))
                        return BAD(f, "the metadata %s is not UTF-8", lg__quoted(m->key).s);
        }
        return true;
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(const lg__weight_out *const *)a)->name, (*(const lg__weight_out *const *)b)->name);
}

static int by_size(const void *a, const void *b)
{
        const lg__weight_out *x = *(const lg__weight_out *const *)a, *y = *(const lg__weight_out *const *)b;
        size_t of_x = lg__dtype_bytes(x->dtype), of_y = lg__dtype_bytes(y->dtype);
        return of_x != of_y ? (of_x > of_y ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b)
{
        return strcmp((*(const lg__meta *const *)a)->key, (*(const lg__meta *const *)b)->key);
}

/* Checks that all keys of the metadata differ. Returns false with an error. */
static bool check_keys(const writer *f)
{
        size_t bytes = (size_t)f->metas * sizeof(lg__meta *);
        const lg__meta **order = lg__alloc(f->sink.ctx, bytes);
        bool ok = order;
        for (int64_t i = 0; ok && i < f->metas; i++)
                order[i] = &f->meta[i];
        if (ok)
                qsort(order, (size_t)f->metas, sizeof *order, by_key);
        for (int64_t i = 1; ok && i < f->metas; i++)
                if (!strcmp(order[i - 1]->key, order[i]->key))
                        ok = BAD(f, "two strings of the metadata are called %s", lg__quoted(order[i]->key).s);
        lg__free(f->sink.ctx, order, bytes);
        return ok;
}

/* Checks the tensors and sorts them as in the file. Returns false with an error. */
static bool order_tensors(writer *f, const lg__weight_out *entries)
{
        int64_t total = 0;
        f->order = lg__alloc(f->sink.ctx, (size_t)f->count * sizeof *f->order);
        if (!f->order)
                return false;
        for (int64_t i = 0; i < f->count; i++) {
                if (!check_tensor(f, &entries[i]))
                        return false;
                f->order[i] = &entries[i];
                if (__builtin_add_overflow(total, bytes_of(&entries[i]), &total) || total >= MOST_DATA)
                        return BAD(f, "%s", "the tensors have 2^53 bytes or more");
        }
        qsort(f->order, (size_t)f->count, sizeof *f->order, by_name);
        for (int64_t i = 1; i < f->count; i++)
                if (!strcmp(f->order[i - 1]->name, f->order[i]->name))
                        return BAD(f, "two tensors are called %s", lg__quoted(f->order[i]->name).s);
        qsort(f->order, (size_t)f->count, sizeof *f->order, by_size);
        return true;
}

/* ---- the header ---- */

static bool put(writer *f, const char *s, size_t bytes)
{
        f->bytes += (int64_t)bytes;
        return f->counting || lg__sink_put(&f->sink, s, bytes);
}

static bool put_text(writer *f, const char *s)
{
        return put(f, s, strlen(s));
}

static bool put_piece(void *f, const char *s, size_t bytes)
{
        return put(f, s, bytes);
}

static bool put_string(writer *f, const char *s)
{
        return lg__json_put_string(s, put_piece, f);
}

static bool put_metas(writer *f)
{
        bool ok = put_text(f, "\"__metadata__\":{");
        for (int64_t i = 0; ok && i < f->metas; i++)
                ok = (!i || put(f, ",", 1)) && put_string(f, f->meta[i].key) && put(f, ":", 1) &&
                     put_string(f, f->meta[i].value);
        return ok && put(f, "}", 1);
}

static bool put_tensor(writer *f, const lg__weight_out *e, int64_t begin)
{
        char text[64];
        snprintf(text, sizeof text, ":{\"dtype\":\"%s\",\"shape\":[", lg__weight_dtype_name(e->dtype));
        if (!put_string(f, e->name) || !put_text(f, text))
                return false;
        for (int i = 0; i < e->shape.ndim; i++) {
                snprintf(text, sizeof text, "%s%" PRId64, i ? "," : "", e->shape.size[i]);
                if (!put_text(f, text))
                        return false;
        }
        snprintf(text, sizeof text, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", begin, begin + bytes_of(e));
        return put_text(f, text);
}

static bool put_header(writer *f)
{
        int64_t at = 0;
        f->bytes = 0;
        bool ok = put(f, "{", 1) && (!f->metas || put_metas(f));
        for (int64_t i = 0; ok && i < f->count; i++) {
                ok = ((!i && !f->metas) || put(f, ",", 1)) && put_tensor(f, f->order[i], at);
                at += bytes_of(f->order[i]);
        }
        ok = ok && put(f, "}", 1);
        while (ok && f->bytes % 8)
                ok = put(f, " ", 1);
        return ok;
}

/* Counts the bytes of the header in f->bytes. Returns false with an error if there are too many. */
static bool count_header(writer *f)
{
        f->counting = true;
        put_header(f);
        f->counting = false;
        return f->bytes <= LG__WEIGHTS_MOST_HEADER ||
               BAD(f, "the header has %" PRId64 " bytes; %d are the most", f->bytes, LG__WEIGHTS_MOST_HEADER);
}

static bool write_header(writer *f)
{
        uint64_t bytes = (uint64_t)f->bytes; /* as counted by count_header() */
        return lg__sink_put(&f->sink, &bytes, sizeof bytes) && put_header(f);
}

/* ---- the values ---- */

static bool write_read(writer *f, const lg__weight_out *e, void *bounce)
{
        int64_t bytes = bytes_of(e);
        for (int64_t at = 0; at < bytes;) {
                size_t piece = bytes - at < (int64_t)BOUNCE ? (size_t)(bytes - at) : BOUNCE;
                if (!e->read(e->user, at, piece, bounce))
                        return lg__fail(f->sink.ctx, LG_ERR_STATE, "%s: the values of %s cannot be read", f->sink.op,
                                        lg__quoted(e->name).s);
                if (!lg__sink_put(&f->sink, bounce, piece))
                        return false;
                at += (int64_t)piece;
        }
        return true;
}

static bool write_values(writer *f)
{
        void *bounce = lg__alloc(f->sink.ctx, BOUNCE);
        bool ok = bounce;
        for (int64_t i = 0; ok && i < f->count; i++) {
                const lg__weight_out *e = f->order[i];
                ok = e->data ? lg__sink_put(&f->sink, e->data, (size_t)bytes_of(e)) : write_read(f, e, bounce);
        }
        lg__free(f->sink.ctx, bounce, BOUNCE);
        return ok;
}

/* Checks everything before the file is opened, then writes the file. */
static bool save(writer *f, const lg__weight_out *entries)
{
        if (!check_metas(f) || !check_keys(f) || !order_tensors(f, entries) || !count_header(f))
                return false;
        bool ok = lg__sink_open(&f->sink) && write_header(f) && write_values(f) && lg__sink_commit(&f->sink);
        lg__sink_close(&f->sink);
        return ok;
}

bool lg__weights_save(lg_ctx *c, const char *op, const char *path, const lg__weight_out *entries, int64_t count,
                      const lg__meta *meta, int64_t metas)
{
        if (!lg__ok(c))
                return false;
        writer f = {.sink = {.ctx = c, .op = op, .path = path}, .count = count, .meta = meta, .metas = metas};
        bool ok = save(&f, entries);
        lg__free(c, f.order, (size_t)count * sizeof *f.order);
        return ok;
}
