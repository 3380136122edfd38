/* test_watch.c - traces, the op that made the first NaN, memory by module. */
#include "test.h"

typedef struct log {
        int count, backward;
        char ops[4096], modules[4096];
        int64_t elements;
} log_t;

static void note(const lg_trace_record *r, void *user)
{
        log_t *l = user;
        l->count++;
        l->backward += r->of != NULL;
        snprintf(l->ops + strlen(l->ops), sizeof l->ops - strlen(l->ops), "%s%s ", r->of ? "'" : "", r->op);
        snprintf(l->modules + strlen(l->modules), sizeof l->modules - strlen(l->modules), "%s;", r->module);
        assert_true(r->seconds >= 0);
        assert_true(r->in_count >= 1 && r->out_count >= 1);
        l->elements += r->out[0].ndim;
}

TEST_CASE(every_op_is_told)
{
        lg_ctx *c = open_ctx();
        log_t l = {0};
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_relu(c));
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        assert_true(lg_set_trace(c, note, .user = &l, .synchronize = true));
        lg_tensor *loss = lg_sum(lg_forward(net, x));
        assert_string_equal(l.ops, "linear_relu sum ");
        assert_string_equal(l.modules, "0 (Linear);;");
        l = (log_t){0};
        lg_backward(loss);
        assert_non_null(strstr(l.ops, "'relu_grad "));
        assert_non_null(strstr(l.ops, "'matmul "));
        assert_null(strstr(l.ops, " linear"));
        assert_non_null(strstr(l.modules, "0 (Linear);"));
        assert_int_equal(l.backward, l.count);
        assert_true(lg_set_trace(c, NULL));
        int before = l.count;
        drop(lg_relu(x));
        assert_int_equal(l.count, before);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(lines_for_people)
{
        lg_ctx *c = open_ctx();
        FILE *f = tmpfile();
        char text[4096] = "";
        lg_tensor *x = lg_set_requires_grad(lg_ones(c, LG_SHAPE(2, 3)), true);
        lg_set_trace(c, lg_trace_print, .user = f);
        lg_backward(lg_sum(lg_exp(x)));
        lg_set_trace(c, NULL);
        rewind(f);
        size_t n = fread(text, 1, sizeof text - 1, f);
        assert_true(n > 0);
        assert_non_null(strstr(text, "exp "));
        assert_non_null(strstr(text, "f32 (2, 3) -> f32 (2, 3)"));
        assert_non_null(strstr(text, "exp (derivative)"));
        assert_non_null(strstr(text, " us "));
        fclose(f);
        lg_trace_print(NULL, NULL);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *log_of(lg_module *m, lg_list in, void *user)
{
        (void)m, (void)user;
        return lg_log(in.items[0]);
}

TEST_CASE(the_first_nan_in_a_forward)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_relu(c), lg_nn_module(c, "Log", .forward = log_of), lg_nn_relu(c));
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 0, 3}), LG_SHAPE(2, 2));
        assert_non_null(lg_forward(net, x)); /* nobody looks */
        assert_true(lg_set_anomaly(c, true));
        assert_null(lg_forward(net, x));
        assert_error(c, LG_ERR_STATE, "log made -inf, element 2 of");
        drop(lg_forward(net, x));
        assert_error(c, LG_ERR_STATE, "in module 1 (Log)");
        assert_true(lg_set_anomaly(c, true, .nan_only = true));
        assert_non_null(lg_forward(net, x));
        assert_null(lg_log(lg_neg(x)));
        assert_error(c, LG_ERR_STATE, "log made");
        assert_true(lg_set_anomaly(c, false));
        lg_tensor *nan = lg_log(lg_neg(x));
        assert_true(lg_set_anomaly(c, true));
        assert_non_null(lg_add(nan, x)); /* it came in, it was not made here */
        assert_non_null(lg_neg(lg_ones(c, LG_SHAPE(0, 3))));
        assert_ok(c);
        lg_close(c);
}

/* A NaN of infinities, such as a soft-max of masks alone, is one of inputs without NaN. */
TEST_CASE(a_nan_of_infinities)
{
        lg_ctx *c = open_ctx();
        test_device(c);
        for (int only = 0; only < 2; only++) {
                lg_tensor *masked = lg_full(c, LG_SHAPE(2, 3), -LG_INFINITY);
                lg_tensor *x = lg_set_requires_grad(lg_full(c, LG_SHAPE(3), -LG_INFINITY), true);
                assert_true(lg_set_anomaly(c, true, .nan_only = only));
                lg_tensor *kept = lg_exp(masked), *sum = lg_add(masked, masked);
                assert_true(lg_item(lg_amax(kept)) == 0 && sum);
                assert_null(lg_softmax(masked, -1));
                assert_error(c, LG_ERR_STATE, "element 0 of f32 (2, 3)");
                assert_null(lg_sub(masked, masked));
                assert_error(c, LG_ERR_STATE, "from infinite inputs, none of them NaN");
                lg_tensor *y = lg_sum(lg_mul(x, lg_zeros(c, LG_SHAPE(3))));
                assert_null(y);
                assert_error(c, LG_ERR_STATE, "anomaly: mul made ");
                assert_true(lg_set_anomaly(c, false));
                lg_tensor *bad = lg_log(lg_full(c, LG_SHAPE(3), -1));
                assert_true(lg_set_anomaly(c, true, .nan_only = only));
                assert_non_null(lg_mul_scalar(bad, 2)); /* it was there before */
                assert_true(lg_set_anomaly(c, false));
        }
        lg_close(c);
}

TEST_CASE(the_first_nan_in_a_backward)
{
        lg_ctx *c = open_ctx();
        for (int create_graph = 0; create_graph < 2; create_graph++) {
                lg_tensor *x = lg_set_requires_grad(lg_from(c, ((float[]){0, 4}), LG_SHAPE(2)), true);
                lg_set_anomaly(c, true);
                lg_tensor *y = lg_sum(lg_sqrt(x)); /* its derivative at 0 is infinite */
                assert_non_null(y);
                assert_false(lg_backward(y, .create_graph = create_graph));
                assert_error(c, LG_ERR_STATE,
                             create_graph ? "in the backward of sqrt" : "sqrt (its derivative) made inf");
                lg_set_anomaly(c, false);
        }
        lg_module *m = lg_nn_module(c, "Log", .forward = log_of);
        lg_tensor *x = lg_set_requires_grad(lg_from(c, ((float[]){1e-39f, 4}), LG_SHAPE(2)), true);
        lg_set_anomaly(c, true);
        assert_false(lg_backward(lg_sum(lg_forward(m, x))));
        assert_error(c, LG_ERR_STATE, "in module (Log)");
        lg_tensor *h = lg_tanh(lg_tanh(lg_set_requires_grad(lg_ones(c, LG_SHAPE(2)), true)));
        assert_true(lg_backward(h, .grad = lg_full(c, LG_SHAPE(2), NAN))); /* it came in, nothing made it */
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(memory_by_module)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 8, 3, .padding = 1), lg_nn_batch_norm2d(c, 8),
                                          lg_nn_relu(c), lg_nn_flatten(c), lg_nn_linear(c, 8 * 16 * 16, 10));
        lg_random_state random = lg_random_state_of(c);
        int64_t live = lg_live_tensors(c);
        FILE *f = tmpfile();
        char text[8192] = "";
        assert_true(lg_module_print_memory(f, net, .input = LG_SHAPE(4, 1, 16, 16)));
        assert_list(lg_buffer(net, "1.running_mean"), 0, 0, 0, 0, 0, 0, 0, 0, 0);
        assert_list(lg_buffer(net, "1.running_var"), 0, 1, 1, 1, 1, 1, 1, 1, 1);
        assert_int_equal(lg_live_tensors(c), live);
        assert_int_equal(lg_random_state_of(c).counter, random.counter);
        rewind(f);
        assert_true(fread(text, 1, sizeof text - 1, f) > 0);
        assert_non_null(strstr(text, "Conv2d"));
        assert_non_null(strstr(text, "32.0 KiB")); /* the convolution's result: 4 * 8 * 16 * 16 floats */
        assert_non_null(strstr(text, "80.0 KiB")); /* the linear layer's weight and bias, about */
        assert_non_null(strstr(text, "total"));
        assert_false(lg_module_print_memory(f, net, .input = LG_SHAPE(4, 2, 16, 16)));
        assert_error(c, LG_ERR_SHAPE, "conv2d");
        assert_false(lg_module_print_memory(NULL, net, .input = LG_SHAPE(4, 1, 16, 16)));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        fclose(f);
        lg_close(c);
}

/* ---- what a trace may not do ---- */

static lg_tensor *add_last(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_add(in.items[0], lg_parameter(m, "last"));
}

typedef struct traced {
        lg_tensor *x, *y;
        lg_module *m;
        lg_optimizer *opt;
        lg_ema *ema;
        lg_device device;
        int what, errors;
} traced;

static void end_something(const lg_trace_record *r, void *user)
{
        traced *t = user;
        lg_ctx *c = lg_ctx_of(t->x);
        (void)r;
        if (t->what == 0)
                lg_free(t->y);
        else if (t->what == 1)
                lg_clear_grad(t->x);
        else if (t->what == 2)
                lg_set_requires_grad(t->x, false);
        else if (t->what == 3)
                lg_zero_grad(t->opt);
        else if (t->what == 4)
                lg_module_free(t->m);
        else if (t->what == 5)
                lg_optimizer_free(t->opt);
        else if (t->what == 6)
                lg_ema_free(t->ema);
        else
                lg_module_to(t->m, t->device);
        if (lg_error_code_of(c) == LG_ERR_STATE && strstr(lg_error(c), "a function given to lg_set_trace"))
                t->errors++;
        lg_clear_error(c);
}

/* What the call around has in its hands stays as it is. */
TEST_CASE(a_trace_only_looks)
{
        lg_ctx *c = open_ctx();
        lg_device device = lg_set_default_device(c, lg_parse_device(c, "cpu"));
        traced t = {.device = device.type == LG_DEVICE_CPU ? lg_parse_device(c, "shadow") : device};
        t.m = lg_nn_module(c, "Own", .forward = add_last);
        t.x = lg_module_add_parameter(t.m, "last", lg_ones(c, LG_SHAPE(2)));
        t.y = lg_ones(c, LG_SHAPE(2));
        t.opt = lg_sgd(c, LG_LIST(t.x), 1);
        t.ema = lg_ema_new(t.m, 0.5);
        for (t.what = 0; t.what < 8; t.what++) {
                lg_zero_grad(t.opt);
                lg_backward(lg_sum(t.x));
                t.errors = 0;
                lg_set_trace(c, end_something, .user = &t);
                assert_true(lg_clip_grad_norm(LG_LIST(t.x), 1, .p = 1));
                assert_true(lg_ema_update(t.ema) && lg_ema_update(t.ema));
                lg_set_trace(c, NULL);
                assert_true(t.errors > 1);
                assert_list(lg_grad_of(t.x), 1e-5, 0.5, 0.5);
        }
        assert_ok(c);
        lg_close(c);
}
