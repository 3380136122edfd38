/* png_codec.h - decodes and encodes PNG pictures in memory. Private.
 *
 * No function here needs a context, so worker threads may decode. libpng uses the caller's `scratch` as its only
 * memory, which is unused again when a call returns, so failures do not leak memory.
 */
#ifndef LG_IO_PNG_CODEC_H
#define LG_IO_PNG_CODEC_H

#include "tensor/tensor.h"

/* Bytes at the beginning of a PNG file that lg__png_look() needs. */
#define LG__PNG_HEAD 33

typedef struct lg__png_facts {
        int32_t height, width;
        int channels;   /* 1: grey, 3: RGB; alpha is not counted */
        size_t scratch; /* bytes of scratch memory that lg__png_decode() needs */
} lg__png_facts;

/* Description of an error in a file: words that follow the path in a message. */
typedef struct lg__png_wrong {
        char s[200];
} lg__png_wrong;

/* Reads the header from the first `bytes` bytes (LG__PNG_HEAD suffice) of a file of file_bytes bytes. Returns false
 * with *ret_wrong set if the file is not a PNG file, or is too short for its size in pixels. */
bool lg__png_look(const void *head, size_t bytes, int64_t file_bytes, lg__png_facts *ret, lg__png_wrong *ret_wrong);

/* Decodes a whole file to `out`, (channels, height, width); channels is 1, 3 or 4, with conversions as in
 * lg_read_png(). `facts` are from the file's header. Returns false with *ret_wrong set if the file is damaged or has
 * changed. */
bool lg__png_decode(const lg__png_facts *facts, const void *file, size_t bytes, int channels, uint8_t *out,
                    void *scratch, lg__png_wrong *ret_wrong);

/* Receives the next bytes of a PNG file. Returns false to end the encoding. */
typedef bool lg__png_put(void *to, const void *data, size_t bytes);
/* Encodes pixels (channels, height, width) as a PNG file, for `put`, which is passed `to`; `scratch` has
 * lg__png_encode_scratch(width) bytes. Returns false with an error in *ret_wrong, also if `put` has returned false. */
size_t lg__png_encode_scratch(int64_t width);
bool lg__png_encode(const uint8_t *planes, int channels, int64_t height, int64_t width, lg__png_put *put, void *to,
                    void *scratch, lg__png_wrong *ret_wrong);

#endif
