/* test_recorder_resume.c - recorded steps that are saved, stopped, loaded and resumed, and loads between runs. */
#include "recorded.h"

AROUND_TESTS(begin, end);

static lg_module *modal_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 8, 16), lg_nn_dropout(c, 0.3), lg_nn_batch_norm1d(c, 16),
                                lg_nn_gelu(c), lg_nn_linear(c, 16, 3));
}

static void with_cosine(run *r)
{
        r->opt = lg_adamw(r->c, lg_parameters(r->net), 1e-2, .amsgrad = true, .master = true);
        r->schedule = lg_cosine_lr(r->opt, r->steps);
}

static void with_one_cycle(run *r)
{
        r->opt = lg_sgd(r->c, lg_parameters(r->net), 1e-2, .momentum = 0.9);
        r->schedule = lg_one_cycle_lr(r->opt, 0.05, r->steps);
}

static void with_all(run *r)
{
        with_cosine(r);
        r->scaler = lg_scaler_new(r->c, .init_scale = 1e9, .growth_interval = 5);
        r->average = lg_ema_new(r->net, 0.9);
}

static lg_tensor *train_with_all(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = NULL;
        lg_autocast(c, LG_F16) loss = loss_of(r, in);
        update_scaled(r, loss);
        lg_ema_update(r->average);
        return loss;
}

static void with_muon(run *r)
{
        r->opt = lg_muon(r->c, lg_parameters(r->net), 1e-2, .master = true);
        r->schedule = lg_cosine_lr(r->opt, r->steps);
}

/* Half of the steps, then the other half in another context. */
static outcome run_halves(const scenario *s, int steps)
{
        outcome o = {.loss = calloc((size_t)steps, sizeof *o.loss)};
        run r = start_run(s, steps);
        run_steps(&r, false, 0, steps / 2, o.loss);
        assert_true(lg_checkpoint_save(checkpoint_of(&r), path));
        o.replays = lg_recorder_replays(r.recorder);
        lg_close(r.c);
        run next = start_run(s, steps);
        lg_seed(next.c, 99);
        assert_true(lg_checkpoint_load(checkpoint_of(&next), path));
        run_steps(&next, false, steps / 2, steps, o.loss);
        finish_run(&next, &o);
        return o;
}

TEST_CASE(resumed_in_another_context)
{
        const scenario rows[] = {{"cosine", .network = modal_network, .begin = with_cosine},
                                 {"one cycle", .network = modal_network, .begin = with_one_cycle},
                                 {"all", .network = modal_network, .begin = with_all, .step = train_with_all},
                                 {"masters", .begin = with_cosine, .dtype = LG_BF16},
                                 {"Muon", .begin = with_muon, .dtype = LG_F16}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                const int steps = steps_or(20) / 2 * 2;
                outcome a = run_all(&rows[i], true, steps), b = run_halves(&rows[i], steps);
                assert_int_equal(b.replays, steps - 6);
                assert_same_outcome(rows[i].name, a, b, steps);
        }
}

/* ---- loads into objects of a recorder ---- */

static void save_and_load(run *r, int i)
{
        if (i == 6)
                assert_true(lg_checkpoint_save(checkpoint_of(r), path));
        if (i == 10)
                assert_true(lg_checkpoint_load(checkpoint_of(r), path));
}

/* The file has no states yet: a load frees those that there are. */
static void load_the_beginning(run *r, int i)
{
        if (i == 0)
                assert_true(lg_checkpoint_save(checkpoint_of(r), path));
        if (i == 10)
                assert_true(lg_checkpoint_load(checkpoint_of(r), path));
}

static void load_weights(run *r, int i)
{
        if (i == 6)
                assert_true(lg_save(r->net, path));
        if (i == 10 || i == 11 || i == 15)
                assert_true(lg_load(r->net, path));
}

static void write_weights(run *r, int i)
{
        if (i % 3 == 1)
                lg_no_grad(r->c) lg_mul_scalar_(lg_parameter(r->net, "2.weight"), 0.9);
}

/* The parameters of the file have had different numbers of steps, those of the loading optimiser the same. */
static void load_uneven_steps(run *r, int i)
{
        char other[80];
        snprintf(other, sizeof other, "%s.2", path);
        if (i == 0)
                assert_true(lg_checkpoint_save(checkpoint_of(r), path));
        if (i == 3 || i == 6)
                lg_set_requires_grad(lg_parameter(r->net, "0.weight"), i == 6);
        if (i == 9)
                assert_true(lg_checkpoint_save(checkpoint_of(r), other));
        if (i == 10)
                assert_true(lg_checkpoint_load(checkpoint_of(r), path));
        if (i == 15)
                assert_true(lg_checkpoint_load(checkpoint_of(r), other));
        if (i == 15)
                unlink(other);
}

/* Saving a scaler's optimiser takes the skipped steps off. */
static void save_often(run *r, int i)
{
        if (i % 10 == 9)
                assert_true(lg_checkpoint_save(checkpoint_of(r), path));
}

TEST_CASE(loads_between_runs)
{
        const scenario rows[] = {
                {"a checkpoint", .network = modal_network, .begin = with_cosine, .between = save_and_load},
                {"a checkpoint of masters", .begin = with_cosine, .between = save_and_load, .dtype = LG_BF16},
                {"a checkpoint of all", .network = modal_network, .begin = with_all, .step = train_with_all,
                 .between = save_and_load, .ordinary = 9},
                {"no states", .begin = with_cosine, .between = load_the_beginning, .ordinary = 6},
                {"no states of masters", .begin = with_cosine, .between = load_the_beginning, .dtype = LG_F16,
                 .ordinary = 6},
                {"no average", .begin = with_all, .step = train_with_all, .between = load_the_beginning, .ordinary = 6},
                {"uneven steps", .begin = with_cosine, .between = load_uneven_steps, .ordinary = 16},
                {"saves", .begin = with_all, .step = train_with_all, .between = save_often, .ordinary = 7},
                {"weights", .between = load_weights},
                {"weights of masters", .begin = with_cosine, .between = load_weights, .dtype = LG_BF16},
                {"weights of Muon's masters", .begin = with_muon, .between = load_weights, .dtype = LG_F16},
                {"written weights of masters", .begin = with_cosine, .between = write_weights, .dtype = LG_F16},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                assert_recorded(&rows[i], 20);
}
