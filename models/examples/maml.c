/* maml.c - model-agnostic meta-learning (Finn et al. 2017): weights from which one step fits any sinusoid.
 *
 * Look at gradients(), and at adapted_loss() and check_product(), which differentiate these gradients again.
 *     cc -std=c11 maml.c $(pkg-config --cflags --libs libgrad) && ./a.out [STEPS]
 * ends with:
 *     step 3000  loss before adaptation 3.095, after 0.413
 *     Hessian times vector: error 5.0e-09
 */
#include <grad.h>
#include <stdlib.h>

enum { PARAMETERS = 6, HIDDEN = 2, POINTS = 10, TASKS = 10, WINDOW = 100 };

/* Draws a sinusoid of random amplitude and phase: two sets of points x (POINTS, 1) with their values y. */
static void draw_task(lg_ctx *c, lg_tensor *x[2], lg_tensor *y[2])
{
        lg_tensor *amplitude = lg_uniform(c, 0.1, 5, LG_SHAPE_0D), *phase = lg_uniform(c, 0, 3.14159, LG_SHAPE_0D);
        for (int i = 0; i < 2; i++) {
                x[i] = lg_uniform(c, -5, 5, LG_SHAPE(POINTS, 1), .dtype = LG_F64);
                y[i] = lg_mul(amplitude, lg_sin(lg_add(x[i], phase)));
        }
}

static lg_tensor *loss_of(lg_module *net, lg_tensor *const *weights, lg_tensor *x, lg_tensor *y)
{
        return lg_mse(lg_forward_params(net, LG_LIST_OF(PARAMETERS, weights), x), y);
}

/* Computes the gradients of the loss with respect to the weights w, which can be differentiated again. */
static void gradients(lg_module *net, lg_tensor *const *w, lg_tensor *x, lg_tensor *y, lg_tensor **ret)
{
        lg_grad(LG_LIST(loss_of(net, w, x, y)), LG_LIST_OF(PARAMETERS, w), .result = ret, .create_graph = true);
}

/* Returns a new task's loss on new points after one step of gradient descent; *before is that without the step. */
static lg_tensor *adapted_loss(lg_ctx *c, lg_module *net, lg_tensor **before)
{
        lg_tensor *x[2], *y[2], *grads[PARAMETERS], *adapted[PARAMETERS], *const *weights = lg_parameters(net).items;
        draw_task(c, x, y);
        gradients(net, weights, x[0], y[0], grads);
        for (int i = 0; i < PARAMETERS; i++)
                adapted[i] = lg_sub(weights[i], lg_mul_scalar(grads[i], 0.02));
        *before = loss_of(net, weights, x[1], y[1]);
        return loss_of(net, adapted, x[1], y[1]);
}

/* Returns the relative error of the hidden weight's Hessian times a random v against gradients at w +- eps v. */
static double check_product(lg_ctx *c, lg_module *net, double eps)
{
        lg_tensor *x[2], *y[2], *g[PARAMETERS], *high[PARAMETERS], *low[PARAMETERS], *dot = lg_scalar(c, 0);
        lg_tensor *const *w = lg_parameters(net).items, *above[PARAMETERS], *below[PARAMETERS];
        draw_task(c, x, y);
        gradients(net, w, x[0], y[0], g);
        for (int i = 0; i < PARAMETERS; i++) {
                lg_tensor *v = lg_normal_like(w[i], 0, 1), *step = lg_mul_scalar(v, eps);
                dot = lg_add(dot, lg_sum(lg_mul(g[i], v)));
                above[i] = lg_add(w[i], step);
                below[i] = lg_sub(w[i], step);
        }
        gradients(net, above, x[0], y[0], high);
        gradients(net, below, x[0], y[0], low);
        lg_tensor *product = lg_grad(LG_LIST(dot), LG_LIST(w[HIDDEN]));
        lg_tensor *difference = lg_div_scalar(lg_sub(high[HIDDEN], low[HIDDEN]), 2 * eps);
        return lg_item(lg_norm(lg_sub(product, difference))) / lg_item(lg_norm(difference));
}

int main(int argc, char **argv)
{
        int steps = argc > 1 ? atoi(argv[1]) : 3000;
        lg_ctx *c = lg_open(.seed = 1);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 1, 40, .dtype = LG_F64), lg_nn_tanh(c),
                                          lg_nn_linear(c, 40, 40, .dtype = LG_F64), lg_nn_tanh(c),
                                          lg_nn_linear(c, 40, 1, .dtype = LG_F64));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 5e-3);
        double sum[2] = {0};
        for (int step = 1; step <= steps && !lg_error(c); step++) {
                lg_zero_grad(opt);
                for (int i = 0; i < TASKS; i++) {
                        lg_scope s = lg_scope_begin(c);
                        lg_tensor *before, *after = adapted_loss(c, net, &before);
                        lg_backward(lg_div_scalar(after, TASKS)); /* the gradients of all tasks add up */
                        sum[0] += lg_item(before) / TASKS / WINDOW;
                        sum[1] += lg_item(after) / TASKS / WINDOW;
                        lg_scope_end(c, s);
                }
                lg_step(opt);
                if (step % WINDOW == 0) {
                        printf("step %4d  loss before adaptation %.3f, after %.3f\n", step, sum[0], sum[1]);
                        sum[0] = sum[1] = 0;
                }
        }
        if (!lg_error(c))
                printf("Hessian times vector: error %.1e\n", check_product(c, net, 1e-5));
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
