/* source.h - reads a file, plain or compressed by gzip, from beginning to end. Private. */
#ifndef LG_IO_SOURCE_H
#define LG_IO_SOURCE_H

#include "tensor/tensor.h"

/* More than deflate's maximum ratio, 1032: a header that promises more than this times the file's size is wrong. */
#define LG__MOST_INFLATED 1040

typedef struct lg__source {
        lg_ctx *ctx;
        const char *who; /* name of the public function, for messages */
        const char *path;
        void *stream;
        int64_t file_bytes;
        bool plain; /* the file is not compressed */
} lg__source;

/* Opens the regular file s->path; the caller sets ctx, who and path. Returns false with an error. */
bool lg__source_open(lg__source *s);

/* Reads exactly `bytes` bytes. Returns false with an error, also at the end of the file. */
bool lg__source_get(const lg__source *s, void *data, size_t bytes);

/* Reads up to `room` bytes; *ret_bytes is less only at the end of the file. Returns false with an error. */
bool lg__source_some(const lg__source *s, void *data, size_t room, size_t *ret_bytes);

/* Returns true if the file has no more bytes and gzip's checksum is right; otherwise returns false with an error. */
bool lg__source_at_end(const lg__source *s);

void lg__source_close(lg__source *s);

/* Contents of a file in memory. */
typedef struct lg__whole {
        char *data;
        size_t bytes; /* size of the contents, without the NUL after them */
        int64_t room; /* allocated bytes at `data` */
} lg__whole;

/* Reads a regular file, plain or compressed by gzip. Returns false with an error: LG_ERR_IO, LG_ERR_FORMAT (damaged
 * gzip) or LG_ERR_MEMORY. In any case lg__free(c, ret->data, ret->room) frees the memory. */
bool lg__whole_read(lg_ctx *c, const char *who, const char *path, lg__whole *ret);

#endif
