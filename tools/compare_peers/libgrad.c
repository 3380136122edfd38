/* libgrad.c - libgrad's side of tools/compare. */
#include <grad.h>
#include "peer.h"

typedef struct network {
        lg_module *net;
        lg_optimizer *opt;
        lg_tensor *x, *y;
} network;

static double train(void *user, long steps)
{
        network *n = user;
        lg_ctx *c = lg_module_ctx(n->net);
        double last = 0;
        for (long i = 1; i <= steps; i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *loss = lg_cross_entropy(lg_forward(n->net, n->x), n->y);
                lg_zero_grad(n->opt);
                lg_backward(loss);
                lg_step(n->opt);
                if (i == steps)
                        last = lg_item(loss);
                lg_scope_end(c, scope);
        }
        return last;
}

static network make_network(lg_ctx *c, bool large)
{
        static float x[LARGE_BATCH * LARGE_IN];
        static int64_t y[LARGE_BATCH];
        int batch = large ? LARGE_BATCH : SMALL_BATCH, in = large ? LARGE_IN : SMALL_IN;
        for (int i = 0; i < batch * in; i++)
                x[i] = input_value(i);
        for (int i = 0; i < batch; i++)
                y[i] = i % (large ? LARGE_OUT : SMALL_OUT);
        lg_module *net =
                large ? lg_nn_sequential(c, lg_nn_linear(c, LARGE_IN, 128), lg_nn_relu(c),
                                         lg_nn_linear(c, 128, LARGE_OUT))
                      : lg_nn_sequential(c, lg_nn_linear(c, SMALL_IN, 64), lg_nn_relu(c), lg_nn_linear(c, 64, 64),
                                         lg_nn_relu(c), lg_nn_linear(c, 64, SMALL_OUT));
        return (network){net, lg_sgd(c, lg_parameters(net), RATE), lg_from(c, x, LG_SHAPE(batch, in)),
                         lg_from(c, y, LG_SHAPE(batch))};
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "";
        lg_ctx *c = lg_open(.seed = 1, .threads = argc == 6 ? atoi(argv[4]) : 0);
        if (!strcmp(what, "second")) {
                lg_tensor *x = lg_scalar(c, 2, .requires_grad = true);
                lg_tensor *dx = lg_grad(LG_LIST(lg_mul(x, lg_mul(x, x))), LG_LIST(x), .create_graph = true);
                printf("%g\n", lg_item(lg_grad(LG_LIST(dx), LG_LIST(x))));
        } else if (!strcmp(what, "mismatch")) {
                lg_item(lg_matmul(lg_ones(c, LG_SHAPE(2, 3)), lg_ones(c, LG_SHAPE(2, 3))));
        } else if (!strcmp(what, "mismatch in a network")) {
                lg_item(lg_forward(make_network(c, false).net, make_network(c, true).x));
        } else if (!strcmp(what, "shortage")) {
                limit_memory();
                lg_item(lg_ones(c, LG_SHAPE(1 << 15, 1 << 15)));
        } else if (!strcmp(what, "weights") && argc == 3) {
                lg_module *net = lg_nn_linear(c, 3, 2);
                lg_save(net, argv[2]);
                printf("%.9g\n",
                       lg_item(lg_sum(lg_parameter(net, "weight"))) + lg_item(lg_sum(lg_parameter(net, "bias"))));
        } else if (!strcmp(what, "train") && argc == 6) {
                network n = make_network(c, !strcmp(argv[2], "large"));
                report_training(train, &n, argv[3], atof(argv[5]));
        }
        if (lg_error(c)) {
                printf("error value: %s\n", lg_error_name(lg_error_code_of(c)));
                lg_clear_error(c);
                printf("%g\n", lg_item(lg_sum(lg_ones(c, LG_SHAPE(2, 3)))));
        }
        lg_close(c);
}
