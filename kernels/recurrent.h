/* recurrent.h - arguments of recurrent layers. Part of kernels.h. */
#ifndef LG_KERNELS_RECURRENT_H
#define LG_KERNELS_RECURRENT_H

#include "types.h"

typedef enum lg_recurrent_kind {
        LG_RECURRENT_TANH,
        LG_RECURRENT_RELU,
        LG_RECURRENT_LSTM,
        LG_RECURRENT_GRU
} lg_recurrent_kind;

/* One layer in one direction over `batch` sequences of `steps` steps; all contiguous, f32 or f64. With G gates (LSTM 4,
 * GRU 3, else 1), H = hidden, R = projection if that is not 0, else H, and for each gate k
 *   a[k] = w_ih[k] x[t] + b_ih[k],  s[k] = w_hh[k] h + b_hh[k]
 * where h is the state before the step:
 *   TANH, RELU:  h = f(a + s)
 *   LSTM:        i, f, g, o = the gates in this order, a + s through sigmoid, sigmoid, tanh, sigmoid;
 *                c = f c + i g, h = w_hr (o tanh(c)), without w_hr if projection is 0
 *   GRU:         r = sigmoid(a[0] + s[0]), z = sigmoid(a[1] + s[1]), n = tanh(a[2] + r s[2]), h = n + z (h - n)
 * y[t] is h after step t; h and c are the states after the last step. `reverse` runs from the last step to the first.
 * With lengths, sample b consists of its first lengths[b] steps: later ones leave its state unchanged and give y = 0. A
 * length outside [0, steps] is recorded as a device error with code `origin` and replaced by the nearest valid one.
 * gates and cells are kept for the derivative, or NULL: (steps, batch, 4, H) has i, f, g, o or r, z, n, s[2] of each
 * step; cells (steps, batch, H) has c; both 0 after a sample's end. TANH and RELU have neither. If `reserve` is not 0,
 * which is what the device's recurrent_reserve() returned, gates has that many bytes in a format of the device's own
 * instead, and cells is NULL. */
typedef struct lg_recurrent_args {
        lg_dtype dtype;
        lg_recurrent_kind kind;
        bool reverse;
        bool narrow; /* the results will be rounded to 16 bits, so that products may round f32 to TF32 */
        int origin;
        int64_t steps, batch, inputs, hidden, projection;
        const void *x;           /* (steps, batch, inputs) */
        const void *w_ih, *w_hh; /* (G H, inputs), (G H, R) */
        const void *b_ih, *b_hh; /* (G H), or NULL for 0 */
        const void *w_hr;        /* (projection, H), LSTM only */
        const void *h0, *c0;     /* states before the first step (batch, R), (batch, H), or NULL for 0 */
        const int64_t *lengths;  /* (batch), or NULL for `steps` */
        void *y, *h, *c;         /* (steps, batch, R), (batch, R), (batch, H); c: LSTM only */
        void *gates, *cells;
        int64_t reserve;
} lg_recurrent_args;

/* Derivative of a recurrent layer: `layer` as in the forward call, with its results y, gates and cells as inputs. dy,
 * dh and dc are the gradients of y, h and c, or NULL for 0. Outputs that are not needed are NULL. */
typedef struct lg_recurrent_vjp_args {
        lg_recurrent_args layer;
        const void *dy, *dh, *dc;
        void *dx, *dw_ih, *dw_hh, *db_ih, *db_hh, *dw_hr, *dh0, *dc0;
} lg_recurrent_vjp_args;

#endif
