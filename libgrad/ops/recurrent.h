/* recurrent.h - one recurrent layer in one direction, for modules. Private to libgrad/. */
#ifndef LG_OPS_RECURRENT_H
#define LG_OPS_RECURRENT_H

#include "graph/op.h"

/* Returns the number of gates that a weight of a layer of this lg_recurrent_kind has. */
static inline int64_t lg__recurrent_gates(int kind)
{
        return kind == LG_RECURRENT_LSTM ? 4 : kind == LG_RECURRENT_GRU ? 3 : 1;
}

/* A layer, with the weights and states that kernels/recurrent.h describes. b_ih, b_hh, w_hr, h0, c0 and lengths may be
 * NULL. */
typedef struct lg__recurrent_layer {
        lg_recurrent_kind kind;
        bool reverse;
        lg_tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr, *h0, *c0, *lengths;
} lg__recurrent_layer;
/* Returns y (steps, batch, state) for x (steps, batch, inputs). Stores the states after the last step in *ret_h and
 * *ret_c unless these are NULL; c is empty except for an LSTM. Returns NULL and sets an error on failure. */
lg_tensor *lg__recurrent(lg_tensor *x, const lg__recurrent_layer *l, lg_tensor **ret_h, lg_tensor **ret_c);

#endif
