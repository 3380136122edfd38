/* searchsorted.c - places of values in sorted lines, by bisection. */
#include <math.h>
#include "cpu.h"

typedef int64_t search_fn(int64_t n, const void *sorted, const void *value, bool right);

#define SAME(x) (x)
#define NEVER(x) false
/* Whether a is less than b, where NaN is the greatest. */
#define LESS(a, b, is_nan) ((a) < (b) || (is_nan(b) && !is_nan(a)))
/* Defines a function that returns how many of n sorted elements come before the value. */
#define SEARCH(suffix, type, widen, is_nan)                                                                            \
        static int64_t search_##suffix(int64_t n, const void *sorted, const void *value, bool right)                   \
        {                                                                                                              \
                const type v = *(const type *)value;                                                                   \
                int64_t first = 0;                                                                                     \
                while (n > 0) {                                                                                        \
                        const int64_t half = n / 2;                                                                    \
                        const type middle = ((const type *)sorted)[first + half];                                      \
                        const bool after = right ? LESS(widen(v), widen(middle), is_nan)                               \
                                                 : !LESS(widen(middle), widen(v), is_nan);                             \
                        first += after ? 0 : half + 1;                                                                 \
                        n = after ? half : n - half - 1;                                                               \
                }                                                                                                      \
                return first;                                                                                          \
        }
SEARCH(f32, float, SAME, isnan)
SEARCH(f64, double, SAME, isnan)
SEARCH(f16, uint16_t, lg_f32_of_f16, isnan)
SEARCH(bf16, uint16_t, lg_f32_of_bf16, isnan)
SEARCH(i64, int64_t, SAME, NEVER)

static void search_one(const lg_searchsorted_args *a, int64_t i)
{
        static search_fn *const searches[LG_DTYPE_COUNT] = {[LG_F32] = search_f32,
                                                            [LG_F64] = search_f64,
                                                            [LG_F16] = search_f16,
                                                            [LG_BF16] = search_bf16,
                                                            [LG_I64] = search_i64};
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        const char *line = a->n ? (const char *)a->sorted + i / a->count * a->n * size : NULL;
        a->places[i] = searches[a->dtype](a->n, line, (const char *)a->values + i * size, a->right);
}
LG_EACH(search_some, search_one)

bool LG_CPU(searchsorted)(lg_queue *q, const lg_searchsorted_args *a)
{
        lg_parallel(q, a->lines * a->count, lg_grain(32), search_some, a);
        return true;
}
