/* dropout.h - dropout at a given place of the random numbers. Private to libgrad/ops/. */
#ifndef LG_OPS_DROPOUT_H
#define LG_OPS_DROPOUT_H

#include "graph/op.h"

/* Applies dropout with probability p to x by the numbers of Philox that `seed` has from block `offset` on. */
lg_tensor *lg__dropout(lg_tensor *x, double p, uint64_t seed, uint64_t offset);

#endif
