/* test_print.c - what lg_print and lg_graph_dot write, compared with what PyTorch prints. */
#include "test.h"

static char text[1 << 16];

static const char *printed(const lg_tensor *t)
{
        FILE *f = fmemopen(text, sizeof text, "w");
        lg_print(f, t);
        fclose(f);
        return text;
}

static void assert_has(const char *s, const char *part)
{
        if (!strstr(s, part))
                fail_msg("\"%s\" is not in:\n%s", part, s);
}

static void values(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        assert_has(printed(lg_from(c, ((float[]){1, 2.5f, -3}), LG_SHAPE(3))), "[ 1.0000,  2.5000, -3.0000]");
        assert_has(printed(lg_from(c, ((int64_t[]){1, 20, -3}), LG_SHAPE(3), .dtype = LG_I64)), "[ 1, 20, -3]");
        assert_has(printed(lg_from(c, ((float[]){1, 2, 3}), LG_SHAPE(3))), "[1., 2., 3.]");
        const char *s = printed(lg_from(c, ((bool[]){1, 0}), LG_SHAPE(2), .dtype = LG_BOOL));
        assert_true(strstr(s, "true") || strstr(s, "True"));
        s = printed(lg_from(c, ((float[]){NAN, INFINITY, -INFINITY, 1.5f}), LG_SHAPE(4)));
        assert_has(s, "nan");
        assert_has(s, "inf");
        assert_has(s, "-inf");
        assert_has(s, "1.5000");
        assert_has(printed(lg_from(c, ((float[]){1e-9f, 1e9f}), LG_SHAPE(2))), "1.0000e-09");
        assert_has(printed(lg_scalar(c, 3.25)), "3.25");
        s = printed(lg_arange(c, 0, 6, 1, .dtype = LG_F16));
        assert_has(s, "f16");
        s = printed(lg_zeros(c, LG_SHAPE(0, 3)));
        assert_has(s, "[]");
        assert_has(s, "(0, 3)");
        lg_close(c);
}

static void shapes(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *m = lg_reshape(lg_arange(c, 0, 6, 1), LG_SHAPE(2, 3));
        const char *s = printed(m);
        assert_has(s, "[0, 1, 2]");
        assert_has(s, "[3, 4, 5]");
        assert_has(printed(lg_transpose(m, 0, 1)), "[0, 3]");
        s = printed(lg_arange(c, 0, 2000, 1));
        assert_has(s, "...");
        assert_has(s, "1999");
        assert_true(strlen(s) < 400);
        assert_null(strstr(s, "500"));
        lg_arange(c, 0, 1000, 1);
        s = printed(lg_reshape(lg_arange(c, 0, 1000, 1), LG_SHAPE(10, 100)));
        assert_null(strstr(s, "..."));
        lg_close(c);
}

static void always_works(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_scope s = lg_scope_begin(c);
        lg_tensor *t = lg_ones(c, LG_SHAPE(2));
        lg_set_error(c, LG_ERR_IO, "x");
        assert_has(printed(t), "1.");
        assert_string_equal(lg_error(c), "x");
        lg_clear_error(c);
        lg_scope_end(c, s);
        printed(t); /* dead */
        printed(NULL);
        lg_clear_error(c);
        lg_close(c);
}

static void dot(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_tensor *y = lg_sum(lg_mul(lg_exp(x), x));
        FILE *f = fmemopen(text, sizeof text, "w");
        assert_true(lg_graph_dot(f, y));
        fclose(f);
        assert_has(text, "digraph");
        assert_has(text, "->");
        assert_has(text, "sum");
        assert_has(text, "mul");
        assert_has(text, "exp");
        assert_has(text, "(2, 3)");
        int arrows = 0, open = 0;
        for (const char *p = text; *p; p++) {
                open += (*p == '{') - (*p == '}');
                arrows += p[0] == '-' && p[1] == '>';
        }
        assert_int_equal(open, 0);
        assert_true(arrows >= 4); /* x to exp and to mul, exp to mul, mul to sum */
        assert_false(lg_graph_dot(NULL, y));
        assert_error(c, LG_ERR_ARGUMENT, "lg_graph_dot");
        lg_close(c);
}

/* Parameters stand under their paths, ops of a watched module in a frame. */
static void dot_of_a_network(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_relu(c), lg_nn_linear(c, 4, 2));
        FILE *f = fmemopen(text, sizeof text, "w");
        lg_anomaly(c, true);
        lg_tensor *y = lg_forward(net, lg_ones(c, LG_SHAPE(2, 3)));
        lg_anomaly(c, false);
        assert_true(lg_graph_dot(f, y, .module = net));
        fclose(f);
        assert_has(text, "label=\"0.weight\\nf32 (4, 3)\\n");
        assert_has(text, "2.bias");
        assert_has(text, "label=\"1 (ReLU)\"");
        assert_ok(c);
        lg_close(c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(shapes),
                                           cmocka_unit_test(always_works), cmocka_unit_test(dot),
                                           cmocka_unit_test(dot_of_a_network)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
