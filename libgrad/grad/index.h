/* index.h - picking and placing elements by index, sorting, joining and taking apart. */
#ifndef LG_INDEX_H
#define LG_INDEX_H

#include "grad/base.h"

LG_BEGIN

/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. */
LG_API lg_tensor *lg_cat(lg_list list, int dim);

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
