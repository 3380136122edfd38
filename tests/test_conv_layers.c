/* test_conv_layers.c - layers of convolution, pooling, padding and normalisation against PyTorch's numbers
 * (data/conv_layers.txt), what they hold and what they refuse. */
#include "golden.h"

/* The result of a layer whose parameter i is a tensor of phase 0.5 + i. */
static lg_tensor *of(lg_module *m, lg_tensor *x)
{
        lg_list p = lg_parameters(m);
        lg_no_grad(lg_ctx_of(x)) for (int i = 0; i < (int)p.count; i++)
                lg_copy_(p.items[i], golden_like(x, lg_shape_of(p.items[i]), 0.5 + i));
        return lg_forward(m, x);
}

/* The same in evaluation mode, after two batches in training mode. */
static lg_tensor *evaluated(lg_module *m, lg_tensor *x)
{
        lg_no_grad(lg_ctx_of(x))
        {
                drop(of(m, lg_add_scalar(lg_mul_scalar(x, 0.5), 1)));
                drop(of(m, x));
        }
        lg_train(m, false);
        return of(m, x);
}

#define T .dtype = lg_dtype_of(x)
#define S 2, 4, 6
#define I 2, 4, 5, 4
#define V 2, 4, 3, 4, 3
#define ROWS(ROW)                                                                                                      \
        ROW(conv1d_circular,                                                                                           \
            of(lg_nn_conv1d(c, 4, 2, 3, .stride = 2, .padding = 2, T, .padding_mode = LG_PAD_CIRCULAR), x), S)         \
        ROW(conv2d_reflect,                                                                                            \
            of(lg_nn_conv2d(c, 4, 2, 0, .groups = 2, .kernels = LG_PAIR(3, 2), .paddings = LG_PAIR(2, 1), T,           \
                            .padding_mode = LG_PAD_REFLECT),                                                           \
               x),                                                                                                     \
            I)                                                                                                         \
        ROW(conv2d_replicate,                                                                                          \
            of(lg_nn_conv2d(c, 4, 3, 2, .padding = 3, .strides = LG_PAIR(1, 2), T, .padding_mode = LG_PAD_REPLICATE),  \
               x),                                                                                                     \
            4, 5, 4)                                                                                                   \
        ROW(conv3d, of(lg_nn_conv3d(c, 4, 2, 2, .padding = 1, .strides = LG_TRIPLE(1, 2, 1), .no_bias = true, T), x),  \
            V)                                                                                                         \
        ROW(conv3d_circular,                                                                                           \
            of(lg_nn_conv3d(c, 4, 2, 0, .kernels = LG_TRIPLE(2, 3, 2), .paddings = LG_TRIPLE(2, 1, 0), T,              \
                            .padding_mode = LG_PAD_CIRCULAR),                                                          \
               x),                                                                                                     \
            V)                                                                                                         \
        ROW(conv_transpose1d,                                                                                          \
            of(lg_nn_conv_transpose1d(c, 4, 2, 3, .stride = 2, .padding = 1, .groups = 2, .output_padding = 1, T), x), \
            S)                                                                                                         \
        ROW(conv_transpose3d,                                                                                          \
            of(lg_nn_conv_transpose3d(c, 4, 3, 0, .stride = 2, .kernels = LG_TRIPLE(2, 1, 2),                          \
                                      .output_paddings = LG_TRIPLE(1, 0, 1), T),                                       \
               x),                                                                                                     \
            1, 4, 3, 4, 3)                                                                                             \
        ROW(max_pool1d, of(lg_nn_max_pool1d(c, 3, .stride = 2, .padding = 1), x), S)                                   \
        ROW(max_pool3d, of(lg_nn_max_pool3d(c, 0, .ceil_mode = true, .kernels = LG_TRIPLE(2, 2, 1)), x), V)            \
        ROW(avg_pool1d, of(lg_nn_avg_pool1d(c, 3, .stride = 1, .padding = 1, .no_count_padding = true), x), S)         \
        ROW(avg_pool3d, of(lg_nn_avg_pool3d(c, 2, .stride = 1, .divisor = 3), x), V)                                   \
        ROW(adaptive_avg_pool1d, of(lg_nn_adaptive_avg_pool1d(c, 4), x), S)                                            \
        ROW(adaptive_avg_pool3d, of(lg_nn_adaptive_avg_pool3d(c, 0, .sizes = LG_TRIPLE(2, 3, 1)), x), V)               \
        ROW(adaptive_max_pool1d, of(lg_nn_adaptive_max_pool1d(c, 4), x), S)                                            \
        ROW(adaptive_max_pool2d, of(lg_nn_adaptive_max_pool2d(c, 0, .sizes = LG_PAIR(2, 3)), x), I)                    \
        ROW(adaptive_max_pool3d, of(lg_nn_adaptive_max_pool3d(c, 2), x), V)                                            \
        ROW(batch_norm3d, of(lg_nn_batch_norm3d(c, 4, T), x), V)                                                       \
        ROW(batch_norm3d_evaluated, evaluated(lg_nn_batch_norm3d(c, 4, .momentum = 0.3, T), x), V)                     \
        ROW(instance_norm1d, of(lg_nn_instance_norm1d(c, 4, T), x), S)                                                 \
        ROW(instance_norm2d, of(lg_nn_instance_norm2d(c, 4, .eps = 1e-3, .affine = true, T), x), I)                    \
        ROW(instance_norm3d, of(lg_nn_instance_norm3d(c, 4, .affine = true, T), x), 4, 3, 4, 3)                        \
        ROW(instance_norm2d_evaluated, evaluated(lg_nn_instance_norm2d(c, 4, .affine = true, .running = true, T), x),  \
            I)                                                                                                         \
        ROW(instance_norm3d_evaluated, evaluated(lg_nn_instance_norm3d(c, 4, .momentum = 0.3, .running = true, T), x), \
            V)                                                                                                         \
        ROW(reflection1d, of(lg_nn_pad(c, LG_INTS(3, 1), .mode = LG_PAD_REFLECT), x), S)                               \
        ROW(reflection2d, of(lg_nn_pad(c, LG_INTS(1, 2, 3, 0), .mode = LG_PAD_REFLECT), x), I)                         \
        ROW(reflection3d, of(lg_nn_pad(c, LG_INTS(1, 2, 3, 0, 2, 1), .mode = LG_PAD_REFLECT), x), V)                   \
        ROW(replication1d, of(lg_nn_pad(c, LG_INTS(2, 2), .mode = LG_PAD_REPLICATE), x), 4, 6)                         \
        ROW(replication2d, of(lg_nn_pad(c, LG_INTS(1, 2, 3, 0), .mode = LG_PAD_REPLICATE), x), I)                      \
        ROW(replication3d, of(lg_nn_pad(c, LG_INTS(1, 0, 0, 2, 4, 1), .mode = LG_PAD_REPLICATE), x), V)                \
        ROW(circular1d, of(lg_nn_pad(c, LG_INTS(6, 2), .mode = LG_PAD_CIRCULAR), x), S)                                \
        ROW(circular2d, of(lg_nn_pad(c, LG_INTS(1, 2, 5, 0), .mode = LG_PAD_CIRCULAR), x), I)                          \
        ROW(circular3d, of(lg_nn_pad(c, LG_INTS(1, 2, 3, 0, 3, 1), .mode = LG_PAD_CIRCULAR), x), V)                    \
        ROW(zero2d, of(lg_nn_pad(c, LG_INTS(1, -1, 2, 0)), x), I)                                                      \
        ROW(constant3d, of(lg_nn_pad(c, LG_INTS(1, 0, 0, 1, 2, -1), .value = 2.5), x), V)

GOLDEN_TEST(as_pytorch_computes_it, "conv_layers.txt", golden_input, ROWS);
#undef T

TEST_CASE(parameters_and_buffers)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_conv3d(c, 4, 6, 0, .groups = 2, .kernels = LG_TRIPLE(1, 2, 3));
        assert_shape(lg_parameter(m, "weight"), LG_SHAPE(6, 2, 1, 2, 3));
        assert_shape(lg_parameter(m, "bias"), LG_SHAPE(6));
        assert_near(lg_item(lg_amax(lg_abs(lg_parameter(m, "weight")))), 1 / sqrt(12), 0.04); /* fan_in 12 */
        m = lg_nn_conv_transpose3d(c, 4, 6, 2, .groups = 2, .no_bias = true);
        assert_int_equal(lg_parameters(m).count, 1);
        assert_shape(lg_parameter(m, "weight"), LG_SHAPE(4, 3, 2, 2, 2));
        assert_shape(lg_parameter(lg_nn_conv_transpose1d(c, 4, 6, 5), "weight"), LG_SHAPE(4, 6, 5));
        assert_int_equal(lg_parameters(lg_nn_instance_norm2d(c, 4)).count, 0);
        m = lg_nn_instance_norm3d(c, 4, .affine = true, .running = true, .dtype = LG_BF16);
        assert_int_equal(lg_parameters(m).count, 2);
        assert_int_equal(lg_dtype_of(lg_buffer(m, "running_var")), LG_F32);
        assert_list(lg_buffer(m, "running_mean"), 0, 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

/* A convolution, a batch norm and ReLU of volumes are one op in evaluation mode. */
TEST_CASE(fused_after_volumes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 4, 5, 6));
        lg_module *conv = lg_nn_conv3d(c, 3, 4, 3, .padding = 1), *norm = lg_nn_batch_norm3d(c, 4);
        lg_module *net = lg_nn_sequential(c, conv, norm, lg_nn_relu(c));
        drop(lg_forward(net, x));
        lg_train(net, false);
        double v[960];
        int64_t n = read_all(lg_relu(lg_forward(norm, lg_forward(conv, x))), v, 960);
        lg_no_grad(c) assert_values(lg_forward(net, x), v, n, 1e-5);
        assert_values(lg_forward(net, x), v, n, 1e-5);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(whole_channels_of_volumes_drop)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_dropout3d(c, 0.5);
        lg_tensor *y = lg_forward(m, lg_ones(c, LG_SHAPE(8, 16, 2, 3, 2)));
        lg_tensor *mean = lg_mean(y, .dims = LG_DIMS(2, 3, 4));
        assert_near(lg_item(lg_amax(lg_abs(lg_sub(lg_square(mean), lg_mul_scalar(mean, 2))))), 0, 1e-6); /* 0 or 2 */
        assert_near(lg_item(lg_mean(mean)), 1, 0.3);
        lg_train(m, false);
        assert_near(lg_item(lg_mean(lg_forward(m, lg_ones(c, LG_SHAPE(1, 2, 2, 2, 2))))), 1, 0);
        assert_ok(c);
        assert_fails(c, lg_nn_dropout3d(c, 1.5), LG_ERR_ARGUMENT, "lg_nn_dropout3d: p is 1.5");
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 4, 3, 4, 3));
        assert_fails(c, lg_nn_conv3d(c, 4, 2, 0), LG_ERR_ARGUMENT, "lg_nn_conv3d: a kernel of 0");
        assert_fails(c, lg_nn_conv3d(c, 4, 2, 3, .strides = LG_TRIPLE(0, 1, 1)), LG_ERR_ARGUMENT, "a stride of 0");
        assert_fails(c, lg_nn_conv3d(c, 4, 2, 3, .groups = 3), LG_ERR_ARGUMENT, "3 groups");
        assert_fails(c, lg_nn_conv2d(c, 4, 2, 3, .padding_mode = (lg_pad_mode)7), LG_ERR_ARGUMENT, "padding_mode is 7");
        assert_fails(c, lg_nn_instance_norm3d(c, 0), LG_ERR_ARGUMENT, "0 channels");
        assert_fails(c, lg_nn_pad(c, LG_INTS(1)), LG_ERR_ARGUMENT, "lg_nn_pad: 1 pads");
        assert_fails(c, lg_nn_pad(c, LG_INTS_OF(2, NULL)), LG_ERR_ARGUMENT, "lg_nn_pad");
        assert_fails(c, lg_forward(lg_nn_pad(c, LG_INTS(3, 0), .mode = LG_PAD_REFLECT), x), LG_ERR_SHAPE, "at most 2");
        assert_fails(c, lg_forward(lg_nn_conv3d(c, 4, 2, 3, .padding = 3, .padding_mode = LG_PAD_REFLECT), x),
                     LG_ERR_SHAPE, "at most 2");
        assert_fails(c, lg_forward(lg_nn_conv3d(c, 4, 2, 3), lg_ones(c, LG_SHAPE(4, 4))), LG_ERR_SHAPE,
                     "(N, C, D, H, W)");
        assert_fails(c, lg_forward(lg_nn_batch_norm3d(c, 4), lg_ones(c, LG_SHAPE(2, 4, 3, 3))), LG_ERR_SHAPE,
                     "it takes (N, C, D, H, W)");
        assert_fails(c, lg_forward(lg_nn_instance_norm3d(c, 3), x), LG_ERR_SHAPE, "with 3 channels");
        assert_fails(c, lg_forward(lg_nn_instance_norm2d(c, 4), x), LG_ERR_SHAPE, "(N, C, H, W) or (C, H, W)");
        assert_fails(c, lg_forward(lg_nn_instance_norm1d(c, 4, .running = true), lg_ones(c, LG_SHAPE(2, 4, 1))),
                     LG_ERR_SHAPE, "more than 1 element");
        assert_fails(c, lg_forward(lg_nn_max_pool3d(c, 5), x), LG_ERR_SHAPE, "max_pool3d");
        lg_close(c);
}
