/* pointwise.cu - a kernel for every line of pointwise.def, for float, double and int64_t, from which all dtypes are
 * served. */
#include "scalar.h"

/* What a kernel does beside its formula. `condition`: the slot that holds bools, or -1. */
template <typename T, T (*formula)(T, T, T, T, T, T)>
static __global__ void pointwise(lg_pointwise_args a, int64_t n, int condition, lg_dtype out, T p0, T p1)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP) {
                T v[LG_PW_INPUTS];
                for (int k = 0; k < LG_PW_INPUTS; k++)
                        v[k] = a.in[k] ? lg_load<T>(a.in[k], k == condition ? LG_BOOL : a.dtype,
                                                    lg_offset(a.ndim, a.shape, a.in_strides[k], i))
                                       : (T)0;
                lg_store<T>(a.out, out, lg_offset(a.ndim, a.shape, a.out_strides, i),
                            formula(v[0], v[1], v[2], v[3], p0, p1));
        }
}

template <typename T, T (*formula)(T, T, T, T, T, T)>
static bool run(lg_queue *q, const char *name, const lg_pointwise_args *a, int condition, bool compare, T p0, T p1)
{
        int64_t n = lg_count(a->ndim, a->shape);
        return lg_launch(q, name, pointwise<T, formula>, n ? lg_blocks(q, n) : 0, *a, n, condition,
                         compare ? LG_BOOL : a->dtype, p0, p1);
}

/* ---- formulas ---- */

#define FORMULA(name, value)                                                                                           \
        template <typename T> static __device__ T f_##name(T v0, T v1, T v2, T v3, T P0, T P1)                         \
        {                                                                                                              \
                (void)v0, (void)v1, (void)v2, (void)v3, (void)P0, (void)P1;                                            \
                return (T)(value);                                                                                     \
        }
/* Forward, comparisons and tests. */
#define X v0
#define A v0
#define B v1
#define UNARY(name, types, params, formula, ...) FORMULA(name, formula)
#define BINARY(name, types, formula, ...) FORMULA(name, formula)
#define TERNARY(name, types, formula, ...)
#define COMPARE(name, formula) FORMULA(name, formula)
#define COMPARE_SCALAR(name, formula) FORMULA(name, formula)
#define TEST(name, formula) FORMULA(name, formula)
#include "../pointwise.def"
#undef A
#undef B
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef COMPARE_SCALAR
#undef TEST
#define UNARY(...)
#define BINARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
#define C v0
#define A v1
#define B v2
#define TERNARY(name, types, formula, ...) FORMULA(name, formula)
#include "../pointwise.def"
#undef A
#undef B
#undef C
#undef X
#undef UNARY
#undef BINARY
#undef TERNARY
/* Derivatives. */
#define G v0
#define X v1
#define A v1
#define B v2
#define Y v3
#define UNARY(name, types, params, formula, dx, ...) FORMULA(name##_da, dx)
#define BINARY(name, types, formula, da, db, ...) FORMULA(name##_da, da) FORMULA(name##_db, db)
#define TERNARY(...)
#include "../pointwise.def"
#undef A
#undef B
#undef X
#undef Y
#undef UNARY
#undef BINARY
#undef TERNARY
#define UNARY(...)
#define BINARY(...)
#define C v1
#define TERNARY(name, types, formula, da, db, ...) FORMULA(name##_da, da) FORMULA(name##_db, db)
#include "../pointwise.def"
#undef C
#undef G
#undef UNARY
#undef BINARY
#undef TERNARY
#undef COMPARE
#undef COMPARE_SCALAR
#undef TEST

/* ---- kernels ---- */

#define FLOATS(name, condition, compare)                                                                               \
        if (a->dtype == LG_F64)                                                                                        \
                return run<double, f_##name<double>>(q, #name, a, condition, compare, a->p0, a->p1);                   \
        if (lg_is_float(a->dtype))                                                                                     \
                return run<float, f_##name<float>>(q, #name, a, condition, compare, (float)a->p0, (float)a->p1);
#define KERNEL_FLOAT(name, condition, compare)                                                                         \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, condition, compare)                                                                       \
                return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", #name, (int)a->dtype);                \
        }
#define KERNEL_ANY(name, condition, compare)                                                                           \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, condition, compare)                                                                       \
                return run<int64_t, f_##name<int64_t>>(q, #name, a, condition, compare, lg_to_i64(a->p0),              \
                                                       lg_to_i64(a->p1));                                              \
        }
#define UNARY(name, types, ...) KERNEL_##types(name, -1, false) KERNEL_FLOAT(name##_da, -1, false)
#define BINARY(name, types, ...)                                                                                       \
        KERNEL_##types(name, -1, false) KERNEL_FLOAT(name##_da, -1, false) KERNEL_FLOAT(name##_db, -1, false)
#define TERNARY(name, types, ...)                                                                                      \
        KERNEL_##types(name, 0, false) KERNEL_FLOAT(name##_da, 1, false) KERNEL_FLOAT(name##_db, 1, false)
#define COMPARE(name, formula) KERNEL_ANY(name, -1, true)
#define TEST(name, formula) KERNEL_ANY(name, -1, true)
/* Integers are compared with a number in f64. */
#define COMPARE_SCALAR(name, formula)                                                                                  \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, -1, true)                                                                                 \
                return run<double, f_##name<double>>(q, #name, a, -1, true, a->p0, a->p1);                             \
        }
#include "../pointwise.def"
