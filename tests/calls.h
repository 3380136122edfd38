/* calls.h - a call of each op on operands that fill blocks of a GPU: those of pointwise.def, and those of calls.def. */
#ifndef LG_TEST_CALLS_H
#define LG_TEST_CALLS_H

#include <grad.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_OPERANDS = 5, MOST_KINKS = 4, MOST_SIZES = 5 };

/* What lg_autocast() makes of inputs. */
typedef enum cast_class { CAST_SAME, CAST_LOW, CAST_F32, CAST_WIDEST } cast_class;

typedef struct operand {
        int64_t shape[MOST_SIZES]; /* {0}: there is no such operand */
        double low, high;
        bool gradient;
} operand;

typedef struct large_call {
        const char *name;
        lg_tensor *(*run)(lg_ctx *c, lg_tensor *const *x);
        cast_class is; /* of calls.def */
        operand input[MOST_OPERANDS];
        int kink_count;
        double kinks[MOST_KINKS]; /* kept away from */
        double grid;              /* values are whole parts of 1 / grid ... */
        bool apart;               /* ... and those of input 1 half a part beside those of input 0 */
} large_call;

/* The device that draws indices; a program that includes this file may choose another one. */
#ifndef INDICES_ON
#define INDICES_ON lg_cpu()
#endif

/* ---- the tables ---- */

#define PARAMS0 (x[0])
#define PARAMS1(v) (x[0], v)
#define PARAMS2(v, w) (x[0], v, w)
#define ELEMENTWISE(is, names)
#define CALL(name, is, call, ...)                                                                                      \
        static lg_tensor *call_##name(lg_ctx *c, lg_tensor *const *x)                                                  \
        {                                                                                                              \
                (void)c;                                                                                               \
                return call;                                                                                           \
        }
#define UNARY(name, types, params, formula, dx, domain, kinks) CALL(name, , lg_##name params, )
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks) CALL(name, , lg_##name(x[0], x[1]), )
#define TERNARY(name, types, formula, da, db, domain_a, domain_b)                                                      \
        CALL(name, , lg_##name(lg_gt(lg_detach(x[0]), lg_detach(x[1])), x[0], x[1]), )
#define COMPARE(name, formula) CALL(name, , lg_##name(x[0], x[1]), )
#define COMPARE_SCALAR(name, formula) CALL(name, , lg_##name(x[0], 0.5), )
#define TEST(name, formula) CALL(name, , lg_##name(lg_reciprocal(x[0])), )
#include "../kernels/pointwise.def"
#include "calls.def"
#undef CALL

/* 4099 elements are neither whole packs nor whole blocks. */
#define FLAT(...) FLAT_FROM(__VA_ARGS__)
#define FLAT_FROM(low, high, gradient)                                                                                 \
        {                                                                                                              \
                {4099}, low, high, gradient                                                                            \
        }
#define DOMAIN(low, high) low, high
#define SMOOTH .kink_count = 0
#define KINKS(...) .kink_count = sizeof((double[]){__VA_ARGS__}) / sizeof(double), .kinks = {__VA_ARGS__}
#define KINK_EQUAL .grid = 10, .apart = true
#define ONE(name_, domain, ...) {.name = #name_, .run = call_##name_, .input = {domain}, __VA_ARGS__},
#define TWO(name_, first, second, ...) {.name = #name_, .run = call_##name_, .input = {first, second}, __VA_ARGS__},
#define UNARY(name, types, params, formula, dx, domain, kinks) ONE(name, FLAT(domain, true), kinks)
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks)                                                \
        TWO(name, FLAT(domain_a, true), FLAT(domain_b, true), kinks)
#define TERNARY(name, types, formula, da, db, domain_a, domain_b)                                                      \
        TWO(name, FLAT(domain_a, true), FLAT(domain_b, true), .grid = 4)
#define COMPARE(name, formula) TWO(name, FLAT(-3, 3, false), FLAT(-3, 3, false), .grid = 4)
#define COMPARE_SCALAR(name, formula) ONE(name, FLAT(-3, 3, false), .grid = 4)
#define TEST(name, formula) ONE(name, FLAT(-3, 3, false), .grid = 4)
static const large_call elementwise_calls[] = {
#include "../kernels/pointwise.def"
};
#define IN(...)                                                                                                        \
        {                                                                                                              \
                {__VA_ARGS__}, -1, 1, true                                                                             \
        }
#define FROM(low, high, ...)                                                                                           \
        {                                                                                                              \
                {__VA_ARGS__}, low, high, true                                                                         \
        }
#define FIXED(low, high, ...)                                                                                          \
        {                                                                                                              \
                {__VA_ARGS__}, low, high, false                                                                        \
        }
#define CALL(name_, is_, call, ...) {.name = #name_, .run = call_##name_, .is = CAST_##is_, .input = {__VA_ARGS__}},
static const large_call large_calls[] = {
#include "calls.def"
};
#undef PARAMS0
#undef PARAMS1
#undef PARAMS2
#undef ELEMENTWISE
#undef FLAT
#undef DOMAIN
#undef SMOOTH
#undef KINKS
#undef KINK_EQUAL
#undef ONE
#undef TWO
#undef IN
#undef FROM
#undef FIXED
#undef CALL
#undef MATRIX
#undef SCORES
#undef IMAGES
#undef BELOW

/* ---- operands ---- */

static inline int operands_of(const large_call *r)
{
        int count = 0;
        while (count < MOST_OPERANDS && r->input[count].shape[0])
                count++;
        return count;
}

/* How many have a gradient: they are the first. */
static inline int gradients_of(const large_call *r)
{
        int count = 0;
        while (count < MOST_OPERANDS && r->input[count].gradient)
                count++;
        return count;
}

static inline double adjusted(const large_call *r, int which, double v)
{
        if (r->grid > 0)
                v = (floor(v * r->grid) + (r->apart && which ? 0.5 : 0)) / r->grid;
        for (int k = 0; k < r->kink_count; k++)
                if (fabs(v - r->kinks[k]) < 0.05)
                        v = r->kinks[k] + (v < r->kinks[k] ? -0.05 : 0.05);
        return v;
}

/* Draws an operand on the CPU, rounded to dtype. */
static inline lg_tensor *draw_operand(lg_ctx *c, const large_call *r, int which, lg_dtype dtype)
{
        const operand *in = &r->input[which];
        lg_shape shape = LG_SHAPE_0D;
        while (shape.ndim < MOST_SIZES && in->shape[shape.ndim]) {
                shape.size[shape.ndim] = in->shape[shape.ndim];
                shape.ndim++;
        }
        lg_tensor *x = lg_uniform(c, in->low, in->high, shape, .dtype = LG_F64, .device = lg_cpu());
        const size_t bytes = (size_t)lg_numel(x) * sizeof(double);
        double *v = malloc(bytes);
        if (v && lg_read(x, v, LG_F64, bytes)) {
                for (int64_t i = 0; i < lg_numel(x); i++)
                        v[i] = adjusted(r, which, v[i]);
                lg_write(x, v, LG_F64, bytes);
        }
        free(v);
        return lg_cast(x, dtype);
}

#endif
