/* inplace.c - changes of values in place, refused where they could make a recorded derivative wrong unnoticed. */
#include "core/tape.h"
#include "graph/op.h"

/* Refuses results of recorded ops, because saved values would become wrong. A leaf may be changed only while nothing
 * is recorded, as optimisers do. */
bool lg__may_change(const lg_tensor *t, const char *op, const char *argument)
{
        if (!lg__check(t, op, argument))
                return false;
        if (t->node && t->node->op)
                return lg__fail(t->ctx, LG_ERR_STATE,
                                "%s: %s is a result of %s inside the graph; lg_detach() or lg_copy() it", op, argument,
                                t->node->op->name);
        if (t->node && t->ctx->recording)
                return lg__fail(t->ctx, LG_ERR_STATE, "%s: %s requires grad; change it inside lg_no_grad(c) { ... }",
                                op, argument);
        if (lg__layout_overlaps(&t->at))
                return lg__fail(t->ctx, LG_ERR_ARGUMENT, "%s: %s is expanded: its elements share memory", op, argument);
        lg__storage_finish_copies(t->storage);
        return lg__ok(t->ctx);
}

static bool may_change(const lg_tensor *t, const char *op)
{
        return lg__may_change(t, op, "x");
}

static bool changed(lg_tensor *t)
{
        lg__storage_changed(t->storage);
        return true;
}

bool lg_fill_(lg_tensor *x, double value)
{
        return may_change(x, "lg_fill_") && lg__fill_values(x, value, "lg_fill_") && changed(x);
}

/* Returns y cast to x's dtype and expanded to x's shape, as a view if possible. `recording` is the caller's grad mode:
 * if true, y must not need a gradient. Returns NULL and sets an error if y does not fit. */
static lg_tensor *like(lg_tensor *y, const lg_tensor *x, bool recording, const char *op)
{
        lg_shape s;
        if (!y)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT,
                                "%s: y is NULL; for a number there is lg_fill_(), and lg_full() makes a tensor of it",
                                op);
        if (!lg__check(y, op, "y"))
                return NULL;
        if (y->node && recording)
                return lg__fail(x->ctx, LG_ERR_STATE,
                                "%s: y needs a gradient, which would not go through a change in place; give "
                                "lg_detach(y), or call it inside lg_no_grad(c) { ... }",
                                op);
        if (y->storage->device != x->storage->device)
                return lg__fail(x->ctx, LG_ERR_DEVICE, "%s: x is %s but y is %s; move one with lg_to()", op,
                                lg__tensor_text(x).s, lg__tensor_text(y).s);
        if (!lg__broadcast(x->ctx, op, x->at.shape, y->at.shape, &s))
                return NULL;
        if (!lg__shape_equal(s, x->at.shape))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "%s: y is %s and does not broadcast to x, %s", op,
                                lg__tensor_text(y).s, lg__tensor_text(x).s);
        return lg_expand(lg_cast(y, x->at.dtype), s);
}

/* Returns y, or a copy of y if y shares memory with x: elements would be read after they were overwritten. */
static lg_tensor *copy_if_shared(lg_tensor *y, const lg_tensor *x)
{
        return y && y->storage == x->storage ? lg__clone_values(y, y->storage->device->id, y->at.dtype) : y;
}

static bool combine(lg_tensor *x, lg_tensor *y, int id, const char *op)
{
        if (!lg__same_context(x, y, op, "y") || !may_change(x, op))
                return false;
        if (id == LG_PW_div && !lg__dtype_float(x->at.dtype))
                return lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s; true division needs a float dtype", op,
                                lg__tensor_text(x).s);
        lg_scope scope = lg_scope_begin(x->ctx);
        bool was = lg_set_grad_mode(x->ctx, false);
        lg_tensor *other = copy_if_shared(like(y, x, was, op), x);
        bool ok = other && (id < 0 ? lg__copy_values(x, other, op)
                                   : lg__pointwise_run(id, x, (lg_tensor *[LG_PW_INPUTS]){x, other}, 0, 0, op));
        lg_set_grad_mode(x->ctx, was);
        lg_scope_end(x->ctx, scope);
        return ok && changed(x);
}

bool lg_copy_(lg_tensor *x, lg_tensor *y)
{
        return combine(x, y, -1, "lg_copy_");
}

bool lg_add_(lg_tensor *x, lg_tensor *y)
{
        return combine(x, y, LG_PW_add, "lg_add_");
}

bool lg_sub_(lg_tensor *x, lg_tensor *y)
{
        return combine(x, y, LG_PW_sub, "lg_sub_");
}

bool lg_mul_(lg_tensor *x, lg_tensor *y)
{
        return combine(x, y, LG_PW_mul, "lg_mul_");
}

bool lg_div_(lg_tensor *x, lg_tensor *y)
{
        return combine(x, y, LG_PW_div, "lg_div_");
}

/* Applies an elementwise function of x and at most two numbers to x itself. */
static bool change(lg_tensor *x, int id, double p0, double p1, const char *op)
{
        double numbers[] = {p0, p1};
        if (!may_change(x, op))
                return false;
        if (lg__pointwise_ops[id].operands[0].takes == LG__REAL && !lg__dtype_float(x->at.dtype))
                return lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s; its results need a float dtype", op,
                                lg__tensor_text(x).s);
        return lg__pointwise_numbers(x->ctx, op, id, x->at.dtype, numbers) &&
               lg__pointwise_run(id, x, (lg_tensor *[LG_PW_INPUTS]){x}, numbers[0], numbers[1], op) && changed(x);
}
#define OF_NUMBER(name)                                                                                                \
        bool lg_##name##_(lg_tensor *x, double s)                                                                      \
        {                                                                                                              \
                return change(x, LG_PW_##name, s, 0, "lg_" #name "_");                                                 \
        }
OF_NUMBER(add_scalar)
OF_NUMBER(sub_scalar)
OF_NUMBER(mul_scalar)
OF_NUMBER(div_scalar)
OF_NUMBER(pow_scalar)
OF_NUMBER(floor_divide_scalar)
OF_NUMBER(remainder_scalar)
OF_NUMBER(fmod_scalar)
OF_NUMBER(maximum_scalar)
OF_NUMBER(minimum_scalar)

bool lg_clamp_(lg_tensor *x, double low, double high)
{
        return change(x, LG_PW_clamp, low, high, "lg_clamp_");
}

bool lg_write(lg_tensor *t, const void *data, lg_dtype dtype, size_t bytes)
{
        return may_change(t, "lg_write") && lg__unrecorded(t->ctx, "lg_write") &&
               lg__write_values(t, "lg_write", data, dtype, bytes) && changed(t);
}
