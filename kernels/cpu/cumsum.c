/* cumsum.c - running sums over the middle of three dimensions, in either direction, of numbers or of numbers given by
 * their logarithms (logcumsumexp). */
#include "cpu.h"
#define LG_T double
#define LG_OF(name) name##_f64
#include "scalar.h"

typedef void line_fn(int64_t n, int64_t step, const void *x, void *y);

/* Defines a function that writes the running sums, from `nothing` on, of one line of n elements with stride `step`
 * (negative: backwards). Floats accumulate in f64. */
#define LINE(name, type, sum_type, nothing, plus)                                                                      \
        static void name(int64_t n, int64_t step, const void *x, void *y)                                              \
        {                                                                                                              \
                sum_type sum = nothing;                                                                                \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        sum = plus(sum, (sum_type)((const type *)x)[i * step]);                                        \
                        ((type *)y)[i * step] = (type)sum;                                                             \
                }                                                                                                      \
        }
LINE(sum_f32, float, double, 0, ADD)
LINE(sum_f64, double, double, 0, ADD)
LINE(sum_i64, int64_t, int64_t, 0, ADD)
LINE(log_sum_f32, float, double, -INFINITY, LOGADDEXP)
LINE(log_sum_f64, double, double, -INFINITY, LOGADDEXP)

typedef struct job {
        const lg_cumsum_args *a;
        line_fn *line;
        const char *x;
        char *y;
} job;

static void sum_lines(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        const lg_cumsum_args *a = j->a;
        const int64_t size = a->dtype == LG_F64 || a->dtype == LG_I64 ? 8 : 4;
        const int64_t step = a->reverse ? -a->inner : a->inner;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                int64_t at = i / a->inner * a->n * a->inner + i % a->inner + (a->reverse ? (a->n - 1) * a->inner : 0);
                j->line(a->n, step, j->x + at * size, j->y + at * size);
        }
}

static bool lines(lg_queue *q, const lg_cumsum_args *a, line_fn *line)
{
        const int64_t count = a->outer * a->n * a->inner;
        job j = {a, line, a->x, a->y};
        if (count == 0)
                return true;
        if (lg_is_half(a->dtype)) {
                float *wide = lg_widen(q, a->dtype, count, a->x);
                if (!wide)
                        return false;
                j.x = j.y = (char *)wide;
        }
        lg_parallel(q, a->outer * a->inner, lg_grain(a->n), sum_lines, &j);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->y, (const float *)(const void *)j.y);
        return true;
}

bool LG_CPU(cumsum)(lg_queue *q, const lg_cumsum_args *a)
{
        if (!lg_is_float(a->dtype) && a->dtype != LG_I64)
                return lg_queue_fail(q, LG_BROKEN, "cumsum: no kernel for dtype %d", (int)a->dtype);
        return lines(q, a, a->dtype == LG_F64 ? sum_f64 : a->dtype == LG_I64 ? sum_i64 : sum_f32);
}

bool LG_CPU(logcumsumexp)(lg_queue *q, const lg_cumsum_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "logcumsumexp: no kernel for dtype %d", (int)a->dtype);
        return lines(q, a, a->dtype == LG_F64 ? log_sum_f64 : log_sum_f32);
}
