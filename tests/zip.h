/* zip.h - zip archives as bytes, right ones and others. */
#ifndef LG_TEST_ZIP_H
#define LG_TEST_ZIP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

typedef struct zip_entry {
        const char *name;
        const void *data;
        size_t bytes;
        int method;         /* 0: stored; 8: deflated; others: bytes as they are under that name */
        int flags;          /* of the entry: 1 is encrypted */
        uint32_t wrong_crc; /* what is added to the checksum */
        uint64_t says;      /* the size that is declared; 0: the right one */
        bool zip64;         /* sizes in 64 bits */
} zip_entry;

static inline size_t zip_put(uint8_t *out, uint64_t value, int bytes)
{
        for (int i = 0; i < bytes; i++)
                out[i] = (uint8_t)(value >> 8 * i);
        return (size_t)bytes;
}

static inline uint64_t zip_get(const uint8_t *in, int bytes)
{
        uint64_t value = 0;
        for (int i = bytes; i--;)
                value = value << 8 | in[i];
        return value;
}

static inline size_t zip_deflate(const zip_entry *e, uint8_t *out, size_t room)
{
        z_stream z = {0};
        if (e->method != 8) {
                memcpy(out, e->data, e->bytes);
                return e->bytes;
        }
        deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
        z.next_in = (uint8_t *)(uintptr_t)e->data;
        z.avail_in = (unsigned)e->bytes;
        z.next_out = out;
        z.avail_out = (unsigned)room;
        deflate(&z, Z_FINISH);
        deflateEnd(&z);
        return room - z.avail_out;
}

/* What the two headers of an entry have in common, from the version on; sizes are of 64 bits where the entry says so.
 */
static inline size_t zip_facts(uint8_t *out, const zip_entry *e, uint64_t packed)
{
        const uint64_t size = e->says ? e->says : e->bytes;
        size_t n = zip_put(out, 45, 2);
        n += zip_put(out + n, (uint64_t)e->flags, 2);
        n += zip_put(out + n, (uint64_t)e->method, 2);
        n += zip_put(out + n, 0x210000, 4); /* 1980-01-01 */
        n += zip_put(out + n, (uint32_t)crc32(0, e->data, (unsigned)e->bytes) + e->wrong_crc, 4);
        n += zip_put(out + n, e->zip64 ? UINT32_MAX : packed, 4);
        n += zip_put(out + n, e->zip64 ? UINT32_MAX : size, 4);
        n += zip_put(out + n, strlen(e->name), 2);
        return n + zip_put(out + n, e->zip64 ? 20 : 0, 2);
}

static inline size_t zip_name(uint8_t *out, const zip_entry *e, uint64_t packed)
{
        size_t n = strlen(e->name);
        memcpy(out, e->name, n);
        if (!e->zip64)
                return n;
        n += zip_put(out + n, 1, 2);
        n += zip_put(out + n, 16, 2);
        n += zip_put(out + n, e->says ? e->says : e->bytes, 8);
        return n + zip_put(out + n, packed, 8);
}

/* An archive of up to 16 entries; returns its bytes. Entries take room for twice their bytes and 300 more. */
static inline size_t zip_make(uint8_t *out, const zip_entry *entries, int count)
{
        size_t at[16], packed[16], n = 0;
        for (int i = 0; i < count; i++) {
                const zip_entry *e = &entries[i];
                uint8_t *local = out + n;
                at[i] = n;
                n += zip_put(out + n, 0x04034b50, 4) + 26 + strlen(e->name) + (e->zip64 ? 20 : 0);
                packed[i] = zip_deflate(e, out + n, 2 * e->bytes + 100);
                n += packed[i];
                zip_name(local + 4 + zip_facts(local + 4, e, packed[i]), e, packed[i]);
        }
        const size_t directory = n;
        for (int i = 0; i < count; i++) {
                n += zip_put(out + n, 0x02014b50, 4);
                n += zip_put(out + n, 45, 2);
                n += zip_facts(out + n, &entries[i], packed[i]);
                n += zip_put(out + n, 0, 6); /* comment, disk, attributes */
                n += zip_put(out + n, 0, 4);
                n += zip_put(out + n, at[i], 4);
                n += zip_name(out + n, &entries[i], packed[i]);
        }
        const size_t end = n;
        n += zip_put(out + n, 0x06054b50, 4);
        n += zip_put(out + n, 0, 4);
        n += zip_put(out + n, (uint64_t)count, 2);
        n += zip_put(out + n, (uint64_t)count, 2);
        n += zip_put(out + n, end - directory, 4);
        n += zip_put(out + n, directory, 4);
        return n + zip_put(out + n, 0, 2);
}

#endif
