/* gather.h - picking by index under the name of the function that was called. Private to libgrad/ops/. */
#ifndef LG_OPS_GATHER_H
#define LG_OPS_GATHER_H

#include "graph/op.h"

/* The public functions, but an index out of range is reported as of `origin`. */
lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);
lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin);
lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);

#endif
