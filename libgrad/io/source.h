/* source.h - a file that is read from its beginning to its end, plain or gzip. */
#ifndef LG_IO_SOURCE_H
#define LG_IO_SOURCE_H

#include "tensor/tensor.h"

/* deflate makes nothing smaller than this: who promises more bytes than that many times the file's is not believed. */
#define LG__MOST_INFLATED 1040

typedef struct lg__source {
        lg_ctx *ctx;
        const char *who; /* the function that reads, for messages */
        const char *path;
        void *stream;
        int64_t file_bytes;
        bool plain; /* bytes are as in the file */
} lg__source;

/* Opens the regular file `path`; s->ctx, who and path are set by the caller. False: an error. */
bool lg__source_open(lg__source *s);

/* Reads exactly so many bytes. False: an error; also where the file ends before. */
bool lg__source_get(const lg__source *s, void *data, size_t bytes);

/* Reads as much as there is, at most `room` bytes; *ret_bytes is less at the end only. False: an error. */
bool lg__source_some(const lg__source *s, void *data, size_t room, size_t *ret_bytes);

/* True if nothing follows and the checksum of gzip is right. */
bool lg__source_at_end(const lg__source *s);

void lg__source_close(lg__source *s);

/* All bytes of a file in memory. */
typedef struct lg__whole {
        char *data;
        size_t bytes; /* of the file; a zero byte follows them */
        int64_t room; /* of the memory */
} lg__whole;

/* Reads a regular file, plain or gzip. False: LG_ERR_IO, LG_ERR_FORMAT (damaged gzip), LG_ERR_MEMORY. Whatever it
 * returns, lg__free(c, ret->data, ret->room) ends it. */
bool lg__whole_read(lg_ctx *c, const char *who, const char *path, lg__whole *ret);

#endif
