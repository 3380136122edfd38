/* collective.c - collective operations of the processes of a group, as ops.
 *
 * The loss is the sum of all ranks' losses. Therefore the gradient of a sum over ranks is the sum of all ranks'
 * gradients; the gradient of an all-gather is a reduce-scatter, which sums all ranks' gradients of each rank's part;
 * the gradient of a message is sent back by its receiver.
 */
#include "core/tape.h"
#include "graph/op.h"
#include "group/group.h"

#define COLLECTIVE_FIELDS(FIELD) FIELD(i64, group, 0) FIELD(int, reduction, 0) FIELD(int, rank, -1)
LG__ATTRIBUTES(collective, COLLECTIVE_FIELDS)

static const lg__op ops[LG__RECEIVE + 1]; /* indexed by lg__collective_kind */

/* Returns the group that an op's attributes refer to, or NULL and sets an error. */
static lg_group *group_of(lg_ctx *c, const void *attributes, const char *op)
{
        return lg__group_find(c, (uint64_t)((const collective_attributes *)attributes)->group, op);
}

/* Returns whether the derivative of a sent or received message sends a gradient back. */
static bool needs_gradient(const lg__call *call)
{
        return call->ctx->recording && call->in[0]->node && lg__dtype_float(call->in[0]->at.dtype);
}

static bool forward(lg__call *call)
{
        const collective_attributes *a = call->attributes;
        const lg__collective_kind kind = (lg__collective_kind)(call->op - ops);
        const lg_tensor *x = call->in[0], *in = kind == LG__RECEIVE ? NULL : x;
        lg_tensor *out = kind == LG__SEND ? NULL : call->out[0];
        lg_group *g = group_of(call->ctx, a, call->op->name);
        lg__collective what = {.kind = kind, .dtype = x->at.dtype, .shape = x->at.shape};
        what.reduction = (lg_reduce_op)a->reduction;
        what.root = a->rank < 0 ? 0 : a->rank;
        what.recorded = (kind == LG__SEND || kind == LG__RECEIVE) && needs_gradient(call);
        return g && lg__group_tensors(g, call->op->name, &what, in, out) &&
               (out || lg__fill_values(call->out[0], 0, "send"));
}

/* Checks x and g, and reports an error of the context to the other ranks. Returns g, or NULL if an error is set. */
static lg_group *ready(lg_tensor *x, lg_group *g, const char *op)
{
        lg_ctx *c = x ? lg__ctx_of(x) : g ? g->object.ctx : NULL;
        if (g && !x && !g->object.ctx->error)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: x is NULL", op);
        return (g || c) && lg__group_ready(c, g, op) ? g : NULL;
}

static lg_tensor *apply(lg__collective_kind kind, lg_tensor *x, lg_group *g, int reduction, int rank)
{
        const collective_attributes a = {g ? (int64_t)g->id : 0, reduction, rank};
        return ready(x, g, ops[kind].name) ? lg__apply1(&ops[kind], x, &a) : NULL;
}

/* Checks that `rank` is a rank of g and, if `other`, not that of this process. */
static bool check_rank(const lg_group *g, int rank, bool other, const char *op)
{
        if (rank >= 0 && rank < g->size && !(other && rank == g->rank))
                return true;
        return lg__fail(g->object.ctx, LG_ERR_ARGUMENT, "%s: rank %d is %s; the group has the ranks 0 to %d", op, rank,
                        rank == g->rank ? "this one" : "not in the group", g->size - 1);
}

static bool infer_of_rank(lg__call *call)
{
        const collective_attributes *a = call->attributes;
        const lg_group *g = group_of(call->ctx, a, call->op->name);
        return g && check_rank(g, a->rank, call->op != &ops[LG__BROADCAST], call->op->name);
}

/* Returns `gradient` where x is the maximum y over ranks, divided equally among the ranks with that maximum; else 0. */
static lg_tensor *share_of(lg_tensor *x, lg_tensor *y, lg_tensor *gradient, lg_group *g)
{
        lg_tensor *is_most = lg_cast(lg_eq(lg_detach(x), lg_detach(y)), gradient ? gradient->at.dtype : LG_F32);
        return lg_mul(gradient, lg_div(is_most, lg_all_reduce(is_most, g)));
}

static bool check_reduction(const lg_tensor *x, lg_reduce_op op, const char *name)
{
        if (op != LG_REDUCE_OP_SUM && op != LG_REDUCE_OP_MEAN && op != LG_REDUCE_OP_MAX)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: .op is %d, no lg_reduce_op", name, (int)op);
        return op != LG_REDUCE_OP_MEAN || lg__dtype_float(x->at.dtype) ||
               lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s; a mean needs a float dtype", name, lg__tensor_text(x).s);
}

/* ---- all_reduce ---- */

static bool infer_all_reduce(lg__call *call)
{
        const collective_attributes *a = call->attributes;
        return check_reduction(call->in[0], (lg_reduce_op)a->reduction, call->op->name);
}

static bool vjp_all_reduce(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        lg_group *g = group_of(v->ctx, a, v->op->name);
        if (!g)
                return false;
        if (a->reduction == LG_REDUCE_OP_MAX)
                v->grad_in[0] = share_of(v->in[0], v->out[0], lg_all_reduce(v->grad[0], g), g);
        else
                v->grad_in[0] = lg_all_reduce(v->grad[0], g, .op = (lg_reduce_op)a->reduction);
        return v->grad_in[0] != NULL;
}

static lg_tensor *reduce(lg__collective_kind kind, lg_tensor *x, lg_group *g, const lg_all_reduce_options *options)
{
        lg_all_reduce_options o;
        const char *op = ops[kind].name;
        return ready(x, g, op) && lg__take(x->ctx, op, options, &o, sizeof o) ? apply(kind, x, g, o.op, -1) : NULL;
}

lg_tensor *lg_all_reduce_with(lg_tensor *x, lg_group *g, const lg_all_reduce_options *options)
{
        return reduce(LG__ALL_REDUCE, x, g, options);
}

/* Runs a collective that reads and writes x, through a contiguous copy if x is not contiguous. */
static bool in_place(lg_tensor *x, lg_group *g, const lg__collective *what, const char *op)
{
        lg_ctx *c = x->ctx;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = !scope.id                          ? NULL
                       : lg__layout_is_contiguous(&x->at) ? x
                                                          : lg__clone_values(x, x->storage->device->id, x->at.dtype);
        const bool ok = t && lg__group_tensors(g, op, what, t, t) && (t == x || lg__copy_values(x, t, op));
        if (t)
                lg__storage_changed(x->storage);
        lg_scope_end(c, scope);
        return ok;
}

bool lg_all_reduce_(lg_tensor *x, lg_group *g, lg_reduce_op how)
{
        const char *op = "lg_all_reduce_";
        if (!ready(x, g, op) || !lg__may_change(x, op, "x") || !check_reduction(x, how, op))
                return false;
        const lg__collective what = {
                .kind = LG__ALL_REDUCE, .dtype = x->at.dtype, .shape = x->at.shape, .reduction = how};
        return in_place(x, g, &what, op);
}

/* ---- broadcast ---- */

static bool vjp_broadcast(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        lg_group *g = group_of(v->ctx, a, v->op->name);
        lg_tensor *sum = g ? lg_all_reduce(v->grad[0], g) : NULL;
        if (sum &&
            g->rank != a->rank) /* a constant, since 0 times an infinite sum is NaN; but one with a gradient of zeros */
                sum = lg_where(lg_isfinite(sum), lg_mul_scalar(sum, 0), lg__constant(sum, 0));
        return (v->grad_in[0] = sum) != NULL;
}

lg_tensor *lg_broadcast(lg_tensor *x, lg_group *g, int root)
{
        return apply(LG__BROADCAST, x, g, 0, root);
}

bool lg_broadcast_(lg_tensor *x, lg_group *g, int root)
{
        const char *op = "lg_broadcast_";
        if (!ready(x, g, op) || !lg__may_change(x, op, "x") || !check_rank(g, root, false, op))
                return false;
        const lg__collective what = {.kind = LG__BROADCAST, .dtype = x->at.dtype, .shape = x->at.shape, .root = root};
        return in_place(x, g, &what, op);
}

/* ---- all_gather, reduce_scatter ---- */

static bool infer_all_gather(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        const lg_group *g = group_of(call->ctx, call->attributes, "all_gather");
        if (g && x->at.shape.ndim == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "all_gather: x is %s; it needs a dimension",
                                lg__tensor_text(x).s);
        if (g)
                call->out_at[0].shape.size[0] *= g->size;
        return g && lg__shape_valid(call->ctx, "all_gather", call->out_at[0].shape);
}

static bool vjp_all_gather(lg__vjp *v)
{
        lg_group *g = group_of(v->ctx, v->attributes, v->op->name);
        return g && (v->grad_in[0] = lg_reduce_scatter(v->grad[0], g));
}

lg_tensor *lg_all_gather(lg_tensor *x, lg_group *g)
{
        return apply(LG__ALL_GATHER, x, g, 0, -1);
}

static bool infer_reduce_scatter(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        const collective_attributes *a = call->attributes;
        const lg_group *g = group_of(call->ctx, a, "reduce_scatter");
        if (!check_reduction(x, (lg_reduce_op)a->reduction, "reduce_scatter"))
                return false;
        if (g && (x->at.shape.ndim == 0 || x->at.shape.size[0] % g->size))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "reduce_scatter: x is %s; its first size must be a multiple of the %d ranks",
                                lg__tensor_text(x).s, g->size);
        if (g)
                call->out_at[0].shape.size[0] /= g->size;
        return g != NULL;
}

static bool vjp_reduce_scatter(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        lg_group *g = group_of(v->ctx, a, v->op->name);
        lg_tensor *all = g ? lg_all_gather(v->grad[0], g) : NULL;
        if (all && a->reduction == LG_REDUCE_OP_MEAN)
                all = lg_mul_scalar(all, 1.0 / g->size);
        else if (all && a->reduction == LG_REDUCE_OP_MAX)
                all = share_of(v->in[0], lg_all_gather(v->out[0], g), all, g);
        return (v->grad_in[0] = all) != NULL;
}

lg_tensor *lg_reduce_scatter_with(lg_tensor *x, lg_group *g, const lg_all_reduce_options *options)
{
        return reduce(LG__REDUCE_SCATTER, x, g, options);
}

/* ---- send, receive ---- */

static bool infer_send(lg__call *call)
{
        if (!lg__dtype_float(call->in[0]->at.dtype))
                call->out_at[0].dtype = LG_F32;
        call->out_at[0].shape = LG_SHAPE_0D;
        return infer_of_rank(call);
}

/* Receives the gradient of x. While the context records, adds the token, the zero result of this op, to `like`: in the
 * graph, the received gradient then depends on this op, so that a second derivative exchanges messages, too. */
static bool vjp_send(lg__vjp *v)
{
        lg_group *g = group_of(v->ctx, v->attributes, v->op->name);
        lg_tensor *like = v->in[0];
        if (v->ctx->recording)
                like = lg_add(like, lg_expand(v->out[0], like->at.shape));
        return g && (v->grad_in[0] = lg_receive(like, g, ((const collective_attributes *)v->attributes)->rank));
}

lg_tensor *lg_send(lg_tensor *x, lg_group *g, int to)
{
        return apply(LG__SEND, x, g, 0, to);
}

/* Sends the gradient back. Only the shape and dtype of `like` matter: its gradient is that send's zero token,
 * expanded. */
static bool vjp_receive(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        const lg__edge *x = lg__input(v, 0);
        lg_group *g = group_of(v->ctx, a, v->op->name);
        lg_tensor *token = g ? lg_send(v->grad[0], g, a->rank) : NULL;
        return token && (v->grad_in[0] = lg_expand(lg_cast(token, x->dtype), lg__input_shape(v, 0)));
}

lg_tensor *lg_receive(lg_tensor *like, lg_group *g, int from)
{
        return apply(LG__RECEIVE, like, g, 0, from);
}

/* ---- table of the ops ---- */

#define COLLECTIVE(kind, of, x, y, saved, infer_of)                                                                    \
        [kind] = {.name = #of,                                                                                         \
                  LG__OPERANDS({x, LG__ANY, LG__ROW_MAJOR, .saved_for = saved}),                                       \
                  LG__RESULTS({y, .saved_for = saved}),                                                                \
                  LG__HAS(collective),                                                                                 \
                  .infer = infer_of,                                                                                   \
                  .forward = forward,                                                                                  \
                  .vjp = vjp_##of}
static const lg__op ops[] = {
        COLLECTIVE(LG__ALL_REDUCE, all_reduce, "x", "y", LG__BY(0), infer_all_reduce),
        COLLECTIVE(LG__BROADCAST, broadcast, "x", "y", 0, infer_of_rank),
        COLLECTIVE(LG__ALL_GATHER, all_gather, "x", "y", 0, infer_all_gather),
        COLLECTIVE(LG__REDUCE_SCATTER, reduce_scatter, "x", "y", LG__BY(0), infer_reduce_scatter),
        COLLECTIVE(LG__SEND, send, "x", "token", LG__BY(0), infer_send),
        COLLECTIVE(LG__RECEIVE, receive, "like", "y", 0, infer_of_rank),
};
