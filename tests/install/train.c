/* train.c - a program outside the tree: it learns XOR with what is installed. Exit code 0: it has. */
#include <grad.h>

int main(void)
{
        const float x[] = {0, 0, 0, 1, 1, 0, 1, 1};
        const int64_t y[] = {0, 1, 1, 0};
        lg_ctx *c = lg_open(.seed = 3);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 16), lg_nn_relu(c), lg_nn_linear(c, 16, 2));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 0.05);
        lg_tensor *in = lg_from(c, x, LG_SHAPE(4, 2)), *out = lg_from(c, y, LG_SHAPE(4));
        double last = 0;
        for (int i = 0; i < 200; i++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, in), out);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                last = lg_item(loss);
                lg_scope_end(c, s);
        }
        printf("libgrad %s: loss %.4f%s%s\n", lg_version(), last, lg_error(c) ? ": " : "",
               lg_error(c) ? lg_error(c) : "");
        int failed = lg_error(c) || !(last < 0.05);
        lg_close(c);
        return failed;
}
