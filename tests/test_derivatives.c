/* test_derivatives.c - derivatives of functions against PyTorch (data/derivatives.py), and of derivatives. */
#include "test.h"

static lg_tensor *vector(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *x = in.items[0], *w = in.items[1];
        return lg_mul(lg_tanh(lg_matmul(w, x)), lg_sum(lg_mul(x, x)));
}

static lg_tensor *scalar(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *x = in.items[0], *w = in.items[1];
        return lg_sum(lg_mul(lg_pow_scalar(lg_tanh(lg_matmul(w, x)), 3), lg_exp(lg_select(x, 0, 0))));
}

/* Of one input; w is the user's. */
static lg_tensor *scalar_of_x(lg_ctx *c, lg_list in, void *user)
{
        return scalar(c, LG_LIST(in.items[0], user), NULL);
}

/* The loss of a sample of size 1. */
static lg_tensor *loss_of_sample(lg_ctx *c, lg_list in, void *user)
{
        assert_int_equal(in.count, 2);
        assert_true(lg_ndim_of(in.items[1]) == 2 && lg_size_of(in.items[1], 0) == 1);
        return scalar(c, LG_LIST(lg_select(in.items[1], 0, 0), in.items[0]), user);
}

static lg_tensor *numbers(lg_ctx *c, lg_shape shape, double (*f)(double), double step, double first)
{
        double values[16];
        for (int i = 0; i < 16; i++)
                values[i] = f ? f(first + step * i) : first + step * i;
        return lg_from(c, values, shape, .dtype = LG_F64);
}

typedef struct given {
        lg_tensor *x, *w, *t, *u, *v;
} given;

static given make(lg_ctx *c)
{
        return (given){numbers(c, LG_SHAPE(3), sin, 1, 1), numbers(c, LG_SHAPE(2, 3), cos, 1, 0),
                       lg_from(c, ((double[]){1, -2, 0.5}), LG_SHAPE(3), .dtype = LG_F64),
                       numbers(c, LG_SHAPE(2, 3), NULL, 0.3, -1),
                       lg_from(c, ((double[]){0.7, -1.3}), LG_SHAPE(2), .dtype = LG_F64)};
}

/* Compares a tensor with the line of that name. */
static void check(const char *name, const lg_tensor *t, lg_shape shape)
{
        char path[4096], found[40];
        double ref[32];
        int n = 0;
        const char *folder = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/derivatives.txt", folder ? folder : "tests/data");
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(t);
        while (fscanf(f, "%39s %d", found, &n) == 2) {
                for (int i = 0; i < n; i++)
                        assert_int_equal(fscanf(f, "%lf", &ref[i]), 1);
                if (!strcmp(found, name))
                        break;
        }
        fclose(f);
        assert_string_equal(found, name);
        assert_int_equal(lg_ndim_of(t), shape.ndim);
        for (int i = 0; i < shape.ndim; i++)
                assert_int_equal(lg_size_of(t, i), shape.size[i]);
        assert_values(t, ref, n, 1e-12);
}

TEST_CASE(derivatives_are_pytorchs)
{
        lg_ctx *c = open_ctx();
        const given k = make(c);
        lg_tensor *y, *g[2],
                *samples = lg_stack(LG_LIST(k.x, lg_mul_scalar(k.x, 2), lg_sub_scalar(k.x, 1), lg_mul(k.x, k.x)), 0);
        const int64_t live = lg_live_tensors(c);
        lg_tensor *first = lg_vjp(c, vector, LG_LIST(k.x, k.w), k.v, .value = &y, .result = g);
        assert_ptr_equal(first, g[0]);
        check("value_0", y, LG_SHAPE(2));
        check("vjp_0", g[0], LG_SHAPE(3));
        check("vjp_1", g[1], LG_SHAPE(2, 3));
        assert_false(lg_requires_grad(y) || lg_requires_grad(g[0]));
        assert_int_equal(lg_live_tensors(c), live + 3);
        check("jvp_0", lg_jvp(c, vector, LG_LIST(k.x, k.w), LG_LIST(k.t, k.u), .value = &y), LG_SHAPE(2));
        check("value_0", y, LG_SHAPE(2));
        assert_non_null(lg_jacobian(c, vector, LG_LIST(k.x, k.w), .result = g));
        check("jacobian_0", g[0], LG_SHAPE(2, 3));
        check("jacobian_1", g[1], LG_SHAPE(2, 2, 3));
        check("hessian_0", lg_hessian(c, scalar_of_x, k.x, .user = k.w), LG_SHAPE(3, 3));
        assert_non_null(lg_hvp(c, scalar, LG_LIST(k.x, k.w), LG_LIST(k.t, k.u), .result = g));
        check("hvp_0", g[0], LG_SHAPE(3));
        check("hvp_1", g[1], LG_SHAPE(2, 3));
        check("per_sample_0", lg_grad_per_sample(c, loss_of_sample, LG_LIST(k.w), LG_LIST(samples), .value = &y),
              LG_SHAPE(4, 2, 3));
        check("losses_0", y, LG_SHAPE(4));
        assert_ok(c);
        lg_close(c);
}

/* ---- results that are differentiated again ---- */

static lg_tensor *sum_of(lg_tensor *const *t, int64_t n)
{
        lg_tensor *sum = NULL;
        for (int64_t i = 0; i < n; i++) {
                lg_tensor *part = lg_sum(lg_sin(t[i]));
                sum = sum ? lg_add(sum, part) : part;
        }
        return sum;
}

/* A sum of all results of one of the functions, with create_graph, as a function of the inputs. */
static lg_tensor *derived(lg_ctx *c, lg_list in, void *user)
{
        lg_tensor *r[3] = {NULL}, *x = in.items[0], *w = in.items[1];
        const lg_list xw = {2, in.items};
        int n = 2;
        switch (*(int *)user) {
        case 0:
                lg_vjp(c, vector, xw, in.items[2], .result = r, .value = &r[2], .create_graph = true), n = 3;
                break;
        case 1:
                r[0] = lg_jvp(c, vector, xw, LG_LIST(lg_sin(x), lg_cos(w)), .create_graph = true), n = 1;
                break;
        case 2:
                lg_jacobian(c, vector, xw, .result = r, .create_graph = true);
                break;
        case 3:
                r[0] = lg_hessian(c, scalar_of_x, x, .user = lg_detach(w), .create_graph = true), n = 1;
                break;
        case 4:
                lg_hvp(c, scalar, xw, LG_LIST(lg_sin(x), lg_cos(w)), .result = r, .create_graph = true);
                break;
        default:
                lg_grad_per_sample(c, loss_of_sample, LG_LIST(w), LG_LIST(lg_reshape(x, LG_SHAPE(1, 3))), .result = r,
                                   .value = &r[1], .create_graph = true);
        }
        return sum_of(r, n);
}

TEST_CASE(derivatives_are_differentiated)
{
        for (int kind = 0; kind < 6; kind++) {
                lg_ctx *c = open_ctx();
                given k = make(c);
                lg_check_report r;
                lg_set_requires_grad(k.x, true), lg_set_requires_grad(k.v, true);
                if (kind != 3)
                        lg_set_requires_grad(k.w, true);
                if (!lg_gradcheck(c, derived, LG_LIST(k.x, k.w, k.v), .user = &kind, .report = &r))
                        fail_msg("kind %d: %s", kind, lg_error(c) ? lg_error(c) : r.text);
                assert_null(lg_grad_of(k.x));
                lg_close(c);
        }
}

/* ---- inputs and outputs of their own kinds ---- */

static lg_tensor *second_only(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_mul_scalar(in.items[1], 3);
}

static lg_tensor *constant(lg_ctx *c, lg_list in, void *user)
{
        (void)in, (void)user;
        return lg_ones(c, LG_SHAPE(2));
}

static lg_tensor *same(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return in.items[0];
}

static lg_tensor *linear(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_sum(in.items[0]);
}

TEST_CASE(what_an_output_does_not_depend_on_has_zeros)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2)), *y = lg_ones(c, LG_SHAPE(2)), *v = lg_ones(c, LG_SHAPE(2)), *g[2];
        assert_non_null(lg_vjp(c, second_only, LG_LIST(x, y), v, .result = g));
        assert_list(g[0], 0, 0, 0);
        assert_list(g[1], 0, 3, 3);
        assert_list(lg_jvp(c, second_only, LG_LIST(x, y), LG_LIST(v, v)), 0, 3, 3);
        assert_list(lg_jvp(c, constant, LG_LIST(x), LG_LIST(v)), 0, 0, 0);
        assert_list(lg_jacobian(c, constant, LG_LIST(x)), 0, 0, 0, 0, 0);
        assert_list(lg_jacobian(c, same, LG_LIST(x)), 0, 1, 0, 0, 1);
        assert_list(lg_vjp(c, same, LG_LIST(x), v, .create_graph = true), 0, 1, 1);
        assert_list(lg_hessian(c, linear, x), 0, 0, 0, 0, 0);
        assert_list(lg_hvp(c, linear, LG_LIST(x), LG_LIST(v)), 0, 0, 0);
        /* the same tensor twice, a strided one, and one that requires grad without a graph being asked for */
        assert_non_null(lg_vjp(c, second_only, LG_LIST(x, x), v, .result = g));
        assert_list(g[0], 0, 0, 0);
        lg_tensor *leaf = lg_ones(c, LG_SHAPE(3, 2), .requires_grad = true), *turned = lg_transpose(leaf, 0, 1);
        assert_false(lg_requires_grad(lg_vjp(c, linear, LG_LIST(turned), NULL)));
        lg_no_grad(c) assert_list(lg_vjp(c, linear, LG_LIST(turned), NULL), 0, 1, 1, 1, 1, 1, 1);
        assert_null(lg_grad_of(leaf));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty_tensors_have_empty_derivatives)
{
        lg_ctx *c = open_ctx();
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0)), *y;
        assert_int_equal(lg_size_of(lg_vjp(c, same, LG_LIST(none), none), 0), 0);
        assert_int_equal(lg_size_of(lg_jacobian(c, same, LG_LIST(none)), 1), 0);
        assert_int_equal(lg_ndim_of(lg_hessian(c, linear, none)), 2);
        lg_tensor *g = lg_grad_per_sample(c, loss_of_sample, LG_LIST(lg_ones(c, LG_SHAPE(2, 3))),
                                          LG_LIST(lg_zeros(c, LG_SHAPE(0, 3))), .value = &y);
        assert_true(lg_ndim_of(g) == 3 && lg_size_of(g, 0) == 0 && lg_size_of(y, 0) == 0);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *network_loss(lg_ctx *c, lg_list in, void *user)
{
        (void)c;
        const int64_t n = in.count - 2;
        return lg_mse(lg_forward_params(user, LG_LIST_OF(n, in.items), in.items[n]), in.items[n + 1]);
}

/* The mean of the samples' gradients is that of one backward, of all samples. */
TEST_CASE(gradients_of_samples_add_up)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_tanh(c), lg_nn_linear(c, 4, 2));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 3)), *y = lg_normal(c, 0, 1, LG_SHAPE(5, 2)), *g[4], *losses;
        lg_list p = lg_parameters(net);
        assert_non_null(
                lg_grad_per_sample(c, network_loss, p, LG_LIST(x, y), .user = net, .result = g, .value = &losses));
        lg_tensor *loss = lg_mse(lg_forward(net, x), y);
        assert_near(lg_item(lg_mean(losses)), lg_item(loss), 1e-6);
        lg_backward(loss);
        for (int64_t i = 0; i < p.count; i++) {
                lg_tensor *mean = lg_mean(g[i], .dims = LG_DIMS(0));
                assert_near(lg_item(lg_amax(lg_abs(lg_sub(mean, lg_grad_of(p.items[i]))))), 0, 1e-6);
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- errors ---- */

static lg_tensor *nothing(lg_ctx *c, lg_list in, void *user)
{
        (void)in;
        return user ? lg_set_error(c, LG_ERR_ARGUMENT, "of its own"), NULL : NULL;
}

static lg_tensor *whole_numbers(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_argmax(in.items[0]);
}

static lg_tensor *frees(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *y = lg_sum(in.items[0]);
        lg_free(in.items[0]);
        return y;
}

TEST_CASE(wrong_calls_are_errors)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2)), *y = x, *g[1] = {x}, *i = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64);
        assert_null(lg_vjp(c, NULL, LG_LIST(x), NULL, .value = &y, .result = g));
        assert_error(c, LG_ERR_ARGUMENT, "lg_vjp: fn is NULL");
        assert_true(!y && !g[0]);
        assert_null(lg_vjp(c, same, LG_LIST(x), NULL));
        assert_error(c, LG_ERR_SHAPE, "lg_vjp: the output of fn is");
        assert_null(lg_vjp(c, same, LG_LIST(x), lg_ones(c, LG_SHAPE(3))));
        assert_error(c, LG_ERR_SHAPE, "lg_vjp: vector 0 is");
        assert_null(lg_vjp(c, same, LG_LIST(x), lg_ones(c, LG_SHAPE(2), .dtype = LG_F64)));
        assert_error(c, LG_ERR_DTYPE, "lg_vjp: vector 0 is");
        assert_null(lg_vjp(c, same, LG_LIST(i), NULL));
        assert_error(c, LG_ERR_DTYPE, "lg_vjp: an input is");
        assert_null(lg_vjp(c, whole_numbers, LG_LIST(x), NULL));
        assert_error(c, LG_ERR_DTYPE, "lg_vjp: the output of fn is");
        assert_null(lg_vjp(c, same, LG_LIST_OF(0, &x), NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_vjp: the list of inputs is empty");
        assert_null(lg_vjp(c, same, LG_LIST(lg_ones(other, LG_SHAPE(2))), NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_vjp: ");
        assert_null(lg_jvp(c, same, LG_LIST(x), LG_LIST(x, x)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_jvp: 2 vectors for 1 inputs");
        assert_null(lg_hvp(c, same, LG_LIST(x), LG_LIST(x)));
        assert_error(c, LG_ERR_SHAPE, "lg_hvp: the output of fn is");
        assert_null(lg_hessian(c, linear, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_hessian: input 0 is NULL");
        assert_null(lg_jacobian(c, nothing, LG_LIST(x)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_jacobian: fn returned NULL without an error");
        assert_null(lg_jacobian(c, nothing, LG_LIST(x), .user = c));
        assert_error(c, LG_ERR_ARGUMENT, "of its own");
        assert_null(lg_jacobian(c, frees, LG_LIST(x)));
        assert_error(c, LG_ERR_STATE, "lg_jacobian: an input, in fn, ");
        assert_null(lg_jacobian(c, same, LG_LIST(lg_ones(c, LG_SHAPE(1, 1, 1, 1, 1)))));
        assert_error(c, LG_ERR_SHAPE, "lg_jacobian: the result for input 0 would have 10 dimensions");
        assert_null(lg_grad_per_sample(c, linear, LG_LIST(x), LG_LIST(x, lg_ones(c, LG_SHAPE(3)))));
        assert_error(c, LG_ERR_SHAPE, "lg_grad_per_sample: tensor 1 of samples is");
        assert_null(lg_grad_per_sample(c, same, LG_LIST(x), LG_LIST(x)));
        assert_error(c, LG_ERR_SHAPE, "lg_grad_per_sample: the loss of sample 0 is");
        lg_close(other);
        lg_close(c);
}
