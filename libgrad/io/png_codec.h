/* png_codec.h - PNG pictures in memory: what they are, decoding and encoding. Private.
 *
 * Nothing here needs a context, so that threads which make batches may decode. libpng takes its memory from a piece
 * that the caller gives, `scratch`, which is free again whenever a call returns: no failure leaks.
 */
#ifndef LG_IO_PNG_CODEC_H
#define LG_IO_PNG_CODEC_H

#include "sink.h"

/* The beginning of a PNG file, as far as lg__png_look reads it. */
#define LG__PNG_HEAD 33

typedef struct lg__png_facts {
        int32_t height, width;
        int channels;   /* 1: grey, 3: colours; alpha is not counted */
        size_t scratch; /* bytes that decoding takes beside the file and the picture */
} lg__png_facts;

/* What is wrong with a file: words that follow its path in a message. */
typedef struct lg__png_wrong {
        char s[200];
} lg__png_wrong;

/* Reads the header in the first `bytes` of a file that has file_bytes: LG__PNG_HEAD are enough. False: it is no PNG
 * file, or it is too short for its picture, which is told before there is memory for that. */
bool lg__png_look(const void *head, size_t bytes, int64_t file_bytes, lg__png_facts *ret, lg__png_wrong *ret_wrong);

/* Decodes a whole file into channels x height x width bytes at `out`: channels is 1, 3 or 4, the rest is as
 * lg_read_png says. `facts` are those of its header. False: the file is damaged or another one; `out` is undefined. */
bool lg__png_decode(const lg__png_facts *facts, const void *file, size_t bytes, int channels, uint8_t *out,
                    void *scratch, lg__png_wrong *ret_wrong);

/* channels x height x width bytes as a PNG file into a sink; `scratch` has lg__png_encode_scratch(width) bytes. False:
 * the sink's context holds an error, or ret_wrong says what libpng did not like. */
size_t lg__png_encode_scratch(int64_t width);
bool lg__png_encode(const uint8_t *planes, int channels, int64_t height, int64_t width, lg__sink *to, void *scratch,
                    lg__png_wrong *ret_wrong);

#endif
