/* interpolate.c - resampling of images along two axes by tables, and weighted elements at given points. */
#include "cpu.h"
#include "simd.h"

#define MOST 4      /* rows or taps that are added in one pass over memory */
#define POINTS 1024 /* points whose weights' gradient is summed in the cache */
#define RUN 16      /* fewest rows of a range with a ring, which each range fills anew */

typedef struct job {
        const lg_resample_args *a;
        int64_t ring; /* rows resampled along w that are kept; 0: h is resampled first */
        int64_t held_bytes, thread_bytes;
        char *scratch;
} job;

#define LG_BOTH "interpolate.inc"
#include "both.inc"

static void resample_range(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        char *scratch = lg_byte_at(j->scratch, thread * j->thread_bytes);
        (j->a->dtype == LG_F64 ? resample_rows_f64 : resample_rows_f32)(j, first, end, scratch);
}

/* Sums along h come first if they make fewer rows, else last, so that rows are resampled along w as few times as
 * possible. */
static bool resample(lg_queue *q, const lg_resample_args *a)
{
        const bool wide = a->dtype == LG_F64, both = a->h.index && a->w.index;
        const int64_t size = wide ? 8 : 4, cost = lg_most(a->w.in, a->w.out) * a->inner;
        int64_t grain = lg_grain(cost);
        job j = {.a = a};
        if (a->outer * a->h.out * a->w.out * a->inner == 0)
                return true;
        if (both && a->h.out > a->h.in) {
                j.ring = (wide ? span_of_f64 : span_of_f32)(&a->h);
                grain = lg_most(grain, RUN);
        }
        j.held_bytes = lg_ceil_div(j.ring * 8, 64) * 64;
        j.thread_bytes = j.held_bytes + lg_ceil_div((j.ring ? j.ring * a->w.out : a->w.in) * a->inner * size, 64) * 64;
        if (both && !(j.scratch = q->workspace(q, (size_t)(j.thread_bytes * q->threads))))
                return false;
        lg_parallel(q, a->outer * a->h.out, grain, resample_range, &j);
        return true;
}

LG_FLOAT_KERNEL(resample, lg_resample_args, a->outer * a->inner, {&wide.x, each * a->h.in * a->w.in, LG_READ, NULL},
                {&wide.y, each * a->h.out * a->w.out, LG_WRITTEN, NULL})

/* ---- sample ---- */

static void run_plane(const lg_sample_args *a, int64_t plane)
{
        if (a->kind == LG_SAMPLE)
                (a->dtype == LG_F64 ? sample_plane_f64 : sample_plane_f32)(a, plane);
        else
                (a->dtype == LG_F64 ? scatter_plane_f64 : scatter_plane_f32)(a, plane);
}
LG_EACH(run_planes, run_plane)

static void run_block(const lg_sample_args *a, int64_t item)
{
        (a->dtype == LG_F64 ? weigh_points_f64 : weigh_points_f32)(a, item);
}
LG_EACH(run_blocks, run_block)

static bool sample(lg_queue *q, const lg_sample_args *a)
{
        const int64_t blocks = lg_ceil_div(a->points, POINTS);
        if (a->kind == LG_SAMPLE_WEIGHT_GRAD)
                lg_parallel(q, a->n * a->taps * blocks, lg_grain(a->channels * POINTS), run_blocks, a);
        else
                lg_parallel(q, a->n * a->channels, lg_grain(a->taps * a->points), run_planes, a);
        return true;
}

LG_FLOAT_KERNEL(sample, lg_sample_args, a->n * a->channels,
                {&wide.x, each * a->size, a->kind == LG_SAMPLE_X_GRAD ? LG_WRITTEN : LG_READ, NULL},
                {&wide.y, each * a->points, a->kind == LG_SAMPLE ? LG_WRITTEN : LG_READ, NULL})
