/* own_op.c - a custom op: log(cosh(x)), checked against finite differences and used as a loss.
 *
 * Look at lg_custom, lg_gradcheck, lg_gradgradcheck, and at log_cosh_backward(), which is written in ops so that its
 * result can be differentiated again.
 *
 *     cc -std=c11 own_op.c $(pkg-config --cflags --libs libgrad) && ./a.out [STEPS]
 * prints the results of the checks, and lines fitted to points of y = 2 x - 1, a tenth of which are outliers:
 *     first derivative: input 0, element 11 of (4, 5): analytic 0.3904613247, numeric 0.3904613247, error 5.7e-13 ...
 *     least squares: y = -0.90 x -2.07
 *     log(cosh): y = 1.92 x -1.03
 */
#include <grad.h>
#include <stdlib.h>

/* Computes log(cosh(x)) as |x| + log(1 + e^(-2 |x|)) - log(2), because cosh(x) itself would overflow. */
static bool log_cosh_forward(lg_custom_call *call)
{
        lg_tensor *size = lg_abs(call->in[0]);
        call->out[0] = lg_sub_scalar(lg_add(size, lg_log1p(lg_exp(lg_mul_scalar(size, -2)))), 0.6931471805599453);
        return call->out[0] != NULL;
}

/* Multiplies by the derivative tanh(x), which is also right at 0, where the derivative of |x| jumps. */
static bool log_cosh_backward(lg_custom_call *call)
{
        call->grad_in[0] = lg_mul(call->grad_out[0], lg_tanh(call->in[0]));
        return call->grad_in[0] != NULL;
}

static lg_tensor *log_cosh(lg_tensor *x)
{
        return lg_custom(lg_ctx_of(x), "log_cosh", LG_LIST(x), .forward = log_cosh_forward,
                         .backward = log_cosh_backward);
}

static lg_tensor *to_check(lg_ctx *c, lg_list inputs, void *user)
{
        (void)c;
        (void)user;
        return log_cosh(inputs.items[0]);
}

/* Compares the first and the second derivative with finite differences, in f64. */
static bool check(lg_ctx *c)
{
        lg_check_report first = {.text = "not run"}, second = first;
        lg_tensor *x = lg_uniform(c, -3, 3, LG_SHAPE(4, 5), .dtype = LG_F64, .requires_grad = true);
        bool ok = lg_gradcheck(c, to_check, LG_LIST(x), .report = &first) &&
                  lg_gradgradcheck(c, to_check, LG_LIST(x), .report = &second);
        printf("first derivative: %s\nsecond derivative: %s\n", first.text, second.text);
        return ok;
}

/* Fits y = slope x + offset to 200 points, 20 of them outliers, and prints slope and offset. */
static void fit(lg_ctx *c, const char *name, lg_tensor *(*loss_of)(lg_tensor *residual), int steps)
{
        lg_tensor *x = lg_linspace(c, -1, 1, 200), *noise = lg_normal(c, 0, 0.1, LG_SHAPE(200));
        lg_tensor *y = lg_add(lg_sub_scalar(lg_mul_scalar(x, 2), 1), noise);
        y = lg_where(lg_gt_scalar(x, 0.8), lg_full_like(y, -10), y);
        lg_tensor *slope = lg_zeros(c, LG_SHAPE_0D, .requires_grad = true);
        lg_tensor *offset = lg_zeros(c, LG_SHAPE_0D, .requires_grad = true);
        lg_optimizer *opt = lg_adam(c, LG_LIST(slope, offset), 0.03);
        for (int step = 0; step < steps && !lg_error(c); step++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *residual = lg_sub(lg_add(lg_mul(slope, x), offset), y);
                lg_zero_grad(opt);
                lg_backward(lg_mean(loss_of(lg_div_scalar(residual, 0.1))));
                lg_step(opt);
                lg_scope_end(c, s);
        }
        printf("%s: y = %.2f x %+.2f\n", name, lg_item(slope), lg_item(offset));
}

int main(int argc, char **argv)
{
        int steps = argc > 1 ? atoi(argv[1]) : 1000;
        lg_ctx *c = lg_open(.seed = 1);
        bool ok = check(c);
        fit(c, "least squares", lg_square, steps);
        fit(c, "log(cosh)", log_cosh, steps);
        if (lg_error(c))
                fprintf(stderr, "%s\n", lg_error(c));
        ok = ok && !lg_error(c);
        lg_close(c);
        return ok ? 0 : 1;
}
