/* test_parametrize.c - weight norm, spectral norm and orthogonal weights against PyTorch's numbers; own
 * parametrizations in the life of a module.
 */
#include <math.h>
#include "files.h"
#include "golden.h"

#define NAME "parametrizations.weight."

static void assert_close(lg_tensor *a, lg_tensor *b, double tolerance)
{
        lg_tensor *most = lg_amax(lg_abs(lg_sub(a, b)));
        assert_near(lg_item(most), 0, tolerance);
}

/* Runs m, which has the parameters of the list in this order, in f64 on that input. */
static lg_tensor *with(lg_module *m, lg_list params, lg_tensor *input)
{
        lg_module_cast(m, LG_F64);
        return lg_forward_params(m, params, input);
}
#define INPUT golden_tensor(c, LG_SHAPE(2, 4), 0.3)
#define IMAGE golden_tensor(c, LG_SHAPE(1, 2, 3, 3), 0.3)

static lg_module *normed(lg_module *m, bool weight_norm)
{
        assert_true(weight_norm ? lg_weight_norm(m, "weight") : lg_spectral_norm(m, "weight"));
        return m;
}

static lg_module *linear(lg_ctx *c)
{
        return lg_nn_linear(c, 4, 3, .no_bias = true);
}

static lg_module *linear_along(lg_ctx *c, bool whole)
{
        lg_module *m = linear(c);
        assert_true(lg_weight_norm(m, "weight", .dim = 1, .whole = whole));
        return m;
}

#define CONV lg_nn_conv2d(c, 2, 3, 2, .no_bias = true)
#define WEIGHTS(ROW)                                                                                                   \
        ROW(weight_norm, with(normed(linear(c), true), LG_LIST(x, golden_tensor(c, LG_SHAPE(3, 1), 1)), INPUT), 3, 4)  \
        ROW(weight_norm_of_g, with(normed(linear(c), true), LG_LIST(golden_tensor(c, LG_SHAPE(3, 4), 1), x), INPUT),   \
            3, 1)                                                                                                      \
        ROW(weight_norm_dim, with(linear_along(c, false), LG_LIST(x, golden_tensor(c, LG_SHAPE(1, 4), 1)), INPUT), 3,  \
            4)                                                                                                         \
        ROW(weight_norm_whole, with(linear_along(c, true), LG_LIST(x, golden_tensor(c, LG_SHAPE_0D, 1)), INPUT), 3, 4) \
        ROW(weight_norm_conv, with(normed(CONV, true), LG_LIST(x, golden_tensor(c, LG_SHAPE(3, 1, 1, 1), 1)), IMAGE),  \
            3, 2, 2, 2)

GOLDEN_TEST(weight_norm_as_pytorch_computes_it, "parametrize.txt", golden_input, WEIGHTS);

/* One forward from vectors by formula; the result, then the vectors. */
static lg_tensor *spectral(lg_module *m, lg_tensor *x, lg_tensor *input)
{
        lg_ctx *c = lg_module_ctx(m);
        const bool training = lg_is_training(m);
        lg_module_cast(m, LG_F64);
        lg_tensor *vectors[2] = {lg_buffer(m, NAME "0._u"), lg_buffer(m, NAME "0._v")};
        for (int i = 0; i < 2; i++)
                lg_copy_(vectors[i], lg_normalize(golden_tensor(c, lg_shape_of(vectors[i]), i ? 0.9 : 0.5), 0));
        lg_train(m, training);
        lg_tensor *y = lg_reshape(lg_forward_params(m, LG_LIST(x), input), LG_SHAPE(-1));
        return lg_cat(LG_LIST(y, vectors[0], vectors[1]), 0);
}

static lg_module *evaluated(lg_module *m)
{
        lg_train(m, false);
        return m;
}

static lg_module *by_steps(lg_module *m)
{
        assert_true(lg_spectral_norm(m, "weight", .dim = 1, .iterations = 3));
        return m;
}

#define UP lg_nn_conv_transpose2d(c, 2, 3, 2, .no_bias = true)
#define SPECTRA(ROW)                                                                                                   \
        ROW(spectral_norm, spectral(normed(linear(c), false), x, INPUT), 3, 4)                                         \
        ROW(spectral_norm_evaluated, spectral(evaluated(normed(linear(c), false)), x, INPUT), 3, 4)                    \
        ROW(spectral_norm_steps, spectral(by_steps(linear(c)), x, INPUT), 3, 4)                                        \
        ROW(spectral_norm_conv, spectral(normed(CONV, false), x, IMAGE), 3, 2, 2, 2)                                   \
        ROW(spectral_norm_up, spectral(normed(UP, false), x, IMAGE), 2, 3, 2, 2)

GOLDEN_TEST(spectral_norm_as_pytorch_computes_it, "parametrize.txt", golden_input, SPECTRA);

/* The weight made of x by that map, with a base by formula. */
static lg_tensor *orthogonal(lg_tensor *x, lg_orthogonal_map map)
{
        lg_ctx *c = lg_ctx_of(x);
        const int64_t rows = lg_size_of(x, 0), columns = lg_size_of(x, 1);
        lg_module *m = lg_nn_linear(c, columns, rows, .no_bias = true);
        assert_true(lg_orthogonal(m, "weight", .map = map));
        lg_module_cast(m, LG_F64);
        lg_tensor *base = lg_buffer(m, NAME "0.base");
        lg_copy_(base, golden_tensor(c, lg_shape_of(base), 0.5));
        return lg_transpose(lg_forward_params(m, LG_LIST(x), lg_eye(c, columns, columns, .dtype = LG_F64)), 0, 1);
}

#define OF_MAP(ROW, name, map)                                                                                         \
        ROW(orthogonal_##name, orthogonal(x, map), 4, 4)                                                               \
        ROW(orthogonal_##name##_wide, orthogonal(x, map), 3, 4)                                                        \
        ROW(orthogonal_##name##_tall, orthogonal(x, map), 4, 2)
#define ORTHOGONAL(ROW)                                                                                                \
        OF_MAP(ROW, auto, LG_ORTHOGONAL_AUTO)                                                                          \
        OF_MAP(ROW, matrix_exp, LG_ORTHOGONAL_MATRIX_EXP)                                                              \
        OF_MAP(ROW, cayley, LG_ORTHOGONAL_CAYLEY) OF_MAP(ROW, householder, LG_ORTHOGONAL_HOUSEHOLDER)

GOLDEN_TEST(orthogonal_as_pytorch_computes_it, "parametrize.txt", golden_input, ORTHOGONAL);

/* Columns, or rows of a wide matrix, are orthonormal from the first forward on and after steps. */
TEST_CASE(stays_orthogonal)
{
        for (int map = LG_ORTHOGONAL_AUTO; map <= LG_ORTHOGONAL_HOUSEHOLDER; map++)
                for (int wide = 0; wide < 2; wide++) {
                        lg_ctx *c = open_ctx();
                        const int64_t in = wide ? 6 : 4, out = wide ? 4 : 6;
                        lg_module *m = lg_nn_linear(c, in, out, .no_bias = true);
                        assert_true(lg_orthogonal(m, "weight", .map = (lg_orthogonal_map)map));
                        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.1);
                        for (int step = 0; step < 4; step++) {
                                lg_tensor *wt = lg_forward(m, lg_eye(c, in, in)), *w = lg_transpose(wt, 0, 1);
                                assert_close(wide ? lg_matmul(w, wt) : lg_matmul(wt, w), lg_eye(c, 4, 4), 1e-5);
                                lg_zero_grad(opt);
                                lg_backward(lg_sum(lg_exp(wt)));
                                assert_true(lg_step(opt));
                        }
                        assert_ok(c);
                        lg_close(c);
                }
}

/* A norm does not change what a layer computes; its parameters train, are saved, copied and removed again. */
TEST_CASE(life_of_a_parametrization)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 2, 3, 2, .padding = 1), lg_nn_batch_norm2d(c, 3),
                                          lg_nn_relu(c), lg_nn_flatten(c), lg_nn_linear(c, 48, 2));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 2, 3, 3));
        lg_train(net, false);
        lg_tensor *before = lg_forward(net, x);
        assert_true(lg_weight_norm(lg_child(net, 0), "weight") && lg_weight_norm(lg_child(net, 4), "weight"));
        assert_close(lg_forward(net, x), before, 1e-5);
        lg_no_grad(c) assert_close(lg_forward(net, x), before, 1e-5); /* not folded: the weight is no parameter */
        assert_int_equal(lg_parameters(net).count, 8);
        assert_non_null(lg_parameter(net, "4." NAME "original0"));
        assert_fails(c, lg_parameter(net, "4.weight"), LG_ERR_ARGUMENT, "no parameter");

        lg_train(net, true);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        double first = 0, last = 0;
        for (int i = 0; i < 20; i++) {
                lg_tensor *loss = lg_mean(lg_square(lg_forward(net, x)));
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                last = lg_item(loss);
                first = i ? first : last;
        }
        assert_true(last < 0.5 * first);
        assert_ok(c);

        lg_module *copy = lg_module_clone(net);
        lg_train(net, false);
        lg_train(copy, false);
        lg_tensor *y = lg_forward(net, x);
        assert_close(lg_forward(copy, x), y, 0);
        assert_close(lg_forward(copy, x), lg_forward_params(net, lg_parameters(copy), x), 0);
        const char *path = at("parametrize.safetensors");
        assert_true(lg_save(net, path));
        lg_init_constant(lg_parameter(copy, "4." NAME "original1"), 1);
        assert_true(lg_load(copy, path));
        assert_close(lg_forward(copy, x), y, 0);

        assert_true(lg_remove_parametrizations(lg_child(net, 0), "weight"));
        assert_true(lg_remove_parametrizations(lg_child(net, 4), "weight"));
        assert_int_equal(lg_parameters(net).count, 6);
        assert_false(lg_has_child(net, "0.parametrizations"));
        assert_close(lg_forward(net, x), y, 1e-6);
        lg_tensor *recomputed = lg_recompute(copy, x);
        assert_close(recomputed, y, 0);
        lg_backward(lg_sum(recomputed));
        assert_non_null(lg_grad_of(lg_parameter(copy, "0." NAME "original0")));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *symmetric(lg_module *m, lg_list inputs, void *user)
{
        (void)m, (void)user;
        return lg_add(lg_triu(inputs.items[0]), lg_transpose(lg_triu(inputs.items[0], .diagonal = 1), 0, 1));
}

/* Own modules follow each other; a recurrent network reads the computed tensor at its place. */
TEST_CASE(own_parametrizations)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_linear(c, 3, 3, .no_bias = true);
        assert_true(lg_parametrize(m, "weight", lg_nn_module(c, "Symmetric", .forward = symmetric)));
        assert_true(lg_parametrize(m, "weight", lg_nn_tanh(c)));
        lg_tensor *w = lg_forward(m, lg_eye(c, 3, 3));
        assert_close(w, lg_transpose(w, 0, 1), 0);
        assert_close(lg_triu(w), lg_triu(lg_tanh(lg_parameter(m, NAME "original"))), 1e-6);
        assert_true(lg_remove_parametrizations(m, "weight"));
        assert_close(lg_transpose(lg_forward(m, lg_eye(c, 3, 3)), 0, 1), lg_parameter(m, "weight"), 0);

        lg_module *lstm = lg_nn_lstm(c, 2, 3);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 1, 2)), *y = lg_forward(lstm, x);
        assert_true(lg_weight_norm(lstm, "weight_hh_l0"));
        assert_close(lg_forward(lstm, x), y, 1e-6);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refused_parametrizations)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_linear(c, 3, 2);
        assert_fails(c, lg_weight_norm(m, "weights"), LG_ERR_ARGUMENT, "no parameter \"weights\"");
        assert_fails(c, lg_weight_norm(m, NULL), LG_ERR_ARGUMENT, "no parameter");
        assert_fails(c, lg_weight_norm(m, "weight", .dim = 2), LG_ERR_ARGUMENT, "no dimension 2");
        assert_fails(c, lg_spectral_norm(m, "weight", .iterations = -1), LG_ERR_ARGUMENT, "-1 iterations");
        assert_fails(c, lg_spectral_norm(m, "weight", .eps = -1), LG_ERR_ARGUMENT, "eps");
        assert_fails(c, lg_parametrize(m, "weight", NULL), LG_ERR_ARGUMENT, "NULL");
        assert_fails(c, lg_orthogonal(m, "weight", .map = (lg_orthogonal_map)4), LG_ERR_ARGUMENT, "no map 4");
        assert_fails(c, lg_orthogonal(m, "bias"), LG_ERR_SHAPE, "two dimensions at least");
        lg_module *f = lg_nn_flatten(c), *g = lg_nn_linear(c, 3, 4);
        assert_fails(c, lg_parametrize(m, "weight", g), LG_ERR_SHAPE, "Linear makes it");
        assert_fails(c, lg_remove_parametrizations(m, "weight"), LG_ERR_ARGUMENT, "no parametrizations");
        assert_true(lg_parametrize(m, "weight", f));
        assert_fails(c, lg_weight_norm(m, "weight"), LG_ERR_STATE, "parametrizations already");
        assert_true(lg_spectral_norm(m, "bias"));
        assert_near(lg_item(lg_norm(lg_forward(m, lg_zeros(c, LG_SHAPE(1, 3))))), 1, 1e-5);
        assert_ok(c);
        lg_close(c);
}

AROUND_TESTS(make_folder, remove_folder);
