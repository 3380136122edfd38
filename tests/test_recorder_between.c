/* test_recorder_between.c - recorded steps, and what a program does between them: the next runs see it. */
#include "recorded.h"

AROUND_TESTS(begin, end);

/* ---- evaluation ---- */

static lg_module *modal_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 8, 16), lg_nn_dropout(c, 0.3), lg_nn_batch_norm1d(c, 16),
                                lg_nn_gelu(c), lg_nn_linear(c, 16, 3));
}

static lg_tensor *train_or_evaluate(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        return lg_is_training(r->net) ? train(c, in, user) : loss_of(user, in);
}

static void evaluate_every_5(run *r, int i)
{
        lg_train(r->net, i % 5 != 4);
}

static lg_tensor *forward_only(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        (void)c;
        return lg_amax(lg_forward(r->net, in.items[0]));
}

static void without_gradients(run *r)
{
        lg_set_grad_mode(r->c, false);
}

static lg_tensor *no_result(lg_ctx *c, lg_list in, void *user)
{
        drop(train(c, in, user));
        return NULL;
}

static lg_tensor *input_as_result(lg_ctx *c, lg_list in, void *user)
{
        drop(train(c, in, user));
        return lg_reshape(in.items[0], LG_SHAPE(-1));
}

static lg_tensor *parameter_as_result(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        drop(train(c, in, user));
        return lg_parameter(r->net, "4.bias");
}

TEST_CASE(results_and_modes)
{
        const scenario rows[] = {
                {"evaluation", .network = modal_network, .step = train_or_evaluate, .between = evaluate_every_5,
                 .ordinary = 6},
                {"forward", .step = forward_only},
                {"without gradients", .step = forward_only, .begin = without_gradients},
                {"no result", .step = no_result},
                {"an input as result", .step = input_as_result, .batch = NULL},
                {"a parameter as result", .step = parameter_as_result},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                assert_recorded(&rows[i], 40);
}

/* ---- changes ---- */

static void seed_again(run *r, int i)
{
        if (i % 10 == 9)
                lg_seed(r->c, (uint64_t)i);
}

static void swap_average(run *r, int i)
{
        if (i % 7 != 6)
                return;
        lg_ema_swap(r->average);
        drop(lg_forward(r->net, rows_of_8(r->c, 3)));
        lg_ema_swap(r->average);
}

/* Evaluates with the average in some runs. */
static lg_tensor *average_or_evaluate(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        return lg_is_training(r->net) ? train_averaged(c, in, user) : loss_of(user, in);
}

static void evaluate_average(run *r, int i)
{
        if (i % 7 < 5)
                return;
        lg_ema_swap(r->average);
        lg_train(r->net, i % 7 == 6);
}

static void freeze_layer(run *r, int i)
{
        if (i == 10 || i == 20)
                assert_true(lg_freeze(lg_child(r->net, 0), i == 10));
}

static void freeze_first(run *r, int i)
{
        if (i == 10 || i == 20)
                lg_set_requires_grad(lg_parameter(r->net, "0.weight"), i == 20);
}

static void with_part(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters_matching(r->net, "4.*"), 1e-2);
}

static void widen(run *r, int i)
{
        if (i == 10)
                lg_add_param_group(r->opt, lg_parameters_matching(r->net, "0.*"), .lr = 1e-3);
}

static void with_another(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
}

/* The parameters of the new one are fewer: gradients of the others add up. */
static void replace_optimiser(run *r, int i)
{
        if (i != 10)
                return;
        lg_optimizer_free(r->opt);
        r->opt = lg_sgd(r->c, lg_parameters_matching(r->net, "4.*"), 1e-2, .momentum = 0.9);
}

static void train_between(run *r, int i)
{
        if (i % 4 == 3)
                drop(train(r->c, LG_LIST(rows_of_8(r->c, 5), lg_randint(r->c, 0, 3, LG_SHAPE(5))), r));
}

static void empty_cache(run *r, int i)
{
        if (i % 3 == 2)
                lg_empty_cache(r->c);
}

static void evaluate_dropout(run *r, int i)
{
        lg_train(lg_child(r->net, 1), i % 5 < 3);
}

static void cast_twice(run *r, int i)
{
        if (i == 10 && lg_module_cast(r->net, LG_F64))
                lg_module_cast(r->net, LG_F32);
}

static lg_device other_device(lg_ctx *c, lg_device d)
{
        return d.type == LG_DEVICE_CPU ? lg_parse_device(c, "shadow") : lg_cpu();
}

static void move_away_and_back(run *r, int i)
{
        const lg_device home = lg_default_device(r->c);
        if (i == 10 && lg_module_to(r->net, other_device(r->c, home)))
                lg_module_to(r->net, home);
}

/* The runs from 10 to 20 are on another device. */
static void train_elsewhere(run *r, int i)
{
        const lg_device home = test_device(r->c), next = i < 10 || i >= 20 ? home : other_device(r->c, home);
        lg_set_default_device(r->c, next);
        if (i == 10 || i == 20)
                assert_true(lg_module_to(r->net, next));
}

static void save_and_load(run *r, int i)
{
        if (i == 12)
                assert_true(lg_checkpoint_save(checkpoint_of(r), path));
        if (i == 20)
                assert_true(lg_checkpoint_load(checkpoint_of(r), path));
}

static void write_weights(run *r, int i)
{
        if (i % 6 == 5)
                lg_no_grad(r->c) lg_mul_scalar_(lg_parameter(r->net, "2.weight"), 0.5);
}

static void turn_modes(run *r, int i)
{
        lg_set_deterministic(r->c, i >= 10 && i < 20);
        lg_set_threads(r->c, i < 30 ? 1 : 2);
}

static void turn_modes_often(run *r, int i)
{
        lg_set_threads(r->c, 1 + i / 2 % 2);
        lg_set_allow_tf32(r->c, i / 4 % 2);
        lg_set_conv_allow_tf32(r->c, i / 4 % 2);
}

static void turn_autocast(run *r, int i)
{
        lg_set_autocast_mode(r->c, i / 3 % 2 ? LG_BF16 : LG_DTYPE_NONE);
}

static void turn_gradients(run *r, int i)
{
        lg_set_grad_mode(r->c, i % 5 < 3);
}

static void clear_gradients(run *r, int i)
{
        if (i == 10)
                lg_zero_grad(r->opt);
}

/* ---- two networks ---- */

static lg_module *two_networks(lg_ctx *c)
{
        return lg_nn_module_list(c, small_network(c), lg_nn_linear(c, 3, 1));
}

static void with_two(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters(lg_child(r->net, 0)), 1e-2);
        r->other = lg_rmsprop(r->c, lg_parameters(lg_child(r->net, 1)), 1e-2);
}

static lg_tensor *critic_of(run *r, lg_tensor *x)
{
        return lg_mean(lg_square(lg_forward(lg_child(r->net, 1), x)));
}

/* Leaves gradients in the critic, which its own step clears. */
static lg_tensor *train_generator(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        (void)c;
        return update(r, critic_of(r, lg_forward(lg_child(r->net, 0), in.items[0])));
}

static lg_tensor *train_critic(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *fake = NULL;
        lg_no_grad(c) fake = lg_forward(lg_child(r->net, 0), in.items[0]);
        lg_tensor *loss = lg_sub(critic_of(r, lg_normal_like(fake, 0, 1)), critic_of(r, fake));
        lg_zero_grad(r->other);
        lg_backward(loss);
        lg_step(r->other);
        return loss;
}

TEST_CASE(two_optimisers)
{
        const scenario s = {.name = "generator and critic",
                            .network = two_networks,
                            .begin = with_two,
                            .step = train_critic,
                            .every = 3,
                            .second = train_generator,
                            .ordinary = 8}; /* the first generator's step makes gradients */
        assert_recorded(&s, 40);
}

TEST_CASE(changes_between_runs)
{
        const scenario rows[] = {
                {"seed", .network = modal_network, .between = seed_again},
                {"average swapped", .begin = with_average, .step = train_averaged, .between = swap_average},
                {"averages evaluated", .begin = with_average, .step = average_or_evaluate, .between = evaluate_average,
                 .ordinary = 6},
                {"frozen and unfrozen", .between = freeze_first, .ordinary = 10},
                {"a layer frozen and unfrozen", .between = freeze_layer, .ordinary = 10},
                {"a new group", .begin = with_part, .between = widen, .ordinary = 6},
                {"another optimiser", .begin = with_another, .between = replace_optimiser, .ordinary = 6},
                {"ordinary steps", .between = train_between},
                {"the cache emptied", .between = empty_cache},
                {"a layer in evaluation", .network = modal_network, .between = evaluate_dropout, .ordinary = 6},
                {"cast", .between = cast_twice, .ordinary = 6},
                {"moved", .between = move_away_and_back, .ordinary = 6},
                {"moved for some runs", .between = train_elsewhere, .ordinary = 9},
                {"a checkpoint loaded", .between = save_and_load},
                {"weights written", .between = write_weights},
                {"modes", .between = turn_modes, .ordinary = 9},
                {"threads and TF32", .between = turn_modes_often, .ordinary = 12},
                {"autocast", .between = turn_autocast, .ordinary = 6},
                {"the mode of gradients", .step = forward_only, .between = turn_gradients, .ordinary = 6},
                {"gradients cleared", .between = clear_gradients, .ordinary = 4},
                {"two recorders", .every = 2},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                assert_recorded(&rows[i], 40);
}
