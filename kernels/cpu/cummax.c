/* cummax.c - running maxima and minima over the middle of three dimensions, with the place of each. */
#include <math.h>
#include "cpu.h"

typedef void line_fn(int64_t n, int64_t step, bool min, const void *x, void *values, int64_t *indices);

#define SAME(x) (x)
#define NEVER(x) false
/* Defines a function that writes the running extremes of one line of n elements with stride `step`. */
#define LINE(suffix, type, widen, is_nan)                                                                              \
        static void line_##suffix(int64_t n, int64_t step, bool min, const void *x, void *values, int64_t *indices)    \
        {                                                                                                              \
                int64_t best = 0;                                                                                      \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        const type b = ((const type *)x)[best * step], v = ((const type *)x)[i * step];                \
                        if (is_nan(widen(v)) ||                                                                        \
                            (!is_nan(widen(b)) && (min ? widen(v) <= widen(b) : widen(v) >= widen(b))))                \
                                best = i;                                                                              \
                        indices[i * step] = best;                                                                      \
                        ((type *)values)[i * step] = ((const type *)x)[best * step];                                   \
                }                                                                                                      \
        }
LINE(f32, float, SAME, isnan)
LINE(f64, double, SAME, isnan)
LINE(f16, uint16_t, lg_f32_of_f16, isnan)
LINE(bf16, uint16_t, lg_f32_of_bf16, isnan)
LINE(i64, int64_t, SAME, NEVER)
LINE(i32, int32_t, SAME, NEVER)
LINE(u8, uint8_t, SAME, NEVER)

static void find_line(const lg_cummax_args *a, int64_t i)
{
        static line_fn *const lines[LG_DTYPE_COUNT] = {
                [LG_F32] = line_f32, [LG_F64] = line_f64, [LG_F16] = line_f16, [LG_BF16] = line_bf16,
                [LG_I64] = line_i64, [LG_I32] = line_i32, [LG_U8] = line_u8,   [LG_BOOL] = line_u8};
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), at = i / a->inner * a->n * a->inner + i % a->inner;
        lines[a->dtype](a->n, a->inner, a->min, (const char *)a->x + at * size, (char *)a->values + at * size,
                        a->indices + at);
}
LG_EACH(find_lines, find_line)

bool LG_CPU(cummax)(lg_queue *q, const lg_cummax_args *a)
{
        lg_parallel(q, a->outer * a->inner, lg_grain(a->n), find_lines, a);
        return true;
}
