/* test_scatter.c - writing by index along a dimension: PyTorch's numbers, every dtype, several elements for one place.
 */
#include "golden.h"

#define SRC golden_like(x, LG_SHAPE(2, 3, 4), 0.7)
#define O lg_reshape(LIST64(2, 0, 1, 1, 2, 3), LG_SHAPE(2, 3))
#define REDUCED(ROW, name, how)                                                                                        \
        ROW(scatter_##name, lg_scatter_reduce(x, 1, I64(3, 2, 3, 4), SRC, how), 2, 3, 4)                               \
        ROW(scatter_##name##_src, lg_scatter_reduce(SRC, 1, I64(3, 2, 3, 4), x, how), 2, 3, 4)                         \
        ROW(scatter_##name##_alone, lg_scatter_reduce(x, 1, I64(3, 2, 3, 4), SRC, how, .exclude_self = true), 2, 3, 4) \
        ROW(scatter_##name##_alone_src, lg_scatter_reduce(SRC, 1, I64(3, 2, 3, 4), x, how, .exclude_self = true), 2,   \
            3, 4)
#define REDUCE_ROWS(ROW)                                                                                               \
        REDUCED(ROW, sum, LG_SCATTER_SUM)                                                                              \
        REDUCED(ROW, prod, LG_SCATTER_PROD)                                                                            \
        REDUCED(ROW, mean, LG_SCATTER_MEAN)                                                                            \
        REDUCED(ROW, amax, LG_SCATTER_AMAX)                                                                            \
        REDUCED(ROW, amin, LG_SCATTER_AMIN)                                                                            \
        ROW(scatter_amax_ties,                                                                                         \
            lg_mul(lg_scatter_reduce(lg_round(x), 1, I64(3, 2, 3, 4), lg_round(lg_detach(x)), LG_SCATTER_AMAX), x), 2, \
            3, 4)
#define WRITE_ROWS(ROW)                                                                                                \
        ROW(scatter_1, lg_scatter(x, 1, O, lg_slice(lg_slice(lg_select(SRC, 0, 0), 0, 0, 2), 1, 0, 3)), 4, 5)          \
        ROW(scatter_src, lg_scatter(lg_select(SRC, 1, 0), 1, O, x), 2, 3)                                              \
        ROW(scatter_scalar, lg_scatter_scalar(x, 0, I64(4, 3, 4), -1.5), 4, 5)                                         \
        ROW(index_copy, lg_index_copy(x, 1, LIST64(2, 0), lg_slice(SRC, 1, 0, 2)), 2, 3, 4)                            \
        ROW(index_copy_src, lg_index_copy(SRC, 1, LIST64(2, 0), x), 2, 2, 4)                                           \
        ROW(index_fill, lg_index_fill(x, 1, LIST64(-1, 0), 2.5), 4, 5)                                                 \
        ROW(index_prod, lg_index_reduce(x, 1, LIST64(2, 0, 2), SRC, LG_SCATTER_PROD), 2, 3, 4)                         \
        ROW(index_mean, lg_index_reduce(x, 1, LIST64(2, 0, 2), SRC, LG_SCATTER_MEAN), 2, 3, 4)                         \
        ROW(index_amax, lg_index_reduce(x, 1, LIST64(2, 0, 2), SRC, LG_SCATTER_AMAX), 2, 3, 4)                         \
        ROW(index_amin, lg_index_reduce(x, 1, LIST64(2, 0, 2), SRC, LG_SCATTER_AMIN), 2, 3, 4)                         \
        ROW(index_mean_alone_src, lg_index_reduce(SRC, 1, LIST64(2, 0, 2), x, LG_SCATTER_MEAN, .exclude_self = true),  \
            2, 3, 4)

/* The rows of M[:2, :3] and B[:, :2] are not tensors by the formula of their own shapes. */
static lg_tensor *input(lg_ctx *c, const golden *row)
{
        if (!strcmp(row->name, "scatter_src"))
                return lg_slice(lg_slice(golden_tensor(c, LG_SHAPE(4, 5), 0), 0, 0, 2), 1, 0, 3);
        if (!strcmp(row->name, "index_copy_src"))
                return lg_slice(golden_tensor(c, LG_SHAPE(2, 3, 4), 0), 1, 0, 2);
        return golden_input(c, row);
}
GOLDEN_TEST(as_pytorch_computes_it, "order.txt", input, WRITE_ROWS);
GOLDEN_TEST(as_pytorch_reduces, "order.txt", golden_input, REDUCE_ROWS);

#define LIST(dtype_, ...)                                                                                              \
        lg_cast(lg_from(c, ((const double[]){__VA_ARGS__}),                                                            \
                        LG_SHAPE((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))), .dtype = LG_F64), \
                dtype_)
static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

TEST_CASE(every_dtype)
{
        lg_ctx *c = open_ctx();
        lg_tensor *at = LIST64(2, 0, 2, 3);
        for (int d = 0; d < DTYPES; d++) {
                lg_tensor *x = LIST(dtypes[d], 9, 8, 7, 2), *src = LIST(dtypes[d], 4, 5, 6, 2), *y;
                y = lg_scatter(x, 0, at, src);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_list(y, 0, 5, 8, 6, 2);
                assert_list(lg_scatter_scalar(x, 0, at, 1), 0, 1, 8, 1, 1);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_SUM), 0, 14, 8, 17, 4);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_SUM, .exclude_self = true), 0, 5, 8, 10, 2);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMAX), 0, 9, 8, 7, 2);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMIN), 0, 5, 8, 4, 2);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMAX, .exclude_self = true), 0, 5, 8, 6, 2);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMIN, .exclude_self = true), 0, 5, 8, 4, 2);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_PROD), 0, 45, 8, 168, 4);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_PROD, .exclude_self = true), 0, 5, 8, 24, 2);
                y = lg_scatter_reduce(x, 0, at, LIST(dtypes[d], 5, 5, 6, 2), LG_SCATTER_MEAN);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_list(y, 0, 7, 8, 6, 2);
                y = lg_scatter_reduce(x, 0, at, src, LG_SCATTER_MEAN, .exclude_self = true);
                assert_list(y, 0, 5, 8, 5, 2);
                assert_list(lg_index_copy(x, 0, LIST64(3, 3), lg_slice(src, 0, 0, 2)), 0, 9, 8, 7, 5);
                assert_ok(c);
        }
        lg_tensor *b = lg_gt_scalar(LIST(LG_F64, 0, 1, 0), 0), *one = lg_gt_scalar(LIST(LG_F64, 1, 0), 0);
        assert_list(lg_scatter(b, 0, LIST64(2, 1), one), 0, 0, 0, 1);
        assert_list(lg_scatter_reduce(b, 0, LIST64(2, 1), one, LG_SCATTER_AMAX), 0, 0, 1, 1);
        assert_list(lg_index_fill(b, 0, LIST64(-3), 2), 0, 1, 1, 0);
        lg_close(c);
}

/* The last element in the order of the dimension remains, with few and many indices, and only it gets a gradient. */
TEST_CASE(the_last_one_remains)
{
        lg_ctx *c = open_ctx();
        const struct {
                int64_t lines, n, size;
                bool shared; /* all lines have the same indices */
        } sizes[] = {{3, 200, 7, false}, {40, 20000, 30, true}, {2, 40000, 3, false}, {1, 17000, 9000, true}};
        for (int s = 0; s < 4; s++) {
                const int64_t lines = sizes[s].lines, n = sizes[s].n, size = sizes[s].size;
                lg_tensor *at = lg_randint(c, 0, size, LG_SHAPE(n, sizes[s].shared ? 1 : lines));
                lg_tensor *src =
                        lg_reshape(lg_arange(c, 0, (double)(n * lines), 1, .dtype = LG_F64), LG_SHAPE(n, lines));
                at = lg_expand(at, LG_SHAPE(n, lines));
                int64_t *i = calloc((size_t)(n * lines), sizeof *i);
                double *want = calloc((size_t)(size * lines), sizeof *want);
                double *least = calloc((size_t)(size * lines), sizeof *least);
                assert_true(lg_read(at, i, LG_I64, (size_t)(n * lines) * sizeof *i));
                for (int64_t k = n * lines - 1; k >= 0; k--)
                        least[i[k] * lines + k % lines] = (double)-k - 1;
                for (int64_t k = 0; k < n * lines; k++)
                        want[i[k] * lines + k % lines] = (double)k;
                lg_tensor *x = lg_zeros(c, LG_SHAPE(size, lines), .dtype = LG_F64);
                assert_values(lg_scatter(x, 0, at, src), want, size * lines, 0);
                lg_tensor *below = lg_scatter_reduce(x, 0, at, lg_sub_scalar(lg_neg(src), 1), LG_SCATTER_AMAX,
                                                     .exclude_self = true);
                assert_values(below, least, size * lines, 0);
                free(i), free(want), free(least);
        }
        lg_tensor *x = lg_zeros(c, LG_SHAPE(3), .requires_grad = true),
                  *src = lg_set_requires_grad(LIST(LG_F32, 1, 2, 3), true);
        assert_true(lg_backward(lg_sum(lg_scatter(x, 0, LIST64(1, 0, 1), src))));
        assert_list(lg_grad_of(x), 0, 0, 0, 1);
        assert_list(lg_grad_of(src), 0, 0, 1, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_a_number)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = LIST(dtypes[d], 1, NAN, 3), *src = LIST(dtypes[d], NAN, 2, 5, 4),
                          *at = LIST64(0, 1, 2, 0);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMAX), 0, NAN, NAN, 5);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMIN), 0, NAN, NAN, 3);
                assert_list(lg_scatter_reduce(x, 0, at, src, LG_SCATTER_AMIN, .exclude_self = true), 0, NAN, 2, 5);
                assert_list(lg_scatter(x, 0, LIST64(1), LIST(dtypes[d], 7)), 0, 1, 7, 3);
        }
        lg_close(c);
}

/* A product with zeros has the right first and second derivatives. */
TEST_CASE(product_of_zeros)
{
        lg_ctx *c = open_ctx();
        lg_tensor *src = lg_set_requires_grad(LIST(LG_F64, 0, 3, 0, 4, 0), true),
                  *x = lg_ones(c, LG_SHAPE(2), .dtype = LG_F64);
        lg_tensor *y = lg_sum(lg_scatter_reduce(x, 0, LIST64(0, 1, 1, 0, 1), src, LG_SCATTER_PROD));
        lg_tensor *g = lg_grad(LG_LIST(y), LG_LIST(src), .create_graph = true);
        assert_list(g, 0, 4, 0, 0, 0, 0);
        lg_tensor *h = lg_grad(LG_LIST(lg_select(g, 0, 2)), LG_LIST(src));
        assert_list(h, 0, 0, 0, 0, 0, 3);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty_and_0d)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = LIST(LG_F32, 1, 2), *none = lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64),
                  *empty = lg_zeros(c, LG_SHAPE(0));
        for (int how = LG_SCATTER_SUM; how <= LG_SCATTER_AMIN; how++) {
                assert_list(lg_scatter_reduce(x, 0, none, x, (lg_scatter_reduction)how), 0, 1, 2);
                assert_shape(lg_scatter_reduce(empty, 0, none, empty, (lg_scatter_reduction)how), LG_SHAPE(0));
                lg_tensor *y = lg_scatter_reduce(lg_scalar(c, 3), 0, lg_scalar(c, 0, .dtype = LG_I64), lg_scalar(c, 3),
                                                 (lg_scatter_reduction)how);
                assert_list(y, 0, (const double[]){6, 9, 3, 3, 3}[how]);
        }
        assert_list(lg_scatter(x, 0, none, empty), 0, 1, 2);
        assert_list(lg_index_copy(x, 0, none, empty), 0, 1, 2);
        assert_list(lg_scatter(lg_scalar(c, 3), -1, lg_scalar(c, 0, .dtype = LG_I64), lg_scalar(c, 4)), 0, 4);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *at = lg_zeros(c, LG_SHAPE(2, 4), .dtype = LG_I64);
        lg_tensor *src = lg_zeros(c, LG_SHAPE(2, 4)), *b = lg_gt_scalar(x, 0);
        assert_fails(c, lg_scatter(x, 1, at, x), LG_ERR_SHAPE, "the index has src's dimensions");
        assert_fails(c, lg_scatter(x, 0, at, src), LG_ERR_SHAPE, "none larger but dimension 0");
        assert_fails(c, lg_scatter(x, 1, at, at), LG_ERR_DTYPE, "scatter: x is f32 (2, 3)");
        assert_fails(c, lg_scatter(x, 2, at, src), LG_ERR_ARGUMENT, "scatter");
        assert_fails(c, lg_scatter(x, 1, src, at), LG_ERR_DTYPE, "scatter: index is f32");
        assert_fails(c, lg_scatter_scalar(at, 0, at, 1e30), LG_ERR_ARGUMENT, "scatter_scalar");
        assert_fails(c, lg_scatter_reduce(x, 1, at, src, (lg_scatter_reduction)7), LG_ERR_ARGUMENT,
                     "scatter_reduce: reduction 7");
        assert_fails(c, lg_scatter_reduce(b, 1, lg_cast(b, LG_I64), b, LG_SCATTER_PROD), LG_ERR_DTYPE,
                     "both are of one dtype, not bool");
        assert_fails(c, lg_index_reduce(x, 0, LIST64(1), x, LG_SCATTER_MEAN), LG_ERR_SHAPE, "index_reduce: src is");
        assert_fails(c, lg_index_copy(x, 0, LIST64(1), lg_cast(lg_slice(x, 0, 0, 1), LG_F64)), LG_ERR_DTYPE,
                     "index_copy: x is");
        assert_fails(c, lg_index_fill(x, 0, at, 1), LG_ERR_SHAPE, "not of one dimension");
        lg_tensor *far = lg_full_like(at, 3), *near = lg_full_like(at, -1);
        assert_no_index(lg_scatter(x, 1, far, src),
                        "scatter: index holds 3, but there are 3 places to point at, from 0 on");
        assert_no_index(lg_scatter(x, 1, near, src), "scatter: index holds -1");
        assert_no_index(lg_scatter_scalar(x, 1, far, 1), "scatter_scalar: index holds 3");
        for (int how = LG_SCATTER_SUM; how <= LG_SCATTER_AMIN; how++)
                assert_no_index(lg_scatter_reduce(x, 1, far, src, (lg_scatter_reduction)how),
                                "scatter_reduce: index holds 3");
        assert_no_index(lg_index_copy(x, 0, LIST64(0, 2), x), "index_copy: index holds 2");
        assert_no_index(lg_index_reduce(x, 0, LIST64(0, 2), x, LG_SCATTER_AMAX), "index_reduce: index holds 2");
        assert_no_index(lg_index_fill(x, 0, LIST64(0, -3), 1),
                        "index_fill: index holds -3, but there are 2 places to point at, from -2 on");
        lg_close(c);
}
