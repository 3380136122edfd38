/* fno.c - a Fourier neural operator (Li et al. 2021), which maps u(0, x) to u(1, x) for Burgers' equation
 * u_t + u u_x = 0.05 u_xx with period 2 pi.
 *
 * Look at run_spectral(): it multiplies the lowest frequencies by complex weights, so that the network takes functions
 * on any grid: it learns on 64 points and is tested on 256 as well. solve() makes the data.
 *
 *     cc -std=c11 fno.c $(pkg-config --cflags --libs libgrad) -lm && ./a.out [STEPS]
 * prints the mean relative error for functions that are new to the network, and ends with:
 *     step  600  loss 0.0410  error on 64 points 0.0438  on 256 points 0.0442
 */
#include <grad.h>
#include <math.h>
#include <stdlib.h>

enum { FINE = 256, TIMES = 200, BATCH = 20, TRAIN = 500, TEST = 100, WIDTH = 24, MODES = 12 };

/* Adds a convolution of one point to x (N, WIDTH, grid) whose lowest frequencies a complex matrix each has multiplied.
 */
static lg_tensor *run_spectral(lg_module *m, lg_list in, void *user)
{
        lg_tensor *x = in.items[0], *w = lg_parameter(m, "weight"); /* (MODES, WIDTH, WIDTH, 2) */
        lg_tensor *f = lg_slice(lg_rfft(x, .norm = LG_FFT_FORWARD), 2, 0, MODES);
        lg_tensor *a = lg_select(f, -1, 0), *b = lg_select(f, -1, 1), *v = lg_select(w, -1, 0),
                  *z = lg_select(w, -1, 1);
        const char *by = "nik,kio->nok";
        lg_tensor *re = lg_sub(lg_einsum(by, LG_LIST(a, v)), lg_einsum(by, LG_LIST(b, z)));
        lg_tensor *im = lg_add(lg_einsum(by, LG_LIST(a, z)), lg_einsum(by, LG_LIST(b, v)));
        lg_tensor *y = lg_irfft(lg_complex(re, im), .n = lg_size_of(x, 2), .norm = LG_FFT_FORWARD);
        return (void)user, lg_gelu(lg_add(y, lg_forward(lg_child(m, 0), x)));
}

static lg_module *make_spectral(lg_ctx *c)
{
        lg_module *m = lg_nn_module(c, "Spectral", .forward = run_spectral);
        lg_module_add_parameter(m, "weight", lg_normal(c, 0, 1.0 / WIDTH, LG_SHAPE(MODES, WIDTH, WIDTH, 2)));
        lg_module_add(m, "point", lg_nn_conv1d(c, WIDTH, WIDTH, 1));
        return m;
}

/* Returns u(1, x) for u (N, FINE): Heun's method for the spectrum times exp(0.05 k^2 t), whose viscous term is 0. */
static lg_tensor *solve(lg_ctx *c, lg_tensor *u)
{
        lg_tensor *k = lg_rfftfreq(c, FINE, .d = 1.0 / FINE), *f = lg_rfft(u);
        lg_tensor *decay = lg_unsqueeze(lg_exp(lg_mul_scalar(lg_square(k), -0.05 / TIMES)), 1);
        lg_tensor *slope = lg_mul_scalar(lg_complex(lg_zeros_like(k), k), -0.5 / TIMES); /* -i k / 2, of u^2 */
        for (int i = 0; i < TIMES; i++) {
                lg_tensor *next = lg_mul(lg_add(f, lg_complex_mul(lg_rfft(lg_square(lg_irfft(f))), slope)), decay);
                lg_tensor *last = lg_complex_mul(lg_rfft(lg_square(lg_irfft(next))), slope);
                f = lg_mul_scalar(lg_add(lg_add(lg_mul(f, decay), next), last), 0.5);
        }
        return lg_irfft(f);
}

/* Returns n sums of 5 waves with random amplitudes, (n, FINE). */
static lg_tensor *draw(lg_ctx *c, int n)
{
        lg_tensor *x = lg_arange(c, 0, 6.283185307179586, 6.283185307179586 / FINE, .dtype = LG_F32);
        lg_tensor *k = lg_arange(c, 1, 6, 1, .dtype = LG_F32), *t = lg_outer(k, x);
        lg_tensor *a = lg_div(lg_normal(c, 0, 1, LG_SHAPE(2, n, 5)), k);
        return lg_add(lg_matmul(lg_select(a, 0, 0), lg_sin(t)), lg_matmul(lg_select(a, 0, 1), lg_cos(t)));
}

/* Returns the mean of |net(u) - v| / |v| for functions u and v at every step-th point. */
static lg_tensor *error_of(lg_module *net, lg_tensor *u, lg_tensor *v, int64_t step)
{
        lg_tensor *x = lg_unsqueeze(lg_slice(u, 1, 0, FINE, .step = step), 1),
                  *y = lg_slice(v, 1, 0, FINE, .step = step);
        lg_tensor *gap = lg_sub(lg_select(lg_forward(net, x), 1, 0), y);
        return lg_mean(lg_div(lg_norm(gap, .dims = LG_DIMS(1)), lg_norm(y, .dims = LG_DIMS(1))));
}

int main(int argc, char **argv)
{
        const int steps = argc > 1 ? atoi(argv[1]) : 600;
        lg_ctx *c = lg_open(.seed = 1);
        lg_module *net = lg_nn_sequential(c, lg_nn_conv1d(c, 1, WIDTH, 1), make_spectral(c), make_spectral(c),
                                          make_spectral(c), lg_nn_conv1d(c, WIDTH, 1, 1));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 3e-3);
        lg_tensor *u = draw(c, TRAIN + TEST), *v = solve(c, u);
        lg_tensor *new_u = lg_slice(u, 0, TRAIN, LG_MAX), *new_v = lg_slice(v, 0, TRAIN, LG_MAX);
        for (int step = 1; step <= steps && !lg_error(c); step++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *index = lg_randint(c, 0, TRAIN, LG_SHAPE(BATCH));
                lg_tensor *x = lg_index_select(u, 0, index), *loss = error_of(net, x, lg_index_select(v, 0, index), 4);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                if (step % 50 == 0 || step == steps)
                        printf("step %4d  loss %.4f  error on 64 points %.4f  on 256 points %.4f\n", step,
                               lg_item(loss), lg_item(error_of(net, new_u, new_v, 4)),
                               lg_item(error_of(net, new_u, new_v, 1)));
                lg_scope_end(c, scope);
        }
        const int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
