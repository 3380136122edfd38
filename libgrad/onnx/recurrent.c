/* recurrent.c - ONNX's LSTM, GRU and RNN. */
#include "import.h"
#include "ops/recurrent.h"

/* The operands of one direction. */
typedef struct direction {
        lg_tensor *w, *r, *bw, *br, *h0, *c0;
} direction;

/* Puts the gates of t, blocks of rows, into libgrad's order: i f g o for LSTM, r z n for GRU. t may be NULL. */
static lg_tensor *in_our_order(lg_recurrent_kind kind, lg_tensor *t)
{
        static const int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
        const int64_t gates = lg__recurrent_gates(kind);
        lg_tensor *blocks[4];
        if (!t || gates == 1)
                return t;
        const int64_t rows = t->at.shape.size[0] / gates;
        for (int i = 0; i < gates; i++)
                blocks[i] = lg_narrow(t, 0, (gates == 4 ? lstm : gru)[i] * rows, rows);
        return lg_cat((lg_list){gates, blocks}, 0);
}

static bool take_direction(const lg__onnx_call *c, lg_recurrent_kind kind, int64_t d, direction *ret)
{
        lg_tensor *b = lg__onnx_in(c, 3) ? lg_select(c->in[3], 0, d) : NULL;
        const bool last = lg__onnx_int(c, "layout", 0);
        ret->w = in_our_order(kind, lg_select(c->in[1], 0, d));
        ret->r = in_our_order(kind, lg_select(c->in[2], 0, d));
        if (b) {
                const int64_t rows = b->at.shape.size[0] / 2;
                ret->bw = in_our_order(kind, lg_narrow(b, 0, 0, rows));
                ret->br = in_our_order(kind, lg_narrow(b, 0, rows, rows));
        }
        ret->h0 = lg__onnx_in(c, 5) ? lg_select(c->in[5], last ? 1 : 0, d) : NULL;
        ret->c0 = lg__onnx_in(c, 6) ? lg_select(c->in[6], last ? 1 : 0, d) : NULL;
        return lg__ok(c->ctx);
}

/* Runs a GRU whose reset gate comes before the product with the hidden state, step by step. Sets *ret_h. */
static lg_tensor *gru_steps(const lg__onnx_call *c, lg_tensor *x, const direction *d, bool reverse, lg_tensor *lengths,
                            lg_tensor **ret_h)
{
        const int64_t steps = x->at.shape.size[0], n = x->at.shape.size[1], hidden = d->r->at.shape.size[1];
        const lg_device device = x->storage->device->id;
        lg_tensor *zero = lg_zeros(c->ctx, LG_SHAPE(n, hidden), .dtype = x->at.dtype, .device = device);
        lg_tensor *h = d->h0 ? d->h0 : zero, *inputs = lg_linear(x, d->w, d->bw);
        lg_tensor *r_rz = lg_narrow(d->r, 0, 0, 2 * hidden), *r_n = lg_narrow(d->r, 0, 2 * hidden, hidden);
        lg_tensor *b_rz = d->br ? lg_narrow(d->br, 0, 0, 2 * hidden) : NULL;
        lg_tensor *b_n = d->br ? lg_narrow(d->br, 0, 2 * hidden, hidden) : NULL;
        const size_t bytes = (size_t)(steps + 1) * sizeof(lg_tensor *);
        lg_tensor **ys = lg__alloc(c->ctx, bytes), *y = NULL;
        if (!ys)
                return NULL;
        for (int64_t i = 0; i < steps && lg__ok(c->ctx); i++) {
                const int64_t t = reverse ? steps - 1 - i : i;
                lg_tensor *in = lg_select(inputs, 0, t);
                lg_tensor *rz = lg_sigmoid(lg_add(lg_narrow(in, 1, 0, 2 * hidden), lg_linear(h, r_rz, b_rz)));
                lg_tensor *reset = lg_narrow(rz, 1, 0, hidden), *keep = lg_narrow(rz, 1, hidden, hidden);
                lg_tensor *new =
                        lg_tanh(lg_add(lg_narrow(in, 1, 2 * hidden, hidden), lg_linear(lg_mul(reset, h), r_n, b_n)));
                lg_tensor *next = lg_lerp(new, h, keep);
                lg_tensor *there = lengths ? lg_reshape(lg_gt_scalar(lengths, (double)t), LG_SHAPE(n, 1)) : NULL;
                ys[t] = there ? lg_where(there, next, zero) : next;
                h = there ? lg_where(there, next, h) : next;
        }
        *ret_h = h;
        if (lg__ok(c->ctx) && steps)
                y = lg_stack((lg_list){steps, ys}, 0);
        lg__free(c->ctx, ys, bytes);
        return y;
}

/* Checks what libgrad lacks: other activations, clipping, peepholes, joined gates. */
static bool is_usual(const lg__onnx_call *c, lg_recurrent_kind kind)
{
        static const char *const names[][3] = {{"Sigmoid", "Tanh", "Tanh"}, {"Sigmoid", "Tanh", ""}, {"Tanh", "", ""}};
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, "activations");
        const int64_t each = kind == LG_RECURRENT_LSTM ? 3 : kind == LG_RECURRENT_GRU ? 2 : 1;
        for (int64_t i = 0; a && a->strings && i < a->count; i++) {
                const char *usual = kind == LG_RECURRENT_RELU ? "Relu" : names[3 - each][i % each];
                if (strcmp(a->strings[i], usual) != 0)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "activation %s, where libgrad has %s", a->strings[i],
                                             usual);
        }
        if (lg__onnx_attribute_of(c, "clip") || lg__onnx_in(c, 7) || lg__onnx_int(c, "input_forget", 0))
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "libgrad has no clipping, peepholes and joined gates");
        return true;
}

static lg_tensor *recurrent(lg__onnx_call *c, lg_recurrent_kind kind)
{
        const char *how = lg__onnx_text(c, "direction", "forward");
        const bool batch_first = lg__onnx_int(c, "layout", 0), both = !strcmp(how, "bidirectional");
        const bool by_steps = kind == LG_RECURRENT_GRU && !lg__onnx_int(c, "linear_before_reset", 0);
        lg_tensor *x = c->in[0], *lengths = lg__onnx_in(c, 4), *ys[2], *hs[2], *cs[2];
        const int directions = both ? 2 : 1;
        if (!is_usual(c, kind) || x->at.shape.ndim != 3 || c->in[1]->at.shape.ndim != 3 || c->in[2]->at.shape.ndim != 3)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operands have other than 3 dimensions");
        if (c->in[1]->at.shape.size[0] != directions)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "weights of %lld directions",
                                     (long long)c->in[1]->at.shape.size[0]);
        x = batch_first ? lg_transpose(x, 0, 1) : x;
        lengths = lengths ? lg_cast(lengths, LG_I64) : NULL;
        for (int d = 0; d < directions; d++) {
                direction of = {0};
                const bool reverse = d == 1 || !strcmp(how, "reverse");
                if (!x || !take_direction(c, kind, d, &of))
                        return NULL;
                const lg__recurrent_layer layer = {.kind = kind,
                                                   .reverse = reverse,
                                                   .w_ih = of.w,
                                                   .w_hh = of.r,
                                                   .b_ih = of.bw,
                                                   .b_hh = of.br,
                                                   .h0 = of.h0,
                                                   .c0 = of.c0,
                                                   .lengths = lengths};
                ys[d] = by_steps ? gru_steps(c, x, &of, reverse, lengths, &hs[d])
                                 : lg__recurrent(x, &layer, &hs[d], &cs[d]);
                if (!ys[d])
                        return NULL;
        }
        const int at = batch_first ? 1 : 0;
        c->out[1] = lg_stack((lg_list){directions, hs}, at);
        if (kind == LG_RECURRENT_LSTM)
                c->out[2] = lg_stack((lg_list){directions, cs}, at);
        lg_tensor *y = lg_stack((lg_list){directions, ys}, 1); /* (steps, directions, batch, hidden) */
        return batch_first && y ? lg_permute(y, LG_DIMS(2, 0, 1, 3)) : y;
}

LG__ONNX(LSTM)
{
        return recurrent(c, LG_RECURRENT_LSTM);
}

LG__ONNX(GRU)
{
        return recurrent(c, LG_RECURRENT_GRU);
}

LG__ONNX(RNN)
{
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, "activations");
        return recurrent(c, a && a->strings && a->count && !strcmp(a->strings[0], "Relu") ? LG_RECURRENT_RELU
                                                                                          : LG_RECURRENT_TANH);
}
