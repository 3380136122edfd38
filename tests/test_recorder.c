/* test_recorder.c - recorded steps: losses, gradients and states are those of the function, bit for bit. */
#define INDICES_ON lg_default_device(c) /* a copy from another device cannot be recorded */
#include "calls.h"
#include "recorded.h"

AROUND_TESTS(begin, end);

static void check_all(const scenario *rows, size_t count, int steps)
{
        for (size_t i = 0; i < count; i++)
                assert_recorded(&rows[i], steps);
}
#define CHECK_ALL(rows, steps) check_all(rows, sizeof(rows) / sizeof *(rows), steps)

/* ---- what may change ---- */

static void with_cosine(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
        r->schedule = lg_cosine_lr(r->opt, r->steps);
}

static void with_one_cycle(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
        r->schedule = lg_one_cycle_lr(r->opt, 0.05, r->steps);
}

static lg_module *dropout_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 8, 16), lg_nn_dropout(c, 0.3), lg_nn_batch_norm1d(c, 16),
                                lg_nn_gelu(c), lg_nn_linear(c, 16, 3));
}

static void with_scaler(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
        r->scaler = lg_scaler_new(r->c, .init_scale = 1e9, .growth_interval = 5);
}

static lg_tensor *train_scaled(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = NULL;
        lg_autocast(c, LG_F16) loss = loss_of(r, in);
        return update_scaled(r, loss);
}

static lg_tensor *train_clipped(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = loss_of(r, in);
        (void)c;
        lg_zero_grad(r->opt);
        lg_backward(loss);
        lg_clip_grad_norm(lg_parameters(r->net), 0.1);
        lg_step(r->opt);
        return loss;
}

static void with_momentum(run *r)
{
        r->opt = lg_sgd(r->c, lg_parameters(r->net), 0.05, .momentum = 0.9);
}

static lg_tensor *accumulate(lg_ctx *c, lg_list in, void *user)
{
        (void)c;
        lg_tensor *loss = loss_of(user, in);
        lg_backward(loss);
        return loss;
}

static lg_tensor *accumulate_and_step(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = accumulate(c, in, user);
        lg_step(r->opt);
        lg_zero_grad(r->opt);
        return loss;
}

static void step_every_4(run *r, int i)
{
        if (i % 4 || !i)
                return;
        lg_step(r->opt);
        lg_zero_grad(r->opt);
}

static lg_tensor *train_recomputed(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        (void)c;
        return update(r, lg_cross_entropy(lg_recompute(r->net, in.items[0]), in.items[1]));
}

static lg_tensor *train_bf16(lg_ctx *c, lg_list in, void *user)
{
        lg_tensor *loss = NULL;
        lg_autocast(c, LG_BF16) loss = loss_of(user, in);
        return update(user, loss);
}

static int64_t two_sizes(int i)
{
        return i % 3 == 2 ? 5 : 7;
}

/* Two steps in one run: the second one's count is one more. */
static lg_tensor *train_twice(lg_ctx *c, lg_list in, void *user)
{
        return train(c, in, user) ? train(c, in, user) : NULL;
}

TEST_CASE(long_trainings)
{
        const scenario rows[] = {
                {.name = "plain"},
                {"cosine", .begin = with_cosine},
                {"one cycle", .begin = with_one_cycle},
                {"dropout and batch norm", .network = dropout_network},
                {"scaler with overflows", .begin = with_scaler, .step = train_scaled},
                {"clipping", .step = train_clipped},
                {"two steps", .step = train_twice},
                {"average", .begin = with_average, .step = train_averaged},
                {"accumulation", .begin = with_momentum, .step = accumulate, .between = step_every_4, .ordinary = 6},
                {"accumulation by two recorders", .begin = with_momentum, .step = accumulate, .every = 4,
                 .second = accumulate_and_step, .ordinary = 9},
                {"recompute", .network = dropout_network, .step = train_recomputed},
                {"autocast", .step = train_bf16},
                {"two sizes", .batch = two_sizes, .ordinary = 6}};
        CHECK_ALL(rows, steps_or(24));
}

/* ---- networks ---- */

static lg_module *tied_network(lg_ctx *c)
{
        return lg_nn_module_list(c, lg_nn_embedding(c, 3, 8), lg_nn_linear(c, 8, 8));
}

/* The table of labels is also the weight of the last layer. */
static lg_tensor *train_tied(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_module *table = lg_child(r->net, 0), *layer = lg_child(r->net, 1);
        (void)c;
        lg_tensor *x = lg_add(in.items[0], lg_forward(table, in.items[1]));
        lg_tensor *y = lg_linear(lg_tanh(lg_forward(layer, x)), lg_parameter(table, "weight"), NULL);
        return update(r, lg_cross_entropy(y, in.items[1]));
}

static lg_module *image_network(lg_ctx *c)
{
        lg_module *block =
                lg_nn_sequential(c, lg_nn_conv2d(c, 4, 4, 3, .padding = 1), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c));
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 4, 3, .padding = 1), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c),
                                lg_nn_residual(c, block), lg_nn_max_pool2d(c, 2), lg_nn_flatten(c),
                                lg_nn_linear(c, 16, 3));
}

static lg_tensor *images(lg_ctx *c, int64_t n)
{
        return lg_normal(c, 0, 1, LG_SHAPE(n, 1, 4, 4));
}

static lg_module *attention_network(lg_ctx *c)
{
        return lg_nn_module_list(c, lg_nn_multihead_attention(c, 8, 2, .dropout = 0.2, .batch_first = true),
                                 lg_nn_linear(c, 8, 3));
}

static lg_tensor *sequences(lg_ctx *c, int64_t n)
{
        return lg_normal(c, 0, 1, LG_SHAPE(n, 5, 8));
}

static lg_tensor *train_attention(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *x = in.items[0], *h = lg_run_attention(lg_child(r->net, 0), x, x, x, .causal = true);
        (void)c;
        return update(r,
                      lg_cross_entropy(lg_mean(lg_forward(lg_child(r->net, 1), h), .dims = LG_DIMS(1)), in.items[1]));
}

static lg_module *lstm_network(lg_ctx *c)
{
        return lg_nn_module_list(c, lg_nn_lstm(c, 8, 6, .layers = 2, .dropout = 0.2, .batch_first = true),
                                 lg_nn_linear(c, 6, 3));
}

static lg_tensor *train_lstm(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *h = NULL;
        (void)c;
        drop(lg_run_rnn(lg_child(r->net, 0), in.items[0], .h = &h));
        return update(r, lg_cross_entropy(lg_forward(lg_child(r->net, 1), lg_select(h, 0, 1)), in.items[1]));
}

static lg_module *label_network(lg_ctx *c)
{
        return lg_nn_module_list(c, lg_nn_embedding(c, 3, 8), small_network(c));
}

/* Adds a vector of the label to the input. */
static lg_tensor *train_labels(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        (void)c;
        lg_tensor *x = lg_add(in.items[0], lg_forward(lg_child(r->net, 0), in.items[1]));
        return update(r, lg_cross_entropy(lg_forward(lg_child(r->net, 1), x), in.items[1]));
}

/* The critic of a WGAN-GP: the norm of d y / d x between two batches is pulled to 1. */
static lg_tensor *train_penalty(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *x = in.items[0], *fake = lg_normal_like(x, 0, 1);
        lg_tensor *u = lg_uniform(c, 0, 1, LG_SHAPE(lg_size_of(x, 0), 1));
        lg_tensor *between = lg_set_requires_grad(lg_detach(lg_lerp(x, fake, u)), true);
        lg_tensor *g = lg_grad(LG_LIST(lg_sum(lg_forward(r->net, between))), LG_LIST(between), .create_graph = true);
        lg_tensor *penalty = lg_mean(lg_square(lg_add_scalar(lg_sqrt(lg_sum(lg_square(g), .dims = LG_DIMS(1))), -1)));
        return update(r, lg_add(loss_of(r, in), penalty));
}

TEST_CASE(networks_of_every_kind)
{
        const scenario rows[] = {
                {"tied weights", .network = tied_network, .step = train_tied},
                {"residual convolutions", .network = image_network, .input = images},
                {"attention", .network = attention_network, .input = sequences, .step = train_attention},
                {"LSTM", .network = lstm_network, .input = sequences, .step = train_lstm},
                {"labels", .network = label_network, .step = train_labels},
                {"gradient penalty", .step = train_penalty}};
        CHECK_ALL(rows, 20);
}

/* ---- ops ---- */

/* Returns the result and the gradients of a call, as one tensor. */
static lg_tensor *result_and_gradients(lg_ctx *c, lg_list in, void *user)
{
        const large_call *call = user;
        lg_tensor *x[MOST_OPERANDS], *g[MOST_OPERANDS + 1] = {NULL};
        const int given = gradients_of(call);
        int count = 0;
        for (int i = 0; i < in.count; i++)
                x[i] = i < given ? lg_set_requires_grad(lg_detach(in.items[i]), true) : in.items[i];
        lg_tensor *y = call->run(c, x), *f = lg_dtype_of(y) == LG_F32 ? y : lg_cast(y, LG_F32);
        if (given && lg_requires_grad(y))
                lg_grad(LG_LIST(lg_sum(lg_square(f))), LG_LIST_OF(given, x), .result = g);
        lg_tensor *flat[MOST_OPERANDS + 1];
        for (int i = 0; i < given; i++)
                if (g[i])
                        flat[count++] = lg_reshape(g[i], LG_SHAPE(-1));
        flat[count++] = lg_reshape(f, LG_SHAPE(-1));
        return lg_cat(LG_LIST_OF(count, flat), 0);
}

/* Returns whether the default device captures graphs. CUDASIM_CAPTURE=0: the simulated one refuses to. */
static bool captures(lg_ctx *c)
{
        return lg_default_device(c).type == LG_DEVICE_CUDA && !getenv("CUDASIM_CAPTURE");
}

static bool is_captured(const lg_recorder *r)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        assert_true(f && lg_recorder_print(f, r));
        fclose(f);
        const bool found = strstr(text, "captured as a graph");
        free(text);
        return found;
}

/* Returns whether cuSOLVER computes with memory of the host, so that the list of calls runs. */
static bool works_on_the_host(const char *name)
{
        static const char *const names[] = {"cond", "eigvalsh", "lstsq", "matrix_norm", "pinv", "svdvals"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (!strcmp(name, names[i]))
                        return true;
        return false;
}

/* Runs a call six times with other values, by the function and by a recorder with its random numbers. */
static void check_call(const large_call *call)
{
        lg_ctx *c = open_ctx();
        const int count = operands_of(call);
        lg_set_deterministic(c, true);
        lg_recorder *r[2];
        for (int i = 0; i < 2; i++)
                r[i] = lg_recorder_new(c, result_and_gradients, .user = (void *)(uintptr_t)call, .eager = i == 0);
        for (int n = 0; n < 6; n++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *x[MOST_OPERANDS + 1], *y[2];
                for (int i = 0; i < count; i++)
                        x[i] = lg_to(draw_operand(c, call, i, LG_F32), lg_default_device(c));
                x[count] = LG_END;
                const lg_random_state state = lg_random_state_of(c);
                for (int i = 0; i < 2; i++) {
                        lg_set_random_state(c, state);
                        y[i] = lg_recorder_run_list(r[i], x);
                        if (!y[i] && n == 0 && i == 1 && strstr(lg_error(c), "reads values on the host"))
                                goto end; /* the sizes of its result depend on values */
                        if (!y[i])
                                fail_msg("%s, run %d: %s", call->name, n, lg_error(c));
                }
                const size_t bytes = (size_t)lg_numel(y[0]) * sizeof(float);
                char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
                assert_true(lg_read(y[0], a, LG_F32, bytes) && lg_read(y[1], b, LG_F32, bytes));
                if (memcmp(a, b, bytes))
                        fail_msg("%s: run %d differs", call->name, n);
                free(a), free(b);
                assert_true(lg_scope_end(c, s));
        }
        assert_int_equal(lg_recorder_replays(r[1]), 3);
        if (captures(c) && is_captured(r[1]) == works_on_the_host(call->name))
                fail_msg("%s: it %s captured as a graph", call->name, is_captured(r[1]) ? "is" : "is not");
end:
        lg_clear_error(c);
        lg_close(c);
}

TEST_CASE(every_elementwise_op)
{
        for (size_t i = 0; i < sizeof elementwise_calls / sizeof *elementwise_calls; i++)
                check_call(&elementwise_calls[i]);
}

/* Where they take long, a fifth of them; $LG_TEST_LONG: all. */
TEST_CASE(every_other_op)
{
        const size_t step = is_slow() && !getenv("LG_TEST_LONG") ? 5 : 1;
        for (size_t i = 0; i < sizeof large_calls / sizeof *large_calls; i++)
                if (i % step == 0 || works_on_the_host(large_calls[i].name))
                        check_call(&large_calls[i]);
}
