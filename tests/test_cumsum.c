/* test_cumsum.c - running sums, also of logarithms, and running products. */
#include "golden.h"

/* Running sums over lines of any length, both ways (the gradient runs back), against loops. */
TEST_CASE(long_running_sums)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {3, 17, 40, 1024, 1025, 3000};
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16};
        const double limits[] = {1e-6, 1e-13, 1e-3};
        for (int k = 0; k < 6; k++)
                for (int d = 0; d < 4; d++) {
                        const int64_t n = lengths[k];
                        double *x = calloc((size_t)(6 * n), sizeof *x), *up = x + 2 * n, *down = x + 4 * n;
                        lg_tensor *t = lg_normal(c, 0, 1, LG_SHAPE(2, n), .dtype = d < 3 ? dtypes[d] : LG_F32), *dx;
                        t = d < 3 ? lg_set_requires_grad(lg_detach(t), true) : lg_cast(lg_mul_scalar(t, 100), LG_I64);
                        read_all(t, x, 2 * n);
                        for (int64_t i = 0; i < 2 * n; i++)
                                up[i] = x[i] + (i % n ? up[i - 1] : 0);
                        for (int64_t i = 2 * n - 1; i >= 0; i--)
                                down[i] = x[i] + (i % n < n - 1 ? down[i + 1] : 0);
                        lg_tensor *y = lg_cumsum(t, 1);
                        assert_values(y, up, 2 * n, d < 3 ? limits[d] : 0);
                        if (d < 3) {
                                lg_grad(LG_LIST(y), LG_LIST(t), .grads = LG_LIST(lg_detach(t)), .result = &dx);
                                assert_values(dx, down, 2 * n, limits[d]);
                        }
                        assert_ok(c);
                        free(x);
                }
        lg_close(c);
}

/* ---- logcumsumexp ---- */

/* Lines of any length and of any step, whose exponentials are out of every dtype's range, against loops. The gradient
 * with g[i] = 1 + i % 3 is found from its formula: dx[k] is the sum of g[i] e^(x[k] - y[i]) over i >= k. */
TEST_CASE(long_running_log_sums)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {2, 16, 17, 40, 1024, 1025, 1500};
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-12, 2e-5, 2e-3, 1.6e-2};
        for (int k = 0; k < 7; k++)
                for (int d = 0; d < 4; d++)
                        for (int dim = 0; dim < 2; dim++) {
                                const int64_t n = lengths[k], step = dim ? 1 : 2, next = dim ? n : 1;
                                double *x = calloc((size_t)(8 * n), sizeof *x), *y = x + 2 * n, *g = y + 2 * n,
                                       *want = g + 2 * n;
                                lg_shape shape = dim ? LG_SHAPE(2, n) : LG_SHAPE(n, 2);
                                lg_tensor *t = lg_normal(c, 1000, 3, shape, .dtype = dtypes[d], .requires_grad = true);
                                read_all(t, x, 2 * n);
                                for (int64_t i = 0; i < 2 * n; i++)
                                        g[i] = (double)(1 + i % 3);
                                for (int64_t l = 0; l < 2; l++)
                                        for (int64_t i = 0; i < n; i++) {
                                                const int64_t at = l * next + i * step;
                                                double sum = 0;
                                                for (int64_t j = 0; j <= i; j++)
                                                        sum += exp(x[l * next + j * step] - 1000);
                                                y[at] = 1000 + log(sum);
                                                for (int64_t j = 0; j <= i; j++)
                                                        want[l * next + j * step] +=
                                                                g[at] * exp(x[l * next + j * step] - 1000) / sum;
                                        }
                                lg_tensor *s = lg_logcumsumexp(t, dim), *dx[1];
                                assert_values(s, y, 2 * n, limits[d]);
                                lg_tensor *up = lg_cast(lg_from(c, g, shape), dtypes[d]);
                                lg_grad(LG_LIST(s), LG_LIST(t), .grads = LG_LIST(up), .result = dx);
                                assert_values(dx[0], want, 2 * n, limits[d] * (d ? 10 : 100));
                                assert_ok(c);
                                free(x);
                        }
        lg_close(c);
}

/* PyTorch's numbers, but for the gradients by elements that are as infinite as what they are added to: those are NaN
 * there. The sum of dx is that of g, whatever x is. */
TEST_CASE(infinite_log_sums)
{
        const double inf = INFINITY, nan = NAN;
        const struct {
                double x[4], y[4], dx[4];
        } rows[] = {
                {{-inf, -inf, 1, 2}, {-inf, -inf, 1, 2.313261687518223}, {2, 1, 4.07576568547998, 2.9242343145200187}},
                {{1, -inf, 2, -inf},
                 {1, 1, 2.313261687518223, 2.313261687518223},
                 {4.882589949589966, 0, 5.117410050410034, 0}},
                {{1, inf, -inf, 2}, {1, inf, inf, inf}, {1, 9, 0, 0}},
                {{inf, inf, 0, -1000}, {inf, inf, inf, inf}, {5.5, 4.5, 0, 0}},
                {{-1000, 1000, 0, -1000}, {-1000, 1000, 1000, 1000}, {1, 9, 0, 0}},
                {{1, 2, nan, inf}, {1, 2.313261687518223, nan, nan}, {nan, nan, nan, nan}},
        };
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-12, 1e-5, 2e-3, 3e-2};
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                        const bool number = !isnan(rows[i].y[3]);
                        lg_tensor *x = lg_cast(lg_from(c, rows[i].x, LG_SHAPE(4)), dtypes[d]), *dx[1], *second[1];
                        x = lg_set_requires_grad(lg_detach(x), true);
                        lg_tensor *y = lg_logcumsumexp(x, 0), *g = lg_arange(c, 1, 5, 1, .dtype = dtypes[d]);
                        assert_values(y, rows[i].y, 4, limits[d]);
                        lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g), .result = dx, .create_graph = true);
                        assert_values(dx[0], rows[i].dx, 4, limits[d] * 10);
                        lg_grad(LG_LIST(lg_sum(dx[0])), LG_LIST(x), .result = second);
                        if (number)
                                assert_list(second[0], limits[d], 0, 0, 0, 0);
                        assert_ok(c);
                }
        lg_close(c);
}

TEST_CASE(shapes_of_log_sums)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F32), LG_SHAPE(2, 3));
        assert_list(lg_logcumsumexp(lg_transpose(x, 0, 1), 1), 1e-6, 0, log(1 + exp(3)), 1, log(exp(1) + exp(4)), 2,
                    log(exp(2) + exp(5)));
        assert_list(lg_logcumsumexp(lg_scalar(c, 5), 0), 0, 5);
        assert_int_equal(lg_numel(lg_logcumsumexp(lg_zeros(c, LG_SHAPE(2, 0)), 1)), 0);
        assert_int_equal(lg_numel(lg_logcumsumexp(lg_zeros(c, LG_SHAPE(0, 2)), 1)), 0);
        assert_ok(c);
        assert_null(lg_logcumsumexp(x, 2));
        assert_error(c, LG_ERR_ARGUMENT, "logcumsumexp: there is no dimension 2");
        assert_null(lg_logcumsumexp(lg_cast(x, LG_I64), 0));
        assert_error(c, LG_ERR_DTYPE, "logcumsumexp: x is i64");
        lg_close(c);
}

TEST_CASE(running_sums)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 1, 13, 1), LG_SHAPE(2, 3, 2));
        const double by_middle[] = {1, 2, 4, 6, 9, 12, 7, 8, 16, 18, 27, 30};
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                lg_tensor *y = lg_cumsum(lg_cast(x, dtypes[d]), 1);
                assert_values(y, by_middle, 12, 0);
                assert_int_equal(lg_dtype_of(y), d < 4 ? dtypes[d] : LG_I64);
        }
        assert_list(lg_cumsum(lg_transpose(lg_select(x, 2, 0), 0, 1), 1), 0, 1, 8, 3, 12, 5, 16);
        assert_list(lg_cumsum(lg_scalar(c, 5), 0), 0, 5);
        assert_int_equal(lg_numel(lg_cumsum(lg_zeros(c, LG_SHAPE(2, 0)), 1)), 0);
        assert_ok(c);
        assert_null(lg_cumsum(x, 3));
        assert_error(c, LG_ERR_ARGUMENT, "cumsum: there is no dimension 3");
        lg_close(c);
}

/* Rows of any length in f16 and bf16: sums of 1, -1, ... are exact; those of k numbers e^0 are k. */
TEST_CASE(half_precision_rows)
{
        static const int lengths[] = {40, 41, 2048, 2049};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 8; i++) {
                const int n = lengths[i / 2];
                const lg_dtype dtype = i % 2 ? LG_BF16 : LG_F16;
                double v[2049], sums[2049], logs[2049];
                for (int k = 0; k < n; k++) {
                        v[k] = k % 2 ? -1 : 1;
                        sums[k] = 1 - k % 2;
                        logs[k] = log(k + 1);
                }
                lg_tensor *x = lg_cast(lg_from(c, v, LG_SHAPE(n), .dtype = LG_F64), dtype);
                assert_values(lg_cumsum(x, 0), sums, n, 0);
                assert_values(lg_logcumsumexp(lg_mul_scalar(x, 0), 0), logs, n, i % 2 ? 4e-3 : 5e-4);
        }
        assert_ok(c);
        lg_close(c);
}

/* Each element within its own 1e-6. */
static void assert_each(lg_tensor *t, const double *wanted, int n)
{
        double *got = malloc((size_t)n * sizeof *got);
        read_all(t, got, n);
        for (int i = 0; i < n; i++)
                if (!(fabs(got[i] - wanted[i]) <= 1e-6 * fmax(1, fabs(wanted[i]))) && got[i] != wanted[i] &&
                    !(isnan(got[i]) && isnan(wanted[i])))
                        fail_msg("element %d of %d: %.9g is not %.9g", i, n, got[i], wanted[i]);
        free(got);
}

/* Lines along dimension 1 of (2, n, inner), as a loop adds them up: what is infinite, NaN or huge changes nothing
 * before it. The gradient is the running sum from the other end. */
static void check_running_sums(lg_ctx *c, int n, int inner, int at, double special, lg_dtype dtype)
{
        const int count = 2 * n * inner;
        double *v = malloc((size_t)count * sizeof *v), *up = malloc((size_t)count * sizeof *up),
               *down = malloc((size_t)count * sizeof *down);
        for (int i = 0; i < count; i++)
                v[i] = i / inner % n == at ? special : i % 3;
        for (int l = 0; l < 2 * inner; l++) {
                const int first = l / inner * n * inner + l % inner;
                double sum = 0, back = 0;
                for (int i = 0; i < n; i++) {
                        up[first + i * inner] = sum += v[first + i * inner];
                        down[first + (n - 1 - i) * inner] = back += v[first + (n - 1 - i) * inner];
                }
        }
        lg_scope s = lg_scope_begin(c);
        lg_tensor *g = lg_cast(lg_from(c, v, LG_SHAPE(2, n, inner), .dtype = LG_F64), dtype);
        lg_tensor *x = lg_set_requires_grad(lg_full(c, LG_SHAPE(2, n, inner), 1, .dtype = dtype), true);
        assert_each(lg_cumsum(g, 1), up, count);
        lg_backward(lg_cumsum(x, 1), .grad = g);
        assert_each(lg_grad_of(x), down, count);
        lg_scope_end(c, s);
        free(v);
        free(up);
        free(down);
}

TEST_CASE(running_sums_of_special_values)
{
        lg_ctx *c = open_ctx();
        const double specials[] = {2, INFINITY, -INFINITY, NAN, 1e17};
        const int sizes[] = {5, 32, 1000, 1500, 1501};
        for (size_t k = 0; k < sizeof specials / sizeof *specials; k++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                        for (int inner = 1; inner <= 3; inner += 2) {
                                check_running_sums(c, sizes[i], inner, sizes[i] / 2 + 1, specials[k], LG_F32);
                                check_running_sums(c, sizes[i], inner, 3, specials[k], LG_F64);
                        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(running_products)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 1, 13, 1), LG_SHAPE(2, 6));
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                lg_tensor *y = lg_cumprod(lg_slice(lg_cast(x, dtypes[d]), 1, 0, 5), -1);
                const double exact = dtypes[d] == LG_F16 ? 5e-4 : dtypes[d] == LG_BF16 ? 4e-3 : 0;
                assert_values(y, (const double[]){1, 2, 6, 24, 120, 7, 56, 504, 5040, 55440}, 10, exact);
                assert_int_equal(lg_dtype_of(y), d < 4 ? dtypes[d] : LG_I64);
        }
        assert_list(lg_cumprod(lg_transpose(x, 0, 1), 1), 0, 1, 7, 2, 16, 3, 27, 4, 40, 5, 55, 6, 72);
        assert_list(lg_cumsum(lg_gt_scalar(x, 10), -1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2);
        assert_list(lg_cumprod(lg_gt_scalar(x, 0), 0), 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
        assert_list(lg_cumprod(lg_scalar(c, 5), -1), 0, 5);
        assert_int_equal(lg_numel(lg_cumprod(lg_zeros(c, LG_SHAPE(2, 0)), 1)), 0);
        assert_ok(c);
        assert_null(lg_cumprod(x, 2));
        assert_error(c, LG_ERR_ARGUMENT, "cumprod: there is no dimension 2");
        lg_close(c);
}

#define ROWS(ROW)                                                                                                      \
        ROW(logcumsumexp_1, lg_logcumsumexp(x, 1), 2, 7)                                                               \
        ROW(logcumsumexp_0, lg_logcumsumexp(lg_mul_scalar(x, 300), 0), 3, 4)                                           \
        ROW(cumprod_1, lg_cumprod(x, 1), 2, 3, 4)                                                                      \
        ROW(cumprod_0, lg_cumprod(x, 0), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "reduce.txt", golden_input, ROWS);
