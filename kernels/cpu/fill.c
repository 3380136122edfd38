/* fill.c - constants and arithmetic progressions. */
#include "cpu.h"

#define CHUNK 2048

static void value_of(const lg_fill_args *a, void *ret)
{
        if (lg_is_float(a->dtype))
                lg_store[LG_COMPUTE_F64][a->dtype](1, ret, &a->real);
        else
                lg_store[LG_COMPUTE_I64][a->dtype](1, ret, &a->integer);
}

bool LG_CPU(fill)(lg_queue *q, const lg_fill_args *a)
{
        lg_walk w;
        lg_walk_init(&w, a->ndim, a->shape, 1, (const int64_t *[]){a->strides}, true);
        size_t size = lg_bytes_of(a->dtype);
        LG_ALIGN64 char values[CHUNK * 8];
        if (w.count == 0)
                return true;
        value_of(a, values);
        for (size_t i = 1; i < (size_t)lg_least(w.count, CHUNK); i++)
                memcpy(values + i * size, values, size);
        LG_PARALLEL_FOR(q, w.count >= LG_PARALLEL_MIN)
        for (int64_t i = 0; i < w.count; i += CHUNK)
                lg_walk_scatter(&w, 0, size, a->out, values, i, lg_least(CHUNK, w.count - i));
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

bool LG_CPU(arange)(lg_queue *q, const lg_arange_args *a)
{
        LG_PARALLEL_FOR(q, a->n >= LG_PARALLEL_MIN)
        for (int64_t i = 0; i < a->n; i += CHUNK)
                arange_chunk(a, i, lg_least(CHUNK, a->n - i));
        return true;
}
