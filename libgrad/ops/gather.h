/* gather.h - gather, scatter_add and index_select with the origin of errors as an argument. Private to libgrad/ops/. */
#ifndef LG_OPS_GATHER_H
#define LG_OPS_GATHER_H

#include "graph/op.h"

/* Variants of the public functions; an index out of range is reported as an error of the function `origin`. */
lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);
lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin);
lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);
/* Sets *ret to the row of weight, (rows, ...), that the option padding_idx means. Returns false and sets an error if it
 * is given and there is no such row. */
bool lg__padding_row(const lg_tensor *weight, const char *op, int64_t padding_idx, int64_t *ret);

#endif
