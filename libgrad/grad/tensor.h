/* tensor.h - making, reading, printing and viewing tensors. */
#ifndef LG_TENSOR_H
#define LG_TENSOR_H

#include "grad/context.h"

LG_BEGIN

/* dtype: f32 (arange and from-memory: told there); device: the context's default one. */
typedef struct lg_create_options {
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
        bool requires_grad LG_DEFAULT;
} lg_create_options;
#define LG_CREATE(...)                                                                                                 \
        LG_INIT(lg_create_options)                                                                                     \
        {                                                                                                              \
                __VA_ARGS__                                                                                            \
        }

/* The positional arguments of a creation and, by name, .dtype .device .requires_grad. */
typedef struct lg_shaped {
        lg_shape shape LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
        bool requires_grad LG_DEFAULT;
} lg_shaped;
typedef struct lg_ranged {
        double b LG_DEFAULT;
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
        bool requires_grad LG_DEFAULT;
} lg_ranged;

/* lg_zeros(c, LG_SHAPE(2, 3), .dtype = LG_F64). As an integer dtype the value is cut to a whole number; NaN or one out
 * of its range is LG_ERR_ARGUMENT. A float dtype rounds it, to infinity if need be; bool: whether it is not zero. */
#define lg_zeros(c, ...) lg_full_((c), 0, LG_INIT(lg_shaped){.shape = __VA_ARGS__})
#define lg_ones(c, ...) lg_full_((c), 1, LG_INIT(lg_shaped){.shape = __VA_ARGS__})
#define lg_full(c, value, ...) lg_full_((c), (double)(value), LG_INIT(lg_shaped){.shape = __VA_ARGS__})
LG_API lg_tensor *lg_full_(lg_ctx *c, double value, lg_shaped o);
/* Uninitialised. */
#define lg_empty(c, ...) lg_empty_((c), LG_INIT(lg_shaped){.shape = __VA_ARGS__})
LG_API lg_tensor *lg_empty_(lg_ctx *c, lg_shaped o);
/* A 0-d tensor, its value as in lg_full: lg_scalar(c, 0.5, .device = dev) */
#define lg_scalar(c, ...) lg_scalar_((c), LG_INIT(lg_ranged){.b = (double)__VA_ARGS__})
LG_API lg_tensor *lg_scalar_(lg_ctx *c, lg_ranged o);
/* start, start + step, ... below stop (above, for a negative step); 1-d; dtype i64 if all three are whole, else f32.
 * The values of an integer dtype are exact: a start or step that is not whole, and values beyond 2^53 (where a double
 * does not hold every whole number) or out of the dtype's range, are LG_ERR_ARGUMENT. */
#define lg_arange(c, start, stop, ...)                                                                                 \
        lg_arange_((c), (double)(start), (double)(stop), LG_INIT(lg_ranged){.b = (double)__VA_ARGS__})
LG_API lg_tensor *lg_arange_(lg_ctx *c, double start, double stop, lg_ranged o);
/* Values a copy of host memory: as many elements as the shape has, of type .dtype, row-major. Bytes of bool other than
 * 0 become 1. */
#define lg_from(c, data, ...) lg_from_((c), (data), LG_INIT(lg_shaped){.shape = __VA_ARGS__})
LG_API lg_tensor *lg_from_(lg_ctx *c, const void *data, lg_shaped o);
/* A CPU tensor over the caller's memory, not copied: release(user) is called when nothing needs it any more (also when
 * this call fails). release may be NULL. The memory is aligned for .dtype; bytes of bool must be 0 or 1. */
#define lg_borrow(c, data, release, user, ...)                                                                         \
        lg_borrow_((c), (data), (release), (user), LG_INIT(lg_shaped){.shape = __VA_ARGS__})
LG_API lg_tensor *lg_borrow_(lg_ctx *c, void *data, void (*release)(void *user), void *user, lg_shaped o);
/* Uniform in [a, b); normal of mean a and standard deviation b; float dtypes. lg_uniform(c, -1, 1, LG_SHAPE(3)).
 * LG_ERR_ARGUMENT: a > b, a bound that the dtype does not hold, b < 0 as a deviation, values that are not finite. */
#define lg_uniform(c, low, high, ...)                                                                                  \
        lg_uniform_((c), (double)(low), (double)(high), LG_INIT(lg_shaped){.shape = __VA_ARGS__})
LG_API lg_tensor *lg_uniform_(lg_ctx *c, double low, double high, lg_shaped o);
#define lg_normal(c, mean, std, ...)                                                                                   \
        lg_normal_((c), (double)(mean), (double)(std), LG_INIT(lg_shaped){.shape = __VA_ARGS__})
LG_API lg_tensor *lg_normal_(lg_ctx *c, double mean, double std, lg_shaped o);
/* A random order of 0 ... n-1, i64. lg_permutation(c, n, .device = dev) */
#define lg_permutation(c, ...) lg_permutation_((c), LG_INIT(lg_ranged){.b = (double)__VA_ARGS__})
LG_API lg_tensor *lg_permutation_(lg_ctx *c, lg_ranged o);

/* What a tensor is. Of NULL or a dead tensor: 0, {0}, NULL. */
LG_API lg_shape lg_shape_of(const lg_tensor *t);
LG_API int lg_ndim_of(const lg_tensor *t);
LG_API int64_t lg_size_of(const lg_tensor *t, int dim); /* dim may be negative; -1 if there is no such */
LG_API int64_t lg_stride_of(const lg_tensor *t, int dim);
LG_API int64_t lg_numel(const lg_tensor *t);
LG_API lg_dtype lg_dtype_of(const lg_tensor *t);
LG_API lg_device lg_device_of(const lg_tensor *t);
LG_API lg_ctx *lg_ctx_of(const lg_tensor *t);
LG_API bool lg_is_contiguous(const lg_tensor *t);

/* The value of a tensor of one element. Waits. NaN on failure. */
LG_API double lg_item(const lg_tensor *t);
LG_API int64_t lg_item_i64(const lg_tensor *t);
/* All elements, row-major, converted to `dtype`, into host memory of `bytes` bytes, which must be their size. The
 * memory is aligned for `dtype`, else LG_ERR_ARGUMENT. Waits. */
LG_API bool lg_read(const lg_tensor *t, void *data, lg_dtype dtype, size_t bytes);
/* All elements from host memory, as lg_read gives them; bytes of bool as in lg_from. A tensor inside the graph is
 * LG_ERR_STATE; a leaf that requires grad needs no_grad. */
LG_API bool lg_write(lg_tensor *t, const void *data, lg_dtype dtype, size_t bytes);
/* Prints values as PyTorch does, with ellipses above 1000 elements, and flushes f. Numbers have a decimal point
 * whatever the locale. Waits. Works while an error is set. False and LG_ERR_IO: f could not be written, a full disk for
 * one. */
LG_API bool lg_print(FILE *f, const lg_tensor *t);

/* Views share the storage of x. A -1 in a shape is computed. lg_reshape copies where no view can do. */
LG_API lg_tensor *lg_reshape(lg_tensor *x, lg_shape shape);
LG_API lg_tensor *lg_transpose(lg_tensor *x, int dim0, int dim1);
LG_API lg_tensor *lg_permute(lg_tensor *x, lg_dims order);
/* Elements start, start + step, ... before stop of one dimension; negative start and stop count from the end, both are
 * clipped, step > 0. LG_MAX as stop: to the end. lg_slice(x, dim, start, stop, .step = 2) */
#define LG_MAX INT64_MAX
typedef struct lg_slice_options {
        int64_t stop LG_DEFAULT;
        int64_t step LG_DEFAULT; /* 1 */
} lg_slice_options;
#define lg_slice(x, dim, start, ...) lg_slice_((x), (dim), (start), LG_INIT(lg_slice_options){.stop = __VA_ARGS__})
LG_API lg_tensor *lg_slice_(lg_tensor *x, int dim, int64_t start, lg_slice_options o);
/* x at one index of a dimension, which goes. */
LG_API lg_tensor *lg_select(lg_tensor *x, int dim, int64_t index);
/* Without dimensions of size 1: all ({0}) or those of the list that have it. */
LG_API lg_tensor *lg_squeeze(lg_tensor *x, lg_dims dims);
LG_API lg_tensor *lg_unsqueeze(lg_tensor *x, int dim);
/* Sizes of 1 repeated without a copy; -1 keeps a size; new dimensions in front. */
LG_API lg_tensor *lg_expand(lg_tensor *x, lg_shape shape);
/* Dimensions first ... last as one. */
LG_API lg_tensor *lg_flatten(lg_tensor *x, int first, int last);

/* x itself if it is contiguous already, else a copy in row-major order. */
LG_API lg_tensor *lg_contiguous(lg_tensor *x);
/* x itself if it has that dtype, else converted. */
LG_API lg_tensor *lg_cast(lg_tensor *x, lg_dtype dtype);
/* x itself if it is there already, else a copy on that device. A copy to the CPU waits for the device; one from the
 * CPU reads x before it returns, unless x is pinned for that device: then nothing waits, and what changes or frees x
 * later waits for the copy. Copies between two GPUs wait for nothing. */
LG_API lg_tensor *lg_to(lg_tensor *x, lg_device device);
/* x's values, contiguous, in host memory from which that device copies on its own (page-locked); x itself if it is that
 * already or the device has no such memory. x is on the CPU and outside the graph. */
LG_API lg_tensor *lg_pin(lg_tensor *x, lg_device device);
/* Always a copy, contiguous, on that device ({0, 0}: where x is). */
LG_API lg_tensor *lg_copy(lg_tensor *x, lg_device device);

/* In place, on tensors outside the graph and, under lg_no_grad, on leaves; else LG_ERR_STATE. y broadcasts to x; one
 * that needs a gradient is LG_ERR_STATE but under lg_no_grad: it would get none. lg_fill_ takes a value as lg_full
 * does. */
LG_API bool lg_fill_(lg_tensor *x, double value);
LG_API bool lg_copy_(lg_tensor *x, lg_tensor *y);
LG_API bool lg_add_(lg_tensor *x, lg_tensor *y);
LG_API bool lg_sub_(lg_tensor *x, lg_tensor *y);
LG_API bool lg_mul_(lg_tensor *x, lg_tensor *y);
LG_API bool lg_div_(lg_tensor *x, lg_tensor *y);

LG_END_C
#endif
