/* test_layers.c - the modules that come with libgrad: what they compute, hold, refuse. */
#include "test.h"

static lg_device other_device(lg_ctx *c)
{
        lg_device here = lg_default_device(c);
        return here.type == LG_DEVICE_CPU ? lg_parse_device(c, "shadow") : lg_cpu();
}

static void same(lg_tensor *a, lg_tensor *b, double tolerance)
{
        double v[4096];
        int64_t n = read_all(b, v, 4096);
        assert_int_equal(lg_ndim_of(a), lg_ndim_of(b));
        for (int i = 0; i < lg_ndim_of(a); i++)
                assert_int_equal(lg_size_of(a, i), lg_size_of(b, i));
        assert_values(a, v, n, tolerance);
}

TEST_CASE(convolutions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 4, 7, 9));
        lg_module *m = lg_nn_conv2d(c, 4, 6, 3, .stride = 2, .padding = 1, .groups = 2);
        lg_tensor *w = lg_parameter(m, "weight"), *b = lg_parameter(m, "bias");
        assert_shape(w, LG_SHAPE(6, 2, 3, 3));
        assert_shape(b, LG_SHAPE(6));
        same(lg_forward(m, x), lg_conv2d(x, w, b, .stride = 2, .padding = 1, .groups = 2), 0);
        m = lg_nn_conv2d(c, 4, 3, 0, .kernels = LG_PAIR(3, 5), .paddings = LG_PAIR(0, 2), .no_bias = true);
        assert_int_equal(lg_parameters(m).count, 1);
        assert_shape(lg_forward(m, x), LG_SHAPE(2, 3, 5, 9));
        m = lg_nn_conv_transpose2d(c, 4, 3, 2, .stride = 2, .output_padding = 1);
        assert_shape(lg_parameter(m, "weight"), LG_SHAPE(4, 3, 2, 2));
        same(lg_forward(m, x),
             lg_conv_transpose2d(x, lg_parameter(m, "weight"), lg_parameter(m, "bias"), .stride = 2,
                                 .output_padding = 1),
             0);
        m = lg_nn_conv1d(c, 4, 3, 3, .dilation = 2);
        lg_tensor *signal = lg_normal(c, 0, 1, LG_SHAPE(2, 4, 10));
        assert_shape(lg_parameter(m, "weight"), LG_SHAPE(3, 4, 3));
        assert_shape(lg_forward(m, signal), LG_SHAPE(2, 3, 6));
        assert_ok(c);
        lg_close(c);
}

/* Uniform in +-1/sqrt(fan_in), the weight before the bias. */
TEST_CASE(first_values)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 5);
        lg_module *m = lg_nn_conv2d(c, 4, 8, 3);
        lg_seed(c, 5);
        same(lg_parameter(m, "weight"), lg_uniform(c, -1.0 / 6, 1.0 / 6, LG_SHAPE(8, 4, 3, 3)), 1e-7);
        same(lg_parameter(m, "bias"), lg_uniform(c, -1.0 / 6, 1.0 / 6, LG_SHAPE(8)), 1e-7);
        m = lg_nn_embedding(c, 500, 20);
        assert_near(lg_item(lg_mean(lg_parameter(m, "weight"))), 0, 0.05);
        assert_near(lg_item(lg_var(lg_parameter(m, "weight"))), 1, 0.08);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(batch_norm)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_batch_norm2d(c, 3, .dtype = LG_F64);
        lg_tensor *x = lg_normal(c, 2, 3, LG_SHAPE(4, 3, 5, 5), .dtype = LG_F64);
        lg_tensor *y = lg_forward(m, x);
        for (int k = 0; k < 3; k++) {
                assert_near(lg_item(lg_mean(lg_select(y, 1, k))), 0, 1e-10);
                assert_near(lg_item(lg_var(lg_select(y, 1, k), .correction = LG_ZERO)), 1, 1e-5);
        }
        lg_tensor *mean = lg_mean(x, .dims = LG_DIMS(0, 2, 3)), *var = lg_var(x, .dims = LG_DIMS(0, 2, 3));
        same(lg_buffer(m, "running_mean"), lg_mul_scalar(mean, 0.1), 1e-12);
        same(lg_buffer(m, "running_var"), lg_add_scalar(lg_mul_scalar(var, 0.1), 0.9), 1e-12);
        lg_train(m, false);
        lg_tensor *fixed = lg_forward(m, x), *again = lg_forward(m, x);
        same(fixed, again, 0);
        assert_true(fabs(lg_item(lg_mean(fixed))) > 0.5); /* not the batch's own mean */
        drop(lg_forward(m, lg_ones(c, LG_SHAPE(4, 3), .dtype = LG_F64)));
        assert_error(c, LG_ERR_SHAPE, "(N, C, H, W)");
        m = lg_nn_batch_norm1d(c, 3, .no_affine = true, .no_running = true);
        assert_int_equal(lg_parameters(m).count, 0);
        lg_train(m, false);
        y = lg_forward(m, lg_normal(c, 5, 1, LG_SHAPE(50, 3)));
        assert_near(lg_item(lg_mean(y)), 0, 1e-5);
        assert_shape(lg_forward(lg_nn_batch_norm1d(c, 3), lg_ones(c, LG_SHAPE(2, 3, 4))), LG_SHAPE(2, 3, 4));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(buffers_move_with_the_module)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 3, 3), lg_nn_batch_norm2d(c, 3));
        lg_tensor *mean = lg_buffer(m, "1.running_mean");
        drop(lg_forward(m, lg_normal(c, 1, 1, LG_SHAPE(4, 1, 6, 6))));
        double before[3], after[3];
        read_all(mean, before, 3);
        lg_device there = other_device(c);
        assert_true(lg_module_to(m, there));
        assert_true(lg_device_equal(lg_device_of(mean), there));
        read_all(mean, after, 3);
        assert_memory_equal(before, after, sizeof before);
        assert_non_null(lg_forward(m, lg_normal(c, 1, 1, LG_SHAPE(4, 1, 6, 6), .device = there)));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(norms_within_a_sample)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 3, 2, LG_SHAPE(2, 6, 4));
        lg_module *m = lg_nn_layer_norm(c, LG_SHAPE(6, 4));
        assert_int_equal(lg_parameters(m).count, 2);
        assert_near(lg_item(lg_mean(lg_select(lg_forward(m, x), 0, 1))), 0, 1e-5);
        assert_int_equal(lg_parameters(lg_nn_layer_norm(c, LG_SHAPE(4), .no_bias = true)).count, 1);
        drop(lg_forward(m, lg_ones(c, LG_SHAPE(6, 5))));
        assert_error(c, LG_ERR_SHAPE, "LayerNorm");
        m = lg_nn_rms_norm(c, LG_SHAPE(4));
        assert_int_equal(lg_parameters(m).count, 1);
        assert_near(lg_item(lg_mean(lg_square(lg_forward(m, x)))), 1, 1e-4);
        m = lg_nn_group_norm(c, 3, 6);
        assert_near(lg_item(lg_mean(lg_slice(lg_forward(m, x), 1, 2, 4))), 0, 1e-5);
        assert_null(lg_nn_group_norm(c, 4, 6));
        assert_error(c, LG_ERR_ARGUMENT, "4 groups");
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(dropout_and_embedding)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_dropout(c, 0.25);
        lg_tensor *x = lg_ones(c, LG_SHAPE(100, 100)), *y = lg_forward(m, x);
        assert_near(lg_item(lg_mean(y)), 1, 0.03);
        assert_near(lg_item(lg_amax(y)), 4.0 / 3, 1e-6);
        lg_train(m, false);
        assert_near(lg_item(lg_amin(lg_forward(m, x))), 1, 0);
        assert_null(lg_nn_dropout(c, 1.5));
        assert_error(c, LG_ERR_ARGUMENT, "1.5");
        m = lg_nn_dropout2d(c, 0.25);
        y = lg_mean(lg_forward(m, lg_ones(c, LG_SHAPE(20, 30, 4))), .dims = LG_DIMS(2)); /* channels as a whole */
        assert_near(lg_item(lg_amin(y)), 0, 0);
        assert_near(lg_item(lg_mean(lg_square(y))), 4.0 / 3, 0.15);
        assert_near(lg_item(lg_amax(lg_mul(y, lg_sub_scalar(y, 4.0 / 3)))), 0, 1e-6);
        lg_train(m, false);
        assert_near(lg_item(lg_amin(lg_forward(m, x))), 1, 0);
        assert_null(lg_nn_dropout2d(c, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_dropout2d: p is -1");
        m = lg_nn_embedding(c, 5, 3, .padding_idx = LG_ZERO_INT, .dtype = LG_F64);
        lg_tensor *i = lg_from(c, ((int64_t[]){0, 4, 4, 2}), LG_SHAPE(2, 2), .dtype = LG_I64);
        lg_tensor *e = lg_forward(m, i), *w = lg_parameter(m, "weight");
        assert_shape(e, LG_SHAPE(2, 2, 3));
        assert_list(lg_select(lg_select(e, 0, 0), 0, 0), 0, 0, 0, 0);
        lg_backward(lg_sum(e));
        assert_list(lg_select(lg_grad_of(w), 1, 0), 0, 0, 0, 1, 0, 2);
        m = lg_nn_embedding(c, 5, 3, .padding_idx = -1, .dtype = LG_F64);
        e = lg_forward(m, i), w = lg_parameter(m, "weight");
        assert_list(lg_select(lg_select(e, 0, 0), 0, 1), 0, 0, 0, 0);
        lg_backward(lg_sum(e));
        assert_list(lg_select(lg_grad_of(w), 1, 0), 0, 1, 0, 1, 0, 0);
        assert_null(lg_nn_embedding(c, 5, 3, .padding_idx = -6));
        assert_error(c, LG_ERR_ARGUMENT, "padding_idx -6");
        assert_null(lg_nn_embedding(c, 5, 3, .padding_idx = 5));
        assert_error(c, LG_ERR_ARGUMENT, "padding_idx 5");
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(embedding_bags)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_embedding_bag(c, 5, 3, .mode = LG_BAG_SUM, .padding_idx = 2, .dtype = LG_F64);
        lg_tensor *i = lg_from(c, ((int64_t[]){0, 4, 4, 2}), LG_SHAPE(4)), *w = lg_parameter(m, "weight");
        lg_tensor *offsets = lg_from(c, ((int64_t[]){0, 1}), LG_SHAPE(2)), *factors = lg_full(c, LG_SHAPE(4), 3);
        double rows[15], first[3], second[3];
        read_all(w, rows, 15);
        for (int k = 0; k < 3; k++) {
                first[k] = rows[k] + rows[12 + k];
                second[k] = rows[12 + k] * 6;
                assert_near(rows[6 + k], 0, 0);
        }
        lg_tensor *pairs = lg_reshape(i, LG_SHAPE(2, 2));
        assert_values(lg_select(lg_forward(m, pairs), 0, 0), first, 3, 1e-12);
        assert_values(lg_select(lg_forward(m, i, offsets, factors), 0, 1), second, 3, 1e-12);
        for (int k = 0; k < 3; k++)
                first[k] *= 3;
        assert_values(lg_select(lg_forward(m, pairs, lg_reshape(factors, LG_SHAPE(2, 2))), 0, 0), first, 3, 1e-12);
        m = lg_nn_embedding_bag(c, 5, 3, .include_last_offset = true);
        assert_shape(lg_forward(m, i, lg_from(c, ((int64_t[]){0, 1, 4}), LG_SHAPE(3))), LG_SHAPE(2, 3));
        assert_ok(c);
        assert_fails(c, lg_forward(m, i, i, i, i), LG_ERR_ARGUMENT, "4 inputs were given");
        assert_fails(c, lg_nn_embedding_bag(c, 5, 3, .mode = (lg_bag_mode)9), LG_ERR_ARGUMENT, "no mode 9");
        assert_fails(c, lg_nn_embedding_bag(c, 5, 3, .padding_idx = 5), LG_ERR_ARGUMENT, "padding_idx 5");
        lg_close(c);
}

TEST_CASE(activations)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_uniform(c, -4, 4, LG_SHAPE(3, 4), .dtype = LG_F64);
        const struct {
                lg_module *m;
                lg_tensor *y;
        } cases[] = {
                {lg_nn_relu(c), lg_relu(x)},
                {lg_nn_relu6(c), lg_relu6(x)},
                {lg_nn_selu(c), lg_selu(x)},
                {lg_nn_gelu(c), lg_gelu(x)},
                {lg_nn_gelu_tanh(c), lg_gelu_tanh(x)},
                {lg_nn_silu(c), lg_silu(x)},
                {lg_nn_mish(c), lg_mish(x)},
                {lg_nn_sigmoid(c), lg_sigmoid(x)},
                {lg_nn_log_sigmoid(c), lg_log_sigmoid(x)},
                {lg_nn_tanh(c), lg_tanh(x)},
                {lg_nn_tanhshrink(c), lg_tanhshrink(x)},
                {lg_nn_softsign(c), lg_softsign(x)},
                {lg_nn_hardsigmoid(c), lg_hardsigmoid(x)},
                {lg_nn_hardswish(c), lg_hardswish(x)},
                {lg_nn_leaky_relu(c, 0.2), lg_leaky_relu(x, 0.2)},
                {lg_nn_elu(c, 1.5), lg_elu(x, 1.5)},
                {lg_nn_celu(c, 1.5), lg_celu(x, 1.5)},
                {lg_nn_hardshrink(c, 0.5), lg_hardshrink(x, 0.5)},
                {lg_nn_softshrink(c, 0.5), lg_softshrink(x, 0.5)},
                {lg_nn_hardtanh(c, -1, 2), lg_hardtanh(x, -1, 2)},
                {lg_nn_softplus(c, 2, 20), lg_softplus(x, 2, 20)},
                {lg_nn_softmax(c, -1), lg_softmax(x, -1)},
                {lg_nn_log_softmax(c, 0), lg_log_softmax(x, 0)},
                {lg_nn_glu(c, -1), lg_glu(x, -1)},
                {lg_nn_identity(c), x},
                {lg_nn_flatten(c), x},
        };
        assert_ok(c);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                same(lg_forward(cases[i].m, x), cases[i].y, 0);
        lg_module *prelu = lg_nn_prelu(c, 4);
        lg_tensor *f = lg_cast(x, LG_F32);
        same(lg_forward(prelu, f), lg_leaky_relu(f, 0.25), 1e-7);
        lg_backward(lg_sum(lg_forward(prelu, f)));
        same(lg_grad_of(lg_parameter(prelu, "weight")), lg_sum(lg_minimum_scalar(f, 0), .dims = LG_DIMS(0)), 1e-6);
        drop(lg_forward(prelu, lg_ones(c, LG_SHAPE(3, 5))));
        assert_error(c, LG_ERR_SHAPE, "4 channels");
        assert_non_null(lg_forward(lg_nn_prelu(c, 1), lg_scalar(c, -1)));
        assert_ok(c);
        lg_close(c);
}

/* A copy keeps the dimension; 16-bit halves are multiplied in f32. */
TEST_CASE(glu)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_glu(c, 1), *copy = lg_module_clone(m);
        lg_tensor *x = lg_uniform(c, -4, 4, LG_SHAPE(3, 4, 2)), *h = lg_cast(x, LG_BF16);
        assert_string_equal(lg_module_type(copy), "GLU");
        assert_shape(lg_forward(copy, x), LG_SHAPE(3, 2, 2));
        same(lg_forward(copy, x), lg_forward(m, x), 0);
        same(lg_forward(m, h), lg_cast(lg_forward(m, lg_cast(h, LG_F32)), LG_BF16), 0);
        assert_shape(lg_forward(m, lg_ones(c, LG_SHAPE(3, 0))), LG_SHAPE(3, 0));
        assert_ok(c);
        drop(lg_forward(m, lg_ones(c, LG_SHAPE(4, 3))));
        assert_error(c, LG_ERR_SHAPE, "dimension 1 has size 3, which must be even");
        drop(lg_forward(lg_nn_glu(c, 0), lg_scalar(c, 1)));
        assert_error(c, LG_ERR_SHAPE, "dimension 0 has size 1");
        drop(lg_forward(m, lg_ones(c, LG_SHAPE(4))));
        assert_error(c, LG_ERR_ARGUMENT, "glu");
        drop(lg_glu(lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64), 0));
        assert_error(c, LG_ERR_DTYPE, "glu");
        lg_close(c);
}

/* Its weight has the dtype that is asked for, and only x below 0 has a part in the weight's gradient. */
TEST_CASE(prelu)
{
        static const lg_dtype dtypes[] = {LG_F16, LG_BF16, LG_F64};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 3; i++) {
                lg_module *m = lg_nn_prelu(c, 3, .dtype = dtypes[i]);
                lg_tensor *w = lg_parameter(m, "weight"), *y;
                assert_ok(c);
                assert_int_equal(lg_dtype_of(w), dtypes[i]);
                lg_tensor *x =
                        lg_cast(lg_from(c, ((double[]){-2, INFINITY, 0, 4, -8, 1}), LG_SHAPE(2, 3), .dtype = LG_F64),
                                dtypes[i]);
                lg_set_requires_grad(x, true);
                assert_int_equal(lg_dtype_of(y = lg_forward(m, x)), dtypes[i]);
                assert_list(y, 0, -0.5, INFINITY, 0, 4, -2, 1);
                lg_backward(lg_sum(y));
                assert_list(lg_grad_of(w), 0, -2, -8, 0);
                assert_list(lg_grad_of(x), 0, 0.25, 1, 0.25, 1, 0.25, 1);
                assert_ok(c);
        }
        assert_int_equal(lg_dtype_of(lg_parameter(lg_nn_prelu(c, 1), "weight")), LG_F32);
        assert_null(lg_nn_prelu(c, 1, .dtype = LG_I32));
        assert_error(c, LG_ERR_DTYPE, "lg_nn_prelu: dtype i32");
        lg_close(c);
}

TEST_CASE(pooling)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 8, 8));
        same(lg_forward(lg_nn_max_pool2d(c, 2), x), lg_max_pool2d(x, 2), 0);
        same(lg_forward(lg_nn_max_pool2d(c, 3, .stride = 2, .padding = 1), x),
             lg_max_pool2d(x, 3, .stride = 2, .padding = 1), 0);
        same(lg_forward(lg_nn_avg_pool2d(c, 4), x), lg_avg_pool2d(x, 4), 0);
        same(lg_forward(lg_nn_adaptive_avg_pool2d(c, 3), x), lg_adaptive_avg_pool2d(x, 3), 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(containers)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3));
        lg_module *twice = lg_nn_residual(c, lg_nn_identity(c));
        same(lg_forward(twice, x), lg_mul_scalar(x, 2), 0);
        lg_module *r = lg_nn_residual(c, lg_nn_linear(c, 3, 4), .shortcut = lg_nn_linear(c, 3, 4));
        same(lg_forward(r, x),
             lg_add(lg_forward(lg_child_named(r, "block"), x), lg_forward(lg_child_named(r, "shortcut"), x)), 0);
        drop(lg_forward(lg_nn_residual(c, lg_nn_linear(c, 3, 4)), x));
        assert_error(c, LG_ERR_SHAPE, "Residual");
        assert_null(lg_nn_residual(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        lg_module *list = lg_nn_module_list(c, lg_nn_relu(c));
        assert_non_null(lg_module_append(list, lg_nn_linear(c, 3, 3)));
        assert_int_equal(lg_child_count(list), 2);
        assert_int_equal(lg_parameters(list).count, 2);
        assert_non_null(lg_forward(lg_child(list, 1), x));
        drop(lg_forward(list, x));
        assert_error(c, LG_ERR_STATE, "ModuleList");
        lg_module *net = lg_nn_sequential(c);
        same(lg_forward(net, x), x, 0);
        lg_module_append(net, lg_nn_linear(c, 3, 2));
        assert_shape(lg_forward(net, x), LG_SHAPE(2, 2));
        assert_null(lg_module_append(lg_nn_relu(c), lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_module_add");
        lg_close(c);
}

TEST_CASE(dictionaries_and_lists_of_parameters)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3));
        lg_module *net = lg_nn_module(c, "Net"), *dict = lg_module_add(net, "heads", lg_nn_module_dict(c));
        assert_non_null(lg_module_add(dict, "linear", lg_nn_linear(c, 3, 4)));
        assert_non_null(lg_module_add(dict, "act", lg_nn_relu(c)));
        assert_shape(lg_forward(lg_child_named(dict, "linear"), x), LG_SHAPE(2, 4));
        assert_null(lg_module_add(dict, "act", lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "this ModuleDict has \"act\" already");
        drop(lg_forward(dict, x));
        assert_error(c, LG_ERR_STATE, "a ModuleDict has no forward of its own");
        assert_null(lg_module_append(dict, lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "a ModuleDict has no numbered children");
        lg_module *list = lg_module_add(net, "list", lg_nn_parameter_list(c, lg_ones(c, LG_SHAPE(2)), lg_scalar(c, 3)));
        lg_tensor *third = lg_module_append_parameter(list, lg_zeros(c, LG_SHAPE(0)));
        assert_ptr_equal(lg_parameter(net, "list.2"), third);
        assert_true(lg_requires_grad(lg_parameter(net, "list.0")));
        assert_near(lg_item(lg_parameter(net, "list.1")), 3, 0);
        drop(lg_forward(list, x));
        assert_error(c, LG_ERR_STATE, "a ParameterList has no forward of its own");
        assert_null(lg_module_append_parameter(dict, lg_scalar(c, 1)));
        assert_error(c, LG_ERR_ARGUMENT, "a ModuleDict has no numbered parameters; lg_module_add_parameter()");
        assert_null(lg_nn_parameter_list(c, lg_scalar(c, 1), lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "parameters are floats");
        assert_int_equal(lg_parameters(lg_nn_parameter_list(c)).count, 0);
        lg_module *named = lg_module_add(net, "named", lg_nn_parameter_dict(c));
        assert_non_null(lg_module_add_parameter(named, "scale", lg_scalar(c, 1)));
        drop(lg_forward(named, x));
        assert_error(c, LG_ERR_STATE, "a ParameterDict has no forward of its own");
        lg_module *copy = lg_module_clone(net);
        const char *const paths[] = {"heads.linear.weight", "heads.linear.bias", "list.0", "list.1", "list.2",
                                     "named.scale"};
        assert_int_equal(lg_parameters(copy).count, 6);
        for (int i = 0; i < 6; i++)
                assert_ptr_equal(lg_parameters(copy).items[i], lg_parameter(copy, paths[i]));
        assert_non_null(lg_module_append_parameter(lg_child_named(copy, "list"), lg_scalar(c, 1)));
        assert_non_null(lg_parameter(copy, "list.3"));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(bilinear_and_unflatten)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 3)), *y = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 4));
        lg_module *m = lg_nn_bilinear(c, 3, 4, 6);
        lg_tensor *w = lg_parameter(m, "weight"), *b = lg_parameter(m, "bias");
        assert_shape(w, LG_SHAPE(6, 3, 4));
        assert_shape(b, LG_SHAPE(6));
        assert_true(lg_item(lg_amax(lg_abs(w))) <= 1 / sqrt(3) && lg_item(lg_amax(lg_abs(w))) > 0.4);
        same(lg_forward(m, x, y), lg_bilinear(x, y, w, b), 0);
        m = lg_nn_bilinear(c, 3, 4, 6, .no_bias = true, .dtype = LG_F64);
        assert_int_equal(lg_parameters(m).count, 1);
        assert_int_equal(lg_dtype_of(lg_parameter(m, "weight")), LG_F64);
        assert_shape(lg_forward(m, x, y), LG_SHAPE(2, 5, 6));
        assert_ok(c);
        drop(lg_forward(m, x));
        assert_error(c, LG_ERR_ARGUMENT, "Bilinear takes x1 and x2, not 1 inputs");
        drop(lg_forward(m, y, x));
        assert_error(c, LG_ERR_SHAPE, "bilinear: x1 is");
        assert_null(lg_nn_bilinear(c, 0, 4, 6));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_bilinear: 0 and 4 to 6 features");
        m = lg_nn_unflatten(c, -1, LG_SHAPE(2, -1));
        assert_shape(lg_forward(m, y), LG_SHAPE(2, 5, 2, 2));
        drop(lg_forward(m, x));
        assert_error(c, LG_ERR_SHAPE, "unflatten");
        drop(lg_forward(m, x, y));
        assert_error(c, LG_ERR_ARGUMENT, "input");
        m = lg_nn_alpha_dropout(c, 0.5);
        assert_near(lg_item(lg_amax(lg_forward(m, lg_zeros(c, LG_SHAPE(100))))), 0.7791939, 1e-6);
        lg_train(m, false);
        same(lg_forward(m, x), x, 0);
        m = lg_nn_feature_alpha_dropout(c, 0.5);
        assert_near(lg_item(lg_amin(lg_forward(m, lg_zeros(c, LG_SHAPE(100, 2))))), -0.7791939, 1e-6);
        assert_null(lg_nn_feature_alpha_dropout(c, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_feature_alpha_dropout: p is -1");
        lg_close(c);
}

/* A Linear that a ReLU follows is one op: the values and gradients are those of both to the last bit, NaN too. */
TEST_CASE(linear_and_relu)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 8; i++) {
                lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 19, 33, .dtype = dtypes[i % 4], .no_bias = i & 4),
                                                  lg_nn_relu(c));
                lg_list w = lg_parameters(net);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 19), .dtype = dtypes[i % 4], .requires_grad = true);
                if (i & 1)
                        lg_fill_(lg_select(lg_select(lg_detach(x), 0, 1), 0, 2), NAN);
                lg_tensor *y = lg_forward(net, x);
                lg_tensor *both = lg_forward(lg_child(net, 1), lg_forward(lg_child(net, 0), x));
                assert_ok(c);
                same(y, both, 0);
                lg_tensor *g = lg_normal(c, 0, 1, lg_shape_of(y), .dtype = dtypes[i % 4]);
                lg_tensor *all[] = {x, w.items[0], i & 4 ? x : w.items[1]}, *a[3], *b[3];
                lg_grad(LG_LIST(y), LG_LIST_OF(3, all), .grads = LG_LIST(g), .result = a, .retain_graph = true);
                lg_grad(LG_LIST(both), LG_LIST_OF(3, all), .grads = LG_LIST(g), .result = b);
                assert_ok(c);
                for (int k = 0; k < 3; k++)
                        same(a[k], b[k], k == 2 ? other_order(c, dtypes[i % 4]) : 0);
                lg_fill_(lg_detach(y), 1); /* which tells what saved it */
                lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g), .result = a);
                assert_error(c, LG_ERR_STATE, "linear_relu saved its output");
        }
        lg_close(c);
}

/* Weights of modules may lie in another order than those that a function is given; on a GPU, by each way to convolve.
 */
TEST_CASE(weights_lie_as_their_device_wants)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        static const struct {
                int64_t in, out, kernel, groups, stride;
        } shapes[] = {{5, 6, 3, 1, 1}, {4, 6, 3, 2, 1}, {4, 8, 3, 4, 1}, {2, 3, 5, 1, 2}};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 16; i++) {
                const lg_dtype dtype = dtypes[i % 4];
                const double limit = dtype == LG_F64 ? 1e-12 : dtype == LG_F32 ? 1e-5 : dtype == LG_F16 ? 4e-3 : 3e-2;
                const int64_t groups = shapes[i / 4].groups, stride = shapes[i / 4].stride;
                lg_module *m = lg_nn_conv2d(c, shapes[i / 4].in, shapes[i / 4].out, shapes[i / 4].kernel,
                                            .groups = groups, .stride = stride, .dtype = dtype);
                lg_tensor *w = lg_parameter(m, "weight"), *b = lg_parameter(m, "bias"), *a[3], *other[3];
                lg_tensor *rows = lg_set_requires_grad(lg_copy(lg_copy(lg_detach(w), lg_cpu()), lg_device_of(w)), true);
                lg_tensor *x =
                        lg_normal(c, 0, 1, LG_SHAPE(3, shapes[i / 4].in, 6, 7), .dtype = dtype, .requires_grad = true);
                lg_tensor *y = lg_forward(m, x), *z = lg_conv2d(x, rows, b, .groups = groups, .stride = stride);
                lg_tensor *g = lg_normal(c, 0, 1, lg_shape_of(y), .dtype = dtype);
                lg_grad(LG_LIST(y), LG_LIST(x, w), .grads = LG_LIST(g), .result = a);
                lg_grad(LG_LIST(z), LG_LIST(x, rows), .grads = LG_LIST(g), .result = other);
                assert_ok(c);
                same(y, z, limit);
                same(a[0], other[0], limit);
                same(a[1], other[1], limit);
        }
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_random_state before = lg_random_state_of(c);
        assert_null(lg_nn_conv2d(c, 3, 4, 3, .groups = 2));
        assert_error(c, LG_ERR_ARGUMENT, "2 groups");
        assert_null(lg_nn_conv2d(c, 3, 4, 0));
        assert_error(c, LG_ERR_ARGUMENT, "kernel of 0 x 0");
        assert_null(lg_nn_conv2d(c, 3, 4, INT64_MAX));
        assert_error(c, LG_ERR_SHAPE, "too many elements");
        assert_null(lg_nn_conv2d(c, 3, 4, 3, .padding = -1));
        assert_error(c, LG_ERR_ARGUMENT, "padding of -1 x -1");
        assert_null(lg_nn_conv2d(c, 3, 4, 3, .dtype = LG_I64));
        assert_error(c, LG_ERR_DTYPE, "i64");
        assert_null(lg_nn_batch_norm2d(c, 0));
        assert_error(c, LG_ERR_ARGUMENT, "0 channels");
        assert_null(lg_nn_prelu(c, 0));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_prelu");
        assert_null(lg_nn_layer_norm(c, LG_SHAPE_0D));
        assert_error(c, LG_ERR_ARGUMENT, "no dimensions");
        assert_int_equal(before.counter, lg_random_state_of(c).counter);
        drop(lg_forward(lg_nn_sequential(c, lg_nn_conv2d(c, 3, 4, 3)), lg_ones(c, LG_SHAPE(1, 2, 8, 8))));
        assert_error(c, LG_ERR_SHAPE, "in module \"0\", Conv2d");
        lg_close(c);
}
