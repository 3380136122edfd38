/* test_reduce.c - sums and the like over any set of dimensions against plain loops. */
#include "test.h"

enum { SUM, MEAN, AMAX, AMIN, ARGMAX, VAR, KINDS };
static const char *const kinds[] = {"sum", "mean", "amax", "amin", "argmax", "var"};

static lg_tensor *run(int kind, lg_reduce_options o)
{
        lg_tensor *(*const op[])(lg_reduce_options) = {lg_sum_, lg_mean_, lg_amax_, lg_amin_, lg_argmax_, lg_var_};
        return op[kind](o);
}

static double reduce(int kind, const double *v, int n, double correction)
{
        double sum = 0, most = -INFINITY, least = INFINITY, squares = 0;
        int at = 0;
        for (int i = 0; i < n; i++) {
                sum += v[i];
                at = v[i] > most ? i : at;
                most = fmax(most, v[i]);
                least = fmin(least, v[i]);
        }
        for (int i = 0; i < n; i++)
                squares += (v[i] - sum / n) * (v[i] - sum / n);
        const double all[] = {sum, sum / n, most, least, at, squares / fmax(0, n - correction)};
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
        lg_dims d = {0};
        for (int i = 2; i >= 0; i--) /* in any order, also from the end */
                if (mask >> i & 1)
                        d.dim[d.count++] = i % 2 ? i : i - 3;
        return d;
}

static void all_sets_of_dimensions(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-13, 1e-5, 2e-3, 1.6e-2};
        for (int d = 0; d < 4; d++)
                for (int kind = 0; kind < KINDS; kind++)
                        for (int mask = 1; mask < 8; mask++)
                                for (int layout = 0; layout < 2; layout++) {
                                        double v[60], ref[60];
                                        lg_scope s = lg_scope_begin(c);
                                        lg_tensor *x = lg_uniform(c, -1, 2, LG_SHAPE(3, 4, 5), .dtype = dtypes[d]);
                                        if (layout)
                                                x = lg_permute(lg_contiguous(lg_permute(x, LG_DIMS(2, 0, 1))),
                                                               LG_DIMS(1, 2, 0));
                                        read_all(x, v, 60);
                                        int n = reference(v, kind, mask, ref);
                                        lg_tensor *y = run(kind, (lg_reduce_options){.x = x, .dims = dims_of(mask)});
                                        assert_ok(c);
                                        if (lg_numel(y) != n)
                                                fail_msg("%s of dims %d", kinds[kind], mask);
                                        assert_values(y, ref, n, kind == ARGMAX ? 0 : limits[d]);
                                        lg_tensor *k =
                                                run(kind, (lg_reduce_options){x, dims_of(mask), .keep_dim = true});
                                        assert_int_equal(lg_ndim_of(k), 3);
                                        assert_values(k, ref, n, kind == ARGMAX ? 0 : limits[d]);
                                        lg_scope_end(c, s);
                                }
        lg_close(c);
}

static void options_and_edges(void **state)
{
        (void)state;
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
        lg_amax(none);
        assert_error(c, LG_ERR_SHAPE, "amax");
        lg_argmax(none, .dims = LG_DIMS(0));
        assert_error(c, LG_ERR_SHAPE, "argmax");
        assert_int_equal(lg_numel(lg_amax(none, .dims = LG_DIMS(1))), 0);
        lg_sum(x, .dims = LG_DIMS(2));
        assert_error(c, LG_ERR_ARGUMENT, "sum");
        lg_sum(x, .dims = LG_DIMS(0, -2));
        assert_error(c, LG_ERR_ARGUMENT, "sum");
        lg_mean(lg_ones(c, LG_SHAPE(2), .dtype = LG_I32));
        assert_error(c, LG_ERR_DTYPE, "");
        lg_close(c);
}

static void integers_and_bools(void **state)
{
        (void)state;
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

static void nan_and_equals(void **state)
{
        (void)state;
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
static void accumulation(void **state)
{
        (void)state;
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

static void running_sums(void **state)
{
        (void)state;
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_sets_of_dimensions), cmocka_unit_test(options_and_edges),
                cmocka_unit_test(integers_and_bools),     cmocka_unit_test(nan_and_equals),
                cmocka_unit_test(accumulation),           cmocka_unit_test(running_sums),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
