/* test_lbfgs.c - L-BFGS against PyTorch (data/lbfgs.py), and steps by a function that computes the loss. */
#include "failing.h"
#include "temporary.h"

/* The problem of data/lbfgs.py. */
typedef struct problem {
        lg_ctx *c;
        lg_tensor *a, *b;
        bool maximize;
        double bend;        /* 0: 100 */
        int calls, fail_at; /* the number of calls, and the call that fails */
} problem;

static problem make(lg_dtype dtype)
{
        double v[8];
        for (int i = 0; i < 8; i++)
                v[i] = sin(i + 1);
        problem p = {.c = open_ctx()};
        p.a = lg_set_requires_grad(lg_cast(lg_from(p.c, v, LG_SHAPE(2, 3), .dtype = LG_F64), dtype), true);
        p.b = lg_set_requires_grad(lg_cast(lg_from(p.c, v + 6, LG_SHAPE(2), .dtype = LG_F64), dtype), true);
        return p;
}

static lg_tensor *rosenbrock(lg_ctx *c, void *user)
{
        problem *k = user;
        if (++k->calls == k->fail_at)
                return lg_set_error(c, LG_ERR_ARGUMENT, "call %d fails", k->calls), NULL;
        lg_tensor *p = lg_cat(LG_LIST(lg_reshape(k->a, LG_SHAPE(6)), k->b), 0);
        lg_tensor *low = lg_slice(p, 0, 0, 7), *high = lg_slice(p, 0, 1, 8);
        lg_tensor *bend = lg_square(lg_sub(high, lg_square(low))), *rest = lg_square(lg_rsub_scalar(low, 1));
        lg_tensor *loss = lg_sum(lg_add(lg_mul_scalar(bend, k->bend != 0 ? k->bend : 100), rest));
        return k->maximize ? lg_neg(loss) : loss;
}

static lg_optimizer *variant(problem *p, const char *name)
{
        lg_ctx *c = p->c;
        const lg_list list = {2, (lg_tensor *[]){p->a, p->b}};
        p->maximize = !strcmp(name, "wolfe_maximize");
        p->bend = strncmp(name, "plain", 5) ? 100 : 1;
        if (!strcmp(name, "plain"))
                return lg_lbfgs(c, list, 0.2, .max_iter = 4);
        if (!strcmp(name, "plain_short"))
                return lg_lbfgs(c, list, 0.1, .max_iter = 3, .history_size = 2);
        if (!strcmp(name, "plain_calls"))
                return lg_lbfgs(c, list, 0.05, .max_iter = 10, .max_eval = 6);
        if (!strcmp(name, "wolfe"))
                return lg_lbfgs(c, list, 1, .max_iter = 4, .strong_wolfe = true);
        if (!strcmp(name, "wolfe_short"))
                return lg_lbfgs(c, list, 0.5, .max_iter = 2, .history_size = 3, .strong_wolfe = true);
        if (!strcmp(name, "wolfe_calls"))
                return lg_lbfgs(c, list, 5, .max_iter = 10, .max_eval = 4, .strong_wolfe = true);
        if (!strcmp(name, "wolfe_maximize"))
                return lg_lbfgs(c, list, 1, .max_iter = 4, .strong_wolfe = true, .maximize = true);
        if (!strcmp(name, "wolfe_tolerant"))
                return lg_lbfgs(c, list, 1, .max_iter = 50, .tolerance_grad = 1e-2, .tolerance_change = 1e-4,
                                .strong_wolfe = true);
        assert_string_equal(name, "wolfe_default");
        return lg_lbfgs(c, list, 1, .strong_wolfe = true);
}

TEST_CASE(steps_are_pytorchs)
{
        char file[4096], name[40], now[40] = "";
        const char *folder = getenv("LG_TEST_DATA");
        double ref[9], loss;
        int step, done = 0, lines = 0;
        problem p = {.c = NULL};
        lg_optimizer *opt = NULL;
        snprintf(file, sizeof file, "%s/lbfgs.txt", folder ? folder : "tests/data");
        FILE *f = fopen(file, "r");
        assert_non_null(f);
        for (; fscanf(f, "%39s %d", name, &step) == 2; lines++) {
                for (int i = 0; i < 9; i++)
                        assert_int_equal(fscanf(f, "%lf", &ref[i]), 1);
                if (strcmp(now, name)) {
                        lg_close(p.c);
                        p = make(LG_F64);
                        opt = variant(&p, name);
                        done = 0;
                        strcpy(now, name);
                }
                for (; done < step; done++)
                        assert_true(lg_step_closure(opt, rosenbrock, &p, &loss));
                assert_near(loss, ref[0], 1e-9 * fmax(1, fabs(ref[0])));
                assert_values(p.a, ref + 1, 6, 1e-9);
                assert_values(p.b, ref + 7, 2, 1e-9);
        }
        assert_int_equal(lines, 63);
        fclose(f);
        lg_close(p.c);
}

/* In f32, the minimum is found; then one parameter is frozen. */
TEST_CASE(single_precision_converges)
{
        problem p = make(LG_F32);
        lg_optimizer *opt = lg_lbfgs(p.c, LG_LIST(p.a, p.b), 1, .max_iter = 100, .strong_wolfe = true);
        double loss = 1;
        for (int i = 0; i < 5; i++)
                assert_true(lg_step_closure(opt, rosenbrock, &p, &loss));
        assert_true(loss < 1e-8);
        assert_list(p.b, 1e-3, 1, 1);
        double before[6];
        read_all(lg_set_requires_grad(p.a, false), before, 6);
        assert_true(lg_step_closure(opt, rosenbrock, &p, NULL));
        assert_values(p.a, before, 6, 0);
        assert_ok(p.c);
        lg_close(p.c);
}

/* A call that fails, whichever it is, leaves the parameters as they were, and the next step succeeds. */
TEST_CASE(a_failed_step_restores_parameters)
{
        for (int at = 1; at < 12; at++) {
                problem p = make(LG_F64);
                lg_optimizer *opt = lg_lbfgs(p.c, LG_LIST(p.a, p.b), 1, .max_iter = 4, .strong_wolfe = true);
                double before[8], loss = 7;
                assert_true(lg_step_closure(opt, rosenbrock, &p, NULL));
                read_all(p.a, before, 6), read_all(p.b, before + 6, 2);
                p.fail_at = p.calls + at;
                if (!lg_step_closure(opt, rosenbrock, &p, &loss)) {
                        assert_error(p.c, LG_ERR_ARGUMENT, " fails");
                        assert_true(loss == 7);
                        assert_values(p.a, before, 6, 0);
                        assert_values(p.b, before + 6, 2, 0);
                        assert_true(lg_step_closure(opt, rosenbrock, &p, &loss));
                } else {
                        assert_true(at > 4);
                }
                assert_ok(p.c);
                lg_close(p.c);
        }
}

/* A run that is saved and loaded goes on as one that is not. */
TEST_CASE_WITH(checkpoints_have_the_history, begin, end)
{
        for (int wolfe = 0; wolfe < 2; wolfe++) {
                problem p[2] = {make(LG_F64), make(LG_F64)};
                lg_optimizer *opt[2];
                for (int i = 0; i < 2; i++)
                        opt[i] = lg_lbfgs(p[i].c, LG_LIST(p[i].a, p[i].b), wolfe ? 1 : 0.05, .max_iter = 3,
                                          .history_size = 4, .strong_wolfe = wolfe);
                lg_checkpoint *k[2];
                for (int i = 0; i < 2; i++) {
                        lg_module *m = lg_nn_module(p[i].c, "Holder", .user = NULL);
                        assert_true(lg_module_add_parameter(m, "a", p[i].a) && lg_module_add_parameter(m, "b", p[i].b));
                        k[i] = lg_checkpoint_new(p[i].c);
                        assert_true(lg_checkpoint_add(k[i], "model", m) && lg_checkpoint_add(k[i], "opt", opt[i]));
                }
                for (int t = 0; t < 3; t++)
                        assert_true(lg_step_closure(opt[0], rosenbrock, &p[0], NULL));
                assert_true(lg_step_closure(opt[1], rosenbrock, &p[1], NULL)); /* other history, which is replaced */
                assert_true(lg_checkpoint_save(k[0], path) && lg_checkpoint_load(k[1], path));
                for (int t = 0; t < 5; t++)
                        for (int i = 0; i < 2; i++)
                                assert_true(lg_step_closure(opt[i], rosenbrock, &p[i], NULL));
                assert_same_bits(p[0].a, p[1].a);
                assert_same_bits(p[0].b, p[1].b);
                lg_close(p[0].c), lg_close(p[1].c);
        }
}

/* ---- other optimisers, and wrong calls ---- */

TEST_CASE(other_optimisers_take_a_function)
{
        problem p = make(LG_F64), q = make(LG_F64);
        lg_optimizer *of_p = lg_adam(p.c, LG_LIST(p.a, p.b), 0.01), *of_q = lg_adam(q.c, LG_LIST(q.a, q.b), 0.01);
        for (int t = 0; t < 5; t++) {
                double loss;
                lg_no_grad(p.c) assert_true(lg_step_closure(of_p, rosenbrock, &p, &loss));
                lg_tensor *y = rosenbrock(q.c, &q);
                assert_true(lg_item(y) == loss);
                lg_zero_grad(of_q), lg_backward(y), lg_step(of_q);
        }
        assert_same_bits(p.a, q.a);
        assert_same_bits(p.b, q.b);
        p.fail_at = p.calls + 1;
        assert_false(lg_step_closure(of_p, rosenbrock, &p, NULL));
        assert_error(p.c, LG_ERR_ARGUMENT, " fails");
        assert_same_bits(p.a, q.a);
        lg_close(p.c), lg_close(q.c);
}

typedef struct wrong {
        lg_optimizer *opt;
        lg_tensor *p;
        int kind;
} wrong;

static lg_tensor *does_wrong(lg_ctx *c, void *user)
{
        wrong *w = user;
        switch (w->kind) {
        case 0:
                return NULL;
        case 1:
                return lg_square(w->p);
        case 2:
                return lg_sum(lg_detach(w->p));
        case 3:
                lg_optimizer_free(w->opt);
                return lg_sum(w->p);
        case 4:
                lg_step_closure(w->opt, does_wrong, w, NULL);
                return lg_sum(w->p);
        case 5:
                (void)!lg_scope_begin(c).id;
                return lg_sum(lg_square(w->p)); /* a scope that is left open is ended */
        default:
                return lg_argmax(w->p);
        }
}

TEST_CASE(wrong_functions_are_errors)
{
        const char *const texts[] = {"returned NULL without an error",
                                     "it must be one element",
                                     "",
                                     "has not returned",
                                     "has not returned",
                                     NULL,
                                     "it must be one element"};
        for (int lbfgs = 0; lbfgs < 2; lbfgs++)
                for (int kind = 0; kind < 7; kind++) {
                        lg_ctx *c = open_ctx();
                        lg_tensor *p = lg_ones(c, LG_SHAPE(3), .requires_grad = true);
                        wrong w = {lbfgs ? lg_lbfgs(c, LG_LIST(p), 0.1) : lg_sgd(c, LG_LIST(p), 0.1), p, kind};
                        assert_true(lg_step_closure(w.opt, does_wrong, &w, NULL) == !texts[kind]);
                        if (texts[kind]) {
                                assert_non_null(strstr(lg_error(c), texts[kind]));
                                lg_clear_error(c);
                                assert_list(p, 0, 1, 1, 1);
                        }
                        assert_ok(c);
                        lg_close(c);
                }
}

TEST_CASE(wrong_arguments_are_errors)
{
        problem k = make(LG_F64);
        lg_ctx *c = k.c;
        lg_tensor *half = lg_ones(c, LG_SHAPE(2), .dtype = LG_BF16, .requires_grad = true);
        assert_null(lg_lbfgs(c, LG_LIST(k.a), -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_lbfgs: lr is -1");
        assert_null(lg_lbfgs(c, LG_LIST(k.a), 1, .max_iter = -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_lbfgs: max_iter is -1");
        assert_null(lg_lbfgs(c, LG_LIST(k.a), 1, .tolerance_grad = -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_lbfgs: tolerance_grad is -1");
        assert_null(lg_lbfgs(c, LG_LIST(half), 1));
        assert_error(c, LG_ERR_DTYPE, "lg_lbfgs needs parameters of one dtype");
        assert_null(lg_lbfgs(c, LG_LIST(k.a, lg_ones(c, LG_SHAPE(2), .requires_grad = true)), 1));
        assert_error(c, LG_ERR_DTYPE, "lg_lbfgs needs parameters of one dtype");
        lg_optimizer *opt = lg_lbfgs(c, LG_LIST(k.a), 1);
        assert_false(lg_step(opt));
        assert_error(c, LG_ERR_STATE, "lg_step: an optimiser of lg_lbfgs");
        assert_false(lg_add_param_group(opt, LG_LIST(k.b)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_add_param_group: an optimiser of lg_lbfgs has one group only");
        assert_false(lg_step_closure(opt, NULL, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_step_closure: fn is NULL");
        assert_false(lg_step_closure(NULL, rosenbrock, &k, NULL));
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0), .requires_grad = true);
        wrong w = {lg_lbfgs(c, LG_LIST(none), 1), none, 5};
        assert_true(lg_step_closure(w.opt, does_wrong, &w, NULL));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *layer_loss(lg_ctx *c, void *net)
{
        return lg_mean(lg_square(lg_sub_scalar(lg_forward(net, lg_ones(c, LG_SHAPE(4, 3))), 1)));
}

/* Whichever allocation of a step fails, the parameters stay. */
TEST_CASE(without_memory_parameters_stay)
{
        for (int wolfe = 0; wolfe < 2; wolfe++) {
                failing f = {0};
                double before[6];
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                lg_module *net = lg_nn_linear(c, 3, 2, .device = test_device(c));
                lg_optimizer *opt = lg_lbfgs(c, lg_parameters(net), 0.5, .max_iter = 3, .strong_wolfe = wolfe);
                read_all(lg_parameter(net, "weight"), before, 6);
                int64_t n = 0;
                for (bool done = false; !done;) {
                        lg_empty_cache(c);
                        arm(&f, ++n, false);
                        done = lg_step_closure(opt, layer_loss, net, NULL);
                        arm(&f, 0, false);
                        if (!done) {
                                assert_error(c, LG_ERR_MEMORY, "");
                                assert_values(lg_parameter(net, "weight"), before, 6, 0);
                        }
                }
                assert_true(n > 5 && lg_grad_mode(c));
                lg_close(c);
                assert_int_equal(f.bytes, 0);
        }
}
