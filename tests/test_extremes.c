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
static void constants_do_not_vary(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        for (int e = 0; e < ENDS; e++)
                for (int i = 0; i < COUNTS; i++) {
                        lg_scope scope = lg_scope_begin(c);
                        double v = ends[e].value, limit = ends[e].limit;
                        const lg_shape shapes[] = {LG_SHAPE(3, counts[i]), LG_SHAPE(counts[i], 5), LG_SHAPE(counts[i])};
                        for (int how = 0; how < 3; how++) {
                                lg_tensor *x = lg_full(c, v, shapes[how], .dtype = ends[e].dtype);
                                lg_dims dims = LG_DIMS(how == 0 ? 1 : 0);
                                all_are("var", lg_var(x, .dims = dims), 0, 0);
                                all_are("std", lg_std(x, .dims = dims), 0, 0);
                                all_are("logsumexp", lg_logsumexp(x, .dims = dims), v, limit);
                                all_are("amax", lg_amax(x, .dims = dims), v, limit);
                                all_are("softmax", lg_softmax(x, dims.dim[0]), 1 / (double)counts[i], 2e-3);
                                if (ends[e].dtype == LG_F64 || ends[e].dtype == LG_F16)
                                        all_are("mean", lg_mean(x, .dims = dims), v, limit);
                        }
                        assert_ok(c);
                        lg_scope_end(c, scope);
                }
        lg_close(c);
}

static void constants_are_normalised_to_zero(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        for (int e = 0; e < ENDS; e++)
                for (int i = 0; i < COUNTS; i++) {
                        lg_scope scope = lg_scope_begin(c);
                        lg_tensor *rows = lg_full(c, ends[e].value, LG_SHAPE(3, counts[i]), .dtype = ends[e].dtype);
                        lg_tensor *signal = lg_unsqueeze(rows, 0), *columns = lg_transpose(rows, 0, 1);
                        all_are("layer_norm", lg_layer_norm(rows, 1, NULL, NULL), 0, 0);
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
static void squares_beyond_f32_are_normalised(void **state)
{
        (void)state;
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
                        all_are("layer_norm", lg_mul(lg_layer_norm(x, 1, NULL, NULL), sign), 1, 1e-2);
                        all_are("rms_norm", lg_mul(lg_rms_norm(x, 1, NULL), sign), 1, 1e-2);
                        lg_tensor *y = lg_batch_norm(columns, NULL, NULL, .training = true);
                        all_are("batch_norm", lg_mul(y, down), 1, 1e-2);
                        assert_ok(c);
                        lg_scope_end(c, scope);
                }
        lg_close(c);
}

/* An infinity or NaN makes NaN of its own row only. */
static void what_is_not_finite_stays_in_its_row(void **state)
{
        (void)state;
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
                                lg_layer_norm(x, 1, NULL, NULL), lg_unsqueeze(lg_var(x, .dims = LG_DIMS(1)), 1),
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(constants_do_not_vary),
                cmocka_unit_test(constants_are_normalised_to_zero),
                cmocka_unit_test(squares_beyond_f32_are_normalised),
                cmocka_unit_test(what_is_not_finite_stays_in_its_row),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
