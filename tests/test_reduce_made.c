/* test_reduce_made.c - reductions made of other ops: prod, norm, logsumexp, any, all. */
#include "golden.h"

TEST_CASE(products)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = lg_from(c, ((int32_t[]){100000, 100000, 3, -1}), LG_SHAPE(2, 2), .dtype = LG_I32);
        assert_int_equal(lg_dtype_of(lg_prod(i)), LG_I64);
        assert_int_equal(lg_item_i64(lg_prod(i)), -30000000000);
        assert_int_equal(lg_item_i64(lg_prod(lg_ones(c, LG_SHAPE(5), .dtype = LG_BOOL))), 1);
        assert_near(lg_item(lg_prod(lg_scalar(c, 7))), 7, 0);
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 3), .requires_grad = true), *one = lg_prod(none, .dims = LG_DIMS(0));
        assert_list(one, 0, 1, 1, 1);
        lg_backward(lg_sum(one));
        assert_int_equal(lg_numel(lg_grad_of(none)), 0);
        assert_int_equal(lg_numel(lg_prod(none, .dims = LG_DIMS(1))), 0);
        assert_int_equal(lg_item_i64(lg_prod(lg_zeros(c, LG_SHAPE(0), .dtype = LG_BOOL))), 1);
        /* f16: out of range on the way, not in the end; the result is rounded once */
        assert_list(lg_prod(lg_from(c, ((float[]){300, 300, 1e-3f, 1e-3f}), LG_SHAPE(4))), 1e-6, 0.09);
        assert_list(lg_prod(lg_cast(lg_from(c, ((float[]){512, 512, 0.25f, 0.0625f}), LG_SHAPE(4)), LG_F16)), 0, 4096);
        /* zeros: one in the first row, two in the second; both derivatives */
        lg_tensor *x =
                lg_from(c, ((double[]){2, 0, 3, 0, 0, 5}), LG_SHAPE(2, 3), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *p = lg_prod(x, .dims = LG_DIMS(1)), *g[1], *h[1];
        assert_list(p, 0, 0, 0);
        lg_grad(LG_LIST(lg_sum(p)), LG_LIST(x), .result = g, .create_graph = true);
        assert_list(g[0], 0, 0, 6, 0, 0, 0, 0);
        lg_grad(LG_LIST(lg_sum(g[0])), LG_LIST(x), .result = h);
        assert_list(h[0], 0, 3, 5, 2, 5, 5, 0);
        assert_ok(c);
        /* many, over threads */
        lg_tensor *many = lg_exp(lg_mul_scalar(lg_sin(lg_arange(c, 0, 100001, 1, .dtype = LG_F64)), 0.01));
        assert_near(lg_item(lg_prod(many)), exp(lg_item(lg_sum(lg_log(many)))), 1e-9);
        lg_close(c);
}

/* Integers by the pieces that they are multiplied in, with overflow, against loops. */
TEST_CASE(products_of_many_integers)
{
        static const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_U8, LG_BOOL};
        lg_ctx *c = open_ctx();
        for (int64_t n = 14; n < 90; n += n < 34 ? 1 : 11)
                for (int d = 0; d < 8; d++) {
                        lg_tensor *x = lg_cast(lg_randint(c, d & 1 ? 1 : 2, 4, LG_SHAPE(n, 3)), dtypes[d / 2]);
                        int64_t v[300], want[3] = {1, 1, 1};
                        assert_true(lg_read(x, v, LG_I64, (size_t)n * 3 * sizeof *v));
                        for (int64_t i = 0; i < 3 * n; i++)
                                want[i % 3] = (int64_t)((uint64_t)want[i % 3] * (uint64_t)v[i]);
                        int64_t got[3], all;
                        assert_true(lg_read(lg_prod(x, .dims = LG_DIMS(0)), got, LG_I64, sizeof got));
                        assert_memory_equal(got, want, sizeof got);
                        assert_true(
                                lg_read(lg_prod(lg_transpose(x, 0, 1), .dims = LG_DIMS(1)), got, LG_I64, sizeof got));
                        assert_memory_equal(got, want, sizeof got);
                        assert_true(lg_read(lg_prod(x), &all, LG_I64, sizeof all));
                        assert_true((uint64_t)all == (uint64_t)want[0] * (uint64_t)want[1] * (uint64_t)want[2]);
                        int64_t after[300];
                        assert_true(lg_read(x, after, LG_I64, (size_t)n * 3 * sizeof *v));
                        assert_memory_equal(after, v, (size_t)n * 3 * sizeof *v);
                }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(any_and_all)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
        lg_tensor *x = lg_from(c, ((float[]){0, 1, 1, 0, 0, 1}), LG_SHAPE(3, 2));
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                lg_tensor *t = lg_cast(x, dtypes[d]), *row = lg_transpose(t, 0, 1);
                assert_list(lg_any(t, .dims = LG_DIMS(1)), 0, 1, 1, 1);
                assert_list(lg_any(lg_select(row, 0, 0), .keep_dim = true), 0, 1);
                assert_list(lg_any(lg_slice(t, 1, 0, 1), .dims = LG_DIMS(1)), 0, 0, 1, 0);
                assert_list(lg_all(t, .dims = LG_DIMS(-1)), 0, 0, 0, 0);
                assert_list(lg_all(lg_slice(t, 1, 1, 2), .dims = LG_DIMS(1)), 0, 1, 0, 1);
                assert_int_equal(lg_dtype_of(lg_any(t)), LG_BOOL);
                assert_int_equal(lg_dtype_of(lg_all(t)), LG_BOOL);
        }
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 2)), *nan = lg_full(c, LG_SHAPE(2), NAN);
        assert_list(lg_any(none), 0, 0);
        assert_list(lg_all(none), 0, 1);
        assert_list(lg_any(none, .dims = LG_DIMS(0)), 0, 0, 0);
        assert_list(lg_all(none, .dims = LG_DIMS(0)), 0, 1, 1);
        assert_list(lg_any(nan), 0, 1);
        assert_list(lg_all(nan), 0, 1);
        assert_list(lg_all(lg_scalar(c, 0)), 0, 0);
        lg_tensor *big = lg_ones(c, LG_SHAPE(300, 300));
        assert_list(lg_all(big), 0, 1);
        lg_fill_(lg_select(lg_select(big, 0, 299), 0, 298), 0);
        assert_list(lg_all(big), 0, 0);
        assert_ok(c);
        drop(lg_all(x, .dims = LG_DIMS(2)));
        assert_error(c, LG_ERR_ARGUMENT, "all: there is no dimension 2");
        drop(lg_any(x, .dims = LG_DIMS(0, 0)));
        assert_error(c, LG_ERR_ARGUMENT, "any: dimension 0 is given twice");
        lg_close(c);
}

TEST_CASE(norms)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){3, -4, 0, 0}), LG_SHAPE(2, 2));
        assert_list(lg_norm(x, .dims = LG_DIMS(1)), 1e-6, 5, 0);
        assert_list(lg_norm(x, .p = 1, .dims = LG_DIMS(-1), .keep_dim = true), 1e-6, 7, 0);
        assert_list(lg_norm(x, .p = INFINITY), 0, 4);
        assert_list(lg_norm(x, .p = LG_ZERO), 0, 2);
        assert_list(lg_norm(lg_full(c, LG_SHAPE(3), NAN), .p = LG_ZERO), 0, 3);
        assert_list(lg_norm(lg_scalar(c, -2), .p = 3), 1e-6, 2);
        assert_list(lg_norm(lg_zeros(c, LG_SHAPE(0, 2)), .dims = LG_DIMS(0)), 0, 0, 0);
        assert_list(lg_norm(lg_full(c, LG_SHAPE(4), 300, .dtype = LG_F16)), 0, 600); /* 90000 is no f16 */
        assert_near(lg_item(lg_norm(lg_full(c, LG_SHAPE(70000), 0.5))), sqrt(17500), 1e-4);
        const double p[] = {0, 0.5, 1, 1.5, 2, 3, INFINITY};
        for (int i = 0; i < 7; i++) {
                lg_tensor *zero = lg_zeros(c, LG_SHAPE(3), .requires_grad = true);
                lg_backward(lg_norm(zero, .p = p[i]));
                assert_list(lg_grad_of(zero), 0, 0, 0, 0);
        }
        lg_tensor *flat = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_backward(lg_sum(lg_std(flat, .dims = LG_DIMS(1))));
        assert_list(lg_grad_of(flat), 0, 0, 0, 0, 0, 0, 0);
        assert_list(lg_std(lg_from(c, ((float[]){600, -600}), LG_SHAPE(2), .dtype = LG_F32)), 1e-3, 848.5281374);
        assert_list(lg_std(lg_mul_scalar(lg_cast(lg_from(c, ((float[]){1, -1}), LG_SHAPE(2)), LG_F16), 600)), 0.5,
                    848.5);
        assert_ok(c);
        drop(lg_norm(x, .p = NAN));
        assert_error(c, LG_ERR_ARGUMENT, "norm: p is");
        drop(lg_norm(lg_zeros(c, LG_SHAPE(0)), .p = INFINITY));
        assert_error(c, LG_ERR_SHAPE, "norm: x is");
        drop(lg_norm(lg_ones(c, LG_SHAPE(2), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "norm: x is");
        drop(lg_norm(x, .dims = LG_DIMS(-3)));
        assert_error(c, LG_ERR_ARGUMENT, "norm: there is no dimension -3");
        drop(lg_std(lg_ones(c, LG_SHAPE(2), .dtype = LG_BOOL)));
        assert_error(c, LG_ERR_DTYPE, "std: x is");
        lg_close(c);
}

TEST_CASE(logsumexp_of_infinities)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        const float v[] = {-INFINITY, -INFINITY, 1, INFINITY, 2, -INFINITY, NAN, 0, 1000, 1000, -1000, -1000};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_cast(lg_from(c, v, LG_SHAPE(6, 2)), dtypes[d]),
                          *y = lg_logsumexp(x, .dims = LG_DIMS(1));
                const double limits[] = {1e-6, 1e-15, 2e-3, 1.6e-2};
                assert_values(y, (const double[]){-INFINITY, INFINITY, 2, NAN, 1000 + log(2), -1000 + log(2)}, 6,
                              limits[d]);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
        }
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 2));
        assert_list(lg_logsumexp(none, .dims = LG_DIMS(0)), 0, -INFINITY, -INFINITY);
        assert_int_equal(lg_ndim_of(lg_logsumexp(none, .keep_dim = true)), 2);
        lg_tensor *x = lg_from(c, ((double[]){-INFINITY, 1, 1}), LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        lg_backward(lg_logsumexp(x));
        assert_list(lg_grad_of(x), 1e-15, 0, 0.5, 0.5);
        for (int d = 0; d < 4; d++)
                for (int create = 0; create < 2; create++) {
                        const float ends[] = {-INFINITY, -INFINITY, -INFINITY, INFINITY, INFINITY,
                                              1,         INFINITY,  -INFINITY, 3e4};
                        lg_tensor *e = lg_set_requires_grad(lg_cast(lg_from(c, ends, LG_SHAPE(3, 3)), dtypes[d]), true),
                                  *g[1];
                        lg_tensor *y = lg_logsumexp(e, .dims = LG_DIMS(1));
                        assert_list(y, 0, -INFINITY, INFINITY, INFINITY);
                        lg_grad(LG_LIST(lg_sum(lg_slice(y, 0, 0, 3))), LG_LIST(e), .create_graph = create, .result = g);
                        assert_list(g[0], 0, 0, 0, 0, 0.5, 0.5, 0, 1, 0, 0);
                }
        assert_ok(c);
        drop(lg_logsumexp(lg_ones(c, LG_SHAPE(2), .dtype = LG_I32)));
        assert_error(c, LG_ERR_DTYPE, "logsumexp: x is");
        lg_close(c);
}

#define ROWS(ROW)                                                                                                      \
        ROW(prod, lg_prod(x), 3, 4)                                                                                    \
        ROW(prod_0, lg_prod(x, .dims = LG_DIMS(0)), 3, 4)                                                              \
        ROW(prod_1_keep, lg_prod(x, .dims = LG_DIMS(1), .keep_dim = true), 2, 7)                                       \
        ROW(prod_0_2, lg_prod(x, .dims = LG_DIMS(2, 0)), 2, 3, 4)                                                      \
        ROW(norm_2, lg_norm(x), 3, 4)                                                                                  \
        ROW(norm_2_1, lg_norm(x, .dims = LG_DIMS(1)), 3, 4)                                                            \
        ROW(norm_1_0_2, lg_norm(x, .p = 1, .dims = LG_DIMS(0, 2)), 2, 3, 4)                                            \
        ROW(norm_inf_1, lg_norm(x, .p = INFINITY, .dims = LG_DIMS(1), .keep_dim = true), 3, 4)                         \
        ROW(norm_0_0, lg_norm(x, .p = LG_ZERO, .dims = LG_DIMS(0)), 3, 4)                                              \
        ROW(norm_half_1, lg_norm(x, .p = 0.5, .dims = LG_DIMS(1)), 3, 4)                                               \
        ROW(norm_1_5, lg_norm(x, .p = 1.5), 2, 3, 4)                                                                   \
        ROW(norm_3_1, lg_norm(x, .p = 3, .dims = LG_DIMS(1)), 2, 3, 4)                                                 \
        ROW(logsumexp_1, lg_logsumexp(x, .dims = LG_DIMS(1)), 3, 4)                                                    \
        ROW(logsumexp_0_2, lg_logsumexp(lg_mul_scalar(x, 300), .dims = LG_DIMS(0, 2), .keep_dim = true), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "reduce.txt", golden_input, ROWS);
