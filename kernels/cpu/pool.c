/* pool.c - pooling over images with channels last: each window's loop runs over the channels. */
#include "cpu.h"
#include "simd.h"

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

/* The first n of as many as a vector of that type has lanes. */
LG_INLINE void put_places_f32(int32_t *to, const int32_t *at, int64_t n)
{
        lg_vec_f32 v;
        memcpy(&v, at, sizeof v);
        lg_vec_store_some_f32((float *)to, lg_mask_first_f32(n), v);
}

LG_INLINE void put_places_f64(int32_t *to, const int32_t *at, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                to[i] = at[i];
}

#define POOL(type, suffix)                                                                                             \
        static void max_##suffix(const lg_pool_args *a, window row, window column, const type *x, type *y,             \
                                 int32_t *index)                                                                       \
        {                                                                                                              \
                int64_t c = a->channels, width = a->at.in[1];                                                          \
                bool first = true;                                                                                     \
                for (int64_t i = row.first; i < row.end; i += row.step)                                                \
                        for (int64_t j = column.first; j < column.end; j += column.step) {                             \
                                const type *p = x + (i * width + j) * c;                                               \
                                int32_t place = (int32_t)(i * width + j);                                              \
                                LG_SIMD                                                                                \
                                for (int64_t k = 0; k < c; k++) {                                                      \
                                        bool greater = first || p[k] > y[k] || (p[k] != p[k] && y[k] == y[k]);         \
                                        y[k] = greater ? p[k] : y[k];                                                  \
                                        index[k] = greater ? place : index[k];                                         \
                                }                                                                                      \
                                first = false;                                                                         \
                        }                                                                                              \
        }                                                                                                              \
                                                                                                                       \
        /* The same of fewer channels than a vector has lanes: what lies behind them goes along and is dropped. */     \
        static void max_few_##suffix(const lg_pool_args *a, window row, window column, const type *x, type *y,         \
                                     int32_t *index)                                                                   \
        {                                                                                                              \
                enum { lanes = LG_LANES_##suffix };                                                                    \
                const lg_mask_##suffix some = lg_mask_first_##suffix(a->channels);                                     \
                type best[lanes], v[lanes];                                                                            \
                int32_t at[lanes];                                                                                     \
                bool first = true;                                                                                     \
                for (int64_t i = row.first; i < row.end; i += row.step)                                                \
                        for (int64_t j = column.first; j < column.end; j += column.step) {                             \
                                const int64_t place = i * a->at.in[1] + j;                                             \
                                lg_vec_store_##suffix(v, lg_vec_load_some_##suffix(x + place * a->channels, some));    \
                                LG_SIMD                                                                                \
                                for (int k = 0; k < lanes; k++) {                                                      \
                                        bool greater =                                                                 \
                                                first || v[k] > best[k] || (v[k] != v[k] && best[k] == best[k]);       \
                                        best[k] = greater ? v[k] : best[k];                                            \
                                        at[k] = greater ? (int32_t)place : at[k];                                      \
                                }                                                                                      \
                                first = false;                                                                         \
                        }                                                                                              \
                if (first)                                                                                             \
                        return;                                                                                        \
                lg_vec_store_some_##suffix(y, some, lg_vec_load_##suffix(best));                                       \
                put_places_##suffix(index, at, a->channels);                                                           \
        }                                                                                                              \
                                                                                                                       \
        static void avg_##suffix(const lg_pool_args *a, window row, window column, const type *x, type *y)             \
        {                                                                                                              \
                int64_t c = a->channels, width = a->at.in[1];                                                          \
                type scale = (type)(1 / size_of(a, &row, &column));                                                    \
                bool any = row.first < row.end && column.first < column.end;                                           \
                for (int64_t k = 0; k < c; k++)                                                                        \
                        y[k] = 0;                                                                                      \
                for (int64_t i = row.first; i < row.end; i += row.step)                                                \
                        for (int64_t j = column.first; j < column.end; j += column.step) {                             \
                                const type *p = x + (i * width + j) * c;                                               \
                                LG_SIMD                                                                                \
                                for (int64_t k = 0; k < c; k++)                                                        \
                                        y[k] += p[k];                                                                  \
                        }                                                                                              \
                for (int64_t k = 0; k < c && any; k++)                                                                 \
                        y[k] *= scale;                                                                                 \
        }                                                                                                              \
                                                                                                                       \
        static void avg_grad_##suffix(const lg_pool_args *a, window row, window column, const type *g, type *dx)       \
        {                                                                                                              \
                int64_t c = a->channels, width = a->at.in[1];                                                          \
                type scale = (type)(1 / size_of(a, &row, &column));                                                    \
                for (int64_t i = row.first; i < row.end; i += row.step)                                                \
                        for (int64_t j = column.first; j < column.end; j += column.step) {                             \
                                type *p = dx + (i * width + j) * c;                                                    \
                                LG_SIMD                                                                                \
                                for (int64_t k = 0; k < c; k++)                                                        \
                                        p[k] += g[k] * scale;                                                          \
                        }                                                                                              \
        }                                                                                                              \
                                                                                                                       \
        /* Output row i of image n, from there or to there. */                                                         \
        static void row_##suffix(const lg_pool_args *a, int64_t n, int64_t i)                                          \
        {                                                                                                              \
                int64_t c = a->channels, pixels = a->at.in[0] * a->at.in[1],                                           \
                        at = (n * a->at.out[0] + i) * a->at.out[1];                                                    \
                bool back = a->kind == LG_POOL_MAX_GRAD || a->kind == LG_POOL_AVG_GRAD;                                \
                const type *from = (const type *)a->from + (back ? 0 : n * pixels * c);                                \
                type *to = (type *)a->to + (back ? n * pixels * c : 0);                                                \
                window row = window_of(a, 0, i);                                                                       \
                for (int64_t j = 0; j < a->at.out[1]; j++) {                                                           \
                        int64_t here = (at + j) * c;                                                                   \
                        window column = window_of(a, 1, j);                                                            \
                        if (a->kind == LG_POOL_MAX)                                                                    \
                                max_##suffix(a, row, column, from, to + here, a->index + here);                        \
                        else if (a->kind == LG_POOL_AVG)                                                               \
                                avg_##suffix(a, row, column, from, to + here);                                         \
                        else if (a->kind == LG_POOL_AVG_GRAD)                                                          \
                                avg_grad_##suffix(a, row, column, from + here, to);                                    \
                        else if (a->kind == LG_POOL_MAX_PICK)                                                          \
                                for (int64_t k = 0; k < c; k++)                                                        \
                                        to[here + k] = from[a->index[here + k] * c + k];                               \
                        else                                                                                           \
                                for (int64_t k = 0; k < c; k++)                                                        \
                                        to[a->index[here + k] * c + k] += from[here + k];                              \
                }                                                                                                      \
        }                                                                                                              \
                                                                                                                       \
        static void row_of_few_##suffix(const lg_pool_args *a, int64_t n, int64_t i)                                   \
        {                                                                                                              \
                const type *from = (const type *)a->from + n * a->at.in[0] * a->at.in[1] * a->channels;                \
                const int64_t at = (n * a->at.out[0] + i) * a->at.out[1] * a->channels;                                \
                const window row = window_of(a, 0, i);                                                                 \
                for (int64_t j = 0; j < a->at.out[1]; j++) {                                                           \
                        const int64_t here = at + j * a->channels;                                                     \
                        max_few_##suffix(a, row, window_of(a, 1, j), from, (type *)a->to + here, a->index + here);     \
                }                                                                                                      \
        }
POOL(float, f32)
POOL(double, f64)

static void one_row(const lg_pool_args *a, int64_t n, int64_t i)
{
        const bool few = a->kind == LG_POOL_MAX && a->channels < (a->dtype == LG_F64 ? LG_LANES_f64 : LG_LANES_f32);
        if (a->dtype == LG_F64)
                (few ? row_of_few_f64 : row_f64)(a, n, i);
        else
                (few ? row_of_few_f32 : row_f32)(a, n, i);
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

static void run_images(const void *user, int64_t first, int64_t end, int thread)
{
        const lg_pool_args *a = user;
        const int64_t bytes = elements_in(a) * (int64_t)lg_bytes_of(a->dtype);
        (void)thread;
        for (int64_t n = first; n < end; n++) {
                memset((char *)a->to + n * bytes, 0, (size_t)bytes);
                for (int64_t i = 0; i < a->at.out[0]; i++)
                        one_row(a, n, i);
        }
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
