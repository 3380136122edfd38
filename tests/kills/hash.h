/* hash.h - FNV-1a of 64 bits, over words: short and good enough to see that bits differ. */
#ifndef LG_TEST_HASH_H
#define LG_TEST_HASH_H

#include <stdint.h>
#include <string.h>

#define HASH_BEGIN 0xcbf29ce484222325u

static inline void hash_bytes(uint64_t *hash, const void *data, size_t bytes)
{
        const unsigned char *at = data;
        for (; bytes; at += bytes < 8 ? bytes : 8, bytes -= bytes < 8 ? bytes : 8) {
                uint64_t word = 0;
                memcpy(&word, at, bytes < 8 ? bytes : 8);
                *hash = (*hash ^ word) * 0x100000001b3u;
                *hash ^= *hash >> 29;
        }
}

/* Of a file's bytes; 0: there is none. */
static inline uint64_t hash_file(const char *path)
{
        static char piece[1 << 16];
        uint64_t hash = HASH_BEGIN;
        FILE *f = fopen(path, "rb");
        if (!f)
                return 0;
        for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
                hash_bytes(&hash, piece, n);
        fclose(f);
        return hash;
}

#endif
