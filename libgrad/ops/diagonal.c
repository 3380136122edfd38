/* diagonal.c - diagonals of matrices, and matrices with given diagonals: diagonal (a view), diag_embed and their kin.
 *
 * diagonal: y[..., i] = x[..., i, i + offset] (x[..., i - offset, i] if the offset is negative) of two dimensions;
 * dx = diag_embed of g. diag_embed: x on that diagonal of zeros; dx = diagonal of g.
 */
#include <string.h>
#include "graph/op.h"

/* rows and columns are the sizes of dim1 and dim2 of a result of diag_embed; -1: just enough for the diagonal. */
#define DIAGONAL_FIELDS(FIELD) FIELD(i64, offset, 0) FIELD(int, dim1, 0) FIELD(int, dim2, 1)
#define DIAG_EMBED_FIELDS(FIELD) DIAGONAL_FIELDS(FIELD) FIELD(i64, rows, -1) FIELD(i64, columns, -1)
LG__ATTRIBUTES(diagonal, DIAGONAL_FIELDS)
LG__ATTRIBUTES(diag_embed, DIAG_EMBED_FIELDS)

/* Resolves dimensions of a tensor with ndim dimensions. Returns false and sets an error if they are equal or absent. */
static bool resolve(lg_ctx *c, const char *op, int *dim1, int *dim2, int ndim)
{
        const int a = *dim1 = lg__dim(c, op, *dim1, ndim), b = *dim2 = a < 0 ? -1 : lg__dim(c, op, *dim2, ndim);
        return b >= 0 && (a != b || lg__fail(c, LG_ERR_ARGUMENT, "%s: dim1 and dim2 are both dimension %d", op, a));
}

/* Sets y to the diagonal in dimensions dim1 and dim2 of x, as its last dimension. */
static void view_diagonal(const lg__layout *x, int64_t offset, int dim1, int dim2, lg__layout *y)
{
        const int64_t rows = x->shape.size[dim1], columns = x->shape.size[dim2];
        const int64_t down = offset < 0 ? rows + offset : rows, across = offset > 0 ? columns - offset : columns;
        const int64_t least = down < across ? down : across, count = least > 0 ? least : 0;
        lg__layout to = {.dtype = x->dtype, .offset = x->offset};
        if (count)
                to.offset += offset < 0 ? -offset * x->strides[dim1] : offset * x->strides[dim2];
        for (int i = 0; i < x->shape.ndim; i++)
                if (i != dim1 && i != dim2) {
                        to.shape.size[to.shape.ndim] = x->shape.size[i];
                        to.strides[to.shape.ndim++] = x->strides[i];
                }
        to.shape.size[to.shape.ndim] = count;
        to.strides[to.shape.ndim++] = x->strides[dim1] + x->strides[dim2];
        lg__layout_copy(y, &to);
}

static bool infer_diagonal(lg__call *call)
{
        diagonal_attributes *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        if (!resolve(call->ctx, "diagonal", &a->dim1, &a->dim2, x->shape.ndim))
                return false;
        view_diagonal(x, a->offset, a->dim1, a->dim2, &call->out_at[0]);
        return true;
}

static bool vjp_diagonal(lg__vjp *v)
{
        const diagonal_attributes *a = v->attributes;
        const int64_t *size = lg__input(v, 0)->size;
        const diag_embed_attributes back = {a->offset, a->dim1, a->dim2, size[a->dim1], size[a->dim2]};
        return (v->grad_in[0] = LG__APPLY(diag_embed, &back, v->grad[0])) != NULL;
}

LG__DEFINE(diagonal, .flags = LG__ALIASES, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(diagonal),
           .infer = infer_diagonal, .vjp = vjp_diagonal)

static bool infer_diag_embed(lg__call *call)
{
        diag_embed_attributes *a = call->attributes;
        const lg_shape x = call->in[0]->at.shape;
        lg_shape *y = &call->out_at[0].shape;
        if (x.ndim == 0 || x.ndim == LG_MAX_DIMS)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "diag_embed: x is %s; it has 1 to %d dimensions",
                                lg__tensor_text(call->in[0]).s, LG_MAX_DIMS - 1);
        if (!resolve(call->ctx, "diag_embed", &a->dim1, &a->dim2, x.ndim + 1))
                return false;
        if (a->rows < 0) {
                const uint64_t beside = a->offset < 0 ? 0 - (uint64_t)a->offset : (uint64_t)a->offset;
                if (beside > INT64_MAX || __builtin_add_overflow(x.size[x.ndim - 1], (int64_t)beside, &a->rows))
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "diag_embed: offset %lld is too large",
                                        (long long)a->offset);
                a->columns = a->rows;
        }
        y->ndim = x.ndim + 1;
        for (int i = 0, from = 0; i < y->ndim; i++)
                y->size[i] = i == a->dim1 ? a->rows : i == a->dim2 ? a->columns : x.size[from++];
        return lg__shape_valid(call->ctx, "diag_embed", *y);
}

static bool forward_diag_embed(lg__call *call)
{
        const diag_embed_attributes *a = call->attributes;
        lg_tensor region = *call->out[0];
        view_diagonal(&call->out[0]->at, a->offset, a->dim1, a->dim2, &region.at);
        return lg__fill_values(call->out[0], 0, "diag_embed") && lg__copy_values(&region, call->in[0], "diag_embed");
}

static bool vjp_diag_embed(lg__vjp *v)
{
        const diag_embed_attributes *a = v->attributes;
        const diagonal_attributes back = {a->offset, a->dim1, a->dim2};
        return (v->grad_in[0] = LG__APPLY(diagonal, &back, v->grad[0])) != NULL;
}

LG__DEFINE(diag_embed, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(diag_embed), .infer = infer_diag_embed,
           .forward = forward_diag_embed, .vjp = vjp_diag_embed)

static int option(int64_t given, int otherwise)
{
        const int64_t dim = lg__whole_option(given, otherwise);
        return dim > LG_MAX_DIMS || dim < -LG_MAX_DIMS ? LG_MAX_DIMS : (int)dim;
}

lg_tensor *lg_diagonal_with(lg_tensor *x, const lg_diagonal_options *options)
{
        lg_diagonal_options o;
        if (!lg__take(lg__ctx_of(x), "diagonal", options, &o, sizeof o))
                return NULL;
        return LG__APPLY(diagonal, (&(diagonal_attributes){o.offset, option(o.dim1, 0), option(o.dim2, 1)}), x);
}

lg_tensor *lg_diag_embed_with(lg_tensor *x, const lg_diag_embed_options *options)
{
        lg_diag_embed_options o;
        if (!lg__take(lg__ctx_of(x), "diag_embed", options, &o, sizeof o))
                return NULL;
        return LG__APPLY(diag_embed,
                         (&(diag_embed_attributes){o.offset, option(o.dim1, -2), option(o.dim2, -1), -1, -1}), x);
}

/* ---- composites ---- */

static lg_tensor *compose_diag(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        const int n = x->at.shape.ndim;
        lg_diag_options o;
        if (!lg__take(call->ctx, "diag", call->attributes, &o, sizeof o))
                return NULL;
        if (n != 1 && n != 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "diag: x is %s; it is a vector or a matrix",
                                lg__tensor_text(x).s);
        return n == 1 ? lg_diag_embed(x, .offset = o.offset) : lg__made(lg_diagonal(x, .offset = o.offset), x);
}

static lg_tensor *compose_diagflat(const lg__call *call)
{
        lg_diag_options o;
        if (!lg__take(call->ctx, "diagflat", call->attributes, &o, sizeof o))
                return NULL;
        return lg_diag_embed(lg_flatten(call->in[0]), .offset = o.offset);
}

#define DIAG(of)                                                                                                       \
        LG__COMPOSITE(of, {"x"})                                                                                       \
        lg_tensor *lg_##of##_with(lg_tensor *x, const lg_diag_options *options)                                        \
        {                                                                                                              \
                return LG__APPLY(of, options, x);                                                                      \
        }
DIAG(diag)
DIAG(diagflat)

static lg_tensor *compose_trace(const lg__call *call)
{
        lg_tensor *x = call->in[0];
        if (x->at.shape.ndim != 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "trace: x is %s; it is a matrix", lg__tensor_text(x).s);
        return lg_sum(lg_diagonal(x));
}
LG__COMPOSITE(trace, {"x"})

lg_tensor *lg_trace(lg_tensor *x)
{
        return LG__APPLY(trace, NULL, x);
}

/* Returns x, of at most two dimensions, as rows of a matrix with `columns` columns, `before` of which precede it. */
static lg_tensor *block(lg_tensor *x, int64_t before, int64_t columns)
{
        const lg_shape s = x->at.shape;
        lg_tensor *rows = s.ndim == 2 ? x : lg_reshape(x, LG_SHAPE(1, s.ndim ? s.size[0] : 1));
        return rows ? lg_pad(rows, LG_INTS(before, columns - before - rows->at.shape.size[1])) : NULL;
}

static lg_tensor *compose_block_diag(const lg__call *call)
{
        lg_ctx *c = call->ctx;
        int64_t columns = 0, before = 0;
        for (int i = 0; i < call->in_count; i++) {
                const lg_shape s = call->in[i]->at.shape;
                if (s.ndim > 2)
                        return lg__fail(c, LG_ERR_SHAPE, "block_diag: tensor %d is %s; it has at most two dimensions",
                                        i, lg__tensor_text(call->in[i]).s);
                if (__builtin_add_overflow(columns, s.ndim ? s.size[s.ndim - 1] : 1, &columns))
                        return lg__fail(c, LG_ERR_SHAPE, "block_diag: the columns add up beyond 2^63");
        }
        const size_t bytes = (size_t)call->in_count * sizeof *call->in;
        lg_tensor **blocks = lg__alloc(c, bytes), *y = NULL;
        bool ok = blocks != NULL;
        for (int i = 0; i < call->in_count && ok; i++) {
                const lg_shape s = call->in[i]->at.shape;
                ok = (blocks[i] = block(call->in[i], before, columns)) != NULL;
                before += s.ndim ? s.size[s.ndim - 1] : 1;
        }
        if (ok)
                y = lg_cat(LG_LIST_OF(call->in_count, blocks), 0);
        lg__free(c, blocks, bytes);
        return y;
}
LG__COMPOSITE(block_diag, {"x", .variadic = true})

lg_tensor *lg_block_diag(lg_list list)
{
        return lg__apply_list(LG__OP(block_diag), list, NULL);
}
