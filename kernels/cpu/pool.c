/* pool.c - pooling over images with channels last; the inner loops run over the channels. */
#include <math.h>
#include "cpu.h"
#include "simd.h"

#define CLEARED 65536 /* minimum bytes of an image that are cleared at once */
#define AHEAD 4096    /* prefetch distance of gradients, in bytes */

/* Pixels that a window covers along one side: first, first + step, ... below end. `size` includes padding. */
typedef struct window {
        int64_t first, end, step, size;
} window;

static window window_of(const lg_pool_args *a, int side, int64_t i)
{
        const lg_conv_geometry *g = &a->at;
        int64_t in = g->in[side], pad = g->padding[side];
        if (a->adaptive) {
                int64_t first = i * in / g->out[side], end = lg_ceil_div((i + 1) * in, g->out[side]);
                return (window){first, end, 1, end - first};
        }
        int64_t step = g->dilation[side], first = i * g->stride[side] - pad;
        int64_t last = first + (g->kernel[side] - 1) * step + 1;
        window w = {first, lg_least(last, in), step, lg_least(last, in + pad) - first};
        if (first < 0)
                w.first = first + lg_ceil_div(-first, step) * step;
        return w;
}

static double size_of(const lg_pool_args *a, const window *row, const window *column)
{
        if (a->divisor)
                return (double)a->divisor;
        if (a->count_padding || a->adaptive)
                return (double)(row->size * column->size);
        return (double)(lg_most(row->end - row->first, 0) * lg_most(column->end - column->first, 0));
}

/* Returns the greatest power of two that is at most x, for x > 0: clears the fraction bits. */
static double power_below(double x)
{
        union {
                double f64;
                uint64_t bits;
        } u = {x};
        u.bits &= UINT64_MAX << 52;
        return u.f64;
}

#define LG_BOTH "pool.inc"
#include "both.inc"

static void run_row(const lg_pool_args *a, int64_t i)
{
        (a->dtype == LG_F64 ? row_f64 : row_f32)(a, i / a->at.out[0], i % a->at.out[0]);
}
LG_EACH(run_rows, run_row)

static int64_t elements_in(const lg_pool_args *a)
{
        return a->at.in[0] * a->at.in[1] * a->channels;
}

/* Computes the gradient of image n. Lines of dx are cleared shortly before windows add to them: both hit the cache. */
static void run_image(const lg_pool_args *a, int64_t n)
{
        const int64_t lines = a->at.in[0], line = a->at.in[1] * a->channels * (int64_t)lg_bytes_of(a->dtype);
        char *image = (char *)a->to + n * lines * line;
        int64_t cleared = 0;
        for (int64_t i = 0; i <= a->at.out[0]; i++) {
                const int64_t needed = i < a->at.out[0] ? window_of(a, 0, i).end : lines;
                if (needed > cleared) {
                        const int64_t end = lg_least(lg_most(needed, cleared + CLEARED / lg_most(line, 1)), lines);
                        memset(image + cleared * line, 0, (size_t)((end - cleared) * line));
                        cleared = end;
                }
                if (i < a->at.out[0])
                        run_row(a, n * a->at.out[0] + i);
        }
}
LG_EACH(run_images, run_image)

static bool is_backward(const lg_pool_args *a)
{
        return a->kind == LG_POOL_MAX_GRAD || a->kind == LG_POOL_AVG_GRAD;
}

/* Pools in f32 or f64. Output rows are independent; in the backward pass windows overlap, so only images are. */
static bool pool(lg_queue *q, const lg_pool_args *a)
{
        const int64_t rows = a->at.out[0], image = lg_most(elements_in(a), rows * a->at.out[1] * a->channels);
        if (is_backward(a))
                lg_parallel(q, a->n, lg_grain(image), run_images, a);
        else
                lg_parallel(q, a->n * rows, lg_grain(image / lg_most(rows, 1)), run_rows, a);
        return true;
}

/* Returns the number of elements of all images of pixels[0] by pixels[1]. */
static int64_t count_of(const lg_pool_args *a, const int64_t *pixels)
{
        return a->n * a->channels * pixels[0] * pixels[1];
}
LG_FLOAT_KERNEL(pool, lg_pool_args, 0, {&wide.from, count_of(a, is_backward(a) ? a->at.out : a->at.in), LG_READ, NULL},
                {&wide.to, count_of(a, is_backward(a) ? a->at.in : a->at.out), LG_WRITTEN, NULL})
