/* data_parallel.c - one network that several processes train together, each with its share of every batch.
 *
 * Look at lg_group_open, lg_data_parallel and .group in main(); the training loop is the same as for one process. All
 * ranks have the same weights after each step, so only rank 0 prints.
 *
 *     cc -std=c11 data_parallel.c $(pkg-config --cflags --libs libgrad) && ./a.out [EPOCHS]
 * trains in one process. mpirun -n 2 ./a.out uses two processes and reaches the same losses except for rounding:
 *     2 processes, by Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022
 *     ...
 *     epoch 20  loss 0.0614  accuracy 0.9861
 */
#include <grad.h>
#include <stdlib.h>

enum { POINTS = 4096, BATCH = 64 };

/* Returns points of [-1, 1]^2; those inside a ring are class 1, the others class 0. */
static lg_dataset *ring(lg_ctx *c)
{
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(POINTS, 2));
        lg_tensor *square = lg_sum(lg_square(x), .dims = LG_DIMS(1));
        lg_tensor *far = lg_abs(lg_add_scalar(square, -0.5));
        return lg_dataset_tensors(c, x, lg_cast(lg_lt_scalar(far, 0.25), LG_I64));
}

/* Trains for one epoch and returns the mean loss over all ranks. */
static double train_epoch(lg_module *net, lg_optimizer *opt, lg_loader *batches, lg_group *g)
{
        lg_tensor *sum = lg_zeros(lg_module_ctx(net), LG_SHAPE_0D, .device = lg_group_device(g));
        lg_each_batch(b, batches) {
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
                lg_zero_grad(opt);
                lg_backward(loss); /* also averages the gradients over all ranks */
                lg_step(opt);
                lg_add_(sum, lg_mul_scalar(lg_detach(loss), (double)lg_size_of(b.x, 0)));
        }
        return lg_item(lg_all_reduce(sum, g)) / POINTS;
}

/* Returns the accuracy on all points; each rank tests its share of them. */
static double accuracy(lg_module *net, lg_loader *tests, lg_group *g)
{
        lg_tensor *right = lg_zeros(lg_module_ctx(net), LG_SHAPE_0D, .dtype = LG_I64, .device = lg_group_device(g));
        lg_no_grad(lg_module_ctx(net))
                lg_each_batch(b, tests) {
                        lg_tensor *guess = lg_argmax(lg_forward(net, b.x), .dims = LG_DIMS(1));
                        lg_add_(right, lg_sum(lg_eq(guess, b.y)));
                }
        return lg_item(lg_all_reduce(right, g)) / POINTS;
}

int main(int argc, char **argv)
{
        int epochs = argc > 1 ? atoi(argv[1]) : 20;
        lg_ctx *c = lg_open(.seed = 1, .threads = 1);
        lg_dataset *points = ring(c); /* before lg_group_open, after which the ranks' random numbers differ */

        lg_set_default_device(c, lg_try_cuda(c, 0));
        lg_group *g = lg_group_open(c, .timeout = 60); /* waits for all ranks; with GPUs, each rank has its own */
        int rank = lg_group_rank(g), size = lg_group_size(g);
        lg_device dev = lg_group_device(g);
        lg_loader *batches = lg_loader_open(c, points, BATCH / size, .shuffle = true, .device = dev, .group = g);
        lg_loader *tests = lg_loader_open(c, points, 512, .device = dev, .group = g);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 64), lg_nn_relu(c), lg_nn_linear(c, 64, 64),
                                          lg_nn_relu(c), lg_nn_linear(c, 64, 2));
        lg_module_to(net, dev);
        lg_data_parallel(net, g); /* copies the weights of rank 0 to all ranks */
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 3e-3);

        if (g && rank == 0)
                printf("%d process%s, by %s\n", size, size > 1 ? "es" : "", lg_group_transport(g));
        for (int epoch = 1; epoch <= epochs && !lg_error(c); epoch++) {
                double loss = train_epoch(net, opt, batches, g), right = accuracy(net, tests, g);
                if (rank == 0 && !lg_error(c))
                        printf("epoch %d  loss %.4f  accuracy %.4f\n", epoch, loss, right);
        }
        int failed = lg_error(c) != NULL; /* true on all ranks if any of them has failed */
        if (failed)
                fprintf(stderr, "rank %d: %s\n", rank, lg_error(c));
        lg_close(c);
        return failed;
}
