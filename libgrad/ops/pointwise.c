/* pointwise.c - the elementwise ops: shape rules, kernel calls and public functions. Their table is in pointwise_ops.c
 * and their derivatives are in pointwise_vjp.c; all are generated from kernels/pointwise.def. */
#include <math.h>
#include <string.h>
#include "pointwise.h"

static bool infer(lg__call *call, lg_dtype dtype)
{
        lg__layout *out = &call->out_at[0];
        bool same = true;
        lg__layout_copy(out, &call->in[0]->at);
        out->dtype = dtype;
        out->offset = 0;
        for (int i = 1; i < call->in_count; i++) {
                if (lg__same_shape(out, &call->in[i]->at))
                        continue;
                same = false;
                if (!lg__broadcast(call->ctx, call->op->name, out->shape, call->in[i]->at.shape, &out->shape))
                        return false;
        }
        if (same && lg__layout_is_contiguous(out)) {
                lg__layout_contiguous(out);
                return true;
        }
        memset(out->strides, 0, sizeof out->strides);
        if (!lg__shape_valid(call->ctx, call->op->name, out->shape))
                return false;
        for (int i = 0; i < call->in_count; i++)
                if (lg__keep_layout(out, &call->in[i]->at))
                        break;
        return true;
}

/* Returns whether parameter i of the op is a lower bound (1), an upper bound (2) or neither (0). */
static int bound_of(int id, int i)
{
        if (id == LG_PW_clamp || id == LG_PW_hardtanh)
                return 1 + i;
        return id == LG_PW_maximum_scalar ? 1 : id == LG_PW_minimum_scalar ? 2 : 0;
}

bool lg__pointwise_numbers(lg_ctx *c, const char *name, int id, lg_dtype d, double numbers[2])
{
        if (!lg__pointwise_takes(c, name, id, numbers[0], numbers[1]))
                return false;
        for (int i = 0; i < 2 && !lg__dtype_float(d); i++) {
                const int bound = bound_of(id, i);
                if (d == LG_BOOL)
                        numbers[i] = bound ? fmax(0, fmin(numbers[i], 1)) : numbers[i] != 0;
                else if (!(bound == 1 && numbers[i] < 0) && !(bound == 2 && numbers[i] > 0) &&
                         !lg__dtype_holds(c, name, d, numbers[i]))
                        return false;
        }
        return true;
}

bool lg__pointwise_takes(lg_ctx *c, const char *name, int id, double p0, double p1)
{
        if (id == LG_PW_softshrink && !(p0 >= 0))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: lambda is %g; 0 or more", name, p0);
        if (id == LG_PW_celu && p0 == 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: alpha is 0, by which x is divided", name);
        if (id == LG_PW_polygamma && !(p0 >= 0 && p0 == floor(p0)))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: n is %g; a whole number of 0 or more", name, p0);
        if (id == LG_PW_hardtanh && p0 > p1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: low is %g, above high, which is %g", name, p0, p1);
        return true;
}

bool lg__pointwise_infer(lg__call *call)
{
        pointwise_attributes *a = call->attributes;
        double numbers[] = {a->p0, a->p1};
        if (call->in_count == 1 &&
            !lg__pointwise_numbers(call->ctx, call->op->name, call->op->pointwise, call->in[0]->at.dtype, numbers))
                return false;
        a->p0 = numbers[0];
        a->p1 = numbers[1];
        return infer(call, call->in[call->in_count - 1]->at.dtype);
}

bool lg__pointwise_infer_compare(lg__call *call)
{
        return infer(call, LG_BOOL);
}

bool lg__pointwise_forward(lg__call *call)
{
        const pointwise_attributes *p = call->attributes;
        lg_tensor *in[LG_PW_INPUTS] = {NULL};
        for (int i = 0; i < call->in_count; i++)
                in[i] = call->in[i];
        return lg__pointwise_run(call->op->pointwise, call->out[0], in, p->p0, p->p1, call->op->name);
}

/* Returns whether the output's gradient may be overwritten by that of input i: its storage is not shared, and no other
 * input still needs it. */
static bool overwrites(const lg__vjp *v, int i)
{
        for (int j = 0; j < v->in_count; j++)
                if (j != i && v->needs[j] && (j > i || v->grad_in[j] == v->grad[0]))
                        return false;
        return lg__grad_is_unseen(v->grad[0]);
}

/* Returns the gradient of input i, computed by this kernel: added to the pending gradient in place, written over the
 * output's gradient if possible, or in a new tensor. Returns the output's gradient itself if the op passes it on. */
static lg_tensor *gradient(const lg__vjp *v, int i, int kernel, lg_tensor *const slots[LG_PW_INPUTS])
{
        const pointwise_attributes *p = v->attributes;
        lg_tensor *g = v->grad[0], *sum = v->sums[i];
        if (sum && lg__same_shape(&sum->at, &g->at) && sum->at.dtype == g->at.dtype)
                return lg__pointwise_add(kernel, sum, slots, p->p0, p->p1, v->op->name) ? sum : NULL;
        if (v->op->passes & LG__BY(i))
                return g;
        lg_tensor *made = overwrites(v, i) ? g : lg__tensor_beside(g);
        return made && lg__pointwise_run(kernel, made, slots, p->p0, p->p1, v->op->name) ? made : NULL;
}

/* Computes first-order derivatives, with one kernel for each input that needs its gradient. */
bool lg__pointwise_fused(lg__vjp *v)
{
        const int first = v->op->operands[0].takes == LG__MASK ? 1 : 0;
        lg_tensor *slots[LG_PW_INPUTS] = {v->grad[0], v->in[0], first ? NULL : v->in[1], first ? NULL : v->out[0]};
        for (int i = first; i < v->in_count; i++)
                if (v->needs[i] && !(v->grad_in[i] = gradient(v, i, v->op->pointwise + 1 + i - first, slots)))
                        return false;
        return true;
}

lg_tensor *lg__constant(const lg_tensor *x, double value)
{
        if (!x)
                return NULL;
        lg_tensor *t = lg__tensor_empty(x->ctx, x->storage->device->id, x->at.dtype, LG_SHAPE_0D);
        return t && lg__fill_values(t, value, "constant") ? t : NULL;
}

lg_tensor *lg__pointwise_parameter(const lg__vjp *v, int i)
{
        const pointwise_attributes *a = v->attributes;
        return lg__constant(v->grad[0], i ? a->p1 : a->p0);
}

/* ---- public functions ---- */

static lg_tensor *apply(int id, lg_tensor *x, lg_tensor *y, lg_tensor *z)
{
        const lg__op *op = &lg__pointwise_ops[id];
        return lg__apply(op, (lg_tensor *[]){x, y, z}, op->operand_count, &(pointwise_attributes){0, 0}, NULL);
}

static lg_tensor *apply_numbers(int id, lg_tensor *x, double p0, double p1)
{
        return lg__apply1(&lg__pointwise_ops[id], x, &(pointwise_attributes){p0, p1});
}

#define PARAMS0 DEFINE0
#define PARAMS1(v) DEFINE1
#define PARAMS2(v, w) DEFINE2
#define DEFINE0(name)                                                                                                  \
        lg_tensor *lg_##name(lg_tensor *x)                                                                             \
        {                                                                                                              \
                return apply(LG_PW_##name, x, NULL, NULL);                                                             \
        }
#define DEFINE1(name)                                                                                                  \
        lg_tensor *lg_##name(lg_tensor *x, double p0)                                                                  \
        {                                                                                                              \
                return apply_numbers(LG_PW_##name, x, p0, 0);                                                          \
        }
#define DEFINE2(name)                                                                                                  \
        lg_tensor *lg_##name(lg_tensor *x, double p0, double p1)                                                       \
        {                                                                                                              \
                return apply_numbers(LG_PW_##name, x, p0, p1);                                                         \
        }
#define DEFINE(define, name) define(name)
#define UNARY(name, types, params, ...) DEFINE(params, name)
#define COMPARE_SCALAR(name, formula) DEFINE1(name)
#define TEST(name, formula) DEFINE0(name)
#define BINARY(name, types, ...)                                                                                       \
        lg_tensor *lg_##name(lg_tensor *a, lg_tensor *b)                                                               \
        {                                                                                                              \
                return apply(LG_PW_##name, a, b, NULL);                                                                \
        }
#define COMPARE(name, formula) BINARY(name, ANY, formula)
#define PLAIN BINARY
#define PLAIN_SCALAR(name, types, formula) DEFINE1(name)
#define TERNARY(name, ...)                                                                                             \
        lg_tensor *lg_##name(lg_tensor *condition, lg_tensor *a, lg_tensor *b)                                         \
        {                                                                                                              \
                return apply(LG_PW_##name, condition, a, b);                                                           \
        }
#include "../../kernels/pointwise.def"
