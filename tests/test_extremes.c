/* test_extremes.c - means, variances and normalisations of values near the ends of what their dtype holds.
 *
 * Squares of such values, and of one unit in their last place, are infinite: whatever makes them on the way shows.
 */
#include "test.h"

static const int64_t counts[] = {2, 3, 4, 5, 7, 10, 16, 17, 33, 300, 1000, 1025, 9000, 20000};
#define COUNTS ((int)(sizeof counts / sizeof *counts))

static void all_are(const char *what, const lg_tensor *t, double want, double limit)
{
        if (!t)
                fail_msg("%s: no result", what);
        int64_t n = lg_numel(t);
        double *v = calloc((size_t)n + 1, sizeof *v);
        read_all(t, v, n);
        for (int64_t i = 0; i < n; i++)
                if (!(fabs(v[i] - want) <= limit))
                        fail_msg("%s of %lld %s: element %lld is %g, not %g", what, (long long)n,
                                 lg_dtype_name(lg_dtype_of(t)), (long long)i, v[i], want);
        free(v);
}

typedef struct end {
        lg_dtype dtype;
        double value, limit;
} end;
static const end ends[] = {{LG_F64, 1e300, 1e287},
                           {LG_F64, -1e300, 1e287},
                           {LG_F32, 3e38, 1e32},
                           {LG_F16, 60000, 32},
                           {LG_BF16, 3e38, 2e36}};
#define ENDS ((int)(sizeof ends / sizeof *ends))

/* Along the rows of (3, n), down the columns of (n, 5), and all of (n). */
TEST_CASE(constants_do_not_vary)
{
        lg_ctx *c = open_ctx();
        for (int e = 0; e < ENDS; e++)
                for (int i = 0; i < COUNTS; i++) {
                        lg_scope scope = lg_scope_begin(c);
                        double v = ends[e].value, limit = ends[e].limit;
                        const lg_shape shapes[] = {LG_SHAPE(3, counts[i]), LG_SHAPE(counts[i], 5), LG_SHAPE(counts[i])};
                        for (int how = 0; how < 3; how++) {
                                lg_tensor *x = lg_full(c, shapes[how], v, .dtype = ends[e].dtype);
                                lg_dims dims = LG_DIMS(how == 0 ? 1 : 0);
                                all_are("var", lg_var(x, .dims = dims), 0, 0);
                                all_are("std", lg_std(x, .dims = dims), 0, 0);
                                all_are("logsumexp", lg_logsumexp(x, .dims = dims), v, limit);
                                all_are("amax", lg_amax(x, .dims = dims), v, limit);
                                all_are("softmax", lg_softmax(x, dims.dim[0]), 1 / (double)counts[i], 2e-3);
                                if (ends[e].dtype != LG_F64)
                                        all_are("mean", lg_mean(x, .dims = dims), v, limit);
                                if (ends[e].dtype != LG_F64 && how == 2)
                                        all_are("sum", lg_sum(lg_cat(LG_LIST(x, lg_neg(x)), 0)), 0, 0);
                        }
                        assert_ok(c);
                        lg_scope_end(c, scope);
                }
        lg_close(c);
}

TEST_CASE(constants_are_normalised_to_zero)
{
        lg_ctx *c = open_ctx();
        for (int e = 0; e < ENDS; e++)
                for (int i = 0; i < COUNTS; i++) {
                        lg_scope scope = lg_scope_begin(c);
                        lg_tensor *rows = lg_full(c, LG_SHAPE(3, counts[i]), ends[e].value, .dtype = ends[e].dtype);
                        lg_tensor *signal = lg_unsqueeze(rows, 0), *columns = lg_transpose(rows, 0, 1);
                        all_are("layer_norm", lg_layer_norm(rows, LG_SHAPE(lg_size_of(rows, -1)), NULL, NULL), 0, 0);
                        all_are("instance_norm", lg_instance_norm(signal, NULL, NULL), 0, 0);
                        all_are("group_norm", lg_group_norm(signal, 1, NULL, NULL), 0, 0);
                        all_are("batch_norm", lg_batch_norm(columns, NULL, NULL, .training = true), 0, 0);
                        all_are("batch_norm of signals", lg_batch_norm(signal, NULL, NULL, .training = true), 0, 0);
                        assert_ok(c);
                        lg_scope_end(c, scope);
                }
        lg_close(c);
}

/* v and -v in turn have the mean 0 (or v / n) and the variance v^2, which f32 does not hold. */
TEST_CASE(squares_beyond_f32_are_normalised)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_BF16};
        for (int d = 0; d < 3; d++)
                for (int i = 0; i < COUNTS; i++) {
                        int64_t n = counts[i] + counts[i] % 2;
                        lg_scope scope = lg_scope_begin(c);
                        lg_tensor *odd = lg_remainder(lg_arange(c, 0, (double)n, 1, .dtype = LG_F64), lg_scalar(c, 2));
                        lg_tensor *sign = lg_rsub_scalar(lg_mul_scalar(odd, 2), 1);
                        lg_tensor *x = lg_cast(lg_expand(lg_mul_scalar(sign, 1e30), LG_SHAPE(3, n)), dtypes[d]);
                        lg_tensor *columns = lg_transpose(x, 0, 1), *down = lg_unsqueeze(sign, 1);
                        all_are("layer_norm", lg_mul(lg_layer_norm(x, LG_SHAPE(lg_size_of(x, -1)), NULL, NULL), sign),
                                1, 1e-2);
                        all_are("rms_norm", lg_mul(lg_rms_norm(x, LG_SHAPE(lg_size_of(x, -1)), NULL), sign), 1, 1e-2);
                        lg_tensor *y = lg_batch_norm(columns, NULL, NULL, .training = true);
                        all_are("batch_norm", lg_mul(y, down), 1, 1e-2);
                        assert_ok(c);
                        lg_scope_end(c, scope);
                }
        lg_close(c);
}

/* An infinity or NaN makes NaN of its own row only. */
TEST_CASE(what_is_not_finite_stays_in_its_row)
{
        lg_ctx *c = open_ctx();
        const double bad[] = {INFINITY, -INFINITY, NAN};
        for (int i = 0; i < COUNTS; i++)
                for (int b = 0; b < 3; b++) {
                        lg_scope scope = lg_scope_begin(c);
                        lg_tensor *at =
                                lg_eq_scalar(lg_arange(c, 0, (double)(2 * counts[i]), 1), (double)counts[i] - 1);
                        lg_tensor *x = lg_masked_fill(lg_ones(c, LG_SHAPE(2 * counts[i])), at, bad[b]);
                        x = lg_reshape(x, LG_SHAPE(2, counts[i]));
                        lg_tensor *y[] = {
                                lg_layer_norm(x, LG_SHAPE(lg_size_of(x, -1)), NULL, NULL),
                                lg_unsqueeze(lg_var(x, .dims = LG_DIMS(1)), 1),
                                lg_transpose(lg_batch_norm(lg_transpose(x, 0, 1), NULL, NULL, .training = true), 0, 1)};
                        for (int k = 0; k < 3; k++) {
                                all_are("finite", lg_select(y[k], 0, 1), 0, 0);
                                all_are("not finite", lg_cast(lg_isnan(lg_select(y[k], 0, 0)), LG_F32), 1, 0);
                        }
                        assert_ok(c);
                        lg_scope_end(c, scope);
                }
        lg_close(c);
}

/* Of n equal elements v the norm is v n^(1/p), its derivative n^(1/p - 1) by each; their powers are out of range. */
TEST_CASE(norms_of_what_has_no_powers)
{
        lg_ctx *c = open_ctx();
        const end far[] = {{LG_F32, 1e20, 1e-5},  {LG_F32, 1e-25, 1e-5},  {LG_F32, 3e34, 1e-5}, {LG_F64, 1e150, 1e-12},
                           {LG_BF16, 1e20, 2e-2}, {LG_BF16, 1e-25, 2e-2}, {LG_F16, 50, 2e-3}};
        const double p[] = {1.5, 2, 3, 10};
        for (int e = 0; e < 7; e++)
                for (int i = 0; i < COUNTS - 2; i++)
                        for (int k = 0; k < 8; k++) {
                                lg_scope scope = lg_scope_begin(c);
                                const double n = (double)counts[i], root = pow(n, 1 / p[k / 2]);
                                const int dim = k % 2;
                                lg_tensor *x = lg_full(c, dim ? LG_SHAPE(3, counts[i]) : LG_SHAPE(counts[i], 5),
                                                       far[e].value, .dtype = far[e].dtype, .requires_grad = true);
                                const double v = lg_item(lg_amax(x));
                                lg_tensor *y = lg_norm(x, .p = p[k / 2], .dims = LG_DIMS(dim)), *g[1];
                                all_are("norm", y, v * root, v * root * far[e].limit);
                                lg_grad(LG_LIST(lg_sum(y)), LG_LIST(x), .result = g);
                                all_are("slope of norm", g[0], root / n, far[e].limit);
                                all_are("normalize", lg_normalize(x, dim, .eps = 1e-30), 1 / sqrt(n), far[e].limit);
                                assert_ok(c);
                                lg_scope_end(c, scope);
                        }
        lg_tensor *pair = lg_from(c, ((float[]){1e30f, -1e30f}), LG_SHAPE(2), .requires_grad = true), *g[1];
        lg_tensor *y = lg_std(pair);
        assert_near(lg_item(y) / 1e30, sqrt(2), 1e-6);
        lg_grad(LG_LIST(y), LG_LIST(pair), .result = g);
        assert_list(g[0], 1e-6, sqrt(0.5), -sqrt(0.5));
        lg_close(c);
}

TEST_CASE(means_of_windows)
{
        lg_ctx *c = open_ctx();
        for (int e = 0; e < ENDS; e++)
                for (int64_t channels = 1; channels < 20; channels += 15) {
                        const double v = ends[e].value, limit = 20 * ends[e].limit; /* f32 adds up in f32 */
                        lg_tensor *x = lg_full(c, LG_SHAPE(2, channels, 7, 9), v, .dtype = ends[e].dtype);
                        lg_tensor *signal = lg_select(x, 2, 0);
                        if (fabs(v) == 1e300)
                                continue;
                        all_are("avg_pool2d", lg_avg_pool2d(x, 3), v, limit);
                        all_are("avg_pool2d", lg_avg_pool2d(x, 2, .padding = 1, .no_count_padding = true), v, limit);
                        all_are("avg_pool2d", lg_avg_pool2d(x, 1, .divisor = 3), v / 3, limit);
                        all_are("avg_pool1d", lg_avg_pool1d(signal, 4), v, limit);
                        all_are("adaptive_avg_pool2d", lg_adaptive_avg_pool2d(x, 1), v, limit);
                        all_are("adaptive_avg_pool1d", lg_adaptive_avg_pool1d(signal, 2), v, limit);
                        assert_ok(c);
                }
        lg_close(c);
}

/* The derivative of <f(x), g> by x around 10,000, which f32 holds to a thousandth, against that in f64. */
TEST_CASE(slopes_far_from_zero)
{
        enum { COUNT = 500 };
        lg_ctx *c = open_ctx();
        lg_tensor *wave = lg_sin(lg_arange(c, 0, 2 * COUNT, 1, .dtype = LG_F64));
        lg_tensor *x = lg_cast(lg_add_scalar(lg_reshape(wave, LG_SHAPE(2, COUNT)), 10000.3), LG_F32);
        lg_tensor *g = lg_reshape(lg_square(wave), LG_SHAPE(2, COUNT));
        for (int f = 0; f < 5; f++)
                for (int create = 0; create < 2; create++) {
                        lg_tensor *d[2][1];
                        for (int wide = 0; wide < 2; wide++) {
                                const lg_dtype dtype = wide ? LG_F64 : LG_F32;
                                lg_tensor *v = lg_set_requires_grad(lg_detach(lg_cast(x, dtype)), true);
                                lg_tensor *y =
                                        f == 0   ? lg_var(v, .dims = LG_DIMS(1), .keep_dim = true)
                                        : f == 1 ? lg_std(v, .dims = LG_DIMS(1), .keep_dim = true)
                                        : f == 2 ? lg_layer_norm(v, LG_SHAPE(lg_size_of(v, -1)), NULL, NULL)
                                        : f == 3 ? lg_batch_norm(lg_transpose(v, 0, 1), NULL, NULL, .training = true)
                                                 : lg_instance_norm(lg_unsqueeze(v, 0), NULL, NULL);
                                y = lg_mul(f == 3 ? lg_transpose(y, 0, 1) : y, lg_cast(g, dtype));
                                lg_grad(LG_LIST(lg_sum(y)), LG_LIST(v), .create_graph = create, .result = d[wide]);
                                assert_ok(c);
                        }
                        const double top = lg_item(lg_amax(lg_abs(d[1][0])));
                        all_are("slope", lg_div_scalar(lg_sub(d[0][0], d[1][0]), top), 0, 2e-5);
                }
        lg_close(c);
}
