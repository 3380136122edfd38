/* safetensors.h - files of named tensors: https://github.com/huggingface/safetensors. Private.
 *
 * A file has eight bytes, the length of the header as a little-endian integer; the header, a JSON object with the
 * dtype, shape and byte range of each tensor and with strings in "__metadata__"; then the bytes of all tensors, without
 * gaps.
 */
#ifndef LG_IO_SAFETENSORS_H
#define LG_IO_SAFETENSORS_H

#include "tensor/tensor.h"
#include "text.h"

#define LG__WEIGHTS_MOST_HEADER 100000000 /* bytes; the limit of other readers */

/* ---- reading: safetensors_read.c, safetensors_header.c ---- */

/* A tensor in a file. `begin` and `end` are byte offsets from the end of the header. */
typedef struct lg__weight {
        const char *name;
        lg_dtype dtype;         /* LG_DTYPE_NONE: libgrad lacks the dtype */
        const char *dtype_name; /* name in the format: "BF16", "F8_E4M3" */
        lg_shape shape;
        int64_t begin, end;
} lg__weight;

/* A string in "__metadata__". */
typedef struct lg__meta {
        const char *key, *value;
} lg__meta;

typedef struct lg__weights {
        lg_ctx *ctx;
        const char *op; /* name of the public function, for messages; not copied */
        char *path;
        int fd;
        int64_t file_bytes, data_at; /* size of the file; offset of the first tensor's bytes */
        int64_t count;
        lg__weight *entries; /* `count` tensors, in the order of their bytes */
        int64_t meta_count;
        lg__meta *metas;      /* `meta_count` strings, sorted by key */
        lg__weight **by_name; /* the `count` entries, sorted by name */
        char *text;           /* memory of names, keys and values */
        int64_t text_bytes, room, meta_room;
} lg__weights;

/* Opens a regular file, and reads and checks its header, but no tensors. Returns NULL with an error: LG_ERR_IO,
 * LG_ERR_MEMORY, LG_ERR_ARGUMENT if path is NULL, or LG_ERR_FORMAT with a message that names the wrong byte or
 * tensor. */
lg__weights *lg__weights_open(lg_ctx *c, const char *op, const char *path);
void lg__weights_close(lg__weights *w); /* does nothing if w is NULL */

/* Returns the tensor or the string of that name, or NULL, without an error, if there is none. Takes O(log n) steps. */
const lg__weight *lg__weights_find(const lg__weights *w, const char *name);
const char *lg__weights_meta(const lg__weights *w, const char *key);

/* Reads `bytes` bytes of a tensor's row-major values, from their byte `at` on. Returns false with an error:
 * LG_ERR_DTYPE if libgrad lacks the dtype; LG_ERR_FORMAT if a bool is not 0 or 1, or if the file has become shorter;
 * LG_ERR_IO. `to` may be partly written then. */
bool lg__weights_read_part(lg__weights *w, const lg__weight *e, int64_t at, void *to, int64_t bytes);
static inline bool lg__weights_read(lg__weights *w, const lg__weight *e, void *to)
{
        return lg__weights_read_part(w, e, 0, to, e->end - e->begin);
}

/* Fills w from the text of the header; ctx, op, path, file_bytes and data_at are set by the caller. Returns false with
 * an error; lg__weights_close() then frees what w has. */
bool lg__weights_parse(lg__weights *w, const char *header, size_t bytes);

/* ---- writing: safetensors_write.c ---- */

/* A tensor to be written. Its row-major values are at `data` or are given by `read`, which writes `bytes` bytes, whole
 * elements, from byte `at` on to `to`; `at` rises from call to call. `read` returns false after setting an error. */
typedef struct lg__weight_out {
        const char *name;
        lg_dtype dtype;
        lg_shape shape;
        const void *data; /* NULL: `read` is called, unless the tensor is empty */
        bool (*read)(void *user, int64_t at, size_t bytes, void *to);
        void *user;
} lg__weight_out;

/* Writes a file that replaces `path` only once complete (sink.h). Tensors are sorted by element size, the largest
 * first, then by name. Returns false with an error: LG_ERR_ARGUMENT if two tensors or two strings have the same name,
 * if a tensor is called "__metadata__", if a name or string is NULL or not UTF-8, if a shape or dtype is invalid, or if
 * the header is too long; LG_ERR_IO; LG_ERR_MEMORY; or the error of `read`. The old file then stays unchanged unless
 * the message says otherwise. */
bool lg__weights_save(lg_ctx *c, const char *op, const char *path, const lg__weight_out *entries, int64_t count,
                      const lg__meta *meta, int64_t metas);

/* ---- reading and writing: safetensors_header.c ---- */

/* Returns the format's name of a dtype, or NULL if the dtype is invalid. */
const char *lg__weight_dtype_name(lg_dtype dtype);

#endif
