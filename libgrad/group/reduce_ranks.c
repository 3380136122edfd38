/* reduce_ranks.c - sums, means and maxima of what the processes of a group have, in the order of their ranks. */
#include "group/exchange.h"
#include "../../kernels/half.h"

#define BLOCK 1024 /* elements whose sums stay in the first cache */

#define SAME(x) (x)
#define ADD(a, x) ((a) + (x))
#define WRAP(a, x) (int64_t)((uint64_t)(a) + (uint64_t)(x))
#define ANY(a, x) ((a) | (x))
#define GREATEST(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))

/* acc = from[0], then acc = op(acc, from[i]) for the others. */
#define PASS(sum, op, get)                                                                                             \
        for (int r = 0; r < n; r++) {                                                                                  \
                const element *x = (const element *)from[r] + at;                                                      \
                for (int64_t i = 0; i < some; i++)                                                                     \
                        acc[i] = r == 0 ? (sum)get(x[i]) : op(acc[i], (sum)get(x[i]));                                 \
        }

/* acc = the sum of what is multiplied by its weight; nothing of what has the weight 0, which may be NaN. */
#define PASS_WEIGHTED(sum, add, get)                                                                                   \
        for (int r = 0; r < n; r++) {                                                                                  \
                const element *x = (const element *)from[r] + at;                                                      \
                for (int64_t i = 0; i < some; i++) {                                                                   \
                        const sum own = weights[r] == 0 ? 0 : (sum)((sum)get(x[i]) * (sum)weights[r]);                 \
                        acc[i] = r == 0 ? own : (sum)add(acc[i], own);                                                 \
                }                                                                                                      \
        }

static double sum_of(const double *weights, int n)
{
        double sum = 0;
        for (int r = 0; r < n; r++)
                sum += weights ? weights[r] : 1;
        return sum;
}

/* One dtype: `sum` is the type of sums, `put` makes an element of one. */
#define REDUCE(name, type, sum, add, get, put)                                                                         \
        static void name(lg__rank_reduction reduction, int n, const void *const *from, const double *weights,          \
                         int64_t count, void *to)                                                                      \
        {                                                                                                              \
                typedef type element;                                                                                  \
                sum acc[BLOCK];                                                                                        \
                const sum all = (sum)sum_of(weights, n);                                                               \
                for (int64_t at = 0; at < count; at += BLOCK) {                                                        \
                        const int64_t some = count - at < BLOCK ? count - at : BLOCK;                                  \
                        if (reduction == LG__RANKS_MAX)                                                                \
                                PASS(sum, GREATEST, get)                                                               \
                        else if (reduction == LG__RANKS_MEAN && weights)                                               \
                                PASS_WEIGHTED(sum, add, get)                                                           \
                        else                                                                                           \
                                PASS(sum, add, get)                                                                    \
                        if (reduction == LG__RANKS_MEAN)                                                               \
                                for (int64_t i = 0; i < some; i++)                                                     \
                                        acc[i] /= all;                                                                 \
                        for (int64_t i = 0; i < some; i++)                                                             \
                                ((element *)to)[at + i] = put(acc[i]);                                                 \
                }                                                                                                      \
        }
REDUCE(reduce_f32, float, float, ADD, SAME, (float))
REDUCE(reduce_f64, double, double, ADD, SAME, (double))
REDUCE(reduce_f16, uint16_t, float, ADD, lg_f32_of_f16, lg_f16_of_f32)
REDUCE(reduce_bf16, uint16_t, float, ADD, lg_f32_of_bf16, lg_bf16_of_f32)
REDUCE(reduce_i64, int64_t, int64_t, WRAP, SAME, (int64_t))
REDUCE(reduce_i32, int32_t, int64_t, WRAP, SAME, (int32_t)(uint32_t))
REDUCE(reduce_u8, uint8_t, int64_t, WRAP, SAME, (uint8_t))
REDUCE(reduce_bool, uint8_t, int64_t, ANY, SAME, (uint8_t))

void lg__reduce_ranks(lg_dtype dtype, lg__rank_reduction reduction, int n, const void *const *from,
                      const double *weights, int64_t count, void *to)
{
        typedef void fn(lg__rank_reduction, int, const void *const *, const double *, int64_t, void *);
        static fn *const reduce[LG_DTYPE_COUNT] = {
                [LG_F32] = reduce_f32, [LG_F64] = reduce_f64, [LG_F16] = reduce_f16, [LG_BF16] = reduce_bf16,
                [LG_I64] = reduce_i64, [LG_I32] = reduce_i32, [LG_U8] = reduce_u8,   [LG_BOOL] = reduce_bool,
        };
        reduce[dtype](reduction, n, from, weights, count, to);
}
