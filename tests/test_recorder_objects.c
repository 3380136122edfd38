/* test_recorder_objects.c - recorded steps, and numbers of the host in optimisers, scalers, averages and modules, which
 * change between runs: recordings follow them, or are not used. */
#include "recorded.h"

AROUND_TESTS(begin, end);

#define STEP(name, ...)                                                                                                \
        static lg_tensor *name(lg_ctx *c, lg_list in, void *user)                                                      \
        {                                                                                                              \
                run *r = user;                                                                                         \
                (void)c, (void)in, (void)r;                                                                            \
                __VA_ARGS__                                                                                            \
        }
#define BETWEEN(name, ...)                                                                                             \
        static void name(run *r, int i)                                                                                \
        {                                                                                                              \
                (void)r, (void)i;                                                                                      \
                __VA_ARGS__                                                                                            \
        }
#define BEGIN(name, ...)                                                                                               \
        static void name(run *r)                                                                                       \
        {                                                                                                              \
                __VA_ARGS__                                                                                            \
        }

static void check_rows(const scenario *rows, size_t count)
{
        for (size_t i = 0; i < count; i++)
                assert_recorded(&rows[i], 24);
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

/* ---- optimisers ---- */

BEGIN(with_lamb, r->opt = lg_lamb(r->c, lg_parameters(r->net), 1e-2);)
BEGIN(with_muon, r->opt = lg_muon(r->c, lg_parameters(r->net), 1e-2);)
BEGIN(with_adafactor, r->opt = lg_adafactor(r->c, lg_parameters(r->net), 1e-2);)
BEGIN(lamb_one_cycle, with_lamb(r); r->schedule = lg_one_cycle_lr(r->opt, 0.01, 30);)
BETWEEN(set_lr, lg_set_lr(r->opt, i < 10 ? 1e-2 : 1e-3 * (i % 5));)

/* Parameters that were updated together have had another number of steps. */
BETWEEN(
        step_one, if (i == 9 || i == 14) {
                lg_zero_grad(r->opt);
                lg_backward(lg_sum(lg_square(lg_parameter(r->net, "0.weight"))));
                lg_step(r->opt);
        })

/* Step 0 has no states. */
BETWEEN(begin_again, if (i == 0) assert_true(lg_checkpoint_save(checkpoint_of(r), path));
        if (i == 10 || i == 15) assert_true(lg_checkpoint_load(checkpoint_of(r), path));)

static lg_tensor *loss_of_rows(lg_ctx *c, void *user)
{
        run *r = user;
        return lg_mean(lg_square(lg_forward(r->net, rows_of_8(c, 4))));
}

BETWEEN(find_lr, if (i == 10) assert_true(lg_find_lr(r->net, r->opt, loss_of_rows, r, .steps = 20) > 0);)

TEST_CASE(optimisers)
{
        const scenario rows[] = {
                {"LAMB", .begin = with_lamb, .between = set_lr},
                {"Muon", .begin = with_muon, .between = set_lr},
                {"Adafactor", .begin = with_adafactor, .between = set_lr},
                {"LAMB, momentum", .begin = lamb_one_cycle},
                {"a step of some", .between = step_one, .ordinary = 8},
                {"a step of some, by ops", .begin = with_lamb, .between = step_one, .ordinary = 8},
                {"rates tried", .between = find_lr},
                {"the first state", .between = begin_again, .ordinary = 9},
        };
        CHECK_ROWS(rows);
}

static lg_module *bf16_network(lg_ctx *c)
{
        lg_module *m = small_network(c);
        lg_module_cast(m, LG_BF16);
        return m;
}

static lg_tensor *bf16_rows(lg_ctx *c, int64_t n)
{
        return lg_cast(rows_of_8(c, n), LG_BF16);
}

BEGIN(with_masters, r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-3, .master = true);)
BETWEEN(halve_late, if (i % 6 == 5) lg_no_grad(r->c) lg_mul_scalar_(lg_parameter(r->net, "2.weight"), 0.5);)
BETWEEN(halve_1, if (i == 1) lg_no_grad(r->c) lg_mul_scalar_(lg_parameter(r->net, "2.weight"), 0.5);)
BETWEEN(halve_2, if (i == 2) lg_no_grad(r->c) lg_mul_scalar_(lg_parameter(r->net, "2.weight"), 0.5);)

STEP(clamp_after, lg_tensor *loss = train(c, in, user);
     lg_no_grad(c) lg_clamp_(lg_parameter(r->net, "2.weight"), -0.1, 0.1); return loss;)
STEP(clamp_before, lg_no_grad(c) lg_clamp_(lg_parameter(r->net, "2.weight"), -0.1, 0.1); return train(c, in, user);)

TEST_CASE(masters)
{
        scenario rows[] = {
                {.name = "masters"},
                {"written", .between = halve_late},
                {"written before run 1", .between = halve_1},
                {"written before run 2", .between = halve_2},
                {"clamped", .step = clamp_after},
                {"clamped before", .step = clamp_before},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                rows[i].network = bf16_network;
                rows[i].input = bf16_rows;
                rows[i].begin = with_masters;
        }
        CHECK_ROWS(rows);
}

/* ---- gradients ---- */

static lg_module *two_networks(lg_ctx *c)
{
        return lg_nn_module_list(c, small_network(c), small_network(c));
}

static lg_tensor *first_loss(run *r, lg_list in)
{
        return lg_cross_entropy(lg_forward(lg_child(r->net, 0), in.items[0]), in.items[1]);
}

STEP(zero_first, return update(r, first_loss(r, in));)
STEP(zero_last, lg_tensor *loss = first_loss(r, in); lg_backward(loss); lg_step(r->opt); lg_zero_grad(r->opt);
     return loss;)
STEP(clip_all, lg_tensor *loss = first_loss(r, in); lg_backward(loss); lg_clip_grad_norm(lg_parameters(r->net), 0.1);
     lg_step(r->opt); return loss;)

static void backward_of_second(run *r)
{
        lg_backward(lg_mean(lg_square(lg_forward(lg_child(r->net, 1), rows_of_8(r->c, 3)))));
}

BETWEEN(add_second, if (i % 7 == 6) backward_of_second(r);)
BETWEEN(always_add_second, backward_of_second(r);)

STEP(norm_of_gradient, lg_tensor *g = lg_grad_of(lg_parameter(r->net, "0.weight"));
     return g ? lg_norm(g) : lg_sum(in.items[0]);)
STEP(clip_and_step, lg_clip_grad_norm(lg_parameters(r->net), 0.01); lg_step(r->opt); return lg_sum(in.items[0]);)
STEP(previous_gradient, const lg_tensor *w = lg_parameter(r->net, "0.weight");
     lg_tensor *g = lg_grad_of(w), *norm = g ? lg_norm(g) : lg_sum(in.items[0]); drop(train(c, in, user)); return norm;)
BETWEEN(new_gradients, lg_zero_grad(r->opt); lg_backward(lg_mean(lg_square(lg_forward(r->net, rows_of_8(r->c, 3)))));)

/* Gradients of parameters that no op of the function uses. */
TEST_CASE(gradients)
{
        const scenario rows[] = {
                {"cleared", .network = two_networks, .step = zero_first, .between = add_second, .ordinary = 6},
                {"cleared always", .network = two_networks, .step = zero_first, .between = always_add_second},
                {"used", .network = two_networks, .step = zero_last, .between = add_second, .ordinary = 6},
                {"clipped", .network = two_networks, .step = clip_all, .between = add_second, .ordinary = 6},
                {"clipped always", .network = two_networks, .step = clip_all, .between = always_add_second},
                {"read", .step = norm_of_gradient, .between = new_gradients},
                {"step", .step = clip_and_step, .between = new_gradients},
                {"previous one", .step = previous_gradient},
        };
        CHECK_ROWS(rows);
}

/* ---- scalers and averages ---- */

BEGIN(with_scaler, r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
      r->scaler = lg_scaler_new(r->c, .init_scale = 65536, .growth_interval = 2);)
BEGIN(with_overflows, r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
      r->scaler = lg_scaler_new(r->c, .init_scale = 1e9, .growth_interval = 5);)
STEP(scaled, lg_tensor *loss = NULL; lg_autocast(c, LG_F16) loss = loss_of(r, in); lg_zero_grad(r->opt);
     lg_scaler_backward(r->scaler, loss); lg_scaler_step(r->scaler, r->opt); lg_scaler_update(r->scaler); return loss;)
STEP(scaled_backward, lg_tensor *loss = loss_of(r, in); lg_scaler_backward(r->scaler, loss); return loss;)
STEP(scaled_step, lg_scaler_step(r->scaler, r->opt); lg_scaler_update(r->scaler); return lg_sum(in.items[0]);)
BETWEEN(save_often, if (i % 9 == 8) assert_true(lg_checkpoint_save(checkpoint_of(r), path));)
BETWEEN(
        step_every_3, if (i && i % 3 == 0) {
                lg_scaler_step(r->scaler, r->opt);
                lg_scaler_update(r->scaler);
                lg_zero_grad(r->opt);
        })
BETWEEN(backward_before, lg_zero_grad(r->opt);
        lg_scaler_backward(r->scaler, lg_mean(lg_square(lg_forward(r->net, rows_of_8(r->c, 3)))));)

/* Loads the numbers of another scaler. */
static void load_scaler(run *r, int i)
{
        lg_scaler *other = i ? NULL : lg_scaler_new(r->c, .init_scale = 256, .growth_interval = 3, .growth_factor = 4);
        lg_checkpoint *k = lg_checkpoint_new(r->c);
        lg_checkpoint_add(k, "scaler", other ? other : r->scaler);
        if (i == 0)
                assert_true(lg_checkpoint_save(k, path));
        if (i == 8)
                assert_true(lg_checkpoint_load(k, path));
        lg_checkpoint_free(k);
        lg_scaler_free(other);
}

TEST_CASE(scalers_and_averages)
{
        const scenario rows[] = {
                {"saved", .begin = with_overflows, .step = scaled, .between = save_often, .ordinary = 9},
                {"another scaler", .begin = with_scaler, .step = scaled, .between = load_scaler, .ordinary = 6},
                {"accumulation", .begin = with_scaler, .step = scaled_backward, .between = step_every_3, .ordinary = 6},
                {"step alone", .begin = with_scaler, .step = scaled_step, .between = backward_before},
                {"average", .begin = with_average, .step = train_averaged, .between = begin_again, .ordinary = 9},
        };
        CHECK_ROWS(rows);
}

/* ---- modules ---- */

BETWEEN(normalise, if (i == 10) lg_weight_norm(lg_child(r->net, 0), "weight");)
BETWEEN(append, if (i == 10) lg_module_append(r->net, lg_nn_tanh(r->c));)
BETWEEN(replace, if (i == 10) lg_module_replace(r->net, "1", lg_nn_tanh(r->c));)
BETWEEN(turn_mode, if (i >= 10) lg_train(r->net, i % 2);)
STEP(reads_mode, return lg_is_training(r->net) ? lg_sum(in.items[0]) : lg_mean(in.items[0]);)
BETWEEN(set_lr_once, if (i == 10) lg_set_lr(r->opt, 1e-3);)
STEP(reads_lr, return lg_mul_scalar(train(c, in, user), lg_lr(r->opt));)

static lg_module *list_network(lg_ctx *c)
{
        return lg_nn_module_list(c, small_network(c));
}

STEP(run_list, lg_tensor *h = in.items[0];
     for (int i = 0; i < lg_child_count(r->net); i++) h = lg_forward(lg_child(r->net, i), h);
     return update(r, lg_cross_entropy(h, in.items[1]));)

static lg_module *spectral_network(lg_ctx *c)
{
        lg_module *m = small_network(c);
        lg_spectral_norm(lg_child(m, 0), "weight", .iterations = 2);
        lg_weight_norm(lg_child(m, 2), "weight");
        return m;
}

TEST_CASE(modules)
{
        const scenario rows[] = {
                {"a parametrization", .between = normalise, .ordinary = 6},
                {"a layer", .between = append, .ordinary = 6},
                {"another layer", .between = replace, .ordinary = 6},
                {"a list", .network = list_network, .step = run_list, .between = append, .ordinary = 6},
                {"mode", .step = reads_mode, .between = turn_mode, .ordinary = 6},
                {"rate", .step = reads_lr, .between = set_lr_once, .ordinary = 6},
                {"norms", .network = spectral_network},
        };
        CHECK_ROWS(rows);
}
