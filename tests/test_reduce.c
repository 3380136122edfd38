/* test_reduce.c - sums and the like over any set of dimensions against plain loops and PyTorch's numbers. */
#include "golden.h"

enum { SUM, MEAN, AMAX, AMIN, ARGMAX, VAR, ARGMIN, STD, PROD, LOGSUMEXP, KINDS };
static const char *const kinds[] = {"sum", "mean",   "amax", "amin", "argmax",
                                    "var", "argmin", "std",  "prod", "logsumexp"};

static lg_tensor *run(int kind, lg_tensor *x, lg_dims dims, bool keep_dim)
{
        lg_tensor *(*const op[])(lg_tensor *, const lg_reduce_options *) = {
                lg_sum_with, lg_mean_with,   lg_amax_with, lg_amin_with, lg_argmax_with,
                lg_var_with, lg_argmin_with, lg_std_with,  lg_prod_with, lg_logsumexp_with};
        return op[kind](x, LG_OPTIONS(lg_reduce_options, .dims = dims, .keep_dim = keep_dim));
}

static double reduce(int kind, const double *v, int n, double correction)
{
        double sum = 0, most = -INFINITY, least = INFINITY, squares = 0, product = 1, powers = 0;
        int at = 0, least_at = 0;
        for (int i = 0; i < n; i++) {
                sum += v[i];
                product *= v[i];
                powers += exp(v[i]);
                at = v[i] > most ? i : at;
                least_at = v[i] < least ? i : least_at;
                most = fmax(most, v[i]);
                least = fmin(least, v[i]);
        }
        for (int i = 0; i < n; i++)
                squares += (v[i] - sum / n) * (v[i] - sum / n);
        double var = squares / fmax(0, n - correction);
        const double all[] = {sum, sum / n, most, least, at, var, least_at, sqrt(var), product, log(powers)};
        return all[kind];
}

/* x is 3 x 4 x 5; bit i of `mask`: dimension i is reduced. */
static int reference(const double *x, int kind, int mask, double *ret)
{
        const int size[3] = {3, 4, 5};
        int count = 0;
        for (int kept = 0; kept < 60; kept++) {
                int k[3] = {kept / 20, kept / 5 % 4, kept % 5}, n = 0;
                double group[60];
                bool first = true;
                for (int d = 0; d < 3; d++)
                        first = first && (!(mask >> d & 1) || k[d] == 0);
                if (!first)
                        continue;
                for (int e = 0; e < 60; e++) {
                        int i[3] = {e / 20, e / 5 % 4, e % 5};
                        bool same = true;
                        for (int d = 0; d < 3; d++)
                                same = same && (mask >> d & 1 || i[d] == k[d]) && i[d] < size[d];
                        if (same)
                                group[n++] = x[e];
                }
                ret[count++] = reduce(kind, group, n, 1);
        }
        return count;
}

static lg_dims dims_of(int mask)
{
        lg_dims d = LG_ALL_DIMS;
        for (int i = 2; i >= 0; i--) /* in any order, also from the end */
                if (mask >> i & 1)
                        d.dim[d.count++] = i % 2 ? i : i - 3;
        return d;
}

TEST_CASE(all_sets_of_dimensions)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-13, 1e-5, 2e-3, 1.6e-2};
        for (int d = 0; d < 4; d++)
                for (int kind = 0; kind < KINDS; kind++)
                        for (int mask = 1; mask < 8; mask++)
                                for (int layout = 0; layout < 2; layout++) {
                                        double v[60], ref[60], limit = kind == ARGMAX || kind == ARGMIN ? 0 : limits[d];
                                        lg_scope s = lg_scope_begin(c);
                                        lg_tensor *x = lg_uniform(c, -1, 2, LG_SHAPE(3, 4, 5), .dtype = dtypes[d]);
                                        if (layout)
                                                x = lg_permute(lg_contiguous(lg_permute(x, LG_DIMS(2, 0, 1))),
                                                               LG_DIMS(1, 2, 0));
                                        read_all(x, v, 60);
                                        int n = reference(v, kind, mask, ref);
                                        lg_tensor *y = run(kind, x, dims_of(mask), false);
                                        assert_ok(c);
                                        if (lg_numel(y) != n)
                                                fail_msg("%s of dims %d", kinds[kind], mask);
                                        assert_values(y, ref, n, limit);
                                        lg_tensor *k = run(kind, x, dims_of(mask), true);
                                        assert_int_equal(lg_ndim_of(k), 3);
                                        assert_values(k, ref, n, limit);
                                        lg_scope_end(c, s);
                                }
        lg_close(c);
}

TEST_CASE(options_and_edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 4, 5}), LG_SHAPE(2, 2));
        assert_near(lg_item(lg_sum(x)), 12, 0);
        assert_near(lg_item(lg_var(x)), 10.0 / 3, 1e-6);
        assert_near(lg_item(lg_var(x, .correction = LG_ZERO)), 2.5, 1e-6);
        assert_near(lg_item(lg_var(x, .correction = 2)), 5, 1e-6);
        assert_true(isnan(lg_item(lg_var(lg_ones(c, LG_SHAPE(1))))));
        assert_int_equal(lg_ndim_of(lg_sum(x, .keep_dim = true)), 2);
        lg_tensor *zero = lg_scalar(c, 3);
        assert_near(lg_item(lg_sum(zero)), 3, 0);
        assert_near(lg_item(lg_amax(zero)), 3, 0);
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 3));
        assert_near(lg_item(lg_sum(none)), 0, 0);
        assert_list(lg_sum(none, .dims = LG_DIMS(0)), 0, 0, 0, 0);
        assert_true(isnan(lg_item(lg_mean(none))));
        drop(lg_amax(none));
        assert_error(c, LG_ERR_SHAPE, "amax");
        drop(lg_argmax(none, .dims = LG_DIMS(0)));
        assert_error(c, LG_ERR_SHAPE, "argmax");
        assert_int_equal(lg_numel(lg_amax(none, .dims = LG_DIMS(1))), 0);
        drop(lg_sum(x, .dims = LG_DIMS(2)));
        assert_error(c, LG_ERR_ARGUMENT, "sum");
        drop(lg_sum(x, .dims = LG_DIMS(0, -2)));
        assert_error(c, LG_ERR_ARGUMENT, "sum");
        drop(lg_mean(lg_ones(c, LG_SHAPE(2), .dtype = LG_I32)));
        assert_error(c, LG_ERR_DTYPE, "");
        lg_close(c);
}

TEST_CASE(integers_and_bools)
{
        lg_ctx *c = open_ctx();
        lg_tensor *u8 = lg_full(c, 200, LG_SHAPE(10), .dtype = LG_U8), *s = lg_sum(u8);
        assert_int_equal(lg_dtype_of(s), LG_I64);
        assert_int_equal(lg_item_i64(s), 2000);
        assert_int_equal(lg_item_i64(lg_sum(lg_ones(c, LG_SHAPE(7), .dtype = LG_BOOL))), 7);
        assert_int_equal(lg_item_i64(lg_sum(lg_full(c, 2e9, LG_SHAPE(4), .dtype = LG_I32))), 8000000000);
        lg_tensor *i =
                lg_from(c, ((int64_t[]){3, -1, 9007199254740993, 9007199254740992}), LG_SHAPE(4), .dtype = LG_I64);
        assert_int_equal(lg_item_i64(lg_amax(i)), 9007199254740993);
        assert_int_equal(lg_dtype_of(lg_amin(i)), LG_I64);
        assert_int_equal(lg_item_i64(lg_amin(i)), -1);
        assert_int_equal(lg_item_i64(lg_argmax(i)), 2);
        lg_close(c);
}

TEST_CASE(nan_and_equals)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, NAN, 5}), LG_SHAPE(3));
        assert_true(isnan(lg_item(lg_amax(x))));
        assert_true(isnan(lg_item(lg_amin(x))));
        assert_int_equal(lg_item_i64(lg_argmax(x)), 1);
        assert_int_equal(lg_item_i64(lg_argmax(lg_from(c, ((float[]){2, 7, 7, 7}), LG_SHAPE(4)))), 1);
        lg_tensor *m = lg_from(c, ((float[]){1, 3, 3, 2, 0, 3}), LG_SHAPE(2, 3), .requires_grad = true);
        lg_backward(lg_amax(m));
        assert_list(lg_grad_of(m), 1e-7, 0, 1.0 / 3, 1.0 / 3, 0, 0, 1.0 / 3);
        lg_close(c);
}

/* A sum in f32 must not lose small terms beside a large running one; f16 must not overflow on the way. */
TEST_CASE(accumulation)
{
        lg_ctx *c = open_ctx();
        enum { MANY = 2000000 };
        lg_tensor *x = lg_full(c, 0.1, LG_SHAPE(MANY));
        assert_near(lg_item(lg_sum(x)), MANY * (double)0.1f, MANY * 0.1 * 1e-5);
        assert_near(lg_item(lg_mean(lg_full(c, 60000, LG_SHAPE(4096), .dtype = LG_F16))), 60000, 40);
        assert_near(lg_item(lg_sum(lg_ones(c, LG_SHAPE(4096), .dtype = LG_BF16))), 4096, 0);
        lg_tensor *far = lg_add_scalar(lg_uniform(c, -1, 1, LG_SHAPE(10000), .dtype = LG_F32), 1000);
        assert_near(lg_item(lg_var(far)), 1.0 / 3, 0.02);
        /* any number of threads gives the same bits */
        x = lg_uniform(c, -1, 1, LG_SHAPE(3, 333333));
        lg_set_threads(c, 1);
        double one = lg_item(lg_sum(x)), row = lg_item(lg_select(lg_var(x, .dims = LG_DIMS(1)), 0, 1));
        lg_set_threads(c, 3);
        assert_true(lg_item(lg_sum(x)) == one);
        assert_true(lg_item(lg_select(lg_var(x, .dims = LG_DIMS(1)), 0, 1)) == row);
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
        lg_tensor *x = lg_requires_grad(lg_full(c, 1, LG_SHAPE(2, n, inner), .dtype = dtype), true);
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
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 2)), *nan = lg_full(c, NAN, LG_SHAPE(2));
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
        assert_list(lg_norm(x, 2, .dims = LG_DIMS(1)), 1e-6, 5, 0);
        assert_list(lg_norm(x, 1, .dims = LG_DIMS(-1), .keep_dim = true), 1e-6, 7, 0);
        assert_list(lg_norm(x, INFINITY), 0, 4);
        assert_list(lg_norm(x, 0), 0, 2);
        assert_list(lg_norm(lg_full(c, NAN, LG_SHAPE(3)), 0), 0, 3);
        assert_list(lg_norm(lg_scalar(c, -2), 3), 1e-6, 2);
        assert_list(lg_norm(lg_zeros(c, LG_SHAPE(0, 2)), 2, .dims = LG_DIMS(0)), 0, 0, 0);
        assert_list(lg_norm(lg_full(c, 300, LG_SHAPE(4), .dtype = LG_F16), 2), 0, 600); /* 90000 is no f16 */
        assert_near(lg_item(lg_norm(lg_full(c, 0.5, LG_SHAPE(70000)), 2)), sqrt(17500), 1e-4);
        const double p[] = {0, 0.5, 1, 1.5, 2, 3, INFINITY};
        for (int i = 0; i < 7; i++) {
                lg_tensor *zero = lg_zeros(c, LG_SHAPE(3), .requires_grad = true);
                lg_backward(lg_norm(zero, p[i]));
                assert_list(lg_grad_of(zero), 0, 0, 0, 0);
        }
        lg_tensor *flat = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_backward(lg_sum(lg_std(flat, .dims = LG_DIMS(1))));
        assert_list(lg_grad_of(flat), 0, 0, 0, 0, 0, 0, 0);
        assert_list(lg_std(lg_from(c, ((float[]){600, -600}), LG_SHAPE(2), .dtype = LG_F32)), 1e-3, 848.5281374);
        assert_list(lg_std(lg_mul_scalar(lg_cast(lg_from(c, ((float[]){1, -1}), LG_SHAPE(2)), LG_F16), 600)), 0.5,
                    848.5);
        assert_ok(c);
        drop(lg_norm(x, -1));
        assert_error(c, LG_ERR_ARGUMENT, "norm: p is -1");
        drop(lg_norm(x, NAN));
        assert_error(c, LG_ERR_ARGUMENT, "norm: p is");
        drop(lg_norm(lg_zeros(c, LG_SHAPE(0)), INFINITY));
        assert_error(c, LG_ERR_SHAPE, "norm: x is");
        drop(lg_norm(lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), 2));
        assert_error(c, LG_ERR_DTYPE, "norm: x is");
        drop(lg_norm(x, 2, .dims = LG_DIMS(-3)));
        assert_error(c, LG_ERR_ARGUMENT, "norm: there is no dimension -3");
        drop(lg_std(lg_ones(c, LG_SHAPE(2), .dtype = LG_BOOL)));
        assert_error(c, LG_ERR_DTYPE, "std: x is");
        lg_close(c);
}

/* Vectors of some compilers begin a maximum with the last finite number. */
TEST_CASE(extremes_of_infinities)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_full(c, -INFINITY, LG_SHAPE(3, 40), .dtype = dtypes[d]);
                assert_list(lg_amax(x, .dims = LG_DIMS(1)), 0, -INFINITY, -INFINITY, -INFINITY);
                assert_list(lg_amin(lg_neg(x), .dims = LG_DIMS(1)), 0, INFINITY, INFINITY, INFINITY);
                assert_list(lg_amax(x), 0, -INFINITY);
        }
        lg_tensor *last = lg_full(c, -3.4028234663852886e38, LG_SHAPE(40));
        assert_list(lg_amax(last), 0, -3.4028234663852886e38);
        assert_ok(c);
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
                        lg_tensor *e = lg_requires_grad(lg_cast(lg_from(c, ends, LG_SHAPE(3, 3)), dtypes[d]), true),
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

static lg_tensor *over_nothing(int which, lg_tensor *x)
{
        const lg_dims dims = LG_DIMS(0);
        switch (which) {
        case 0:
                return lg_mean(x, .dims = dims);
        case 1:
                return lg_var(x, .dims = dims);
        case 2:
                return lg_std(x, .dims = dims);
        case 3:
                return lg_logsumexp(x, .dims = dims);
        case 4:
                return lg_prod(x, .dims = dims);
        case 5:
                return lg_normalize(x, 0);
        case 6:
                return lg_softmax(x, 0);
        case 7:
                return lg_log_softmax(x, 0);
        default:
                return lg_norm(x, (which - 8) / 2.0, .dims = dims);
        }
}

/* The derivative of no elements depends on nothing, and what it depends on gets 0. */
TEST_CASE(second_derivatives_of_nothing)
{
        lg_ctx *c = open_ctx();
        for (int which = 0; which < 15; which++) {
                lg_tensor *x = lg_zeros(c, LG_SHAPE(0, 3), .requires_grad = true), *y = over_nothing(which, x);
                lg_tensor *g = lg_ones(c, lg_shape_of(y), .requires_grad = true), *dx[1], *dg[1] = {NULL};
                lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g), .create_graph = true, .result = dx);
                assert_shape(dx[0], LG_SHAPE(0, 3));
                if (lg_needs_grad(dx[0]))
                        lg_grad(LG_LIST(dx[0]), LG_LIST(g), .grads = LG_LIST(lg_zeros(c, LG_SHAPE(0, 3))),
                                .result = dg);
                assert_ok(c);
                if (dg[0] && lg_item(lg_sum(lg_ne_scalar(dg[0], 0))) != 0)
                        fail_msg("function %d: the second derivative is not 0", which);
        }
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

/* The least of a long row and of long columns, which many tasks share. */
TEST_CASE(argmin_of_many)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(300, 500));
        lg_fill_(lg_select(lg_select(x, 0, 217), 0, 33), -1);
        lg_fill_(lg_select(lg_select(x, 0, 218), 0, 33), -1);
        assert_int_equal(lg_item_i64(lg_argmin(x)), 217 * 500 + 33);
        lg_tensor *columns = lg_argmin(x, .dims = LG_DIMS(0));
        assert_int_equal(lg_item_i64(lg_sum(columns)), 217);
        assert_int_equal(lg_item_i64(lg_select(columns, 0, 33)), 217);
        lg_fill_(lg_select(lg_select(x, 0, 299), 0, 499), NAN);
        assert_int_equal(lg_item_i64(lg_argmin(x)), 149999);
        assert_int_equal(lg_item_i64(lg_argmin(lg_from(c, ((int64_t[]){4, -2, -2}), LG_SHAPE(3), .dtype = LG_I64))), 1);
        assert_ok(c);
        drop(lg_argmin(lg_zeros(c, LG_SHAPE(0, 3)), .dims = LG_DIMS(0)));
        assert_error(c, LG_ERR_SHAPE, "argmin: x is");
        lg_close(c);
}

#define ROWS                                                                                                           \
        ROW(prod, lg_prod(x), 3, 4)                                                                                    \
        ROW(prod_0, lg_prod(x, .dims = LG_DIMS(0)), 3, 4)                                                              \
        ROW(prod_1_keep, lg_prod(x, .dims = LG_DIMS(1), .keep_dim = true), 2, 7)                                       \
        ROW(prod_0_2, lg_prod(x, .dims = LG_DIMS(2, 0)), 2, 3, 4)                                                      \
        ROW(std, lg_std(x), 3, 4)                                                                                      \
        ROW(std_1, lg_std(x, .dims = LG_DIMS(1)), 3, 4)                                                                \
        ROW(std_0_2_biased, lg_std(x, .dims = LG_DIMS(0, 2), .correction = LG_ZERO, .keep_dim = true), 2, 3, 4)        \
        ROW(norm_2, lg_norm(x, 2), 3, 4)                                                                               \
        ROW(norm_2_1, lg_norm(x, 2, .dims = LG_DIMS(1)), 3, 4)                                                         \
        ROW(norm_1_0_2, lg_norm(x, 1, .dims = LG_DIMS(0, 2)), 2, 3, 4)                                                 \
        ROW(norm_inf_1, lg_norm(x, INFINITY, .dims = LG_DIMS(1), .keep_dim = true), 3, 4)                              \
        ROW(norm_0_0, lg_norm(x, 0, .dims = LG_DIMS(0)), 3, 4)                                                         \
        ROW(norm_half_1, lg_norm(x, 0.5, .dims = LG_DIMS(1)), 3, 4)                                                    \
        ROW(norm_1_5, lg_norm(x, 1.5), 2, 3, 4)                                                                        \
        ROW(norm_3_1, lg_norm(x, 3, .dims = LG_DIMS(1)), 2, 3, 4)                                                      \
        ROW(logsumexp_1, lg_logsumexp(x, .dims = LG_DIMS(1)), 3, 4)                                                    \
        ROW(logsumexp_0_2, lg_logsumexp(lg_mul_scalar(x, 300), .dims = LG_DIMS(0, 2), .keep_dim = true), 2, 3, 4)      \
        ROW(logcumsumexp_1, lg_logcumsumexp(x, 1), 2, 7)                                                               \
        ROW(logcumsumexp_0, lg_logcumsumexp(lg_mul_scalar(x, 300), 0), 3, 4)                                           \
        ROW(cumprod_1, lg_cumprod(x, 1), 2, 3, 4)                                                                      \
        ROW(cumprod_0, lg_cumprod(x, 0), 3, 4)
#define ROW(name, expression, ...) GOLDEN_RUN(name, expression)
ROWS
#undef ROW
#define ROW(...) GOLDEN_ROW(__VA_ARGS__)
        static const golden rows[] = {ROWS};

TEST_CASE(pytorchs_numbers)
{
        golden_check("reduce.txt", golden_input, rows, sizeof rows / sizeof *rows);
}
