/* test_schedule.c - schedules against PyTorch (data/schedule.py), and of groups of parameters. */
#include "test.h"

enum { STEPS = 101 };

static double metric(int t)
{
        return fabs(30.0 - t) / 30 + 0.1 * sin(t);
}

static double every_fifth(int64_t step, void *user)
{
        return pow(*(double *)user, (double)(step / 5));
}
static double base = 0.9;

static lg_scheduler *make(lg_optimizer *o, const char *name)
{
        if (!strcmp(name, "step"))
                return lg_step_lr(o, 7, .gamma = 0.5);
        if (!strcmp(name, "multi_step"))
                return lg_multi_step_lr(o, LG_INTS(3, 10, 10, 40), .gamma = 0.3);
        if (!strcmp(name, "exponential"))
                return lg_exponential_lr(o, 0.97);
        if (!strcmp(name, "cosine"))
                return lg_cosine_lr(o, 30, .eta_min = 0.001);
        if (!strcmp(name, "cosine_restarts"))
                return lg_cosine_restarts_lr(o, 7);
        if (!strcmp(name, "cosine_restarts_longer"))
                return lg_cosine_restarts_lr(o, 5, .t_mult = 2, .eta_min = 0.001);
        if (!strcmp(name, "polynomial"))
                return lg_polynomial_lr(o, 30);
        if (!strcmp(name, "polynomial_power"))
                return lg_polynomial_lr(o, 60, .power = 2.5);
        if (!strcmp(name, "multiplicative"))
                return lg_multiplicative_lr(o, every_fifth, &base);
        if (!strcmp(name, "cyclic"))
                return lg_cyclic_lr(o, 0.01, 0.1, .step_size_up = 12);
        if (!strcmp(name, "cyclic_halved"))
                return lg_cyclic_lr(o, 0.01, 0.1, .step_size_up = 5, .step_size_down = 9, .base_momentum = 0.5,
                                    .max_momentum = 0.7, .mode = LG_CYCLIC_TRIANGULAR2);
        if (!strcmp(name, "cyclic_range"))
                return lg_cyclic_lr(o, 0.01, 0.1, .step_size_up = 8, .gamma = 0.97, .mode = LG_CYCLIC_EXP_RANGE,
                                    .no_cycle_momentum = true);
        if (!strcmp(name, "linear"))
                return lg_linear_lr(o, 12);
        if (!strcmp(name, "linear_down"))
                return lg_linear_lr(o, 40, .start_factor = 1, .end_factor = 0.25);
        if (!strcmp(name, "constant"))
                return lg_constant_lr(o, 8, .factor = 0.5);
        if (!strcmp(name, "lambda"))
                return lg_lambda_lr(o, every_fifth, &base);
        if (!strcmp(name, "one_cycle"))
                return lg_one_cycle_lr(o, 0.5, 101);
        if (!strcmp(name, "one_cycle_linear"))
                return lg_one_cycle_lr(o, 0.5, 101, .pct_start = 0.2, .div_factor = 10, .final_div_factor = 100,
                                       .base_momentum = 0.8, .max_momentum = 0.9, .linear = true);
        if (!strcmp(name, "one_cycle_three"))
                return lg_one_cycle_lr(o, 0.5, 101, .no_cycle_momentum = true, .three_phase = true);
        if (!strcmp(name, "plateau"))
                return lg_reduce_on_plateau(o, 0.5, .patience = 4, .cooldown = 2, .min_lr = 1e-4);
        if (!strcmp(name, "plateau_max"))
                return lg_reduce_on_plateau(o, 0.7, .patience = 3, .threshold = 0.01, .max_mode = true,
                                            .absolute_threshold = true);
        if (!strcmp(name, "sequential"))
                return lg_sequential_lr(LG_INTS(10, 70), lg_linear_lr(o, 10), lg_cosine_lr(o, 60),
                                        lg_exponential_lr(o, 0.9));
        if (!strcmp(name, "chained"))
                return lg_chained_lr(lg_constant_lr(o, 5, .factor = 0.1), lg_exponential_lr(o, 0.95),
                                     lg_step_lr(o, 20, .gamma = 0.5));
        return NULL;
}

/* Momentum cannot be asked for: with a gradient of one, and none before, a step of SGD tells lr, and two tell both. */
static void check(const char *name, const double *wanted)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *b = lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64, .requires_grad = true);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(a), 0.1, .momentum = 0.9);
        assert_true(lg_add_param_group(opt, LG_LIST(b), .lr = 0.02));
        lg_scheduler *s = make(opt, name);
        double buffer = 0, at = 0;
        if (!s)
                fail_msg("%s: %s", name, lg_error(c) ? lg_error(c) : "there is no such schedule");
        for (int t = 0; t < STEPS; t++) {
                lg_scope scope = lg_scope_begin(c);
                if (t && strstr(name, "plateau"))
                        assert_true(lg_scheduler_step_metric(s, metric(t)));
                else if (t)
                        assert_true(lg_scheduler_step(s));
                const double *w = wanted + 3 * t;
                if (fabs(lg_param_group_lr(opt, 0) - w[0]) > 1e-10 || fabs(lg_param_group_lr(opt, 1) - w[1]) > 1e-10)
                        fail_msg("%s, step %d: %.12g and %.12g are not %.12g and %.12g", name, t,
                                 lg_param_group_lr(opt, 0), lg_param_group_lr(opt, 1), w[0], w[1]);
                lg_backward(lg_sum(a));
                assert_true(lg_step(opt) && lg_zero_grad(opt));
                buffer = t ? w[2] * buffer + 1 : 1;
                at -= w[0] * buffer;
                assert_near(lg_item(a), at, 1e-9);
                lg_scope_end(c, scope);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(hundred_steps_are_pytorchs)
{
        char path[4096], name[40];
        double *wanted = calloc(3 * STEPS, sizeof *wanted);
        const char *folder = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/schedule.txt", folder ? folder : "tests/data");
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        int count = 0;
        while (fscanf(f, "%39s", name) == 1) {
                for (int i = 0; i < 3 * STEPS; i++)
                        assert_int_equal(fscanf(f, "%lf", &wanted[i]), 1);
                check(name, wanted);
                count++;
        }
        fclose(f);
        free(wanted);
        assert_int_equal(count, 23);
}

static lg_optimizer *optimizer(lg_ctx *c)
{
        return lg_sgd(c, LG_LIST(lg_ones(c, LG_SHAPE(2), .requires_grad = true)), 0.1);
}

TEST_CASE(wrong_schedules_are_told)
{
        lg_ctx *c = open_ctx();
        lg_optimizer *opt = optimizer(c), *other = optimizer(c);
        assert_null(lg_step_lr(opt, 0));
        assert_error(c, LG_ERR_ARGUMENT, "step_size is 0");
        assert_null(lg_exponential_lr(opt, -1));
        assert_error(c, LG_ERR_ARGUMENT, "gamma is -1");
        assert_null(lg_multi_step_lr(opt, LG_INTS_OF(3, NULL)));
        assert_error(c, LG_ERR_ARGUMENT, "milestones");
        assert_null(lg_lambda_lr(opt, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "fn is NULL");
        assert_null(lg_one_cycle_lr(opt, 1, 10));
        assert_error(c, LG_ERR_ARGUMENT, "no momentum");
        assert_null(lg_one_cycle_lr(opt, 1, 0, .no_cycle_momentum = true));
        assert_error(c, LG_ERR_ARGUMENT, "total_steps 0");
        assert_null(lg_reduce_on_plateau(opt, 1.5));
        assert_error(c, LG_ERR_ARGUMENT, "factor 1.5");
        assert_near(lg_lr(opt), 0.1, 0); /* nothing was changed */
        lg_scheduler *a = lg_step_lr(opt, 2), *b = lg_step_lr(other, 2), *both[2] = {a, b};
        assert_null(lg_sequential_lr(LG_INTS(5), both[0], both[1]));
        assert_error(c, LG_ERR_ARGUMENT, "not of the same optimiser");
        both[1] = a;
        assert_null(lg_chained_lr(both[0], both[1]));
        assert_error(c, LG_ERR_ARGUMENT, "are the same");
        both[1] = lg_exponential_lr(opt, 0.5);
        assert_null(lg_sequential_lr(LG_INTS(0), both[0], both[1]));
        assert_error(c, LG_ERR_ARGUMENT, "must be above 0");
        lg_scheduler *chain = lg_chained_lr(both[0], both[1]);
        lg_scheduler_free(a);
        assert_error(c, LG_ERR_ARGUMENT, "belongs to another");
        lg_scheduler *plateau = lg_reduce_on_plateau(opt, 0.5),
                     *cycle = lg_one_cycle_lr(opt, 1, 2, .no_cycle_momentum = true);
        assert_false(lg_scheduler_step(plateau));
        assert_error(c, LG_ERR_STATE, "lg_scheduler_step_metric");
        assert_false(lg_scheduler_step_metric(chain, 1));
        assert_error(c, LG_ERR_STATE, "takes no metric");
        assert_false(lg_scheduler_step_metric(cycle, 1));
        assert_error(c, LG_ERR_STATE, "takes no metric");
        assert_true(lg_scheduler_step(cycle) && lg_scheduler_step(cycle));
        assert_false(lg_scheduler_step(cycle));
        assert_error(c, LG_ERR_STATE, "has 2 steps");
        lg_optimizer_free(opt);
        assert_false(lg_scheduler_step(chain));
        assert_error(c, LG_ERR_STATE, "was freed");
        assert_false(lg_scheduler_step_metric(plateau, 1));
        assert_error(c, LG_ERR_STATE, "was freed");
        lg_scheduler_free(chain);
        lg_scheduler_free(NULL);
        assert_false(lg_scheduler_step(NULL));
        lg_close(c);
}

/* A number, or NaN from a step on. */
static double nan_from(int64_t step, void *user)
{
        return step < *(int *)user ? 1 + (double)step : NAN;
}

static double below_zero(int64_t step, void *user)
{
        (void)user;
        return step ? -1 : 1;
}

/* Steps while it can; what cannot be leaves both groups and the schedule where they were, however often it is tried. */
static void assert_ends(lg_ctx *c, lg_optimizer *opt, lg_scheduler *s, int good, const char *message)
{
        assert_ok(c);
        assert_non_null(s);
        for (int i = 0; i < good; i++)
                assert_true(lg_scheduler_step(s));
        double a = lg_param_group_lr(opt, 0), b = lg_param_group_lr(opt, 1);
        for (int i = 0; i < 2; i++) {
                assert_false(lg_scheduler_step(s));
                assert_error(c, LG_ERR_ARGUMENT, message);
                assert_true(lg_param_group_lr(opt, 0) == a && lg_param_group_lr(opt, 1) == b);
        }
        lg_scheduler_free(s);
        lg_set_lr(opt, 0.1);
}

TEST_CASE(rates_that_cannot_be_are_refused)
{
        lg_ctx *c = open_ctx();
        int first = 0, third = 3;
        lg_optimizer *opt = optimizer(c);
        assert_true(lg_add_param_group(opt, LG_LIST(lg_ones(c, LG_SHAPE(1), .requires_grad = true)), .lr = 1e-300));
        assert_null(lg_lambda_lr(opt, nan_from, &first));
        assert_error(c, LG_ERR_ARGUMENT, "lg_lambda_lr: lr of group 0 would be nan at step 0");
        assert_null(lg_one_cycle_lr(opt, 1, 10, .div_factor = 1e-320, .no_cycle_momentum = true));
        assert_error(c, LG_ERR_ARGUMENT, "lg_one_cycle_lr: lr of group 0 would be inf");
        assert_near(lg_param_group_lr(opt, 0), 0.1, 0);
        assert_near(lg_param_group_lr(opt, 1), 1e-300, 0);
        lg_set_lr(opt, 0.2); /* what failed has no first rates: those of now count */
        lg_scheduler *l = lg_lambda_lr(opt, nan_from, &third);
        assert_near(lg_param_group_lr(opt, 1), 0.2, 0);
        assert_ends(c, opt, l, 2, "lg_lambda_lr: lr of group 0 would be nan at step 3");
        assert_ends(c, opt, lg_lambda_lr(opt, below_zero, NULL), 0, "would be -0.2 at step 1");
        assert_ends(c, opt, lg_exponential_lr(opt, 1e300), 1,
                    "lg_exponential_lr: lr of group 0 would be inf at step 2");
        lg_set_param_group_lr(opt, 1, 1e10); /* group 1 alone fails */
        assert_ends(c, opt, lg_step_lr(opt, 1, .gamma = 1e150), 1, "lg_step_lr: lr of group 1 would be inf at step 2");
        lg_close(c);
}

/* The rates and the places of schedules inside others. */
TEST_CASE(schedules_of_schedules_go_back)
{
        lg_ctx *c = open_ctx();
        int third = 3;
        lg_optimizer *opt = optimizer(c);
        assert_true(lg_add_param_group(opt, LG_LIST(lg_ones(c, LG_SHAPE(1), .requires_grad = true)), .lr = 0.1));
        lg_scheduler *list[2] = {lg_step_lr(opt, 3, .gamma = 0.5), lg_exponential_lr(opt, 1e100)};
        /* the first one's third step, which would halve the rates, is undone with the second one's */
        lg_set_lr(opt, 1e-100);
        lg_scheduler *chain = lg_chained_lr(list[0], list[1]);
        assert_true(lg_scheduler_step(chain));
        lg_set_lr(opt, 1e-100);
        assert_true(lg_scheduler_step(chain));
        lg_set_lr(opt, 1e300);
        assert_false(lg_scheduler_step(chain));
        assert_error(c, LG_ERR_ARGUMENT, "lg_exponential_lr: lr of group 0 would be inf at step 3");
        assert_near(lg_lr(opt), 1e300, 0);
        lg_set_lr(opt, 1e-100);
        assert_true(lg_scheduler_step(chain)); /* the third step, and not the fourth */
        assert_near(lg_lr(opt), 0.5, 1e-12);
        lg_scheduler_free(chain);
        lg_set_lr(opt, 0.1);
        list[0] = lg_step_lr(opt, 100);
        list[1] = lg_lambda_lr(opt, nan_from, &third);
        lg_scheduler *sequence = lg_sequential_lr(LG_INTS(2), list[0], list[1]);
        assert_ends(c, opt, sequence, 4, "lg_lambda_lr: lr of group 0 would be nan at step 3");
        third = 1;
        list[0] = lg_lambda_lr(opt, nan_from, &third);
        third = 0;
        assert_non_null(list[0]);
        assert_null(lg_sequential_lr(LG_INTS_OF(0, NULL), list[0]));
        assert_error(c, LG_ERR_ARGUMENT, "lg_lambda_lr: lr of group 0 would be nan at step 0");
        third = 3; /* it is still the caller's */
        assert_true(lg_scheduler_step(list[0]));
        assert_near(lg_lr(opt), 0.2, 1e-15);
        lg_scheduler_free(list[0]);
        lg_close(c);
}

/* A linear rate that ends at 0 must not round below it; a cycle without a rise begins at its top, and the step after
 * its last batch stays at the end. */
typedef struct inner {
        lg_ctx *c;
        lg_optimizer *opt;
        lg_scheduler *s; /* is stepped in the lambda, once */
        bool make;       /* makes a schedule */
        double group_lr; /* adds a group of this rate, if above 0 */
        double factor;   /* is returned */
} inner;

static double works_inside(int64_t step, void *user)
{
        inner *in = user;
        lg_scheduler *s = in->s;
        in->s = NULL;
        if (step && s)
                lg_scheduler_step(s);
        if (step && in->make)
                drop(lg_step_lr(in->opt, 1));
        if (step && in->group_lr > 0)
                lg_add_param_group(in->opt, LG_LIST(lg_ones(in->c, LG_SHAPE(1), .requires_grad = true)),
                                   .lr = in->group_lr);
        return in->factor;
}

/* A group that a lambda adds keeps the rate it was added with where the step fails; and no schedule of the optimiser
 * begins or steps in a lambda, which would change what a failed step goes back to. */
TEST_CASE(lambdas_work_on_their_optimiser)
{
        lg_ctx *c = open_ctx();
        inner in = {.c = c, .opt = optimizer(c), .factor = 1};
        lg_scheduler *lambda = lg_lambda_lr(in.opt, works_inside, &in), *other = lg_step_lr(in.opt, 1);
        in.group_lr = 0.02;
        in.factor = NAN;
        assert_false(lg_scheduler_step(lambda));
        assert_error(c, LG_ERR_ARGUMENT, "would be nan");
        assert_int_equal(lg_param_group_count(in.opt), 2);
        assert_near(lg_param_group_lr(in.opt, 0), 0.1, 0);
        assert_near(lg_param_group_lr(in.opt, 1), 0.02, 0);
        in.group_lr = 0;
        in.factor = 1;
        lg_scheduler *const steps[] = {lambda, other};
        for (int i = 0; i < 2; i++) {
                in.s = steps[i];
                assert_false(lg_scheduler_step(lambda));
                assert_error(c, LG_ERR_STATE, "lg_scheduler_step: a call that uses the optimiser has not returned");
                assert_near(lg_param_group_lr(in.opt, 0), 0.1, 0);
        }
        in.make = true;
        assert_false(lg_scheduler_step(lambda));
        assert_error(c, LG_ERR_STATE, "lg_step_lr: a call that uses the optimiser has not returned");
        in.make = false;
        assert_true(lg_scheduler_step(lambda) && lg_scheduler_step(other));
        assert_near(lg_param_group_lr(in.opt, 0), 0.01, 1e-12);
        lg_close(c);
}

TEST_CASE(rates_end_at_zero)
{
        lg_ctx *c = open_ctx();
        for (int total = 1; total < 60; total++) {
                lg_optimizer *opt = optimizer(c);
                lg_scheduler *s = lg_linear_lr(opt, total, .end_factor = LG_ZERO);
                for (int i = 0; i < total + 2; i++)
                        assert_true(lg_scheduler_step(s));
                assert_near(lg_lr(opt), 0, 1e-16);
                assert_false(lg_lr(opt) < 0);
        }
        lg_optimizer *opt = optimizer(c);
        lg_scheduler *s = lg_one_cycle_lr(opt, 1, 10, .pct_start = 0.1, .linear = true, .no_cycle_momentum = true);
        assert_ok(c);
        assert_near(lg_lr(opt), 1, 0);
        for (int i = 0; i < 10; i++)
                assert_true(lg_scheduler_step(s));
        assert_near(lg_lr(opt), 1 / 25e4, 1e-15);
        assert_null(lg_one_cycle_lr(opt, INFINITY, 10, .no_cycle_momentum = true));
        assert_error(c, LG_ERR_ARGUMENT, "max_lr finite");
        const double wrong[] = {NAN, INFINITY, -1};
        for (int i = 0; i < 3; i++) {
                assert_null(lg_cosine_lr(opt, 10, .eta_min = wrong[i]));
                assert_error(c, LG_ERR_ARGUMENT, "lg_cosine_lr: eta_min is");
        }
        s = lg_cosine_lr(opt, INT64_MAX);
        assert_true(lg_scheduler_step(s) && lg_lr(opt) > 0);
        lg_close(c);
}

static void assert_rate(lg_optimizer *opt, double wanted)
{
        assert_near(lg_lr(opt) / wanted, 1, 1e-12);
}

/* Rates do not drift from the formulas in a long run. */
TEST_CASE(a_million_steps_are_the_formula)
{
        lg_ctx *c = open_ctx();
        lg_optimizer *one = optimizer(c), *two = optimizer(c), *both = optimizer(c);
        lg_scheduler *cosine = lg_cosine_lr(one, 30000, .eta_min = 1e-3), *decay = lg_exponential_lr(two, 0.99999);
        lg_scheduler *chain = lg_chained_lr(lg_exponential_lr(both, 0.99999), lg_step_lr(both, 300000));
        for (int64_t t = 1; t <= 1000000; t++) {
                assert_true(lg_scheduler_step(cosine) && lg_scheduler_step(decay) && lg_scheduler_step(chain));
                if (t % 9973)
                        continue;
                assert_rate(one, 1e-3 + 0.099 * (1 + cos(M_PI * (double)t / 30000)) / 2);
                assert_rate(two, 0.1 * pow(0.99999, (double)t));
                assert_rate(both, 0.1 * pow(0.99999, (double)t) * pow(0.1, (double)(t / 300000)));
        }
        lg_close(c);
}

/* So do the factors of schedules that are stepped alone, of a plateau and of the program. */
TEST_CASE(factors_multiply)
{
        lg_ctx *c = open_ctx();
        lg_optimizer *opt = optimizer(c);
        lg_scheduler *warm = lg_linear_lr(opt, 10), *decay = lg_cosine_lr(opt, 100);
        lg_scheduler *plateau = lg_reduce_on_plateau(opt, 0.5, .patience = 3);
        double factor = 1;
        for (int t = 1; t < 60; t++) {
                assert_true(lg_scheduler_step(warm) && lg_scheduler_step(decay));
                assert_true(lg_scheduler_step_metric(plateau, 1));
                factor *= t > 1 && (t - 1) % 4 == 0 ? 0.5 : 1; /* after the fourth step without improvement */
                if (t == 30) {
                        assert_true(lg_set_lr(opt, lg_lr(opt) * 3));
                        factor *= 3;
                }
                assert_rate(opt, factor * 0.1 * (1 + 2 * fmin(t / 10.0, 1)) / 3 * (1 + cos(M_PI * t / 100.0)) / 2);
        }
        /* what is above eta_min is multiplied, until the formula gets there */
        opt = optimizer(c);
        decay = lg_cosine_lr(opt, 20, .eta_min = 0.01);
        for (int t = 1; t < 30; t++) {
                assert_true(lg_scheduler_step(decay));
                if (t == 10)
                        assert_true(lg_set_lr(opt, 0.21));
                assert_rate(opt, 0.01 + (t >= 10 && t < 20 ? 0.2 : 0.045) * (1 + cos(M_PI * t / 20.0)));
        }
        lg_close(c);
}

/* Within a sequence, one cycle and chained schedules begin with the rates and the momentum of their step 0. */
TEST_CASE(any_schedule_begins_in_turn)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64, .requires_grad = true);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(w), 0.1, .momentum = 0.5);
        lg_scheduler *chain = lg_chained_lr(lg_constant_lr(opt, 2, .factor = 0.5), lg_exponential_lr(opt, 0.9));
        lg_scheduler *s = lg_sequential_lr(LG_INTS(2, 5), lg_linear_lr(opt, 2), chain,
                                           lg_one_cycle_lr(opt, 1, 10, .div_factor = 10, .max_momentum = 0.75));
        const double wanted[] = {0.1 / 3, 0.2 / 3, 0.05, 0.045, 0.081, 0.1};
        for (int t = 0; t < 6; t++) {
                assert_true(t == 0 || lg_scheduler_step(s));
                assert_rate(opt, wanted[t]);
        }
        for (int i = 0; i < 2; i++) {
                lg_zero_grad(opt);
                lg_backward(lg_sum(w));
                assert_true(lg_step(opt));
        }
        assert_near(lg_item(w), -0.1 * (1 + 1.75), 1e-12);
        lg_close(c);
}

TEST_CASE(schedules_nest_to_a_limit)
{
        lg_ctx *c = open_ctx();
        lg_optimizer *opt = lg_sgd(c, LG_LIST(lg_zeros(c, LG_SHAPE(1), .requires_grad = true)), 1);
        lg_scheduler *s = lg_exponential_lr(opt, 0.5), *outer = s;
        int levels = 0;
        for (; outer && levels < 1000; levels += outer != NULL)
                if ((outer = lg_chained_lr(s)))
                        s = outer;
        assert_int_equal(levels, 32);
        assert_error(c, LG_ERR_ARGUMENT, "lg_chained_lr: schedules nest more than 32 levels deep");
        assert_null(lg_sequential_lr(LG_INTS_OF(0, NULL), s));
        assert_error(c, LG_ERR_ARGUMENT, "lg_sequential_lr");
        assert_true(lg_scheduler_step(s)); /* still the caller's, and whole */
        assert_near(lg_lr(opt), 0.5, 0);
        lg_scheduler_free(s);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(groups)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 2), lg_nn_linear(c, 2, 1));
        assert_int_equal(lg_parameters_matching(net, "*.bias").count, 2);
        assert_int_equal(lg_parameters_matching(net, "!*.bias").count, 2);
        assert_ptr_equal(lg_parameters_matching(net, "1.*").items[0], lg_parameter(net, "1.weight"));
        assert_int_equal(lg_parameters_matching(net, "nothing").count, 0);
        lg_list biases = lg_parameters_matching(net, "*.bias");
        assert_ptr_equal(biases.items, lg_parameters_matching(net, "*.bias").items);
        lg_optimizer *opt = lg_sgd(c, lg_parameters_matching(net, "!*.bias"), 1, .weight_decay = 0.5);
        assert_true(lg_add_param_group(opt, biases, .lr = 0.25, .weight_decay = LG_ZERO));
        assert_int_equal(lg_param_group_count(opt), 2);
        assert_near(lg_param_group_lr(opt, 1), 0.25, 0);
        double w[4], b[2], v[4];
        read_all(lg_parameter(net, "0.weight"), w, 4);
        read_all(lg_parameter(net, "0.bias"), b, 2);
        lg_backward(lg_add(lg_sum(lg_parameter(net, "0.weight")), lg_sum(lg_parameter(net, "0.bias"))));
        assert_true(lg_step(opt));
        read_all(lg_parameter(net, "0.weight"), v, 4);
        for (int i = 0; i < 4; i++)
                assert_near(v[i], w[i] - (1 + 0.5 * w[i]), 1e-6);
        read_all(lg_parameter(net, "0.bias"), v, 2);
        for (int i = 0; i < 2; i++)
                assert_near(v[i], b[i] - 0.25, 1e-6);
        assert_false(lg_add_param_group(opt, LG_LIST(lg_parameter(net, "0.bias"))));
        assert_error(c, LG_ERR_ARGUMENT, "in group 1 already");
        assert_false(lg_set_param_group_lr(opt, 2, 1));
        assert_error(c, LG_ERR_ARGUMENT, "no group 2");
        assert_true(lg_set_param_group_lr(opt, 1, 3) && lg_param_group_lr(opt, 1) == 3 && lg_lr(opt) == 1);
        assert_true(lg_set_lr(opt, 2) && lg_param_group_lr(opt, 1) == 2);
        assert_true(isnan(lg_param_group_lr(opt, 9)));
        assert_int_equal(lg_parameters_matching(net, NULL).count, 0);
        assert_error(c, LG_ERR_ARGUMENT, "pattern");
        lg_close(c);
}
