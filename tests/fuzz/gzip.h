/* gzip.h - bytes as gzip stores them: random bytes have no right checksum. */
#ifndef LG_FUZZ_GZIP_H
#define LG_FUZZ_GZIP_H

#include <zlib.h>
#include "fuzz.h"

/* Returns how many bytes there are at `out`. */
static inline size_t compress_gzip(const uint8_t *data, size_t size, uint8_t *out, size_t room)
{
        z_stream z = {0};
        FUZZ_CHECK(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib: no memory");
        z.next_in = (uint8_t *)data;
        z.avail_in = (unsigned)size;
        z.next_out = out;
        z.avail_out = (unsigned)room;
        FUZZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END, "zlib: too little room");
        deflateEnd(&z);
        return room - z.avail_out;
}

#endif
