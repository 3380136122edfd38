/* custom.c - user-defined ops: lg_custom() wraps the user's callbacks as an op whose attributes point to the
 * callbacks.
 *
 * The user's forward runs unrecorded before lg__apply(), which then only copies the outputs and records the node. All
 * inputs are saved for the derivative; outputs are not.
 */
#include <string.h>
#include "graph/op.h"

/* Copy of lg_custom()'s options and name. Owned by lg_custom() while it runs, then by the recorded node, if any. */
typedef struct own_op {
        lg_custom_options op;
        size_t bytes; /* size of this record */
        bool calling; /* lg_custom() is running, and frees this record itself if no node was recorded */
        char name[];
} own_op;

typedef struct custom_attributes {
        own_op *own;
        int out_count;
        lg_tensor *const *made; /* outputs of the user's forward; valid only during lg__apply() */
} custom_attributes;

static bool infer(lg__call *call)
{
        const custom_attributes *a = call->attributes;
        call->out_count = a->out_count;
        for (int i = 0; i < a->out_count; i++)
                call->out_at[i] = (lg__layout){.dtype = a->made[i]->at.dtype, .shape = a->made[i]->at.shape};
        return true;
}

static bool forward(lg__call *call)
{
        const custom_attributes *a = call->attributes;
        for (int i = 0; i < a->out_count; i++)
                if (!lg__copy_values(call->out[i], a->made[i], a->own->name))
                        return false;
        return true;
}

/* Returns whether t is a live tensor of context c and c has no error; otherwise sets an error. */
static bool usable(lg_ctx *c, const lg_tensor *t, const char *op, const char *what)
{
        return lg__in_context(c, t, op, what) && lg__check(t, op, what);
}

/* Returns whether x has the shape of `in`, or a shape that `in` broadcasts to; the gradient is then summed to `in`. */
static bool gradient_fits(const lg_tensor *x, const lg_tensor *in)
{
        const lg_shape got = x->at.shape, want = in->at.shape;
        bool fits = got.ndim >= want.ndim;
        for (int i = 1; i <= want.ndim && fits; i++)
                fits = want.size[want.ndim - i] == got.size[got.ndim - i] || want.size[want.ndim - i] == 1;
        return fits;
}

static bool check_gradient(const lg__vjp *v, const lg_tensor *x, int i, const char *name)
{
        if (!usable(v->ctx, x, name, "a gradient that its backward made"))
                return false;
        return gradient_fits(x, v->in[i]) ||
               lg__fail(v->ctx, LG_ERR_SHAPE,
                        "%s: the gradient of input %d that its backward made is %s; the input is %s", name, i,
                        lg__tensor_text(x).s, lg__tensor_text(v->in[i]).s);
}

static bool vjp(lg__vjp *v)
{
        const custom_attributes *a = v->attributes;
        const lg_custom_options *op = &a->own->op;
        const char *name = a->own->name;
        lg_custom_call call = {.ctx = v->ctx, .user = op->user, .in_count = v->in_count, .out_count = v->out_count};
        memcpy(call.in, v->in, (size_t)v->in_count * sizeof *call.in);
        memcpy(call.grad_out, v->grad, sizeof call.grad_out);
        memcpy(call.needs, v->needs, (size_t)v->in_count * sizeof *call.needs);
        if (!op->backward(&call))
                return lg__fail(v->ctx, LG_ERR_STATE, "%s: its backward returned false without lg_set_error", name);
        for (int i = 0; i < v->in_count; i++) {
                if (call.grad_in[i] && !check_gradient(v, call.grad_in[i], i, name))
                        return false;
                v->grad_in[i] = call.grad_in[i];
        }
        return true;
}

static void release(lg_ctx *c, const void *attributes)
{
        own_op *own = ((const custom_attributes *)attributes)->own;
        if (own->calling)
                return;
        lg__release(c, own->op.release, own->op.user);
        lg__free(c, own, own->bytes);
}

static const lg__op custom_op = {.name = "lg_custom",
                                 LG__OPERANDS({"an input", .variadic = true, .saved_for = LG__BY(0)}),
                                 LG__RESULTS({"an output"}),
                                 .flags = LG__ACROSS | LG__HANDLES,
                                 .attributes_bytes = sizeof(custom_attributes),
                                 .infer = infer,
                                 .forward = forward,
                                 .vjp = vjp,
                                 .release = release};

static own_op *copy_of(lg_ctx *c, const char *name, const lg_custom_options *op)
{
        size_t bytes = sizeof(own_op) + strlen(name) + 1;
        own_op *own = lg__alloc(c, bytes);
        if (!own)
                return NULL;
        *own = (own_op){.op = *op, .bytes = bytes, .calling = true};
        strcpy(own->name, name);
        return own;
}

static bool check_op(lg_ctx *c, const char *name, lg_list inputs, const lg_custom_options *op)
{
        if (!name || !op->forward || !op->backward)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_custom: %s is NULL",
                                !name          ? "the name"
                                : !op->forward ? ".forward"
                                               : ".backward");
        if (op->out_count < 1 || op->out_count > LG_CUSTOM_MAX || inputs.count < 1 || inputs.count > LG_CUSTOM_MAX)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld inputs and %d outputs; 1 to %d each are possible", name,
                                (long long)inputs.count, op->out_count, LG_CUSTOM_MAX);
        for (int64_t i = 0; i < inputs.count; i++) {
                if (!inputs.items)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: the list of inputs is NULL", name);
                if (!inputs.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: input %lld is NULL", name, (long long)i);
                if (!usable(c, inputs.items[i], name, "an input"))
                        return false;
        }
        return true;
}

static bool run_forward(lg_ctx *c, const own_op *own, lg_list inputs, lg_custom_call *call)
{
        const lg_custom_options *op = &own->op;
        *call = (lg_custom_call){.ctx = c, .user = op->user, .in_count = (int)inputs.count, .out_count = op->out_count};
        memcpy(call->in, inputs.items, (size_t)inputs.count * sizeof *call->in);
        bool was = lg_set_grad_mode(c, false);
        bool ok = op->forward(call);
        lg_set_grad_mode(c, was);
        if (c->error)
                return false;
        if (!ok)
                return lg__fail(c, LG_ERR_STATE, "%s: its forward returned false without lg_set_error", own->name);
        for (int i = 0; i < op->out_count; i++) {
                if (!call->out[i])
                        return lg__fail(c, LG_ERR_STATE, "%s: its forward left output %d NULL", own->name, i);
                if (!usable(c, call->out[i], own->name, "an output"))
                        return false;
        }
        return true;
}

lg_tensor *lg_custom_with(lg_ctx *c, const char *name, lg_list inputs, const lg_custom_options *options)
{
        lg_tensor *results[LG_CUSTOM_MAX] = {NULL};
        lg_custom_options o;
        lg_custom_call call;
        const bool known = lg__take_without(options, &o, sizeof o);
        o.out_count = o.out_count ? o.out_count : 1;
        lg_scope scope = lg__scope_begin(c);
        bool ok =
                scope.id && (known || lg__take(c, "lg_custom", options, &o, sizeof o)) && check_op(c, name, inputs, &o);
        own_op *own = ok ? copy_of(c, name, &o) : NULL;
        ok = own && run_forward(c, own, inputs, &call);
        if (ok) {
                custom_attributes a = {.own = own, .out_count = o.out_count, .made = call.out};
                ok = lg__apply(&custom_op, inputs.items, (int)inputs.count, &a, results) != NULL;
        }
        for (int i = 0; ok && i < call.out_count; i++) {
                lg_escape(results[i]);
                if (o.out)
                        o.out[i] = results[i];
        }
        bool recorded = ok && results[0]->node;
        for (int i = 1; ok && i < call.out_count; i++)
                recorded = recorded || results[i]->node;
        if (!recorded)
                lg__release(c, o.release, o.user);
        if (own && !recorded)
                lg__free(c, own, own->bytes);
        else if (own)
                own->calling = false;
        lg_scope_end(c, scope);
        return results[0];
}
