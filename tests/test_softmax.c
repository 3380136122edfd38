/* test_softmax.c - soft-max and its logarithm against PyTorch's numbers and plain loops. */
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(softmax_0, lg_softmax(x, 0), 3, 4)                                                                         \
        ROW(softmax_1, lg_softmax(x, 1), 3, 4)                                                                         \
        ROW(log_softmax_1, lg_log_softmax(x, -1), 3, 4)                                                                \
        ROW(log_softmax_0, lg_log_softmax(x, 0), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "ops.txt", golden_ops_input, ROWS);

TEST_CASE(big_scores_do_not_overflow)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1000, 1000, -1000, 0, -20000, 10}), LG_SHAPE(2, 3));
        assert_list(lg_softmax(x, 1), 1e-6, 0.5, 0.5, 0, 4.539787e-5, 0, 0.9999546);
        assert_list(lg_log_softmax(x, 1), 1e-5, -M_LN2, -M_LN2, -2000 - M_LN2, -10.0000454, -20010.0000454, -4.54e-5);
        lg_tensor *t = lg_from(c, ((int64_t[]){2, 1}), LG_SHAPE(2), .dtype = LG_I64);
        assert_list(lg_cross_entropy(x, t, .reduction = LG_NONE), 1e-5, 2000 + M_LN2, 20010.0000454);
        lg_tensor *h = lg_softmax(lg_cast(x, LG_F16), 1);
        assert_list(h, 2e-3, 0.5, 0.5, 0, 0, 0, 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        assert_fails(c, lg_softmax(x, 2), LG_ERR_ARGUMENT, "softmax");
        assert_fails(c, lg_softmax(lg_ones(c, LG_SHAPE(2), .dtype = LG_I64), 0), LG_ERR_DTYPE, "softmax");
        assert_int_equal(lg_numel(lg_softmax(lg_ones(c, LG_SHAPE(0, 3)), 1)), 0);
        assert_near(lg_item(lg_softmax(lg_scalar(c, 5), 0)), 1, 0);
        lg_close(c);
}

TEST_CASE(half_precision)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        const double limits[] = {2e-3, 1.6e-2};
        enum { ROWS_ = 8, CLASSES = 50 };
        for (int d = 0; d < 2; d++) {
                lg_tensor *x = lg_normal(c, 0, 2, LG_SHAPE(ROWS_, CLASSES), .dtype = dtypes[d]);
                lg_tensor *exact = lg_cast(x, LG_F64), *t = lg_arange(c, 0, ROWS_, 1);
                double ref[ROWS_ * CLASSES];
                read_all(lg_softmax(exact, 1), ref, ROWS_ * CLASSES);
                assert_values(lg_softmax(x, 1), ref, ROWS_ * CLASSES, limits[d]);
                read_all(lg_log_softmax(exact, 1), ref, ROWS_ * CLASSES);
                assert_values(lg_log_softmax(x, 1), ref, ROWS_ * CLASSES, limits[d]);
                ref[0] = lg_item(lg_cross_entropy(exact, t));
                assert_values(lg_cross_entropy(x, t), ref, 1, limits[d]);
        }
        lg_close(c);
}

/* A view of the shape that begins one element into its memory, so that nothing lies on even addresses. */
static lg_tensor *shifted(lg_tensor *x)
{
        lg_tensor *flat = lg_reshape(x, LG_SHAPE(lg_numel(x)));
        lg_tensor *room = lg_cat(LG_LIST(lg_slice(flat, 0, 0, 1), flat), 0);
        return lg_reshape(lg_slice(room, 0, 1, LG_MAX), lg_shape_of(x));
}

/* Soft-max, its logarithm, and their derivatives along the middle of (2, n, inner), against loops in f64. */
static void check_lines(lg_ctx *c, lg_dtype dtype, int64_t n, int64_t inner, bool shift, double limit)
{
        lg_scope scope = lg_scope_begin(c);
        const int64_t count = 2 * n * inner;
        lg_tensor *x = lg_normal(c, 0, 2, LG_SHAPE(2, n, inner), .dtype = dtype);
        lg_tensor *g = lg_normal(c, 0, 1, LG_SHAPE(2, n, inner), .dtype = dtype), *dx;
        double *v = calloc((size_t)count * 4, sizeof *v), *slope = v + count, *y = v + 2 * count, *want = v + 3 * count;
        x = lg_set_requires_grad(lg_detach(shift ? shifted(x) : x), true);
        g = shift ? shifted(g) : g;
        read_all(x, v, count);
        read_all(g, slope, count);
        for (int log_of = 0; log_of < 2; log_of++) {
                for (int64_t l = 0; l < 2 * inner; l++) {
                        const int64_t at = l / inner * n * inner + l % inner;
                        double top = -INFINITY, sum = 0, product = 0;
                        for (int64_t i = 0; i < n; i++)
                                top = fmax(top, v[at + i * inner]);
                        for (int64_t i = 0; i < n; i++)
                                sum += exp(v[at + i * inner] - top);
                        for (int64_t i = 0; i < n; i++) {
                                double d = v[at + i * inner] - top, s = slope[at + i * inner];
                                y[at + i * inner] = log_of ? d - log(sum) : exp(d) / sum;
                                product += log_of ? s : s * exp(d) / sum;
                        }
                        for (int64_t i = 0; i < n; i++) {
                                double own = y[at + i * inner], s = slope[at + i * inner];
                                want[at + i * inner] = log_of ? s - exp(own) * product : own * (s - product);
                        }
                }
                lg_tensor *r = log_of ? lg_log_softmax(x, 1) : lg_softmax(x, 1);
                assert_values(r, y, count, limit);
                lg_grad(LG_LIST(r), LG_LIST(x), .grads = LG_LIST(g), .result = &dx);
                assert_ok(c);
                assert_values(dx, want, count, limit);
        }
        free(v);
        lg_scope_end(c, scope);
}

TEST_CASE(lines_of_any_length)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {2, 16, 17, 40, 1024, 1040, 8192, 8200, 9001};
        for (int i = 0; i < 9; i++)
                for (int shift = 0; shift < 2; shift++) {
                        check_lines(c, LG_F32, lengths[i], 1, shift, 2e-6);
                        check_lines(c, LG_F64, lengths[i], 1, shift, 1e-13);
                        check_lines(c, LG_F16, lengths[i], 1, shift, 4e-3);
                        check_lines(c, LG_BF16, lengths[i], 1, shift, 4e-2);
                }
        for (int64_t inner = 2; inner < 80; inner = inner * 3 + 1)
                for (int i = 0; i < 4; i++) {
                        check_lines(c, LG_F32, lengths[i] * 5, inner, false, 2e-6);
                        check_lines(c, LG_F64, lengths[i] * 5, inner, false, 1e-13);
                }
        lg_close(c);
}

/* What is not finite in rows of each length, as it is in short ones. */
TEST_CASE(scores_out_of_range)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {5, 100, 2000, 9000};
        for (int k = 0; k < 4; k++) {
                const int64_t n = lengths[k];
                lg_tensor *x = lg_full(c, LG_SHAPE(4, n), -INFINITY);
                lg_copy_(lg_slice(lg_select(x, 0, 0), 0, 3, 5), lg_zeros(c, LG_SHAPE(2))); /* two that count */
                lg_copy_(lg_slice(lg_select(x, 0, 2), 0, 1, 2), lg_full(c, LG_SHAPE(1), NAN));
                lg_copy_(lg_slice(lg_select(x, 0, 3), 0, 4, 5), lg_full(c, LG_SHAPE(1), INFINITY));
                for (int across = 0; across < 2; across++) {
                        lg_tensor *y = across ? lg_softmax(lg_contiguous(lg_transpose(x, 0, 1)), 0) : lg_softmax(x, 1);
                        double *v = calloc((size_t)(4 * n), sizeof *v);
                        assert_ok(c);
                        read_all(across ? lg_contiguous(lg_transpose(y, 0, 1)) : y, v, 4 * n);
                        for (int64_t i = 0; i < n; i++)
                                assert_near(v[i], i == 3 || i == 4 ? 0.5 : 0, 1e-6);
                        for (int64_t i = n; i < 4 * n; i++)
                                assert_true(isnan(v[i]));
                        free(v);
                }
        }
        lg_close(c);
}
