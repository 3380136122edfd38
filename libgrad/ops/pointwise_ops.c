/* pointwise_ops.c - the table of the elementwise ops, generated from kernels/pointwise.def. Here the formula of a
 * derivative expands to a bit mask: which inputs and outputs the formula reads, and whether it computes anything. */
#include <string.h>
#include "../../kernels/constants.h"
#include "pointwise.h"
#include "vocabulary.h"

#define COMPUTED 8u
#define V1(op, a) (COMPUTED | (a))
#define V2(op, a, b) (COMPUTED | (a) | (b))
#define VN(op, a, number) (COMPUTED | (a))
#define V3(op, a, b, c) (COMPUTED | (a) | (b) | (c))
#define K(value) COMPUTED
#define P0 COMPUTED
#define P1 COMPUTED
#define G 0u
#define X 1u
#define A 1u
#define B 2u
#define C 1u
#define Y 4u

/* Autocast classes: CLASS(name) is the second item of CLASS_name, or LG__AS_IT_IS if CLASS_name is not defined. */
#define CLASS_square ~, LG__F32 /* like pow */
#define CLASS_exp ~, LG__F32
#define CLASS_erfinv ~, LG__F32
#define CLASS_expm1 ~, LG__F32
#define CLASS_log ~, LG__F32
#define CLASS_log1p ~, LG__F32
#define CLASS_log2 ~, LG__F32
#define CLASS_log10 ~, LG__F32
#define CLASS_rsqrt ~, LG__F32
#define CLASS_reciprocal ~, LG__F32
#define CLASS_rdiv_scalar ~, LG__F32
#define CLASS_softplus ~, LG__F32
#define CLASS_tan ~, LG__F32
#define CLASS_asin ~, LG__F32
#define CLASS_acos ~, LG__F32
#define CLASS_sinh ~, LG__F32
#define CLASS_cosh ~, LG__F32
#define CLASS_pow ~, LG__F32
#define CLASS_pow_scalar ~, LG__F32
#define CLASS_rpow_scalar ~, LG__F32
#define CLASS_atan2 ~, LG__WIDEST
#define CLASS(name) SECOND(CLASS_##name, LG__AS_IT_IS, )
#define SECOND(...) SECOND_OF(__VA_ARGS__)
#define SECOND_OF(first, second, ...) second

/* LG__BY(i) if the mask of the derivative by input i contains the bit, else 0. */
#define IF(mask, bit, i) ((mask) & (bit) ? LG__BY(i) : 0)
/* LG__BY(i) if the derivative by input i is the output's gradient G unchanged, else 0. */
#define IS_G(mask, i) ((mask) == G ? LG__BY(i) : 0)
#define FLOAT LG__REAL
#define ANY LG__ANY
#define NUMBER LG__NUMBER
#define INTEGER LG__INTEGER
#define ROW(name_, infer_, ...)                                                                                        \
        [LG_PW_##name_] = {.name = #name_,                                                                             \
                           .autocast = CLASS(name_),                                                                   \
                           .infer = infer_,                                                                            \
                           .forward = lg__pointwise_forward,                                                           \
                           .pointwise = LG_PW_##name_,                                                                 \
                           .form = lg__pointwise_form,                                                                 \
                           LG__HAS(pointwise),                                                                         \
                           __VA_ARGS__},
#define DERIVED(name, ...)                                                                                             \
        ROW(name, lg__pointwise_infer, .vjp = lg__pointwise_vjp_##name, .fused = lg__pointwise_fused, __VA_ARGS__)
#define UNARY(name, types, params, formula, dx, domain, kinks)                                                         \
        DERIVED(name, .passes = IS_G(dx, 0), LG__OPERANDS({"x", types, .saved_for = IF(dx, X, 0)}),                    \
                LG__RESULTS({"y", .saved_for = IF(dx, Y, 0)}))
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks)                                                \
        DERIVED(name, .flags = LG__PROMOTE, .passes = IS_G(da, 0) | IS_G(db, 1),                                       \
                LG__OPERANDS({"a", types, .saved_for = IF(da, A, 0) | IF(db, A, 1)},                                   \
                             {"b", types, .saved_for = IF(da, B, 0) | IF(db, B, 1)}),                                  \
                LG__RESULTS({"y", .saved_for = IF(da, Y, 0) | IF(db, Y, 1)}))
#define TERNARY(name, types, formula, da, db, domain_a, domain_b)                                                      \
        DERIVED(name, .flags = LG__PROMOTE,                                                                            \
                LG__OPERANDS({"condition", LG__MASK, .saved_for = IF(da, C, 1) | IF(db, C, 2)}, {"a", types},          \
                             {"b", types}),                                                                            \
                LG__RESULTS({"y"}))
#define COMPARE(name, formula)                                                                                         \
        ROW(name, lg__pointwise_infer_compare, .flags = LG__PROMOTE, LG__OPERANDS({"a"}, {"b"}), LG__RESULTS({"y"}))
#define COMPARE_SCALAR(name, formula) ROW(name, lg__pointwise_infer_compare, LG__OPERANDS({"x"}), LG__RESULTS({"y"}))
#define TEST(name, formula) COMPARE_SCALAR(name, formula)
#define PLAIN(name, types, formula)                                                                                    \
        ROW(name, lg__pointwise_infer, .flags = LG__PROMOTE, LG__OPERANDS({"a", types}, {"b", types}),                 \
            LG__RESULTS({"y"}))
#define PLAIN_SCALAR(name, types, formula)                                                                             \
        ROW(name, lg__pointwise_infer, LG__OPERANDS({"x", types}), LG__RESULTS({"y"}))
const lg__op lg__pointwise_ops[LG_PW_COUNT] = {
#include "../../kernels/pointwise.def"
};

bool lg__has_elementwise(const char *name)
{
        for (int id = 0; id < LG_PW_COUNT; id++)
                if (lg__pointwise_ops[id].name && !strcmp(lg__pointwise_ops[id].name, name))
                        return true;
        return false;
}
