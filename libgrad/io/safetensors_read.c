/* safetensors_read.c - opens safetensors files and reads values by pread(): a file that shrinks is an error, no
 * signal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "files.h"
#include "safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the values in safetensors files are little-endian, and so must the machine be"
#endif

/* Reads exactly `bytes` bytes from byte `at` of the file on. Returns false with an error. */
static bool get(const lg__weights *w, int64_t at, void *to, int64_t bytes)
{
        int64_t n = lg__read_at(w->ctx, w->op, w->path, w->fd, at, to, bytes);
        return n == bytes || (n >= 0 && lg__fail(w->ctx, LG_ERR_FORMAT,
                                                 "%s: %s ended at byte %" PRId64 " of %" PRId64 ": it became shorter",
                                                 w->op, w->path, at + n, w->file_bytes));
}

static bool get_header(lg__weights *w)
{
        uint64_t bytes;
        if (w->file_bytes < 10)
                return lg__fail(w->ctx, LG_ERR_FORMAT,
                                "%s: %s is no safetensors file: it has %" PRId64 " bytes, and 10 are the least", w->op,
                                w->path, w->file_bytes);
        if (!get(w, 0, &bytes, 8))
                return false;
        if (bytes >= 2 && bytes <= LG__WEIGHTS_MOST_HEADER && (int64_t)bytes > w->file_bytes - 8)
                return lg__fail(w->ctx, LG_ERR_FORMAT,
                                "%s: %s is truncated, or no safetensors file: its header has %" PRIu64
                                " bytes, and %" PRId64 " follow",
                                w->op, w->path, bytes, w->file_bytes - 8);
        if (bytes < 2 || bytes > LG__WEIGHTS_MOST_HEADER)
                return lg__fail(w->ctx, LG_ERR_FORMAT,
                                "%s: %s is no safetensors file: it begins with a header of %" PRIu64
                                " bytes; 2 to %d were expected",
                                w->op, w->path, bytes, LG__WEIGHTS_MOST_HEADER);
        w->data_at = 8 + (int64_t)bytes;
        char *header = lg__alloc(w->ctx, (size_t)bytes);
        bool ok = header && get(w, 8, header, (int64_t)bytes) && lg__weights_parse(w, header, (size_t)bytes);
        lg__free(w->ctx, header, (size_t)bytes);
        return ok;
}

lg__weights *lg__weights_open(lg_ctx *c, const char *op, const char *path)
{
        if (!lg__ok(c))
                return NULL;
        if (!path)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the path is NULL", op);
        lg__weights *w = lg__alloc(c, sizeof *w);
        if (!w)
                return NULL;
        *w = (lg__weights){.ctx = c, .op = op, .path = lg__strdup(c, path), .fd = -1};
        if (w->path)
                w->fd = lg__open_regular(c, op, path, &w->file_bytes);
        if (w->fd >= 0 && get_header(w))
                return w;
        lg__weights_close(w);
        return NULL;
}

void lg__weights_close(lg__weights *w)
{
        if (!w)
                return;
        lg_ctx *c = w->ctx;
        if (w->fd >= 0)
                lg__files_of(c)->close(w->fd);
        lg__free(c, w->by_name, (size_t)w->count * sizeof *w->by_name);
        lg__free(c, w->entries, (size_t)w->room * sizeof *w->entries);
        lg__free(c, w->metas, (size_t)w->meta_room * sizeof *w->metas);
        lg__free(c, w->text, (size_t)w->text_bytes);
        lg__strfree(c, w->path);
        lg__free(c, w, sizeof *w);
}

static int compare_weight(const void *name, const void *item)
{
        return strcmp(name, (*(const lg__weight *const *)item)->name);
}

const lg__weight *lg__weights_find(const lg__weights *w, const char *name)
{
        const lg__weight *const *at = NULL;
        if (w->count)
                at = bsearch(name, w->by_name, (size_t)w->count, sizeof *w->by_name, compare_weight);
        return at ? *at : NULL;
}

static int compare_meta(const void *key, const void *item)
{
        return strcmp(key, ((const lg__meta *)item)->key);
}

const char *lg__weights_meta(const lg__weights *w, const char *key)
{
        const lg__meta *at = NULL;
        if (w->meta_count)
                at = bsearch(key, w->metas, (size_t)w->meta_count, sizeof *w->metas, compare_meta);
        return at ? at->value : NULL;
}

static bool check_bools(const lg__weights *w, const lg__weight *e, int64_t at, const uint8_t *values, int64_t bytes)
{
        for (int64_t i = 0; i < bytes; i++)
                if (values[i] > 1)
                        return lg__fail(w->ctx, LG_ERR_FORMAT, "%s: %s: element %" PRId64 " of %s is %d, no bool",
                                        w->op, w->path, at + i, lg__quoted(e->name).s, values[i]);
        return true;
}

bool lg__weights_read_part(lg__weights *w, const lg__weight *e, int64_t at, void *to, int64_t bytes)
{
        if (!lg__ok(w->ctx))
                return false;
        if (e->dtype == LG_DTYPE_NONE)
                return lg__fail(w->ctx, LG_ERR_DTYPE, "%s: %s: %s is %s, which libgrad has no dtype for", w->op,
                                w->path, lg__quoted(e->name).s, e->dtype_name);
        return get(w, w->data_at + e->begin + at, to, bytes) &&
               (e->dtype != LG_BOOL || check_bools(w, e, at, to, bytes));
}
