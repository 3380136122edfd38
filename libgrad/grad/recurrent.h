/* recurrent.h - recurrent layers and cells: RNN, LSTM, GRU.
 *
 * Formulas, names, shapes and first values of parameters are those of PyTorch's modules of the same names, so their
 * state_dicts load both ways. With H = hidden and G gates (LSTM: i, f, g, o; GRU: r, z, n; RNN: one), layer k has the
 * parameters "weight_ih_lk" (G H, in), "weight_hh_lk" (G H, H), "bias_ih_lk" and "bias_hh_lk" (G H), and with
 * .projection = P "weight_hr_lk" (P, H); "weight_hh_lk" is then (G H, P). The direction from the last step to the first
 * adds _reverse to the names. From the second layer on, `in` is the size of the results of the layer before. All are
 * uniform in
 * [-1/sqrt(H), 1/sqrt(H)).
 *
 *     lg_module *lstm = lg_nn_lstm(c, 28, 128, .layers = 2, .batch_first = true);
 *     lg_tensor *h, *state, *y = lg_run_rnn(lstm, x, .lengths = lengths, .h = &h, .c = &state);
 *
 * 16-bit layers compute in f32 and round their results once; on a GPU, products may round states to TF32.
 */
#ifndef LG_RECURRENT_H
#define LG_RECURRENT_H

#include "grad/nn.h"

LG_BEGIN

/* ---- layers over sequences ---- */

typedef struct lg_lstm_options {
        LG_OPTIONS_HEAD
        int64_t layers LG_DEFAULT;     /* 1 to 1000 layers, each on the results of the one before; default 1 */
        int64_t projection LG_DEFAULT; /* size below H to which h is projected; default: none, h has H elements */
        double dropout LG_DEFAULT;     /* probability of lg_dropout() between layers in training mode; default 0 */
        bool batch_first LG_DEFAULT;   /* x and the result are (N, T, ...) instead of (T, N, ...); default false */
        bool bidirectional LG_DEFAULT; /* a second direction, from the last step to the first; default false */
        bool no_bias LG_DEFAULT;       /* without "bias_ih_lk" and "bias_hh_lk"; default false */
        lg_dtype dtype LG_DEFAULT;     /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;   /* of the parameters; default: the context's default device */
} lg_lstm_options;
/* Makes a layer with long short-term memory: c = f c + i g, h = o tanh(c), where i, f and o are sigmoids and g is a
 * tanh of the gates w_ih x + b_ih + w_hh h + b_hh. lg_run_rnn() describes x and the results; lg_forward(m, x) gives the
 * first. in may be 0. Fails with LG_ERR_ARGUMENT if hidden is below 1, .layers out of its range, .projection not in [0,
 * hidden) or .dropout not in [0, 1].
 * Example: lg_nn_lstm(c, 28, 128, .layers = 2, .dropout = 0.2, .batch_first = true) */
#define lg_nn_lstm(...) LG_CALL3(lg_nn_lstm_with, lg_lstm_options, lg_nn_lstm_takes_c_in_hidden, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_lstm_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_lstm_options *options);

typedef struct lg_gru_options {
        LG_OPTIONS_HEAD
        int64_t layers LG_DEFAULT;     /* 1 to 1000 layers, each on the results of the one before; default 1 */
        double dropout LG_DEFAULT;     /* probability of lg_dropout() between layers in training mode; default 0 */
        bool batch_first LG_DEFAULT;   /* x and the result are (N, T, ...) instead of (T, N, ...); default false */
        bool bidirectional LG_DEFAULT; /* a second direction, from the last step to the first; default false */
        bool no_bias LG_DEFAULT;       /* without "bias_ih_lk" and "bias_hh_lk"; default false */
        lg_dtype dtype LG_DEFAULT;     /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;   /* of the parameters; default: the context's default device */
} lg_gru_options;
/* Makes a layer of gated recurrent units: h = (1 - z) n + z h with n = tanh(w_in x + b_in + r (w_hn h + b_hn)), where r
 * and z are sigmoids of gates as in lg_nn_lstm(). The rest is as there.
 * Example: lg_nn_gru(c, 28, 128, .bidirectional = true) */
#define lg_nn_gru(...) LG_CALL3(lg_nn_gru_with, lg_gru_options, lg_nn_gru_takes_c_in_hidden, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_gru_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_gru_options *options);

typedef struct lg_rnn_options {
        LG_OPTIONS_HEAD
        int64_t layers LG_DEFAULT;     /* 1 to 1000 layers, each on the results of the one before; default 1 */
        double dropout LG_DEFAULT;     /* probability of lg_dropout() between layers in training mode; default 0 */
        bool relu LG_DEFAULT;          /* ReLU instead of tanh; default false */
        bool batch_first LG_DEFAULT;   /* x and the result are (N, T, ...) instead of (T, N, ...); default false */
        bool bidirectional LG_DEFAULT; /* a second direction, from the last step to the first; default false */
        bool no_bias LG_DEFAULT;       /* without "bias_ih_lk" and "bias_hh_lk"; default false */
        lg_dtype dtype LG_DEFAULT;     /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT;   /* of the parameters; default: the context's default device */
} lg_rnn_options;
/* Makes an Elman layer: h = tanh(w_ih x + b_ih + w_hh h + b_hh). The rest is as for lg_nn_lstm().
 * Example: lg_nn_rnn(c, 28, 128, .relu = true) */
#define lg_nn_rnn(...) LG_CALL3(lg_nn_rnn_with, lg_rnn_options, lg_nn_rnn_takes_c_in_hidden, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_rnn_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_rnn_options *options);

/* ---- cells: one step ---- */

/* Options of lg_nn_lstm_cell() and lg_nn_gru_cell(). */
typedef struct lg_cell_options {
        LG_OPTIONS_HEAD
        bool no_bias LG_DEFAULT;     /* without "bias_ih" and "bias_hh"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameters; default: the context's default device */
} lg_cell_options;
/* Makes one step of lg_nn_lstm(), with the parameters "weight_ih", "weight_hh", "bias_ih" and "bias_hh". lg_run_rnn()
 * on x (N, in) or (in) gives the next h, and in .c the next c.
 * Example: lg_nn_lstm_cell(c, 28, 128, .no_bias = true) */
#define lg_nn_lstm_cell(...)                                                                                           \
        LG_CALL3(lg_nn_lstm_cell_with, lg_cell_options, lg_nn_lstm_cell_takes_c_in_hidden, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_lstm_cell_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_cell_options *options);

/* Makes one step of lg_nn_gru(), as lg_nn_lstm_cell().
 * Example: lg_nn_gru_cell(c, 28, 128) */
#define lg_nn_gru_cell(...)                                                                                            \
        LG_CALL3(lg_nn_gru_cell_with, lg_cell_options, lg_nn_gru_cell_takes_c_in_hidden, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_gru_cell_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_cell_options *options);

typedef struct lg_rnn_cell_options {
        LG_OPTIONS_HEAD
        bool relu LG_DEFAULT;        /* ReLU instead of tanh; default false */
        bool no_bias LG_DEFAULT;     /* without "bias_ih" and "bias_hh"; default false */
        lg_dtype dtype LG_DEFAULT;   /* of the parameters; default LG_F32 */
        lg_device device LG_DEFAULT; /* of the parameters; default: the context's default device */
} lg_rnn_cell_options;
/* Makes one step of lg_nn_rnn(), as lg_nn_lstm_cell().
 * Example: lg_nn_rnn_cell(c, 28, 128, .relu = true) */
#define lg_nn_rnn_cell(...)                                                                                            \
        LG_CALL3(lg_nn_rnn_cell_with, lg_rnn_cell_options, lg_nn_rnn_cell_takes_c_in_hidden, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_rnn_cell_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_rnn_cell_options *options);

/* ---- states and lengths ---- */

typedef struct lg_run_rnn_options {
        LG_OPTIONS_HEAD
        lg_tensor *h0 LG_DEFAULT;      /* h before the first step; default 0 */
        lg_tensor *c0 LG_DEFAULT;      /* c before the first step, LSTM only; default 0 */
        lg_tensor *lengths LG_DEFAULT; /* i64 (N), the number of steps of each sample; default: all T; not for cells */
        lg_tensor **h LG_DEFAULT;      /* receives h after the last step of each sample; default: not wanted */
        lg_tensor **c LG_DEFAULT; /* receives c after the last step of each sample, LSTM only; default: not wanted */
} lg_run_rnn_options;
/* Runs a module of this header. x is (T, N, in), with .batch_first (N, T, in), or without a batch (T, in); T and N
 * may be 0. Returns h of the last layer after each step, (T, N, D R), where D is the number of directions and R is
 * the projection or H; states are (layers D, N, R) and for c (layers D, N, H), each layer's first direction before
 * its second. Without a batch they have no N. Cells take x (N, in) or (in) and states (N, H) or (H), and return h.
 *
 * With lengths, the results are those of PyTorch's packed sequences: sample n has lengths[n] steps, which may be 0.
 * The result is 0 after them, the second direction begins at the last of them, and x there has no influence. As
 * lg_forward() does, the call shows in traces and runs under lg_forward_params() and lg_recompute() of a module
 * around m. If it fails, *h and *c are NULL: with LG_ERR_SHAPE or LG_ERR_DTYPE for tensors that do not fit, with
 * LG_ERR_ARGUMENT if m is not of this header or a length is not in [0, T], which a GPU reports when it is next
 * waited for.
 * Example: lg_run_rnn(m, x, .h0 = h, .lengths = lengths, .h = &h) */
#define lg_run_rnn(...) LG_CALL2(lg_run_rnn_with, lg_run_rnn_options, lg_run_rnn_takes_m_x, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_run_rnn_with(lg_module *m, lg_tensor *x, const lg_run_rnn_options *options);

LG_END_C
#endif
