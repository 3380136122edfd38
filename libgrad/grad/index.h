/* index.h - picking and placing elements by index, sorting, joining and taking apart. */
#ifndef LG_INDEX_H
#define LG_INDEX_H

#include "grad/base.h"

LG_BEGIN

/* Indices are i64 and count from 0; one outside its dimension is told at the next read or wait, as LG_ERR_ARGUMENT. */

/* y[i][j] = x[index[i][j]][j] for dim 0, and so on; x and index have as many dimensions, y has the shape of the index,
 * which is nowhere larger than x but in dim. PyTorch's gather. */
LG_API lg_tensor *lg_gather(lg_tensor *x, int dim, lg_tensor *index);
/* A copy of x with src added: y[index[i][j]][j] += src[i][j] for dim 0. The index is nowhere larger than src, nor than
 * x but in dim; src has x's dtype, any but bool. Sums have one order on any number of threads. PyTorch's scatter_add.
 */
LG_API lg_tensor *lg_scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);
/* Those slices of x along a dimension; index of one dimension. */
LG_API lg_tensor *lg_index_select(lg_tensor *x, int dim, lg_tensor *index);
/* A copy of x with slice k of src added to its slice index[k]; dtypes and order as in lg_scatter_add. */
LG_API lg_tensor *lg_index_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src);

typedef struct lg_embedding_options {
        lg_tensor *index LG_DEFAULT;
        int64_t padding_idx LG_DEFAULT; /* none; a row without a gradient, negative: from the end */
        bool padding_zero LG_DEFAULT;   /* row 0 is that row */
} lg_embedding_options;
/* Rows of weight (rows, features): index (...) gives (..., features). lg_embedding(w, index, .padding_idx = 1) */
#define lg_embedding(weight, ...) lg_embedding_((weight), LG_INIT(lg_embedding_options){.index = __VA_ARGS__})
LG_API lg_tensor *lg_embedding_(lg_tensor *weight, lg_embedding_options o);
/* i64 (..., classes): 1 where index (...) says so, else 0; classes > 0. */
LG_API lg_tensor *lg_one_hot(lg_tensor *index, int64_t classes);

/* value where mask (bool) is true, else x; both broadcast; in x's dtype, to which value is converted as in lg_full. */
LG_API lg_tensor *lg_masked_fill(lg_tensor *x, lg_tensor *mask, double value);
typedef struct lg_triangle_options {
        lg_tensor *x LG_DEFAULT;
        int64_t diagonal LG_DEFAULT; /* 0: the main one; above it: positive */
} lg_triangle_options;
/* What is on and below (tril) or on and above (triu) a diagonal of the last two dimensions, else 0. */
#define lg_tril(...) lg_tril_(LG_INIT(lg_triangle_options){.x = __VA_ARGS__})
#define lg_triu(...) lg_triu_(LG_INIT(lg_triangle_options){.x = __VA_ARGS__})
LG_API lg_tensor *lg_tril_(lg_triangle_options o);
LG_API lg_tensor *lg_triu_(lg_triangle_options o);

/* x backwards along those dimensions ({0}: all), a view. */
LG_API lg_tensor *lg_flip(lg_tensor *x, lg_dims dims);
/* y[(i + shift) mod n] = x[i] along a dimension of size n; shift may be negative. */
LG_API lg_tensor *lg_roll(lg_tensor *x, int64_t shift, int dim);
typedef struct lg_pad_options {
        lg_pads pads LG_DEFAULT;
        double value LG_DEFAULT; /* 0 */
} lg_pad_options;
/* A constant put before and after x: pairs for the last dimension, the one before it, and so on; negative ones cut off.
 * PyTorch's F.pad of mode "constant". A result below 0: LG_ERR_SHAPE. The value is converted as in lg_full.
 * lg_pad(x, LG_PADS(1, 1, 2, 0), .value = -1) */
#define lg_pad(x, ...) lg_pad_((x), LG_INIT(lg_pad_options){.pads = __VA_ARGS__})
LG_API lg_tensor *lg_pad_(lg_tensor *x, lg_pad_options o);
/* A copy of x laid beside itself times[i] times along dimension i; times may have more dimensions, in front. */
LG_API lg_tensor *lg_repeat(lg_tensor *x, lg_shape times);

/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. */
/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. NULL among them is
 * LG_ERR_ARGUMENT; a list without any tensor gives NULL without an error: there is no context to tell it to. */
LG_API lg_tensor *lg_cat(lg_list list, int dim);
/* Tensors of one shape joined along a new dimension. */
LG_API lg_tensor *lg_stack(lg_list list, int dim);
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
        int dim LG_DEFAULT;
        bool descending LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT;
} lg_sort_options;
/* All elements in order; stable; NaN is the greatest. lg_sort(x, -1, .descending = true, .indices = &i) */
#define lg_sort(x, ...) lg_sort_((x), LG_INIT(lg_sort_options){.dim = __VA_ARGS__})
LG_API lg_tensor *lg_sort_(lg_tensor *x, lg_sort_options o);
typedef struct lg_argsort_options {
        int dim LG_DEFAULT;
        bool descending LG_DEFAULT;
} lg_argsort_options;
/* The indices that lg_sort gives. */
#define lg_argsort(x, ...) lg_argsort_((x), LG_INIT(lg_argsort_options){.dim = __VA_ARGS__})
LG_API lg_tensor *lg_argsort_(lg_tensor *x, lg_argsort_options o);
typedef struct lg_topk_options {
        int dim LG_DEFAULT;
        bool smallest LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT;
} lg_topk_options;
/* The k greatest (smallest), in order from there; of equals the first; NaN is the greatest. k outside 0 ... size is
 * LG_ERR_ARGUMENT. lg_topk(x, 5, -1, .indices = &i) */
#define lg_topk(x, k, ...) lg_topk_((x), (k), LG_INIT(lg_topk_options){.dim = __VA_ARGS__})
LG_API lg_tensor *lg_topk_(lg_tensor *x, int64_t k, lg_topk_options o);
typedef struct lg_choose_options {
        int dim LG_DEFAULT;
        bool keep_dim LG_DEFAULT;
        lg_tensor **indices LG_DEFAULT;
} lg_choose_options;
/* The greatest or smallest of each line, the first of equals; NaN is chosen wherever there is one. The gradient goes
 * to that element alone (lg_amax shares it). Of nothing: LG_ERR_SHAPE. lg_max(x, 1, .indices = &i) */
#define lg_max(x, ...) lg_max_((x), LG_INIT(lg_choose_options){.dim = __VA_ARGS__})
#define lg_min(x, ...) lg_min_((x), LG_INIT(lg_choose_options){.dim = __VA_ARGS__})
LG_API lg_tensor *lg_max_(lg_tensor *x, lg_choose_options o);
LG_API lg_tensor *lg_min_(lg_tensor *x, lg_choose_options o);

LG_END_C
#endif
