/* derivatives.h - cases for ops that no public function ends with: they are reached through derivatives. */
#ifndef LG_TEST_DERIVATIVES_H
#define LG_TEST_DERIVATIVES_H

#include "../libgrad/ops/recurrent.h"
#include "test.h"

#define MOST_VALUES 80

/* A leaf of at most MOST_VALUES elements that are integers, all different: every dtype holds them. */
static lg_tensor *different(lg_ctx *c, lg_shape shape, lg_dtype dtype)
{
        double v[MOST_VALUES];
        for (int i = 0; i < MOST_VALUES; i++)
                v[i] = 37 * i % MOST_VALUES;
        return lg_set_requires_grad(lg_cast(lg_from(c, v, shape, .dtype = LG_F64), dtype), true);
}

/* The derivative of fn(x, other) by an x of that shape, applied to g. It is recorded in any grad mode. */
static lg_tensor *derivative(lg_tensor *(*fn)(lg_tensor *x, lg_tensor *other), lg_shape shape, lg_tensor *other,
                             lg_tensor *g)
{
        lg_ctx *c = lg_ctx_of(g);
        bool was = lg_set_grad_mode(c, true);
        lg_tensor *x = different(c, shape, lg_dtype_of(g)), *y = fn(x, other);
        lg_tensor *dx = y ? lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g), .create_graph = true) : NULL;
        lg_set_grad_mode(c, was);
        return dx;
}

/* pieces: of (up to) three chunks of that dimension, the second is not used */
static lg_tensor *pieces_but_one(lg_tensor *x, int chunks, int dim)
{
        lg_tensor *p[3];
        const int64_t n = lg_chunk(x, chunks, dim, p, 3);
        if (n > 1)
                p[1] = lg_mul(p[0], p[0]);
        return lg_cat(LG_LIST_OF(n, p), dim);
}

/* The two results of a pair of reductions along dimension 1. */
#define both(of, x) with_second(of(x, &second, .dims = LG_DIMS(1)), &second)
static _Thread_local lg_tensor *second;
static lg_tensor *with_second(lg_tensor *first, lg_tensor **ret_second)
{
        return lg_cat(LG_LIST(first, *ret_second), 0);
}

/* slice_grad */
static lg_tensor *sliced(lg_tensor *x, lg_tensor *unused)
{
        (void)unused;
        return lg_slice(x, 1, 1, LG_MAX, .step = 2);
}

/* pick_grad */
static lg_tensor *two_greatest(lg_tensor *x, lg_tensor *unused)
{
        (void)unused;
        return lg_topk(x, 2, 1);
}

/* max_pool2d_grad */
static lg_tensor *max_pooled(lg_tensor *x, lg_tensor *unused)
{
        (void)unused;
        return lg_max_pool2d(x, 3, .stride = 2, .padding = 1);
}

/* max_pool2d_pick */
static lg_tensor *max_pooled_grad(lg_tensor *g, lg_tensor *unused)
{
        return derivative(max_pooled, LG_SHAPE(2, 2, 4, 5), unused, g);
}

/* avg_pool2d_grad */
static lg_tensor *avg_pooled(lg_tensor *x, lg_tensor *unused)
{
        (void)unused;
        return lg_avg_pool2d(x, 3, .stride = 2, .padding = 1);
}

/* sample_x_grad */
static lg_tensor *read_at(lg_tensor *x, lg_tensor *grid)
{
        return lg_grid_sample(x, grid);
}

/* sample_weight_grad */
static lg_tensor *read_from(lg_tensor *grid, lg_tensor *x)
{
        return lg_grid_sample(x, grid);
}

/* conv2d_relu, with padding 1 */
static lg_tensor *conv2d_and_relu(lg_tensor *x, lg_tensor *w, lg_tensor *b, int stride)
{
        return lg__conv_with_epilogue(x, w, b, 2, &(lg__conv_options){.stride = stride, .padding = 1},
                                      &(lg__conv_epilogue){.relu = true});
}

/* conv2d_input_grad: of images of 4 x 5 under kernels of 2 x 3, in two groups. */
static lg_tensor *convolved(lg_tensor *x, lg_tensor *w)
{
        return lg_conv2d(x, w, NULL, .strides = LG_PAIR(2, 1), .paddings = LG_PAIR(0, 1), .dilations = LG_PAIR(1, 2),
                         .groups = 2);
}

/* conv2d_weight_grad */
static lg_tensor *convolved_by(lg_tensor *w, lg_tensor *x)
{
        return convolved(x, w);
}

static lg_tensor *recurrent_part(lg_tensor *all, int64_t *at, lg_shape shape)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        *at += n;
        return lg_reshape(lg_slice(all, 0, *at - n, *at), shape);
}

/* recurrent: y and the last states in one row, of 2 units, or with `projected` of 3 and states of 2. `states` has h0
 * and then c0, or is NULL; all is w_ih, w_hh, both biases and w_hr, in a row. */
static lg_tensor *recurrent_row(int kind, bool reverse, bool projected, lg_tensor *lengths, lg_tensor *x,
                                lg_tensor *states, lg_tensor *all)
{
        const int64_t gates = lg__recurrent_gates(kind), hidden = projected ? 3 : 2, in = lg_size_of(x, 2);
        const int64_t down = gates * hidden, n = lg_size_of(x, 1);
        int64_t at = 0;
#define NEXT(...) recurrent_part(all, &at, LG_SHAPE(__VA_ARGS__))
        lg__recurrent_layer l = {.kind = (lg_recurrent_kind)kind, .reverse = reverse};
        l.w_ih = NEXT(down, in);
        l.w_hh = NEXT(down, 2);
        if (lg_numel(all) > at) {
                l.b_ih = NEXT(down);
                l.b_hh = NEXT(down);
        }
        l.w_hr = projected ? NEXT(2, hidden) : NULL;
#undef NEXT
        at = 0;
        l.h0 = states ? recurrent_part(states, &at, LG_SHAPE(n, 2)) : NULL;
        l.c0 = states && kind == LG_RECURRENT_LSTM ? recurrent_part(states, &at, LG_SHAPE(n, hidden)) : NULL;
        l.lengths = lengths ? lg_to(lengths, lg_device_of(x)) : NULL;
        lg_tensor *h = NULL, *c = NULL, *y = lg__recurrent(x, &l, &h, &c);
        return lg_cat(LG_LIST(lg_flatten(y), lg_flatten(h), lg_flatten(c)), 0);
}

/* cast from x's dtype to the same one, which lg_cast leaves out: the op of another cast to it, on x. */
static lg_tensor *cast_to_same(lg_tensor *x)
{
        lg_ctx *c = lg_ctx_of(x);
        lg_dtype to = lg_dtype_of(x), from = to == LG_F64 ? LG_F32 : LG_F64;
        bool was = lg_set_grad_mode(c, true);
        const lg_tensor *other = lg_cast(lg_ones(c, LG_SHAPE(1), .dtype = from, .requires_grad = true), to);
        lg_set_grad_mode(c, was);
        if (!other || !other->node)
                return NULL;
        return lg__apply1(LG__OP(cast), x, other->node->attributes);
}

/* q and r of lg_qr(), flattened; triangle_of(): r alone. */
static lg_tensor *factors_of(lg_tensor *x, bool complete)
{
        lg_tensor *q = NULL, *r = NULL;
        lg_qr(x, &q, &r, .complete = complete);
        return lg_cat(LG_LIST(lg_flatten(q), lg_flatten(r)), 0);
}
static lg_tensor *triangle_of(lg_tensor *x)
{
        lg_tensor *r = NULL;
        return lg_qr(x, NULL, &r) ? r : NULL;
}

/* The results of lg_eigh() of x + x^T, and of lg_svd(), without the signs of vectors. */
static lg_tensor *eigh_of(lg_tensor *x)
{
        lg_tensor *w = NULL, *v = NULL;
        lg_eigh(lg_add(x, lg_transpose(x, -1, -2)), &w, &v);
        return lg_cat(LG_LIST(lg_flatten(w), lg_flatten(lg_square(v))), 0);
}
static lg_tensor *svd_of(lg_tensor *x, bool full)
{
        lg_tensor *u = NULL, *s = NULL, *vt = NULL;
        if (!lg_svd(x, &u, &s, &vt, .full = full))
                return NULL;
        const int64_t k = lg_size_of(s, -1);
        u = lg_slice(u, -1, 0, k);
        vt = lg_slice(vt, -2, 0, k);
        return lg_cat(LG_LIST(lg_flatten(s), lg_flatten(lg_square(vt)), lg_flatten(lg_matmul(u, vt))), 0);
}

/* ---- linear algebra ---- */

/* x in f32, unless it is in f64, and y in the dtype of the first input of a case. */
#define WIDE(x) lg__widened(x)
#define NARROW(y) lg_cast(y, lg_dtype_of(X(0)))

/* Regular matrices: x with three times the identity added. */
static lg_tensor *near_one(lg_tensor *x)
{
        const int64_t n = lg_size_of(x, -1);
        lg_tensor *wide = WIDE(x),
                  *one = lg_eye(lg_ctx_of(x), n, n, .dtype = lg_dtype_of(wide), .device = lg_device_of(x));
        return lg_add(wide, lg_mul_scalar(one, 3));
}

static lg_tensor *positive(lg_tensor *x)
{
        lg_tensor *wide = WIDE(x), *square = lg_matmul(wide, lg_transpose(wide, -2, -1));
        return lg_add(square, lg_eye(lg_ctx_of(x), lg_size_of(x, -2), lg_size_of(x, -2), .dtype = lg_dtype_of(wide),
                                     .device = lg_device_of(x)));
}

static lg_tensor *solve_by_lu(lg_tensor *a, lg_tensor *b, bool transposed)
{
        lg_tensor *p = NULL, *lu = lg_lu(a, .permutation = &p);
        return lg_lu_solve(lu, p, b, .transposed = transposed);
}

static lg_tensor *log_of_determinant(lg_tensor *x)
{
        lg_tensor *log = NULL, *sign = lg_slogdet(x, &log);
        return sign ? log : NULL;
}

/* cofactors */
static lg_tensor *determinant(lg_tensor *x, lg_tensor *unused)
{
        (void)unused;
        return lg_cast(lg_det(near_one(x)), lg_dtype_of(x));
}

#endif
