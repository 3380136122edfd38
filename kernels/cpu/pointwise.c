/* pointwise.c - a kernel for every line of pointwise.def, with loops in f32, f64 and i64 that serve all dtypes.
 *
 * 16-bit floats are computed in f32 and small integers in i64, converted chunk by chunk (pointwise_run.c). */
#include "pointwise.h"
#include "scalar.h"

#define UNUSED __attribute__((unused))

static inline int64_t i64_param(double v)
{
        int64_t r;
        lg_store[LG_COMPUTE_F64][LG_I64](1, &r, &v);
        return r;
}
#define param_f32 (float)
#define param_f64
#define param_i64 i64_param

/* Define loops of ops with the types FLOAT, for which i64 has none. */
#define LOOP_OF_f32 LOOP
#define LOOP_OF_f64 LOOP
#define LOOP_OF_i64(...)
/* Define loops of ops with the types INTEGER, for which i64 alone has them. */
#define LOOP_OF_INTEGER_f32(...)
#define LOOP_OF_INTEGER_f64(...)
#define LOOP_OF_INTEGER_i64 LOOP

#define LG_AND_INTEGERS
#define LG_BOTH "pointwise_loops.inc"
#include "both.inc"

#define KERNEL_OF(name, i64_loop, ...) KERNEL_WITH(name, name##_f32, name##_f64, i64_loop, __VA_ARGS__)
#define KERNEL_WITH(name, f32_loop, f64_loop, i64_loop, condition, compare, scalar_compare)                            \
        bool LG_CPU(name)(lg_queue * q, const lg_pointwise_args *a);                                                   \
        bool LG_CPU(name)(lg_queue * q, const lg_pointwise_args *a)                                                    \
        {                                                                                                              \
                static const lg_loops loops = {                                                                        \
                        #name, {f32_loop, f64_loop, i64_loop}, condition, compare, scalar_compare};                    \
                return lg_pointwise_run(q, a, &loops);                                                                 \
        }
#define I64_ANY(name) name##_i64
#define I64_NUMBER(name) name##_i64
#define I64_FLOAT(name) NULL

#define UNARY(name, types, ...)                                                                                        \
        KERNEL_OF(name, I64_##types(name), -1, false, false)                                                           \
        KERNEL_OF(name##_da, NULL, -1, false, false)
#define BINARY(name, types, ...)                                                                                       \
        KERNEL_OF(name, I64_##types(name), -1, false, false)                                                           \
        KERNEL_OF(name##_da, NULL, -1, false, false)                                                                   \
        KERNEL_OF(name##_db, NULL, -1, false, false)
#define TERNARY(name, types, ...)                                                                                      \
        KERNEL_OF(name, I64_##types(name), 0, false, false)                                                            \
        KERNEL_OF(name##_da, NULL, 1, false, false)                                                                    \
        KERNEL_OF(name##_db, NULL, 1, false, false)
#define COMPARE(name, ...) KERNEL_OF(name, name##_i64, -1, true, false)
#define COMPARE_SCALAR(name, ...) KERNEL_OF(name, NULL, -1, true, true)
#define TEST(name, ...) KERNEL_OF(name, name##_i64, -1, true, false)
#define PLAIN_FLOAT(name) KERNEL_OF(name, NULL, -1, false, false)
#define PLAIN_INTEGER(name) KERNEL_WITH(name, NULL, NULL, name##_i64, -1, false, false)
#define PLAIN(name, types, ...) PLAIN_##types(name)
#define PLAIN_SCALAR PLAIN
#include "../pointwise.def"
