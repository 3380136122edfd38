/* tensor.h - creating, inspecting, reading, viewing, copying and changing tensors.
 *
 * A tensor is a handle to elements of one dtype on one device. It has a shape of up to LG_MAX_DIMS dimensions and a
 * stride, counted in elements, for each of them. Several tensors can share the same memory. The memory is freed when no
 * tensor and no recorded graph uses it any more.
 *
 *     float data[] = {1, 2, 3, 4, 5, 6};
 *     lg_tensor *x = lg_from(c, data, LG_SHAPE(2, 3));
 *     lg_tensor *y = lg_transpose(x, 0, 1);
 *     lg_print(stdout, y);
 *
 * A function that returns x itself does not change who owns x.
 */
#ifndef LG_TENSOR_H
#define LG_TENSOR_H

#include "grad/context.h"

LG_BEGIN

/* ---- constants and ranges ----
 *
 * Each function allocates a new tensor in row-major order.
 */

/* Options of all functions that create tensors. */
typedef struct lg_create_options {
        LG_OPTIONS_HEAD
        lg_dtype dtype LG_DEFAULT;     /* Element type; default f32 unless the function's comment names another. */
        lg_device device LG_DEFAULT;   /* Where the elements are stored; default lg_default_device(). */
        bool requires_grad LG_DEFAULT; /* Gives the result, of a float dtype, a gradient; default false. */
} lg_create_options;
/* Returns a tensor of zeros or ones.
 * Example: lg_zeros(c, LG_SHAPE(2, 3), .dtype = LG_F64) */
#define lg_zeros(...) LG_CALL2(lg_zeros_with, lg_create_options, lg_zeros_takes_c_shape, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_zeros_with(lg_ctx *c, lg_shape shape, const lg_create_options *options);
#define lg_ones(...) LG_CALL2(lg_ones_with, lg_create_options, lg_ones_takes_c_shape, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_ones_with(lg_ctx *c, lg_shape shape, const lg_create_options *options);

/* Returns a tensor whose elements are all equal to value. A float dtype rounds the value, to infinity if it is out of
 * range. An integer dtype truncates it towards 0 and must hold the result, which excludes NaN (else LG_ERR_ARGUMENT). A
 * bool is false for 0 and true for any other value, NaN included.
 * Example: lg_full(c, LG_SHAPE(1), 7, .dtype = LG_I32) */
#define lg_full(...) LG_CALL3(lg_full_with, lg_create_options, lg_full_takes_c_shape_value, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_full_with(lg_ctx *c, lg_shape shape, double value, const lg_create_options *options);

/* Returns a tensor of uninitialised elements, for a program that writes all of them.
 * Example: lg_empty(c, LG_SHAPE(2, 3)) */
#define lg_empty(...) LG_CALL2(lg_empty_with, lg_create_options, lg_empty_takes_c_shape, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_empty_with(lg_ctx *c, lg_shape shape, const lg_create_options *options);

/* Creates a tensor as the function without _like does, with the shape of x and, unless they are given, its dtype and
 * device; .requires_grad is not taken from x.
 * Examples: lg_zeros_like(x), lg_ones_like(x), lg_full_like(x, 0.5, .dtype = LG_F32), lg_empty_like(x) */
#define lg_zeros_like(...) LG_CALL1(lg_zeros_like_with, lg_create_options, lg_zeros_like_takes_x, V, __VA_ARGS__)
#define lg_ones_like(...) LG_CALL1(lg_ones_like_with, lg_create_options, lg_ones_like_takes_x, V, __VA_ARGS__)
#define lg_full_like(...) LG_CALL2(lg_full_like_with, lg_create_options, lg_full_like_takes_x_value, V, V, __VA_ARGS__)
#define lg_empty_like(...) LG_CALL1(lg_empty_like_with, lg_create_options, lg_empty_like_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_zeros_like_with(lg_tensor *x, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_ones_like_with(lg_tensor *x, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_full_like_with(lg_tensor *x, double value, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_empty_like_with(lg_tensor *x, const lg_create_options *options);

/* Returns a matrix of shape (rows, columns) with ones on the main diagonal and zeros elsewhere.
 * Example: lg_eye(c, 3, 3, .dtype = LG_F64) */
#define lg_eye(...) LG_CALL3(lg_eye_with, lg_create_options, lg_eye_takes_c_rows_columns, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_eye_with(lg_ctx *c, int64_t rows, int64_t columns, const lg_create_options *options);

/* Returns a 0-d tensor that holds value, converted as by lg_full().
 * Example: lg_scalar(c, 0.5, .dtype = LG_F64) */
#define lg_scalar(...) LG_CALL2(lg_scalar_with, lg_create_options, lg_scalar_takes_c_value, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_scalar_with(lg_ctx *c, double value, const lg_create_options *options);

/* Returns a 1-d tensor of the values start, start + step, start + 2 step, ... that are below stop (above it if step is
 * negative); it may be empty. All three numbers are finite, and step is not 0. The dtype defaults to i64 if they are
 * whole and to f32 otherwise. The values of an integer dtype are exact: start and step must then be whole, and the
 * values within the dtype's range and 2^53, up to which a double holds every whole number (else LG_ERR_ARGUMENT).
 * Example: lg_arange(c, 0, 6, 1, .dtype = LG_F32) */
#define lg_arange(...)                                                                                                 \
        LG_CALL4(lg_arange_with, lg_create_options, lg_arange_takes_c_start_stop_step, V, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_arange_with(lg_ctx *c, double start, double stop, double step,
                                        const lg_create_options *options);

/* Returns a 1-d tensor of count evenly spaced values, of a float dtype. The first value is start and the last one stop,
 * rounded to the dtype; a count of 1 gives start. start and stop are finite.
 * Example: lg_linspace(c, 0, 1, 5) */
#define lg_linspace(...)                                                                                               \
        LG_CALL4(lg_linspace_with, lg_create_options, lg_linspace_takes_c_start_stop_count, V, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_linspace_with(lg_ctx *c, double start, double stop, int64_t count,
                                          const lg_create_options *options);

/* ---- tensors from host memory ----
 *
 * The elements in host memory are stored in row-major order. Their dtype follows from the type of the pointer: float,
 * double, int32_t, int64_t, unsigned char or bool. Memory of f16 and bf16 is passed as a void * together with .dtype
 * (else LG_ERR_DTYPE). data may be NULL if the shape is empty.
 */

/* Returns a tensor with a copy of the elements at data, as many as the shape has. The tensor has the dtype of the
 * memory, or .dtype, to which the elements are converted as by lg_cast(); data must then be aligned for their type
 * (else LG_ERR_ARGUMENT). Bytes of bool other than 0 become 1. An array literal needs parentheses around it, as in
 * ((float[]){1, 2}): its commas would end the argument.
 * Example: lg_from(c, data, LG_SHAPE(2, 3), .dtype = LG_I64) */
#define lg_from(...)                                                                                                   \
        lg_from_with(LG_ARG1(__VA_ARGS__),                                                                             \
                     LG_ARRAY_LITERALS_NEED_PARENTHESES(LG_ARG2(__VA_ARGS__, lg_from_takes_c_data_shape)),             \
                     LG_DTYPE_OF(LG_ARG2(__VA_ARGS__, lg_from_takes_c_data_shape)),                                    \
                     LG_ARG3(__VA_ARGS__, lg_from_takes_c_data_shape, lg_from_takes_c_data_shape),                     \
                     LG_OPTIONS(lg_create_options, LG_TAIL3(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_from_with(lg_ctx *c, const void *data, lg_dtype memory, lg_shape shape,
                                      const lg_create_options *options);

/* Returns a CPU tensor whose elements are the memory at data, without a copy. Calls release(user) once, when no tensor
 * and no recorded graph uses the memory any more, or before it returns if it fails; release may be NULL. The memory
 * must be valid until then. It must be aligned for its dtype (else LG_ERR_ARGUMENT), and its bytes of bool 0 or 1.
 * .dtype and .device, if given, are those of the memory.
 * Example: lg_borrow(c, data, free, data, LG_SHAPE(2, 3)) */
#define lg_borrow(c, data, release, ...)                                                                               \
        lg_borrow_with((c), LG_ARRAY_LITERALS_NEED_PARENTHESES(data), LG_DTYPE_OF(data), (release),                    \
                       LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, lg_borrow_takes_c_data_release_user_shape),          \
                       LG_OPTIONS(lg_create_options, LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_borrow_with(lg_ctx *c, void *data, lg_dtype memory, void (*release)(void *user), void *user,
                                        lg_shape shape, const lg_create_options *options);

/* ---- random tensors ----
 *
 * Random numbers come from the random state of the context (lg_seed()), which advances only if the call succeeds.
 */

/* Returns a tensor of a float dtype with numbers drawn uniformly from [low, high); if low equals high, all are low.
 * Both are finite and in the dtype's range, low is not greater than high, and their difference is in the range of f64.
 * Example: lg_uniform(c, -1, 1, LG_SHAPE(3)) */
#define lg_uniform(...)                                                                                                \
        LG_CALL4(lg_uniform_with, lg_create_options, lg_uniform_takes_c_low_high_shape, V, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_uniform_with(lg_ctx *c, double low, double high, lg_shape shape,
                                         const lg_create_options *options);

/* Returns a tensor of a float dtype with numbers drawn from the normal distribution with the given mean and standard
 * deviation, which are finite; std is not negative.
 * Example: lg_normal(c, 0, 0.02, LG_SHAPE(3)) */
#define lg_normal(...)                                                                                                 \
        LG_CALL4(lg_normal_with, lg_create_options, lg_normal_takes_c_mean_std_shape, V, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_normal_with(lg_ctx *c, double mean, double std, lg_shape shape,
                                        const lg_create_options *options);

/* Draws numbers as lg_uniform() or lg_normal() does, for a tensor like x as lg_zeros_like() creates it.
 * Examples: lg_uniform_like(x, -1, 1), lg_normal_like(x, 0, 0.1) */
#define lg_uniform_like(...)                                                                                           \
        LG_CALL3(lg_uniform_like_with, lg_create_options, lg_uniform_like_takes_x_low_high, V, V, V, __VA_ARGS__)
#define lg_normal_like(...)                                                                                            \
        LG_CALL3(lg_normal_like_with, lg_create_options, lg_normal_like_takes_x_mean_std, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_uniform_like_with(lg_tensor *x, double low, double high, const lg_create_options *options);
LG_API LG_NEW lg_tensor *lg_normal_like_with(lg_tensor *x, double mean, double std, const lg_create_options *options);

/* Returns a tensor of whole numbers drawn from [low, high), each with the same probability. The dtype defaults to i64;
 * any dtype that holds the numbers is possible, and a float dtype rounds them. low is below high, by at most 2^53.
 * Example: lg_randint(c, 0, 10, LG_SHAPE(3)) */
#define lg_randint(...)                                                                                                \
        LG_CALL4(lg_randint_with, lg_create_options, lg_randint_takes_c_low_high_shape, V, I, I, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_randint_with(lg_ctx *c, int64_t low, int64_t high, lg_shape shape,
                                         const lg_create_options *options);

/* Returns a tensor whose elements are 1 with the probability that the element of p holds and 0 otherwise, independently
 * of each other. p has a float dtype; the result has p's shape, dtype and device, and no gradient. The choices for one
 * random state do not depend on the dtype. p <= 0 gives 0, p >= 1 gives 1, NaN gives 0. */
LG_API LG_NEW lg_tensor *lg_bernoulli(lg_tensor *p);

typedef struct lg_multinomial_options {
        LG_OPTIONS_HEAD
        bool replacement LG_DEFAULT; /* Whether an index can be drawn more than once; default false. */
} lg_multinomial_options;
/* Draws count indices with probabilities in proportion to the weights, which need not sum to 1. Weights of shape (C)
 * give indices of shape (count); weights of shape (N, C) give (N, count), drawn from each row. The weights have a float
 * dtype; the result is i64. A weight that is negative or NaN counts as 0, an infinite one as the largest finite f64.
 * Without .replacement, count is at most C and the indices of a row differ; those of weight 0 come after all others, in
 * ascending order. With .replacement, a row without a positive weight gives only 0; C is 0 only if count is.
 * Example: lg_multinomial(weights, 5, .replacement = true) */
#define lg_multinomial(...)                                                                                            \
        LG_CALL2(lg_multinomial_with, lg_multinomial_options, lg_multinomial_takes_weights_count, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_multinomial_with(lg_tensor *weights, int64_t count, const lg_multinomial_options *options);

/* Returns the numbers 0 ... n-1 in random order, as a 1-d tensor of dtype i64. n is below 2^31 (else LG_ERR_SHAPE).
 * Example: lg_permutation(c, 10) */
#define lg_permutation(...)                                                                                            \
        LG_CALL2(lg_permutation_with, lg_create_options, lg_permutation_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_permutation_with(lg_ctx *c, int64_t n, const lg_create_options *options);

/* ---- properties ----
 *
 * These functions return what the handle records about t. They never wait for a device and also work while an error is
 * set. If t is NULL or was freed, they return 0, NULL, false or the value after the semicolon.
 */

/* Returns a property of t: */
LG_API lg_shape lg_shape_of(const lg_tensor *t);        /* the sizes of all dimensions; a 0-d shape */
LG_API int lg_ndim_of(const lg_tensor *t);              /* the number of dimensions */
LG_API int64_t lg_size_of(const lg_tensor *t, int dim); /* the size of dimension dim; -1, also for no such dimension */
LG_API int64_t lg_stride_of(const lg_tensor *t, int dim); /* the stride of dim, in elements; 0 for no such dimension */
LG_API int64_t lg_numel(const lg_tensor *t);              /* the number of elements, which is 1 for a 0-d tensor */
LG_API lg_dtype lg_dtype_of(const lg_tensor *t);          /* the dtype; LG_DTYPE_NONE */
LG_API lg_device lg_device_of(const lg_tensor *t);        /* the device of the elements; LG_NO_DEVICE */
LG_API lg_ctx *lg_ctx_of(const lg_tensor *t);             /* its context, valid until lg_close() */
LG_API bool lg_is_contiguous(const lg_tensor *t); /* whether t is in row-major order without gaps, or has no elements */

/* ---- values on the host ----
 *
 * These functions move values between a tensor and host memory. lg_item(), lg_item_i64(), lg_read() and lg_print() wait
 * until the device has finished its work, and work while an error is set. Except for lg_print(), they also report a
 * pending device-side error of t's device: LG_ERR_ARGUMENT for an index or a class that was out of range.
 */

/* Returns the value of a tensor of one element, of any shape and dtype. lg_item() returns NaN on failure; lg_item_i64()
 * converts the value as by lg_cast(), and returns 0 on failure. */
LG_API double lg_item(const lg_tensor *t);
LG_API int64_t lg_item_i64(const lg_tensor *t);

/* Copies all elements of t, in row-major order and converted to dtype as by lg_cast(), into the host memory at data,
 * which is aligned for dtype. `bytes` must be exactly what the elements take (else LG_ERR_SHAPE). */
LG_API bool lg_read(const lg_tensor *t, void *data, lg_dtype dtype, size_t bytes);

/* Copies elements of the given dtype from host memory into t, in row-major order and converted as by lg_cast().
 * Alignment and `bytes` are as for lg_read(); bytes of bool other than 0 become 1. Fails with LG_ERR_STATE if t is
 * inside the graph, or is a leaf that requires grad outside lg_no_grad(), and with LG_ERR_ARGUMENT if t is expanded. */
LG_API bool lg_write(lg_tensor *t, const void *data, lg_dtype dtype, size_t bytes);

/* Prints t to f in PyTorch's format and flushes f. Beyond 1000 elements, prints the first and last three of each
 * dimension. Numbers have a decimal point in every locale. If t is NULL or was freed, prints "NULL tensor". Fails with
 * LG_ERR_IO if f cannot be written; if there is no memory to read the values (LG_ERR_MEMORY), prints "...". */
LG_API bool lg_print(FILE *f, const lg_tensor *t);

/* ---- views ----
 *
 * A view has another shape or other strides over the memory of x, so that a change in place of one is seen through the
 * other. It takes no memory for elements and works with every dtype; gradients flow through it to x.
 */

/* Returns the elements of x, in row-major order, with another shape of as many elements. One size may be -1 and is
 * computed from the others. The result is a view where strides can express it, and a copy otherwise.
 * Example: lg_reshape(x, LG_SHAPE(2, -1)) */
LG_API LG_NEW lg_tensor *lg_reshape(lg_tensor *x, lg_shape shape);

/* Returns x with dimensions dim0 and dim1 exchanged. */
LG_API LG_NEW lg_tensor *lg_transpose(lg_tensor *x, int dim0, int dim1);

/* Returns x with dimension order.dim[i] of x as dimension i; order lists every dimension exactly once.
 * Example: lg_permute(x, LG_DIMS(2, 0, 1)) */
LG_API LG_NEW lg_tensor *lg_permute(lg_tensor *x, lg_dims order);

/* The stop of lg_slice() that means the end of the dimension. */
#define LG_MAX INT64_MAX

typedef struct lg_slice_options {
        LG_OPTIONS_HEAD
        int64_t step LG_DEFAULT; /* Distance between the indices that are taken; default 1; greater than 0. */
} lg_slice_options;
/* Returns the elements with indices start, start + step, ... below stop of dimension dim. Negative start and stop count
 * from the end, and both are clipped to the dimension, so the result may be empty.
 * Example: lg_slice(x, 1, 0, LG_MAX, .step = 2) */
#define lg_slice(...)                                                                                                  \
        LG_CALL4(lg_slice_with, lg_slice_options, lg_slice_takes_x_dim_start_stop, V, I, I, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_slice_with(lg_tensor *x, int dim, int64_t start, int64_t stop,
                                       const lg_slice_options *options);

/* Returns the part of x at one index of dimension dim, which is removed. A negative index counts from the end. */
LG_API LG_NEW lg_tensor *lg_select(lg_tensor *x, int dim, int64_t index);

/* Returns x without the dimensions of size 1 that dims lists, or without all for LG_ALL_DIMS; others are kept. */
LG_API LG_NEW lg_tensor *lg_squeeze(lg_tensor *x, lg_dims dims);

/* Returns x with an additional dimension of size 1, which becomes dimension dim of the result; -1 appends it. */
LG_API LG_NEW lg_tensor *lg_unsqueeze(lg_tensor *x, int dim);

/* Returns x with dimensions of size 1 repeated to the sizes in shape, without a copy: their stride becomes 0. A size of
 * -1 keeps the size of x; additional dimensions come first. An expanded tensor cannot be changed in place.
 * Example: lg_expand(x, LG_SHAPE(4, -1, -1)) */
LG_API LG_NEW lg_tensor *lg_expand(lg_tensor *x, lg_shape shape);

typedef struct lg_flatten_options {
        LG_OPTIONS_HEAD
        int64_t start_dim LG_DEFAULT; /* first dimension to join, negative: from the end; default 0 */
        int64_t end_dim LG_DEFAULT; /* last dimension to join, negative: from the end; default -1; LG_ZERO_INT for 0 */
} lg_flatten_options;
/* Returns x with dimensions joined into one, as a view or a copy as by lg_reshape(); a 0-d tensor gets shape (1).
 * Example: lg_flatten(x, .start_dim = 1) */
#define lg_flatten(...) LG_CALL1(lg_flatten_with, lg_flatten_options, lg_flatten_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_flatten_with(lg_tensor *x, const lg_flatten_options *options);

/* ---- copies and conversions ----
 *
 * Gradients flow back to x, with its dtype and device, except through lg_pin() and casts to integers and bool.
 */

/* Returns x itself if it is contiguous (see lg_is_contiguous()), else a copy in row-major order. */
LG_API LG_NEW lg_tensor *lg_contiguous(lg_tensor *x);

/* Returns x itself if it has that dtype, else a copy converted to it. Float dtypes round. Floats become integers by
 * truncation towards 0, where values out of range become the nearest integer of the dtype and NaN becomes 0; an integer
 * becomes a narrower one by keeping its low bits. A bool is false for 0 and true for any other value, NaN included. */
LG_API LG_NEW lg_tensor *lg_cast(lg_tensor *x, lg_dtype dtype);

/* Returns x itself if it is on that device already, else a copy there; LG_NO_DEVICE means the context's default device.
 * A copy to the CPU waits for the device. A copy from the CPU reads x before the call returns, unless x is pinned for
 * that device: then whatever changes or frees x later waits for the copy. Copies between two GPUs wait for nothing. */
LG_API LG_NEW lg_tensor *lg_to(lg_tensor *x, lg_device device);

/* Returns a contiguous copy of x in page-locked host memory, from which lg_to() copies to that device without waiting.
 * Returns x itself if it is in such memory already or if the device, like the CPU, has none. Otherwise fails with
 * LG_ERR_DEVICE if x is not on the CPU and with LG_ERR_STATE if x needs a gradient. */
LG_API LG_NEW lg_tensor *lg_pin(lg_tensor *x, lg_device device);

/* Returns a contiguous copy of x on that device, also if x is there already; LG_NO_DEVICE means the device of x. */
LG_API LG_NEW lg_tensor *lg_copy(lg_tensor *x, lg_device device);

/* ---- changes in place ----
 *
 * These functions change the elements of x and record nothing. y is converted to x's dtype as by lg_cast() before it is
 * used (so adding 0.7 to integers adds 0), broadcasts to x, and may share memory with it. Views of x see the change;
 * lg_backward() through a graph that saved the old values fails with LG_ERR_STATE.
 *
 * All fail with LG_ERR_STATE if x is inside the graph, or is a leaf that requires grad outside lg_no_grad(), or if y
 * needs a gradient, which it would not get, outside lg_no_grad(); and with LG_ERR_ARGUMENT if x is expanded.
 */

/* Sets every element of x to value, which is converted as by lg_full(). */
LG_API bool lg_fill_(lg_tensor *x, double value);

/* Changes x by y: */
LG_API bool lg_copy_(lg_tensor *x, lg_tensor *y); /* x = y */
LG_API bool lg_add_(lg_tensor *x, lg_tensor *y);  /* x += y */
LG_API bool lg_sub_(lg_tensor *x, lg_tensor *y);  /* x -= y */
LG_API bool lg_mul_(lg_tensor *x, lg_tensor *y);  /* x *= y */
LG_API bool lg_div_(lg_tensor *x, lg_tensor *y);  /* x /= y, for float dtypes */

/* Change x as the functions of the same names without the last underscore compute (pointwise.h); lg_div_scalar_() and
 * lg_pow_scalar_() need a float dtype. */
LG_API bool lg_add_scalar_(lg_tensor *x, double s);           /* x += s */
LG_API bool lg_sub_scalar_(lg_tensor *x, double s);           /* x -= s */
LG_API bool lg_mul_scalar_(lg_tensor *x, double s);           /* x *= s */
LG_API bool lg_div_scalar_(lg_tensor *x, double s);           /* x /= s */
LG_API bool lg_pow_scalar_(lg_tensor *x, double s);           /* x = x^s */
LG_API bool lg_floor_divide_scalar_(lg_tensor *x, double s);  /* x = floor(x / s) */
LG_API bool lg_remainder_scalar_(lg_tensor *x, double s);     /* x = x - s floor(x / s) */
LG_API bool lg_fmod_scalar_(lg_tensor *x, double s);          /* x = x - s trunc(x / s) */
LG_API bool lg_maximum_scalar_(lg_tensor *x, double s);       /* x = max(x, s) */
LG_API bool lg_minimum_scalar_(lg_tensor *x, double s);       /* x = min(x, s) */
LG_API bool lg_clamp_(lg_tensor *x, double low, double high); /* x = min(max(x, low), high) */

LG_END_C

#ifdef __cplusplus
/* A number in place of the tensor y does not compile; lg_fill_() takes a number. */
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_copy_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_add_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_sub_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_mul_(lg_tensor *, N) = delete;
template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value>> bool lg_div_(lg_tensor *, N) = delete;
#endif

/* The data of lg_from() and lg_borrow(). Compilers name it where an array literal needs parentheses around it. */
#define LG_ARRAY_LITERALS_NEED_PARENTHESES(data) (data)

/* ---- dtype of a pointer ----
 *
 * lg_from() and lg_borrow() find the dtype of host memory by LG_DTYPE_OF(). A pointer to any other type than those of
 * float, double, bool, unsigned char and signed integers of 32 and 64 bits does not compile.
 */

#ifdef __cplusplus
/* The dtype of the elements behind a pointer; LG_DTYPE_NONE if it is a void *. */
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
/* A case of LG_DTYPE_OF(). */
#define LG_TYPED(type, dtype) type *: dtype, const type *: dtype

/* The dtype of the elements behind pointer p; LG_DTYPE_NONE if p is a void *. */
#define LG_DTYPE_OF(p)                                                                                                 \
        _Generic((p), LG_TYPED(float, LG_F32), LG_TYPED(double, LG_F64), LG_TYPED(bool, LG_BOOL),                      \
                 LG_TYPED(unsigned char, LG_U8), LG_TYPED(int, LG_I32),                                                \
                 LG_TYPED(long, (sizeof(long) == 8 ? LG_I64 : LG_I32)), LG_TYPED(long long, LG_I64),                   \
                 LG_TYPED(void, LG_DTYPE_NONE))
/* clang-format on */
#endif
#endif
