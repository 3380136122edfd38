/* test_groups.c - groups of an optimiser with numbers of their own: each is updated as an optimiser of these numbers
 * alone would. */
#include "test.h"

#define N 5
#define STEPS 6

static lg_tensor *start(lg_ctx *c)
{
        return lg_from(c, ((double[N]){0.5, -1, 2, 0.25, -3}), LG_SHAPE(N), .requires_grad = true);
}

static void set_gradients(lg_ctx *c, lg_tensor *const *p, int count, int step)
{
        for (int i = 0; i < count; i++) {
                lg_clear_grad(p[i]);
                lg_backward(lg_sum(lg_mul(lg_sin(p[i]), lg_scalar(c, 1 + step, .dtype = LG_F64))));
        }
}

typedef lg_optimizer *make_fn(lg_ctx *c, lg_list p, int group);
typedef bool add_fn(lg_optimizer *opt, lg_list p);

static lg_optimizer *sgd(lg_ctx *c, lg_list p, int group)
{
        return group == 0   ? lg_sgd(c, p, 0.1, .momentum = 0.9, .weight_decay = 0.01)
               : group == 1 ? lg_sgd(c, p, 0.1, .momentum = 0.5, .weight_decay = 0.01)
                            : lg_sgd(c, p, 0.2);
}

static bool sgd_more(lg_optimizer *opt, lg_list p)
{
        return lg_add_param_group(opt, LG_LIST(p.items[0]), .momentum = 0.5) &&
               lg_add_param_group(opt, LG_LIST(p.items[1]), .lr = 0.2, .weight_decay = LG_ZERO, .momentum = LG_ZERO);
}

static lg_optimizer *adam(lg_ctx *c, lg_list p, int group)
{
        return group == 0   ? lg_adam(c, p, 0.1, .weight_decay = 0.1)
               : group == 1 ? lg_adam(c, p, 0.1, .beta1 = 0.5, .beta2 = 0.8, .weight_decay = 0.1)
                            : lg_adam(c, p, 0.01, .beta1 = LG_ZERO, .eps = 0.1, .weight_decay = 0.1);
}

static bool adam_more(lg_optimizer *opt, lg_list p)
{
        return lg_add_param_group(opt, LG_LIST(p.items[0]), .beta1 = 0.5, .beta2 = 0.8) &&
               lg_add_param_group(opt, LG_LIST(p.items[1]), .lr = 0.01, .beta1 = LG_ZERO, .eps = 0.1);
}

static lg_optimizer *rmsprop(lg_ctx *c, lg_list p, int group)
{
        return group == 0   ? lg_rmsprop(c, p, 0.01, .centered = true)
               : group == 1 ? lg_rmsprop(c, p, 0.01, .momentum = 0.9, .centered = true)
                            : lg_rmsprop(c, p, 0.01, .eps = 0.1, .centered = true);
}

static bool rmsprop_more(lg_optimizer *opt, lg_list p)
{
        return lg_add_param_group(opt, LG_LIST(p.items[0]), .momentum = 0.9) &&
               lg_add_param_group(opt, LG_LIST(p.items[1]), .eps = 0.1);
}

static lg_optimizer *adagrad(lg_ctx *c, lg_list p, int group)
{
        return group == 2 ? lg_adagrad(c, p, 0.1, .eps = 0.5, .lr_decay = 0.1)
                          : lg_adagrad(c, p, group ? 0.3 : 0.1, .lr_decay = 0.1);
}

static bool adagrad_more(lg_optimizer *opt, lg_list p)
{
        return lg_add_param_group(opt, LG_LIST(p.items[0]), .lr = 0.3) &&
               lg_add_param_group(opt, LG_LIST(p.items[1]), .eps = 0.5);
}

static lg_optimizer *adadelta(lg_ctx *c, lg_list p, int group)
{
        return group == 2 ? lg_adadelta(c, p, 1, .rho = 0.8, .eps = 0.5)
                          : lg_adadelta(c, p, group ? 0.3 : 1, .rho = 0.8, .weight_decay = group ? 0.1 : 0);
}

static bool adadelta_more(lg_optimizer *opt, lg_list p)
{
        return lg_add_param_group(opt, LG_LIST(p.items[0]), .lr = 0.3, .weight_decay = 0.1) &&
               lg_add_param_group(opt, LG_LIST(p.items[1]), .eps = 0.5);
}

TEST_CASE(each_group_as_an_optimiser_of_its_own)
{
        const struct {
                make_fn *make;
                add_fn *add;
        } rows[] = {{sgd, sgd_more},
                    {adam, adam_more},
                    {rmsprop, rmsprop_more},
                    {adagrad, adagrad_more},
                    {adadelta, adadelta_more}};
        lg_ctx *c = open_ctx();
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                lg_tensor *together[3], *alone[3];
                lg_optimizer *opts[3];
                for (int i = 0; i < 3; i++) {
                        together[i] = start(c);
                        alone[i] = start(c);
                        opts[i] = rows[r].make(c, LG_LIST(alone[i]), i);
                }
                lg_optimizer *opt = rows[r].make(c, LG_LIST(together[0]), 0);
                assert_true(rows[r].add(opt, LG_LIST_OF(2, together + 1)));
                assert_int_equal(lg_param_group_count(opt), 3);
                for (int step = 0; step < STEPS; step++) {
                        set_gradients(c, together, 3, step);
                        set_gradients(c, alone, 3, step);
                        assert_true(lg_step(opt));
                        for (int i = 0; i < 3; i++)
                                assert_true(lg_step(opts[i]));
                }
                for (int i = 0; i < 3; i++) {
                        double ref[N];
                        read_all(alone[i], ref, N);
                        assert_values(together[i], ref, N, 1e-15);
                }
                double a[N], b[N];
                read_all(together[0], a, N);
                read_all(together[1], b, N);
                assert_memory_not_equal(a, b, sizeof a); /* they do differ */
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(numbers_that_an_optimiser_has_not)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = start(c), *more = start(c);
        lg_optimizer *opt = lg_adam(c, LG_LIST(p), 0.1);
        assert_false(lg_add_param_group(opt, LG_LIST(more), .momentum = 0.9));
        assert_error(c, LG_ERR_ARGUMENT, "lg_add_param_group: .momentum is given, but lg_adam has no momentum");
        assert_false(lg_add_param_group(opt, LG_LIST(more), .beta1 = 1));
        assert_error(c, LG_ERR_ARGUMENT, "beta1");
        assert_false(lg_add_param_group(opt, LG_LIST(more), .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "eps");
        opt = lg_sgd(c, LG_LIST(p), 0.1, .momentum = 0.9, .nesterov = true);
        assert_false(lg_add_param_group(opt, LG_LIST(more), .beta1 = 0.9));
        assert_error(c, LG_ERR_ARGUMENT, ".beta1 is given, but lg_sgd has no beta1");
        assert_false(lg_add_param_group(opt, LG_LIST(more), .eps = 1e-3));
        assert_error(c, LG_ERR_ARGUMENT, ".eps is given, but lg_sgd has no eps");
        assert_false(lg_add_param_group(opt, LG_LIST(more), .momentum = LG_ZERO));
        assert_error(c, LG_ERR_ARGUMENT, "nesterov");
        assert_int_equal(lg_param_group_count(opt), 1);
        assert_true(lg_add_param_group(opt, LG_LIST(more), .momentum = 0.5));
        lg_close(c);
}

/* Every group's momentum is cycled between the same bounds, and stays its own where it is not. */
TEST_CASE(one_cycle_over_groups)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p[2] = {start(c), start(c)}, *alone[2] = {start(c), start(c)};
        lg_optimizer *opt = lg_adam(c, LG_LIST(p[0]), 0.1), *first = lg_adam(c, LG_LIST(alone[0]), 0.1),
                     *second = lg_adam(c, LG_LIST(alone[1]), 0.1, .beta1 = 0.5, .eps = 1e-3);
        lg_add_param_group(opt, LG_LIST(p[1]), .beta1 = 0.5, .eps = 1e-3);
        lg_scheduler *s[3] = {lg_one_cycle_lr(opt, 0.2, STEPS), lg_one_cycle_lr(first, 0.2, STEPS),
                              lg_one_cycle_lr(second, 0.2, STEPS)};
        for (int step = 0; step < STEPS; step++) {
                set_gradients(c, p, 2, step);
                set_gradients(c, alone, 2, step);
                assert_true(lg_step(opt) && lg_step(first) && lg_step(second));
                for (int i = 0; i < 3; i++)
                        assert_true(lg_scheduler_step(s[i]));
        }
        for (int i = 0; i < 2; i++) {
                double ref[N];
                read_all(alone[i], ref, N);
                assert_values(p[i], ref, N, 1e-15);
        }
        lg_optimizer *plain = lg_sgd(c, LG_LIST(p[0]), 0.1, .momentum = 0.9);
        lg_add_param_group(plain, LG_LIST(p[1]), .momentum = LG_ZERO);
        assert_null(lg_one_cycle_lr(plain, 0.2, STEPS));
        assert_error(c, LG_ERR_ARGUMENT, "group 1 of the optimiser has no momentum to be cycled");
        assert_non_null(lg_one_cycle_lr(plain, 0.2, STEPS, .no_cycle_momentum = true));
        lg_close(c);
}
