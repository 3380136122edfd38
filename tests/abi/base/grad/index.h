/* index.h - indexing, masking, sorting, joining and splitting.
 *
 * These ops select elements by index or by mask, put them in order, or rearrange and join whole tensors. Unless their
 * comments say otherwise, they take tensors of every dtype, the result has x's dtype and device, and gradients flow to
 * the elements that it was taken from. Where functions store tensors in an array `ret` of the caller, it has room for
 * `room` tensors, and they return the number that they stored; on failure they return 0 and leave ret as it was.
 */
#ifndef LG_INDEX_H
#define LG_INDEX_H

#include "grad/base.h"

LG_BEGIN

/* ---- selecting and adding by index ----
 *
 * Indices are i64 tensors and count from 0; negative ones are out of range, except where a comment says that they count
 * from the end. With an index out of range, the call fails
 * with LG_ERR_ARGUMENT on the CPU. On a GPU it is a device-side error, which the next read or wait, such as lg_item()
 * or lg_synchronize(), reports as LG_ERR_ARGUMENT; until then its element of the result is 0, or nothing is added for
 * it, and optimisers change nothing. Indices have no gradient. Sums have the same order with any number of threads.
 */

/* Gathers elements along a dimension: y[i][j] = x[index[i][j]][j] for dim 0, y[i][j] = x[i][index[i][j]] for dim 1, and
 * so on (PyTorch's gather). x and index have the same number of dimensions, and index is not larger than x in those
 * other than dim; y has the shape of the index. */
LG_API LG_NEW lg_tensor *lg_gather(lg_tensor *x, int dim, lg_tensor *index);

/* Returns a copy of x with the elements of src added where the index points: y[index[i][j]][j] += src[i][j] for dim 0,
 * y[i][index[i][j]] += src[i][j] for dim 1, and so on (PyTorch's scatter_add). x, index and src have equally many
 * dimensions; index is not larger than src, or than x except in dim. x and src have the same dtype, not bool. */
LG_API LG_NEW lg_tensor *lg_scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);

/* Returns slices of x along a dimension: as slice k, slice index[k] of x, for a 1-d index (PyTorch's index_select). */
LG_API LG_NEW lg_tensor *lg_index_select(lg_tensor *x, int dim, lg_tensor *index);

/* Returns a copy of x with slice k of src added to its slice index[k] (PyTorch's index_add). The index is 1-d; src has
 * x's shape with one slice for each index, and x's dtype, which is not bool. */
LG_API LG_NEW lg_tensor *lg_index_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);

/* Gathers as lg_gather() does, after x and the index were broadcast to each other in the dimensions other than dim
 * (PyTorch's take_along_dim). */
LG_API LG_NEW lg_tensor *lg_take_along_dim(lg_tensor *x, lg_tensor *index, int dim);

/* Returns the elements of x, counted in row-major order, at an index of any shape, which the result has. Negative
 * indices count from the end. */
LG_API LG_NEW lg_tensor *lg_take(lg_tensor *x, lg_tensor *index);

typedef struct lg_embedding_options {
        LG_OPTIONS_HEAD
        /* A row that gets no gradient; negative: counted from the end; default: none; LG_ZERO_INT for row 0. */
        int64_t padding_idx LG_DEFAULT;
        /* Rows that the index names and that are longer are first scaled down to this norm in place, without a gradient
         * (PyTorch's max_norm); LG_ZERO for 0; default: no limit. */
        double max_norm LG_DEFAULT;
        double norm_type LG_DEFAULT; /* the order of that norm, above 0, also LG_INFINITY; default 2 */
} lg_embedding_options;
/* Looks up rows of weight (rows, features): an index of any shape (...) gives (..., features) (PyTorch's F.embedding).
 * With .max_norm weight changes in place: it is a leaf or outside the graph, and not expanded.
 * Examples: lg_embedding(ids, w, .padding_idx = 1), lg_embedding(ids, w, .max_norm = 1) */
#define lg_embedding(...)                                                                                              \
        LG_CALL2(lg_embedding_with, lg_embedding_options, lg_embedding_takes_index_weight, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_embedding_with(lg_tensor *index, lg_tensor *weight, const lg_embedding_options *options);

/* Makes one-hot vectors: an index (...) gives an i64 tensor (..., classes) that is 1 at the index and 0 elsewhere. */
LG_API LG_NEW lg_tensor *lg_one_hot(lg_tensor *index, int64_t classes);

/* ---- writing by index ----
 *
 * These functions return a copy of x in which elements are replaced or combined with others. x and the tensor src have
 * the same dtype. Where several elements are written to one place, the last one in row-major order remains, on every
 * device, and only it gets a gradient (PyTorch leaves open which one).
 */

/* Writes src where the index points: y[index[i][j]][j] = src[i][j] for dim 0, y[i][index[i][j]] = src[i][j] for dim 1,
 * and so on (PyTorch's scatter). Shapes are those of lg_scatter_add(). */
LG_API LG_NEW lg_tensor *lg_scatter(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);

/* Writes a number where the index points, converted to x's dtype as by lg_full(). */
LG_API LG_NEW lg_tensor *lg_scatter_scalar(lg_tensor *x, int dim, lg_tensor *index, double value);

/* Reductions by which lg_scatter_reduce() and lg_index_reduce() join the elements for one place. */
typedef enum lg_scatter_reduction {
        LG_SCATTER_SUM = 0,  /* the sum; not of bool */
        LG_SCATTER_PROD = 1, /* the product; not of bool */
        LG_SCATTER_MEAN = 2, /* the mean, of integers rounded down; not of bool */
        LG_SCATTER_AMAX = 3, /* the maximum, NaN if one is NaN; equal ones share the gradient evenly */
        LG_SCATTER_AMIN = 4, /* the minimum, NaN if one is NaN; equal ones share the gradient evenly */
} lg_scatter_reduction;
/* Options of lg_scatter_reduce() and lg_index_reduce(). */
typedef struct lg_scatter_reduce_options {
        LG_OPTIONS_HEAD
        bool exclude_self LG_DEFAULT; /* leave out x's own element where others are written; default false */
} lg_scatter_reduce_options;
/* Combines x's elements with those of src that the index, as for lg_scatter(), sends to their place.
 * Example: lg_scatter_reduce(x, 1, index, src, LG_SCATTER_AMAX, .exclude_self = true) */
#define lg_scatter_reduce(...)                                                                                         \
        LG_CALL5(lg_scatter_reduce_with, lg_scatter_reduce_options, lg_scatter_reduce_takes_x_dim_index_src_reduction, \
                 V, I, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_scatter_reduce_with(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src,
                                                lg_scatter_reduction reduction,
                                                const lg_scatter_reduce_options *options);

/* Writes slice k of src as slice index[k] of x, for a 1-d index and src as for lg_index_add() (PyTorch's index_copy).
 */
LG_API LG_NEW lg_tensor *lg_index_copy(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);

/* Writes a number, converted as by lg_full(), to the slices index[k] of x. Negative indices count from the end. */
LG_API LG_NEW lg_tensor *lg_index_fill(lg_tensor *x, int dim, lg_tensor *index, double value);

/* Combines the slices index[k] of x with the slices k of src, as lg_scatter_reduce() does.
 * Example: lg_index_reduce(x, 0, index, src, LG_SCATTER_MEAN) */
#define lg_index_reduce(...)                                                                                           \
        LG_CALL5(lg_index_reduce_with, lg_scatter_reduce_options, lg_index_reduce_takes_x_dim_index_src_reduction, V,  \
                 I, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_index_reduce_with(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src,
                                              lg_scatter_reduction reduction, const lg_scatter_reduce_options *options);

/* Options of lg_put() and lg_index_put(). */
typedef struct lg_put_options {
        LG_OPTIONS_HEAD
        bool accumulate
                LG_DEFAULT; /* add to the elements of x, not of bool, instead of replacing them; default false */
} lg_put_options;
/* Writes the elements of src to those of x, counted in row-major order, at an index of src's shape. Negative indices
 * count from the end.
 * Example: lg_put(x, index, src, .accumulate = true) */
#define lg_put(...) LG_CALL3(lg_put_with, lg_put_options, lg_put_takes_x_index_src, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_put_with(lg_tensor *x, lg_tensor *index, lg_tensor *src, const lg_put_options *options);

/* ---- indexing with a list of tensors ----
 *
 * Entry k of the list of indices belongs to dimension k of x; LG_ALL takes the whole dimension, as missing entries at
 * the end do. The indices broadcast to one shape, which replaces their dimensions: at the place of the first if no
 * LG_ALL separates them, else in front. An entry of dtype bool has the sizes of the one or more
 * dimensions that it belongs to, and stands for the coordinates where it is true; then the call waits for the device.
 * Negative indices count from the end.
 */

/* An entry that takes a whole dimension: NULL, in a form that lists take in C and in C++. */
#define LG_ALL ((lg_tensor *)0)

/* Returns the elements of x at the indices (PyTorch's x[i, :, j]).
 * Example: lg_index(x, LG_LIST(i, LG_ALL, j)) */
LG_API LG_NEW lg_tensor *lg_index(lg_tensor *x, lg_list_in indices);

/* Writes values, which broadcast to the shape of lg_index(x, indices), to the elements at the indices.
 * Example: lg_index_put(x, LG_LIST(i, j), values, .accumulate = true) */
#define lg_index_put(...)                                                                                              \
        LG_CALL3(lg_index_put_with, lg_put_options, lg_index_put_takes_x_indices_values, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_index_put_with(lg_tensor *x, lg_list_in indices, lg_tensor *values,
                                           const lg_put_options *options);

/* ---- masks and triangles ----
 *
 * A mask is a bool tensor, such as a comparison returns. x and the mask broadcast.
 */

/* Returns value where the mask is true and x elsewhere. The value is converted to x's dtype as by lg_full().
 * Example: lg_masked_fill(scores, mask, -LG_INFINITY) */
LG_API LG_NEW lg_tensor *lg_masked_fill(lg_tensor *x, lg_tensor *mask, double value);

/* Replaces the elements of x where the mask is true, in row-major order, by the elements of src in its order. src has
 * x's dtype and as many elements as the mask has true ones, or more; too few are an error like an index out of range.
 */
LG_API LG_NEW lg_tensor *lg_masked_scatter(lg_tensor *x, lg_tensor *mask, lg_tensor *src);

/* Returns the elements of x where the mask is true, as a 1-d tensor in row-major order. Waits for the device, because
 * the number of elements is the size of the result. */
LG_API LG_NEW lg_tensor *lg_masked_select(lg_tensor *x, lg_tensor *mask);

/* Returns the coordinates of the nonzero elements of x, an i64 tensor (n, number of dimensions of x), in row-major
 * order. NaN counts as nonzero. Has no gradient. Waits for the device as lg_masked_select() does. */
LG_API LG_NEW lg_tensor *lg_nonzero(lg_tensor *x);

/* Options of lg_tril() and lg_triu(). */
typedef struct lg_triangle_options {
        LG_OPTIONS_HEAD
        int64_t diagonal LG_DEFAULT; /* positive: above the main diagonal, negative: below; default 0, the main one */
} lg_triangle_options;
/* Returns the lower (tril) or upper (triu) triangles of the matrices in the last two dimensions of x: the elements on
 * and below, or on and above, a diagonal, and 0 elsewhere.
 * Examples: lg_tril(x, .diagonal = -1), lg_triu(x, .diagonal = 1) */
#define lg_tril(...) LG_CALL1(lg_tril_with, lg_triangle_options, lg_tril_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_tril_with(lg_tensor *x, const lg_triangle_options *options);
#define lg_triu(...) LG_CALL1(lg_triu_with, lg_triangle_options, lg_triu_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_triu_with(lg_tensor *x, const lg_triangle_options *options);

/* ---- flipping, rolling, padding, repeating ---- */

/* Reverses the elements along the dimensions dims, each given once, or along LG_ALL_DIMS. The result is a view of x. */
LG_API LG_NEW lg_tensor *lg_flip(lg_tensor *x, lg_dims dims);

/* Rolls x along a dimension: y[(i + shift) mod n] = x[i], where n is its size. shift may be negative. */
LG_API LG_NEW lg_tensor *lg_roll(lg_tensor *x, int64_t shift, int dim);

typedef struct lg_pad_options {
        LG_OPTIONS_HEAD
        lg_pad_mode mode LG_DEFAULT; /* what the new elements are; default LG_PAD_CONSTANT */
        double value LG_DEFAULT;     /* of LG_PAD_CONSTANT, converted to x's dtype as by lg_full(); default 0 */
} lg_pad_options;
/* Pads x (PyTorch's F.pad, in any mode for any number of dimensions). pads are pairs {before, after}, at most as many
 * as dimensions, from the last dimension to the first; negative numbers cut elements off.
 * Examples: lg_pad(x, LG_INTS(1, 1, 2, 0), .value = -1), lg_pad(x, LG_INTS(1, 2), .mode = LG_PAD_REFLECT) */
#define lg_pad(...) LG_CALL2(lg_pad_with, lg_pad_options, lg_pad_takes_x_pads, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_pad_with(lg_tensor *x, lg_ints_in pads, const lg_pad_options *options);

/* Returns a tensor that repeats x times.size[i] times along dimension i (PyTorch's Tensor.repeat); always a copy. times
 * may have more dimensions than x, which are new dimensions in front, but not fewer.
 * Example: lg_repeat(x, LG_SHAPE(2, 1)) */
LG_API LG_NEW lg_tensor *lg_repeat(lg_tensor *x, lg_shape times);

/* ---- joining and splitting ---- */

/* Concatenates tensors along a dimension; dtypes are promoted. The tensors have the same number of dimensions, and
 * sizes that are equal except along dim. A list without any tensor, or of NULLs only, gives NULL without an error.
 * Example: lg_cat(LG_LIST(x, y), 0) */
LG_API LG_NEW lg_tensor *lg_cat(lg_list_in list, int dim);

/* Joins tensors of the same shape along a new dimension dim of the result; dtypes and lists are as for lg_cat().
 * Example: lg_stack(LG_LIST(x, y), 0) */
LG_API LG_NEW lg_tensor *lg_stack(lg_list_in list, int dim);

/* Splits x along a dimension into views of the given size, the last of which may be smaller, and stores them in ret.
 * size is at least 1, or 0 for an empty dimension, which gives one empty piece. */
LG_API int64_t lg_split(lg_tensor *x, int64_t size, int dim, lg_tensor **ret, int64_t room);

/* Splits x as lg_split() does, a dimension of size n into pieces of size ceil(n / chunks), which may be fewer than
 * chunks (PyTorch's chunk). An empty dimension gives as many empty pieces as chunks. */
LG_API int64_t lg_chunk(lg_tensor *x, int64_t chunks, int dim, lg_tensor **ret, int64_t room);

/* Stores the n views lg_select(x, dim, i) along a dimension of size n in ret, such as the steps of a loop over time.
 * The backward takes time in proportion to n. An empty dimension gives 0 without an error. */
LG_API int64_t lg_unbind(lg_tensor *x, int dim, lg_tensor **ret, int64_t room);

/* ---- sorting, topk, max and min along a dimension ----
 *
 * These functions work along one dimension; a 0-d tensor counts as one element along dimension 0. The gradient flows to
 * the selected elements. NaN is larger than every number. Where the option .indices is set, it receives a tensor of the
 * indices of the values along the dimension, i64 and without a gradient; a call that fails leaves it alone.
 */

typedef struct lg_sort_options {
        LG_OPTIONS_HEAD
        bool descending LG_DEFAULT;     /* largest first; default false, smallest first */
        lg_tensor **indices LG_DEFAULT; /* receives the indices of the values in x; default: not wanted */
} lg_sort_options;
/* Sorts along a dimension. The sort is stable: equal elements keep their order, also with .descending.
 * Example: lg_sort(x, -1, .descending = true, .indices = &i) */
#define lg_sort(...) LG_CALL2(lg_sort_with, lg_sort_options, lg_sort_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_sort_with(lg_tensor *x, int dim, const lg_sort_options *options);

typedef struct lg_argsort_options {
        LG_OPTIONS_HEAD
        bool descending LG_DEFAULT; /* largest first; default false, smallest first */
} lg_argsort_options;
/* Returns the indices that lg_sort() gives, an i64 tensor without a gradient.
 * Example: lg_argsort(x, 0, .descending = true) */
#define lg_argsort(...) LG_CALL2(lg_argsort_with, lg_argsort_options, lg_argsort_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_argsort_with(lg_tensor *x, int dim, const lg_argsort_options *options);

typedef struct lg_topk_options {
        LG_OPTIONS_HEAD
        bool smallest LG_DEFAULT;       /* the k smallest elements, smallest first; default false */
        lg_tensor **indices LG_DEFAULT; /* receives the indices of the values in x; default: not wanted */
} lg_topk_options;
/* Returns the k largest elements along a dimension, sorted, largest first. Ties go to the lowest index.
 * Example: lg_topk(x, 5, -1, .indices = &i) */
#define lg_topk(...) LG_CALL3(lg_topk_with, lg_topk_options, lg_topk_takes_x_k_dim, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_topk_with(lg_tensor *x, int64_t k, int dim, const lg_topk_options *options);

/* Options of lg_max() and lg_min(). */
typedef struct lg_max_options {
        LG_OPTIONS_HEAD
        bool keep_dim LG_DEFAULT;       /* keep the dimension, with size 1; default false, it is removed */
        lg_tensor **indices LG_DEFAULT; /* receives the indices of the values in x; default: not wanted */
} lg_max_options;
/* Returns the maximum or minimum along a dimension that is not empty. Ties go to the lowest index, and the first NaN,
 * if any, is the result. The whole gradient flows to the selected element, where lg_amax() shares it among ties.
 * Examples: lg_max(x, 1, .indices = &i), lg_min(x, 1, .keep_dim = true) */
#define lg_max(...) LG_CALL2(lg_max_with, lg_max_options, lg_max_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_with(lg_tensor *x, int dim, const lg_max_options *options);
#define lg_min(...) LG_CALL2(lg_min_with, lg_max_options, lg_min_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_min_with(lg_tensor *x, int dim, const lg_max_options *options);

LG_END_C
#endif
