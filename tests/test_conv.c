/* test_conv.c - convolutions against PyTorch's numbers, against plain loops, and in every layout and dtype. */
#include "golden.h"

/* ---- PyTorch's numbers: the tensors of data/conv.py; each in the dtype of what is varied ---- */

#define X(t) golden_like(t, LG_SHAPE(2, 2, 4, 3), 0)
#define W(t) golden_like(t, LG_SHAPE(3, 2, 3, 3), 0.5)
#define B(t) golden_like(t, LG_SHAPE(3), 0.7)
#define G(t) golden_like(t, LG_SHAPE(1, 4, 3, 4), 0.2)
#define V(t) golden_like(t, LG_SHAPE(2, 2, 3, 2), 0.3)
#define U(t) golden_like(t, LG_SHAPE(4, 1, 2, 2), 0.4)
#define T(t) golden_like(t, LG_SHAPE(3, 2, 2, 3), 0.5)
#define H(t) golden_like(t, LG_SHAPE(1, 3, 2, 3), 0.2)
#define S(t) golden_like(t, LG_SHAPE(2, 3, 5), 0)
#define X3(t) golden_like(t, LG_SHAPE(2, 2, 4, 3, 5), 0)
#define W3(t) golden_like(t, LG_SHAPE(3, 2, 3, 2, 3), 0.5)

#define ROWS(ROW)                                                                                                      \
        ROW(plain, lg_conv2d(x, W(x), B(x)), 2, 2, 4, 3)                                                               \
        ROW(plain_w, lg_conv2d(X(x), x, B(x)), 3, 2, 3, 3)                                                             \
        ROW(plain_b, lg_conv2d(X(x), W(x), x), 3)                                                                      \
        ROW(padded, lg_conv2d(x, W(x), B(x), .padding = 1), 2, 2, 4, 3)                                                \
        ROW(padded_w, lg_conv2d(X(x), x, B(x), .padding = 1), 3, 2, 3, 3)                                              \
        ROW(strided, lg_conv2d(x, W(x), B(x), .stride = 2, .padding = 2), 2, 2, 4, 3)                                  \
        ROW(strided_w, lg_conv2d(X(x), x, B(x), .stride = 2, .padding = 2), 3, 2, 3, 3)                                \
        ROW(pairs,                                                                                                     \
            lg_conv2d(x, W(x), NULL, .strides = LG_PAIR(1, 2), .paddings = LG_PAIR(2, 1), .dilations = LG_PAIR(2, 1)), \
            2, 2, 4, 3)                                                                                                \
        ROW(pairs_w,                                                                                                   \
            lg_conv2d(X(x), x, NULL, .strides = LG_PAIR(1, 2), .paddings = LG_PAIR(2, 1), .dilations = LG_PAIR(2, 1)), \
            3, 2, 3, 3)                                                                                                \
        ROW(one_by_one, lg_conv2d(x, lg_slice(lg_slice(W(x), 2, 0, 1), 3, 0, 1), B(x)), 2, 2, 4, 3)                    \
        ROW(unbatched, lg_conv2d(x, W(x), B(x), .paddings = LG_PAIR(1, 0)), 2, 4, 3)                                   \
        ROW(groups, lg_conv2d(x, V(x), NULL, .padding = 1, .groups = 2), 1, 4, 3, 4)                                   \
        ROW(groups_w, lg_conv2d(G(x), x, NULL, .padding = 1, .groups = 2), 2, 2, 3, 2)                                 \
        ROW(depthwise, lg_conv2d(x, U(x), NULL, .padding = 1, .dilation = 2, .groups = 4), 1, 4, 3, 4)                 \
        ROW(depthwise_w, lg_conv2d(G(x), x, NULL, .padding = 1, .dilation = 2, .groups = 4), 4, 1, 2, 2)               \
        ROW(transposed, lg_conv_transpose2d(x, T(x), golden_like(x, LG_SHAPE(2), 0.1)), 1, 3, 2, 3)                    \
        ROW(transposed_w, lg_conv_transpose2d(H(x), x, NULL, .stride = 2), 3, 2, 2, 3)                                 \
        ROW(transposed_b, lg_conv_transpose2d(H(x), T(x), x, .stride = 2), 2)                                          \
        ROW(transposed_pairs,                                                                                          \
            lg_conv_transpose2d(x, golden_like(x, LG_SHAPE(4, 1, 3, 2), 0.5), NULL, .groups = 2,                       \
                                .strides = LG_PAIR(2, 1), .paddings = LG_PAIR(1, 0), .dilations = LG_PAIR(1, 2),       \
                                .output_paddings = LG_PAIR(1, 0)),                                                     \
            1, 4, 3, 4)                                                                                                \
        ROW(transposed_dilated,                                                                                        \
            lg_conv_transpose2d(x, golden_like(x, LG_SHAPE(2, 1, 2, 2), 0.5), NULL, .dilation = 3,                     \
                                .output_padding = 2),                                                                  \
            2, 2, 2)                                                                                                   \
        ROW(signal, lg_conv1d(x, golden_like(x, LG_SHAPE(3, 3, 3), 0.5), B(x), .stride = 2, .padding = 1), 2, 3, 5)    \
        ROW(signal_w, lg_conv1d(S(x), x, B(x), .dilation = 2), 3, 3, 3)                                                \
        ROW(signal_groups, lg_conv1d(x, golden_like(x, LG_SHAPE(3, 1, 2), 0.5), NULL, .groups = 3), 3, 5)              \
        ROW(signal_transposed,                                                                                         \
            lg_conv_transpose1d(x, golden_like(x, LG_SHAPE(3, 2, 4), 0.5), golden_like(x, LG_SHAPE(2), 0.1),           \
                                .stride = 3, .padding = 1, .output_padding = 1),                                       \
            2, 3, 5)                                                                                                   \
        ROW(volume, lg_conv3d(x, W3(x), B(x), .padding = 1), 2, 2, 4, 3, 5)                                            \
        ROW(volume_w, lg_conv3d(X3(x), x, B(x), .padding = 1), 3, 2, 3, 2, 3)                                          \
        ROW(volume_b, lg_conv3d(X3(x), W3(x), x), 3)                                                                   \
        ROW(volume_strided, lg_conv3d(x, W3(x), NULL, .stride = 2, .padding = 2), 2, 2, 4, 3, 5)                       \
        ROW(volume_strided_w, lg_conv3d(X3(x), x, NULL, .stride = 2, .padding = 2), 3, 2, 3, 2, 3)                     \
        ROW(volume_triples,                                                                                            \
            lg_conv3d(x, W3(x), B(x), .strides = LG_TRIPLE(3, 1, 2), .paddings = LG_TRIPLE(3, 1, 0),                   \
                      .dilations = LG_TRIPLE(2, 1, 1)),                                                                \
            2, 2, 4, 3, 5)                                                                                             \
        ROW(volume_triples_w,                                                                                          \
            lg_conv3d(X3(x), x, B(x), .strides = LG_TRIPLE(3, 1, 2), .paddings = LG_TRIPLE(3, 1, 0),                   \
                      .dilations = LG_TRIPLE(2, 1, 1)),                                                                \
            3, 2, 3, 2, 3)                                                                                             \
        ROW(volume_points, lg_conv3d(x, lg_slice(lg_slice(lg_slice(W3(x), 2, 0, 1), 3, 0, 1), 4, 0, 1), B(x)), 2, 2,   \
            4, 3, 5)                                                                                                   \
        ROW(volume_alone, lg_conv3d(x, W3(x), B(x), .paddings = LG_TRIPLE(1, 0, 2)), 2, 4, 3, 5)                       \
        ROW(volume_groups,                                                                                             \
            lg_conv3d(x, golden_like(x, LG_SHAPE(4, 2, 2, 2, 1), 0.3), NULL, .padding = 1, .groups = 2), 1, 4, 3, 3,   \
            2)                                                                                                         \
        ROW(volume_groups_w,                                                                                           \
            lg_conv3d(golden_like(x, LG_SHAPE(1, 4, 3, 3, 2), 0.2), x, NULL, .padding = 1, .groups = 2), 4, 2, 2, 2,   \
            1)                                                                                                         \
        ROW(volume_transposed,                                                                                         \
            lg_conv_transpose3d(x, W3(x), golden_like(x, LG_SHAPE(2), 0.1), .stride = 2, .padding = 1,                 \
                                .output_padding = 1),                                                                  \
            1, 3, 2, 2, 2)                                                                                             \
        ROW(volume_transposed_w,                                                                                       \
            lg_conv_transpose3d(golden_like(x, LG_SHAPE(1, 3, 2, 3, 2), 0.2), x, NULL, .strides = LG_TRIPLE(2, 1, 3)), \
            3, 2, 3, 2, 3)                                                                                             \
        ROW(volume_transposed_b, lg_conv_transpose3d(golden_like(x, LG_SHAPE(1, 3, 2, 3, 2), 0.2), W3(x), x), 2)       \
        ROW(volume_transposed_groups,                                                                                  \
            lg_conv_transpose3d(x, golden_like(x, LG_SHAPE(4, 1, 3, 2, 2), 0.5), NULL, .groups = 2,                    \
                                .strides = LG_TRIPLE(3, 2, 1), .paddings = LG_TRIPLE(1, 0, 1),                         \
                                .dilations = LG_TRIPLE(1, 2, 1), .output_paddings = LG_TRIPLE(2, 1, 0)),               \
            1, 4, 3, 3, 2)

GOLDEN_TEST(as_pytorch_computes_it, "conv.txt", golden_input, ROWS);

/* ---- volumes ---- */

/* The sum over the depth of the kernel of 2-d convolutions. */
static lg_tensor *by_slices(lg_tensor *x, lg_tensor *w, int64_t padding)
{
        const int64_t depth = lg_size_of(x, 2), taps = lg_size_of(w, 2);
        lg_tensor *padded = lg_pad(x, LG_INTS(0, 0, 0, 0, padding, padding)), *planes[64];
        for (int64_t i = 0; i + taps <= depth + 2 * padding; i++) {
                lg_tensor *sum = NULL;
                for (int64_t t = 0; t < taps; t++) {
                        lg_tensor *y =
                                lg_conv2d(lg_select(padded, 2, i + t), lg_select(w, 2, t), NULL, .padding = padding);
                        sum = sum ? lg_add(sum, y) : y;
                }
                planes[i] = lg_unsqueeze(sum, 2);
        }
        return lg_cat(LG_LIST_OF(depth + 2 * padding - taps + 1, planes), 2);
}

/* Volumes that are gathered in several parts, one of a sample, one of several samples; other dtypes. */
TEST_CASE(volumes_in_parts)
{
        static const lg_shape shapes[] = {{.ndim = 5, .size = {1, 16, 13, 48, 48}},
                                          {.ndim = 5, .size = {5, 16, 4, 40, 36}}};
        for (int s = 0; s < 2; s++) {
                lg_ctx *c = open_ctx();
                lg_tensor *x = lg_set_requires_grad(lg_normal(c, 0, 1, shapes[s]), true);
                lg_tensor *w = lg_set_requires_grad(lg_normal(c, 0, 0.1, LG_SHAPE(8, 16, 3, 3, 3)), true);
                lg_tensor *y = lg_conv3d(x, w, NULL, .padding = 1), *z = by_slices(x, w, 1);
                lg_tensor *g = lg_normal(c, 0, 1, lg_shape_of(y)), *got[2], *wanted[2];
                assert_near(lg_item(lg_amax(lg_abs(lg_sub(y, z)))), 0, 1e-4);
                lg_grad(LG_LIST(y), LG_LIST(x, w), .grads = LG_LIST(g), .result = got);
                lg_grad(LG_LIST(z), LG_LIST(x, w), .grads = LG_LIST(g), .result = wanted);
                assert_near(lg_item(lg_amax(lg_abs(lg_sub(got[0], wanted[0])))), 0, 1e-4);
                assert_near(lg_item(lg_amax(lg_abs(lg_sub(got[1], wanted[1])))), 0, 1e-2);
                static const lg_dtype dtypes[] = {LG_F64, LG_F16, LG_BF16};
                static const double limits[] = {1e-4, 2e-2, 1e-1};
                for (int d = 0; d < 3; d++) {
                        lg_tensor *other = lg_conv3d(lg_cast(x, dtypes[d]), lg_cast(w, dtypes[d]), NULL, .padding = 1);
                        assert_int_equal(lg_dtype_of(other), dtypes[d]);
                        assert_near(lg_item(lg_amax(lg_abs(lg_sub(lg_cast(other, LG_F32), y)))), 0, limits[d]);
                }
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(volumes_that_are_empty_or_wrong)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 4, 5, 6)), *w = lg_ones(c, LG_SHAPE(4, 3, 2, 2, 2));
        assert_shape(lg_conv3d(lg_zeros(c, LG_SHAPE(0, 3, 4, 5, 6)), w, NULL), LG_SHAPE(0, 4, 3, 4, 5));
        lg_tensor *b = lg_from(c, ((float[]){1, 2}), LG_SHAPE(2)), *none = lg_zeros(c, LG_SHAPE(1, 0, 2, 1, 1));
        assert_list(lg_conv3d(none, lg_zeros(c, LG_SHAPE(2, 0, 2, 1, 1)), b, .paddings = LG_TRIPLE(1, 0, 0)), 0, 1, 1,
                    1, 2, 2, 2);
        assert_list(lg_conv3d(lg_zeros(c, LG_SHAPE(1, 1, 0, 1, 1)), lg_ones(c, LG_SHAPE(2, 1, 2, 1, 1)), b,
                              .paddings = LG_TRIPLE(1, 0, 0)),
                    0, 1, 2);
        assert_ok(c);
        assert_fails(c, lg_conv3d(lg_ones(c, LG_SHAPE(3, 4)), w, NULL), LG_ERR_SHAPE,
                     "(N, C, D, H, W) or (C, D, H, W)");
        assert_fails(c, lg_conv3d(x, lg_ones(c, LG_SHAPE(4, 3, 2, 2)), NULL), LG_ERR_SHAPE, "KD, KH, KW");
        assert_fails(c, lg_conv3d(x, w, lg_ones(c, LG_SHAPE(3))), LG_ERR_SHAPE, "conv3d: b is");
        assert_fails(c, lg_conv3d(lg_ones(c, LG_SHAPE(2, 4, 5, 6, 3)), w, NULL), LG_ERR_SHAPE,
                     "LG_DIMS(0, 4, 1, 2, 3)");
        assert_fails(c, lg_conv3d(x, w, NULL, .strides = LG_TRIPLE(0, 1, 1)), LG_ERR_ARGUMENT, "stride is 0");
        assert_fails(c, lg_conv3d(x, w, NULL, .dilations = LG_TRIPLE(4, 1, 1)), LG_ERR_SHAPE,
                     "a kernel of 2 with dilation 4");
        assert_fails(c, lg_conv_transpose3d(x, w, NULL), LG_ERR_SHAPE, "w takes 4 channels");
        assert_fails(c,
                     lg_conv_transpose3d(lg_ones(c, LG_SHAPE(1, 4, 2, 2, 2)), w, NULL,
                                         .output_paddings = LG_TRIPLE(1, 0, 0)),
                     LG_ERR_ARGUMENT, "output_padding is 1");
        lg_close(c);
}

/* ---- layouts and dtypes ---- */

static lg_tensor *transposed(lg_tensor *x)
{
        return lg_permute(lg_contiguous(lg_permute(x, LG_DIMS(3, 1, 0, 2))), LG_DIMS(2, 1, 3, 0));
}

/* One value and three gradients for any layout and dtype, also of a mixture. */
TEST_CASE(layouts_and_dtypes)
{
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-12, 1e-5, 2e-3, 1.6e-2};
        lg_ctx *c = open_ctx();
        lg_tensor *x0 = lg_uniform(c, -1, 1, LG_SHAPE(3, 4, 6, 5), .dtype = LG_F64);
        lg_tensor *w0 = lg_uniform(c, -1, 1, LG_SHAPE(6, 2, 3, 2), .dtype = LG_F64);
        lg_tensor *b0 = lg_uniform(c, -1, 1, LG_SHAPE(6), .dtype = LG_F64);
        for (int k = 0; k < 12; k++) {
                lg_scope s = lg_scope_begin(c);
                double v[1000];
                lg_tensor *in[2][3], *y[2], *g = NULL;
                for (int i = 1; i >= 0; i--) { /* the second one is the reference: the same values in f64, contiguous */
                        lg_tensor *all[3] = {x0, w0, b0};
                        for (int t = 0; t < 3; t++) {
                                lg_tensor *rounded = lg_cast(all[t], dtypes[k % 4]);
                                if (i == 0 && t < 2 && k >= 4)
                                        rounded = k < 8 || t == 0 ? transposed(rounded) : rounded;
                                in[i][t] =
                                        lg_set_requires_grad(lg_detach(i ? lg_cast(rounded, LG_F64) : rounded), true);
                        }
                        y[i] = lg_conv2d(in[i][0], in[i][1], in[i][2], .stride = 2, .padding = 1, .groups = 2);
                        g = g ? g : lg_uniform(c, -1, 1, lg_shape_of(y[i]), .dtype = LG_F64);
                        g = lg_cast(lg_cast(g, dtypes[k % 4]), LG_F64);
                        lg_tensor *gi = lg_cast(g, lg_dtype_of(y[i]));
                        lg_backward(y[i], .grad = i == 0 && k >= 4 ? transposed(gi) : gi);
                        assert_ok(c);
                }
                assert_int_equal(lg_dtype_of(y[0]), dtypes[k % 4]);
                int64_t n = read_all(y[1], v, 1000);
                assert_values(y[0], v, n, limits[k % 4]);
                for (int t = 0; t < 3; t++) {
                        n = read_all(lg_grad_of(in[1][t]), v, 1000);
                        assert_values(lg_grad_of(in[0][t]), v, n, limits[k % 4]);
                }
                lg_scope_end(c, s);
        }
        /* the widest dtype decides */
        lg_tensor *y = lg_conv2d(lg_cast(x0, LG_F16), lg_cast(w0, LG_F32), lg_cast(b0, LG_BF16), .groups = 2), *z;
        assert_int_equal(lg_dtype_of(y), LG_F32);
        z = lg_conv2d(lg_cast(lg_cast(x0, LG_F16), LG_F64), w0, lg_cast(lg_cast(b0, LG_BF16), LG_F64), .groups = 2);
        assert_near(lg_item(lg_amax(lg_abs(lg_sub(y, z)))), 0, 1e-5);
        assert_ok(c);
        lg_close(c);
}

/* Results lie channels-last, so that the next layer copies nothing. */
TEST_CASE(results_lie_channels_last)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 8, 8)), *w = lg_ones(c, LG_SHAPE(5, 3, 3, 3));
        lg_tensor *y = lg_relu(lg_conv2d(x, w, NULL)), *z = lg_conv_transpose2d(y, w, NULL);
        assert_int_equal(lg_stride_of(y, 1), 1);
        assert_int_equal(lg_stride_of(y, 3), 5);
        assert_int_equal(lg_stride_of(z, 1), 1);
        assert_int_equal(lg_stride_of(z, 3), 3);
        assert_list(lg_sum(y), 0, 2 * 5 * 36 * 27);
        assert_ok(c);
        lg_close(c);
}

/* ---- sizes ---- */

/* Big enough for several threads: the same bits for any number of them, and the values of a sum written by hand. */
TEST_CASE(threads)
{
        lg_ctx *c = open_ctx();
        enum { N = 6, C = 8, O = 16, SIDE = 24, ALL = N * O * SIDE * SIDE };
        lg_set_deterministic(c, true);
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(N, C, SIDE, SIDE), .requires_grad = true);
        lg_tensor *w = lg_uniform(c, -1, 1, LG_SHAPE(O, C, 3, 3), .requires_grad = true);
        lg_tensor *g = lg_uniform(c, -1, 1, LG_SHAPE(N, O, SIDE, SIDE));
        float *v[2], *dw[2], *dx[2];
        for (int i = 0; i < 2; i++) {
                v[i] = calloc(ALL, sizeof(float)), dx[i] = calloc(ALL, sizeof(float)),
                dw[i] = calloc(ALL, sizeof(float));
                lg_set_threads(c, i ? 3 : 1);
                lg_tensor *y = lg_conv2d(x, w, NULL, .padding = 1), *of[2];
                assert_true(lg_read(y, v[i], LG_F32, ALL * sizeof(float)));
                lg_grad(LG_LIST(y), LG_LIST(x, w), .grads = LG_LIST(g), .result = of);
                assert_true(lg_read(of[0], dx[i], LG_F32, (size_t)lg_numel(x) * sizeof(float)));
                assert_true(lg_read(of[1], dw[i], LG_F32, (size_t)lg_numel(w) * sizeof(float)));
        }
        assert_memory_equal(v[0], v[1], ALL * sizeof(float));
        assert_memory_equal(dx[0], dx[1], ALL * sizeof(float));
        assert_memory_equal(dw[0], dw[1], ALL * sizeof(float));
        float *vx = calloc(ALL, sizeof(float)), *vw = calloc(ALL, sizeof(float));
        assert_true(lg_read(x, vx, LG_F32, (size_t)lg_numel(x) * sizeof(float)));
        assert_true(lg_read(w, vw, LG_F32, (size_t)lg_numel(w) * sizeof(float)));
        for (int n = 0; n < N; n++)
                for (int o = 0; o < O; o++) {
                        double sum = 0; /* of the top left pixel */
                        for (int i = 0; i < C; i++)
                                for (int k = 0; k < 4; k++)
                                        sum += (double)vx[((n * C + i) * SIDE + k / 2) * SIDE + k % 2] *
                                               (double)vw[(o * C + i) * 9 + (k / 2 + 1) * 3 + k % 2 + 1];
                        assert_near(v[0][(n * O + o) * SIDE * SIDE], sum, 1e-5);
                }
        for (int i = 0; i < 2; i++)
                free(v[i]), free(dw[i]), free(dx[i]);
        free(vx), free(vw);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty)
{
        lg_ctx *c = open_ctx();
        lg_tensor *w = lg_ones(c, LG_SHAPE(5, 3, 3, 3), .requires_grad = true);
        lg_tensor *b = lg_ones(c, LG_SHAPE(5), .requires_grad = true);
        lg_tensor *y = lg_conv2d(lg_ones(c, LG_SHAPE(0, 3, 7, 8)), w, b);
        assert_int_equal(lg_ndim_of(y), 4);
        assert_true(lg_size_of(y, 0) == 0 && lg_size_of(y, 1) == 5 && lg_size_of(y, 2) == 5 && lg_size_of(y, 3) == 6);
        lg_backward(lg_sum(y));
        assert_near(lg_item(lg_sum(lg_abs(lg_grad_of(w)))), 0, 0);
        assert_near(lg_item(lg_sum(lg_abs(lg_grad_of(b)))), 0, 0);
        y = lg_conv2d(lg_ones(c, LG_SHAPE(1, 0, 2, 2)), lg_ones(c, LG_SHAPE(2, 0, 1, 1)),
                      lg_from(c, ((float[]){3, 4}), LG_SHAPE(2)));
        assert_list(y, 0, 3, 3, 3, 3, 4, 4, 4, 4);
        assert_ok(c);
        lg_close(c);
}

/* ---- errors ---- */

TEST_CASE(errors)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 4, 5, 6)), *w = lg_ones(c, LG_SHAPE(6, 4, 3, 3)),
                  *s = lg_ones(c, LG_SHAPE(2, 4, 5)), *u = lg_ones(c, LG_SHAPE(6, 4, 3)), *b = lg_ones(c, LG_SHAPE(6));
#define REFUSED(code, text, call)                                                                                      \
        assert_null(call);                                                                                             \
        assert_error(c, code, text)
        REFUSED(LG_ERR_SHAPE, "conv2d: x is f32 (2, 3)", lg_conv2d(lg_ones(c, LG_SHAPE(2, 3)), w, NULL));
        REFUSED(LG_ERR_SHAPE, "(N, C, H, W) or (C, H, W)", lg_conv2d(lg_ones(c, LG_SHAPE(1, 2, 3, 4, 5)), w, NULL));
        REFUSED(LG_ERR_SHAPE, "conv2d: w is f32 (6, 4, 3)", lg_conv2d(x, u, NULL));
        REFUSED(LG_ERR_SHAPE, "conv1d: x is", lg_conv1d(x, u, NULL));
        REFUSED(LG_ERR_SHAPE, "conv1d: w is", lg_conv1d(s, w, NULL));
        REFUSED(LG_ERR_SHAPE, "w takes 8 channels, not 4", lg_conv2d(x, w, NULL, .groups = 2));
        REFUSED(LG_ERR_SHAPE, "w takes 3 channels, not 4", lg_conv2d(x, lg_ones(c, LG_SHAPE(6, 3, 3, 3)), NULL));
        REFUSED(LG_ERR_SHAPE, "w takes 6 channels, not 4", lg_conv_transpose2d(x, w, NULL));
        REFUSED(LG_ERR_ARGUMENT, "4 groups", lg_conv2d(x, w, NULL, .groups = 4));
        REFUSED(LG_ERR_ARGUMENT, "-1 groups", lg_conv2d(x, w, NULL, .groups = -1));
        REFUSED(LG_ERR_SHAPE, "a kernel of 3 with dilation 3 is greater than the padded input of 6",
                lg_conv2d(x, w, NULL, .dilation = 3, .paddings = LG_PAIR(1, 0)));
        REFUSED(LG_ERR_SHAPE, "greater than the padded input of 2", lg_conv1d(lg_slice(s, 2, 0, 2), u, NULL));
        REFUSED(LG_ERR_SHAPE, "sizes must be above 0", lg_conv2d(x, lg_ones(c, LG_SHAPE(6, 4, 0, 3)), NULL));
        REFUSED(LG_ERR_ARGUMENT, "padding is -1", lg_conv2d(x, w, NULL, .padding = -1));
        REFUSED(LG_ERR_ARGUMENT, "stride is -2", lg_conv2d(x, w, NULL, .stride = -2));
        REFUSED(LG_ERR_ARGUMENT, "stride is 0", lg_conv2d(x, w, NULL, .strides = LG_PAIR(1, 0)));
        REFUSED(LG_ERR_ARGUMENT, "dilation is -1", lg_conv2d(x, w, NULL, .dilations = LG_PAIR(1, -1)));
        REFUSED(LG_ERR_ARGUMENT, "below 2^31", lg_conv2d(x, w, NULL, .dilation = INT64_MAX));
        REFUSED(LG_ERR_ARGUMENT, "below the stride 2 or the dilation 1",
                lg_conv_transpose2d(x, lg_ones(c, LG_SHAPE(4, 2, 3, 3)), NULL, .stride = 2, .output_padding = 2));
        REFUSED(LG_ERR_SHAPE, "leaves no output",
                lg_conv_transpose1d(s, lg_ones(c, LG_SHAPE(4, 2, 1)), NULL, .padding = 3));
        REFUSED(LG_ERR_SHAPE, "b takes (6,)", lg_conv2d(x, w, lg_ones(c, LG_SHAPE(4))));
        REFUSED(LG_ERR_SHAPE, "b takes (4,)", lg_conv_transpose2d(x, lg_ones(c, LG_SHAPE(4, 2, 3, 3)), b, .groups = 2));
        REFUSED(LG_ERR_DTYPE, "conv2d: x is i32", lg_conv2d(lg_cast(x, LG_I32), w, NULL));
        REFUSED(LG_ERR_DTYPE, "conv_transpose1d: w is i64",
                lg_conv_transpose1d(s, lg_cast(lg_ones(c, LG_SHAPE(4, 2, 3)), LG_I64), NULL));
        REFUSED(LG_ERR_DTYPE, "b is", lg_conv2d(x, w, lg_cast(b, LG_BOOL)));
        lg_tensor *far = lg_ones(c, LG_SHAPE(6, 4, 3), .device = lg_parse_device(c, "shadow:1"));
        REFUSED(LG_ERR_DEVICE, "conv1d: x is f32 (2, 4, 5)", lg_conv1d(s, far, NULL));
        REFUSED(LG_ERR_ARGUMENT, "w is NULL", lg_conv2d(x, NULL, NULL));
        REFUSED(LG_ERR_ARGUMENT, "x is NULL", lg_conv1d(NULL, u, NULL));
        REFUSED(LG_ERR_ARGUMENT, "another context", lg_conv2d(x, lg_ones(other, LG_SHAPE(6, 4, 3, 3)), NULL));
        lg_close(other);
        lg_close(c);
}

/* ---- long kernels, by Fourier transforms ---- */

static void count_transforms(const lg_trace_record *r, void *user)
{
        *(int *)user += strcmp(r->op, "fft") == 0;
}

/* The convolution of signals as one of images, which windows compute. */
static lg_tensor *by_windows(lg_tensor *x, lg_tensor *w, lg_tensor *b, int64_t padding)
{
        lg_tensor *y = lg_conv2d(lg_unsqueeze(x, -2), lg_unsqueeze(w, -2), b, .paddings = LG_PAIR(0, padding));
        return lg_squeeze(y, LG_DIMS(-2));
}

static double distance(lg_tensor *a, lg_tensor *b)
{
        return lg_item(lg_amax(lg_abs(lg_sub(a, b)))) / (1 + lg_item(lg_amax(lg_abs(b))));
}

/* Shorter ones on CUDA, where cuDNN convolves, and where the simulation is slow. */
static int64_t length(const lg_ctx *c, int64_t n)
{
        return lg_default_device(c).type == LG_DEVICE_CUDA ? n / 20 : n;
}

static void check_long(lg_ctx *c, lg_dtype dtype, int64_t padding, bool alone, bool biased)
{
        const int64_t n = length(c, 1500);
        const double most = dtype == LG_F64 ? 1e-13 : 2e-5;
        lg_tensor *x = lg_normal(c, 0, 1, alone ? LG_SHAPE(8, n) : LG_SHAPE(4, 8, n), .dtype = dtype);
        lg_tensor *w = lg_normal(c, 0, 1, LG_SHAPE(4, 8, length(c, padding ? 1400 : 700)), .dtype = dtype);
        lg_tensor *b = biased ? lg_normal(c, 0, 1, LG_SHAPE(4), .dtype = dtype) : NULL;
        lg_tensor *in[3] = {x, w, b}, *got[3], *want[3], *again[3], *twice[3];
        const int count = biased ? 3 : 2;
        for (int i = 0; i < count; i++)
                lg_set_requires_grad(in[i], true);
        int transforms = 0;
        lg_set_trace(c, count_transforms, .user = &transforms);
        lg_tensor *y = lg_conv1d(x, w, b, .padding = padding);
        lg_set_trace(c, NULL);
        assert_int_equal(transforms, lg_device_of(x).type == LG_DEVICE_CUDA ? 0 : 3);
        lg_tensor *z = by_windows(x, w, b, padding);
        assert_true(distance(y, z) <= most);
        lg_list all = LG_LIST_OF(count, in);
        drop(lg_grad(LG_LIST(lg_sum(lg_square(y))), all, .result = got, .create_graph = true));
        drop(lg_grad(LG_LIST(lg_sum(lg_square(z))), all, .result = want, .create_graph = true));
        for (int i = 0; i < count; i++)
                assert_true(distance(got[i], want[i]) <= most);
        drop(lg_grad(LG_LIST(lg_sum(lg_sin(got[1]))), LG_LIST_OF(2, in), .result = again));
        drop(lg_grad(LG_LIST(lg_sum(lg_sin(want[1]))), LG_LIST_OF(2, in), .result = twice));
        assert_ok(c);
        for (int i = 0; i < 2 && dtype == LG_F64; i++)
                assert_true(distance(again[i], twice[i]) <= 1e-9);
}

TEST_CASE(long_kernels)
{
        lg_ctx *c = open_ctx();
        lg_scope scope;
        for (int i = 0; i < 4; i++) {
                scope = lg_scope_begin(c);
                check_long(c, i % 2 ? LG_F64 : LG_F32, i == 0 ? 0 : length(c, 700), i == 2, i > 0);
                lg_scope_end(c, scope);
        }
        const int64_t padding = length(c, 700);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 8, length(c, 1500)));
        lg_module *conv = lg_nn_conv1d(c, 8, 4, 2 * padding + 1, .padding = padding),
                  *net = lg_nn_sequential(c, conv, lg_nn_relu(c));
        lg_tensor *y = lg_forward(net, x);
        lg_tensor *z = lg_relu(by_windows(x, lg_parameter(conv, "weight"), lg_parameter(conv, "bias"), padding));
        assert_true(distance(y, z) <= 2e-5);
        lg_close(c);
}
