/* whole.h - all bytes of a file in memory, plain or gzip. Private. */
#ifndef LG_IO_WHOLE_H
#define LG_IO_WHOLE_H

#include "tensor/tensor.h"

typedef struct lg__whole {
        char *data;
        size_t bytes, room; /* of the file; of the memory, where a zero byte follows them */
} lg__whole;

/* Reads a regular file. False: LG_ERR_IO, LG_ERR_FORMAT (damaged gzip), LG_ERR_MEMORY; then there is nothing to free.
 */
bool lg__whole_read(lg_ctx *c, const char *who, const char *path, lg__whole *ret);

void lg__whole_free(lg_ctx *c, lg__whole *w);

#endif
