/* test_limits.c - numbers that a dtype cannot hold, and sizes up to 2^63: errors that name them, and no overflow. */
#include "test.h"

static lg_tensor *bytes(lg_ctx *c, lg_dtype dtype)
{
        return lg_cast(lg_from(c, ((uint8_t[]){0, 1, 5, 250}), LG_SHAPE(4), .dtype = LG_U8), dtype);
}

typedef lg_tensor *with_number(lg_tensor *x, double s);

static lg_tensor *clamp_low(lg_tensor *x, double s)
{
        return lg_clamp(x, s, INFINITY);
}

static lg_tensor *clamp_high(lg_tensor *x, double s)
{
        return lg_clamp(x, -INFINITY, s);
}

static lg_tensor *hardtanh_low(lg_tensor *x, double s)
{
        return lg_hardtanh(x, s, INFINITY);
}

static lg_tensor *hardtanh_high(lg_tensor *x, double s)
{
        return lg_hardtanh(x, -INFINITY, s);
}

static lg_tensor *filled(lg_tensor *x, double s)
{
        return lg_masked_fill(x, lg_eq_scalar(x, 0), s);
}

static lg_tensor *padded(lg_tensor *x, double s)
{
        return lg_pad(x, LG_PADS(1, 1), .value = s);
}

typedef struct number_op {
        const char *name;
        with_number *op;
        int bound; /* 1: from below, 2: from above */
} number_op;
static const number_op number_ops[] = {
        {"add_scalar", lg_add_scalar, 0},
        {"sub_scalar", lg_sub_scalar, 0},
        {"rsub_scalar", lg_rsub_scalar, 0},
        {"mul_scalar", lg_mul_scalar, 0},
        {"maximum_scalar", lg_maximum_scalar, 1},
        {"minimum_scalar", lg_minimum_scalar, 2},
        {"clamp", clamp_low, 1},
        {"clamp", clamp_high, 2},
        {"hardtanh", hardtanh_low, 1},
        {"hardtanh", hardtanh_high, 2},
        {"masked_fill", filled, 0},
        {"pad", padded, 0},
};
enum { NUMBER_OPS = sizeof number_ops / sizeof *number_ops };

static void assert_refused(lg_ctx *c, const number_op *n, lg_dtype dtype, double s)
{
        char text[200];
        snprintf(text, sizeof text, "%s: the value %.17g is out of the range of %s, ", n->name, s,
                 lg_dtype_name(dtype));
        if (n->op(bytes(c, dtype), s))
                fail_msg("%s of %s with %g is not refused", n->name, lg_dtype_name(dtype), s);
        assert_error(c, LG_ERR_ARGUMENT, text);
}

/* What an integer dtype cannot hold is refused by every op that would have to store it. */
static void numbers_out_of_range(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        static const struct {
                lg_dtype dtype;
                double below, above;
        } ranges[] = {{LG_U8, -1, 256}, {LG_I32, -2147483649.0, 0x1p31}, {LG_I64, -0x1.0000000000001p63, 0x1p63}};
        for (int i = 0; i < NUMBER_OPS; i++) {
                const number_op *n = &number_ops[i];
                for (int r = 0; r < 3; r++) {
                        lg_dtype d = ranges[r].dtype;
                        const double outside[2][2] = {{ranges[r].below, -INFINITY}, {ranges[r].above, INFINITY}};
                        assert_refused(c, n, d, NAN);
                        for (int side = 0; side < 2; side++)
                                for (int k = 0; k < 2; k++)
                                        if (n->bound != 1 + side)
                                                assert_refused(c, n, d, outside[side][k]);
                                        else /* bounds nothing */
                                                assert_list(n->op(bytes(c, d), outside[side][k]), 0, 0, 1, 5, 250);
                }
        }
        assert_ok(c);
        lg_close(c);
}

/* The ends of the range are in it, numbers are cut to whole ones, and comparisons take any. */
static void numbers_in_range(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = bytes(c, LG_U8);
        assert_list(lg_add_scalar(x, 5.9), 0, 5, 6, 10, 255);
        assert_list(lg_sub_scalar(x, -0.9), 0, 0, 1, 5, 250);
        assert_list(lg_rsub_scalar(x, 255.9), 0, 255, 254, 250, 5);
        assert_list(lg_mul_scalar(x, 0.5), 0, 0, 0, 0, 0);
        assert_list(lg_maximum_scalar(x, 255), 0, 255, 255, 255, 255);
        assert_list(lg_minimum_scalar(x, 0), 0, 0, 0, 0, 0);
        assert_list(lg_clamp(x, -7, 300), 0, 0, 1, 5, 250);
        assert_list(lg_clamp(x, 1.5, 6.5), 0, 1, 1, 5, 6);
        assert_list(lg_lt_scalar(x, 1e300), 0, 1, 1, 1, 1);
        assert_list(lg_gt_scalar(x, -1), 0, 1, 1, 1, 1);
        assert_list(lg_eq_scalar(x, NAN), 0, 0, 0, 0, 0);
        assert_list(lg_div_scalar(x, 1000), 1e-7, 0, 0.001, 0.005, 0.25); /* f32 */
        lg_tensor *wide = lg_full(c, -1, LG_SHAPE(1), .dtype = LG_I64);
        int64_t low;
        assert_true(lg_read(lg_add_scalar(lg_mul_scalar(wide, 0x1p62), -0x1p62), &low, LG_I64, sizeof low));
        assert_true(low == INT64_MIN);
        assert_ok(c);
        lg_close(c);
}

/* A number is true if it is not zero, as in lg_full; as a bound it is compared with 0 and 1. */
static void numbers_with_bool(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((bool[]){false, true}), LG_SHAPE(2), .dtype = LG_BOOL);
        static const double trues[] = {1, -1, 0.5, 300, INFINITY, NAN};
        for (size_t i = 0; i < sizeof trues / sizeof *trues; i++) {
                assert_list(lg_add_scalar(x, trues[i]), 0, 1, 1);
                assert_list(lg_mul_scalar(x, trues[i]), 0, 0, 1);
                assert_list(lg_rsub_scalar(x, trues[i]), 0, 1, 0);
                assert_list(filled(x, trues[i]), 0, 1, 1);
        }
        assert_list(lg_add_scalar(x, 0), 0, 0, 1);
        assert_list(lg_clamp(x, -INFINITY, INFINITY), 0, 0, 1);
        assert_list(lg_clamp(x, -3, 3), 0, 0, 1);
        assert_list(lg_maximum_scalar(x, 0.5), 0, 0, 1);
        assert_list(lg_maximum_scalar(x, 2), 0, 1, 1);
        assert_list(lg_minimum_scalar(x, -2), 0, 0, 0);
        assert_int_equal(lg_dtype_of(lg_add_scalar(x, 2)), LG_BOOL);
        assert_ok(c);
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(numbers_out_of_range),
                cmocka_unit_test(numbers_in_range),
                cmocka_unit_test(numbers_with_bool),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
