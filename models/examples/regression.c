/* regression.c - regression with a validation split and early stopping, which keeps the best weights.
 *
 * Look at lg_dataset_split, lg_train, lg_no_grad, lg_module_clone and lg_copy_state.
 *
 *     cc -std=c11 regression.c $(pkg-config --cflags --libs libgrad) && ./a.out [EPOCHS]
 * ends with a mean squared error, which cannot be less than the variance of the noise, 0.04:
 *     epoch 27 was the best: validation loss 0.0479
 */
#include <grad.h>
#include <stdlib.h>

enum { SAMPLES = 1500, FEATURES = 4, PATIENCE = 15 };

/* Returns samples of y = sin(3 x0) + x1 x2 + noise; y does not depend on x3. */
static lg_dataset *make_data(lg_ctx *c)
{
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(SAMPLES, FEATURES));
        lg_tensor *wave = lg_sin(lg_mul_scalar(lg_slice(x, 1, 0, 1), 3));
        lg_tensor *product = lg_mul(lg_slice(x, 1, 1, 2), lg_slice(x, 1, 2, 3));
        lg_tensor *noise = lg_normal(c, 0, 0.2, LG_SHAPE(SAMPLES, 1));
        return lg_dataset_tensors(c, x, lg_add(lg_add(wave, product), noise));
}

static lg_module *make_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, FEATURES, 64), lg_nn_relu(c), lg_nn_dropout(c, 0.1),
                                lg_nn_linear(c, 64, 64), lg_nn_relu(c), lg_nn_linear(c, 64, 1));
}

static void train_epoch(lg_module *net, lg_optimizer *opt, lg_loader *batches)
{
        lg_train(net, true); /* turns dropout on */
        lg_each_batch(b, batches) {
                lg_tensor *loss = lg_mse(lg_forward(net, b.x), b.y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
        }
}

static double evaluate(lg_ctx *c, lg_module *net, lg_loader *batches)
{
        double sum = 0, count = 0;
        lg_train(net, false); /* turns dropout off */
        lg_no_grad(c)
                lg_each_batch(b, batches) {
                        sum += lg_item(lg_mse(lg_forward(net, b.x), b.y, .reduction = LG_SUM));
                        count += (double)lg_size_of(b.x, 0); /* the last batch may be smaller */
                }
        return sum / count;
}

int main(int argc, char **argv)
{
        int epochs = argc > 1 ? atoi(argv[1]) : 300;
        lg_ctx *c = lg_open(.seed = 1);
        lg_dataset *train, *valid;
        lg_dataset_split(make_data(c), 0.8, &train, &valid, .seed = 1);
        lg_loader *batches = lg_loader_open(c, train, 50, .shuffle = true);
        lg_loader *valid_batches = lg_loader_open(c, valid, 128);
        lg_module *net = make_network(c), *best = lg_module_clone(net);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 3e-3);

        double best_loss = LG_INFINITY;
        int best_epoch = 0;
        for (int epoch = 1; epoch <= epochs && epoch - best_epoch <= PATIENCE && !lg_error(c); epoch++) {
                train_epoch(net, opt, batches);
                double loss = evaluate(c, net, valid_batches);
                if (loss < best_loss) {
                        best_loss = loss;
                        best_epoch = epoch;
                        lg_copy_state(best, net);
                        printf("epoch %3d  validation loss %.4f\n", epoch, loss);
                }
        }
        lg_copy_state(net, best);
        double loss = evaluate(c, net, valid_batches);

        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        else
                printf("epoch %d was the best: validation loss %.4f\n", best_epoch, loss);
        lg_close(c);
        return failed;
}
