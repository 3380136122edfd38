/* test_cumsum.c - running sums over lines of any length. */
#include "test.h"

/* Running sums over lines of any length, both ways (the gradient runs back), against loops. */
static void long_running_sums(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {3, 17, 40, 1024, 1025, 3000};
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16};
        const double limits[] = {1e-6, 1e-13, 1e-3};
        for (int k = 0; k < 6; k++)
                for (int d = 0; d < 4; d++) {
                        const int64_t n = lengths[k];
                        double *x = calloc((size_t)(6 * n), sizeof *x), *up = x + 2 * n, *down = x + 4 * n;
                        lg_tensor *t = lg_normal(c, 0, 1, LG_SHAPE(2, n), .dtype = d < 3 ? dtypes[d] : LG_F32), *dx;
                        t = d < 3 ? lg_requires_grad(lg_detach(t), true) : lg_cast(lg_mul_scalar(t, 100), LG_I64);
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(long_running_sums),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
