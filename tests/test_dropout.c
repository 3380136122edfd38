/* test_dropout.c - dropout: which elements go, by the generator's own numbers; how many; and what it does to gradients.
 */
#include "failing.h"

/* x / (1 - p) where the generator's f32 uniforms are at least p, of numbers drawn on the CPU. */
static void reference(lg_ctx *c, lg_random_state state, lg_shape shape, double p, const double *x, double *ret)
{
        lg_random_state now = lg_random_state_of(c);
        lg_set_random_state(c, state);
        lg_tensor *u = lg_uniform(c, 0, 1, shape, .device = lg_cpu());
        int64_t n = read_all(u, ret, lg_numel(u));
        for (int64_t i = 0; i < n; i++)
                ret[i] = ret[i] >= p ? x[i] / (1 - p) : 0;
        lg_set_random_state(c, now);
}

TEST_CASE(mask_is_of_the_generator)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-15, 1e-6, 2e-3, 1.6e-2};
        const lg_shape shapes[] = {LG_SHAPE(3, 7), LG_SHAPE_0D, LG_SHAPE(0, 4), LG_SHAPE(2, 30, 1000), LG_SHAPE(1)};
        for (int d = 0; d < 4; d++)
                for (int s = 0; s < 5; s++) {
                        lg_tensor *x = lg_uniform(c, 1, 2, shapes[s], .dtype = dtypes[d]);
                        int64_t n = lg_numel(x);
                        double *v = calloc((size_t)n + 1, sizeof *v), *ref = calloc((size_t)n + 1, sizeof *ref);
                        lg_random_state before = lg_random_state_of(c);
                        lg_tensor *y = lg_dropout(x, 0.37, .training = true);
                        assert_int_equal(lg_random_state_of(c).counter - before.counter, (n + 3) / 4);
                        read_all(x, v, n);
                        reference(c, before, shapes[s], 0.37, v, ref);
                        assert_values(y, ref, n, limits[d]);
                        free(v), free(ref);
                }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(mask_does_not_know_the_layout)
{
        lg_ctx *c = open_ctx();
        lg_tensor *plain = lg_uniform(c, 1, 2, LG_SHAPE(2, 3, 40, 50));
        lg_tensor *const x[] = {
                lg_permute(lg_contiguous(lg_permute(plain, LG_DIMS(0, 2, 3, 1))), LG_DIMS(0, 3, 1, 2)),
                lg_slice(plain, 3, 1, LG_MAX, .step = 3),
                lg_expand(lg_slice(plain, 1, 1, 2), LG_SHAPE(2, 5, 40, 50)),
        };
        enum { room = 20000 };
        double *v = calloc(room, sizeof *v), *ref = calloc(room, sizeof *ref);
        for (int i = 0; i < 3; i++) {
                lg_random_state before = lg_random_state_of(c);
                lg_tensor *y = lg_dropout(x[i], 0.5, .training = true);
                int64_t n = read_all(x[i], v, room);
                reference(c, before, lg_shape_of(x[i]), 0.5, v, ref);
                assert_values(y, ref, n, 1e-6);
                for (int k = 0; k < 4 && i == 0; k++)
                        assert_int_equal(lg_stride_of(y, k), lg_stride_of(x[0], k));
        }
        free(v), free(ref);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(rate_and_scale)
{
        lg_ctx *c = open_ctx();
        enum { n = 200000 };
        const double p[] = {0.1, 0.5, 0.9};
        double *v = calloc(n, sizeof *v);
        for (int k = 0; k < 3; k++) {
                int64_t kept = 0;
                read_all(lg_dropout(lg_full(c, LG_SHAPE(n), 3, .dtype = LG_F64), p[k], .training = true), v, n);
                for (int i = 0; i < n; i++) {
                        if (v[i] != 0)
                                assert_near(v[i], 3 / (1 - p[k]), 1e-12);
                        kept += v[i] != 0;
                }
                assert_near((double)kept / n, 1 - p[k], 5 * sqrt(p[k] * (1 - p[k]) / n));
        }
        free(v);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(threads_do_not_matter)
{
        lg_ctx *c = open_ctx();
        enum { n = 100001 };
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(n));
        double *v[2];
        lg_random_state before = lg_random_state_of(c);
        for (int i = 0; i < 2; i++) {
                v[i] = calloc(n, sizeof *v[i]);
                lg_set_random_state(c, before);
                lg_set_threads(c, i + 1);
                read_all(lg_dropout(x, 0.2, .training = true), v[i], n);
        }
        assert_memory_equal(v[0], v[1], n * sizeof *v[0]);
        free(v[0]), free(v[1]);
        lg_close(c);
}

/* dx is g where x stayed, scaled as x was, also of a second derivative's graph; another call drops others. */
TEST_CASE(gradient_has_the_same_mask)
{
        lg_ctx *c = open_ctx();
        enum { n = 64 };
        double kept[n], other[n], g[n], dx[n];
        for (int create_graph = 0; create_graph < 2; create_graph++) {
                lg_tensor *x = lg_ones(c, LG_SHAPE(8, 8), .dtype = LG_F64, .requires_grad = true);
                lg_tensor *y = lg_dropout(x, 0.5, .training = true),
                          *w = lg_normal(c, 0, 1, LG_SHAPE(8, 8), .dtype = LG_F64);
                lg_tensor *z = lg_dropout(x, 0.5, .training = true);
                lg_backward(y, .grad = lg_transpose(w, 0, 1), .create_graph = create_graph);
                read_all(y, kept, n);
                read_all(z, other, n);
                read_all(lg_transpose(w, 0, 1), g, n);
                read_all(lg_grad_of(x), dx, n);
                for (int i = 0; i < n; i++)
                        assert_near(dx[i], g[i] * kept[i], 1e-15);
                assert_memory_not_equal(kept, other, sizeof kept);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(whole_channels_go)
{
        lg_ctx *c = open_ctx();
        enum { channels = 600, length = 6 };
        static double v[channels * length];
        lg_tensor *y = lg_feature_dropout(lg_full(c, LG_SHAPE(20, 30, 2, 3), 2), 0.25, .training = true);
        int kept = 0;
        read_all(y, v, channels * length);
        for (int i = 0; i < channels; i++) {
                for (int k = 0; k < length; k++)
                        assert_near(v[i * length + k], v[i * length] != 0 ? 2 / 0.75 : 0, 1e-6);
                kept += v[i * length] != 0;
        }
        assert_near(kept / (double)channels, 0.75, 5 * sqrt(0.25 * 0.75 / channels));
        lg_random_state before = lg_random_state_of(c);
        drop(lg_feature_dropout(lg_ones(c, LG_SHAPE(2, 3, 50)), 0.5, .training = true));
        assert_int_equal(lg_random_state_of(c).counter - before.counter, 2);
        assert_ok(c);
        lg_close(c);
}

/* Both values are those of PyTorch for p = 0.25 and x = 2. */
TEST_CASE(alpha)
{
        lg_ctx *c = open_ctx();
        enum { n = 40000, rows = n / 4 };
        static double v[n];
        const double kept = 2.1156972437856907, dropped = -1.1435441882094726; /* of 2 */
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-12, 1e-6, 2e-3, 1.6e-2};
        for (int d = 0; d < 4; d++)
                for (int whole = 0; whole < 2; whole++) {
                        lg_tensor *x = lg_full(c, LG_SHAPE(50, rows / 50, 4), 2, .dtype = dtypes[d]);
                        lg_tensor *y = whole ? lg_feature_alpha_dropout(x, 0.25, .training = true)
                                             : lg_alpha_dropout(x, 0.25, .training = true);
                        int64_t stay = 0;
                        assert_int_equal(lg_dtype_of(y), dtypes[d]);
                        read_all(y, v, n);
                        for (int i = 0; i < n; i++) {
                                const bool above = v[whole ? i / 4 * 4 : i] > 0;
                                assert_near(v[i], above ? kept : dropped, limits[d] * 3);
                                stay += above;
                        }
                        assert_near(stay / (double)n, 0.75, 5 * sqrt(0.25 * 0.75 / (whole ? rows : n)));
                }
        read_all(lg_alpha_dropout(lg_normal(c, 0, 1, LG_SHAPE(n)), 0.4, .training = true), v, n);
        double mean = 0, square = 0;
        for (int i = 0; i < n; i++) {
                mean += v[i] / n;
                square += v[i] * v[i] / n;
        }
        assert_near(mean, 0, 0.03);
        assert_near(square, 1, 0.03);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        assert_ptr_equal(lg_alpha_dropout(x, 0, .training = true), x);
        assert_ptr_equal(lg_feature_alpha_dropout(x, 0.5), x);
        assert_list(lg_alpha_dropout(x, 1, .training = true), 0, 0, 0, 0, 0, 0, 0);
        assert_fails(c, lg_alpha_dropout(x, 1.5), LG_ERR_ARGUMENT, "alpha_dropout: p is 1.5");
        assert_fails(c, lg_feature_alpha_dropout(lg_ones(c, LG_SHAPE(3)), 0.5, .training = true), LG_ERR_SHAPE,
                     "feature_alpha_dropout: x is f32 (3,)");
        assert_int_equal(lg_numel(lg_alpha_dropout(lg_ones(c, LG_SHAPE(0, 3)), 0.5, .training = true)), 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, NAN, INFINITY}), LG_SHAPE(1, 3));
        lg_random_state before = lg_random_state_of(c);
        assert_ptr_equal(lg_dropout(x, 0, .training = true), x);
        assert_ptr_equal(lg_dropout(x, 0.5), x);
        assert_ptr_equal(lg_feature_dropout(x, 0, .training = true), x);
        assert_ptr_equal(lg_feature_dropout(x, 0.5), x);
        assert_ok(c);
        const double wrong[] = {-0.1, 1.5, NAN};
        for (int i = 0; i < 3; i++) {
                assert_null(lg_dropout(x, wrong[i], .training = true));
                assert_error(c, LG_ERR_ARGUMENT, "dropout: p is");
                assert_null(lg_feature_dropout(x, wrong[i]));
                assert_error(c, LG_ERR_ARGUMENT, "feature_dropout: p is");
        }
        drop(lg_dropout(lg_cast(x, LG_I64), 0.5, .training = true));
        assert_error(c, LG_ERR_DTYPE, "dropout: x is i64");
        drop(lg_feature_dropout(lg_ones(c, LG_SHAPE(3)), 0.5, .training = true));
        assert_error(c, LG_ERR_SHAPE, "(N, C, ...)");
        assert_null(lg_dropout(NULL, 0.5, .training = true));
        assert_int_equal(lg_random_state_of(c).counter, before.counter);
        assert_list(lg_dropout(x, 1, .training = true), 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(without_memory_nothing_is_drawn)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(20, 3000, 8)), *y = NULL;
        for (int k = 0; k < 2; k++, y = NULL) {
                const lg_random_state before = lg_random_state_of(c);
                int64_t failures = 0;
                for (; !y; failures += !y) {
                        lg_empty_cache(c);
                        arm(&f, failures + 1, false);
                        y = k ? lg_feature_dropout(x, 0.5, .training = true) : lg_dropout(x, 0.5, .training = true);
                        arm(&f, 0, false);
                        if (!y)
                                assert_error(c, LG_ERR_MEMORY, "");
                        assert_true(y || lg_random_state_of(c).counter == before.counter);
                }
                assert_true(failures > k);
                assert_true(lg_random_state_of(c).counter > before.counter);
        }
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}
