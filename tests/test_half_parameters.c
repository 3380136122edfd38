/* test_half_parameters.c - 16-bit parameters: modules that are cast, optimisers with f32 state and masters. */
#include <math.h>
#include "failing.h"
#include "temporary.h"

static const lg_dtype halves[] = {LG_F16, LG_BF16};

/* ---- lg_module_cast() ---- */

static lg_module *network(lg_ctx *c)
{
        lg_module *m = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 4, 3), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c),
                                        lg_nn_flatten(c), lg_nn_linear(c, 16, 3));
        lg_module_to(m, lg_default_device(c));
        return m;
}

typedef struct counts {
        int of_dtype, wide_statistics, others;
        lg_dtype dtype;
} counts;

static void count_dtype(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        counts *n = user;
        const bool statistics = strstr(path, "running_") != NULL;
        assert_int_equal(statistics, is_buffer);
        if (statistics && lg_dtype_of(t) == (n->dtype == LG_F64 ? LG_F64 : LG_F32))
                n->wide_statistics++;
        else if (lg_dtype_of(t) == n->dtype)
                n->of_dtype++;
        else
                n->others++;
}

TEST_CASE(a_module_is_cast)
{
        const lg_dtype dtypes[] = {LG_F16, LG_BF16, LG_F64, LG_F32};
        lg_ctx *c = open_ctx();
        lg_module *m = network(c), *embedding = lg_nn_embedding(c, 5, 2);
        lg_module_add_buffer(embedding, "ids", lg_arange(c, 0, 5, 1, .dtype = LG_I64));
        lg_tensor *w = lg_parameter(m, "0.weight"), *first = lg_copy(lg_detach(w), lg_device_of(w));
        for (int d = 0; d < 4; d++) {
                counts n = {.dtype = dtypes[d]};
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(8, 1, 4, 4), .dtype = dtypes[d]);
                assert_true(lg_backward(lg_cross_entropy(lg_forward(m, lg_cast(x, lg_dtype_of(w))),
                                                         lg_zeros(c, LG_SHAPE(8), .dtype = LG_I64))));
                assert_true(lg_module_cast(m, dtypes[d]) && lg_module_cast(embedding, dtypes[d]));
                assert_true(lg_each_tensor(m, count_dtype, &n));
                assert_true(n.of_dtype == 6 && n.wide_statistics == 2 && n.others == 0);
                assert_ptr_equal(lg_parameter(m, "0.weight"), w);
                assert_int_equal(lg_dtype_of(lg_grad_of(w)), dtypes[d]);
                assert_int_equal(lg_dtype_of(lg_buffer(embedding, "ids")), LG_I64);
                lg_tensor *y = lg_forward(m, x), *rounded = lg_cast(lg_cast(lg_detach(w), LG_F64), LG_F32);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_near(lg_item(lg_amax(lg_abs(lg_sub(rounded, first)))), 0, 1e-2);
                assert_true(lg_backward(lg_cross_entropy(y, lg_zeros(c, LG_SHAPE(8), .dtype = LG_I64))));
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(a_module_in_16_bits_keeps_its_statistics)
{
        for (int d = 0; d < 2; d++) {
                lg_ctx *c = open_ctx();
                lg_module *norm = lg_nn_batch_norm2d(c, 3, .dtype = halves[d]);
                assert_int_equal(lg_dtype_of(lg_buffer(norm, "running_var")), LG_F32);
                assert_int_equal(lg_dtype_of(lg_parameter(norm, "weight")), halves[d]);
                lg_close(c);
        }
}

TEST_CASE(wrong_casts_are_told)
{
        lg_ctx *c = open_ctx();
        lg_module *m = network(c);
        assert_false(lg_module_cast(m, LG_I64));
        assert_error(c, LG_ERR_DTYPE, "lg_module_cast: dtype is i64");
        assert_false(lg_module_cast(m, LG_DTYPE_NONE));
        assert_error(c, LG_ERR_DTYPE, "lg_module_cast: dtype is ");
        assert_false(lg_module_cast(NULL, LG_F32));
        lg_tensor *w = lg_ones(c, LG_SHAPE(3), .requires_grad = true);
        lg_module *holder = lg_nn_module(c, "Holder");
        lg_module_add_parameter(holder, "w", w);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(holder), 1);
        lg_tensor *loss = lg_sum(w);
        assert_true(lg_module_cast(holder, LG_BF16));
        assert_true(lg_backward(loss)); /* of the graph before */
        assert_false(lg_step(opt));
        assert_error(c, LG_ERR_STATE, "lg_step: parameter 0 is bf16 (3,)");
        lg_close(c);
}

static lg_tensor *cast_it(lg_ctx *c, void *user)
{
        lg_module *m = user;
        if (lg_module_cast(m, LG_BF16) && lg_module_cast(m, LG_F32))
                return lg_ones(c, LG_SHAPE(1));
        return NULL;
}

/* What was recorded before the cast has gradients of the old dtype. */
TEST_CASE(a_cast_before_the_backward)
{
        lg_ctx *c = open_ctx();
        test_device(c);
        for (int i = 0; i < 4; i++) {
                lg_module *m = lg_nn_linear(c, 64, 64);
                lg_tensor *x = lg_ones(c, LG_SHAPE(1, 64)), *w = lg_parameter(m, "weight");
                if (i & 1) /* a gradient is there, and is cast, too */
                        assert_true(lg_backward(lg_sum(lg_forward(m, x))));
                lg_tensor *loss = lg_sum(lg_forward(m, x));
                assert_true(lg_module_cast(m, i & 2 ? LG_F64 : LG_BF16));
                const bool ok = lg_backward(loss);
                assert_int_equal(ok, !(i & 1));
                if (ok) /* alone it stays; that of the new dtype does not go with it */
                        assert_false(lg_backward(lg_sum(lg_forward(m, lg_cast(x, lg_dtype_of(w))))));
                assert_error(c, LG_ERR_DTYPE, "lg_module_cast() has changed the parameter");
                lg_clear_grad(w);
                lg_clear_grad(lg_parameter(m, "bias"));
                assert_true(lg_backward(lg_sum(lg_forward(m, lg_cast(x, lg_dtype_of(w))))));
                assert_int_equal(lg_dtype_of(lg_grad_of(w)), lg_dtype_of(w));
                lg_module_free(m);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(without_memory_nothing_is_cast)
{
        fail_each_of_step(cast_it, network);
}

/* ---- optimisers ---- */

static lg_optimizer *optimiser(lg_ctx *c, int kind, lg_list_in p, bool master)
{
        switch (kind) {
        case 0:
                return lg_sgd(c, p, 0.01, .momentum = 0.9, .master = master);
        case 1:
                return lg_adam(c, p, 0.001, .master = master);
        case 2:
                return lg_adamw(c, p, 0.001, .amsgrad = true, .master = master);
        case 3:
                return lg_adagrad(c, p, 0.003, .master = master);
        case 4:
                return lg_rmsprop(c, p, 0.0003, .centered = true, .momentum = 0.5, .master = master);
        case 5:
                return lg_adadelta(c, p, 0.3, .master = master);
        case 6:
                return lg_adamax(c, p, 0.001, .master = master);
        case 7:
                return lg_nadam(c, p, 0.001, .master = master);
        case 8:
                return lg_radam(c, p, 0.001, .master = master);
        case 9:
                return lg_asgd(c, p, 0.01, .master = master);
        case 10:
                return lg_rprop(c, p, 0.001, .master = master);
        case 11:
                return lg_lion(c, p, 0.001, .master = master);
        case 12:
                return lg_lamb(c, p, 0.001, .master = master);
        case 13:
                return lg_adafactor(c, p, 0.001, .eps1 = 1e-3, .master = master);
        default:
                return lg_muon(c, p, 0.001, .master = master);
        }
}
enum { KINDS = 15, SIZE = 5003 };

static lg_tensor *parameter(lg_ctx *c, lg_dtype dtype)
{
        lg_tensor *line = lg_arange(c, 0, SIZE, 1, .dtype = LG_F32);
        return lg_set_requires_grad(lg_cast(lg_cast(lg_add_scalar(lg_sin(line), 2), LG_BF16), dtype), true);
}

/* Gives p the gradient that step t has. */
static void set_gradient(lg_ctx *c, lg_tensor *p, int t)
{
        lg_tensor *line = lg_arange(c, 0, SIZE, 1, .dtype = LG_F32);
        lg_tensor *g = lg_cast(lg_cast(lg_cos(lg_add_scalar(line, t)), LG_BF16), lg_dtype_of(p));
        lg_clear_grad(p);
        assert_true(lg_backward(lg_sum(lg_mul(lg_cast(p, LG_F32), g))));
}

static double furthest(lg_tensor *a, lg_tensor *b)
{
        return lg_item(lg_amax(lg_abs(lg_sub(lg_cast(lg_detach(a), LG_F32), lg_cast(lg_detach(b), LG_F32)))));
}

/* With masters, a bf16 parameter is the f32 one rounded, after many small steps; without, these are lost. */
TEST_CASE(masters_follow_f32)
{
        for (int kind = 0; kind < KINDS; kind++)
                for (int d = 0; d < 2; d++) {
                        lg_ctx *c = open_ctx();
                        lg_tensor *exact = parameter(c, LG_F32), *p = parameter(c, halves[d]);
                        lg_optimizer *of_exact = optimiser(c, kind, LG_LIST(exact), true),
                                     *of_p = optimiser(c, kind, LG_LIST(p), true);
                        for (int t = 0; t < 40; t++) {
                                lg_scope scope = lg_scope_begin(c);
                                set_gradient(c, exact, t / 8), set_gradient(c, p, t / 8);
                                assert_true(lg_step(of_exact) && lg_step(of_p));
                                lg_scope_end(c, scope);
                        }
                        /* f16 has gradients of bf16 exactly; nothing else is rounded before the parameter is. */
                        assert_same_bits(p, lg_cast(lg_detach(exact), halves[d]));
                        lg_close(c);
                }
}

/* Two hundred steps of 0.001 beside 2: each is less than half of the last bit of bf16. */
TEST_CASE(without_masters_small_steps_are_lost)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p[2];
        for (int k = 0; k < 2; k++) {
                p[k] = lg_full(c, LG_SHAPE(3), 2, .dtype = LG_BF16, .requires_grad = true);
                lg_optimizer *opt = lg_sgd(c, LG_LIST(p[k]), 0.001, .master = k == 1);
                for (int t = 0; t < 200; t++) {
                        lg_clear_grad(p[k]);
                        assert_true(lg_backward(lg_sum(p[k])) && lg_step(opt));
                }
        }
        assert_true(lg_item(lg_select(p[0], 0, 0)) == 2);
        assert_near(lg_item(lg_select(p[1], 0, 0)), 1.8, 0.005);
        lg_close(c);
}

/* What the program writes counts from then on; what it left alone goes on with all its bits. */
TEST_CASE(a_parameter_that_is_written)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = lg_full(c, LG_SHAPE(2), 2, .dtype = LG_BF16, .requires_grad = true);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(p), 0.001, .master = true);
        for (int t = 0; t < 200; t++) {
                lg_clear_grad(p);
                if (t == 100)
                        lg_no_grad(c) lg_fill_(lg_select(p, 0, 1), 4);
                assert_true(lg_backward(lg_sum(p)) && lg_step(opt));
        }
        double v[2];
        read_all(p, v, 2);
        assert_near(v[0], 1.8, 0.005);
        assert_near(v[1], 3.9, 0.01);
        assert_ok(c);
        lg_close(c);
}

/* A module that is cast in the middle goes on with the optimiser's state, and back again. */
TEST_CASE(a_cast_between_steps)
{
        for (int kind = 0; kind < KINDS; kind++) {
                lg_ctx *c = open_ctx();
                const lg_dtype dtypes[] = {LG_F32, LG_BF16, LG_F64, LG_F16, LG_F32};
                lg_tensor *p = parameter(c, LG_F32), *exact = parameter(c, LG_F64);
                lg_module *m = lg_nn_module(c, "Holder");
                lg_module_add_parameter(m, "p", p);
                lg_optimizer *opt = optimiser(c, kind, LG_LIST(p), true),
                             *of_exact = optimiser(c, kind, LG_LIST(exact), true);
                for (int t = 0; t < 10; t++) {
                        assert_true(lg_module_cast(m, dtypes[t / 2]));
                        set_gradient(c, p, 0), set_gradient(c, exact, 0);
                        assert_true(lg_step(opt) && lg_step(of_exact));
                }
                assert_near(furthest(p, exact), 0, 0.03);
                assert_ok(c);
                lg_close(c);
        }
}

/* A checkpoint has the masters, and goes on to the same bits. */
TEST_CASE_WITH(a_checkpoint_keeps_masters, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p[2];
        lg_optimizer *opt[2];
        lg_checkpoint *k[2];
        for (int i = 0; i < 2; i++) {
                lg_module *m = lg_nn_module(c, "Holder");
                p[i] = parameter(c, LG_BF16);
                lg_module_add_parameter(m, "p", p[i]);
                opt[i] = lg_adam(c, lg_parameters(m), 0.001, .master = true);
                k[i] = lg_checkpoint_new(c);
                assert_true(lg_checkpoint_add(k[i], "model", m) && lg_checkpoint_add(k[i], "optimizer", opt[i]));
        }
        for (int t = 0; t < 10; t++) {
                if (t == 5) {
                        assert_true(lg_checkpoint_save(k[0], path));
                        assert_true(lg_checkpoint_load(k[1], path));
                }
                for (int i = 0; i < 1 + (t >= 5); i++) {
                        set_gradient(c, p[i], 0);
                        assert_true(lg_step(opt[i]));
                }
        }
        assert_same_bits(p[0], p[1]);
        lg_weights *w = lg_weights_open(c, path);
        lg_weight found;
        int masters = 0, wide = 0;
        for (int64_t i = 0; lg_weights_at(w, i, &found); i++) {
                masters += strstr(found.name, "p.master") && found.dtype == LG_F32;
                wide += strstr(found.name, "exp_avg") && found.dtype == LG_F32;
        }
        assert_true(masters == 1 && wide == 2);
        assert_ok(c);
        lg_close(c);
}

/* A step that fails for want of memory changes nothing. */
static lg_tensor *masters_step(lg_ctx *c, void *user)
{
        lg_scope scope = lg_scope_begin(c);
        lg_module *m = user;
        lg_optimizer *opt = lg_adam(c, lg_parameters(m), 0.01, .master = true);
        bool ok = lg_module_cast(m, LG_BF16) &&
                  lg_backward(lg_mse(lg_forward(m, lg_ones(c, LG_SHAPE(2, 1, 4, 4), .dtype = LG_BF16)),
                                     lg_zeros(c, LG_SHAPE(2, 3), .dtype = LG_BF16))) &&
                  lg_step(opt);
        lg_optimizer_free(opt);
        if (scope.id)
                lg_scope_end(c, scope);
        return ok ? lg_ones(c, LG_SHAPE(1)) : NULL;
}

TEST_CASE(without_memory_nothing_is_lost)
{
        fail_each_of_step(masters_step, network);
}

AROUND_TESTS(begin, end);
