/* gru.c - a gated recurrent unit written by hand, which learns the bytes of a text file.
 *
 * Look at step(), the cell (Cho et al. 2014, with PyTorch's gates), and at the loop over time in gru().
 *
 *     cc -std=c11 gru.c $(pkg-config --cflags --libs libgrad) && ./a.out FILE [EPOCHS]
 * prints the mean of -log p(byte) over a tenth of the text that is not used for training:
 *     loss before 5.568, after 1.751
 */
#include <grad.h>
#include <stdlib.h>

enum { LENGTH = 32, HIDDEN = 128, BATCH = 32 };

/* One step of the cell: returns the next state. x (N, 3 HIDDEN) is the input's part of the gates, h (N, HIDDEN) the
 * state. */
static lg_tensor *step(lg_module *hidden, lg_tensor *x, lg_tensor *h)
{
        lg_tensor *from_x[3] = {0}, *from_h[3] = {0};
        lg_chunk(x, 3, 1, from_x, 3);
        lg_chunk(lg_forward(hidden, h), 3, 1, from_h, 3);
        lg_tensor *reset = lg_sigmoid(lg_add(from_x[0], from_h[0]));
        lg_tensor *update = lg_sigmoid(lg_add(from_x[1], from_h[1]));
        lg_tensor *candidate = lg_tanh(lg_add(from_x[2], lg_mul(reset, from_h[2])));
        return lg_lerp(candidate, h, update); /* returns (1 - update) candidate + update h */
}

/* Maps x (N, T, features) to the states after each step, (N, T, HIDDEN). */
static lg_tensor *gru(lg_module *m, lg_list in, void *user)
{
        (void)user;
        lg_tensor *x = lg_forward(lg_child_named(m, "input"), in.items[0]), *states[LENGTH];
        lg_tensor *h = lg_zeros(lg_module_ctx(m), LG_SHAPE(lg_size_of(x, 0), HIDDEN));
        for (int t = 0; t < LENGTH; t++)
                states[t] = h = step(lg_child_named(m, "hidden"), lg_select(x, 1, t), h);
        return lg_stack(LG_LIST_OF(LENGTH, states), 1);
}

static lg_module *make_network(lg_ctx *c)
{
        lg_module *cell = lg_nn_module(c, "GRU", .forward = gru);
        lg_module_add(cell, "input", lg_nn_linear(c, 64, 3 * HIDDEN)); /* one product for the inputs of all steps */
        lg_module_add(cell, "hidden", lg_nn_linear(c, HIDDEN, 3 * HIDDEN));
        return lg_nn_sequential(c, lg_nn_embedding(c, 256, 64), cell, lg_nn_linear(c, HIDDEN, 256));
}

static lg_tensor *loss_of(lg_module *net, lg_batch b)
{
        return lg_cross_entropy(lg_flatten(lg_forward(net, b.x), .end_dim = 1), lg_flatten(b.y, .end_dim = 1));
}

static double evaluate(lg_ctx *c, lg_module *net, lg_loader *batches)
{
        double sum = 0, count = 0;
        lg_no_grad(c)
                lg_each_batch(b, batches) {
                        double size = (double)lg_size_of(b.x, 0); /* the last batch may be smaller */
                        sum += size * lg_item(loss_of(net, b));
                        count += size;
                }
        return sum / count;
}

static void train_epoch(lg_module *net, lg_optimizer *opt, lg_loader *batches)
{
        lg_each_batch(b, batches) {
                lg_tensor *loss = loss_of(net, b);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_clip_grad_norm(lg_parameters(net), 1); /* limits gradients, which can explode over many steps */
                lg_step(opt);
        }
}

int main(int argc, char **argv)
{
        if (argc < 2)
                return fprintf(stderr, "usage: %s FILE [EPOCHS]\n", argv[0]), 2;
        int epochs = argc > 2 ? atoi(argv[2]) : 20;
        lg_ctx *c = lg_open(.seed = 1);
        lg_dataset *train, *valid;
        lg_dataset_split(lg_dataset_text(c, argv[1], LENGTH), 0.9, &train, &valid, .seed = 1);
        lg_loader *batches = lg_loader_open(c, train, BATCH, .shuffle = true);
        lg_loader *valid_batches = lg_loader_open(c, valid, BATCH);
        lg_module *net = make_network(c);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 3e-3);

        double before = evaluate(c, net, valid_batches);
        for (int epoch = 0; epoch < epochs && !lg_error(c); epoch++)
                train_epoch(net, opt, batches);
        double after = evaluate(c, net, valid_batches);

        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        else
                printf("loss before %.3f, after %.3f\n", before, after);
        lg_close(c);
        return failed;
}
