/* types.h - dtypes, device types, reductions and limits, which the library and its kernels share.
 *
 * Zero is the value of an option that is not given: functions then use the default that the comment of the option
 * states. Enumerators keep their numbers in all versions of the library.
 */
#ifndef LG_TYPES_H
#define LG_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximum number of dimensions of a tensor. */
#define LG_MAX_DIMS 8

/* The type of the elements of a tensor. */
typedef enum lg_dtype {
        LG_DTYPE_NONE = 0, /* not given: f32, or the dtype of the input */
        LG_F32 = 1,        /* IEEE binary32, the default */
        LG_F64 = 2,        /* IEEE binary64 */
        LG_F16 = 3,        /* IEEE binary16: stored in 16 bits, computed in f32 */
        LG_BF16 = 4,       /* bfloat16: stored in 16 bits, computed in f32 */
        LG_I64 = 5,        /* signed, 64 bits; indices and class labels have this dtype */
        LG_I32 = 6,        /* signed, 32 bits */
        LG_U8 = 7,         /* unsigned, 8 bits */
        LG_BOOL = 8,       /* one byte, 0 or 1 */
} lg_dtype;

/* The type of a device. */
typedef enum lg_device_type {
        LG_DEVICE_NONE = 0,   /* not given: the default device of the context */
        LG_DEVICE_CPU = 1,    /* the processor, with the memory of the host */
        LG_DEVICE_CUDA = 2,   /* an NVIDIA GPU */
        LG_DEVICE_SHADOW = 3, /* for tests: the CPU's kernels on memory that the host cannot access */
} lg_device_type;

/* How a loss reduces its elements to the result. */
typedef enum lg_reduction {
        LG_MEAN = 0,       /* their mean, the default */
        LG_SUM = 1,        /* their sum */
        LG_NONE = 2,       /* no reduction: the result has an element for each one */
        LG_BATCH_MEAN = 3, /* lg_kl_div() only: their sum divided by the size of dimension 0 */
} lg_reduction;

#endif
