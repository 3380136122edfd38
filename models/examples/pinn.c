/* pinn.c - a physics-informed network (Raissi et al. 2019), which solves u'' = -pi^2 sin(pi x), u(0) = u(1) = 0.
 *
 * Look at derivative(): called twice, it returns u''; the backward pass then differentiates the loss a third time.
 *
 *     cc -std=c11 pinn.c $(pkg-config --cflags --libs libgrad) && ./a.out [STEPS]
 * compares u with the exact solution, sin(pi x), and ends with:
 *     step 5000  loss 3.18e-05  largest error 0.00003
 */
#include <grad.h>
#include <stdlib.h>

enum { POINTS = 64, TEST_POINTS = 101 };
#define PI 3.141592653589793

/* Returns du/dx at each point. u[i] depends on x[i] alone, so the gradient of the sum of u has all these derivatives.
 */
static lg_tensor *derivative(lg_tensor *u, lg_tensor *x)
{
        return lg_grad(LG_LIST(lg_sum(u)), LG_LIST(x), .create_graph = true);
}

/* Returns the mean squared residual of the equation at random points plus 100 times that of the values at both ends. */
static lg_tensor *loss_of(lg_ctx *c, lg_module *net)
{
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(POINTS, 1), .requires_grad = true);
        lg_tensor *second = derivative(derivative(lg_forward(net, x), x), x);
        lg_tensor *residual = lg_add(second, lg_mul_scalar(lg_sin(lg_mul_scalar(x, PI)), PI * PI));
        lg_tensor *ends = lg_forward(net, lg_reshape(lg_linspace(c, 0, 1, 2), LG_SHAPE(2, 1)));
        return lg_add(lg_mean(lg_square(residual)), lg_mul_scalar(lg_mean(lg_square(ends)), 100));
}

/* Returns the largest |u(x) - sin(pi x)| on a grid. */
static double largest_error(lg_ctx *c, lg_module *net)
{
        double error = 0;
        lg_scope s = lg_scope_begin(c);
        lg_no_grad(c) {
                lg_tensor *x = lg_reshape(lg_linspace(c, 0, 1, TEST_POINTS), LG_SHAPE(TEST_POINTS, 1));
                error = lg_item(lg_amax(lg_abs(lg_sub(lg_forward(net, x), lg_sin(lg_mul_scalar(x, PI))))));
        }
        lg_scope_end(c, s);
        return error;
}

int main(int argc, char **argv)
{
        int steps = argc > 1 ? atoi(argv[1]) : 5000;
        lg_ctx *c = lg_open(.seed = 1);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 1, 32), lg_nn_tanh(c), lg_nn_linear(c, 32, 32),
                                          lg_nn_tanh(c), lg_nn_linear(c, 32, 1));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-2);
        lg_scheduler *rate = lg_cosine_lr(opt, steps);
        for (int step = 1; step <= steps && !lg_error(c); step++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *loss = loss_of(c, net);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                lg_scheduler_step(rate);
                if (step % 500 == 0)
                        printf("step %4d  loss %.2e  largest error %.5f\n", step, lg_item(loss), largest_error(c, net));
                lg_scope_end(c, s);
        }
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
