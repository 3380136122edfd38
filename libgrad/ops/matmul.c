/* matmul.c - matrix products.
 *
 * matmul: c = a b; da = g b^T, db = a^T g. linear: y = x w^T + b; dx = g w, dw = g^T x, db = g summed over rows.
 * linear_relu: y = relu(x w^T + b), with the derivatives of linear for the gradient g where y > 0, else 0.
 */
#include <string.h>
#include "graph/op.h"

/* Returns whether the kernel can read a (rows, cols) matrix with row stride rs and column stride cs: one stride is 1
 * and the other at least the length of a row or column. */
static bool is_matrix(int64_t rows, int64_t cols, int64_t rs, int64_t cs)
{
        bool by_row = (cs == 1 || cols <= 1) && (rs >= cols || rows <= 1);
        bool by_col = (rs == 1 || rows <= 1) && (cs >= rows || cols <= 1);
        return (by_row || by_col) && rs >= 0 && cs >= 0;
}

static lg_tensor *as_matrix(lg_tensor *t)
{
        int n = t->at.shape.ndim;
        const int64_t *size = t->at.shape.size, *stride = t->at.strides;
        bool fits = is_matrix(size[n - 2], size[n - 1], stride[n - 2], stride[n - 1]);
        for (int i = 0; i < n - 2; i++)
                fits = fits && stride[i] >= 0; /* libraries accept no negative batch strides */
        return fits ? t : lg__clone_values(t, t->storage->device->id, t->at.dtype);
}

/* Sets the strides for the kernel, which needs one at least as long as a row or column even if there is only one. */
static void matrix_strides(const lg_tensor *t, int64_t *ret_row, int64_t *ret_col)
{
        int n = t->at.shape.ndim;
        int64_t rows = t->at.shape.size[n - 2], cols = t->at.shape.size[n - 1];
        int64_t rs = t->at.strides[n - 2], cs = t->at.strides[n - 1];
        bool by_row = (cs == 1 || cols <= 1) && (rs >= cols || rows <= 1);
        if (by_row) {
                cs = 1;
                rs = rows <= 1 || rs < cols ? (cols > 1 ? cols : 1) : rs;
        } else {
                rs = 1;
                cs = cols <= 1 || cs < rows ? (rows > 1 ? rows : 1) : cs;
        }
        *ret_row = rs;
        *ret_col = cs;
}

static void batch_strides(lg_gemm_args *g, const lg_tensor *out, const lg_tensor *a, const lg_tensor *b)
{
        const int n = out->at.shape.ndim;
        lg_shape batch_a = out->at.shape, batch_b = out->at.shape;
        batch_a.size[n - 1] = g->k;
        batch_b.size[n - 2] = g->k;
        lg__broadcast_strides(&a->at, batch_a, g->a_batch);
        lg__broadcast_strides(&b->at, batch_b, g->b_batch);
        memcpy(g->c_batch, out->at.strides, sizeof g->c_batch);
        memcpy(g->batch, out->at.shape.size, sizeof g->batch);
}

typedef struct epilogue {
        bool adds; /* adds the product to the values of out */
        bool relu;
        const void *bias; /* bias, as one row, or NULL */
} epilogue;

/* Computes out = relu(a b + bias) or out += a b for matrices with leading batch dimensions; out has the batch
 * dimensions of a and b after broadcasting. */
static bool product(lg_tensor *out, lg_tensor *a, lg_tensor *b, epilogue e, const char *op)
{
        int n = out->at.shape.ndim;
        lg_gemm_args g = {.dtype = out->at.dtype, .batch_ndim = n - 2, .beta = e.adds, .bias = e.bias, .relu = e.relu};
        g.m = out->at.shape.size[n - 2];
        g.n = out->at.shape.size[n - 1];
        g.k = a->at.shape.size[a->at.shape.ndim - 1];
        if (lg__shape_numel(out->at.shape) == 0)
                return true;
        lg_tensor *ma = as_matrix(a), *mb = ma ? as_matrix(b) : NULL;
        bool ok = ma && mb;
        if (ok) {
                if (n > 2)
                        batch_strides(&g, out, ma, mb);
                matrix_strides(ma, &g.a_row, &g.a_col);
                matrix_strides(mb, &g.b_row, &g.b_col);
                g.a = lg__data(ma);
                g.b = lg__data(mb);
                g.c = lg__data(out);
                g.ldc = g.n;
                lg__device_work(out->storage->device, 2.0 * (double)lg__shape_numel(out->at.shape) * (double)g.k);
                ok = LG__RUN(out->storage->device, op, gemm, &g);
        }
        if (ma != a)
                lg__tensor_release(ma);
        if (mb != b)
                lg__tensor_release(mb);
        return ok;
}

/* ---- matmul: both have at least two dimensions ---- */

static bool infer_matmul(lg__call *call)
{
        lg_shape a = call->in[0]->at.shape, b = call->in[1]->at.shape, batch;
        int64_t m = a.size[a.ndim - 2], n = b.size[b.ndim - 1];
        a.ndim -= 2;
        b.ndim -= 2;
        if (!lg__broadcast(NULL, "", a, b, &batch))
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "matmul: a is %s and b is %s: their batch dimensions %s and %s do not broadcast",
                                lg__tensor_text(call->in[0]).s, lg__tensor_text(call->in[1]).s, lg__shape_text(a).s,
                                lg__shape_text(b).s);
        batch.size[batch.ndim++] = m;
        batch.size[batch.ndim++] = n;
        call->out_at[0].shape = batch;
        return lg__shape_valid(call->ctx, "matmul", batch);
}

static bool forward_matmul(lg__call *call)
{
        return product(call->out[0], call->in[0], call->in[1], (epilogue){.adds = false}, "matmul");
}

/* Computes sum += a b in place; an op of its own, so that observers see it. */
static bool forward_matmul_add(lg__call *call)
{
        call->moved |= LG__BY(0);
        return product(call->out[0], call->in[1], call->in[2], (epilogue){.adds = true}, "matmul_add");
}

LG__DEFINE(matmul_add, .flags = LG__ALIASES | LG__ADDS,
           LG__OPERANDS({"sum", LG__FLOAT}, {"a", LG__FLOAT}, {"b", LG__FLOAT}), LG__RESULTS({"y"}),
           .forward = forward_matmul_add)

static lg_tensor *transposed(lg_tensor *x)
{
        return x->at.shape.ndim == 2 ? lg_permute(x, LG_DIMS(1, 0)) : lg_transpose(x, -2, -1);
}

/* Returns whether input i has the same batch dimensions as g, so that it was not broadcast. */
static bool has_batches(const lg__vjp *v, int i, const lg_tensor *g)
{
        const lg_shape s = lg__input_shape(v, i);
        bool has = s.ndim == g->at.shape.ndim;
        for (int d = 0; has && d < s.ndim - 2; d++)
                has = s.size[d] == g->at.shape.size[d];
        return has;
}

/* Sets the gradient of input i to a b, or adds the product to the pending gradient in place if possible. For an input
 * that was broadcast, 16-bit gradients are computed in f32 and rounded after they are summed. */
static bool give_product(lg__vjp *v, int i, lg_tensor *a, lg_tensor *b)
{
        lg_tensor *sum = v->sums[i];
        if (!a || !b)
                return false;
        const bool all = has_batches(v, i, v->grad[0]);
        if (!sum || !all || !lg__layout_is_contiguous(&sum->at)) {
                v->grad_in[i] = !all                    ? lg_matmul(lg__widened(a), lg__widened(b))
                                : a->at.shape.ndim == 2 ? LG__APPLY(matmul, NULL, a, b)
                                                        : lg_matmul(a, b);
                return v->grad_in[i] != NULL;
        }
        lg_tensor *y = LG__APPLY(matmul_add, NULL, sum, a, b);
        lg__tensor_release(y); /* the next in-place addition needs a sum with one handle */
        v->grad_in[i] = sum;
        return y != NULL;
}

static bool vjp_matmul(lg__vjp *v)
{
        lg_tensor *g = v->grad[0];
        return (!v->needs[0] || give_product(v, 0, g, transposed(v->in[1]))) &&
               (!v->needs[1] || give_product(v, 1, transposed(v->in[0]), g));
}

LG__DEFINE(matmul, .flags = LG__PROMOTE, .autocast = LG__LOW,
           LG__OPERANDS({"a", LG__NUMBER, .saved_for = LG__BY(1)}, {"b", LG__NUMBER, .saved_for = LG__BY(0)}),
           LG__RESULTS({"y"}), .infer = infer_matmul, .forward = forward_matmul, .vjp = vjp_matmul,
           .onnx = "MatMul(a, b)")

/* Applies op, which takes x (m, n), to x (..., n) with the leading dimensions flattened, so that the result and the
 * gradient of w are one product each. */
static lg_tensor *by_rows(const lg__op *op, lg_tensor *x, lg_tensor *w, lg_tensor *b)
{
        lg_shape s = x->at.shape;
        const int last = s.ndim - 1;
        int64_t rows = 1;
        for (int i = 0; i < last; i++)
                rows *= s.size[i];
        lg_tensor *flat = s.ndim == 2 ? x : lg_reshape(x, LG_SHAPE(rows, s.size[last]));
        lg_tensor *y = lg__apply(op, (lg_tensor *[]){flat, w, b}, op->operand_count, NULL, NULL);
        if (!y || s.ndim == 2)
                return y;
        s.size[last] = y->at.shape.size[1];
        return lg_reshape(y, s);
}

/* Returns a hint for an error message, how to flatten x so that its rows have `in` elements, or "" if impossible. */
static lg__text flatten_hint(const lg_tensor *x, const char *name, int64_t in)
{
        lg__text hint = {""};
        int64_t size = 1;
        for (int i = x->at.shape.ndim - 1; i >= 0 && !__builtin_mul_overflow(size, x->at.shape.size[i], &size); i--)
                if (size == in && (i || !*hint.s))
                        snprintf(hint.s, sizeof hint.s, "; flatten %s first, by lg_flatten(%s%s%.*d)%s", name, name,
                                 i ? ", .start_dim = " : "", i ? 1 : 0, i, i == 1 ? " or a layer lg_nn_flatten()" : "");
        return hint;
}

/* Returns whether the inputs are all of float dtypes or all of others. */
static bool are_alike(const lg__call *call)
{
        for (int i = 1; i < call->in_count; i++)
                if (call->in[i] && lg__dtype_float(call->in[i]->at.dtype) != lg__dtype_float(call->in[0]->at.dtype))
                        return lg__fail(call->ctx, LG_ERR_DTYPE,
                                        "%s: %s is %s, but %s is %s; convert the integers with lg_cast()",
                                        call->op->name, lg__operand_name(call->op, 0), lg__tensor_text(call->in[0]).s,
                                        lg__operand_name(call->op, i), lg__tensor_text(call->in[i]).s);
        return true;
}

static lg_tensor *compose_matmul(const lg__call *call)
{
        lg_tensor *a = call->in[0], *b = call->in[1];
        const int an = a->at.shape.ndim, bn = b->at.shape.ndim;
        if (!are_alike(call))
                return NULL;
        if (an == 0 || bn == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "matmul: %s is 0-d; use lg_mul()", an ? "b" : "a");
        const int64_t k = a->at.shape.size[an - 1], rows = b->at.shape.size[bn > 1 ? bn - 2 : 0];
        if (k != rows)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "matmul: a is %s and b is %s: the %lld columns of a do not meet the %lld rows of b%s",
                                lg__tensor_text(a).s, lg__tensor_text(b).s, (long long)k, (long long)rows,
                                bn > 1 && b->at.shape.size[bn - 1] == k ? "; those of lg_transpose(b, -2, -1) do"
                                                                        : flatten_hint(a, "a", rows).s);
        lg_tensor *row = an == 1 ? lg_unsqueeze(a, 0) : a, *column = bn == 1 ? lg_unsqueeze(b, 1) : b;
        lg_tensor *y;
        if (row && column && an > 2 && bn <= 2)
                y = by_rows(LG__OP(matmul), row, column, NULL);
        else
                y = LG__APPLY(matmul, NULL, row, column);
        if (y && bn == 1)
                y = lg_squeeze(y, LG_DIMS(-1));
        return y && an == 1 ? lg_squeeze(y, LG_DIMS(bn == 1 ? -1 : -2)) : y;
}

static const lg__op any_matmul = {.name = "matmul",
                                  .autocast = LG__LOW,
                                  .compose = compose_matmul,
                                  LG__OPERANDS({"a", LG__NUMBER}, {"b", LG__NUMBER})};

lg_tensor *lg_matmul(lg_tensor *a, lg_tensor *b)
{
        return lg__apply2(&any_matmul, a, b, NULL);
}

/* ---- linear: x (rows, in), w (out, in), b (out) or NULL ---- */

/* Shape rule of linear and linear_relu. linear_relu saves y: the gradient passes where y > 0. */
static bool infer_linear(lg__call *call)
{
        call->out_at[0].shape = LG_SHAPE(call->in[0]->at.shape.size[0], call->in[1]->at.shape.size[0]);
        return lg__shape_valid(call->ctx, "linear", call->out_at[0].shape);
}

static bool forward_linear(lg__call *call)
{
        const lg_tensor *w = call->in[1], *b = call->in[2];
        lg_tensor wt = *w; /* w transposed */
        wt.at.shape = LG_SHAPE(w->at.shape.size[1], w->at.shape.size[0]);
        wt.at.strides[0] = w->at.strides[1];
        wt.at.strides[1] = w->at.strides[0];
        const epilogue e = {.relu = call->op == LG__OP(linear_relu), .bias = b ? lg__data(b) : NULL};
        return product(call->out[0], call->in[0], &wt, e, call->op->name);
}

static bool derive_linear(lg__vjp *v, lg_tensor *g)
{
        if ((v->needs[0] && !give_product(v, 0, g, v->in[1])) ||
            (v->needs[1] && !give_product(v, 1, transposed(g), v->in[0])))
                return false;
        return !v->needs[2] || v->grad_in[2] || (v->grad_in[2] = lg_sum(g, .dims = LG_DIMS(0))) != NULL;
}

static bool vjp_linear(lg__vjp *v)
{
        return derive_linear(v, v->grad[0]);
}

static bool vjp_linear_relu(lg__vjp *v)
{
        lg_tensor *g = lg__grad_of_relu(v, v->grad[0]);
        return g && derive_linear(v, g);
}

#define BY_ALL (LG__BY(0) | LG__BY(1) | LG__BY(2))
#define LINEAR(of, saved, text)                                                                                        \
        LG__DEFINE(of, .flags = LG__PROMOTE, .autocast = LG__LOW,                                                      \
                   LG__OPERANDS({"x", LG__NUMBER, .saved_for = LG__BY(1)}, {"w", LG__NUMBER, .saved_for = LG__BY(0)},  \
                                {"b", LG__NUMBER, LG__ROW_MAJOR, .optional = true}),                                   \
                   LG__RESULTS({"y", .saved_for = saved}), .infer = infer_linear, .forward = forward_linear,           \
                   .vjp = vjp_##of, .onnx = text)
LINEAR(linear, 0, "Gemm(x, w, b, transB=1)")
LINEAR(linear_relu, BY_ALL, "Relu(Gemm(x, w, b, transB=1))")

/* ---- relu_grad: g where y > 0, else 0; linear in g, with derivative 0 in y ---- */

static bool infer_relu_grad(lg__call *call)
{
        lg__keep_layout(&call->out_at[0], &call->in[1]->at);
        return true;
}

static bool run_relu_grad(lg_tensor *out, lg_tensor *g, lg_tensor *y)
{
        return lg__pointwise_run(LG_PW_relu_da, out, (lg_tensor *[LG_PW_INPUTS]){g, NULL, NULL, y}, 0, 0, "relu_grad");
}

static bool forward_relu_grad(lg__call *call)
{
        return run_relu_grad(call->out[0], call->in[0], call->in[1]);
}

static bool vjp_relu_grad(lg__vjp *v)
{
        return !v->needs[0] || (v->grad_in[0] = LG__APPLY(relu_grad, NULL, v->grad[0], v->in[1]));
}

LG__DEFINE(relu_grad, LG__OPERANDS({"g", LG__FLOAT}, {"y", LG__FLOAT, .saved_for = LG__BY(0)}), LG__RESULTS({"y"}),
           .infer = infer_relu_grad, .forward = forward_relu_grad, .vjp = vjp_relu_grad)

/* Computes out = g where y > 0, else 0, and the bias gradient by one kernel; y is (rows, channels) or channels-last. */
static bool run_relu_sums(lg__vjp *v, lg_tensor *out, lg_tensor *g, lg_tensor *y)
{
        const int64_t columns = y->at.shape.size[1];
        lg_tensor *sums = lg__tensor_empty(v->ctx, y->storage->device->id, y->at.dtype, LG_SHAPE(columns));
        if (!sums)
                return false;
        lg_relu_sums_args a = {.dtype = y->at.dtype,
                               .rows = lg__shape_numel(y->at.shape) / columns,
                               .columns = columns,
                               .y = lg__data(y),
                               .g = lg__data(g),
                               .out = lg__data(out),
                               .sums = lg__data(sums)};
        v->grad_in[2] = sums;
        return LG__RUN(y->storage->device, "relu_grad", relu_sums, &a);
}

lg_tensor *lg__grad_of_relu(lg__vjp *v, lg_tensor *g)
{
        lg_tensor *y = v->out[0];
        const size_t bytes = (size_t)y->at.shape.ndim * sizeof *y->at.strides;
        const bool beside = g && memcmp(g->at.strides, y->at.strides, bytes) == 0;
        const bool in_place = beside && lg__grad_is_unseen(g);
        if (v->needs[2] && beside && !v->ctx->recording && g->at.dtype == y->at.dtype && lg__shape_numel(y->at.shape)) {
                lg_tensor *out = in_place ? g : lg__tensor_beside(y);
                return out && run_relu_sums(v, out, g, y) ? out : NULL;
        }
        if (!in_place)
                return LG__APPLY(relu_grad, NULL, g, y);
        return run_relu_grad(g, g, y) ? g : NULL;
}

/* ---- linear of x (..., in); the attributes are the op to apply to rows: linear or linear_relu ---- */

static lg_tensor *compose_linear(const lg__call *call)
{
        const lg_tensor *x = call->in[0], *w = call->in[1], *b = call->in[2];
        if (!are_alike(call))
                return NULL;
        if (x->at.shape.ndim == 0)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "linear: x is 0-d; it takes (..., in)");
        if (w->at.shape.ndim != 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "linear: w is %s, not 2-d (out, in)", lg__tensor_text(w).s);
        const int64_t last = x->at.shape.size[x->at.shape.ndim - 1], in = w->at.shape.size[1];
        if (last != in) {
                const lg__text flat = flatten_hint(x, "x", in);
                return lg__fail(
                        call->ctx, LG_ERR_SHAPE, "linear: x is %s, rows of %lld, but w is %s: it takes rows of %lld%s",
                        lg__tensor_text(x).s, (long long)last, lg__tensor_text(w).s, (long long)in,
                        w->at.shape.size[0] == last && !*flat.s ? "; w must be (out, in), not (in, out)" : flat.s);
        }
        if (b && (b->at.shape.ndim != 1 || b->at.shape.size[0] != w->at.shape.size[0]))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "linear: b is %s, but w is %s: it takes (%lld,)",
                                lg__tensor_text(b).s, lg__tensor_text(w).s, (long long)w->at.shape.size[0]);
        return by_rows(call->attributes, call->in[0], call->in[1], call->in[2]);
}

static const lg__op any_linear = {
        .name = "linear",
        .autocast = LG__LOW,
        .compose = compose_linear,
        LG__OPERANDS({"x", LG__NUMBER}, {"w", LG__NUMBER}, {"b", LG__NUMBER, .optional = true})};

lg_tensor *lg_linear(lg_tensor *x, lg_tensor *w, lg_tensor *b)
{
        return lg__apply(&any_linear, (lg_tensor *[]){x, w, b}, 3, LG__OP(linear), NULL);
}

lg_tensor *lg__linear_relu(lg_tensor *x, lg_tensor *w, lg_tensor *b)
{
        return lg__apply(&any_linear, (lg_tensor *[]){x, w, b}, 3, LG__OP(linear_relu), NULL);
}
