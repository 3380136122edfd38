/* test_regions.c - gradients that are added in place: of views to their region, of products and look-ups to a sum. */
#include "../libgrad/graph/op.h"
#include "test.h"

/* ---- a loop writes in proportion to its length ---- */

static int64_t written; /* bytes that the counted kernels wrote */
static const lg_kernels *real;

static int64_t numel(int ndim, const int64_t *size)
{
        int64_t n = 1;
        for (int i = 0; i < ndim; i++)
                n *= size[i];
        return n;
}

#define COUNTED(kernel, args, bytes)                                                                                   \
        static bool count_##kernel(lg_queue *q, const args *a)                                                         \
        {                                                                                                              \
                written += (bytes)*4;                                                                                  \
                return real->kernel(q, a);                                                                             \
        }
COUNTED(fill, lg_fill_args, numel(a->ndim, a->shape))
COUNTED(copy, lg_copy_args, numel(a->ndim, a->shape))
COUNTED(gemm, lg_gemm_args, numel(a->batch_ndim, a->batch) * a->m * a->n)
COUNTED(scatter_add, lg_gather_args, numel(a->ndim, a->shape))

static bool count_add(lg_queue *q, const lg_pointwise_args *a)
{
        written += numel(a->ndim, a->shape) * 4;
        return real->pointwise[LG_PW_add](q, a);
}

typedef lg_tensor *step_fn(lg_ctx *c, lg_tensor *x, int64_t i);

static lg_tensor *by_select(lg_ctx *c, lg_tensor *x, int64_t i)
{
        (void)c;
        return lg_select(x, 0, i);
}

static lg_tensor *by_slice(lg_ctx *c, lg_tensor *x, int64_t i)
{
        (void)c;
        return lg_slice(x, 0, i, i + 1);
}

/* A view of a view of a view, made anew for each step. */
static lg_tensor *by_transposed(lg_ctx *c, lg_tensor *x, int64_t i)
{
        (void)c;
        return lg_flip(lg_select(lg_transpose(x, 0, 1), 1, i), LG_DIMS(0));
}

static lg_tensor *by_index(lg_ctx *c, lg_tensor *x, int64_t i)
{
        return lg_index_select(x, 0, lg_from(c, ((int64_t[]){i, 0}), LG_SHAPE(2)));
}

static lg_tensor *by_product(lg_ctx *c, lg_tensor *x, int64_t i)
{
        return lg_linear(lg_full(c, LG_SHAPE(1, 32), (double)i), x, NULL);
}

static lg_tensor *by_batches(lg_ctx *c, lg_tensor *x, int64_t i)
{
        return lg_matmul(lg_full(c, LG_SHAPE(lg_shape_of(x).size[0], 1, 8), (double)i), x);
}

static lg_tensor *by_unbind(lg_ctx *c, lg_tensor *x, int64_t i)
{
        lg_tensor *p[64];
        (void)c;
        assert_int_equal(lg_unbind(x, 0, p, 64), lg_shape_of(x).size[0]);
        return p[i];
}

static lg_tensor *by_split(lg_ctx *c, lg_tensor *x, int64_t i)
{
        lg_tensor *p[64];
        (void)c;
        assert_int_equal(lg_split(x, 1, 0, p, 64), lg_shape_of(x).size[0]);
        return p[i];
}

/* Bytes that the backward of a loop over an x of that shape writes. */
static int64_t bytes_of(lg_ctx *c, step_fn *step, lg_shape shape, int64_t steps)
{
        lg_tensor *x = lg_normal(c, 0, 1, shape, .requires_grad = true), *y = NULL;
        for (int64_t i = 0; i < steps; i++) {
                lg_tensor *part = lg_sum(lg_tanh(step(c, x, i)));
                y = y ? lg_add(y, part) : part;
        }
        lg_device_api api = *lg__device_get(c, test_device(c))->api;
        const lg_device_api *was = lg__device_get(c, test_device(c))->api;
        real = api.kernels;
        lg_kernels table = *real;
        table.fill = count_fill;
        table.copy = count_copy;
        table.gemm = count_gemm;
        table.scatter_add = count_scatter_add;
        table.pointwise[LG_PW_add] = count_add;
        api.kernels = &table;
        lg__device_get(c, test_device(c))->api = &api;
        written = 0;
        lg_backward(y);
        lg__device_get(c, test_device(c))->api = was;
        assert_ok(c);
        return written;
}

TEST_CASE(loops_are_linear)
{
        lg_ctx *c = open_ctx();
        static step_fn *const views[] = {by_select, by_slice, by_transposed, by_index, by_unbind, by_split};
        for (size_t k = 0; k < sizeof views / sizeof *views; k++) {
                const int64_t few = bytes_of(c, views[k], LG_SHAPE(12, 32), 12),
                              many = bytes_of(c, views[k], LG_SHAPE(48, 32), 48);
                if (many > 4 * few + 4 * few / 10)
                        fail_msg("way %d: %lld bytes for 12 steps, %lld for 48", (int)k, (long long)few,
                                 (long long)many);
        }
        /* One tensor used again and again: each product writes its gradient once, and nothing else adds it up. */
        static step_fn *const products[] = {by_product, by_batches};
        for (int k = 0; k < 2; k++) {
                const lg_shape shape = k ? LG_SHAPE(64, 8, 4) : LG_SHAPE(64, 32);
                const int64_t few = bytes_of(c, products[k], shape, 4), many = bytes_of(c, products[k], shape, 8);
                const int64_t step = 64 * 32 * 4 + 64 * 4 * 4; /* the gradient, and those of the sum and tanh */
                if (many - few > 4 * step)
                        fail_msg("product %d: %lld bytes for 4 steps, %lld for 8", k, (long long)few, (long long)many);
        }
        lg_close(c);
}

/* ---- who sees a gradient sees all of it, and keeps it ---- */

static lg_tensor *kept;
static lg_tensor *keep_it(lg_tensor *g, void *user)
{
        (void)user;
        return kept = lg_keep(lg_reshape(g, LG_SHAPE(-1))), NULL;
}

static lg_tensor *twice(lg_tensor *g, void *user)
{
        (void)user;
        return lg_mul_scalar(g, 2);
}

TEST_CASE(views_that_are_looked_at)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_tensor *t = lg_transpose(x, 0, 1), *row = lg_select(t, 0, 1), *all = lg_mul_scalar(x, 10);
        lg_retain_grad(t);
        assert_true(lg_hook(row, twice, NULL));
        lg_tensor *g[2];
        lg_tensor *loss = lg_add(lg_sum(lg_add(row, lg_slice(row, 0, 0, 2))), lg_sum(all));
        lg_grad(LG_LIST(loss), LG_LIST(t, x), .result = g, .retain_graph = true);
        assert_ok(c);
        assert_list(g[0], 0, 0, 0, 4, 4, 0, 0);
        assert_list(g[1], 0, 10, 14, 10, 10, 14, 10);
        lg_backward(loss, .retain_graph = true);
        assert_ok(c);
        assert_list(lg_grad_of(t), 0, 0, 0, 4, 4, 0, 0);
        assert_list(lg_grad_of(x), 0, 10, 14, 10, 10, 14, 10);
        assert_list(g[1], 0, 10, 14, 10, 10, 14, 10);
        lg_backward(loss);
        assert_list(lg_grad_of(x), 0, 20, 28, 20, 20, 28, 20);
        /* a gradient that a hook keeps is not added to afterwards */
        lg_tensor *w = lg_ones(c, LG_SHAPE(4), .requires_grad = true), *a = lg_mul_scalar(w, 3);
        assert_true(lg_hook(a, keep_it, NULL));
        lg_backward(lg_add(lg_sum(a), lg_sum(lg_slice(w, 0, 1, 3))));
        assert_ok(c);
        assert_list(kept, 0, 1, 1, 1, 1);
        assert_list(lg_grad_of(w), 0, 3, 4, 4, 3);
        lg_free(kept);
        assert_ok(c);
        lg_close(c);
}

/* ---- random programs: in place as by ops ---- */

enum { STEPS = 16, LEAVES = 3, ROWS = 4, COLUMNS = 6 };

static uint32_t random_state;
static int below(int n)
{
        random_state = random_state * 1664525u + 1013904223u;
        return (int)(random_state >> 8) % n;
}

static lg_tensor *picks(lg_ctx *c, lg_shape shape)
{
        int64_t v[ROWS * COLUMNS];
        for (int i = 0; i < ROWS * COLUMNS; i++)
                v[i] = below(ROWS);
        return lg_from(c, v, shape);
}

static lg_tensor *rearranged(lg_tensor *x)
{
        lg_tensor *p[COLUMNS], *q[COLUMNS];
        const int dim = below(2), n = dim ? COLUMNS : ROWS;
        if (below(2)) {
                lg_unbind(x, dim, p, n);
                for (int i = 0; i < n; i++)
                        q[i] = p[below(n)];
                return lg_stack(((lg_list){n, q}), dim);
        }
        lg_chunk(x, 2, dim, p, 2);
        q[0] = p[1], q[1] = p[below(2)];
        return lg_cat(((lg_list){2, q}), dim);
}

/* A tensor of (ROWS, COLUMNS) made of two of them and a square w. */
static lg_tensor *mixed(lg_ctx *c, lg_tensor *x, lg_tensor *y, lg_tensor *w)
{
        const int i = below(ROWS);
        switch (below(10)) {
        case 0:
                return lg_add(x, lg_slice(y, 0, i, i + 1));
        case 1:
                return lg_transpose(lg_reshape(lg_flip(x, LG_DIMS(below(2))), LG_SHAPE(COLUMNS, ROWS)), 0, 1);
        case 2:
                return rearranged(x);
        case 3:
                return lg_cat(LG_LIST(lg_slice(x, 0, 1, ROWS), lg_slice(y, 0, 0, 1)), 0);
        case 4:
                return lg_linear(lg_mul(x, y), w, NULL);
        case 5:
                return lg_matmul(lg_reshape(x, LG_SHAPE(ROWS, COLUMNS)), w);
        case 6:
                return lg_index_select(y, 0, picks(c, LG_SHAPE(ROWS)));
        case 7:
                return lg_mul(lg_expand(lg_select(x, 0, i), LG_SHAPE(ROWS, COLUMNS)), y);
        case 8:
                return lg_add(lg_gather(x, 0, picks(c, LG_SHAPE(ROWS, COLUMNS))),
                              lg_mean(lg_matmul(lg_reshape(x, LG_SHAPE(2, 2, 6)), lg_reshape(y, LG_SHAPE(2, 6, 2)))));
        default:
                return lg_tanh(lg_add(x, x));
        }
}

static lg_tensor *halve(lg_tensor *g, void *user)
{
        (void)user;
        return lg_mul_scalar(g, 0.5);
}

static void one_program(lg_ctx *c, uint32_t seed)
{
        lg_tensor *leaves[LEAVES], *t[LEAVES - 1 + STEPS], *in_place[LEAVES], *by_ops[LEAVES], *loss = NULL;
        random_state = seed;
        lg_seed(c, seed);
        for (int i = 0; i < LEAVES; i++)
                leaves[i] = lg_uniform(c, -1, 1, LG_SHAPE(i ? ROWS : COLUMNS, COLUMNS), .dtype = LG_F64,
                                       .requires_grad = true);
        int n = LEAVES - 1;
        for (int i = 0; i < n; i++)
                t[i] = leaves[i + 1];
        for (; n < LEAVES - 1 + STEPS; n++) {
                t[n] = mixed(c, t[below(n)], t[n - 1 - below(2)], leaves[0]);
                if (below(4) == 0)
                        lg_hook(t[n], halve, NULL);
                if (below(4) == 0)
                        lg_retain_grad(t[n]);
        }
        for (int i = n - 4; i < n; i++) {
                lg_tensor *part = lg_sum(lg_sin(t[i]));
                loss = loss ? lg_add(loss, part) : part;
        }
        const lg_list in = {LEAVES, leaves};
        lg_grad(LG_LIST(loss), in, .result = by_ops, .create_graph = true);
        lg_grad(LG_LIST(loss), in, .result = in_place, .retain_graph = true);
        lg_backward(loss);
        assert_ok(c);
        for (int i = 0; i < LEAVES; i++) {
                double right[COLUMNS * COLUMNS], scale = 1;
                const int64_t count = by_ops[i] ? read_all(by_ops[i], right, COLUMNS * COLUMNS) : 0;
                assert_true(!by_ops[i] == !in_place[i] && !by_ops[i] == !lg_grad_of(leaves[i]));
                for (int64_t e = 0; e < count; e++)
                        scale = fmax(scale, fabs(right[e]));
                if (by_ops[i]) {
                        assert_values(in_place[i], right, count, 1e-12 * scale);
                        assert_values(lg_grad_of(leaves[i]), right, count, 1e-12 * scale);
                }
        }
}

TEST_CASE(random_programs)
{
        lg_ctx *c = open_ctx();
        for (uint32_t seed = 1; seed <= 200; seed++) {
                lg_scope s = lg_scope_begin(c);
                one_program(c, seed);
                lg_scope_end(c, s);
        }
        lg_close(c);
}

/* ---- a sum that holds a NaN already is no fault of what adds to it ---- */

/* Returns the gradient of x from attention over parts of x, or over copies of the parts; `again`, unless it is -1, is a
 * part that has another use, too. */
static lg_tensor *gradient_of_parts(lg_tensor *x, bool copied, int again)
{
        lg_tensor *part[3], *dx;
        lg_tensor *heads = lg_permute(lg_reshape(x, LG_SHAPE(2, 5, 6, 4)), LG_DIMS(0, 2, 1, 3));
        assert_int_equal(lg_split(heads, 2, 1, part, 3), 3);
        for (int i = 0; i < 3; i++)
                part[i] = copied ? lg_contiguous(part[i]) : part[i];
        lg_tensor *y = lg_sum(lg_square(lg_attention(part[0], part[1], part[2])));
        if (again >= 0)
                y = lg_add(y, lg_sum(lg_square(part[again])));
        lg_grad(LG_LIST(y), LG_LIST(x), .result = &dx);
        return dx;
}

TEST_CASE(gradients_of_all_parts_in_one_storage)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 24), .requires_grad = true);
        double expected[240], got[240];
        for (int again = -1; again < 3; again++) {
                read_all(gradient_of_parts(x, true, again), expected, 240);
                read_all(gradient_of_parts(x, false, again), got, 240);
                assert_memory_equal(got, expected, sizeof got);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(anomalies_are_not_blamed_on_additions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2), .requires_grad = true), *nan = lg_full(c, LG_SHAPE(2, 2), NAN);
        lg_tensor *older[] = {lg_tanh(x), lg_select(x, 0, 1), lg_matmul(x, lg_ones(c, LG_SHAPE(2, 2))),
                              lg_index_select(x, 0, lg_from(c, ((int64_t[]){0}), LG_SHAPE(1)))};
        for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
                lg_tensor *loss = lg_add(lg_sum(older[i]), lg_sum(lg_mul(x, nan)));
                lg_set_anomaly(c, true);
                lg_backward(loss);
                assert_ok(c);
                lg_set_anomaly(c, false);
        }
        lg_set_anomaly(c, true);
        lg_backward(lg_sum(lg_log(lg_select(lg_mul_scalar(x, 0), 0, 1))));
        assert_error(c, LG_ERR_STATE, "anomaly: log made");
        lg_close(c);
}
