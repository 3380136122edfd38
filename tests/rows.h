/* rows.h - the table of all rows of ops.def with their cases, and values to run them on: for tests of every op.
 *
 * An op that is added to ops.def or pointwise.def is in the table without another line. The cases of structural ops are
 * in gradients.def; those of elementwise ops are made here.
 */
#ifndef LG_TEST_ROWS_H
#define LG_TEST_ROWS_H

#include "derivatives.h"

#define MAX_INPUTS 3

/* What a case wants: the shapes of its inputs; count -1: there is no such case. */
typedef struct shapes {
        int count;
        lg_shape shape[MAX_INPUTS];
} shapes;

/* Runs case k on x; if x is NULL, only says what it wants. */
typedef lg_tensor *run_fn(lg_ctx *c, lg_tensor *const *x, int k, shapes *s);

typedef struct row {
        const char *name;
        run_fn *run; /* of an elementwise op; NULL: its cases are in gradients.def */
        double low[MAX_INPUTS], high[MAX_INPUTS];
        int kink_count;
        double kinks[4];
        bool equal_kink;  /* inputs 0 and 1 must not meet */
        const lg__op *op; /* NULL: it is a composite */
} row;

/* P(i) in a case: input i as a probability, in whose dtype, but with that of `probabilities` for its digits. */
static lg_dtype probabilities = LG_F64;

static lg_tensor *probability(lg_tensor *x)
{
        return lg_cast(lg_cast(lg_sigmoid(x), probabilities), lg_dtype_of(x));
}

static void want(shapes *s, int count, const lg_shape *shape)
{
        s->count = count;
        memcpy(s->shape, shape, (size_t)count * sizeof *shape);
}

/* ---- structural ops ---- */

#define S(...) LG_SHAPE(__VA_ARGS__)
#define X(i) x[i]
#define P(i) probability(x[i])
#define COUNT(...) ((int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define I(...) lg_from(c, ((const int64_t[]){__VA_ARGS__}), LG_SHAPE(COUNT(__VA_ARGS__)), .dtype = LG_I64)
#define V(...)                                                                                                         \
        lg_from(c, ((const double[]){__VA_ARGS__}), LG_SHAPE(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),        \
                .dtype = LG_F64)
#define CONDITION(n)                                                                                                   \
        lg_from(c, ((const bool[]){1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0}), LG_SHAPE(n, 12 / n), .dtype = LG_BOOL)
#define NO_CASES
#define CASE(expression, ...)                                                                                          \
        if (k == n++) {                                                                                                \
                const lg_shape wanted[] = {__VA_ARGS__};                                                               \
                want(s, sizeof wanted / sizeof *wanted, wanted);                                                       \
                return x ? (expression) : NULL;                                                                        \
        }
#define RUN(name, ...)                                                                                                 \
        static lg_tensor *run_##name(lg_ctx *c, lg_tensor *const *x, int k, shapes *s)                                 \
        {                                                                                                              \
                int n = 0;                                                                                             \
                (void)c, (void)x, (void)n, (void)k;                                                                    \
                __VA_ARGS__;                                                                                           \
                s->count = -1;                                                                                         \
                return NULL;                                                                                           \
        }
#define CASES RUN
#include "gradients.def"
#undef CASES

static const struct block {
        const char *name;
        run_fn *run;
} blocks[] = {
#define CASES(name, ...) {#name, run_##name},
#include "gradients.def"
#undef CASES
};
#define BLOCKS ((int)(sizeof blocks / sizeof *blocks))
#define CASES RUN

/* ---- elementwise ops: 2-d, 0-d and empty; broadcast both ways ---- */

#define UNARY_CASES(call) CASE(call, S(3, 4)) CASE(call, LG_SHAPE_0D) CASE(call, S(0, 3)) CASE(call, S(2, 1, 3))
#define BINARY_CASES(call)                                                                                             \
        CASE(call, S(3, 4), S(3, 4))                                                                                   \
        CASE(call, S(3, 1, 2), S(4, 1))                                                                                \
        CASE(call, S(3), LG_SHAPE_0D)                                                                                  \
        CASE(call, LG_SHAPE_0D, S(2, 3)) CASE(call, S(0, 3), S(3)) CASE(call, S(1, 3), S(4, 1))
#define TERNARY_CASES(name)                                                                                            \
        CASE(lg_##name(CONDITION(3), X(0), X(1)), S(3, 4), S(3, 4))                                                    \
        CASE(lg_##name(CONDITION(3), X(0), X(1)), S(3, 1), S(4))                                                       \
        CASE(lg_##name(CONDITION(4), X(0), X(1)), LG_SHAPE_0D, S(2, 1, 3))
#define PARAMS0 (X(0))
#define PARAMS1(v) (X(0), v)
#define PARAMS2(v, w) (X(0), v, w)
#define UNARY(name, types, params, formula, dx, domain, kinks) RUN(name, UNARY_CASES(lg_##name params))
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks) RUN(name, BINARY_CASES(lg_##name(X(0), X(1))))
#define TERNARY(name, types, formula, da, db, domain_a, domain_b) RUN(name, TERNARY_CASES(name))
#define COMPARE(name, formula)
#define COMPARE_SCALAR(name, formula)
#define TEST(name, formula)
#include "../kernels/pointwise.def"
#undef UNARY
#undef BINARY
#undef TERNARY

/* ---- the table ---- */

#define DOMAIN(lo, hi) lo, hi
#define SMOOTH .kink_count = 0
#define KINKS(...) .kink_count = sizeof((double[]){__VA_ARGS__}) / sizeof(double), .kinks = {__VA_ARGS__}
#define KINK_EQUAL .equal_kink = true
#define RANGES(a_lo, a_hi, b_lo, b_hi) .low = {a_lo, b_lo}, .high = {a_hi, b_hi}
#define RANGES2(...) RANGES(__VA_ARGS__)
#define ELEMENTWISE(name) &lg__pointwise_ops[LG_PW_##name]
#define ANYWHERE .low = {-2, -2, -2}, .high = {2, 2, 2}
#define OP(name_) {.name = #name_, ANYWHERE, .op = LG__OP(name_)},
#define COMPOSITE(name_) {.name = #name_, ANYWHERE},
#define UNARY(name_, types, params, formula, dx, domain, kinks)                                                        \
        {.name = #name_, .run = run_##name_, RANGES2(domain, 0, 0), kinks, .op = ELEMENTWISE(name_)},
#define BINARY(name_, types, formula, da, db, domain_a, domain_b, kinks)                                               \
        {.name = #name_, .run = run_##name_, RANGES2(domain_a, domain_b), kinks, .op = ELEMENTWISE(name_)},
#define TERNARY(name_, types, formula, da, db, domain_a, domain_b)                                                     \
        {.name = #name_, .run = run_##name_, RANGES2(domain_a, domain_b), .op = ELEMENTWISE(name_)},
static const row rows[] = {
#include "../libgrad/ops/ops.def"
};
#define ROWS ((int)(sizeof rows / sizeof *rows))

/* The cases of a row of ops.def; NULL: gradients.def does not have it. */
static run_fn *cases_of(const char *name)
{
        for (int i = 0; i < BLOCKS; i++)
                if (!strcmp(blocks[i].name, name))
                        return blocks[i].run;
        return NULL;
}

/* Runs case k of a row on x; if x is NULL, only says what it wants. */
static lg_tensor *run_case(const row *r, lg_ctx *c, lg_tensor *const *x, int k, shapes *s)
{
        run_fn *run = r->run ? r->run : cases_of(r->name);
        s->count = -1;
        return run ? run(c, x, k, s) : NULL;
}

/* ---- values ---- */

/* Well spread and never equal: a sequence of the golden ratio; kept away from kinks. */
static double value(const row *r, int input, int64_t i)
{
        double t = fmod((double)(i + 1) * 0.6180339887498949 + 0.29 * input, 1);
        double v = r->low[input] + (r->high[input] - r->low[input]) * t;
        if (r->equal_kink)
                return floor(v * 10) / 10 + 0.05 * input;
        for (int k = 0; k < r->kink_count; k++)
                if (fabs(v - r->kinks[k]) < 0.05)
                        v = r->kinks[k] + (v < r->kinks[k] ? -0.05 : 0.05);
        return v;
}

#endif
