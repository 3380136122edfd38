/* threads.c - two networks trained at the same time, each in its own thread and context.
 *
 * Look at train(): all that a thread uses belongs to its context, so no locks are needed. The same jobs, run one after
 * the other in one thread, end with the same weights, bit for bit.
 *
 *     cc -std=c11 threads.c $(pkg-config --cflags --libs libgrad) && ./a.out [EPOCHS]
 * prints:
 *     seed 1: accuracy 0.9935, alone 0.9935, weights equal
 *     seed 2: accuracy 0.9975, alone 0.9975, weights equal
 */
#include <grad.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, HIDDEN = 32, WEIGHTS = 2 * HIDDEN + HIDDEN + HIDDEN * 2 + 2 };

/* The input of a thread (seed, epochs) and its results. */
typedef struct job {
        uint64_t seed;
        int epochs;
        bool ok;
        double accuracy;
        float weights[WEIGHTS];
} job;

/* Learns which points of [-1, 1]^2 are in the first or third quadrant. Has the signature that pthread_create requires.
 */
static void *train(void *user)
{
        job *j = user;
        lg_ctx *c = lg_open(.seed = j->seed, .threads = 1);
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(2000, 2));
        lg_tensor *y = lg_cast(lg_gt_scalar(lg_prod(x, .dims = LG_DIMS(1)), 0), LG_I64);
        lg_loader *batches = lg_loader_open(c, lg_dataset_tensors(c, x, y), 50, .shuffle = true);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, HIDDEN), lg_nn_relu(c), lg_nn_linear(c, HIDDEN, 2));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-2);
        for (int epoch = 0; epoch < j->epochs && !lg_error(c); epoch++)
                lg_each_batch(b, batches) {
                        lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
                        lg_zero_grad(opt);
                        lg_backward(loss);
                        lg_step(opt);
                }
        lg_no_grad(c) {
                lg_tensor *right = lg_eq(lg_argmax(lg_forward(net, x), .dims = LG_DIMS(1)), y);
                j->accuracy = lg_item(lg_sum(right)) / (double)lg_numel(right);
        }
        lg_list weights = lg_parameters(net);
        for (int64_t i = 0, at = 0; i < weights.count; i++) {
                int64_t n = lg_numel(weights.items[i]);
                lg_read(weights.items[i], j->weights + at, LG_F32, (size_t)n * sizeof *j->weights);
                at += n;
        }
        j->ok = !lg_error(c);
        if (!j->ok)
                fprintf(stderr, "seed %d: %s\n", (int)j->seed, lg_error(c));
        lg_close(c);
        return NULL;
}

int main(int argc, char **argv)
{
        job together[THREADS] = {{0}}, alone[THREADS];
        pthread_t thread[THREADS];
        bool ok = true;
        for (int i = 0; i < THREADS; i++) {
                together[i].seed = (uint64_t)i + 1;
                together[i].epochs = argc > 1 ? atoi(argv[1]) : 50;
                alone[i] = together[i];
        }
        for (int i = 0; i < THREADS; i++)
                if (pthread_create(&thread[i], NULL, train, &together[i]) != 0)
                        return 1;
        for (int i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
        for (int i = 0; i < THREADS; i++) {
                train(&alone[i]);
                bool same = memcmp(together[i].weights, alone[i].weights, sizeof alone[i].weights) == 0;
                printf("seed %d: accuracy %.4f, alone %.4f, weights %s\n", i + 1, together[i].accuracy,
                       alone[i].accuracy, same ? "equal" : "differ");
                ok = ok && same && together[i].ok && alone[i].ok;
        }
        return ok ? 0 : 1;
}
