/* test_functional.c - modules with several results, with other parameters than their own, and without a forward. */
#include "test.h"

static bool minmax(lg_module *m, lg_list in, lg_outputs *out, void *user)
{
        (void)m, (void)user;
        drop(lg_exp(in.items[0])); /* freed with the scope */
        out->items[0] = lg_amin(in.items[0]);
        out->items[1] = lg_amax(in.items[0]);
        out->items[2] = in.items[0];
        out->count = 3;
        return true;
}

TEST_CASE(several_results)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_module(c, "MinMax", .forward_all = minmax);
        lg_tensor *x = lg_from(c, ((double[]){3, -1, 2}), LG_SHAPE(3), .requires_grad = true);
        int64_t live = lg_live_tensors(c);
        lg_outputs out;
        assert_true(lg_forward_all(m, &out, x));
        assert_int_equal(out.count, 3);
        assert_list(out.items[0], 0, -1);
        assert_list(out.items[1], 0, 3);
        assert_ptr_equal(out.items[2], x);
        assert_int_equal(lg_live_tensors(c), live + 2);
        lg_backward(lg_sub(out.items[1], out.items[0]));
        assert_list(lg_grad_of(x), 0, 1, -1, 0);
        live = lg_live_tensors(c);
        lg_tensor *least = lg_forward(m, x); /* the others are freed */
        assert_list(least, 0, -1);
        assert_int_equal(lg_live_tensors(c), live + 1);
        lg_module *relu = lg_nn_relu(c);
        assert_true(lg_forward_all(relu, &out, x));
        assert_int_equal(out.count, 1);
        assert_list(out.items[0], 0, 3, 0, 2);
        lg_module *net = lg_nn_sequential(c, m, relu);
        assert_list(lg_forward(net, x), 0, 0);
        /* a program that knows one output only, and one that knows more */
        struct {
                lg_outputs o;
                int64_t later;
        } more = {.later = 7};
        lg_tensor *const inputs[] = {x, LG_END};
        assert_true(lg_forward_all_list(m, &more.o, sizeof more, inputs));
        assert_true(more.o.count == 3 && more.later == 0);
        lg_close(c);
}

static bool refuses(lg_module *m, lg_list in, lg_outputs *out, void *user)
{
        (void)m, (void)in;
        switch (*(int *)user) {
        case 0:
                return false;
        case 1:
                out->count = 0;
                return true;
        case 2:
                out->count = LG_MAX_OUTPUTS + 1;
                return true;
        case 3:
                out->count = 2;
                out->items[0] = in.items[0];
                return true;
        default:
                return lg_set_error(lg_module_ctx(m), LG_ERR_FORMAT, "my own words");
        }
}

TEST_CASE(results_that_are_wrong)
{
        static const struct {
                lg_error_code code;
                const char *text;
        } rows[] = {{LG_ERR_STATE, "the forward of Wrong returned false without an error"},
                    {LG_ERR_STATE, "gave 0 results; 1 to 8 are possible"},
                    {LG_ERR_STATE, "gave 9 results; 1 to 8 are possible"},
                    {LG_ERR_STATE, "left result 1 NULL"},
                    {LG_ERR_FORMAT, "my own words"}};
        lg_ctx *c = open_ctx();
        int how = 0;
        lg_module *m = lg_nn_module(c, "Wrong", .forward_all = refuses, .user = &how);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        for (; how < 5; how++) {
                lg_outputs out = {.count = 5};
                assert_null(lg_forward(m, x));
                assert_error(c, rows[how].code, rows[how].text);
                assert_false(lg_forward_all(m, &out, x));
                assert_error(c, rows[how].code, rows[how].text);
                assert_true(out.count == 0 && !out.items[0]);
        }
        assert_false(lg_forward_all(m, NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "lg_forward_all: out is NULL");
        lg_close(c);
}

static lg_tensor *encode(lg_module *m, lg_list in, void *user)
{
        (void)user;
        lg_module *encoder = lg_child_named(m, "encoder");
        return lg_forward(lg_child_named(encoder, "out"),
                          lg_relu(lg_forward(lg_child_named(encoder, "in"), in.items[0])));
}

TEST_CASE(a_container_of_named_children)
{
        lg_ctx *c = open_ctx();
        lg_module *encoder = lg_nn_module(c, "Encoder"), *net = lg_nn_module(c, "Net", .forward = encode);
        lg_module_add(encoder, "in", lg_nn_linear(c, 3, 4));
        lg_module_add(encoder, "out", lg_nn_linear(c, 4, 2));
        lg_module_add(net, "encoder", encoder);
        assert_int_equal(lg_parameters(net).count, 4);
        assert_non_null(lg_parameter(net, "encoder.out.weight"));
        lg_tensor *x = lg_ones(c, LG_SHAPE(5, 3));
        assert_int_equal(lg_size_of(lg_forward(net, x), 1), 2);
        assert_null(lg_forward(encoder, x));
        assert_error(c, LG_ERR_STATE, "lg_forward: Encoder has no forward of its own");
        assert_null(lg_nn_module(c, "Both", .forward = encode, .forward_all = minmax));
        assert_error(c, LG_ERR_ARGUMENT, "Both has both .forward and .forward_all");
        assert_true(lg_module_to(net, lg_parse_device(c, "shadow")));
        assert_true(lg_device_of(lg_parameter(net, "encoder.in.bias")).type == LG_DEVICE_SHADOW);
        lg_close(c);
}

TEST_CASE(buffers_of_any_dtype)
{
        static const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_U8, LG_BOOL, LG_F16, LG_F64};
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_module(c, "Holder");
        for (int i = 0; i < 6; i++) {
                char name[8];
                snprintf(name, sizeof name, "b%d", i);
                assert_non_null(lg_module_add_buffer(m, name, lg_ones(c, LG_SHAPE(3), .dtype = dtypes[i])));
                assert_int_equal(lg_dtype_of(lg_buffer(m, name)), dtypes[i]);
        }
        assert_true(lg_module_to(m, lg_parse_device(c, "shadow")));
        assert_list(lg_buffer(m, "b3"), 0, 1, 1, 1);
        assert_null(lg_module_add_parameter(m, "p", lg_ones(c, LG_SHAPE(3), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "parameters are floats");
        lg_close(c);
}

/* One step of gradient descent in the graph, and the gradient of the loss after it: MAML's. */
static double after_a_step(lg_ctx *c, lg_module *net, lg_tensor *x, lg_tensor *y, double rate, lg_tensor **ret_grads)
{
        lg_list p = lg_parameters(net);
        lg_tensor *g[4], *fast[4];
        drop(lg_grad(LG_LIST(lg_mse(lg_forward(net, x), y)), p, .create_graph = true, .result = g));
        for (int64_t i = 0; i < p.count; i++)
                fast[i] = lg_sub(p.items[i], lg_mul_scalar(g[i], rate));
        lg_tensor *loss = lg_mse(lg_forward_params(net, LG_LIST_OF(p.count, fast), x), y);
        if (ret_grads)
                drop(lg_grad(LG_LIST(loss), p, .result = ret_grads));
        assert_ok(c);
        return lg_item(loss);
}

TEST_CASE(gradients_through_a_step)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 3, .dtype = LG_F64), lg_nn_tanh(c),
                                          lg_nn_linear(c, 3, 1, .dtype = LG_F64));
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(6, 2), .dtype = LG_F64);
        lg_tensor *y = lg_uniform(c, -1, 1, LG_SHAPE(6, 1), .dtype = LG_F64), *g[4];
        lg_list p = lg_parameters(net);
        lg_tensor *own[4];
        memcpy(own, p.items, sizeof own);
        double loss = after_a_step(c, net, x, y, 0.3, g), values[16], eps = 1e-5;
        assert_memory_equal(own, lg_parameters(net).items, sizeof own); /* its own are back */
        assert_memory_equal(own, p.items, sizeof own);
        assert_true(loss < lg_item(lg_mse(lg_forward(net, x), y)));
        for (int i = 0; i < 4; i++) {
                int64_t n = read_all(p.items[i], values, 16);
                for (int64_t k = 0; k < n; k++) {
                        double f[2], was = values[k], analytic[16];
                        for (int side = 0; side < 2; side++) {
                                values[k] = was + (side ? eps : -eps);
                                lg_no_grad(c)
                                {
                                        lg_write(p.items[i], values, LG_F64, (size_t)n * sizeof *values);
                                }
                                f[side] = after_a_step(c, net, x, y, 0.3, NULL);
                        }
                        values[k] = was;
                        lg_no_grad(c)
                        {
                                lg_write(p.items[i], values, LG_F64, (size_t)n * sizeof *values);
                        }
                        read_all(g[i], analytic, 16);
                        assert_near(analytic[k], (f[1] - f[0]) / (2 * eps), 1e-7);
                }
        }
        lg_close(c);
}

static lg_tensor *looks_at_itself(lg_module *m, lg_list in, void *user)
{
        lg_list p = lg_parameters(m);
        *(bool *)user = lg_module_to(m, lg_device_of(in.items[0]));
        lg_clear_error(lg_module_ctx(m));
        lg_module_free(m);
        lg_clear_error(lg_module_ctx(m));
        return lg_add(lg_mul(in.items[0], p.items[0]), lg_parameter(m, "w"));
}

TEST_CASE(the_module_shows_what_it_was_lent)
{
        lg_ctx *c = open_ctx();
        bool moved = true;
        lg_module *m = lg_nn_module(c, "Own", .forward = looks_at_itself, .user = &moved);
        lg_module_add_parameter(m, "w", lg_full(c, LG_SHAPE(1), 2));
        lg_module *net = lg_nn_sequential(c, m);
        lg_list outer = lg_parameters(net), inner = lg_parameters_matching(m, "w*");
        lg_tensor *x = lg_full(c, LG_SHAPE(1), 10), *w = outer.items[0];
        assert_list(lg_forward_params(net, LG_LIST(lg_full(c, LG_SHAPE(1), 3)), x), 0, 33);
        assert_false(moved);
        assert_ptr_equal(outer.items[0], w);
        assert_ptr_equal(inner.items[0], w);
        assert_ptr_equal(lg_parameter(net, "0.w"), w);
        assert_list(lg_forward_params(net, outer, x), 0, 22); /* its own */
        assert_list(lg_forward(net, x), 0, 22);
        assert_true(moved); /* to where it is */
        lg_close(c);
}

TEST_CASE(parameters_that_do_not_fit)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 3));
        lg_tensor *x = lg_ones(c, LG_SHAPE(1, 2)), *w = lg_ones(c, LG_SHAPE(3, 2)), *b = lg_ones(c, LG_SHAPE(3));
        lg_tensor *far = lg_copy(b, lg_parse_device(c, lg_device_of(b).type == LG_DEVICE_CPU ? "shadow" : "cpu"));
        assert_list(lg_forward_params(net, LG_LIST(w, b), x), 0, 3, 3, 3);
        assert_null(lg_forward_params(net, LG_LIST(w), x));
        assert_error(c, LG_ERR_ARGUMENT, "lg_forward_params: 1 tensors for the 2 parameters of a Sequential");
        assert_null(lg_forward_params(net, LG_LIST(w, b, b), x));
        assert_error(c, LG_ERR_ARGUMENT, "3 tensors for the 2 parameters");
        assert_null(lg_forward_params(net, LG_LIST(b, w), x));
        assert_error(c, LG_ERR_SHAPE, "the tensor for \"0.weight\" is f32 (3,)");
        assert_null(lg_forward_params(net, LG_LIST(w, NULL), x));
        assert_error(c, LG_ERR_ARGUMENT, "the tensor for \"0.bias\" is NULL");
        assert_null(lg_forward_params(net, LG_LIST(w, lg_cast(b, LG_I64)), x));
        assert_error(c, LG_ERR_DTYPE, "parameters are floats");
        assert_null(lg_forward_params(net, LG_LIST(w, far), x));
        assert_error(c, LG_ERR_DEVICE, "but that parameter is");
        assert_null(lg_forward_params(net, LG_LIST(w, lg_ones(other, LG_SHAPE(3))), x));
        assert_error(c, LG_ERR_ARGUMENT, "belongs to another context");
        assert_null(lg_forward_params(net, LG_LIST_OF(2, NULL), x));
        assert_error(c, LG_ERR_ARGUMENT, "0 tensors for the 2 parameters");
        assert_null(lg_forward_params(NULL, LG_LIST(w, b), x));
        assert_error(c, LG_ERR_ARGUMENT, "the module is NULL");
        assert_list(lg_forward_params(lg_nn_relu(c), LG_LIST_OF(0, NULL), x), 0, 1, 1);
        assert_list(lg_forward_params(net, LG_LIST(w, b), x), 0, 3, 3, 3);
        lg_close(other);
        lg_close(c);
}

static lg_tensor *masked(lg_module *m, lg_list in, void *user)
{
        (void)user;
        lg_tensor *e = lg_forward(lg_child_named(m, "embed"), in.items[0]);
        return e && in.count == 2 ? lg_mul(e, lg_unsqueeze(in.items[1], -1)) : NULL;
}

TEST_CASE(printed_with_inputs_of_ones_own)
{
        lg_ctx *c = open_ctx();
        char *text = NULL;
        size_t size = 0;
        lg_module *m = lg_nn_module(c, "Gpt", .forward = masked);
        lg_module_add(m, "embed", lg_nn_embedding(c, 10, 4));
        lg_tensor *ids = lg_zeros(c, LG_SHAPE(2, 3), .dtype = LG_I64), *mask = lg_ones(c, LG_SHAPE(2, 3));
        FILE *f = open_memstream(&text, &size);
        assert_true(lg_module_print(f, m, .inputs = LG_LIST(ids, mask)));
        assert_ok(c);
        fclose(f);
        assert_non_null(strstr(text, "embed  Embedding  (2, 3, 4)            40\n"));
        assert_null(strstr(text, "failed"));
        free(text);
        f = open_memstream(&text, &size);
        assert_true(lg_module_print(f, m, .inputs = LG_LIST(mask, mask)));
        assert_ok(c);
        assert_true(lg_module_print_memory(f, m, .inputs = LG_LIST(ids, mask)));
        fclose(f);
        assert_non_null(strstr(text, "the forward failed: embedding: index is f32"));
        free(text);
        /* indices that only a wait finds out of range */
        lg_fill_(ids, 11);
        f = open_memstream(&text, &size);
        assert_true(lg_module_print(f, m, .inputs = LG_LIST(ids, mask)));
        assert_true(lg_synchronize(c));
        assert_ok(c);
        fclose(f);
        assert_non_null(strstr(text, "the forward failed: embedding: index holds 11"));
        free(text);
        lg_tensor *many[20];
        for (int i = 0; i < 20; i++)
                many[i] = ids;
        f = tmpfile();
        assert_true(lg_module_print(f, m, .inputs = LG_LIST_OF(20, many)));
        fclose(f);
        assert_ok(c);
        lg_close(c);
}
