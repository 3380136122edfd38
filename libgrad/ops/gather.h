/* gather.h - gather, scatter_add and index_select with the origin of errors as an argument. Private to libgrad/ops/. */
#ifndef LG_OPS_GATHER_H
#define LG_OPS_GATHER_H

#include "graph/op.h"

/* Variants of the public functions; an index out of range is reported as an error of the function `origin`. */
lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);
lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin);
lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);

#endif
