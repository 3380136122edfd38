/* onnx_head.c - a network that PyTorch exported gets a new head, which is trained, and becomes an ONNX file again.
 *
 * Look at make_head(): the nodes of the file then run with the parameters of the new layer. All others are frozen. The
 * task is made up: rectangles that lie, stand or are squares.
 *
 *     cc -std=c11 onnx_head.c $(pkg-config --cflags --libs libgrad) && ./a.out FILE [STEPS [SIZE]]
 * takes a network for images of SIZE x SIZE whose last layer is "fc": tests/data/onnx_head.onnx (16 x 16) or
 * torchvision's resnet18 (224 x 224), exported with a dynamic batch. It writes head.onnx and ends with:
 *     loss before 1.177, after 0.285
 *     head.onnx: the same scores
 */
#include <grad.h>
#include <stdlib.h>

enum { BATCH = 32, CLASSES = 3 };

/* Returns numbers of a table (CLASSES), one for each class, that broadcast over images. */
static lg_tensor *pick(lg_tensor *classes, double lies, double stands, double square)
{
        double table[CLASSES] = {lies, stands, square};
        lg_tensor *all = lg_cast(lg_from(lg_ctx_of(classes), table, LG_SHAPE(CLASSES)), LG_F32);
        return lg_reshape(lg_index_select(all, 0, classes), LG_SHAPE(BATCH, 1, 1, 1));
}

/* Returns whether the positions of a side are within `half` of a random place. */
static lg_tensor *within(lg_ctx *c, int64_t size, lg_shape shape, lg_tensor *half)
{
        lg_tensor *place = lg_uniform(c, 0.3 * (double)size, 0.7 * (double)size, LG_SHAPE(BATCH, 1, 1, 1));
        return lg_lt(lg_abs(lg_sub(lg_reshape(lg_arange(c, 0, (double)size, 1), shape), place)), half);
}

/* Draws images (BATCH, channels, size, size) with noise. */
static lg_tensor *draw(lg_ctx *c, lg_tensor *classes, int64_t channels, int64_t size)
{
        const double s = (double)size;
        lg_tensor *x = within(c, size, LG_SHAPE(1, 1, 1, size), pick(classes, s / 4, s / 10, s / 6));
        lg_tensor *y = within(c, size, LG_SHAPE(1, 1, size, 1), pick(classes, s / 10, s / 4, s / 6));
        return lg_add(lg_cast(lg_logical_and(x, y), LG_F32),
                      lg_normal(c, 0, 0.2, LG_SHAPE(BATCH, channels, size, size)));
}

/* Freezes the network, puts a new layer in the place of its last one, "fc", and returns it. */
static lg_module *make_head(lg_ctx *c, lg_module *net)
{
        lg_freeze(net, true);
        return lg_module_replace(net, "fc", lg_nn_linear(c, lg_size_of(lg_parameter(net, "fc.weight"), 1), CLASSES));
}

/* Trains the head and prints the loss of the first steps and of the last ones. */
static void train(lg_ctx *c, lg_module *net, lg_module *head, int steps, int64_t size)
{
        const int64_t channels = lg_size_of(lg_parameters(net).items[0], 1);
        const int few = steps < 10 ? steps : 10;
        lg_optimizer *opt = lg_adam(c, lg_parameters(head), 3e-2);
        double before = 0, after = 0;
        for (int i = 0; i < steps && !lg_error(c); i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *classes = lg_randint(c, 0, CLASSES, LG_SHAPE(BATCH));
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, draw(c, classes, channels, size)), classes);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                before += i < few ? lg_item(loss) / few : 0;
                after += i >= steps - few ? lg_item(loss) / few : 0;
                lg_scope_end(c, scope);
        }
        if (!lg_error(c))
                printf("loss before %.3f, after %.3f\n", before, after);
}

/* Writes the network, reads it again and compares scores. */
static void write(lg_ctx *c, lg_module *net, int64_t size)
{
        lg_tensor *x = draw(c, lg_zeros(c, LG_SHAPE(BATCH), .dtype = LG_I64),
                            lg_size_of(lg_parameters(net).items[0], 1), size);
        lg_onnx_save(net, "head.onnx", LG_LIST(x), .inputs = LG_NAMES("image"), .outputs = LG_NAMES("scores"));
        lg_module *again = lg_onnx_load(c, "head.onnx");
        lg_train(again, false);
        const double far = lg_item(lg_amax(lg_abs(lg_sub(lg_forward(again, x), lg_forward(net, x)))));
        if (!lg_error(c))
                printf("head.onnx: %s scores\n", far < 1e-5 ? "the same" : "other");
}

int main(int argc, char **argv)
{
        if (argc < 2)
                return fprintf(stderr, "usage: %s FILE [STEPS [SIZE]]\n", argv[0]), 2;
        lg_ctx *c = lg_open(.seed = 1);
        const int64_t size = argc > 3 ? atoi(argv[3]) : 16;
        lg_module *net = lg_onnx_load(c, argv[1]);
        lg_train(net, false);
        train(c, net, make_head(c, net), argc > 2 ? atoi(argv[2]) : 600, size);
        write(c, net, size);
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
