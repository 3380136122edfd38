/* cumsum.c - running sums over the middle of three dimensions, forwards or backwards. */
#include "cpu.h"

/* One line of n elements, `step` apart (negative: backwards); floats add up in f64. */
#define LINE(suffix, type, sum_type)                                                                                   \
        static void line_##suffix(int64_t n, int64_t step, const type *x, type *y)                                     \
        {                                                                                                              \
                sum_type sum = 0;                                                                                      \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        sum += (sum_type)x[i * step];                                                                  \
                        y[i * step] = (type)sum;                                                                       \
                }                                                                                                      \
        }
LINE(f32, float, double)
LINE(f64, double, double)
LINE(i64, int64_t, int64_t)

bool LG_CPU(cumsum)(lg_queue *q, const lg_cumsum_args *a)
{
        int64_t count = a->outer * a->n * a->inner, step = a->reverse ? -a->inner : a->inner;
        const void *x = a->x;
        void *y = a->y;
        if (!lg_is_float(a->dtype) && a->dtype != LG_I64)
                return lg_queue_fail(q, LG_BROKEN, "cumsum: no kernel for dtype %d", (int)a->dtype);
        if (count == 0)
                return true;
        if (lg_is_half(a->dtype) && !(x = y = lg_widen(q, a->dtype, count, x)))
                return false;
        LG_PARALLEL_FOR(q, count >= LG_PARALLEL_MIN)
        for (int64_t i = 0; i < a->outer * a->inner; i++) {
                int64_t at = i / a->inner * a->n * a->inner + i % a->inner + (a->reverse ? (a->n - 1) * a->inner : 0);
                if (a->dtype == LG_F64)
                        line_f64(a->n, step, (const double *)x + at, (double *)y + at);
                else if (a->dtype == LG_I64)
                        line_i64(a->n, step, (const int64_t *)x + at, (int64_t *)y + at);
                else
                        line_f32(a->n, step, (const float *)x + at, (float *)y + at);
        }
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->y, y);
        return true;
}
