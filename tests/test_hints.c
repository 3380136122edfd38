/* test_hints.c - errors that say what to do about a shape: each call that a message names is then made, and works. */
#include "test.h"

/* The call fails with LG_ERR_SHAPE, and its message has both texts. */
#define assert_hint(call, first, second)                                                                               \
        do {                                                                                                           \
                assert_null(call);                                                                                     \
                assert_int_equal(lg_error_code_of(c), LG_ERR_SHAPE);                                                   \
                if (!strstr(lg_error(c), first))                                                                       \
                        fail_msg("no \"%s\" in: %s", first, lg_error(c));                                              \
                assert_error(c, LG_ERR_SHAPE, second);                                                                 \
        } while (0)

TEST_CASE(a_layer_without_flatten)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 5, 5)), *one = lg_ones(c, LG_SHAPE(28, 28));
        lg_module *last = lg_nn_linear(c, 75, 10), *net = lg_nn_sequential(c, lg_nn_relu(c), last);
        assert_hint(lg_forward(net, x), "linear: x is f32 (2, 3, 5, 5)",
                    "by lg_flatten(x, .start_dim = 1) or a layer lg_nn_flatten()");
        assert_shape(lg_forward(net, lg_flatten(x, .start_dim = 1)), LG_SHAPE(2, 10));
        assert_shape(lg_forward(lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 75, 10)), x), LG_SHAPE(2, 10));
        /* of single samples and of the last dimensions alone */
        lg_tensor *w = lg_ones(c, LG_SHAPE(4, 784)), *v = lg_ones(c, LG_SHAPE(4, 25));
        assert_hint(lg_linear(one, w, NULL), "x is f32 (28, 28)", "by lg_flatten(x)");
        assert_shape(lg_linear(lg_flatten(one), w, NULL), LG_SHAPE(4));
        assert_hint(lg_linear(x, v, NULL), "x is f32 (2, 3, 5, 5)", "by lg_flatten(x, .start_dim = 2)");
        assert_shape(lg_linear(lg_flatten(x, .start_dim = 2), v, NULL), LG_SHAPE(2, 3, 4));
        /* a weight as other frameworks have it, and sizes that nothing explains */
        assert_hint(lg_linear(x, lg_ones(c, LG_SHAPE(5, 7)), NULL), "rows of 5, but w is f32 (5, 7)",
                    "must be (out, in), not (in, out)");
        assert_null(lg_linear(x, lg_ones(c, LG_SHAPE(7, 11)), NULL));
        assert_null(strchr(lg_error(c), ';'));
        lg_clear_error(c);
        assert_null(lg_linear(x, w, v));
        assert_error(c, LG_ERR_SHAPE, "linear: x is f32 (2, 3, 5, 5)");
        lg_close(c);
}

/* C turns a number into a pointer with a warning. */
TEST_CASE(numbers_in_place_of_tensors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2)), *two = (lg_tensor *)(intptr_t)2;
        assert_fails(c, lg_mul(x, two), LG_ERR_ARGUMENT,
                     "mul: b is the number 2, not a tensor; for a number there is lg_mul_scalar()");
        assert_fails(c, lg_sub(two, x), LG_ERR_ARGUMENT, "sub: a is the number 2, not a tensor");
        assert_fails(c, lg_matmul(x, two), LG_ERR_ARGUMENT, "matmul: b is the number 2");
        assert_fails(c, lg_where(two, x, x), LG_ERR_ARGUMENT, "where: condition is the number 2");
        assert_fails(c, lg_cat(LG_LIST(x, two), 0), LG_ERR_ARGUMENT, "the number 2");
        assert_null(lg_relu(two));
        assert_false(lg_backward(two) || lg_add_(two, x) || lg_set_requires_grad(two, true));
        lg_clear_error(c);
        assert_false(lg_add_(x, two));
        assert_non_null(lg_error(c));
        lg_close(c);
}

TEST_CASE(products_of_other_shapes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_ones(c, LG_SHAPE(2, 3, 4)), *b = lg_ones(c, LG_SHAPE(6, 4)), *v = lg_ones(c, LG_SHAPE(5));
        assert_hint(lg_matmul(a, b), "a is f32 (2, 3, 4)", "those of lg_transpose(b, -2, -1) do");
        assert_shape(lg_matmul(a, lg_transpose(b, -2, -1)), LG_SHAPE(2, 3, 6));
        assert_hint(lg_matmul(a, lg_ones(c, LG_SHAPE(12, 5))), "a is f32 (2, 3, 4)", "lg_flatten(a, .start_dim = 1)");
        assert_hint(lg_matmul(v, b), "a is f32 (5,)", "b is f32 (6, 4)");
        assert_hint(lg_matmul(b, v), "a is f32 (6, 4)", "b is f32 (5,)");
        assert_hint(lg_matmul(a, lg_ones(c, LG_SHAPE(5, 4, 3))), "a is f32 (2, 3, 4)",
                    "dimensions (2,) and (5,) do not");
        lg_close(c);
}

TEST_CASE(images_of_other_layouts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *image = lg_ones(c, LG_SHAPE(9, 8)), *gray = lg_ones(c, LG_SHAPE(4, 9, 8));
        lg_tensor *last = lg_ones(c, LG_SHAPE(4, 9, 8, 3)), *one_last = lg_ones(c, LG_SHAPE(9, 8, 3));
        lg_tensor *w = lg_ones(c, LG_SHAPE(5, 1, 3, 3)), *w3 = lg_ones(c, LG_SHAPE(5, 3, 3, 3));
        lg_tensor *t = lg_ones(c, LG_SHAPE(1, 5, 3, 3)), *t3 = lg_ones(c, LG_SHAPE(3, 5, 3, 3));
        assert_hint(lg_conv2d(image, w, NULL), "x is f32 (9, 8)", "if it is (H, W), lg_unsqueeze(x, 0)");
        assert_shape(lg_conv2d(lg_unsqueeze(image, 0), w, NULL), LG_SHAPE(5, 7, 6));
        assert_hint(lg_conv2d(gray, w, NULL), "x is f32 (4, 9, 8)", "if it is (N, H, W), lg_unsqueeze(x, 1)");
        assert_shape(lg_conv2d(lg_unsqueeze(gray, 1), w, NULL), LG_SHAPE(4, 5, 7, 6));
        assert_hint(lg_conv2d(last, w3, NULL), "x is f32 (4, 9, 8, 3)", "lg_permute(x, LG_DIMS(0, 3, 1, 2))");
        assert_shape(lg_conv2d(lg_permute(last, LG_DIMS(0, 3, 1, 2)), w3, NULL), LG_SHAPE(4, 5, 7, 6));
        assert_hint(lg_conv2d(one_last, w3, NULL), "x is f32 (9, 8, 3)", "lg_permute(x, LG_DIMS(2, 0, 1))");
        assert_hint(lg_conv_transpose2d(last, t3, NULL), "conv_transpose2d", "lg_permute(x, LG_DIMS(0, 3, 1, 2))");
        assert_hint(lg_conv_transpose2d(gray, t, NULL), "conv_transpose2d", "lg_unsqueeze(x, 1)");
        assert_hint(lg_max_pool2d(image, 2), "max_pool2d: x is f32 (9, 8)", "lg_unsqueeze(x, 0)");
        assert_hint(lg_adaptive_avg_pool2d(image, 2), "x is f32 (9, 8)", "lg_unsqueeze(x, 0)");
        assert_hint(lg_max_pool2d(last, 4), "x is f32 (4, 9, 8, 3)", "a window of 4 is greater than the input of 3");
        assert_hint(lg_conv2d(lg_ones(c, LG_SHAPE(1, 2, 2)), w, NULL), "x is f32 (1, 2, 2)", "padded input of 2");
        /* a size that no dimension has explains nothing */
        assert_null(lg_conv2d(lg_ones(c, LG_SHAPE(4, 2, 9, 8)), w3, NULL));
        assert_null(strchr(lg_error(c), ';'));
        lg_clear_error(c);
        lg_close(c);
}

TEST_CASE(signals_of_other_layouts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(5, 1, 3)), *w3 = lg_ones(c, LG_SHAPE(5, 3, 3));
        assert_hint(lg_conv1d(lg_ones(c, LG_SHAPE(9)), w, NULL), "x is f32 (9,)", "if it is (L), lg_unsqueeze(x, 0)");
        assert_hint(lg_conv1d(lg_ones(c, LG_SHAPE(4, 9)), w, NULL), "(4, 9)", "if it is (N, L), lg_unsqueeze(x, 1)");
        assert_hint(lg_conv1d(lg_ones(c, LG_SHAPE(4, 9, 3)), w3, NULL), "(4, 9, 3)", "lg_permute(x, LG_DIMS(0, 2, 1))");
        assert_hint(lg_conv1d(lg_ones(c, LG_SHAPE(9, 3)), w3, NULL), "(9, 3)", "lg_permute(x, LG_DIMS(1, 0))");
        assert_hint(lg_conv_transpose1d(lg_ones(c, LG_SHAPE(4, 9, 3)), lg_ones(c, LG_SHAPE(3, 5, 3)), NULL),
                    "conv_transpose1d", "lg_permute(x, LG_DIMS(0, 2, 1))");
        assert_hint(lg_avg_pool1d(lg_ones(c, LG_SHAPE(9)), 3), "avg_pool1d", "lg_unsqueeze(x, 0)");
        lg_close(c);
}

TEST_CASE(images_for_a_norm)
{
        lg_ctx *c = open_ctx();
        lg_module *one = lg_nn_batch_norm2d(c, 1), *three = lg_nn_batch_norm2d(c, 3), *line = lg_nn_batch_norm1d(c, 3);
        lg_tensor *last = lg_ones(c, LG_SHAPE(4, 9, 8, 3)), *w = lg_ones(c, LG_SHAPE(3));
        assert_hint(lg_forward(one, lg_ones(c, LG_SHAPE(9, 8))), "BatchNorm2d: x is f32 (9, 8)", "lg_unsqueeze(x, 0)");
        assert_hint(lg_forward(one, lg_ones(c, LG_SHAPE(4, 9, 8))), "x is f32 (4, 9, 8)", "lg_unsqueeze(x, 1)");
        assert_hint(lg_forward(three, lg_ones(c, LG_SHAPE(3, 9, 8))), "x is f32 (3, 9, 8)", "lg_unsqueeze(x, 0)");
        assert_hint(lg_forward(three, lg_ones(c, LG_SHAPE(9, 8, 3))), "(9, 8, 3)", "lg_permute(x, LG_DIMS(2, 0, 1))");
        assert_hint(lg_forward(three, last), "x is f32 (4, 9, 8, 3)", "lg_permute(x, LG_DIMS(0, 3, 1, 2))");
        assert_shape(lg_forward(three, lg_permute(last, LG_DIMS(0, 3, 1, 2))), LG_SHAPE(4, 3, 9, 8));
        assert_hint(lg_forward(line, lg_ones(c, LG_SHAPE(4, 9, 3))), "(4, 9, 3)", "lg_permute(x, LG_DIMS(0, 2, 1))");
        assert_hint(lg_group_norm(last, 1, w, w), "group_norm: x is", "lg_permute(x, LG_DIMS(0, 3, 1, 2))");
        /* rows have no channels */
        assert_null(lg_layer_norm(lg_ones(c, LG_SHAPE(4, 3, 8)), LG_SHAPE(8), w, w));
        assert_null(strstr(lg_error(c), "lg_permute"));
        lg_clear_error(c);
        lg_close(c);
}

TEST_CASE(scores_with_the_classes_last)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 5, 3)), *image = lg_normal(c, 0, 1, LG_SHAPE(2, 4, 5, 3));
        lg_tensor *t = lg_full(c, LG_SHAPE(2, 5), 1, .dtype = LG_I64), *rows = lg_reshape(x, LG_SHAPE(10, 3));
        lg_tensor *labels = lg_reshape(t, LG_SHAPE(10));
        assert_hint(lg_cross_entropy(x, t), "x is f32 (2, 5, 3)",
                    "if the classes of x are last, take lg_permute(x, LG_DIMS(0, 2, 1))");
        assert_near(lg_item(lg_cross_entropy(lg_permute(x, LG_DIMS(0, 2, 1)), t)),
                    lg_item(lg_cross_entropy(rows, labels)), 1e-6);
        assert_hint(lg_nll(x, t), "nll: x is f32 (2, 5, 3)", "lg_permute(x, LG_DIMS(0, 2, 1))");
        assert_hint(lg_cross_entropy(image, lg_full(c, LG_SHAPE(2, 4, 5), 1, .dtype = LG_I64)), "(2, 4, 5, 3)",
                    "lg_permute(x, LG_DIMS(0, 3, 1, 2))");
        assert_hint(lg_cross_entropy(rows, lg_reshape(t, LG_SHAPE(10, 1))), "target i64 (10, 1)",
                    "lg_squeeze(target, LG_DIMS(1))");
        lg_tensor *hot = lg_one_hot(labels, 3);
        assert_hint(lg_cross_entropy(rows, hot), "target i64 (10, 3)",
                    "if target is one-hot, take lg_argmax(target, .dims = LG_DIMS(1))");
        assert_near(lg_item(lg_cross_entropy(rows, lg_argmax(hot, .dims = LG_DIMS(1)))),
                    lg_item(lg_cross_entropy(rows, labels)), 0);
        assert_null(lg_cross_entropy(rows, t));
        assert_null(strstr(lg_error(c), "take lg_"));
        lg_clear_error(c);
        lg_close(c);
}

TEST_CASE(tensors_beside_each_other)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(5, 1)), *t = lg_zeros(c, LG_SHAPE(5)), *wide = lg_ones(c, LG_SHAPE(5, 4));
        assert_hint(lg_mse(x, t), "mse: x is f32 (5, 1)", "they need one shape: lg_reshape(target, lg_shape_of(x))");
        assert_near(lg_item(lg_mse(x, lg_reshape(t, lg_shape_of(x)))), 1, 0);
        assert_hint(lg_bce_with_logits(t, x), "bce_with_logits: x is", "lg_reshape(target, lg_shape_of(x))");
        assert_null(lg_mse(wide, lg_transpose(wide, 0, 1))); /* what a reshape would mix up */
        assert_null(strstr(lg_error(c), "lg_reshape"));
        lg_clear_error(c);
        assert_hint(lg_add(wide, t), "add: the shapes (5, 4) and (5,)", "lg_unsqueeze(x, -1) adds one");
        assert_shape(lg_add(wide, lg_unsqueeze(t, -1)), LG_SHAPE(5, 4));
        assert_null(lg_where(wide, wide, wide));
        assert_error(c, LG_ERR_DTYPE, "where: condition is f32 (5, 4)");
        assert_null(lg_masked_fill(wide, wide, 0));
        assert_error(c, LG_ERR_DTYPE, "not bool: lg_cast(mask, LG_BOOL)");
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 2));
        assert_null(lg_sgd(c, lg_parameters_matching(net, "fc*"), 0.1));
        assert_error(c, LG_ERR_ARGUMENT, "the module has none, or the pattern matches none");
        lg_close(c);
}
