/* test_reduce.c - sums and the like over any set of dimensions against plain loops and PyTorch's numbers. */
#include "golden.h"

enum { SUM, MEAN, AMAX, AMIN, ARGMAX, VAR, ARGMIN, STD, PROD, LOGSUMEXP, KINDS };
static const char *const kinds[] = {"sum", "mean",   "amax", "amin", "argmax",
                                    "var", "argmin", "std",  "prod", "logsumexp"};

static lg_tensor *run(int kind, lg_tensor *x, lg_dims dims, bool keep_dim)
{
        lg_tensor *(*const op[])(lg_tensor *, const lg_reduce_options *) = {
                lg_sum_with, lg_mean_with,   lg_amax_with, lg_amin_with, lg_argmax_with,
                NULL,        lg_argmin_with, NULL,         lg_prod_with, lg_logsumexp_with};
        if (kind == VAR || kind == STD)
                return (kind == VAR ? lg_var_with
                                    : lg_std_with)(x, LG_OPTIONS(lg_var_options, .dims = dims, .keep_dim = keep_dim));
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
        lg_tensor *u8 = lg_full(c, LG_SHAPE(10), 200, .dtype = LG_U8), *s = lg_sum(u8);
        assert_int_equal(lg_dtype_of(s), LG_I64);
        assert_int_equal(lg_item_i64(s), 2000);
        assert_int_equal(lg_item_i64(lg_sum(lg_ones(c, LG_SHAPE(7), .dtype = LG_BOOL))), 7);
        assert_int_equal(lg_item_i64(lg_sum(lg_full(c, LG_SHAPE(4), 2e9, .dtype = LG_I32))), 8000000000);
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
        lg_tensor *x = lg_full(c, LG_SHAPE(MANY), 0.1);
        assert_near(lg_item(lg_sum(x)), MANY * (double)0.1f, MANY * 0.1 * 1e-5);
        assert_near(lg_item(lg_mean(lg_full(c, LG_SHAPE(4096), 60000, .dtype = LG_F16))), 60000, 40);
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

/* Vectors of some compilers begin a maximum with the last finite number. */
TEST_CASE(extremes_of_infinities)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_full(c, LG_SHAPE(3, 40), -INFINITY, .dtype = dtypes[d]);
                assert_list(lg_amax(x, .dims = LG_DIMS(1)), 0, -INFINITY, -INFINITY, -INFINITY);
                assert_list(lg_amin(lg_neg(x), .dims = LG_DIMS(1)), 0, INFINITY, INFINITY, INFINITY);
                assert_list(lg_amax(x), 0, -INFINITY);
        }
        lg_tensor *last = lg_full(c, LG_SHAPE(40), -3.4028234663852886e38);
        assert_list(lg_amax(last), 0, -3.4028234663852886e38);
        assert_ok(c);
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
                return lg_norm(x, .p = (which - 8) / 2.0, .dims = dims);
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
                if (lg_requires_grad(dx[0]))
                        lg_grad(LG_LIST(dx[0]), LG_LIST(g), .grads = LG_LIST(lg_zeros(c, LG_SHAPE(0, 3))),
                                .result = dg);
                assert_ok(c);
                if (dg[0] && lg_item(lg_sum(lg_ne_scalar(dg[0], 0))) != 0)
                        fail_msg("function %d: the second derivative is not 0", which);
        }
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

#define DEVIATIONS(ROW)                                                                                                \
        ROW(std, lg_std(x), 3, 4)                                                                                      \
        ROW(std_1, lg_std(x, .dims = LG_DIMS(1)), 3, 4)                                                                \
        ROW(std_0_2_biased, lg_std(x, .dims = LG_DIMS(0, 2), .correction = LG_ZERO, .keep_dim = true), 2, 3, 4)

GOLDEN_TEST(deviations_as_pytorch_computes_them, "reduce.txt", golden_input, DEVIATIONS);

#define ROWS(ROW)                                                                                                      \
        ROW(var_1, lg_var(x, .dims = LG_DIMS(1)), 3, 4)                                                                \
        ROW(var_all_biased, lg_var(x, .correction = LG_ZERO), 3, 4)                                                    \
        ROW(amax_0, lg_amax(x, .dims = LG_DIMS(0)), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "ops.txt", golden_ops_input, ROWS);
