/* gaussian_process.c - exact regression by a Gaussian process, whose kernel is learned by the marginal likelihood.
 *
 * Look at lg_cholesky, lg_cholesky_solve and lg_triangular_solve.
 *
 *     cc -std=c11 gaussian_process.c $(pkg-config --cflags --libs libgrad) && ./a.out [STEPS]
 * ends with the deviation of the noise, 0.1 in the data, the error of the means at 200 new points, and the share of
 * these whose value is within two deviations: step 200  likelihood 36.80  length 0.76  noise 0.085 error 0.045  inside
 * 0.96
 */
#include <grad.h>
#include <stdlib.h>

enum { SAMPLES = 60, TESTS = 200 };

/* Logarithms of the kernel's length scale, of its amplitude and of the standard deviation of the noise. */
typedef struct process {
        lg_tensor *length, *amplitude, *noise;
} process;

static lg_tensor *wave(lg_tensor *x)
{
        return lg_squeeze(lg_sin(lg_mul_scalar(x, 2)), LG_DIMS(1));
}

/* Returns the covariances amplitude^2 e^(-|a - b|^2 / (2 length^2)) of points a (n, 1) and b (m, 1): (n, m). */
static lg_tensor *covariance(const process *p, lg_tensor *a, lg_tensor *b)
{
        lg_tensor *far = lg_div(lg_sub(a, lg_transpose(b, 0, 1)), lg_exp(p->length));
        return lg_exp(lg_sub(lg_mul_scalar(p->amplitude, 2), lg_mul_scalar(lg_square(far), 0.5)));
}

/* Returns the Cholesky factor of the covariances of noisy observations at x. */
static lg_tensor *factor(const process *p, lg_tensor *x)
{
        lg_tensor *one = lg_eye(lg_ctx_of(x), SAMPLES, SAMPLES, .dtype = LG_F64);
        lg_tensor *noise = lg_mul(one, lg_add_scalar(lg_exp(lg_mul_scalar(p->noise, 2)), 1e-8));
        return lg_cholesky(lg_add(covariance(p, x, x), noise));
}

/* Returns the logarithm of the density of the observations y (n, 1) at x. */
static lg_tensor *likelihood(const process *p, lg_tensor *x, lg_tensor *y)
{
        lg_tensor *l = factor(p, x), *z = lg_triangular_solve(l, y);
        lg_tensor *half_log_det = lg_sum(lg_log(lg_diagonal(l)));
        const double constant = 0.5 * SAMPLES * 1.8378770664093454836; /* log(2 pi) */
        return lg_neg(lg_add_scalar(lg_add(lg_mul_scalar(lg_sum(lg_square(z)), 0.5), half_log_det), constant));
}

/* Prints the error of the predicted means, and the share of the true values within two predicted deviations. */
static void test(lg_ctx *c, const process *p, lg_tensor *x, lg_tensor *y)
{
        lg_tensor *at = lg_uniform(c, 0, 6, LG_SHAPE(TESTS, 1), .dtype = LG_F64), *true_values = wave(at);
        lg_tensor *l = factor(p, x), *k = covariance(p, x, at);
        lg_tensor *mean = lg_squeeze(lg_matmul(lg_transpose(k, 0, 1), lg_cholesky_solve(l, y)), LG_DIMS(1));
        lg_tensor *known = lg_sum(lg_square(lg_triangular_solve(l, k)), .dims = LG_DIMS(0));
        lg_tensor *deviation = lg_sqrt(lg_sub(lg_exp(lg_mul_scalar(p->amplitude, 2)), known));
        lg_tensor *error = lg_abs(lg_sub(mean, true_values));
        printf("error %.3f  inside %.2f\n", lg_item(lg_sqrt(lg_mean(lg_square(error)))),
               lg_item(lg_mean(lg_cast(lg_lt(error, lg_mul_scalar(deviation, 2)), LG_F64))));
}

int main(int argc, char **argv)
{
        const int steps = argc > 1 ? atoi(argv[1]) : 200;
        lg_ctx *c = lg_open(.seed = 1);
        lg_tensor *x = lg_uniform(c, 0, 6, LG_SHAPE(SAMPLES, 1), .dtype = LG_F64);
        lg_tensor *noise = lg_normal(c, 0, 0.1, LG_SHAPE(SAMPLES), .dtype = LG_F64);
        lg_tensor *y = lg_unsqueeze(lg_add(wave(x), noise), 1);
        process p = {lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64, .requires_grad = true),
                     lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64, .requires_grad = true),
                     lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64, .requires_grad = true)};
        lg_optimizer *opt = lg_adam(c, LG_LIST(p.length, p.amplitude, p.noise), 0.05);
        for (int step = 1; step <= steps && !lg_error(c); step++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *value = likelihood(&p, x, y);
                lg_zero_grad(opt);
                lg_backward(lg_neg(value));
                lg_step(opt);
                if (step % 50 == 0 || step == steps)
                        printf("step %d  likelihood %.2f  length %.2f  noise %.3f\n", step, lg_item(value),
                               lg_item(lg_exp(p.length)), lg_item(lg_exp(p.noise)));
                lg_scope_end(c, s);
        }
        lg_no_grad(c)
                test(c, &p, x, y);
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
