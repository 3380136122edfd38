/* collective.c - what the processes of a group do together, as ops.
 *
 * The loss is the sum of all ranks' losses. So a sum over ranks, which all of them get, has the sum of their gradients
 * as its own; what all ranks gather gets back the sum of what each rank says of its part; what one rank sends gets back
 * what the other one says of it.
 */
#include "graph/op.h"
#include "group/group.h"

#define COLLECTIVE_FIELDS(FIELD) FIELD(i64, group, 0) FIELD(int, reduction, 0) FIELD(int, rank, -1)
LG__ATTRIBUTES(collective, COLLECTIVE_FIELDS)

static lg_tensor *apply(const lg__op *op, lg_tensor *x, const lg_group *g, int reduction, int rank)
{
        return lg__apply1(op, x, &(collective_attributes){(int64_t)g->id, reduction, rank});
}

/* The group behind an op's attributes. */
static lg_group *group_of(lg_ctx *c, const void *attributes, const char *op)
{
        return lg__group_find(c, (uint64_t)((const collective_attributes *)attributes)->group, op);
}

/* Returns whether the derivative of a message sends one back. */
static bool needs_gradient(const lg__call *call)
{
        return call->ctx->recording && call->in[0]->node && lg__dtype_float(call->in[0]->at.dtype);
}

static bool run(lg__call *call, lg__collective_kind kind, const lg_tensor *in, lg_tensor *out)
{
        const collective_attributes *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        lg_group *g = group_of(call->ctx, a, call->op->name);
        lg__collective what = {.kind = kind, .dtype = x->dtype, .shape = x->shape};
        what.reduction = (lg_rank_op)a->reduction;
        what.root = a->rank < 0 ? 0 : a->rank;
        what.recorded = (kind == LG__SEND || kind == LG__RECEIVE) && needs_gradient(call);
        return g && lg__group_tensors(g, call->op->name, &what, in, out);
}

/* Arguments of the functions: a context with an error tells the group. NULL: an error. */
static lg_group *ready(lg_tensor *x, lg_group *g, const char *op)
{
        lg_ctx *c = x ? lg__ctx_of(x) : g ? g->object.ctx : NULL;
        if (g && !x && !g->object.ctx->error)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: x is NULL", op);
        return (g || c) && lg__group_ready(c, g, op) ? g : NULL;
}

/* A rank of g, other than this one where `other`. */
static bool check_rank(const lg_group *g, int rank, bool other, const char *op)
{
        if (rank >= 0 && rank < g->size && !(other && rank == g->rank))
                return true;
        return lg__fail(g->object.ctx, LG_ERR_ARGUMENT, "%s: rank %d is %s; the group has the ranks 0 to %d", op, rank,
                        rank == g->rank ? "this one" : "not in the group", g->size - 1);
}

static bool infer_of_rank(lg__call *call, bool other)
{
        const collective_attributes *a = call->attributes;
        const lg_group *g = group_of(call->ctx, a, call->op->name);
        return g && check_rank(g, a->rank, other, call->op->name);
}

/* The sum over ranks of equal shares, for those elements that are the maximum y. */
static lg_tensor *share_of(lg_tensor *x, lg_tensor *y, lg_tensor *gradient, lg_group *g)
{
        lg_tensor *is_most = lg_cast(lg_eq(lg_detach(x), lg_detach(y)), gradient ? gradient->at.dtype : LG_F32);
        return lg_mul(gradient, lg_div(is_most, lg_all_reduce(is_most, g)));
}

static bool check_reduction(const lg_tensor *x, lg_rank_op op, const char *name)
{
        if (op != LG_RANKS_SUM && op != LG_RANKS_MEAN && op != LG_RANKS_MAX)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: .op is %d, no lg_rank_op", name, (int)op);
        return op != LG_RANKS_MEAN || lg__dtype_float(x->at.dtype) ||
               lg__fail(x->ctx, LG_ERR_DTYPE, "%s: x is %s; a mean needs a float dtype", name, lg__tensor_text(x).s);
}

/* ---- all_reduce ---- */

static bool infer_all_reduce(lg__call *call)
{
        const collective_attributes *a = call->attributes;
        return check_reduction(call->in[0], (lg_rank_op)a->reduction, call->op->name);
}

static bool forward_all_reduce(lg__call *call)
{
        return run(call, LG__ALL_REDUCE, call->in[0], call->out[0]);
}

static bool vjp_all_reduce(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        lg_group *g = group_of(v->ctx, a, "all_reduce");
        if (!g)
                return false;
        if (a->reduction == LG_RANKS_MAX)
                v->grad_in[0] = share_of(v->in[0], v->out[0], lg_all_reduce(v->grad[0], g), g);
        else
                v->grad_in[0] = lg_all_reduce(v->grad[0], g, .op = (lg_rank_op)a->reduction);
        return v->grad_in[0] != NULL;
}

static const lg__op all_reduce_op = {.name = "all_reduce",
                                     LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
                                     LG__RESULTS({"y", .saved_for = LG__BY(0)}),
                                     LG__HAS(collective),
                                     .infer = infer_all_reduce,
                                     .forward = forward_all_reduce,
                                     .vjp = vjp_all_reduce};

lg_tensor *lg_all_reduce_with(lg_tensor *x, lg_group *g, const lg_all_reduce_options *options)
{
        lg_all_reduce_options o;
        if (!ready(x, g, "all_reduce") || !lg__take(x->ctx, "all_reduce", options, &o, sizeof o))
                return NULL;
        return apply(&all_reduce_op, x, g, o.op, -1);
}

/* Changes x by an operation that reads and writes it. */
static bool in_place(lg_tensor *x, lg_group *g, const lg__collective *what, const char *op)
{
        lg_ctx *c = x->ctx;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = !scope.id                          ? NULL
                       : lg__layout_is_contiguous(&x->at) ? x
                                                          : lg__clone_values(x, x->storage->device->id, x->at.dtype);
        const bool ok = t && lg__group_tensors(g, op, what, t, t) && (t == x || lg__copy_values(x, t, op));
        if (t)
                x->storage->version++;
        lg_scope_end(c, scope);
        return ok;
}

bool lg_all_reduce_(lg_tensor *x, lg_group *g, lg_rank_op how)
{
        const char *op = "lg_all_reduce_";
        if (!ready(x, g, op) || !lg__may_change(x, op, "x") || !check_reduction(x, how, op))
                return false;
        const lg__collective what = {
                .kind = LG__ALL_REDUCE, .dtype = x->at.dtype, .shape = x->at.shape, .reduction = how};
        return in_place(x, g, &what, op);
}

/* ---- broadcast ---- */

static bool infer_broadcast(lg__call *call)
{
        return infer_of_rank(call, false);
}

static bool forward_broadcast(lg__call *call)
{
        return run(call, LG__BROADCAST, call->in[0], call->out[0]);
}

static bool vjp_broadcast(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        lg_group *g = group_of(v->ctx, a, "broadcast");
        lg_tensor *sum = g ? lg_all_reduce(v->grad[0], g) : NULL;
        return sum && (v->grad_in[0] = g->rank == a->rank ? sum : lg_mul_scalar(sum, 0));
}

static const lg__op broadcast_op = {.name = "broadcast",
                                    LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR}),
                                    LG__RESULTS({"y"}),
                                    LG__HAS(collective),
                                    .infer = infer_broadcast,
                                    .forward = forward_broadcast,
                                    .vjp = vjp_broadcast};

lg_tensor *lg_broadcast(lg_tensor *x, lg_group *g, int root)
{
        return ready(x, g, "broadcast") ? apply(&broadcast_op, x, g, 0, root) : NULL;
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

static bool forward_all_gather(lg__call *call)
{
        return run(call, LG__ALL_GATHER, call->in[0], call->out[0]);
}

static bool vjp_all_gather(lg__vjp *v)
{
        lg_group *g = group_of(v->ctx, v->attributes, "all_gather");
        return g && (v->grad_in[0] = lg_reduce_scatter(v->grad[0], g));
}

static const lg__op all_gather_op = {.name = "all_gather",
                                     LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR}),
                                     LG__RESULTS({"y"}),
                                     LG__HAS(collective),
                                     .infer = infer_all_gather,
                                     .forward = forward_all_gather,
                                     .vjp = vjp_all_gather};

lg_tensor *lg_all_gather(lg_tensor *x, lg_group *g)
{
        return ready(x, g, "all_gather") ? apply(&all_gather_op, x, g, 0, -1) : NULL;
}

static bool infer_reduce_scatter(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        const collective_attributes *a = call->attributes;
        const lg_group *g = group_of(call->ctx, a, "reduce_scatter");
        if (!check_reduction(x, (lg_rank_op)a->reduction, "reduce_scatter"))
                return false;
        if (g && (x->at.shape.ndim == 0 || x->at.shape.size[0] % g->size))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "reduce_scatter: x is %s; its first size must be a multiple of the %d ranks",
                                lg__tensor_text(x).s, g->size);
        if (g)
                call->out_at[0].shape.size[0] /= g->size;
        return g != NULL;
}

static bool forward_reduce_scatter(lg__call *call)
{
        return run(call, LG__REDUCE_SCATTER, call->in[0], call->out[0]);
}

static bool vjp_reduce_scatter(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        lg_group *g = group_of(v->ctx, a, "reduce_scatter");
        lg_tensor *all = g ? lg_all_gather(v->grad[0], g) : NULL;
        if (all && a->reduction == LG_RANKS_MEAN)
                all = lg_mul_scalar(all, 1.0 / g->size);
        else if (all && a->reduction == LG_RANKS_MAX)
                all = share_of(v->in[0], lg_all_gather(v->out[0], g), all, g);
        return (v->grad_in[0] = all) != NULL;
}

static const lg__op reduce_scatter_op = {.name = "reduce_scatter",
                                         LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
                                         LG__RESULTS({"y", .saved_for = LG__BY(0)}),
                                         LG__HAS(collective),
                                         .infer = infer_reduce_scatter,
                                         .forward = forward_reduce_scatter,
                                         .vjp = vjp_reduce_scatter};

lg_tensor *lg_reduce_scatter_with(lg_tensor *x, lg_group *g, const lg_all_reduce_options *options)
{
        lg_all_reduce_options o;
        if (!ready(x, g, "reduce_scatter") || !lg__take(x->ctx, "reduce_scatter", options, &o, sizeof o))
                return NULL;
        return apply(&reduce_scatter_op, x, g, o.op, -1);
}

/* ---- send, receive ---- */

static bool infer_send(lg__call *call)
{
        if (!lg__dtype_float(call->in[0]->at.dtype))
                call->out_at[0].dtype = LG_F32;
        call->out_at[0].shape = LG_SHAPE_0D;
        return infer_of_rank(call, true);
}

static bool forward_send(lg__call *call)
{
        return run(call, LG__SEND, call->in[0], NULL) && lg__fill_values(call->out[0], 0, "send");
}

/* A second derivative goes the same way once more: what is received depends on x and on this op, whose token says so.
 */
static bool vjp_send(lg__vjp *v)
{
        lg_group *g = group_of(v->ctx, v->attributes, "send");
        lg_tensor *like = v->in[0];
        if (v->ctx->recording)
                like = lg_add(like, lg_expand(v->out[0], like->at.shape));
        return g && (v->grad_in[0] = lg_receive(like, g, ((const collective_attributes *)v->attributes)->rank));
}

static const lg__op send_op = {.name = "send",
                               LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR, .saved_for = LG__BY(0)}),
                               LG__RESULTS({"token", .saved_for = LG__BY(0)}),
                               LG__HAS(collective),
                               .infer = infer_send,
                               .forward = forward_send,
                               .vjp = vjp_send};

lg_tensor *lg_send(lg_tensor *x, lg_group *g, int to)
{
        return ready(x, g, "send") ? apply(&send_op, x, g, 0, to) : NULL;
}

static bool infer_receive(lg__call *call)
{
        return infer_of_rank(call, true);
}

static bool forward_receive(lg__call *call)
{
        return run(call, LG__RECEIVE, NULL, call->out[0]);
}

/* The values of `like` do not matter: its gradient is zero, and holds the token of what goes back. */
static bool vjp_receive(lg__vjp *v)
{
        const collective_attributes *a = v->attributes;
        const lg__edge *x = lg__input(v, 0);
        lg_group *g = group_of(v->ctx, a, "receive");
        lg_tensor *token = g ? lg_send(v->grad[0], g, a->rank) : NULL;
        return token && (v->grad_in[0] = lg_expand(lg_cast(token, x->dtype), lg__input_shape(v, 0)));
}

static const lg__op receive_op = {.name = "receive",
                                  LG__OPERANDS({"like", LG__ANY, LG__ROW_MAJOR}),
                                  LG__RESULTS({"y"}),
                                  LG__HAS(collective),
                                  .infer = infer_receive,
                                  .forward = forward_receive,
                                  .vjp = vjp_receive};

lg_tensor *lg_receive(lg_tensor *like, lg_group *g, int from)
{
        return ready(like, g, "receive") ? apply(&receive_op, like, g, 0, from) : NULL;
}
