/* mixed.c - one network trained in f32, in mixed precision with bf16 and with f16, with bf16 parameters, and with
 * activations that are recomputed in the backward pass: the effect of each on loss and memory.
 *
 * Look at lg_autocast, lg_scaler, lg_module_cast, .master of optimisers, and lg_recompute_every.
 *
 *     cc -std=c11 mixed.c $(pkg-config --cflags --libs libgrad) && ./a.out [STEPS]
 * prints a line for each, which ends with the accuracy on points not used for training, and the peak memory:
 *     f32             loss 0.0003  accuracy 1.00  10.8 MB
 *     bf16            loss 0.0042  accuracy 1.00  7.2 MB
 */
#include <grad.h>
#include <stdlib.h>

enum { POINTS = 1500, CLASSES = 3, WIDTH = 128, LAYERS = 8 };

typedef enum mode { F32, BF16, F16, BF16_PARAMETERS, RECOMPUTE, MODES } mode;
static const char *const names[MODES] = {"f32", "bf16", "f16", "bf16 parameters", "recompute"};

/* Returns points x (POINTS, 2) on the arms of a spiral; *ret_y are their classes (POINTS), one arm for each class. */
static lg_tensor *make_points(lg_ctx *c, lg_tensor **ret_y)
{
        lg_tensor *y = lg_randint(c, 0, CLASSES, LG_SHAPE(POINTS));
        lg_tensor *r = lg_uniform(c, 0.1, 1, LG_SHAPE(POINTS));
        lg_tensor *arm = lg_mul_scalar(lg_cast(y, LG_F32), 2 * 3.14159265 / CLASSES);
        lg_tensor *angle = lg_add(lg_add(arm, lg_mul_scalar(r, 4)), lg_normal(c, 0, 0.1, LG_SHAPE(POINTS)));
        *ret_y = y;
        return lg_stack(LG_LIST(lg_mul(r, lg_cos(angle)), lg_mul(r, lg_sin(angle))), 1);
}

static lg_module *make_network(lg_ctx *c)
{
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, WIDTH), lg_nn_gelu(c));
        for (int i = 0; i < LAYERS; i++) {
                lg_module_append(net, lg_nn_linear(c, WIDTH, WIDTH));
                lg_module_append(net, lg_nn_gelu(c));
        }
        lg_module_append(net, lg_nn_linear(c, WIDTH, CLASSES));
        return net;
}

/* Returns the scores in f32, whatever dtype the network computes in. */
static lg_tensor *scores(lg_module *net, lg_tensor *x, mode w)
{
        lg_tensor *s = NULL;
        lg_dtype region = w == BF16 ? LG_BF16 : w == F16 ? LG_F16 : LG_F32;
        lg_autocast(lg_ctx_of(x), region)
        {
                s = lg_forward(net, w == BF16_PARAMETERS ? lg_cast(x, LG_BF16) : x);
        }
        return lg_cast(s, LG_F32);
}

static void train(mode w, int steps)
{
        lg_ctx *c = lg_open(.seed = 1);
        lg_tensor *y, *seen_y, *x = make_points(c, &y), *seen = make_points(c, &seen_y);
        lg_module *net = make_network(c);
        if (w == BF16_PARAMETERS)
                lg_module_cast(net, LG_BF16);
        if (w == RECOMPUTE)
                lg_recompute_every(net, 6);
        lg_optimizer *opt = lg_adamw(c, lg_parameters(net), 2e-3, .master = w == BF16_PARAMETERS);
        lg_scaler *scaler = lg_scaler_new(c); /* used for f16 only: bf16 has the range of f32 */
        double last = 0;
        for (int step = 0; step < steps && !lg_error(c); step++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *loss = lg_cross_entropy(scores(net, seen, w), seen_y);
                lg_zero_grad(opt);
                if (w == F16) {
                        lg_scaler_backward(scaler, loss);
                        lg_scaler_step(scaler, opt); /* skips the step if a gradient has overflowed */
                        lg_scaler_update(scaler);
                } else {
                        lg_backward(loss);
                        lg_step(opt);
                }
                last = lg_item(loss);
                lg_scope_end(c, scope);
        }
        double accuracy = 0, peak = (double)lg_memory_stats(c, lg_cpu()).peak / 1e6;
        lg_no_grad(c) {
                lg_tensor *right = lg_eq(lg_argmax(scores(net, x, w), .dims = LG_DIMS(1)), y);
                accuracy = lg_item(lg_mean(lg_cast(right, LG_F32)));
        }
        if (lg_error(c))
                fprintf(stderr, "%s\n", lg_error(c));
        else
                printf("%-15s loss %.4f  accuracy %.2f  %.1f MB\n", names[w], last, accuracy, peak);
        lg_close(c);
}

int main(int argc, char **argv)
{
        for (mode w = F32; w < MODES; w++)
                train(w, argc > 1 ? atoi(argv[1]) : 100);
        return 0;
}
