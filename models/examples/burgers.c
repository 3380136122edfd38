/* burgers.c - a physics-informed network (Raissi et al. 2019) for Burgers' equation, u_t + u u_x = 0.03 / pi u_xx.
 *
 * u(0, x) is -sin(pi x), and u(t, -1) = u(t, 1) = 0; a steep front forms at x = 0. Look at loss_of(), which
 * lg_step_closure() calls about 25 times in a step of L-BFGS, each time for the same points: the loss has no noise.
 *
 *     cc -std=c11 burgers.c $(pkg-config --cflags --libs libgrad) -lm && ./a.out [STEPS [SEED]]
 * stops at a loss of 1e-4, compares u(1, x) with the exact solution, and ends with:
 *     step  65  loss 9.78e-05  largest error 0.0538
 */
#include <grad.h>
#include <math.h>
#include <stdlib.h>

enum { INSIDE = 1000, EDGE = 100, GRID = 101 };
#define PI 3.141592653589793
#define VISCOSITY (0.03 / PI)

typedef struct problem {
        lg_module *net;
        lg_tensor *t, *x;        /* points inside, shape (INSIDE, 1) each */
        lg_tensor *edge, *known; /* points (t, x) where u is known, and u there */
} problem;

static lg_tensor *u_at(lg_module *net, lg_tensor *t, lg_tensor *x)
{
        return lg_forward(net, lg_cat(LG_LIST(t, x), 1));
}

/* Returns the mean squared residual of the equation inside plus the mean squared error at the edge. */
static lg_tensor *loss_of(lg_ctx *c, void *user)
{
        (void)c;
        const problem *p = user;
        lg_tensor *first[2], *u = u_at(p->net, p->t, p->x); /* first: u_t and u_x */
        lg_grad(LG_LIST(lg_sum(u)), LG_LIST(p->t, p->x), .result = first, .create_graph = true);
        lg_tensor *u_xx = lg_grad(LG_LIST(lg_sum(first[1])), LG_LIST(p->x), .create_graph = true);
        lg_tensor *residual = lg_sub(lg_add(first[0], lg_mul(u, first[1])), lg_mul_scalar(u_xx, VISCOSITY));
        return lg_add(lg_mean(lg_square(residual)), lg_mse(lg_forward(p->net, p->edge), p->known));
}

/* Draws points inside, at t = 0, and at x = -1 or 1. */
static problem make_problem(lg_ctx *c, lg_module *net)
{
        problem p = {.net = net};
        p.t = lg_uniform(c, 0, 1, LG_SHAPE(INSIDE, 1), .dtype = LG_F64, .requires_grad = true);
        p.x = lg_uniform(c, -1, 1, LG_SHAPE(INSIDE, 1), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(EDGE, 1), .dtype = LG_F64);
        lg_tensor *t = lg_uniform(c, 0, 1, LG_SHAPE(EDGE, 1), .dtype = LG_F64), *zero = lg_zeros_like(x);
        p.edge = lg_cat(LG_LIST(lg_cat(LG_LIST(zero, x), 1), lg_cat(LG_LIST(t, lg_sign(x)), 1)), 0);
        p.known = lg_cat(LG_LIST(lg_neg(lg_sin(lg_mul_scalar(x, PI))), zero), 0);
        return p;
}

/* Returns the exact u(1, x): a quotient of two integrals over a normal distribution (Hopf 1950, Cole 1951). */
static double exact(double x)
{
        double above = 0, below = 0;
        for (double s = -8; s <= 8; s += 0.01) {
                const double y = x - sqrt(2 * VISCOSITY) * s;
                const double f = exp(-s * s / 2 - (cos(PI * y) + 1) / (2 * PI * VISCOSITY));
                above -= sin(PI * y) * f;
                below += f;
        }
        return above / below;
}

/* Returns the largest error of u(1, x) on a grid. */
static double largest_error(lg_ctx *c, lg_module *net)
{
        double error = 0, u[GRID] = {0};
        lg_scope s = lg_scope_begin(c);
        lg_tensor *x = lg_reshape(lg_linspace(c, -1, 1, GRID, .dtype = LG_F64), LG_SHAPE(GRID, 1));
        lg_no_grad(c)
                lg_read(u_at(net, lg_ones_like(x), x), u, LG_F64, sizeof u);
        for (int i = 0; i < GRID; i++)
                error = fmax(error, fabs(u[i] - exact(-1 + 2.0 * i / (GRID - 1))));
        lg_scope_end(c, s);
        return error;
}

int main(int argc, char **argv)
{
        lg_ctx *c = lg_open(.seed = argc > 2 ? (uint64_t)atoi(argv[2]) : 1);
        lg_module *net =
                lg_nn_sequential(c, lg_nn_linear(c, 2, 20), lg_nn_tanh(c), lg_nn_linear(c, 20, 20), lg_nn_tanh(c),
                                 lg_nn_linear(c, 20, 20), lg_nn_tanh(c), lg_nn_linear(c, 20, 1));
        lg_module_cast(net, LG_F64);
        problem p = make_problem(c, net);
        lg_optimizer *opt = lg_lbfgs(c, lg_parameters(net), 1, .strong_wolfe = true);
        double loss = 1;
        for (int step = 1, last = argc > 1 ? atoi(argv[1]) : 500; step <= last && loss > 1e-4 && !lg_error(c); step++)
                if (lg_step_closure(opt, loss_of, &p, &loss) && (step % 10 == 0 || step == last || loss <= 1e-4))
                        printf("step %3d  loss %.2e  largest error %.4f\n", step, loss, largest_error(c, net));
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
