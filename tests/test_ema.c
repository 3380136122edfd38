/* test_ema.c - moving averages of a module's parameters and buffers. */
#include "test.h"

TEST_CASE(averages)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 1, 1, .no_bias = true), lg_nn_batch_norm1d(c, 1));
        lg_tensor *w = lg_parameter(net, "0.weight"), *mean = lg_buffer(net, "1.running_mean");
        lg_ema *e = lg_ema_new(net, 0.75);
        double average = 0;
        for (int i = 0; i < 5; i++) {
                lg_no_grad(c)
                {
                        lg_fill_(w, i + 1);
                }
                lg_fill_(mean, 10 * i);
                assert_true(lg_ema_update(e));
                average = i ? 0.75 * average + 0.25 * (i + 1) : 1;
        }
        assert_near(lg_item(w), 5, 0);
        assert_true(lg_ema_swap(e));
        assert_near(lg_item(w), average, 1e-6);
        assert_near(lg_item(mean), 40, 0);
        assert_non_null(lg_forward(net, lg_ones(c, LG_SHAPE(2, 1))));
        assert_false(lg_ema_update(e));
        assert_error(c, LG_ERR_STATE, "lg_ema_swap");
        assert_true(lg_ema_swap(e));
        assert_near(lg_item(w), 5, 0);
        assert_true(lg_module_to(net, lg_cpu()));
        assert_true(lg_ema_update(e) && lg_ema_swap(e));
        assert_true(lg_device_equal(lg_device_of(w), lg_cpu()));
        assert_null(lg_ema_new(net, 1.5));
        assert_error(c, LG_ERR_ARGUMENT, "decay is 1.5");
        lg_module_free(net);
        assert_false(lg_ema_update(e));
        assert_error(c, LG_ERR_STATE, "was freed");
        lg_ema_free(e);
        lg_ema_free(NULL);
        lg_close(c);
}
