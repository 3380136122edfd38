/* cat.c - joins tensors along a dimension (cat) or a new one (stack). cat: dx_i = the slice of g where x_i is in y. */
#include "graph/op.h"

#define CAT_FIELDS(FIELD) FIELD(int, dim, 0)
LG__ATTRIBUTES(cat, CAT_FIELDS)

static bool infer(lg__call *call)
{
        cat_attributes *a = call->attributes;
        lg_shape s = call->in[0]->at.shape;
        const int dim = a->dim = lg__dim(call->ctx, "cat", a->dim, s.ndim);
        if (dim < 0)
                return false;
        for (int i = 1; i < call->in_count; i++) {
                lg_shape other = call->in[i]->at.shape;
                int64_t size = other.ndim == s.ndim ? other.size[dim] : 0;
                other.size[dim] = s.size[dim];
                if (!lg__shape_equal(s, other))
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "cat: tensor %d is %s, tensor 0 is %s; only dimension %d may differ", i,
                                        lg__tensor_text(call->in[i]).s, lg__tensor_text(call->in[0]).s, dim);
                if (__builtin_add_overflow(s.size[dim], size, &s.size[dim]))
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "cat: the sizes of dimension %d add up beyond 2^63",
                                        dim);
        }
        call->out_at[0].shape = s;
        return lg__shape_valid(call->ctx, "cat", s);
}

static bool forward(lg__call *call)
{
        int dim = ((const cat_attributes *)call->attributes)->dim;
        lg_tensor region = *call->out[0];
        for (int i = 0; i < call->in_count; i++) {
                region.at.shape = call->in[i]->at.shape;
                if (!lg__copy_values(&region, call->in[i], "cat"))
                        return false;
                region.at.offset += region.at.shape.size[dim] * region.at.strides[dim];
        }
        return true;
}

static bool vjp(lg__vjp *v)
{
        int dim = ((const cat_attributes *)v->attributes)->dim;
        int64_t start = 0;
        for (int i = 0; i < v->in_count; i++) {
                int64_t size = lg__input(v, i)->size[dim];
                if (v->needs[i] && !(v->grad_in[i] = lg_slice(v->grad[0], dim, start, start + size)))
                        return false;
                start += size;
        }
        return true;
}

LG__DEFINE(cat, .flags = LG__PROMOTE, LG__OPERANDS({"x", .variadic = true}), LG__RESULTS({"y"}), LG__HAS(cat),
           .infer = infer, .forward = forward, .vjp = vjp, .onnx = "Concat(x, axis=dim)")

lg_tensor *lg_cat(lg_list list, int dim)
{
        return lg__apply_list(LG__OP(cat), list, &(cat_attributes){dim});
}

/* ---- stack ---- */

static bool equal_shapes(const lg__call *call)
{
        const lg_tensor *first = call->in[0];
        for (int i = 1; i < call->in_count; i++)
                if (!lg__shape_equal(call->in[i]->at.shape, first->at.shape))
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "stack: tensor %d is %s, tensor 0 is %s; all have one shape", i,
                                        lg__tensor_text(call->in[i]).s, lg__tensor_text(first).s);
        return true;
}

static lg_tensor *compose_stack(const lg__call *call)
{
        lg_ctx *c = call->ctx;
        int dim = ((const cat_attributes *)call->attributes)->dim;
        if (!equal_shapes(call) || (dim = lg__dim(c, "stack", dim, call->in[0]->at.shape.ndim + 1)) < 0)
                return NULL;
        size_t bytes = (size_t)call->in_count * sizeof *call->in;
        lg_tensor **views = lg__alloc(c, bytes), *y = NULL;
        bool ok = views != NULL;
        for (int i = 0; i < call->in_count && ok; i++)
                ok = (views[i] = lg_unsqueeze(call->in[i], dim)) != NULL;
        if (ok)
                y = lg_cat((lg_list){call->in_count, views}, dim);
        for (int i = 0; i < call->in_count && views; i++)
                lg__tensor_release(views[i]);
        lg__free(c, views, bytes);
        return y;
}

LG__COMPOSITE(stack, {"x", .variadic = true})

lg_tensor *lg_stack(lg_list list, int dim)
{
        return lg__apply_list(LG__OP(stack), list, &(cat_attributes){dim});
}
