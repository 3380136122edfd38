/* recurrent.c - one recurrent layer in one direction: tanh, ReLU, LSTM, GRU; kernels/recurrent.h has the formulas.
 *
 * The derivative of first order is a kernel. For higher orders the layer is computed again by ops, step by step, from
 * copies of its inputs, and the derivative is that of these ops. */
#include "recurrent.h"

#define RECURRENT_FIELDS(FIELD) FIELD(int, kind, -1) FIELD(bool, reverse, false) FIELD(bool, narrow, false)
LG__ATTRIBUTES(recurrent, RECURRENT_FIELDS)

enum { X, W_IH, W_HH, B_IH, B_HH, W_HR, H0, C0, LENGTHS, INPUTS };
enum { Y, H, C, GATES, CELLS };

static lg_recurrent_args args_of(lg_tensor *const *in, const recurrent_attributes *a)
{
        const void *data[INPUTS];
        for (int i = 0; i < INPUTS; i++)
                data[i] = in[i] ? lg__data(in[i]) : NULL;
        const int64_t *x = in[X]->at.shape.size;
        return (lg_recurrent_args){.dtype = in[X]->at.dtype,
                                   .kind = (lg_recurrent_kind)a->kind,
                                   .reverse = a->reverse,
                                   .narrow = a->narrow,
                                   .origin = LG__ORIGIN_RECURRENT,
                                   .steps = x[0],
                                   .batch = x[1],
                                   .inputs = x[2],
                                   .hidden = in[W_IH]->at.shape.size[0] / lg__recurrent_gates(a->kind),
                                   .projection = in[W_HR] ? in[W_HR]->at.shape.size[0] : 0,
                                   .x = data[X],
                                   .w_ih = data[W_IH],
                                   .w_hh = data[W_HH],
                                   .b_ih = data[B_IH],
                                   .b_hh = data[B_HH],
                                   .w_hr = data[W_HR],
                                   .h0 = data[H0],
                                   .c0 = data[C0],
                                   .lengths = data[LENGTHS]};
}

/* Sets the shapes of the results. If a derivative may need them, gates and cells are kept, or what the device has in
 * their place, else they are empty. */
static bool infer(lg__call *call)
{
        const recurrent_attributes *a = call->attributes;
        const lg_recurrent_args k = args_of(call->in, a);
        bool keeps = false;
        for (int i = 0; i < LENGTHS; i++)
                keeps = keeps || (call->in[i] && call->ctx->recording && lg_requires_grad(call->in[i]));
        const lg_device_api *api = call->device->api;
        const int64_t reserve = keeps && api->recurrent_reserve ? api->recurrent_reserve(call->device->queue, &k) : 0;
        const bool lstm = a->kind == LG_RECURRENT_LSTM, gated = lstm || a->kind == LG_RECURRENT_GRU;
        const int64_t state = call->in[W_HH]->at.shape.size[1];
        for (int i = 0; i < call->out_count; i++)
                call->out_at[i].dtype = call->in[X]->at.dtype;
        if (reserve)
                call->out_at[GATES].dtype = LG_U8;
        call->out_at[Y].shape = LG_SHAPE(k.steps, k.batch, state);
        call->out_at[H].shape = LG_SHAPE(k.batch, state);
        call->out_at[C].shape = LG_SHAPE(lstm ? k.batch : 0, k.hidden);
        call->out_at[GATES].shape =
                reserve ? LG_SHAPE(reserve) : LG_SHAPE(keeps && gated ? k.steps : 0, k.batch, 4, k.hidden);
        call->out_at[CELLS].shape = LG_SHAPE(keeps && lstm && !reserve ? k.steps : 0, k.batch, k.hidden);
        return true;
}

static void *data_or_null(const lg_tensor *t)
{
        return lg__layout_numel(&t->at) ? lg__data(t) : NULL;
}

/* Completes k by what is kept for the derivative. */
static void set_kept(lg_recurrent_args *k, lg_tensor *const *out)
{
        k->gates = data_or_null(out[GATES]);
        k->cells = data_or_null(out[CELLS]);
        k->reserve = out[GATES]->at.shape.ndim == 1 ? out[GATES]->at.shape.size[0] : 0;
}

/* Returns the floating-point operations of a forward's products. */
static double work_of(const lg_recurrent_args *k)
{
        const int gates = k->kind == LG_RECURRENT_LSTM ? 4 : k->kind == LG_RECURRENT_GRU ? 3 : 1;
        const int64_t state = k->projection ? k->projection : k->hidden;
        return 2.0 * (double)k->steps * (double)k->batch * (double)k->hidden *
               (gates * ((double)k->inputs + (double)state) + (double)k->projection);
}

static bool forward(lg__call *call)
{
        lg_recurrent_args k = args_of(call->in, call->attributes);
        k.y = lg__data(call->out[Y]);
        k.h = lg__data(call->out[H]);
        k.c = lg__data(call->out[C]);
        set_kept(&k, call->out);
        lg__device_work(call->device, work_of(&k));
        return LG__RUN(call->device, "recurrent", recurrent, &k);
}

static bool fused(lg__vjp *v)
{
        const lg_tensor *x = v->in[X];
        lg_recurrent_vjp_args k = {.layer = args_of(v->in, v->attributes)};
        void **const to[] = {[X] = &k.dx,       [W_IH] = &k.dw_ih, [W_HH] = &k.dw_hh, [B_IH] = &k.db_ih,
                             [B_HH] = &k.db_hh, [W_HR] = &k.dw_hr, [H0] = &k.dh0,     [C0] = &k.dc0};
        const void **const from[] = {[Y] = &k.dy, [H] = &k.dh, [C] = &k.dc};
        for (int i = 0; i < 3; i++) {
                const lg_tensor *g = v->grad[i] ? lg_contiguous(v->grad[i]) : NULL;
                if (v->grad[i] && !g)
                        return false;
                *from[i] = g ? lg__data(g) : NULL;
        }
        k.layer.y = lg__data(v->out[Y]);
        set_kept(&k.layer, v->out);
        for (int i = 0; i < LENGTHS; i++) {
                if (!v->needs[i])
                        continue;
                if (!(v->grad_in[i] =
                              lg__tensor_empty(v->ctx, x->storage->device->id, x->at.dtype, lg__input_shape(v, i))))
                        return false;
                *to[i] = lg__data(v->grad_in[i]);
        }
        lg__device_work(x->storage->device, 2 * work_of(&k.layer));
        return LG__RUN(x->storage->device, "recurrent", recurrent_vjp, &k);
}

/* ---- the same layer, made of ops ---- */

/* Computes a cell from the parts of the gates that come from the input, i, and from the state, s. */
static lg_tensor *cell(int kind, lg_tensor *i, lg_tensor *s, lg_tensor *h, lg_tensor **c)
{
        lg_tensor *a[4], *b[4];
        const int64_t gates = lg__recurrent_gates(kind);
        if (gates == 1) {
                lg_tensor *sum = lg_add(i, s);
                return kind == LG_RECURRENT_RELU ? lg_relu(sum) : lg_tanh(sum);
        }
        if (!lg_chunk(i, gates, 1, a, 4) || !lg_chunk(s, gates, 1, b, 4))
                return NULL;
        lg_tensor *first = lg_sigmoid(lg_add(a[0], b[0])), *second = lg_sigmoid(lg_add(a[1], b[1]));
        if (kind == LG_RECURRENT_GRU) {
                lg_tensor *n = lg_tanh(lg_add(a[2], lg_mul(first, b[2])));
                return lg_add(n, lg_mul(second, lg_sub(h, n)));
        }
        lg_tensor *g = lg_tanh(lg_add(a[2], b[2])), *o = lg_sigmoid(lg_add(a[3], b[3]));
        *c = lg_add(lg_mul(second, *c), lg_mul(first, g));
        return lg_mul(o, lg_tanh(*c));
}

/* Computes y, h and c of all steps into ret; ys has room for the steps. */
static bool run_steps(lg_tensor *const *in, const recurrent_attributes *a, lg_tensor **ys, lg_tensor **ret)
{
        const lg_recurrent_args k = args_of(in, a);
        lg_tensor *x = in[X], *zero = lg__constant(x, 0), *lasts = NULL;
        lg_tensor *h = in[H0] ? in[H0] : lg_expand(zero, LG_SHAPE(k.batch, in[W_HH]->at.shape.size[1]));
        lg_tensor *c = in[C0] ? in[C0] : lg_expand(zero, LG_SHAPE(k.batch, k.hidden));
        if (in[LENGTHS]) { /* (steps, batch, 1): whether the sample has not ended */
                lg_tensor *t = lg_arange(x->ctx, 0, (double)k.steps, 1, .dtype = LG_I64, .device = lg_device_of(x));
                lasts = lg_unsqueeze(lg_lt(lg_unsqueeze(t, 1), in[LENGTHS]), 2);
                x = lg_where(lasts, x, zero);
        }
        lg_tensor *gates = lg_linear(x, in[W_IH], in[B_IH]);
        for (int64_t i = 0; i < k.steps; i++) {
                const int64_t t = a->reverse ? k.steps - 1 - i : i;
                lg_tensor *next = c;
                lg_tensor *y = cell(a->kind, lg_select(gates, 0, t), lg_linear(h, in[W_HH], in[B_HH]), h, &next);
                y = in[W_HR] ? lg_linear(y, in[W_HR], NULL) : y;
                lg_tensor *now = lasts ? lg_select(lasts, 0, t) : NULL;
                ys[t] = now ? lg_where(now, y, zero) : y;
                h = now ? lg_where(now, y, h) : y;
                c = now && next != c ? lg_where(now, next, c) : next;
                if (!c || !h)
                        return false;
        }
        ret[Y] = k.steps ? lg_stack(LG_LIST_OF(k.steps, ys), 0) : NULL;
        ret[H] = h;
        ret[C] = c;
        return lg__ok(x->ctx);
}

static bool vjp(lg__vjp *v)
{
        lg_tensor *in[INPUTS], *by[INPUTS], *results[3], *outputs[3], *grads[3];
        const int64_t steps = v->in[X]->at.shape.size[0];
        const size_t bytes = (size_t)steps * sizeof *outputs;
        int64_t inputs = 0, count = 0;
        for (int i = 0; i < INPUTS; i++) { /* copies, since one input may depend on another */
                in[i] = v->in[i] && v->needs[i] ? lg_copy(v->in[i], LG_NO_DEVICE) : v->in[i];
                if (v->needs[i])
                        by[inputs++] = in[i];
        }
        lg_tensor **ys = lg__alloc(v->ctx, bytes ? bytes : 1);
        const bool ok = ys && run_steps(in, v->attributes, ys, results);
        lg__free(v->ctx, ys, bytes ? bytes : 1);
        for (int i = 0; i < 3 && ok; i++) {
                if (!v->grad[i] || !results[i] || !lg_requires_grad(results[i]))
                        continue;
                outputs[count] = results[i];
                grads[count++] = v->grad[i];
        }
        for (int64_t i = 0; i < inputs && !count; i++)
                by[i] = NULL;
        if (ok && count)
                lg_grad(LG_LIST_OF(count, outputs), LG_LIST_OF(inputs, by), .grads = LG_LIST_OF(count, grads),
                        .result = by, .create_graph = true);
        for (int i = 0, k = 0; i < INPUTS; i++)
                if (v->needs[i] && !(v->grad_in[i] = by[k++]))
                        v->grad_in[i] = lg_expand(lg__constant(v->in[X], 0), lg__input_shape(v, i));
        return lg__ok(v->ctx);
}

#define BY_ALL (LG__BY(LENGTHS) - 1)
#define SAVED LG__FLOAT, LG__ROW_MAJOR, .saved_for = BY_ALL
/* Writes the parts of a weight or bias, `rows` each, in ONNX's order of gates, as `to`. */
static void add_gates(lg__form *f, const char *to, const char *from, int kind, int64_t rows)
{
        const long long n = rows;
        if (kind == LG_RECURRENT_LSTM) /* i f g o to i o f g */
                lg__form_add(f,
                             "i, f, c, o = Split(%s, [%lld %lld %lld %lld], axis=0); %s = Concat(i, o, f, c, axis=0); ",
                             from, n, n, n, n, to);
        else if (kind == LG_RECURRENT_GRU) /* r z n to z r n */
                lg__form_add(f, "i, f, c = Split(%s, [%lld %lld %lld], axis=0); %s = Concat(f, i, c, axis=0); ", from,
                             n, n, n, to);
        else
                lg__form_add(f, "%s = Identity(%s); ", to, from);
}

static bool form(lg__form *f, const lg__call *call)
{
        static const char *const names[] = {[LG_RECURRENT_LSTM] = "LSTM", [LG_RECURRENT_GRU] = "GRU"};
        const recurrent_attributes *a = call->attributes;
        const bool lstm = a->kind == LG_RECURRENT_LSTM, gated = lstm || a->kind == LG_RECURRENT_GRU;
        const long long hidden = call->in[W_HH]->at.shape.size[1];
        add_gates(f, "wi", "w_ih", a->kind, hidden);
        add_gates(f, "wh", "w_hh", a->kind, hidden);
        if (call->in[B_IH]) {
                add_gates(f, "bi", "b_ih", a->kind, hidden);
                add_gates(f, "bh", "b_hh", a->kind, hidden);
                lg__form_add(f, "bias = Unsqueeze(Concat(bi, bh, axis=0), [0]); ");
        }
        lg__form_add(f, "all, last%s = %s(x, Unsqueeze(wi, [0]), Unsqueeze(wh, [0]), %s, %s, %s%s, hidden_size=%lld",
                     lstm ? ", cell" : "", gated ? names[a->kind] : "RNN", call->in[B_IH] ? "bias" : "",
                     call->in[LENGTHS] ? "Cast(lengths, to=i32)" : "", call->in[H0] ? "Unsqueeze(h0, [0])" : "",
                     !lstm          ? ""
                     : call->in[C0] ? ", Unsqueeze(c0, [0])"
                                    : ", ",
                     hidden);
        lg__form_add(
                f, "%s%s%s); y = Squeeze(all, [1]); h = Squeeze(last, [0])%s",
                a->reverse ? ", direction='reverse'" : "", a->kind == LG_RECURRENT_GRU ? ", linear_before_reset=1" : "",
                a->kind == LG_RECURRENT_RELU ? ", activations=('Relu')" : "", lstm ? "; c = Squeeze(cell, [0])" : "");
        return !call->in[W_HR];
}

LG__DEFINE(recurrent,
           LG__OPERANDS({"x", SAVED}, {"w_ih", SAVED}, {"w_hh", SAVED}, {"b_ih", SAVED, .optional = true},
                        {"b_hh", SAVED, .optional = true}, {"w_hr", SAVED, .optional = true},
                        {"h0", SAVED, .optional = true}, {"c0", SAVED, .optional = true},
                        {"lengths", LG__INDEX, LG__ROW_MAJOR, .optional = true, .saved_for = BY_ALL}),
           LG__RESULTS({"y", .saved_for = BY_ALL}, {"h"}, {"c"}, {"gates", .saved_for = BY_ALL},
                       {"cells", .saved_for = BY_ALL}),
           LG__HAS(recurrent), .infer = infer, .forward = forward, .vjp = vjp, .fused = fused, .form = form)

/* ---- dtypes and checks ---- */

typedef struct arguments {
        recurrent_attributes a;
        lg_tensor **ret_h, **ret_c;
} arguments;

/* Checks the shape of an input that was given; 0 in `shape` accepts any size. */
static bool fits(const lg__call *call, int i, lg_shape shape)
{
        const lg_tensor *t = call->in[i];
        bool ok = !t || t->at.shape.ndim == shape.ndim;
        for (int d = 0; t && ok && d < shape.ndim; d++)
                ok = !shape.size[d] || t->at.shape.size[d] == shape.size[d];
        return ok || lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s and %s is %s, which needs shape %s", call->op->name,
                              lg__tensor_text(call->in[X]).s, lg__operand_name(call->op, i), lg__tensor_text(t).s,
                              lg__shape_text(shape).s);
}

static bool check(const lg__call *call, int64_t gates)
{
        const lg_tensor *x = call->in[X];
        const lg_shape w = call->in[W_IH]->at.shape, s = x->at.shape;
        const int64_t down = w.size[0], hidden = down / gates;
        if (w.ndim != 2 || hidden < 1 || down % gates || (call->in[W_HR] && call->in[W_HR]->at.shape.size[0] < 1))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: w_ih is %s; it is (%lld hidden, inputs)", call->op->name,
                                lg__tensor_text(call->in[W_IH]).s, (long long)gates);
        if (s.ndim != 3 || s.size[2] != w.size[1])
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it is (steps, batch, %lld)", call->op->name,
                                lg__tensor_text(x).s, (long long)w.size[1]);
        const int64_t state = call->in[W_HR] ? call->in[W_HR]->at.shape.size[0] : hidden;
        if (!fits(call, W_HH, LG_SHAPE(down, state)) || !fits(call, B_IH, LG_SHAPE(down)) ||
            !fits(call, B_HH, LG_SHAPE(down)) || !fits(call, W_HR, LG_SHAPE(state, hidden)))
                return false;
        for (int i = H0; i <= LENGTHS; i++) {
                const lg_shape shape =
                        i == LENGTHS ? LG_SHAPE(s.size[1]) : LG_SHAPE(s.size[1], i == H0 ? state : hidden);
                if (call->in[i] && !lg__shape_equal(call->in[i]->at.shape, shape))
                        return fits(call, i, shape) ||
                               lg__fail(call->ctx, LG_ERR_SHAPE, "%s: %s is %s; it needs shape %s", call->op->name,
                                        lg__operand_name(call->op, i), lg__tensor_text(call->in[i]).s,
                                        lg__shape_text(shape).s);
        }
        return true;
}

/* Computes 16-bit layers in f32 and rounds their results once. */
static lg_tensor *compose(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg_tensor *in[INPUTS], *out[5];
        if (!check(call, lg__recurrent_gates(p->a.kind)))
                return NULL;
        const lg_dtype dtype = lg__common_dtype(call->in, LENGTHS), wide = dtype == LG_F64 ? LG_F64 : LG_F32;
        recurrent_attributes a = p->a;
        a.narrow = dtype == LG_F16 || dtype == LG_BF16;
        for (int i = 0; i < INPUTS; i++)
                in[i] = call->in[i] && i != LENGTHS ? lg_cast(call->in[i], wide) : call->in[i];
        if (!lg__apply(LG__OP(recurrent), in, INPUTS, &a, out))
                return NULL;
        lg__tensor_release(out[GATES]);
        lg__tensor_release(out[CELLS]);
        if (p->ret_h)
                *p->ret_h = lg_cast(out[H], dtype);
        if (p->ret_c)
                *p->ret_c = lg_cast(out[C], dtype);
        return lg_cast(out[Y], dtype);
}

#define PARAMETER(name) name, LG__FLOAT
#define LAYER(of)                                                                                                      \
        {                                                                                                              \
                .name = #of, .autocast = LG__LOW, .compose = compose,                                                  \
                LG__OPERANDS({PARAMETER("x")}, {PARAMETER("w_ih")}, {PARAMETER("w_hh")},                               \
                             {PARAMETER("b_ih"), .optional = true}, {PARAMETER("b_hh"), .optional = true},             \
                             {PARAMETER("w_hr"), .optional = true}, {PARAMETER("h0"), .optional = true},               \
                             {PARAMETER("c0"), .optional = true}, {"lengths", LG__INDEX, .optional = true})            \
        }
static const lg__op layers[] = {[LG_RECURRENT_TANH] = LAYER(rnn_tanh),
                                [LG_RECURRENT_RELU] = LAYER(rnn_relu),
                                [LG_RECURRENT_LSTM] = LAYER(lstm),
                                [LG_RECURRENT_GRU] = LAYER(gru)};

lg_tensor *lg__recurrent(lg_tensor *x, const lg__recurrent_layer *l, lg_tensor **ret_h, lg_tensor **ret_c)
{
        lg_tensor *in[INPUTS] = {x, l->w_ih, l->w_hh, l->b_ih, l->b_hh, l->w_hr, l->h0, l->c0, l->lengths};
        return lg__apply(&layers[l->kind], in, INPUTS, &(arguments){{l->kind, l->reverse, false}, ret_h, ret_c}, NULL);
}
