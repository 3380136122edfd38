/* tensor.h - making, reading, printing and viewing tensors. */
#ifndef LG_TENSOR_H
#define LG_TENSOR_H

#include "grad/context.h"

LG_BEGIN

/* dtype: f32, unless the function says otherwise; device: the context's default one. */
typedef struct lg_create_options {
        LG_OPTIONS_HEAD
        lg_dtype dtype LG_DEFAULT;
        lg_device device LG_DEFAULT;
        bool requires_grad LG_DEFAULT;
} lg_create_options;

/* lg_zeros(c, LG_SHAPE(2, 3), .dtype = LG_F64). As an integer dtype the value is cut to a whole number; NaN or one out
 * of its range is LG_ERR_ARGUMENT. A float dtype rounds it, to infinity if need be; bool: whether it is not zero. */
#define lg_zeros(...) LG_CALL2(lg_zeros_with, lg_create_options, lg_zeros_takes_c_shape, __VA_ARGS__)
#define lg_ones(...) LG_CALL2(lg_ones_with, lg_create_options, lg_ones_takes_c_shape, __VA_ARGS__)
#define lg_full(...) LG_CALL3(lg_full_with, lg_create_options, lg_full_takes_c_value_shape, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_zeros_with(lg_ctx *c, lg_shape shape, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_ones_with(lg_ctx *c, lg_shape shape, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_full_with(lg_ctx *c, double value, lg_shape shape, const lg_create_options *options);
/* Uninitialised. */
#define lg_empty(...) LG_CALL2(lg_empty_with, lg_create_options, lg_empty_takes_c_shape, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_empty_with(lg_ctx *c, lg_shape shape, const lg_create_options *options);
/* The same of x's shape; dtype and device are x's, too, unless they are given. lg_full_like(x, 0.5, .dtype = LG_F32) */
#define lg_zeros_like(...) LG_CALL1(lg_zeros_like_with, lg_create_options, lg_zeros_like_takes_x, __VA_ARGS__)
#define lg_ones_like(...) LG_CALL1(lg_ones_like_with, lg_create_options, lg_ones_like_takes_x, __VA_ARGS__)
#define lg_full_like(...) LG_CALL2(lg_full_like_with, lg_create_options, lg_full_like_takes_x_value, __VA_ARGS__)
#define lg_empty_like(...) LG_CALL1(lg_empty_like_with, lg_create_options, lg_empty_like_takes_x, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_zeros_like_with(lg_tensor *x, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_ones_like_with(lg_tensor *x, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_full_like_with(lg_tensor *x, double value, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_empty_like_with(lg_tensor *x, const lg_create_options *options);
/* (rows, columns): 1 on the main diagonal, else 0. lg_eye(c, 3, 3, .dtype = LG_F64) */
#define lg_eye(...) LG_CALL3(lg_eye_with, lg_create_options, lg_eye_takes_c_rows_columns, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_eye_with(lg_ctx *c, int64_t rows, int64_t columns, const lg_create_options *options);
/* A 0-d tensor, its value as in lg_full: lg_scalar(c, 0.5, .device = dev) */
#define lg_scalar(...) LG_CALL2(lg_scalar_with, lg_create_options, lg_scalar_takes_c_value, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_scalar_with(lg_ctx *c, double value, const lg_create_options *options);
/* start, start + step, ... below stop (above, for a negative step); 1-d; dtype i64 if all three are whole, else f32.
 * The values of an integer dtype are exact: a start or step that is not whole, and values beyond 2^53 (where a double
 * does not hold every whole number) or out of the dtype's range, are LG_ERR_ARGUMENT. */
#define lg_arange(...) LG_CALL4(lg_arange_with, lg_create_options, lg_arange_takes_c_start_stop_step, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_arange_with(lg_ctx *c, double start, double stop, double step,
                                        const lg_create_options *options);
/* count values from start to stop, both included, evenly spaced; 1-d; a float dtype. The first is start and the last
 * stop, rounded to the dtype; count 1 gives start. LG_ERR_ARGUMENT: count < 0, an end that is not finite.
 * lg_linspace(c, 0, 1, 5) */
#define lg_linspace(...)                                                                                               \
        LG_CALL4(lg_linspace_with, lg_create_options, lg_linspace_takes_c_start_stop_count, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_linspace_with(lg_ctx *c, double start, double stop, int64_t count,
                                          const lg_create_options *options);
/* A copy of host memory: as many elements as the shape has, row-major. Their type is that of the pointer (float,
 * double, int32_t, int64_t, unsigned char, bool), and the tensor has it too, unless .dtype asks for a conversion.
 * Behind a void * are elements of .dtype, which must be given; so are f16 and bf16. Bytes of bool other than 0
 * become 1. */
#define lg_from(...)                                                                                                   \
        lg_from_with(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, lg_from_takes_c_data_shape),                           \
                     LG_DTYPE_OF(LG_ARG2(__VA_ARGS__, lg_from_takes_c_data_shape)),                                    \
                     LG_ARG3(__VA_ARGS__, lg_from_takes_c_data_shape, lg_from_takes_c_data_shape),                     \
                     LG_OPTIONS(lg_create_options, LG_TAIL3(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_from_with(lg_ctx *c, const void *data, lg_dtype memory, lg_shape shape,
                                      const lg_create_options *options);
/* A CPU tensor over the caller's memory, not copied: release(user) is called when nothing needs it any more (also when
 * this call fails). release may be NULL. The dtype is that of the pointer or, of a void *, .dtype, for which the memory
 * is aligned; bytes of bool must be 0 or 1. */
#define lg_borrow(c, data, release, ...)                                                                               \
        lg_borrow_with((c), (data), LG_DTYPE_OF(data), (release), LG_ARG1(__VA_ARGS__),                                \
                       LG_ARG2(__VA_ARGS__, lg_borrow_takes_c_data_release_user_shape),                                \
                       LG_OPTIONS(lg_create_options, LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_borrow_with(lg_ctx *c, void *data, lg_dtype memory, void (*release)(void *user), void *user,
                                        lg_shape shape, const lg_create_options *options);
/* Uniform in [low, high); normal with that mean and standard deviation; float dtypes. lg_uniform(c, -1, 1,
 * LG_SHAPE(3)). LG_ERR_ARGUMENT: low > high, a bound that the dtype does not hold, std < 0, values that are not finite.
 */
#define lg_uniform(...) LG_CALL4(lg_uniform_with, lg_create_options, lg_uniform_takes_c_low_high_shape, __VA_ARGS__)
#define lg_normal(...) LG_CALL4(lg_normal_with, lg_create_options, lg_normal_takes_c_mean_std_shape, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_uniform_with(lg_ctx *c, double low, double high, lg_shape shape,
                                         const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_normal_with(lg_ctx *c, double mean, double std, lg_shape shape,
                                        const lg_create_options *options);
/* The same of x's shape; dtype and device are x's, too, unless they are given. */
#define lg_uniform_like(...)                                                                                           \
        LG_CALL3(lg_uniform_like_with, lg_create_options, lg_uniform_like_takes_x_low_high, __VA_ARGS__)
#define lg_normal_like(...)                                                                                            \
        LG_CALL3(lg_normal_like_with, lg_create_options, lg_normal_like_takes_x_mean_std, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_uniform_like_with(lg_tensor *x, double low, double high, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_normal_like_with(lg_tensor *x, double mean, double std, const lg_create_options *options);
/* Whole numbers in [low, high), each as likely; i64, or any dtype whose range has them (a float dtype rounds them).
 * The same for a seed on every device. LG_ERR_ARGUMENT: low >= high, high - low > 2^53, a dtype that is too small.
 * lg_randint(c, 0, 10, LG_SHAPE(3)) */
#define lg_randint(...) LG_CALL4(lg_randint_with, lg_create_options, lg_randint_takes_c_low_high_shape, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_randint_with(lg_ctx *c, int64_t low, int64_t high, lg_shape shape,
                                         const lg_create_options *options);
/* 1 with probability p, else 0, each for itself; of p's shape, float dtype and device, without a gradient. The same
 * for a seed in every dtype and on every device. p <= 0 gives 0, p >= 1 gives 1, NaN gives 0. */
LG_API LG_NEW lg_tensor *lg_bernoulli(lg_tensor *p);
typedef struct lg_multinomial_options {
        LG_OPTIONS_HEAD
        bool replacement LG_DEFAULT; /* an index may come again */
} lg_multinomial_options;
/* Indices drawn in proportion to the weights: of (C) weights i64 (count), of each row of (N, C) a row of (N, count).
 * The weights, of a float dtype, need no sum of 1; one that is negative or NaN counts as 0, an infinite one as the
 * greatest f64. Without .replacement the indices of a row differ; those of weight 0 come after all others, in order.
 * With it, a row without a positive weight gives 0. LG_ERR_ARGUMENT: count < 0, or > C without .replacement.
 * lg_multinomial(weights, 5, .replacement = true) */
#define lg_multinomial(...)                                                                                            \
        LG_CALL2(lg_multinomial_with, lg_multinomial_options, lg_multinomial_takes_weights_count, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_multinomial_with(lg_tensor *weights, int64_t count, const lg_multinomial_options *options);
/* A random order of 0 ... n-1, i64. lg_permutation(c, n, .device = dev) */
#define lg_permutation(...) LG_CALL2(lg_permutation_with, lg_create_options, lg_permutation_takes_c_n, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_permutation_with(lg_ctx *c, int64_t n, const lg_create_options *options);

/* What a tensor is. Of NULL or a dead tensor: 0, a 0-d shape, NULL. */
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
LG_API LG_NEW lg_tensor *lg_reshape(lg_tensor *x, lg_shape shape);
LG_API LG_NEW lg_tensor *lg_transpose(lg_tensor *x, int dim0, int dim1);
LG_API LG_NEW lg_tensor *lg_permute(lg_tensor *x, lg_dims order);
/* Elements start, start + step, ... before stop of one dimension; negative start and stop count from the end, both are
 * clipped, step > 0. LG_MAX as stop: to the end. lg_slice(x, dim, start, stop, .step = 2) */
#define LG_MAX INT64_MAX
typedef struct lg_slice_options {
        LG_OPTIONS_HEAD
        int64_t step LG_DEFAULT; /* 1 */
} lg_slice_options;
#define lg_slice(...) LG_CALL4(lg_slice_with, lg_slice_options, lg_slice_takes_x_dim_start_stop, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_slice_with(lg_tensor *x, int dim, int64_t start, int64_t stop,
                                       const lg_slice_options *options);
/* x at one index of a dimension, which goes. */
LG_API LG_NEW lg_tensor *lg_select(lg_tensor *x, int dim, int64_t index);
/* Without dimensions of size 1: all (LG_ALL_DIMS) or those of the set that have it. */
LG_API LG_NEW lg_tensor *lg_squeeze(lg_tensor *x, lg_dims dims);
LG_API LG_NEW lg_tensor *lg_unsqueeze(lg_tensor *x, int dim);
/* Sizes of 1 repeated without a copy; -1 keeps a size; new dimensions in front. */
LG_API LG_NEW lg_tensor *lg_expand(lg_tensor *x, lg_shape shape);
/* Dimensions first ... last as one. */
LG_API LG_NEW lg_tensor *lg_flatten(lg_tensor *x, int first, int last);

/* x itself if it is contiguous already, else a copy in row-major order. */
LG_API LG_NEW lg_tensor *lg_contiguous(lg_tensor *x);
/* x itself if it has that dtype, else converted. */
LG_API LG_NEW lg_tensor *lg_cast(lg_tensor *x, lg_dtype dtype);
/* x itself if it is there already, else a copy on that device. A copy to the CPU waits for the device; one from the
 * CPU reads x before it returns, unless x is pinned for that device: then nothing waits, and what changes or frees x
 * later waits for the copy. Copies between two GPUs wait for nothing. */
LG_API LG_NEW lg_tensor *lg_to(lg_tensor *x, lg_device device);
/* x's values, contiguous, in host memory from which that device copies on its own (page-locked); x itself if it is that
 * already or the device has no such memory. x is on the CPU and outside the graph. */
LG_API LG_NEW lg_tensor *lg_pin(lg_tensor *x, lg_device device);
/* Always a copy, contiguous, on that device (LG_NO_DEVICE: where x is). */
LG_API LG_NEW lg_tensor *lg_copy(lg_tensor *x, lg_device device);

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

#ifdef __cplusplus
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_copy_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_add_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_sub_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_mul_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_div_(lg_tensor *, N) = delete;
#endif

/* The dtype of the elements behind a pointer; LG_DTYPE_NONE of a void *. */
#ifdef __cplusplus
template <class T> constexpr lg_dtype lg_dtype_of_memory(const T *)
{
        static_assert(std::is_same<T, float>::value || std::is_same<T, double>::value || std::is_same<T, bool>::value ||
                              std::is_same<T, unsigned char>::value ||
                              (std::is_integral<T>::value && std::is_signed<T>::value && sizeof(T) >= 4),
                      "no dtype has elements of this type; cast the pointer to const void * and give .dtype");
        return std::is_same<T, float>::value           ? LG_F32
               : std::is_same<T, double>::value        ? LG_F64
               : std::is_same<T, bool>::value          ? LG_BOOL
               : std::is_same<T, unsigned char>::value ? LG_U8
               : sizeof(T) == 4                        ? LG_I32
                                                       : LG_I64;
}
constexpr lg_dtype lg_dtype_of_memory(const void *)
{
        return LG_DTYPE_NONE;
}
#define LG_DTYPE_OF(p) lg_dtype_of_memory(p)
#else
/* clang-format off */
#define LG_TYPED(type, dtype) type *: dtype, const type *: dtype
#define LG_DTYPE_OF(p)                                                                                                 \
        _Generic((p), LG_TYPED(float, LG_F32), LG_TYPED(double, LG_F64), LG_TYPED(bool, LG_BOOL),                      \
                 LG_TYPED(unsigned char, LG_U8), LG_TYPED(int, LG_I32),                                                \
                 LG_TYPED(long, (sizeof(long) == 8 ? LG_I64 : LG_I32)), LG_TYPED(long long, LG_I64),                   \
                 LG_TYPED(void, LG_DTYPE_NONE))
/* clang-format on */
#endif
#endif
