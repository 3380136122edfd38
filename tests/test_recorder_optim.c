/* test_recorder_optim.c - recorded steps of every optimiser, with its options, 16-bit parameters and numbers that move.
 */
#include "recorded.h"

AROUND_TESTS(begin, end);

typedef struct optimiser {
        lg_optimizer *(*make)(lg_ctx *c, lg_list params);
        bool decays; /* groups have a weight_decay */
        bool cycles; /* and momentum or betas */
} optimiser;

#define MAKE(function, name, lr, ...)                                                                                  \
        static lg_optimizer *name(lg_ctx *c, lg_list params)                                                           \
        {                                                                                                              \
                return lg_##function(c, params, lr, .master = true, __VA_ARGS__);                                      \
        }
MAKE(sgd, sgd, 5e-2, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true)
MAKE(sgd, sgd_dampened, 5e-2, .momentum = 0.9, .dampening = 0.1, .maximize = true)
MAKE(adam, adam, 1e-2, .weight_decay = 0.01, .amsgrad = true)
MAKE(adam, adam_decoupled, 1e-2, .weight_decay = 0.01, .decoupled = true)
MAKE(adamw, adamw, 1e-2, .weight_decay = 0.05, .amsgrad = true)
MAKE(adamax, adamax, 1e-2, .weight_decay = 0.01)
MAKE(rmsprop, rmsprop, 1e-3, .weight_decay = 0.01, .momentum = 0.9, .centered = true)
MAKE(adagrad, adagrad, 1e-2, .lr_decay = 0.01, .weight_decay = 0.01, .initial_accumulator_value = 0.1)
MAKE(adadelta, adadelta, 1, .weight_decay = 0.01)
MAKE(nadam, nadam, 1e-2, .weight_decay = 0.01, .decoupled = true)
MAKE(radam, radam, 1e-2, .weight_decay = 0.01, .decoupled = true)
MAKE(asgd, asgd, 1e-2, .t0 = 4, .weight_decay = 0.01)
MAKE(rprop, rprop, 1e-2, .eta_plus = 1.1)
MAKE(lion, lion, 1e-3, .weight_decay = 0.01)
MAKE(lamb, lamb, 1e-2, .weight_decay = 0.01)
MAKE(adafactor, adafactor, 1e-2, .weight_decay = 0.01)
MAKE(muon, muon, 1e-2, .weight_decay = 0.01)
MAKE(muon, muon_matched, 1e-2, .adjust_lr = LG_MUON_MATCH_RMS_ADAMW, .no_nesterov = true)

static const struct {
        const char *name;
        optimiser of;
} optimisers[] = {{"SGD", {sgd, true, true}},
                  {"SGD, dampened", {sgd_dampened, true, true}},
                  {"Adam", {adam, true, true}},
                  {"Adam, decoupled", {adam_decoupled, true, true}},
                  {"AdamW", {adamw, true, true}},
                  {"Adamax", {adamax, true, true}},
                  {"RMSprop", {rmsprop, true, true}},
                  {"Adagrad", {adagrad, true, false}},
                  {"Adadelta", {adadelta, true, false}},
                  {"NAdam", {nadam, true, true}},
                  {"RAdam", {radam, true, true}},
                  {"ASGD", {asgd, true, false}},
                  {"Rprop", {rprop, false, false}},
                  {"Lion", {lion, true, true}},
                  {"LAMB", {lamb, true, true}},
                  {"Adafactor", {adafactor, true, false}},
                  {"Muon", {muon, true, true}},
                  {"Muon, matched", {muon_matched, true, true}}};

static void with_groups(run *r)
{
        const optimiser *o = r->of->with;
        r->opt = o->make(r->c, lg_parameters_matching(r->net, "*.weight"));
        lg_add_param_group(r->opt, lg_parameters_matching(r->net, "*.bias"), .lr = 3 * lg_lr(r->opt),
                           .weight_decay = o->decays ? 0.02 : 0);
}

static void with_schedule(run *r)
{
        const optimiser *o = r->of->with;
        with_groups(r);
        r->schedule = o->cycles ? lg_one_cycle_lr(r->opt, 0.02, r->steps) : lg_cosine_lr(r->opt, r->steps);
}

/* Moves the rate of one group in most runs, and those of both in some. */
static void move_rates(run *r, int i)
{
        if (i % 5 == 4)
                lg_set_lr(r->opt, 1e-3 * (1 + i % 7));
        else if (i % 5)
                lg_set_param_group_lr(r->opt, i % 2, 1e-3 * (1 + i % 7));
}

static void check_optimiser(size_t i, lg_dtype dtype, void (*make)(run *r), void (*between)(run *r, int i))
{
        const scenario s = {.name = optimisers[i].name,
                            .begin = make,
                            .between = between,
                            .dtype = dtype,
                            .with = &optimisers[i].of};
        assert_recorded(&s, steps_or(8));
}

#define COUNT (sizeof optimisers / sizeof *optimisers)

TEST_CASE(rates_that_are_set)
{
        for (size_t i = 0; i < COUNT; i++)
                check_optimiser(i, LG_F32, with_groups, move_rates);
}

TEST_CASE(schedules)
{
        for (size_t i = 0; i < COUNT; i++)
                check_optimiser(i, LG_F32, with_schedule, NULL);
}

static void halve(lg_ctx *c, lg_tensor *w)
{
        lg_no_grad(c) lg_mul_scalar_(w, 0.5);
}

/* Changes 16-bit weights in the step, before and after the optimiser, which then updates their masters. */
static lg_tensor *train_and_halve(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = loss_of(r, in);
        lg_zero_grad(r->opt);
        lg_backward(loss);
        halve(c, lg_parameter(r->net, "0.weight"));
        lg_step(r->opt);
        halve(c, lg_parameter(r->net, "2.weight"));
        return loss;
}

static void halve_third(run *r, int i)
{
        if (i % 3 == 1)
                halve(r->c, lg_parameter(r->net, "4.weight"));
}

TEST_CASE(masters_of_weights_that_the_step_changes)
{
        const scenario s = {.name = "halved",
                            .begin = with_groups,
                            .step = train_and_halve,
                            .between = halve_third,
                            .dtype = LG_BF16,
                            .with = &optimisers[2].of};
        assert_recorded(&s, 20);
}

/* Each optimiser with one other dtype, or with all if the number of steps is given. */
TEST_CASE(parameters_of_other_dtypes)
{
        const lg_dtype dtypes[] = {LG_F16, LG_BF16, LG_F64};
        for (size_t i = 0; i < COUNT; i++)
                for (size_t d = 0; d < 3; d++)
                        if (getenv("LG_RECORDED_STEPS") || d == i % 3)
                                check_optimiser(i, dtypes[d], with_groups, move_rates);
}
