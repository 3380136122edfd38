/* pool.c - pooling over images with channels last: each window's loop runs over the channels. */
#include <math.h>
#include "cpu.h"
#include "simd.h"

#define CLEARED 65536 /* bytes of an image that are cleared at once */
#define AHEAD 4096    /* bytes: how far ahead gradients are fetched */

/* The pixels of one side that window i covers: first, first + step, ... below end. `size` counts padding, too. */
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

/* The greatest power of two up to x > 0: its exponent without its fraction. */
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

static void one_row(const lg_pool_args *a, int64_t n, int64_t i)
{
        (a->dtype == LG_F64 ? row_f64 : row_f32)(a, n, i);
}

static int64_t elements_in(const lg_pool_args *a)
{
        return a->at.in[0] * a->at.in[1] * a->channels;
}

static void run_rows(const void *user, int64_t first, int64_t end, int thread)
{
        const lg_pool_args *a = user;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                one_row(a, i / a->at.out[0], i % a->at.out[0]);
}

/* An image's lines are cleared not long before windows need them: then they are in the cache. */
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
                        one_row(a, n, i);
        }
}

static void run_images(const void *user, int64_t first, int64_t end, int thread)
{
        (void)thread;
        for (int64_t n = first; n < end; n++)
                run_image(user, n);
}

/* Forwards, each row of the output stands alone; backwards, windows share pixels within an image only. */
static void run(lg_queue *q, const lg_pool_args *a)
{
        const int64_t rows = a->at.out[0], image = lg_most(elements_in(a), rows * a->at.out[1] * a->channels);
        if (a->kind != LG_POOL_MAX_GRAD && a->kind != LG_POOL_AVG_GRAD)
                lg_parallel(q, a->n * rows, lg_grain(image / lg_most(rows, 1)), run_rows, a);
        else
                lg_parallel(q, a->n, lg_grain(image), run_images, a);
}

bool LG_CPU(pool)(lg_queue *q, const lg_pool_args *a)
{
        int64_t in = a->n * a->channels * a->at.in[0] * a->at.in[1];
        int64_t out = a->n * a->channels * a->at.out[0] * a->at.out[1];
        bool back = a->kind == LG_POOL_MAX_GRAD || a->kind == LG_POOL_AVG_GRAD;
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "pool: no kernel for dtype %d", (int)a->dtype);
        if (!lg_is_half(a->dtype)) {
                run(q, a);
                return true;
        }
        lg_pool_args wide = *a;
        wide.dtype = LG_F32;
        if (!(wide.from = lg_widen(q, a->dtype, back ? out : in, a->from)) ||
            !(wide.to = lg_widen(q, a->dtype, back ? in : out, NULL)))
                return false;
        run(q, &wide);
        lg_narrow(q, a->dtype, back ? in : out, a->to, wide.to);
        return true;
}
