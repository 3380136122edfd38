/* train.c - a user's program: fits y = 2x - 1 and says how well. */
#include <grad.h>

int main(void)
{
        lg_ctx *c = lg_open();
        lg_module *net = lg_nn_linear(c, 1, 1);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        lg_tensor *x = lg_reshape(lg_arange(c, -1, 1, 0.1), LG_SHAPE(-1, 1));
        lg_tensor *y = lg_sub_scalar(lg_mul_scalar(x, 2), 1);
        double loss = 1;
        for (int i = 0; i < 200; i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *l = lg_mse(lg_forward(net, x), y);
                lg_zero_grad(opt);
                lg_backward(l);
                lg_step(opt);
                loss = lg_item(l);
                lg_scope_end(c, scope);
        }
        if (lg_error(c))
                fprintf(stderr, "%s\n", lg_error(c));
        printf("loss %g\n", loss);
        lg_close(c);
        return loss < 1e-3 ? 0 : 1;
}
