/* test_autocast.c - lg_autocast(): the dtypes of results, regions, kept casts, gradients. */
#include "calls.h"
#include "failing.h"

/* ---- classes ---- */

#define CALL(...)
#define ELEMENTWISE(is, names) {CAST_##is, " " #names " "},
static const struct {
        cast_class is;
        const char *names;
} elementwise_classes[] = {
#include "calls.def"
};
#undef CALL
#undef ELEMENTWISE

static cast_class elementwise_class(const char *name)
{
        char word[32];
        snprintf(word, sizeof word, " %s ", name);
        for (size_t i = 0; i < sizeof elementwise_classes / sizeof *elementwise_classes; i++)
                if (strstr(elementwise_classes[i].names, word))
                        return elementwise_classes[i].is;
        return CAST_SAME;
}

static void check_dtype(lg_ctx *c, const large_call *r, cast_class is, lg_dtype of)
{
        static const lg_dtype regions[] = {LG_F16, LG_BF16, LG_F32};
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x[MOST_OPERANDS], *out = NULL;
        for (int i = 0; i < operands_of(r); i++)
                x[i] = lg_to(draw_operand(c, r, i, of), lg_default_device(c));
        const lg_dtype plain = lg_dtype_of(r->run(c, x));
        for (int i = 0; i < 3; i++) {
                lg_autocast(c, regions[i])
                {
                        out = r->run(c, x);
                }
                assert_ok(c);
                const bool casts = of != LG_F64 && regions[i] != LG_F32;
                const lg_dtype want = casts && is == CAST_LOW ? regions[i] : casts && is == CAST_F32 ? LG_F32 : plain;
                if (lg_dtype_of(out) != want)
                        fail_msg("%s of %s in a region of %s: %s, not %s", r->name, lg_dtype_name(of),
                                 lg_dtype_name(regions[i]), lg_dtype_name(lg_dtype_of(out)), lg_dtype_name(want));
        }
        lg_scope_end(c, scope);
}

TEST_CASE(dtypes_are_those_of_the_classes)
{
        static const lg_dtype given[] = {LG_F32, LG_F16, LG_BF16, LG_F64};
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 4; k++) {
                for (size_t i = 0; i < sizeof elementwise_calls / sizeof *elementwise_calls; i++)
                        check_dtype(c, &elementwise_calls[i], elementwise_class(elementwise_calls[i].name), given[k]);
                for (size_t i = 0; i < sizeof large_calls / sizeof *large_calls; i++)
                        check_dtype(c, &large_calls[i], large_calls[i].is, given[k]);
        }
        lg_close(c);
}

static lg_tensor *values(lg_ctx *c, lg_dtype dtype)
{
        return lg_cast(lg_uniform(c, 0.2, 0.8, LG_SHAPE(2, 4, 4)), dtype);
}

TEST_CASE(inputs_of_several_dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *wide = values(c, LG_F32), *low = values(c, LG_BF16), *half = values(c, LG_F16);
        lg_tensor *one = lg_scalar(c, 1), *many = values(c, LG_F64);
        lg_tensor *whole = lg_from(c, ((int64_t[]){1, 2, 3, 4}), LG_SHAPE(2, 2), .dtype = LG_I64);
        lg_autocast(c, LG_BF16)
        {
                assert_int_equal(lg_dtype_of(lg_atan2(low, wide)), LG_F32);
                assert_int_equal(lg_dtype_of(lg_atan2(low, one)), LG_F32); /* lg_add promotes otherwise: */
                assert_int_equal(lg_dtype_of(lg_add(low, one)), LG_BF16);
                assert_int_equal(lg_dtype_of(lg_atan2(low, half)), LG_F32);
                assert_int_equal(lg_dtype_of(lg_add(low, wide)), LG_F32);
                assert_int_equal(lg_dtype_of(lg_matmul(low, wide)), LG_BF16);
                assert_int_equal(lg_dtype_of(lg_matmul(half, low)), LG_BF16);
                assert_int_equal(lg_dtype_of(lg_matmul(many, wide)), LG_F64);
                assert_int_equal(lg_dtype_of(lg_pow(low, many)), LG_F64);
                assert_int_equal(lg_dtype_of(lg_sum(whole)), LG_I64);
                assert_int_equal(lg_dtype_of(lg_mse(low, many)), LG_F64);
                /* Not in calls.def: they need a module of the device, and draw otherwise in another dtype. */
                assert_int_equal(lg_dtype_of(lg_forward(lg_nn_prelu(c, 4), half)), LG_BF16);
                assert_int_equal(lg_dtype_of(lg_bernoulli(half)), LG_F16);
        }
        assert_int_equal(lg_dtype_of(lg_atan2(low, one)), LG_BF16);
        assert_ok(c);
        lg_close(c);
}

/* Rounded once: the inputs are rounded, and the result of what is exact in f32. */
TEST_CASE(values_are_those_of_casts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = values(c, LG_F32), *b = values(c, LG_F32), *in = NULL, *low = lg_cast(a, LG_BF16), *sum = NULL;
        lg_autocast(c, LG_BF16)
        {
                in = lg_matmul(a, b);
                sum = lg_exp(low);
        }
        double got[32], want[32];
        read_all(in, got, 32);
        read_all(lg_matmul(low, lg_cast(b, LG_BF16)), want, 32);
        assert_memory_equal(got, want, sizeof got);
        read_all(sum, got, 32);
        read_all(lg_exp(lg_cast(low, LG_F32)), want, 32);
        assert_memory_equal(got, want, sizeof got);
        assert_ok(c);
        lg_close(c);
}

/* ---- regions ---- */

static lg_dtype product_of(lg_tensor *x)
{
        return lg_dtype_of(lg_matmul(x, x));
}

TEST_CASE(regions_nest)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = values(c, LG_F32);
        assert_int_equal(lg_autocast_mode(c), LG_DTYPE_NONE);
        lg_autocast(c, LG_F16)
        {
                assert_int_equal(product_of(x), LG_F16);
                lg_autocast(c, LG_BF16) assert_int_equal(product_of(x), LG_BF16);
                assert_int_equal(lg_autocast_mode(c), LG_F16);
                lg_autocast(c, LG_F32)
                {
                        assert_int_equal(product_of(x), LG_F32);
                        lg_autocast(c, LG_F16) assert_int_equal(product_of(x), LG_F16);
                        assert_int_equal(product_of(x), LG_F32);
                }
                assert_int_equal(product_of(x), LG_F16);
        }
        assert_int_equal(lg_autocast_mode(c), LG_DTYPE_NONE);
        assert_int_equal(product_of(x), LG_F32);
        assert_int_equal(lg_set_autocast_mode(c, LG_BF16), LG_DTYPE_NONE);
        assert_int_equal(lg_set_autocast_mode(c, LG_F32), LG_BF16);
        assert_int_equal(lg_set_autocast_mode(c, LG_DTYPE_NONE), LG_F32);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_regions)
{
        lg_ctx *c = open_ctx();
        int runs = 0;
        assert_int_equal(lg_set_autocast_mode(c, LG_I64), LG_DTYPE_NONE);
        assert_error(c, LG_ERR_DTYPE, "lg_autocast: dtype is i64; it can be f16, bf16, or f32");
        lg_autocast(c, LG_BF16)
        {
                lg_autocast(c, LG_F64) runs++;
                assert_int_equal(lg_autocast_mode(c), LG_BF16);
        }
        assert_error(c, LG_ERR_DTYPE, "dtype is f64");
        assert_int_equal(lg_autocast_mode(c), LG_DTYPE_NONE);
        lg_set_autocast_mode(c, (lg_dtype)99);
        assert_error(c, LG_ERR_DTYPE, "unknown dtype");
        lg_autocast(NULL, LG_BF16) runs++;
        assert_int_equal(lg_autocast_mode(NULL), LG_DTYPE_NONE);
        assert_int_equal(runs, 2);
        lg_autocast(c, LG_BF16) drop(lg_matmul(lg_ones(c, LG_SHAPE(2, 3)), lg_ones(c, LG_SHAPE(2, 3))));
        assert_int_equal(lg_autocast_mode(c), LG_DTYPE_NONE); /* in spite of an error */
        assert_error(c, LG_ERR_SHAPE, "matmul");
        lg_autocast(c, LG_BF16) drop(lg_matmul(NULL, lg_ones(c, LG_SHAPE(2, 3))));
        assert_error(c, LG_ERR_ARGUMENT, "matmul: a is NULL");
        lg_close(c);
}

static bool product(lg_custom_call *k)
{
        k->out[0] = lg_matmul(k->in[0], k->in[0]);
        *(lg_dtype *)k->user = lg_dtype_of(k->out[0]);
        return true;
}

static bool product_backward(lg_custom_call *k)
{
        k->grad_in[0] = lg_matmul(k->grad_out[0], lg_cast(k->in[0], LG_F32));
        *(lg_dtype *)k->user = lg_dtype_of(lg_matmul(k->in[0], k->in[0]));
        return true;
}

static lg_tensor *note(lg_tensor *grad, void *user)
{
        *(lg_dtype *)user = product_of(grad);
        return NULL;
}

TEST_CASE(derivatives_are_not_cast)
{
        lg_ctx *c = open_ctx();
        lg_dtype forward = LG_DTYPE_NONE, hook = LG_DTYPE_NONE;
        lg_tensor *x = lg_ones(c, LG_SHAPE(4, 4), .requires_grad = true);
        lg_hook(x, note, &hook);
        lg_autocast(c, LG_BF16)
        {
                lg_tensor *y = lg_custom(c, "product", LG_LIST(x), .forward = product, .backward = product_backward,
                                         .user = &forward);
                assert_int_equal(forward, LG_BF16);
                lg_backward(lg_sum(y));
                assert_int_equal(forward, LG_F32);
                assert_int_equal(hook, LG_F32);
                assert_int_equal(lg_autocast_mode(c), LG_BF16);
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- kept casts ---- */

static void count_casts(const lg_trace_record *r, void *user)
{
        *(int *)user += !strcmp(r->op, "cast");
}

static void leave_region(const lg_trace_record *r, void *c)
{
        (void)r;
        lg_set_autocast_mode(c, LG_DTYPE_NONE);
}

/* The traced op may be using the casts that would end. */
TEST_CASE(traces_leave_regions_alone)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(4, 4), .requires_grad = true);
        lg_autocast(c, LG_BF16)
        {
                drop(lg_matmul(w, w));
                lg_set_trace(c, leave_region, .user = c);
                assert_null(lg_matmul(w, w));
                lg_set_trace(c, NULL);
                assert_error(c, LG_ERR_STATE, "lg_set_autocast_mode");
                assert_int_equal(lg_autocast_mode(c), LG_BF16);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(casts_of_leaves_are_kept)
{
        lg_ctx *c = open_ctx();
        int casts = 0;
        lg_tensor *w = lg_ones(c, LG_SHAPE(4, 4), .requires_grad = true), *x = lg_cast(values(c, LG_F32), LG_BF16);
        lg_set_trace(c, count_casts, .user = &casts);
        lg_autocast(c, LG_BF16)
        {
                const lg_scope s = lg_scope_begin(c);
                drop(lg_matmul(x, w));
                lg_scope_end(c, s);
                drop(lg_matmul(x, w)); /* of an ended scope, and still there */
                assert_int_equal(casts, 1);
                lg_autocast(c, LG_F32) drop(lg_add(w, w));
                drop(lg_matmul(x, w));
                assert_int_equal(casts, 1);
                lg_no_grad(c)
                {
                        drop(lg_matmul(x, w)); /* not recorded: another one */
                        drop(lg_matmul(x, w));
                        assert_int_equal(casts, 2);
                        lg_fill_(w, 2);
                        assert_near(lg_item(lg_select(lg_select(lg_matmul(w, w), 0, 0), 0, 0)), 16, 0);
                        assert_int_equal(casts, 3);
                }
                lg_autocast(c, LG_F16) drop(lg_matmul(w, w));
                assert_int_equal(casts, 4);
                drop(lg_matmul(lg_transpose(w, 0, 1), w)); /* a view is cast anew */
                assert_int_equal(casts, 6);
        }
        lg_autocast(c, LG_BF16) drop(lg_matmul(x, w));
        assert_int_equal(casts, 7);
        lg_set_trace(c, NULL);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(kept_casts_end)
{
        lg_ctx *c = open_ctx();
        const int64_t before = lg_live_tensors(c);
        lg_autocast(c, LG_BF16)
        {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *w = lg_ones(c, LG_SHAPE(4, 4), .requires_grad = true);
                drop(lg_matmul(w, w));
                lg_scope_end(c, s);
                assert_int_equal(lg_live_tensors(c), before); /* with its leaf */
                s = lg_scope_begin(c);
                w = lg_ones(c, LG_SHAPE(4, 4), .requires_grad = true);
                lg_no_grad(c) drop(lg_matmul(w, w));
                lg_set_requires_grad(w, false);
                assert_int_equal(lg_live_tensors(c), before + 2); /* with its node: w and the product are left */
                lg_scope_end(c, s);
                lg_module *net = lg_nn_linear(c, 4, 4);
                drop(lg_forward(net, lg_ones(c, LG_SHAPE(1, 4))));
                lg_module_free(net);
        }
        lg_tensor *w = lg_ones(c, LG_SHAPE(4, 4), .requires_grad = true);
        const int64_t now = lg_live_tensors(c);
        lg_autocast(c, LG_BF16) drop(lg_matmul(w, w));
        assert_int_equal(lg_live_tensors(c), now + 1); /* with the region: the product is left */
        lg_set_autocast_mode(c, LG_BF16);
        drop(lg_matmul(w, w));
        assert_ok(c);
        lg_close(c); /* in a region */
}

/* ---- gradients ---- */

TEST_CASE(gradients_arrive_in_f32)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_uniform(c, -1, 1, LG_SHAPE(8, 8), .requires_grad = true),
                  *x = lg_uniform(c, -1, 1, LG_SHAPE(8, 8));
        double exact[64], got[64];
        lg_backward(lg_mean(lg_square(lg_matmul(lg_matmul(x, w), w))));
        read_all(lg_grad_of(w), exact, 64);
        lg_clear_grad(w);
        lg_autocast(c, LG_BF16)
        {
                lg_backward(lg_mse(lg_matmul(lg_matmul(x, w), w), lg_zeros(c, LG_SHAPE(8, 8))));
                lg_backward(lg_mse(lg_matmul(lg_matmul(x, w), w), lg_zeros(c, LG_SHAPE(8, 8)))); /* by the same cast */
        }
        assert_ok(c);
        assert_int_equal(lg_dtype_of(lg_grad_of(w)), LG_F32);
        read_all(lg_grad_of(w), got, 64);
        double most = 0;
        for (int i = 0; i < 64; i++)
                most = fmax(most, fabs(exact[i]));
        for (int i = 0; i < 64; i++)
                assert_near(got[i] / 2, exact[i], 0.03 * most);
        lg_close(c);
}

/* d/dx of (d/dx sum (x w)^2)^2, by hand: y = x w, g = 2 y w', and d sum g^2 / dx = 2 g (2 w w')'. */
TEST_CASE(second_order)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, LG_SHAPE(1, 2), 0.5, .requires_grad = true), *w = lg_full(c, LG_SHAPE(2, 1), 2);
        lg_tensor *g = NULL;
        lg_autocast(c, LG_BF16)
        {
                g = lg_grad(LG_LIST(lg_sum(lg_square(lg_matmul(x, w)))), LG_LIST(x), .create_graph = true);
                lg_backward(lg_sum(lg_square(g)));
        }
        assert_ok(c);
        assert_list(g, 0, 8, 8);
        assert_list(lg_grad_of(x), 0, 256, 256);
        lg_close(c);
}

/* ---- a network ---- */

static lg_module *network(lg_ctx *c)
{
        lg_module *net =
                lg_nn_sequential(c, lg_nn_conv2d(c, 1, 8, 3, .padding = 1), lg_nn_batch_norm2d(c, 8), lg_nn_relu(c),
                                 lg_nn_max_pool2d(c, 2), lg_nn_residual(c, lg_nn_conv2d(c, 8, 8, 3, .padding = 1)),
                                 lg_nn_relu(c), lg_nn_avg_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 32, 16),
                                 lg_nn_layer_norm(c, LG_SHAPE(16)), lg_nn_gelu(c), lg_nn_linear(c, 16, 3));
        lg_module_to(net, lg_default_device(c));
        return net;
}

static double losses_of(lg_dtype region, int steps, double *first)
{
        lg_ctx *c = lg_open(.seed = 3);
        test_device(c);
        lg_module *net = network(c);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 0.01);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(12, 1, 8, 8)), *y = lg_randint(c, 0, 3, LG_SHAPE(12));
        double loss = 0;
        for (int i = 0; i < steps; i++) {
                const lg_scope s = lg_scope_begin(c);
                lg_tensor *scores = NULL, *t = NULL;
                lg_autocast(c, region)
                {
                        scores = lg_forward(net, x);
                        t = lg_cross_entropy(scores, y);
                }
                assert_int_equal(lg_dtype_of(scores), region);
                assert_int_equal(lg_dtype_of(t), LG_F32);
                lg_zero_grad(opt);
                lg_backward(t);
                lg_step(opt);
                loss = lg_item(t);
                if (i == 0)
                        *first = loss;
                lg_scope_end(c, s);
                assert_ok(c);
        }
        lg_list p = lg_parameters(net);
        for (int64_t i = 0; i < p.count; i++)
                assert_int_equal(lg_dtype_of(lg_grad_of(p.items[i])), LG_F32);
        lg_train(net, false);
        lg_no_grad(c) lg_autocast(c, region) assert_int_equal(lg_dtype_of(lg_forward(net, x)), region);
        assert_ok(c);
        lg_close(c);
        return loss;
}

TEST_CASE(networks_train)
{
        double first[3];
        const double f32 = losses_of(LG_F32, 10, &first[0]), bf16 = losses_of(LG_BF16, 10, &first[1]),
                     f16 = losses_of(LG_F16, 10, &first[2]);
        assert_true(f32 < 0.9 * first[0]);
        assert_near(first[1] / first[0], 1, 0.002);
        assert_near(first[2] / first[0], 1, 0.0005);
        assert_near(bf16 / f32, 1, 0.002);
        assert_near(f16 / f32, 1, 0.0005);
}

/* ---- no memory ---- */

static lg_tensor *step(lg_ctx *c, void *net)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *y = NULL;
        lg_autocast(c, LG_BF16)
        {
                y = lg_sum(lg_forward(net, lg_ones(c, LG_SHAPE(2, 1, 8, 8))));
                lg_backward(y);
        }
        lg_escape(y);
        if (s.id)
                lg_scope_end(c, s);
        return lg_error(c) ? NULL : y;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_step(step, network);
}

/* Powers do not overflow in f16, and neither do the losses that a program makes of them. */
TEST_CASE(squares_beyond_f16)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, LG_SHAPE(4), 300, .dtype = LG_F16, .requires_grad = true), *y = NULL;
        lg_autocast(c, LG_F16)
        {
                y = lg_mean(lg_square(x));
        }
        assert_near(lg_item(y), 90000, 0);
        lg_backward(y);
        assert_list(lg_grad_of(x), 0, 150, 150, 150, 150);
        assert_ok(c);
        lg_close(c);
}
