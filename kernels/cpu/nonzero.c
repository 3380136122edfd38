/* nonzero.c - coordinates of non-zero elements. Chunks are counted first, which gives each its place in the output. */
#include "cpu.h"

/* Returns a mask of the bits that are all clear in a zero: every bit but the sign of floats. */
static uint64_t bits_of(lg_dtype t)
{
        return lg_is_float(t) ? UINT64_MAX >> (65 - 8 * lg_bytes_of(t)) : UINT64_MAX;
}

/* Returns how many of n elements are not 0 and, unless ret is NULL, stores their numbers, from `first` on, to ret. */
#define FIND(bits)                                                                                                     \
        static int64_t find_##bits(int64_t n, const void *x, uint64_t mask, int64_t first, int64_t *ret)               \
        {                                                                                                              \
                const uint##bits##_t *v = x, m = (uint##bits##_t)mask;                                                 \
                int64_t count = 0;                                                                                     \
                for (int64_t i = 0; !ret && i < n; i++)                                                                \
                        count += (v[i] & m) != 0;                                                                      \
                for (int64_t i = 0; ret && i < n; count += (v[i++] & m) != 0)                                          \
                        ret[count] = first + i;                                                                        \
                return count;                                                                                          \
        }
FIND(8)
FIND(16)
FIND(32)
FIND(64)

typedef struct job {
        const lg_nonzero_args *a;
        int64_t n;
        int64_t (*find)(int64_t, const void *, uint64_t, int64_t, int64_t *);
} job;

/* Converts element numbers to coordinates. */
static void put_places(const lg_nonzero_args *a, int64_t n, const int64_t *found, int64_t *places)
{
        for (int64_t k = 0; k < n; k++) {
                int64_t i = found[k];
                for (int d = a->ndim - 1; d > 0; i /= a->shape[d], d--)
                        places[k * a->ndim + d] = i % a->shape[d];
                places[k * a->ndim] = i;
        }
}

static void find_chunk(const job *j, int64_t k)
{
        const lg_nonzero_args *a = j->a;
        const int64_t at = k * LG_NONZERO_CHUNK, n = lg_least(LG_NONZERO_CHUNK, j->n - at);
        const char *x = (const char *)a->x + at * (int64_t)lg_bytes_of(a->dtype);
        int64_t found[LG_NONZERO_CHUNK];
        if (!a->places)
                a->starts[k + 1] = j->find(n, x, bits_of(a->dtype), 0, NULL);
        else if (a->starts[k] < a->starts[k + 1])
                put_places(a, j->find(n, x, bits_of(a->dtype), at, found), found, a->places + a->starts[k] * a->ndim);
}
LG_EACH(find_chunks, find_chunk)

bool LG_CPU(nonzero)(lg_queue *q, const lg_nonzero_args *a)
{
        job j = {.a = a, .n = 1};
        for (int d = 0; d < a->ndim; d++)
                j.n *= a->shape[d];
        const size_t size = lg_bytes_of(a->dtype);
        const int64_t chunks = lg_ceil_div(j.n, LG_NONZERO_CHUNK);
        j.find = size == 8 ? find_64 : size == 4 ? find_32 : size == 2 ? find_16 : find_8;
        lg_parallel(q, chunks, lg_grain(LG_NONZERO_CHUNK), find_chunks, &j);
        for (int64_t k = 0; !a->places && k <= chunks; k++)
                a->starts[k] = k ? a->starts[k - 1] + a->starts[k] : 0;
        return true;
}
