/* safetensors.h - files of named tensors: https://github.com/huggingface/safetensors. Private.
 *
 * Eight bytes, the length of the header as a little-endian number; the header, a JSON object that says of each tensor
 * its dtype, shape and bytes, "__metadata__" being strings of the file's own; then the bytes of all tensors, without
 * gaps.
 */
#ifndef LG_IO_SAFETENSORS_H
#define LG_IO_SAFETENSORS_H

#include "tensor/tensor.h"
#include "text.h"

#define LG__WEIGHTS_MOST_HEADER 100000000 /* bytes, as other readers have it */

/* ---- reading: safetensors_read.c, safetensors_header.c ---- */

/* A tensor of a file. `begin` and `end` count from the first byte behind the header. */
typedef struct lg__weight {
        const char *name;
        lg_dtype dtype;         /* LG_DTYPE_NONE: one of the format's that libgrad does not have */
        const char *dtype_name; /* the format's: "BF16", "F8_E4M3" */
        lg_shape shape;
        int64_t begin, end;
} lg__weight;

/* A string of "__metadata__". */
typedef struct lg__meta {
        const char *key, *value;
} lg__meta;

typedef struct lg__weights {
        lg_ctx *ctx;
        const char *op; /* the public function that reads, for messages; as given */
        char *path;
        int fd;
        int64_t file_bytes, data_at; /* where the bytes of tensors begin */
        int64_t count;
        lg__weight *entries; /* `count`, in the order of their bytes */
        int64_t meta_count;
        lg__meta *metas;      /* `meta_count`, by key */
        lg__weight **by_name; /* `count` */
        char *text;           /* what names, keys and values point into */
        int64_t text_bytes, room, meta_room;
} lg__weights;

/* Opens a regular file and reads and checks its header; no bytes of tensors. The caller ends it with lg__weights_close.
 * NULL: LG_ERR_IO: it cannot be opened or read; LG_ERR_FORMAT: it is not as the format says, and the message names the
 * byte or the tensor; LG_ERR_MEMORY. */
lg__weights *lg__weights_open(lg_ctx *c, const char *op, const char *path);
void lg__weights_close(lg__weights *w); /* NULL: nothing */

/* The tensor or the string of that name; NULL without an error: there is none. O(log n). */
const lg__weight *lg__weights_find(const lg__weights *w, const char *name);
const char *lg__weights_meta(const lg__weights *w, const char *key);

/* Reads `bytes` bytes of a tensor's values, row-major, from byte `at` of them on. False: LG_ERR_DTYPE: libgrad has no
 * such dtype; LG_ERR_FORMAT: a bool that is not 0 or 1, or a file that has become shorter; LG_ERR_IO. Values may have
 * been written even so. */
bool lg__weights_read_part(lg__weights *w, const lg__weight *e, int64_t at, void *to, int64_t bytes);
static inline bool lg__weights_read(lg__weights *w, const lg__weight *e, void *to)
{
        return lg__weights_read_part(w, e, 0, to, e->end - e->begin);
}

/* Fills w from the text of its header; w->ctx, op, path, file_bytes and data_at are set. False: an error; what is in w
 * is the caller's to free. */
bool lg__weights_parse(lg__weights *w, const char *header, size_t bytes);

/* ---- writing: safetensors_write.c ---- */

/* A tensor to be written. Its values are at `data`, or `read` gives them, row-major: it fills `bytes` bytes beginning
 * with byte `at`, whole elements in rising order, and returns false after it has set an error. */
typedef struct lg__weight_out {
        const char *name;
        lg_dtype dtype;
        lg_shape shape;
        const void *data; /* NULL: `read` is called, unless there are no elements */
        bool (*read)(void *user, int64_t at, size_t bytes, void *to);
        void *user;
} lg__weight_out;

/* Writes a file that replaces `path` only when it is whole (sink.h). Tensors are ordered by the size of their elements,
 * the largest first, and then by name. False: LG_ERR_ARGUMENT: two tensors or two strings of one name, one that is
 * called
 * "__metadata__", a name or a string that is NULL or not UTF-8, a shape or a dtype that is none, more than a header
 * holds; LG_ERR_IO; LG_ERR_MEMORY; or what `read` has set. The old file is as it was then, unless the message says
 * otherwise. */
bool lg__weights_save(lg_ctx *c, const char *op, const char *path, const lg__weight_out *entries, int64_t count,
                      const lg__meta *meta, int64_t metas);

/* ---- both ---- */

/* The format's name of a dtype of libgrad's; NULL: it is none. */
const char *lg__weight_dtype_name(lg_dtype dtype);

#endif
