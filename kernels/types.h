/* types.h - the values that both floors share: dtypes, device types, limits. */
#ifndef LG_TYPES_H
#define LG_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A tensor has at most this many dimensions. */
#define LG_MAX_DIMS 8

/* Element types. Zero is "not given": functions then take f32, or the type of their input. */
typedef enum lg_dtype {
        LG_DTYPE_NONE = 0,
        LG_F32,  /* IEEE binary32, the default */
        LG_F64,  /* IEEE binary64 */
        LG_F16,  /* IEEE binary16, stored in 16 bits, computed in f32 */
        LG_BF16, /* bfloat16, stored in 16 bits, computed in f32 */
        LG_I64,
        LG_I32,
        LG_U8,
        LG_BOOL, /* one byte, 0 or 1 */
        LG_DTYPE_COUNT
} lg_dtype;

/* Kinds of devices. Zero is "not given": functions then take the context's default device. */
typedef enum lg_device_type {
        LG_DEVICE_NONE = 0,
        LG_DEVICE_CPU,
        LG_DEVICE_CUDA,
        LG_DEVICE_SHADOW, /* for tests: the CPU's kernels over memory that the host cannot touch */
        LG_DEVICE_TYPE_COUNT
} lg_device_type;

/* How a loss of many elements becomes one. */
typedef enum lg_reduction {
        LG_MEAN = 0,
        LG_SUM,
        LG_NONE,      /* it stays as it is */
        LG_BATCH_MEAN /* kl_div only: the sum divided by the size of dimension 0 */
} lg_reduction;

#endif
