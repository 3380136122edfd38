/* fill.c - fills with a constant or with an arithmetic progression. */
#include "cpu.h"

#define CHUNK 2048

static void value_of(const lg_fill_args *a, void *ret)
{
        if (lg_is_float(a->dtype))
                lg_store[LG_COMPUTE_F64][a->dtype](1, ret, &a->real);
        else
                lg_store[LG_COMPUTE_I64][a->dtype](1, ret, &a->integer);
}

typedef struct filling {
        const lg_fill_args *a;
        lg_walk walk;
        size_t size;
        const char *values; /* a chunk of elements with the fill value */
} filling;

static void fill_chunk(const filling *f, int64_t first, int64_t n)
{
        lg_walk_scatter(&f->walk, 0, f->size, f->a->out, f->values, first, n);
}
LG_EACH_CHUNK(fill_chunks, fill_chunk, filling, CHUNK, j->walk.count)

bool LG_CPU(fill)(lg_queue *q, const lg_fill_args *a)
{
        LG_ALIGN64 char values[CHUNK * 8];
        filling f = {.a = a, .size = lg_bytes_of(a->dtype), .values = values};
        lg_walk_init(&f.walk, a->ndim, a->shape, 1, (const int64_t *[]){a->strides}, true);
        if (f.walk.count == 0)
                return true;
        value_of(a, values);
        for (size_t i = 1; i < (size_t)lg_least(f.walk.count, CHUNK); i++)
                memcpy(values + i * f.size, values, f.size);
        lg_parallel(q, lg_ceil_div(f.walk.count, CHUNK), lg_grain(CHUNK), fill_chunks, &f);
        return true;
}

static void arange_chunk(const lg_arange_args *a, int64_t first, int64_t n)
{
        LG_ALIGN64 double real[CHUNK];
        LG_ALIGN64 int64_t integer[CHUNK];
        char *out = (char *)a->out + first * (int64_t)lg_bytes_of(a->dtype);
        if (lg_is_float(a->dtype)) {
                for (int64_t i = 0; i < n; i++)
                        real[i] = a->start + (double)(first + i) * a->step;
                lg_store[LG_COMPUTE_F64][a->dtype](n, out, real);
                return;
        }
        int64_t start, step;
        lg_store[LG_COMPUTE_F64][LG_I64](1, &start, &a->start);
        lg_store[LG_COMPUTE_F64][LG_I64](1, &step, &a->step);
        for (int64_t i = 0; i < n; i++)
                integer[i] = start + (first + i) * step;
        lg_store[LG_COMPUTE_I64][a->dtype](n, out, integer);
}
LG_EACH_CHUNK(arange_chunks, arange_chunk, lg_arange_args, CHUNK, j->n)

bool LG_CPU(arange)(lg_queue *q, const lg_arange_args *a)
{
        lg_parallel(q, lg_ceil_div(a->n, CHUNK), lg_grain(CHUNK), arange_chunks, a);
        return true;
}
