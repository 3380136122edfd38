/* step.c - prints the graph of one training step of README's network, in the language of Graphviz.
 *
 * doc/pictures/make draws it; tests/pictures.py compares it with doc/pictures/step.dot.
 */
#include <grad.h>

int main(void)
{
        lg_ctx *c = lg_open(.seed = 1);
        lg_module *net = lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 784, 128), lg_nn_relu(c),
                                          lg_nn_linear(c, 128, 10));
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(64, 1, 28, 28)), *y = lg_randint(c, 0, 10, LG_SHAPE(64));

        lg_set_anomaly(c, true); /* so that ops are grouped by module */
        lg_graph_dot(stdout, lg_cross_entropy(lg_forward(net, x), y), .module = net);
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
