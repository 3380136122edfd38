/* types.h - the values that both floors share: dtypes, device types, limits. Enumerators keep their numbers.
 */
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
        LG_F32 = 1,  /* IEEE binary32, the default */
        LG_F64 = 2,  /* IEEE binary64 */
        LG_F16 = 3,  /* IEEE binary16, stored in 16 bits, computed in f32 */
        LG_BF16 = 4, /* bfloat16, stored in 16 bits, computed in f32 */
        LG_I64 = 5,
        LG_I32 = 6,
        LG_U8 = 7,
        LG_BOOL = 8, /* one byte, 0 or 1 */
} lg_dtype;

/* Kinds of devices. Zero is "not given": functions then take the context's default device. */
typedef enum lg_device_type {
        LG_DEVICE_NONE = 0,
        LG_DEVICE_CPU = 1,
        LG_DEVICE_CUDA = 2,
        LG_DEVICE_SHADOW = 3, /* for tests: the CPU's kernels over memory that the host cannot touch */
} lg_device_type;

/* How a loss of many elements becomes one. */
typedef enum lg_reduction {
        LG_MEAN = 0,
        LG_SUM = 1,
        LG_NONE = 2,       /* it stays as it is */
        LG_BATCH_MEAN = 3, /* kl_div only: the sum divided by the size of dimension 0 */
} lg_reduction;

#endif
