/* test_attention.c - attention: values and gradients beside plain loops in f64, for each option and dtype; rows that
 * see nothing; wrong arguments; memory. */
#include <math.h>
#include "failing.h"

/* A case: sizes and options. left and right as the options. mask: 0 none, 1 bool, 2 float, 3 bool of keys only, 4 float
 * that hides rows. */
typedef struct attention_case {
        int64_t batch, heads, kv_heads, queries, keys, dim, v_dim;
        bool causal;
        int64_t offset, left, right;
        int mask;
        bool lengths, packed;
        double scale, softcap, dropout;
} attention_case;

enum { Q, K, V, G, MOST = 1 << 17 };

typedef struct loops {
        const attention_case *x;
        const double *in[4]; /* q, k, v, g: contiguous */
        const double *mask;  /* what is added, (batch, heads, queries, keys); NULL: nothing */
        const int64_t *lengths;
        const double *drop; /* factors of the weights; NULL: 1 */
        double *o, *dq, *dk, *dv;
} loops;

static int64_t limit_of(int64_t window)
{
        return window == 0 ? -1 : window == LG_ZERO_INT ? 0 : window;
}

/* One query of a head, by the definition. */
static void one_query(const loops *l, int64_t b, int64_t h, int64_t i)
{
        const attention_case *x = l->x;
        const int64_t kv = h / (x->heads / x->kv_heads), row = (b * x->heads + h) * x->queries + i,
                      k0 = (b * x->kv_heads + kv) * x->keys;
        const double *q = l->in[Q] + row * x->dim, *g = l->in[G] + row * x->v_dim;
        double *p = calloc((size_t)x->keys + 1, sizeof *p), *slope = calloc((size_t)x->keys + 1, sizeof *slope);
        double top = -INFINITY, sum = 0, all = 0;
        const int64_t right = x->causal ? 0 : limit_of(x->right), left = limit_of(x->left);
        for (int64_t j = 0; j < x->keys; j++) {
                const double *k = l->in[K] + (k0 + j) * x->dim;
                double s = 0;
                for (int64_t d = 0; d < x->dim; d++)
                        s += q[d] * k[d];
                s *= x->scale ? x->scale : 1 / sqrt((double)x->dim);
                slope[j] = 1;
                if (x->softcap) {
                        const double t = tanh(s / x->softcap);
                        s = x->softcap * t;
                        slope[j] = 1 - t * t;
                }
                s += l->mask ? l->mask[row * x->keys + j] : 0;
                const int64_t at = i + x->offset;
                if ((right >= 0 && j > at + right) || (left >= 0 && j < at - left) ||
                    (l->lengths && j >= l->lengths[b]))
                        s = -INFINITY;
                p[j] = s;
                top = fmax(top, s);
        }
        for (int64_t j = 0; j < x->keys; j++)
                sum += p[j] = isinf(top) ? 0 : exp(p[j] - top);
        for (int64_t j = 0; j < x->keys; j++) {
                p[j] = sum ? p[j] / sum : 0;
                const double drop = l->drop ? l->drop[row * x->keys + j] : 1, *v = l->in[V] + (k0 + j) * x->v_dim;
                double dp = 0;
                for (int64_t d = 0; d < x->v_dim; d++) {
                        l->o[row * x->v_dim + d] += p[j] * drop * v[d];
                        l->dv[(k0 + j) * x->v_dim + d] += p[j] * drop * g[d];
                        dp += g[d] * v[d];
                }
                all += dp * drop * p[j];
        }
        for (int64_t j = 0; j < x->keys; j++) {
                const double drop = l->drop ? l->drop[row * x->keys + j] : 1, *v = l->in[V] + (k0 + j) * x->v_dim;
                double dp = 0;
                for (int64_t d = 0; d < x->v_dim; d++)
                        dp += g[d] * v[d];
                const double ds =
                        p[j] * (dp * drop - all) * slope[j] * (x->scale ? x->scale : 1 / sqrt((double)x->dim));
                for (int64_t d = 0; d < x->dim; d++) {
                        l->dq[row * x->dim + d] += ds * l->in[K][(k0 + j) * x->dim + d];
                        l->dk[(k0 + j) * x->dim + d] += ds * q[d];
                }
        }
        free(p), free(slope);
}

/* A random (batch, heads, rows, width) tensor that requires grad, in the order (batch, rows, heads, width) if `packed`.
 */
static lg_tensor *input(lg_ctx *c, int64_t batch, int64_t heads, int64_t rows, int64_t width, bool packed,
                        lg_dtype dtype)
{
        lg_tensor *x = packed ? lg_normal(c, 0, 1, LG_SHAPE(batch, rows, heads, width))
                              : lg_normal(c, 0, 1, LG_SHAPE(batch, heads, rows, width));
        return lg_cast(packed ? lg_permute(x, LG_DIMS(0, 2, 1, 3)) : x, dtype);
}

static double *values_of(lg_tensor *t)
{
        double *v = calloc(MOST, sizeof *v);
        read_all(t, v, MOST);
        return v;
}

static lg_tensor *mask_of(lg_ctx *c, const attention_case *x, lg_dtype dtype)
{
        const lg_shape full = LG_SHAPE(x->batch, x->mask == 3 ? 1 : x->heads, x->mask == 3 ? 1 : x->queries, x->keys);
        if (x->mask == 0)
                return NULL;
        lg_tensor *m = lg_normal(c, 0, 1, full);
        if (x->mask == 1 || x->mask == 3)
                return lg_gt_scalar(m, -0.5);
        m = lg_cast(m, dtype);
        return x->mask == 2 ? m : lg_masked_fill(m, lg_gt_scalar(lg_slice(m, 3, 0, 1), 0), -LG_INFINITY);
}

static double *mask_values(lg_ctx *c, lg_tensor *mask, const attention_case *x)
{
        if (!mask)
                return NULL;
        if (lg_dtype_of(mask) == LG_BOOL)
                mask = lg_masked_fill(lg_zeros(c, lg_shape_of(mask)), lg_logical_not(mask), -LG_INFINITY);
        return values_of(lg_expand(mask, LG_SHAPE(x->batch, x->heads, x->queries, x->keys)));
}

/* The dropout's factors, by the generator's own uniforms: one for each weight, four to a block, rows of whole blocks.
 */
static double *drop_values(lg_ctx *c, lg_random_state state, const attention_case *x)
{
        if (x->dropout == 0)
                return NULL;
        const lg_random_state now = lg_random_state_of(c);
        const int64_t rows = x->batch * x->heads * x->queries, padded = (x->keys + 3) / 4 * 4;
        lg_set_random_state(c, state);
        double *u = values_of(lg_slice(lg_uniform(c, 0, 1, LG_SHAPE(rows, padded), .device = lg_cpu()), 1, 0, x->keys));
        for (int64_t i = 0; i < rows * x->keys; i++)
                u[i] = u[i] >= x->dropout ? 1 / (1 - x->dropout) : 0;
        assert_int_equal(now.counter - state.counter, rows * padded / 4);
        lg_set_random_state(c, now);
        return u;
}

static void run(lg_ctx *c, const attention_case *x, lg_dtype dtype, double limit)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t[4] = {input(c, x->batch, x->heads, x->queries, x->dim, x->packed, dtype),
                           input(c, x->batch, x->kv_heads, x->keys, x->dim, x->packed, dtype),
                           input(c, x->batch, x->kv_heads, x->keys, x->v_dim, x->packed, dtype),
                           input(c, x->batch, x->heads, x->queries, x->v_dim, false, dtype)};
        lg_tensor *mask = mask_of(c, x, dtype), *lengths = NULL;
        int64_t length[8];
        for (int64_t b = 0; b < x->batch; b++)
                length[b] = x->keys * b / x->batch;
        if (x->lengths)
                lengths = lg_from(c, length, LG_SHAPE(x->batch));
        for (int i = 0; i < 3; i++)
                lg_set_requires_grad(t[i], true);
        const lg_random_state state = lg_random_state_of(c);
        lg_tensor *o = lg_attention(t[Q], t[K], t[V], .causal = x->causal, .offset = x->offset, .mask = mask,
                                    .kv_lengths = lengths, .scale = x->scale, .softcap = x->softcap,
                                    .dropout = x->dropout, .window_left = x->left, .window_right = x->right);
        lg_backward(lg_sum(lg_mul(o, t[G])));
        assert_ok(c);
        double *in[4], *m = mask_values(c, mask, x), *drop = drop_values(c, state, x);
        for (int i = 0; i < 4; i++)
                in[i] = values_of(t[i]);
        double *to[4];
        for (int i = 0; i < 4; i++)
                to[i] = calloc(MOST, sizeof **to);
        const loops l = {x,    {in[0], in[1], in[2], in[3]}, m, x->lengths ? length : NULL, drop, to[0], to[1], to[2],
                         to[3]};
        for (int64_t b = 0; b < x->batch; b++)
                for (int64_t h = 0; h < x->heads; h++)
                        for (int64_t i = 0; i < x->queries; i++)
                                one_query(&l, b, h, i);
        lg_tensor *const got[] = {o, lg_grad_of(t[Q]), lg_grad_of(t[K]), lg_grad_of(t[V])};
        for (int i = 0; i < 4; i++) {
                assert_values(got[i], to[i], lg_numel(got[i]), limit);
                free(to[i]), free(in[i]);
        }
        free(m), free(drop);
        lg_scope_end(c, scope);
}

static const attention_case cases[] = {
        {2, 2, 2, 5, 7, 8, 8, .causal = false},
        {1, 2, 2, 33, 33, 16, 16, .causal = true, .packed = true},
        {2, 2, 2, 12, 24, 16, 8, .causal = false},
        {2, 3, 1, 70, 130, 24, 40, .lengths = true},
        {1, 4, 2, 65, 65, 16, 16, .causal = true, .mask = 1},
        {2, 2, 2, 20, 50, 5, 3, .causal = true, .offset = 30, .mask = 2, .packed = true},
        {2, 2, 2, 40, 70, 16, 32, .mask = 3, .scale = 0.3},
        {1, 2, 1, 30, 30, 8, 8, .mask = 4},
        {1, 1, 1, 150, 150, 16, 16, .left = 20, .right = LG_ZERO_INT},
        {1, 1, 1, 150, 140, 16, 16, .offset = -5, .left = LG_ZERO_INT, .right = 33, .softcap = 2},
        {1, 2, 2, 70, 10, 16, 16, .causal = true, .offset = -20},             /* the first queries see nothing */
        {1, 1, 1, 9, 300, 16, 16, .causal = true, .offset = 400, .left = 50}, /* none does */
        {2, 2, 2, 40, 37, 16, 16, .causal = true, .dropout = 0.3},
        {1, 2, 2, 70, 99, 7, 9, .dropout = 0.5, .softcap = 1.5, .mask = 2},
        {1, 1, 1, 3, 5, 1, 1, .dropout = 1},
        {1, 1, 1, 1, 1, 1, 1, .causal = true},
        {1, 4, 2, 40, 600, 16, 16, .causal = true, .offset = 560},
        {2, 2, 2, 40, 70, 16, 8, .causal = true, .offset = 30, .packed = true},
        {1, 6, 1, 10, 130, 8, 8, .causal = true, .offset = 120, .packed = true},
        {2, 8, 2, 10, 200, 8, 4, .mask = 1},
        {1, 2, 1, 3, 1028, 4, 4, .dropout = 0.2, .softcap = 3},
        {1, 2, 1, 3, 1031, 4, 4, .causal = true, .offset = 1028, .left = 1026},
        {2, 4, 1, 2, 150, 24, 40, .causal = true, .offset = 148, .mask = 1, .lengths = true},
        {1, 2, 2, 1, 200, 5, 17, .offset = 180, .mask = 3, .left = 90, .right = LG_ZERO_INT, .softcap = 2,
         .packed = true},
        {1, 2, 2, 3, 70, 16, 16, .causal = true, .offset = -2, .mask = 2},
        {1, 2, 2, 161, 147, 17, 33, .causal = true, .mask = 2},
        {2, 2, 2, 0, 5, 4, 4, .causal = true},
        {2, 2, 2, 5, 0, 4, 4, .causal = false},
        {2, 2, 2, 5, 6, 0, 4, .scale = 1},
        {2, 2, 2, 5, 6, 4, 0, .causal = true},
        {0, 2, 2, 5, 6, 4, 4, .causal = false},
};

TEST_CASE(beside_loops)
{
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-13, 3e-6, 4e-3, 3e-2};
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                for (int d = 0; d < 4; d++)
                        run(c, &cases[i], dtypes[d], limits[d]);
        lg_close(c);
}

static lg_tensor *of_shape(lg_ctx *c, lg_shape s)
{
        return lg_normal(c, 0, 1, s, .dtype = LG_F64);
}

/* Leading dimensions broadcast, and missing ones are 1: the values are those of each part. */
TEST_CASE(leading_dimensions)
{
        lg_ctx *c = open_ctx();
        double ref[MOST / 64];
        lg_tensor *q = of_shape(c, LG_SHAPE(2, 3, 4, 5, 6)), *k = of_shape(c, LG_SHAPE(3, 2, 7, 6)),
                  *v = of_shape(c, LG_SHAPE(2, 1, 2, 7, 8));
        lg_tensor *mask = lg_gt_scalar(of_shape(c, LG_SHAPE(2, 1, 1, 5, 7)), -1);
        lg_tensor *y = lg_attention(q, k, v, .mask = mask);
        for (int i = 0; i < 2; i++)
                for (int j = 0; j < 3; j++) {
                        lg_tensor *one = lg_attention(lg_select(lg_select(q, 0, i), 0, j), lg_select(k, 0, j),
                                                      lg_select(lg_select(v, 0, i), 0, 0),
                                                      .mask = lg_select(lg_select(lg_select(mask, 0, i), 0, 0), 0, 0));
                        const int64_t n = read_all(one, ref, MOST / 64);
                        assert_values(lg_select(lg_select(y, 0, i), 0, j), ref, n, 1e-14);
                }
        lg_tensor *flat =
                lg_attention(lg_select(lg_select(lg_select(q, 0, 0), 0, 0), 0, 0), lg_select(lg_select(k, 0, 0), 0, 0),
                             lg_select(lg_select(lg_select(v, 0, 0), 0, 0), 0, 0),
                             .mask = lg_select(lg_select(lg_select(mask, 0, 0), 0, 0), 0, 0));
        assert_int_equal(lg_ndim_of(flat), 2);
        read_all(lg_select(lg_select(lg_select(y, 0, 0), 0, 0), 0, 0), ref, MOST / 64);
        assert_values(flat, ref, 5 * 8, 1e-14);
        assert_ok(c);
        lg_close(c);
}

/* Operands whose rows, heads or batches are one row in memory, or do not lie in rows, give what copies of them do. */
TEST_CASE(strided_operands)
{
        lg_ctx *c = open_ctx();
        double ref[4][256];
        for (int whole = 0; whole < 2; whole++) {
                lg_seed(c, 3);
                lg_tensor *from[3] = {of_shape(c, LG_SHAPE(2, 1, 1, 4)), of_shape(c, LG_SHAPE(2, 2, 4, 6)),
                                      of_shape(c, LG_SHAPE(1, 2, 6, 3))};
                for (int i = 0; i < 3; i++)
                        lg_set_requires_grad(from[i], true);
                lg_tensor *t[3] = {lg_expand(from[0], LG_SHAPE(2, 4, 5, 4)), lg_transpose(from[1], 2, 3),
                                   lg_expand(from[2], LG_SHAPE(2, 2, 6, 3))};
                for (int i = 0; i < 3; i++)
                        t[i] = whole ? lg_contiguous(t[i]) : t[i];
                lg_tensor *y[4] = {lg_attention(t[0], t[1], t[2], .causal = true)};
                lg_grad(LG_LIST(lg_sum(lg_square(y[0]))), LG_LIST(from[0], from[1], from[2]), .result = y + 1);
                assert_ok(c);
                for (int i = 0; i < 4; i++) {
                        if (whole)
                                assert_values(y[i], ref[i], lg_numel(y[i]), 1e-14);
                        else
                                read_all(y[i], ref[i], 256);
                }
        }
        lg_close(c);
}

/* Heads that are views of (batch, positions, heads, elements) come back in that order: joining them copies nothing. */
TEST_CASE(order_of_the_result)
{
        lg_ctx *c = open_ctx();
        lg_tensor *packed = lg_normal(c, 0, 1, LG_SHAPE(2, 9, 3, 4, 8), .requires_grad = true);
        lg_tensor *heads = lg_permute(packed, LG_DIMS(2, 0, 3, 1, 4)), *part[3];
        for (int i = 0; i < 3; i++)
                part[i] = lg_select(heads, 0, i);
        lg_tensor *y = lg_permute(lg_attention(part[0], part[1], part[2], .causal = true), LG_DIMS(0, 2, 1, 3));
        assert_true(lg_is_contiguous(y));
        lg_backward(lg_sum(y));
        assert_ok(c);
        lg_close(c);
}

/* The derivative by a kernel gives what that of the formulas gives, a mask's gradient beside it. */
TEST_CASE(gradient_of_a_mask)
{
        lg_ctx *c = open_ctx();
        double ref[4][256];
        lg_tensor *t[4] = {of_shape(c, LG_SHAPE(2, 2, 5, 4)), of_shape(c, LG_SHAPE(2, 2, 6, 4)),
                           of_shape(c, LG_SHAPE(2, 2, 6, 4)), of_shape(c, LG_SHAPE(2, 1, 1, 6))};
        for (int i = 0; i < 4; i++)
                lg_set_requires_grad(t[i], true);
        for (int whole = 0; whole < 2; whole++) {
                lg_tensor *g[4] = {NULL};
                lg_tensor *y =
                        lg_sum(lg_square(lg_attention(t[0], t[1], t[2], .mask = whole ? t[3] : lg_detach(t[3]))));
                if (whole)
                        lg_grad(LG_LIST(y), LG_LIST(t[0], t[1], t[2], t[3]), .result = g);
                else
                        lg_grad(LG_LIST(y), LG_LIST(t[0], t[1], t[2]), .result = g);
                assert_ok(c);
                for (int i = 0; i < 3; i++) {
                        if (whole)
                                assert_values(g[i], ref[i], lg_numel(g[i]), 1e-13);
                        else
                                read_all(g[i], ref[i], 256);
                }
                if (whole)
                        assert_int_equal(lg_numel(g[3]), 12);
        }
        lg_close(c);
}

TEST_CASE(any_number_of_threads)
{
        enum { n = 2 * 700 * 16 };
        static double ref[4][n], got[n];
        for (int threads = 1; threads < 8; threads += threads < 4 ? 1 : 3) {
                lg_ctx *c = open_ctx();
                lg_set_threads(c, threads);
                lg_seed(c, 5);
                lg_tensor *t[3], *g[4];
                for (int i = 0; i < 3; i++)
                        t[i] = lg_normal(c, 0, 1, LG_SHAPE(1, 2, 700, 16), .requires_grad = true);
                g[3] = lg_attention(t[0], t[1], t[2], .causal = true);
                lg_grad(LG_LIST(lg_sum(lg_square(g[3]))), LG_LIST(t[0], t[1], t[2]), .result = g);
                for (int i = 0; i < 4; i++) {
                        read_all(g[i], threads == 1 ? ref[i] : got, n);
                        if (threads > 1)
                                assert_memory_equal(got, ref[i], sizeof got);
                }
                assert_ok(c);
                lg_close(c);
        }
}

/* Memory is linear in the numbers of queries and keys. */
TEST_CASE(memory)
{
        enum { queries = SANITIZED ? 512 : 4096, size = 8 * queries * 64 * 4 };
        lg_ctx *c = open_ctx();
        if (lg_default_device(c).type == LG_DEVICE_CUDA) {
                lg_close(c);
                return; /* in pieces of a size that does not depend on it */
        }
        lg_tensor *t[4];
        for (int i = 0; i < 4; i++)
                t[i] = lg_normal(c, 0, 1, LG_SHAPE(1, 8, queries, 64), .requires_grad = i < 3);
        lg_tensor *y = lg_attention(t[0], t[1], t[2], .causal = true);
        lg_grad(LG_LIST(y), LG_LIST(t[0], t[1], t[2]), .grads = LG_LIST(t[3]));
        assert_ok(c);
        assert_true(lg_memory_stats(c, lg_default_device(c)).peak < 80 << 20);
        lg_close(c);
}

TEST_CASE(autocast)
{
        lg_ctx *c = open_ctx();
        lg_tensor *q = lg_normal(c, 0, 1, LG_SHAPE(1, 2, 4, 8)), *mask = lg_zeros(c, LG_SHAPE(4, 4)), *y = NULL;
        lg_autocast(c, LG_BF16) y = lg_attention(q, q, q, .mask = mask);
        assert_int_equal(lg_dtype_of(y), LG_BF16);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *q = lg_zeros(c, LG_SHAPE(2, 4, 5, 8)), *k = lg_zeros(c, LG_SHAPE(2, 2, 6, 8)),
                  *v = lg_zeros(c, LG_SHAPE(2, 2, 6, 3));
        const int64_t lengths[] = {3, 7};
        lg_tensor *wrong = lg_from(c, lengths, LG_SHAPE(2));
        assert_fails(c, lg_attention(q, lg_zeros(c, LG_SHAPE(2, 2, 6, 7)), v), LG_ERR_SHAPE, "q is");
        assert_fails(c, lg_attention(q, k, lg_zeros(c, LG_SHAPE(2, 2, 5, 3))), LG_ERR_SHAPE, "k is");
        assert_fails(c, lg_attention(q, k, lg_zeros(c, LG_SHAPE(2, 1, 6, 3))), LG_ERR_SHAPE, "k is");
        assert_fails(c, lg_attention(q, lg_zeros(c, LG_SHAPE(2, 3, 6, 8)), lg_zeros(c, LG_SHAPE(2, 3, 6, 3))),
                     LG_ERR_SHAPE, "not a multiple");
        assert_fails(c, lg_attention(q, lg_zeros(c, LG_SHAPE(3, 2, 6, 8)), v), LG_ERR_SHAPE, "broadcast");
        assert_fails(c, lg_attention(lg_zeros(c, LG_SHAPE(8)), k, v), LG_ERR_SHAPE, "positions");
        assert_fails(c, lg_attention(q, lg_cast(k, LG_F64), v), LG_ERR_DTYPE, "equal");
        assert_fails(c, lg_attention(lg_cast(q, LG_I64), k, v), LG_ERR_DTYPE, "");
        assert_fails(c, lg_attention(q, k, v, .mask = lg_zeros(c, LG_SHAPE(5, 5))), LG_ERR_SHAPE, "mask");
        assert_fails(c, lg_attention(q, k, v, .mask = lg_zeros(c, LG_SHAPE(2, 2, 4, 5, 6))), LG_ERR_SHAPE, "mask");
        assert_fails(c, lg_attention(q, k, v, .mask = lg_zeros(c, LG_SHAPE(5, 6), .dtype = LG_I64)), LG_ERR_DTYPE,
                     "mask");
        assert_fails(c, lg_attention(q, k, v, .kv_lengths = lg_zeros(c, LG_SHAPE(3), .dtype = LG_I64)), LG_ERR_SHAPE,
                     "kv_lengths");
        assert_fails(c, lg_attention(q, k, v, .kv_lengths = lg_zeros(c, LG_SHAPE(2))), LG_ERR_DTYPE, "kv_lengths");
        assert_fails(c, lg_attention(q, k, v, .dropout = 1.5), LG_ERR_ARGUMENT, "dropout is 1.5");
        assert_fails(c, lg_attention(q, k, v, .softcap = -1), LG_ERR_ARGUMENT, "softcap is -1");
        assert_fails(c, lg_attention(q, k, v, .scale = NAN), LG_ERR_ARGUMENT, "scale is");
        assert_fails(c, lg_attention(q, k, v, .window_left = -2), LG_ERR_ARGUMENT, "window_left is -2");
        assert_fails(c, lg_attention(q, k, v, .offset = LG_MAX), LG_ERR_ARGUMENT, "offset is");
        lg_tensor *y = lg_attention(q, k, v, .kv_lengths = wrong);
        lg_synchronize(c);
        assert_string_equal(lg_error(c), "attention: kv_lengths holds 7, but there are 6 keys");
        (void)y;
        lg_close(c);
}
