/* test_nn.c - modules: structure, forward, moving, printing, failures. */
#include "test.h"

static lg_module *mlp(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 6, 4), lg_nn_relu(c),
                                lg_nn_linear(c, 4, 3, .no_bias = true));
}

TEST_CASE(linear_is_x_wt_plus_b)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_linear(c, 2, 3, .dtype = LG_F64);
        lg_no_grad(c)
        {
                lg_write(lg_parameter(m, "weight"), (double[]){1, 2, 3, 4, 5, 6}, LG_F64, 48);
                lg_write(lg_parameter(m, "bias"), (double[]){10, 20, 30}, LG_F64, 24);
        }
        lg_tensor *x = lg_from(c, ((double[]){1, -1}), LG_SHAPE(1, 2), .dtype = LG_F64);
        assert_list(lg_forward(m, x), 1e-14, 9, 19, 29);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(weights_are_uniform_and_drawn_before_the_bias)
{
        lg_ctx *c = open_ctx();
        double w[400 * 25], b[400], bound = 0.2, sum = 0, most = 0;
        lg_seed(c, 7);
        lg_module *m = lg_nn_linear(c, 25, 400);
        read_all(lg_parameter(m, "weight"), w, 10000);
        read_all(lg_parameter(m, "bias"), b, 400);
        lg_seed(c, 7);
        assert_values(lg_uniform(c, -bound, bound, LG_SHAPE(400, 25)), w, 10000, 0);
        assert_values(lg_uniform(c, -bound, bound, LG_SHAPE(400)), b, 400, 0);
        for (int i = 0; i < 10000; i++) {
                sum += w[i];
                most = fmax(most, fabs(w[i]));
        }
        assert_true(most <= bound && most > 0.19);
        assert_near(sum / 10000, 0, 0.006); /* five deviations */
        lg_close(c);
}

TEST_CASE(parts_are_found_by_path)
{
        lg_ctx *c = open_ctx();
        lg_module *net = mlp(c);
        lg_list p = lg_parameters(net);
        assert_int_equal(lg_child_count(net), 4);
        assert_int_equal(p.count, 3);
        assert_ptr_equal(p.items[0], lg_parameter(net, "1.weight"));
        assert_ptr_equal(p.items[1], lg_parameter(net, "1.bias"));
        assert_ptr_equal(p.items[2], lg_parameter(net, "3.weight"));
        assert_ptr_equal(lg_child(net, 1), lg_child_named(net, "1"));
        assert_string_equal(lg_module_type(lg_child(net, 2)), "ReLU");
        assert_int_equal(lg_parameter_numel(net), 6 * 4 + 4 + 12);
        assert_ptr_equal(lg_parameters(net).items, p.items);
        assert_ok(c);
        assert_null(lg_parameter(net, "3.bias"));
        assert_error(c, LG_ERR_ARGUMENT, "no parameter \"3.bias\": \"3\" is a Linear; it has weight");
        assert_null(lg_parameter(net, "7.bias"));
        assert_error(c, LG_ERR_ARGUMENT, "7.bias");
        assert_null(lg_child(net, 4));
        assert_error(c, LG_ERR_ARGUMENT, "it has 4");
        assert_null(lg_buffer(net, "1.weight"));
        assert_error(c, LG_ERR_ARGUMENT, "no buffer");
        lg_clear_error(c);
        lg_parameter(net, "1.wieght");
        assert_error(c, LG_ERR_ARGUMENT, "\"1.wieght\": \"1\" is a Linear; it has weight, bias");
        lg_child_named(net, "9");
        assert_error(c, LG_ERR_ARGUMENT, "in this Sequential; it has 0, 1, 2, 3");
        /* names that are near, of the kind that was asked for; they are 2, 3 and 5 edits away */
        assert_null(lg_parameter(net, "l1.wight"));
        assert_error(c, LG_ERR_ARGUMENT,
                     "\"l1.wight\" in this Sequential; the nearest are \"1.weight\", \"3.weight\" and \"1.bias\"");
        assert_null(lg_parameter(net, "bias"));
        assert_error(c, LG_ERR_ARGUMENT, "the nearest are \"1.bias\", \"");
        assert_null(lg_buffer(net, "running_mean"));
        assert_error(c, LG_ERR_ARGUMENT, "\"running_mean\" in this Sequential");
        lg_module *outer = lg_nn_sequential(c, net);
        assert_null(lg_child_named(outer, "net.3"));
        assert_error(c, LG_ERR_ARGUMENT, "the nearest are \"0.3\", \"0.");
        assert_true(lg_has_child(outer, "0") && lg_has_child(outer, "0.3"));
        assert_false(lg_has_child(outer, "3") || lg_has_child(outer, "0.3.weight") || lg_has_child(outer, "") ||
                     lg_has_child(outer, NULL) || lg_has_child(NULL, "0"));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *replace_in_forward(lg_module *m, lg_list in, void *user)
{
        (void)user;
        assert_null(lg_module_replace(m, "inner", lg_nn_identity(lg_module_ctx(m))));
        return lg_forward(lg_child_named(m, "inner"), in.items[0]);
}

TEST_CASE(a_child_is_replaced)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, mlp(c), lg_nn_relu(c));
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        lg_module *fc = lg_nn_linear(c, 4, 7);
        assert_ptr_equal(lg_module_replace(net, "0.3", fc), fc);
        assert_ptr_equal(lg_child(lg_child(net, 0), 3), fc); /* at its place */
        assert_ptr_equal(lg_parameter(net, "0.3.bias"), lg_parameter(fc, "bias"));
        assert_int_equal(lg_parameters(net).count, 4);
        assert_shape(lg_forward(net, lg_ones(c, LG_SHAPE(2, 6))), LG_SHAPE(2, 7));
        assert_ok(c);
        assert_false(lg_step(opt)); /* one of its parameters is freed */
        assert_non_null(lg_error(c));
        lg_clear_error(c);
        assert_null(lg_module_replace(net, "0.9", lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_module_replace: there is no module \"0.9\"");
        assert_null(lg_module_replace(net, "0", NULL));
        assert_error(c, LG_ERR_ARGUMENT, "the child \"0\" is NULL");
        assert_null(lg_module_replace(net, "1", fc));
        assert_error(c, LG_ERR_ARGUMENT, "belongs to a Sequential already");
        assert_null(lg_module_replace(net, "0", net));
        assert_error(c, LG_ERR_ARGUMENT, "would be inside itself");
        lg_module *own = lg_nn_module(c, "Own", .forward = replace_in_forward);
        lg_module_add(own, "inner", lg_nn_linear(c, 2, 2));
        drop(lg_forward(own, lg_ones(c, LG_SHAPE(1, 2))));
        assert_error(c, LG_ERR_STATE, "is running");
        /* The deepest tree; with a level less, there is room for one again. */
        lg_module *deep = lg_nn_identity(c), *second = NULL;
        for (int i = 1; i < LG_MAX_MODULE_DEPTH; i++) {
                second = i == 2 ? deep : second;
                deep = lg_nn_sequential(c, deep);
        }
        assert_ok(c);
        assert_null(lg_module_replace(second, "0", lg_nn_sequential(c, lg_nn_identity(c))));
        assert_error(c, LG_ERR_ARGUMENT, "nest more than");
        lg_module *shallow = lg_nn_relu(c);
        assert_ptr_equal(lg_module_replace(deep, "0", shallow), shallow);
        assert_non_null(lg_nn_sequential(c, deep));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *two_inputs(lg_module *m, lg_list in, void *user)
{
        (*(int *)user)++;
        lg_tensor *h = lg_forward(lg_child_named(m, "inner"), lg_add(in.items[0], in.items[1]));
        return lg_add(lg_mul(h, lg_parameter(m, "gain")), lg_buffer(m, "shift"));
}

static void count_release(void *user)
{
        (*(int *)user) += 100;
}

static void collect(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)t;
        strcat(strcat(user, path), is_buffer ? "* " : " ");
}

TEST_CASE(own_modules_have_parts)
{
        lg_ctx *c = open_ctx();
        int calls = 0;
        char names[200] = "";
        lg_module *m = lg_nn_module(c, "Block", .forward = two_inputs, .user = &calls, .release = count_release);
        lg_module_add_parameter(m, "gain", lg_full(c, LG_SHAPE_0D, 2));
        lg_module_add(m, "inner", lg_nn_linear(c, 3, 3));
        lg_module_add_buffer(m, "shift", lg_full(c, LG_SHAPE(3), 1));
        lg_module *net = lg_nn_sequential(c, m);
        lg_each_tensor(net, collect, names);
        assert_string_equal(names, "0.gain 0.inner.weight 0.inner.bias 0.shift* ");
        assert_true(lg_requires_grad(lg_parameter(net, "0.gain")));
        lg_no_grad(c)
        {
                lg_fill_(lg_parameter(m, "inner.weight"), 1);
                lg_fill_(lg_parameter(m, "inner.bias"), 0);
        }
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 3)), *y = lg_forward(m, x, x);
        assert_list(y, 1e-6, 13, 13, 13);
        lg_backward(lg_sum(y));
        assert_near(lg_item(lg_grad_of(lg_parameter(m, "gain"))), 18, 1e-5);
        assert_int_equal(calls, 1);
        assert_ok(c);
        assert_null(lg_module_add(m, "inner", lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "has \"inner\" already");
        assert_null(lg_module_add(m, "a.b", lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "dot");
        assert_null(lg_module_add(m, "self", net));
        assert_error(c, LG_ERR_ARGUMENT, "inside itself");
        assert_null(lg_module_add_parameter(m, "twice", lg_parameter(m, "gain")));
        assert_error(c, LG_ERR_ARGUMENT, "belongs to a module");
        assert_null(lg_module_add_parameter(m, "result", lg_mul(y, y)));
        assert_error(c, LG_ERR_ARGUMENT, "result in the graph");
        assert_null(lg_module_add_parameter(m, "ints", lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "ints");
        lg_module_free(m);
        assert_error(c, LG_ERR_ARGUMENT, "belongs to a Sequential");
        lg_module_free(net);
        assert_int_equal(calls, 101);
        lg_close(c);
}

TEST_CASE(a_failed_child_is_the_error)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_nn_sequential(c, lg_nn_linear(c, 2, 2), lg_nn_linear(c, -1, 2), lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_linear: -1");
        lg_module *relu = lg_nn_relu(c), *net = lg_nn_sequential(c, relu);
        assert_null(lg_nn_sequential(c, lg_nn_linear(c, 2, 2), relu));
        assert_error(c, LG_ERR_ARGUMENT, "belongs to a Sequential already, as \"0\"");
        assert_null(lg_nn_sequential(c, (lg_module *)NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        lg_module *twice = lg_nn_relu(c);
        assert_null(lg_nn_sequential(c, twice, twice));
        lg_clear_error(c);
        assert_non_null(lg_nn_sequential(c, twice));
        assert_ptr_equal(lg_child(net, 0), relu);
        assert_null(lg_nn_relu(NULL));
        assert_null(lg_nn_sequential((lg_ctx *)NULL, (lg_module *)NULL));
        assert_null(lg_forward((lg_module *)NULL, (lg_tensor *)NULL));
        lg_close(c);
}

/* It takes more inputs than it is given. */
static lg_tensor *last_of_sixteen(lg_module *m, lg_list inputs, void *user)
{
        (void)m, (void)user;
        return lg_add(inputs.items[0], inputs.items[15]);
}

TEST_CASE(a_failing_layer_is_named)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_relu(c), lg_nn_sequential(c, lg_nn_linear(c, 5, 2)));
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 4));
        assert_null(lg_forward(net, x));
        assert_int_equal(strncmp(lg_error(c), "linear: x is f32 (2, 4)", 23), 0);
        assert_error(c, LG_ERR_SHAPE, "(in module \"1.0\", Linear)");
        assert_null(lg_forward(net, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "Sequential takes one input, 2 were given");
        lg_module *both = lg_nn_module(c, "Both", .forward = last_of_sixteen);
        assert_null(lg_forward(both, x));
        assert_error(c, LG_ERR_ARGUMENT, "add: b is NULL");
        assert_null(lg_forward(net, (lg_tensor *)NULL));
        assert_error(c, LG_ERR_ARGUMENT, "input 0 of Sequential is NULL");
        assert_null(lg_forward((lg_module *)NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "the module is NULL");
        lg_close(c);
}

TEST_CASE(activations_go_and_the_result_stays)
{
        lg_ctx *c = open_ctx();
        lg_module *net = mlp(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2, 3));
        int64_t live = lg_live_tensors(c);
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *y = lg_escape(lg_forward(net, x));
        assert_int_equal(lg_live_tensors(c), live + 1);
        lg_scope_end(c, scope);
        assert_int_equal(lg_size_of(y, 1), 3);
        /* the result may be the input */
        lg_module *identity = lg_nn_sequential(c);
        assert_ptr_equal(lg_forward(identity, x), x);
        assert_int_equal(lg_live_tensors(c), live + 1);
        lg_backward(lg_sum(y));
        assert_non_null(lg_grad_of(lg_parameter(net, "1.weight")));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(modes_and_printing)
{
        lg_ctx *c = open_ctx();
        lg_module *net = mlp(c);
        char *text = NULL;
        size_t size = 0;
        assert_true(lg_is_training(net));
        lg_train(net, false);
        assert_false(lg_is_training(lg_child(net, 2)));
        lg_train(lg_child(net, 1), true);
        lg_random_state before = lg_random_state_of(c);
        int64_t live = lg_live_tensors(c);
        FILE *f = open_memstream(&text, &size);
        assert_true(lg_module_print(f, net, .input = LG_SHAPE(5, 2, 3)));
        fclose(f);
        assert_non_null(strstr(text, "1      Linear      (5, 4)            28\n"));
        assert_non_null(strstr(text, "total  Sequential  (5, 3)            40\n"));
        free(text);
        assert_true(lg_is_training(lg_child(net, 1)) && !lg_is_training(net));
        assert_true(lg_random_state_of(c).counter == before.counter);
        assert_int_equal(lg_live_tensors(c), live);
        f = open_memstream(&text, &size);
        assert_true(lg_module_print(f, net));
        assert_true(lg_module_print(f, net, .input = LG_SHAPE(5, 7)));
        assert_ok(c);
        fclose(f);
        assert_non_null(strstr(text, "1      Linear      -                 28\n"));
        assert_non_null(strstr(text, "the forward failed: linear: "));
        assert_non_null(strstr(text, "(in module \"1\", Linear)\n"));
        free(text);
        lg_close(c);
}

TEST_CASE(moving_keeps_handles_values_and_gradients)
{
        lg_ctx *c = lg_open();
        lg_module *net = mlp(c);
        lg_tensor *w = lg_parameter(net, "1.weight");
        double values[24], grad[24];
        lg_backward(lg_sum(lg_square(w)));
        read_all(w, values, 24);
        read_all(lg_grad_of(w), grad, 24);
        lg_device d = test_device(c);
        assert_true(lg_module_to(net, d));
        assert_ptr_equal(lg_parameter(net, "1.weight"), w);
        assert_true(lg_device_equal(lg_device_of(w), d) && lg_device_equal(lg_device_of(lg_grad_of(w)), d));
        assert_values(w, values, 24, 0);
        assert_values(lg_grad_of(w), grad, 24, 0);
        assert_non_null(lg_forward(net, lg_ones(c, LG_SHAPE(2, 6))));
        assert_true(lg_module_to(net, lg_cpu()));
        assert_true(lg_device_equal(lg_device_of(w), lg_cpu()));
        assert_ok(c);
        lg_close(c);
}

/* A tree that is so deep that the stack of a thread would not hold a forward of it is refused when it is built. */
TEST_CASE(modules_nest_to_a_limit)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_relu(c), *outer = m;
        int levels = 1;
        for (; outer && levels < 30000; levels += outer != NULL)
                if ((outer = lg_nn_sequential(c, m)))
                        m = outer;
        assert_int_equal(levels, LG_MAX_MODULE_DEPTH);
        assert_error(c, LG_ERR_ARGUMENT, "lg_nn_sequential");
        assert_null(lg_nn_residual(c, m));
        assert_error(c, LG_ERR_ARGUMENT, "more than 128 levels");
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        assert_list(lg_forward(m, x), 0, 1, 1); /* still the caller's, and whole */
        /* from the outside to the inside; and where two trees come together */
        lg_module *top = lg_nn_sequential(c), *last = top;
        for (int i = 1; i < LG_MAX_MODULE_DEPTH; i++)
                last = lg_module_append(last, lg_nn_sequential(c));
        assert_ok(c);
        assert_null(lg_module_append(last, lg_nn_relu(c)));
        assert_error(c, LG_ERR_ARGUMENT, "more than 128 levels");
        assert_null(lg_module_append(top, m));
        assert_error(c, LG_ERR_ARGUMENT, "more than 128 levels");
        assert_non_null(lg_module_append(top, lg_child(m, 0)) ? NULL : top); /* a child is not taken twice */
        assert_error(c, LG_ERR_ARGUMENT, "belongs to a Sequential already");
        assert_non_null(lg_module_append(top, lg_nn_relu(c)));
        lg_module_free(m);
        lg_module_free(top);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *runs_itself(lg_module *m, lg_list in, void *user)
{
        int *left = user;
        return !left || (*left)-- > 0 ? lg_forward(m, in.items[0]) : lg_neg(in.items[0]);
}

/* To a depth, as a recursive network does; else the stack would end. */
TEST_CASE(a_forward_that_runs_itself)
{
        lg_ctx *c = open_ctx();
        int left = 100;
        test_device(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        assert_list(lg_forward(lg_nn_module(c, "Deep", .forward = runs_itself, .user = &left), x), 0, -1, -1);
        assert_null(lg_forward(lg_nn_module(c, "Endless", .forward = runs_itself), x));
        assert_error(c, LG_ERR_STATE, "the forward of Endless runs itself, 128 levels deep");
        assert_ok(c);
        lg_close(c);
}
