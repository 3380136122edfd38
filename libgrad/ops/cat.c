/* cat.c - tensors joined along a dimension. dx_i = the slice of g where x_i went. */
#include "../op.h"

typedef struct cat_attributes {
        int dim;
} cat_attributes;

static bool infer_cat(lg__call *call)
{
        int dim = ((const cat_attributes *)call->attributes)->dim;
        lg_shape s = call->in[0]->at.shape;
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
        call->out_at[0].dtype = call->in[0]->at.dtype;
        call->out_at[0].shape = s;
        return lg__shape_valid(call->ctx, "cat", s);
}

static bool forward_cat(lg__call *call)
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

static bool vjp_cat(lg__vjp *v)
{
        int dim = ((const cat_attributes *)v->attributes)->dim;
        int64_t start = 0;
        for (int i = 0; i < v->in_count; i++) {
                int64_t size = lg__input(v, i)->shape.size[dim];
                if (v->needs[i] && !(v->grad_in[i] = lg_slice(v->grad[0], dim, start, start + size)))
                        return false;
                start += size;
        }
        return true;
}

const lg__op lg__op_cat = {.name = "cat",
                           LG__OPERANDS({"x", .variadic = true}),
                           LG__RESULTS({"y"}),
                           .flags = LG__PROMOTE,
                           .attributes_bytes = sizeof(cat_attributes),
                           .infer = infer_cat,
                           .forward = forward_cat,
                           .vjp = vjp_cat};

/* ---- the functions ---- */

/* The context of a list of live tensors, at least one; else NULL. */
static lg_ctx *check_list(lg_list list, const char *op)
{
        lg_ctx *c = NULL;
        if (!list.items)
                return NULL;
        for (int64_t i = 0; i < list.count && !c; i++)
                c = lg__ctx_of(list.items[i]);
        if (!c)
                return NULL;
        if (list.count > INT32_MAX)
                return lg__fail(c, LG_ERR_ARGUMENT, "cat: %lld tensors are too many", (long long)list.count);
        for (int64_t i = 0; i < list.count; i++)
                if (!list.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: tensor %lld is NULL", op, (long long)i);
        for (int64_t i = 1; i < list.count; i++)
                if (!lg__in_context(c, list.items[i], op, "a tensor of the list"))
                        return NULL;
        return lg__check(list.items[0], op, "tensor 0") ? c : NULL;
}

lg_tensor *lg_cat(lg_list list, int dim)
{
        lg_ctx *c = check_list(list, "cat");
        if (!c)
                return NULL;
        cat_attributes a = {lg__dim(c, "cat", dim, list.items[0]->at.shape.ndim)};
        return a.dim < 0 ? NULL : lg__apply(LG__OP(cat), list.items, (int)list.count, &a, NULL);
}

static bool equal_shapes(lg_ctx *c, lg_list list)
{
        const lg_tensor *first = list.items[0];
        for (int64_t i = 1; i < list.count; i++) {
                if (!lg__check(list.items[i], "stack", "a tensor of the list"))
                        return false;
                if (!lg__shape_equal(list.items[i]->at.shape, first->at.shape))
                        return lg__fail(c, LG_ERR_SHAPE, "stack: tensor %lld is %s, tensor 0 is %s; all have one shape",
                                        (long long)i, lg__tensor_text(list.items[i]).s, lg__tensor_text(first).s);
        }
        return true;
}

lg_tensor *lg_stack(lg_list list, int dim)
{
        lg_ctx *c = check_list(list, "stack");
        if (!c || !equal_shapes(c, list) || (dim = lg__dim(c, "stack", dim, list.items[0]->at.shape.ndim + 1)) < 0)
                return NULL;
        size_t bytes = (size_t)list.count * sizeof *list.items;
        lg_tensor **views = lg__alloc(c, bytes), *y = NULL;
        bool ok = views != NULL;
        for (int64_t i = 0; i < list.count && ok; i++)
                ok = (views[i] = lg_unsqueeze(list.items[i], dim)) != NULL;
        if (ok)
                y = lg_cat((lg_list){list.count, views}, dim);
        for (int64_t i = 0; i < list.count && views; i++)
                lg__tensor_release(views[i]);
        lg__free(c, views, bytes);
        return y;
}
