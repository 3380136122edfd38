/* cummax.c - running maxima and minima along a dimension, and their indices.
 *
 * y[i] = x[index[i]], where index[i] is the last place of the extreme of x[0] ... x[i]; dx = scatter_add of g into
 * zeros by the index.
 */
#include "gather.h"

#define CUMMAX_FIELDS(FIELD) FIELD(int, dim, 0)
LG__ATTRIBUTES(cummax, CUMMAX_FIELDS)

static bool infer(lg__call *call)
{
        cummax_attributes *a = call->attributes;
        call->out_at[1] = call->out_at[0];
        call->out_at[1].dtype = LG_I64;
        return (a->dim = lg__line_dim(call->in[0], call->op->name, a->dim)) >= 0;
}

static bool forward(lg__call *call)
{
        const lg_tensor *x = call->in[0];
        lg_cummax_args k = {.dtype = x->at.dtype, .min = call->op == LG__OP(cummin), .x = lg__data(x)};
        lg__split(x->at.shape, ((const cummax_attributes *)call->attributes)->dim, &k.outer, &k.n, &k.inner);
        k.values = lg__data(call->out[0]);
        k.indices = lg__data(call->out[1]);
        return lg__shape_numel(x->at.shape) == 0 || LG__RUN(call->device, call->op->name, cummax, &k);
}

static bool vjp(lg__vjp *v)
{
        const cummax_attributes *a = v->attributes;
        lg_tensor *zeros = lg_expand(lg__constant(v->grad[0], 0), lg__input_shape(v, 0));
        v->grad_in[0] = lg__scatter_add(zeros, a->dim, v->out[1], v->grad[0], LG__ORIGIN_SCATTER_ADD);
        return v->grad_in[0] != NULL;
}

#define RUNNING(of)                                                                                                    \
        LG__DEFINE(of, LG__OPERANDS({"x", LG__ANY, LG__ROW_MAJOR}),                                                    \
                   LG__RESULTS({"values"}, {"indices", .saved_for = LG__BY(0)}), LG__HAS(cummax), .infer = infer,      \
                   .forward = forward, .vjp = vjp)                                                                     \
        lg_tensor *lg_##of##_with(lg_tensor *x, int dim, const lg_cummax_options *options)                             \
        {                                                                                                              \
                lg_tensor *out[LG__MAX_OUT];                                                                           \
                lg_cummax_options o;                                                                                   \
                if (!lg__take(lg__ctx_of(x), #of, options, &o, sizeof o) ||                                            \
                    !lg__apply(LG__OP(of), &x, 1, &(cummax_attributes){dim}, out))                                     \
                        return NULL;                                                                                   \
                if (o.indices)                                                                                         \
                        *o.indices = out[1];                                                                           \
                else                                                                                                   \
                        lg__tensor_release(out[1]);                                                                    \
                return out[0];                                                                                         \
        }
RUNNING(cummax)
RUNNING(cummin)
