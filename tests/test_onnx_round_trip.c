/* test_onnx_round_trip.c - networks written as ONNX files and read again: outputs, names, gradients. */
#include "temporary.h"

static lg_module *network(lg_ctx *c)
{
        lg_seed(c, 3);
        return lg_nn_sequential(
                c, lg_nn_conv2d(c, 1, 4, 3, .padding = 1), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c),
                lg_nn_max_pool2d(c, 2), lg_nn_residual(c, lg_nn_conv2d(c, 4, 4, 3, .padding = 1, .groups = 2)),
                lg_nn_flatten(c), lg_nn_linear(c, 36, 8), lg_nn_relu(c), lg_nn_dropout(c, 0.5), lg_nn_linear(c, 8, 3));
}

static lg_tensor *images(lg_ctx *c, int64_t n)
{
        return lg_normal(c, 0, 1, LG_SHAPE(n, 1, 6, 6));
}

/* The module that `user` is has an equal parameter or buffer of that name; the count of batches has no use. */
static void assert_part(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        lg_module *m = user;
        lg_tensor *other = strstr(path, "num_batches") ? t : is_buffer ? lg_buffer(m, path) : lg_parameter(m, path);
        if (!other || !lg_allclose(lg_contiguous(lg_detach(t)), lg_detach(other), .rtol = LG_ZERO, .atol = LG_ZERO))
                fail_msg("%s: %s", path, lg_error(lg_module_ctx(m)) ? lg_error(lg_module_ctx(m)) : "other values");
}

static void assert_close(lg_tensor *a, lg_tensor *b)
{
        double x[64];
        assert_values(a, x, read_all(b, x, 64), 1e-5);
}

TEST_CASE_WITH(outputs_names_and_gradients, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = network(c);
        for (int i = 0; i < 3; i++)
                drop(lg_forward(net, images(c, 8))); /* statistics */
        assert_true(lg_onnx_save(net, path, LG_LIST(images(c, 2)), .inputs = LG_NAMES("image")));
        assert_true(lg_is_training(net));
        lg_train(net, false);
        lg_module *again = lg_onnx_load(c, path);
        assert_ok(c);
        lg_each_tensor(net, assert_part, again);
        for (int64_t n = 1; n < 10; n += 4) {
                lg_tensor *x = images(c, n), *y = lg_forward(net, x), *z = lg_forward(again, x);
                assert_close(z, y);
                assert_true(lg_backward(lg_sum(lg_square(y))) && lg_backward(lg_sum(lg_square(z))));
                assert_close(lg_grad_of(lg_parameter(again, "0.weight")), lg_grad_of(lg_parameter(net, "0.weight")));
                assert_close(lg_grad_of(lg_parameter(again, "9.bias")), lg_grad_of(lg_parameter(net, "9.bias")));
        }
        assert_ok(c);
        lg_close(c);
}

/* A file that was read is written again, with the same outputs. */
TEST_CASE_WITH(written_twice, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = network(c);
        lg_train(net, false);
        lg_tensor *x = images(c, 2), *y = lg_forward(net, x);
        for (int i = 0; i < 3; i++) {
                assert_true(lg_onnx_save(net, path, LG_LIST(x)));
                net = lg_onnx_load(c, path);
                lg_train(net, false);
                assert_close(lg_forward(net, x), y);
        }
        lg_close(c);
}
