/* recurrent.c - RNN, LSTM, GRU and their cells: layers and directions of the op recurrent. */
#include <math.h>
#include "nn.h"
#include "ops/recurrent.h"

#define MOST_LAYERS 1000

/* The options of a module, which it stores. */
typedef struct network {
        lg_recurrent_kind kind;
        bool cell, batch_first, bidirectional, no_bias;
        int64_t in, hidden, layers, projection;
        double dropout;
        lg_dtype dtype;
        lg_device device;
} network;

/* The arguments and results of a run. */
typedef struct run {
        lg_tensor *h0, *c0, *lengths;
        lg_tensor *h, *c;
        bool wants_h, wants_c;
} run;

static int64_t directions(const network *n)
{
        return n->bidirectional ? 2 : 1;
}

static int64_t state_size(const network *n)
{
        return n->projection ? n->projection : n->hidden;
}

/* ---- construction ---- */

/* Adds a parameter of a direction of a layer. Its name is `name` for a cell, else such as "weight_ih_l0_reverse". */
static bool add(lg_module *m, const network *n, const char *name, int64_t layer, int64_t direction, lg_shape shape)
{
        char text[64];
        if (n->cell)
                snprintf(text, sizeof text, "%s", name);
        else
                snprintf(text, sizeof text, "%s_l%lld%s", name, (long long)layer, direction ? "_reverse" : "");
        return lg__module_uniform(m, text, 1 / sqrt((double)n->hidden), shape, n->dtype, n->device);
}

static bool fill(lg_module *m, const void *options)
{
        const network *n = options;
        const int64_t down = lg__recurrent_gates(n->kind) * n->hidden, state = state_size(n);
        for (int64_t i = 0; i < n->layers * directions(n); i++) {
                const int64_t layer = i / directions(n), direction = i % directions(n);
                const int64_t in = layer ? state * directions(n) : n->in;
                if (!add(m, n, "weight_ih", layer, direction, LG_SHAPE(down, in)) ||
                    !add(m, n, "weight_hh", layer, direction, LG_SHAPE(down, state)) ||
                    (!n->no_bias && (!add(m, n, "bias_ih", layer, direction, LG_SHAPE(down)) ||
                                     !add(m, n, "bias_hh", layer, direction, LG_SHAPE(down)))) ||
                    (n->projection && !add(m, n, "weight_hr", layer, direction, LG_SHAPE(state, n->hidden))))
                        return false;
        }
        return true;
}

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user);

static lg_module *make(lg_ctx *c, const char *op, const char *type, network n)
{
        n.layers = n.layers ? n.layers : 1;
        if (n.in < 0 || n.hidden < 1 || n.hidden > INT64_MAX / 8 || n.layers < 1 || n.layers > MOST_LAYERS)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: %lld inputs, %lld hidden, %lld layers; they are at least 0, 1 and 1, and there are "
                        "at most %d layers",
                        op, (long long)n.in, (long long)n.hidden, (long long)n.layers, MOST_LAYERS);
        if (n.projection < 0 || n.projection >= n.hidden)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: projection %lld is not in [0, %lld)", op,
                                (long long)n.projection, (long long)n.hidden);
        if (!(n.dropout >= 0 && n.dropout <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: dropout %g is not in [0, 1]", op, n.dropout);
        if (!lg__module_dtype(c, op, n.dtype))
                return NULL;
        return lg__module_build(c, type, forward, &n, sizeof n, fill, &n);
}

lg_module *lg_nn_lstm_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_lstm_options *options)
{
        lg_lstm_options o;
        if (!lg__take(c, "lg_nn_lstm", options, &o, sizeof o))
                return NULL;
        return make(c, "lg_nn_lstm", "LSTM",
                    (network){.kind = LG_RECURRENT_LSTM,
                              .batch_first = o.batch_first,
                              .bidirectional = o.bidirectional,
                              .no_bias = o.no_bias,
                              .in = in,
                              .hidden = hidden,
                              .layers = o.layers,
                              .projection = o.projection,
                              .dropout = o.dropout,
                              .dtype = o.dtype,
                              .device = o.device});
}

lg_module *lg_nn_gru_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_gru_options *options)
{
        lg_gru_options o;
        if (!lg__take(c, "lg_nn_gru", options, &o, sizeof o))
                return NULL;
        return make(c, "lg_nn_gru", "GRU",
                    (network){.kind = LG_RECURRENT_GRU,
                              .batch_first = o.batch_first,
                              .bidirectional = o.bidirectional,
                              .no_bias = o.no_bias,
                              .in = in,
                              .hidden = hidden,
                              .layers = o.layers,
                              .dropout = o.dropout,
                              .dtype = o.dtype,
                              .device = o.device});
}

lg_module *lg_nn_rnn_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_rnn_options *options)
{
        lg_rnn_options o;
        if (!lg__take(c, "lg_nn_rnn", options, &o, sizeof o))
                return NULL;
        return make(c, "lg_nn_rnn", "RNN",
                    (network){.kind = o.relu ? LG_RECURRENT_RELU : LG_RECURRENT_TANH,
                              .batch_first = o.batch_first,
                              .bidirectional = o.bidirectional,
                              .no_bias = o.no_bias,
                              .in = in,
                              .hidden = hidden,
                              .layers = o.layers,
                              .dropout = o.dropout,
                              .dtype = o.dtype,
                              .device = o.device});
}

static lg_module *make_cell(lg_ctx *c, const char *op, const char *type, lg_recurrent_kind kind, int64_t in,
                            int64_t hidden, const lg_cell_options *o)
{
        return make(c, op, type,
                    (network){.kind = kind,
                              .cell = true,
                              .no_bias = o->no_bias,
                              .in = in,
                              .hidden = hidden,
                              .dtype = o->dtype,
                              .device = o->device});
}

lg_module *lg_nn_lstm_cell_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_cell_options *options)
{
        lg_cell_options o;
        return lg__take(c, "lg_nn_lstm_cell", options, &o, sizeof o)
                       ? make_cell(c, "lg_nn_lstm_cell", "LSTMCell", LG_RECURRENT_LSTM, in, hidden, &o)
                       : NULL;
}

lg_module *lg_nn_gru_cell_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_cell_options *options)
{
        lg_cell_options o;
        return lg__take(c, "lg_nn_gru_cell", options, &o, sizeof o)
                       ? make_cell(c, "lg_nn_gru_cell", "GRUCell", LG_RECURRENT_GRU, in, hidden, &o)
                       : NULL;
}

lg_module *lg_nn_rnn_cell_with(lg_ctx *c, int64_t in, int64_t hidden, const lg_rnn_cell_options *options)
{
        lg_rnn_cell_options o;
        if (!lg__take(c, "lg_nn_rnn_cell", options, &o, sizeof o))
                return NULL;
        return make_cell(c, "lg_nn_rnn_cell", "RNNCell", o.relu ? LG_RECURRENT_RELU : LG_RECURRENT_TANH, in, hidden,
                         &(lg_cell_options){.no_bias = o.no_bias, .dtype = o.dtype, .device = o.device});
}

/* ---- running ---- */

/* Checks that a state, which may be NULL, is (layers D, N, size), or without N if `batch` is negative. */
static bool state_fits(const lg_module *m, const network *n, const char *name, const lg_tensor *t, int64_t batch,
                       int64_t size)
{
        const int64_t rows = n->layers * directions(n);
        const lg_shape shape = n->cell     ? batch < 0 ? LG_SHAPE(size) : LG_SHAPE(batch, size)
                                   : batch < 0 ? LG_SHAPE(rows, size)
                                           : LG_SHAPE(rows, batch, size);
        return !t || lg__shape_equal(t->at.shape, shape) ||
               lg__fail(m->object.ctx, LG_ERR_SHAPE, "%s: %s is %s; it needs shape %s", m->type, name,
                        lg__tensor_text(t).s, lg__shape_text(shape).s);
}

/* Checks x, the states and the lengths. *ret_batch becomes the size of the batch; -1: x has no batch. */
static bool check(const lg_module *m, const network *n, const lg_tensor *x, const run *r, int64_t *ret_batch)
{
        const lg_shape s = x->at.shape;
        const int full = n->cell ? 2 : 3;
        if ((s.ndim != full && s.ndim != full - 1) || s.size[s.ndim - 1] != n->in)
                return lg__fail(m->object.ctx, LG_ERR_SHAPE, "%s: x is %s; it is (%s%lld), or without a batch (%s%lld)",
                                m->type, lg__tensor_text(x).s,
                                n->cell          ? "N, "
                                : n->batch_first ? "N, T, "
                                                 : "T, N, ",
                                (long long)n->in, n->cell ? "" : "T, ", (long long)n->in);
        *ret_batch = s.ndim < full ? -1 : s.size[n->cell || n->batch_first ? 0 : 1];
        if (r->lengths && (n->cell || *ret_batch < 0))
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: lengths, but x has no %s", m->type,
                                n->cell ? "steps" : "batch");
        if (n->kind != LG_RECURRENT_LSTM && (r->c0 || r->wants_c))
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: it has no state c", m->type);
        return state_fits(m, n, "h0", r->h0, *ret_batch, state_size(n)) &&
               state_fits(m, n, "c0", r->c0, *ret_batch, n->hidden);
}

/* Returns a state as (layers D, N, size), or NULL for NULL. */
static lg_tensor *state_rows(const network *n, lg_tensor *t, int64_t batch, int64_t size)
{
        return t ? lg_reshape(t, LG_SHAPE(n->layers * directions(n), batch < 0 ? 1 : batch, size)) : NULL;
}

/* Returns the states of all layers and directions in the shape of the caller's. */
static lg_tensor *join_states(const network *n, lg_tensor **states, int64_t batch)
{
        if (n->cell)
                return batch < 0 ? lg_squeeze(states[0], LG_DIMS(0)) : states[0];
        lg_tensor *all = lg_stack(LG_LIST_OF(n->layers * directions(n), states), 0);
        return batch < 0 ? lg_squeeze(all, LG_DIMS(1)) : all;
}

/* Runs one direction of a layer, whose parameters begin with *part, and moves *part behind them. `number` counts
 * directions through all layers. */
static lg_tensor *run_direction(const network *n, lg_tensor *x, int64_t number, const run *r, const lg__part **part,
                                lg_tensor **ret_h, lg_tensor **ret_c)
{
        lg__recurrent_layer l = {.kind = n->kind, .reverse = number % directions(n) != 0, .lengths = r->lengths};
        lg_tensor **const parameters[] = {&l.w_ih, &l.w_hh, &l.b_ih, &l.b_hh, &l.w_hr};
        for (int i = 0; i < 5; i++) {
                if ((n->no_bias && (i == 2 || i == 3)) || (!n->projection && i == 4))
                        continue;
                *parameters[i] = (*part)->tensor;
                *part = (*part)->next;
        }
        l.h0 = r->h0 ? lg_select(r->h0, 0, number) : NULL;
        l.c0 = r->c0 ? lg_select(r->c0, 0, number) : NULL;
        return lg__recurrent(x, &l, ret_h, ret_c);
}

/* Runs all layers on x (T, N, in). hs and cs have room for the states of all directions. */
static lg_tensor *run_layers(const lg_module *m, const network *n, lg_tensor *x, const run *r, lg_tensor **hs,
                             lg_tensor **cs)
{
        const lg__part *part = m->parts;
        for (int64_t layer = 0; layer < n->layers && x; layer++) {
                lg_tensor *y[2];
                for (int64_t d = 0; d < directions(n); d++) {
                        const int64_t number = layer * directions(n) + d;
                        if (!(y[d] = run_direction(n, x, number, r, &part, &hs[number], &cs[number])))
                                return NULL;
                }
                x = n->bidirectional ? lg_cat(LG_LIST(y[0], y[1]), 2) : y[0];
                if (layer + 1 < n->layers && n->dropout > 0)
                        x = lg_dropout(x, n->dropout, .training = m->training);
        }
        return x;
}

/* Returns y in the caller's layout, and sets the states in r that are wanted. */
static lg_tensor *run_network(const lg_module *m, lg_tensor *x, run *r)
{
        const network *n = m->user;
        int64_t batch = -1;
        if (!check(m, n, x, r, &batch))
                return NULL;
        if (n->cell)
                x = lg_unsqueeze(batch < 0 ? lg_unsqueeze(x, 0) : x, 0);
        else
                x = batch < 0 ? lg_unsqueeze(x, 1) : n->batch_first ? lg_transpose(x, 0, 1) : x;
        r->h0 = state_rows(n, r->h0, batch, state_size(n));
        r->c0 = state_rows(n, r->c0, batch, n->hidden);
        const size_t count = (size_t)(n->layers * directions(n)), bytes = 2 * count * sizeof(lg_tensor *);
        lg_tensor **states = lg__ok(m->object.ctx) ? lg__alloc(m->object.ctx, bytes) : NULL;
        lg_tensor *y = states ? run_layers(m, n, x, r, states, states + count) : NULL;
        if (y && (r->wants_h || n->cell))
                r->h = join_states(n, states, batch);
        if (y && r->wants_c)
                r->c = join_states(n, states + count, batch);
        lg__free(m->object.ctx, states, bytes);
        if (!y || n->cell)
                return y ? r->h : NULL;
        return batch < 0 ? lg_squeeze(y, LG_DIMS(1)) : n->batch_first ? lg_transpose(y, 0, 1) : y;
}

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        lg_tensor *x = lg__module_input(m, inputs);
        (void)user;
        return x ? run_network(m, x, &(run){.h0 = NULL}) : NULL;
}

static bool run_typed(lg_module *m, lg_list inputs, lg_outputs *out, void *user)
{
        run *r = user;
        lg_tensor *y = run_network(m, inputs.items[0], r);
        *out = (lg_outputs){.count = 1, .items = {y}};
        if (r->wants_h)
                out->items[out->count++] = r->h;
        if (r->wants_c)
                out->items[out->count++] = r->c;
        return y != NULL;
}

lg_tensor *lg_run_rnn_with(lg_module *m, lg_tensor *x, const lg_run_rnn_options *options)
{
        lg_ctx *c = m ? m->object.ctx : lg__ctx_of(x);
        lg_run_rnn_options o;
        lg_outputs out;
        lg__take_without(options, &o, sizeof o);
        run r = {.h0 = o.h0, .c0 = o.c0, .lengths = o.lengths, .wants_h = o.h, .wants_c = o.c};
        lg_tensor *inputs[] = {x, o.h0, o.c0, o.lengths};
        if (o.h)
                *o.h = NULL;
        if (o.c)
                *o.c = NULL;
        if (!lg__take(c, "lg_run_rnn", options, &o, sizeof o) || (m && !lg__object_lasts(&m->object, "lg_run_rnn")))
                return NULL;
        if (m && m->forward != forward)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_run_rnn: %s is not an RNN, LSTM, GRU or a cell of these",
                                m->type);
        if (!lg__forward_typed(m, (lg_list){4, inputs}, &(lg__typed_call){"lg_run_rnn", run_typed, &r}, &out))
                return NULL;
        if (o.h)
                *o.h = out.items[1];
        if (o.c)
                *o.c = out.items[out.count - 1];
        return out.items[0];
}
