/* index.h - picking and placing elements by index, sorting, joining and taking apart. */
#ifndef LG_INDEX_H
#define LG_INDEX_H

#include "grad/base.h"

LG_BEGIN

/* Indices are i64 and count from 0; one outside its dimension is told at the next read or wait, as LG_ERR_ARGUMENT. */

/* y[i][j] = x[index[i][j]][j] for dim 0, and so on; x and index have as many dimensions, y has the shape of the index,
 * which is nowhere larger than x but in dim. PyTorch's gather. */
LG_API LG_NEW lg_tensor *lg_gather(lg_tensor *x, int dim, lg_tensor *index);
/* A copy of x with src added: y[index[i][j]][j] += src[i][j] for dim 0. The index is nowhere larger than src, nor than
 * x but in dim; src has x's dtype, any but bool. Sums have one order on any number of threads. PyTorch's scatter_add.
 */
LG_API LG_NEW lg_tensor *lg_scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);
/* Those slices of x along a dimension; index of one dimension. */
LG_API LG_NEW lg_tensor *lg_index_select(lg_tensor *x, int dim, lg_tensor *index);
/* A copy of x with slice k of src added to its slice index[k]; dtypes and order as in lg_scatter_add. */
LG_API LG_NEW lg_tensor *lg_index_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);

typedef struct lg_embedding_options {
        LG_OPTIONS_HEAD
        int64_t padding_idx LG_DEFAULT; /* none; a row without a gradient, negative: from the end; row 0: LG_ZERO_INT */
} lg_embedding_options;
/* Rows of weight (rows, features): index (...) gives (..., features). lg_embedding(w, index, .padding_idx = 1) */
#define lg_embedding(...)                                                                                              \
        LG_CALL2(lg_embedding_with, lg_embedding_options, lg_embedding_takes_weight_index, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_embedding_with(lg_tensor *weight, lg_tensor *index, const lg_embedding_options *options);
/* i64 (..., classes): 1 where index (...) says so, else 0; classes > 0. */
LG_API LG_NEW lg_tensor *lg_one_hot(lg_tensor *index, int64_t classes);

/* value where mask (bool) is true, else x; both broadcast; in x's dtype, to which value is converted as in lg_full. */
LG_API LG_NEW lg_tensor *lg_masked_fill(lg_tensor *x, lg_tensor *mask, double value);
/* The elements of x where mask (bool) is true, 1-d, in row-major order; both broadcast. Waits. */
LG_API LG_NEW lg_tensor *lg_masked_select(lg_tensor *x, lg_tensor *mask);
/* Where x is not 0: i64 (n, ndim), the coordinates of each such element, in row-major order. NaN is not 0. Waits. */
LG_API LG_NEW lg_tensor *lg_nonzero(lg_tensor *x);
typedef struct lg_triangle_options {
        LG_OPTIONS_HEAD
        int64_t diagonal LG_DEFAULT; /* 0: the main one; above it: positive */
} lg_triangle_options;
/* What is on and below (tril) or on and above (triu) a diagonal of the last two dimensions, else 0. */
#define lg_tril(...) LG_CALL1(lg_tril_with, lg_triangle_options, lg_tril_takes_x, __VA_ARGS__)
#define lg_triu(...) LG_CALL1(lg_triu_with, lg_triangle_options, lg_triu_takes_x, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_tril_with(lg_tensor *x, const lg_triangle_options *options);
LG_API LG_NEW lg_tensor *lg_triu_with(lg_tensor *x, const lg_triangle_options *options);

/* x backwards along those dimensions (LG_ALL_DIMS: all), a view. */
LG_API LG_NEW lg_tensor *lg_flip(lg_tensor *x, lg_dims dims);
/* y[(i + shift) mod n] = x[i] along a dimension of size n; shift may be negative. */
LG_API LG_NEW lg_tensor *lg_roll(lg_tensor *x, int64_t shift, int dim);
typedef struct lg_pad_options {
        LG_OPTIONS_HEAD
        double value LG_DEFAULT; /* 0 */
} lg_pad_options;
/* A constant put before and after x: pairs for the last dimension, the one before it, and so on; negative ones cut off.
 * PyTorch's F.pad of mode "constant". A result below 0: LG_ERR_SHAPE. The value is converted as in lg_full.
 * lg_pad(x, LG_INTS(1, 1, 2, 0), .value = -1) */
#define lg_pad(...) LG_CALL2(lg_pad_with, lg_pad_options, lg_pad_takes_x_pads, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_pad_with(lg_tensor *x, lg_ints_in pads, const lg_pad_options *options);
/* A copy of x laid beside itself times[i] times along dimension i; times may have more dimensions, in front. */
LG_API LG_NEW lg_tensor *lg_repeat(lg_tensor *x, lg_shape times);

/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. */
/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. NULL among them is
 * LG_ERR_ARGUMENT; a list without any tensor gives NULL without an error: there is no context to tell it to. */
LG_API LG_NEW lg_tensor *lg_cat(lg_list_in list, int dim);
/* Tensors of one shape joined along a new dimension. */
LG_API LG_NEW lg_tensor *lg_stack(lg_list_in list, int dim);
/* Views of x along a dimension, `size` long each, the last one of what is left; `room` is how many ret has place for.
 * Returns how many there are; 0 on failure (too little room: LG_ERR_ARGUMENT), and then ret is as it was. */
LG_API int64_t lg_split(lg_tensor *x, int64_t size, int dim, lg_tensor **ret, int64_t room);
/* The same with pieces of size ceil(n / chunks), which may be fewer than `chunks`. */
LG_API int64_t lg_chunk(lg_tensor *x, int64_t chunks, int dim, lg_tensor **ret, int64_t room);

/* ---- in order, and the greatest: sort, topk, max, min -------------------------------------------------------------
 *
 * Along one dimension, which may be negative; a 0-d tensor is a line of one. Any dtype. Where .indices is set it gets
 * the places of the values (i64, no gradient); a failed call leaves it alone. The gradient goes to the elements that
 * were chosen. LG_ERR_ARGUMENT: no such dimension.
 */

typedef struct lg_sort_options {
        LG_OPTIONS_HEAD
        bool descending LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT;
} lg_sort_options;
/* All elements in order; stable; NaN is the greatest. lg_sort(x, -1, .descending = true, .indices = &i) */
#define lg_sort(...) LG_CALL2(lg_sort_with, lg_sort_options, lg_sort_takes_x_dim, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_sort_with(lg_tensor *x, int dim, const lg_sort_options *options);
typedef struct lg_argsort_options {
        LG_OPTIONS_HEAD
        bool descending LG_DEFAULT;
} lg_argsort_options;
/* The indices that lg_sort gives. */
#define lg_argsort(...) LG_CALL2(lg_argsort_with, lg_argsort_options, lg_argsort_takes_x_dim, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_argsort_with(lg_tensor *x, int dim, const lg_argsort_options *options);
typedef struct lg_topk_options {
        LG_OPTIONS_HEAD
        bool smallest LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT;
} lg_topk_options;
/* The k greatest (smallest), in order from there; of equals the first; NaN is the greatest. k outside 0 ... size is
 * LG_ERR_ARGUMENT. lg_topk(x, 5, -1, .indices = &i) */
#define lg_topk(...) LG_CALL3(lg_topk_with, lg_topk_options, lg_topk_takes_x_k_dim, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_topk_with(lg_tensor *x, int64_t k, int dim, const lg_topk_options *options);
typedef struct lg_max_options {
        LG_OPTIONS_HEAD
        bool keep_dim LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT;
} lg_max_options;
/* The greatest or smallest of each line, the first of equals; NaN is chosen wherever there is one. The gradient goes
 * to that element alone (lg_amax shares it). Of nothing: LG_ERR_SHAPE. lg_max(x, 1, .indices = &i) */
#define lg_max(...) LG_CALL2(lg_max_with, lg_max_options, lg_max_takes_x_dim, __VA_ARGS__)
#define lg_min(...) LG_CALL2(lg_min_with, lg_max_options, lg_min_takes_x_dim, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_max_with(lg_tensor *x, int dim, const lg_max_options *options);
LG_API LG_NEW lg_tensor *lg_min_with(lg_tensor *x, int dim, const lg_max_options *options);

LG_END_C
#endif
