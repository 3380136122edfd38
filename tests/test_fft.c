/* test_fft.c - Fourier transforms of any length and layout, complex numbers, windows, spectrograms. */
#include <math.h>
#include "golden.h"

/* 0, 1, 2 as a column, of x's dtype. */
static lg_tensor *counts(const lg_tensor *x)
{
        return lg_unsqueeze(lg_arange(lg_ctx_of(x), 0, 3, 1, .dtype = lg_dtype_of(x)), 1);
}

#define WINDOW(name, ...) lg_mul(x, lg_##name##_window(c, __VA_ARGS__, .dtype = lg_dtype_of(x)))
#define HANN lg_hann_window(c, 8, .dtype = lg_dtype_of(x))
#define ROWS(ROW)                                                                                                      \
        ROW(fft, lg_fft(x), 3, 8, 2)                                                                                   \
        ROW(fft_one, lg_fft(x), 2, 1, 2)                                                                               \
        ROW(fft_odd, lg_fft(x), 2, 15, 2)                                                                              \
        ROW(fft_13, lg_fft(x), 13, 2)                                                                                  \
        ROW(fft_dim, lg_fft(x, .dim = LG_ZERO_INT, .norm = LG_FFT_ORTHO), 6, 3, 2)                                     \
        ROW(fft_longer, lg_fft(x, .n = 9, .dim = 1, .norm = LG_FFT_FORWARD), 2, 5, 2, 2)                               \
        ROW(fft_shorter, lg_fft(x, .n = 4), 2, 7, 2)                                                                   \
        ROW(ifft, lg_ifft(x), 2, 6, 2)                                                                                 \
        ROW(ifft_forward, lg_ifft(x, .dim = -2, .norm = LG_FFT_FORWARD), 5, 2, 2)                                      \
        ROW(ifft_ortho, lg_ifft(x, .n = 3, .norm = LG_FFT_ORTHO), 2, 4, 2)                                             \
        ROW(rfft, lg_rfft(x), 2, 8)                                                                                    \
        ROW(rfft_odd, lg_rfft(x, .norm = LG_FFT_ORTHO), 3, 7)                                                          \
        ROW(rfft_dim, lg_rfft(x, .dim = -2, .norm = LG_FFT_FORWARD), 6, 3)                                             \
        ROW(rfft_n, lg_rfft(x, .n = 5, .dim = -2), 2, 4, 3)                                                            \
        ROW(rfft_one, lg_rfft(x), 2, 1)                                                                                \
        ROW(rfft_two, lg_rfft(x), 2, 2)                                                                                \
        ROW(irfft, lg_irfft(x), 2, 5, 2)                                                                               \
        ROW(irfft_odd, lg_irfft(x, .n = 7, .norm = LG_FFT_ORTHO), 2, 4, 2)                                             \
        ROW(irfft_dim, lg_irfft(x, .dim = LG_ZERO_INT, .norm = LG_FFT_FORWARD), 4, 3, 2)                               \
        ROW(irfft_n, lg_irfft(x, .n = 10), 2, 4, 2)                                                                    \
        ROW(irfft_one, lg_irfft(x, .n = 1), 2, 3, 2)                                                                   \
        ROW(hfft, lg_hfft(x), 2, 5, 2)                                                                                 \
        ROW(hfft_n, lg_hfft(x, .n = 7, .norm = LG_FFT_ORTHO), 2, 4, 2)                                                 \
        ROW(ihfft, lg_ihfft(x), 2, 6)                                                                                  \
        ROW(ihfft_odd, lg_ihfft(x, .dim = -2, .norm = LG_FFT_FORWARD), 5, 2)                                           \
        ROW(fft2, lg_fft2(x), 2, 3, 4, 2)                                                                              \
        ROW(fft2_s, lg_fft2(x, .s = LG_INTS(4, -1), .dims = LG_DIMS(0, 2), .norm = LG_FFT_ORTHO), 3, 2, 3, 2)          \
        ROW(ifft2, lg_ifft2(x), 3, 4, 2)                                                                               \
        ROW(rfft2, lg_rfft2(x), 2, 3, 4)                                                                               \
        ROW(rfft2_dims, lg_rfft2(x, .dims = LG_DIMS(2, 0)), 3, 2, 2)                                                   \
        ROW(irfft2, lg_irfft2(x), 2, 3, 3, 2)                                                                          \
        ROW(irfft2_s, lg_irfft2(x, .s = LG_INTS(4, 5), .norm = LG_FFT_ORTHO), 3, 3, 2)                                 \
        ROW(fftn, lg_fftn(x), 2, 3, 2, 2)                                                                              \
        ROW(fftn_s, lg_fftn(x, .s = LG_INTS(2, 5), .norm = LG_FFT_FORWARD), 2, 3, 4, 2)                                \
        ROW(fftn_number, lg_fftn(x), 2)                                                                                \
        ROW(ifftn, lg_ifftn(x, .dims = LG_DIMS(0, 2)), 2, 3, 2, 2)                                                     \
        ROW(rfftn, lg_rfftn(x), 3, 2, 4)                                                                               \
        ROW(rfftn_s, lg_rfftn(x, .s = LG_INTS(3, 3)), 2, 4, 4)                                                         \
        ROW(irfftn, lg_irfftn(x), 2, 3, 3, 2)                                                                          \
        ROW(irfftn_s, lg_irfftn(x, .s = LG_INTS(3, 4, 5), .dims = LG_DIMS(2, 0, 1)), 2, 3, 2, 2)                       \
        ROW(complex, lg_complex(x, lg_sin(lg_flip(x, LG_DIMS(0)))), 5)                                                 \
        ROW(complex_mul, lg_complex_mul(x, golden_like(x, LG_SHAPE(3, 2), 0.5)), 2, 3, 2)                              \
        ROW(complex_square, lg_complex_mul(x, x), 4, 2)                                                                \
        ROW(complex_conj, lg_complex_conj(x), 2, 3, 2)                                                                 \
        ROW(complex_abs, lg_complex_abs(x), 2, 3, 2)                                                                   \
        ROW(complex_angle, lg_complex_angle(x), 2, 3, 2)                                                               \
        ROW(complex_abs_0, lg_complex_abs(lg_mul(x, counts(x))), 3, 2)                                                 \
        ROW(complex_angle_0, lg_complex_angle(lg_mul(x, counts(x))), 3, 2)                                             \
        ROW(fftshift, lg_fftshift(x, LG_ALL_DIMS), 3, 4)                                                               \
        ROW(fftshift_dim, lg_fftshift(x, LG_DIMS(1)), 2, 5)                                                            \
        ROW(ifftshift, lg_ifftshift(x, LG_ALL_DIMS), 3, 4)                                                             \
        ROW(ifftshift_dim, lg_ifftshift(x, LG_DIMS(-1)), 2, 5)                                                         \
        ROW(fftfreq, lg_mul(x, lg_fftfreq(c, 8, .dtype = lg_dtype_of(x))), 8)                                          \
        ROW(fftfreq_odd, lg_mul(x, lg_fftfreq(c, 7, .d = 0.25, .dtype = lg_dtype_of(x))), 7)                           \
        ROW(rfftfreq, lg_mul(x, lg_rfftfreq(c, 8, .d = 2, .dtype = lg_dtype_of(x))), 5)                                \
        ROW(rfftfreq_odd, lg_mul(x, lg_rfftfreq(c, 7, .dtype = lg_dtype_of(x))), 4)                                    \
        ROW(hann1, WINDOW(hann, 1), 1)                                                                                 \
        ROW(hamming1, WINDOW(hamming, 1), 1)                                                                           \
        ROW(blackman1, WINDOW(blackman, 1), 1)                                                                         \
        ROW(bartlett1, WINDOW(bartlett, 1), 1)                                                                         \
        ROW(kaiser1, WINDOW(kaiser, 1), 1)                                                                             \
        ROW(hann1_symmetric, WINDOW(hann, 1, .symmetric = true), 1)                                                    \
        ROW(hamming1_symmetric, WINDOW(hamming, 1, .symmetric = true), 1)                                              \
        ROW(blackman1_symmetric, WINDOW(blackman, 1, .symmetric = true), 1)                                            \
        ROW(bartlett1_symmetric, WINDOW(bartlett, 1, .symmetric = true), 1)                                            \
        ROW(kaiser1_symmetric, WINDOW(kaiser, 1, .symmetric = true), 1)                                                \
        ROW(hann2, WINDOW(hann, 2), 2)                                                                                 \
        ROW(hamming2, WINDOW(hamming, 2), 2)                                                                           \
        ROW(blackman2, WINDOW(blackman, 2), 2)                                                                         \
        ROW(bartlett2, WINDOW(bartlett, 2), 2)                                                                         \
        ROW(kaiser2, WINDOW(kaiser, 2), 2)                                                                             \
        ROW(hann2_symmetric, WINDOW(hann, 2, .symmetric = true), 2)                                                    \
        ROW(hamming2_symmetric, WINDOW(hamming, 2, .symmetric = true), 2)                                              \
        ROW(blackman2_symmetric, WINDOW(blackman, 2, .symmetric = true), 2)                                            \
        ROW(bartlett2_symmetric, WINDOW(bartlett, 2, .symmetric = true), 2)                                            \
        ROW(kaiser2_symmetric, WINDOW(kaiser, 2, .symmetric = true), 2)                                                \
        ROW(hann6, WINDOW(hann, 6), 6)                                                                                 \
        ROW(hamming6, WINDOW(hamming, 6), 6)                                                                           \
        ROW(blackman6, WINDOW(blackman, 6), 6)                                                                         \
        ROW(bartlett6, WINDOW(bartlett, 6), 6)                                                                         \
        ROW(kaiser6, WINDOW(kaiser, 6), 6)                                                                             \
        ROW(hann6_symmetric, WINDOW(hann, 6, .symmetric = true), 6)                                                    \
        ROW(hamming6_symmetric, WINDOW(hamming, 6, .symmetric = true), 6)                                              \
        ROW(blackman6_symmetric, WINDOW(blackman, 6, .symmetric = true), 6)                                            \
        ROW(bartlett6_symmetric, WINDOW(bartlett, 6, .symmetric = true), 6)                                            \
        ROW(kaiser6_symmetric, WINDOW(kaiser, 6, .symmetric = true), 6)                                                \
        ROW(hann7, WINDOW(hann, 7), 7)                                                                                 \
        ROW(hamming7, WINDOW(hamming, 7), 7)                                                                           \
        ROW(blackman7, WINDOW(blackman, 7), 7)                                                                         \
        ROW(bartlett7, WINDOW(bartlett, 7), 7)                                                                         \
        ROW(kaiser7, WINDOW(kaiser, 7), 7)                                                                             \
        ROW(hann7_symmetric, WINDOW(hann, 7, .symmetric = true), 7)                                                    \
        ROW(hamming7_symmetric, WINDOW(hamming, 7, .symmetric = true), 7)                                              \
        ROW(blackman7_symmetric, WINDOW(blackman, 7, .symmetric = true), 7)                                            \
        ROW(bartlett7_symmetric, WINDOW(bartlett, 7, .symmetric = true), 7)                                            \
        ROW(kaiser7_symmetric, WINDOW(kaiser, 7, .symmetric = true), 7)                                                \
        ROW(hamming_numbers, WINDOW(hamming, 6, .alpha = 0.7, .beta = 0.3), 6)                                         \
        ROW(kaiser_number, WINDOW(kaiser, 6, .beta = 40), 6)                                                           \
        ROW(stft, lg_stft(x, 8, .window = HANN), 20)                                                                   \
        ROW(stft_batch,                                                                                                \
            lg_stft(x, 8, .hop = 3, .win_length = 6, .window = lg_hamming_window(c, 6, .dtype = lg_dtype_of(x))), 2,   \
            17)                                                                                                        \
        ROW(stft_bare, lg_stft(x, 6, .hop = 4, .not_centered = true), 2, 18)                                           \
        ROW(stft_two_sided, lg_stft(x, 5, .hop = 2, .two_sided = true), 9)                                             \
        ROW(stft_normalized, lg_stft(x, 8, .window = HANN, .normalized = true, .pad_mode = LG_ZERO_INT), 16)           \
        ROW(stft_short_window, lg_stft(x, 8, .hop = 2, .win_length = 5), 11)                                           \
        ROW(istft, lg_istft(x, 8, .window = HANN), 5, 7, 2)                                                            \
        ROW(istft_batch,                                                                                               \
            lg_istft(x, 8, .hop = 3, .win_length = 6, .window = lg_hamming_window(c, 6, .dtype = lg_dtype_of(x)),      \
                     .normalized = true),                                                                              \
            2, 5, 4, 2)                                                                                                \
        ROW(istft_length, lg_istft(x, 8, .window = HANN, .length = 11), 5, 7, 2)                                       \
        ROW(istft_longer, lg_istft(x, 8, .hop = 4, .length = 30), 5, 5, 2)                                             \
        ROW(istft_bare, lg_istft(x, 6, .hop = 2, .not_centered = true), 4, 5, 2)                                       \
        ROW(istft_two_sided, lg_istft(x, 6, .hop = 2, .two_sided = true), 6, 5, 2)
GOLDEN_TEST(as_pytorch_computes_it, "fft.txt", golden_input, ROWS);

/* y[k] = sum of x[j] exp(-2 pi i j k / n) over the lines (outer, n, inner) of pairs, in long double. */
static void sums(const double *x, double *y, int64_t outer, int64_t n, int64_t inner)
{
        long double *root = calloc((size_t)(2 * n), sizeof *root);
        for (int64_t k = 0; k < n; k++) {
                root[2 * k] = cosl(-2 * acosl(-1) * (long double)k / (long double)n);
                root[2 * k + 1] = sinl(-2 * acosl(-1) * (long double)k / (long double)n);
        }
        for (int64_t l = 0; l < outer * inner; l++)
                for (int64_t k = 0; k < n; k++) {
                        const int64_t at = l / inner * n * inner + l % inner;
                        long double re = 0, im = 0;
                        for (int64_t j = 0; j < n; j++) {
                                const long double *w = root + 2 * (j * k % n);
                                const double *z = x + 2 * (at + j * inner);
                                re += z[0] * w[0] - z[1] * w[1];
                                im += z[0] * w[1] + z[1] * w[0];
                        }
                        y[2 * (at + k * inner)] = (double)re;
                        y[2 * (at + k * inner) + 1] = (double)im;
                }
        free(root);
}

/* |y - wanted| / |wanted| of n values. */
static double distance(lg_tensor *y, const double *wanted, int64_t n)
{
        double *got = calloc((size_t)n, sizeof *got), error = 0, size = 0;
        read_all(y, got, n);
        for (int64_t i = 0; i < n; i++) {
                error += (got[i] - wanted[i]) * (got[i] - wanted[i]);
                size += wanted[i] * wanted[i];
        }
        free(got);
        return sqrt(error / size);
}

/* A line's transform in both directions, and the real ones of its real part and back, against sums. */
static void check_length(lg_ctx *c, int64_t outer, int64_t n, int64_t inner, lg_dtype dtype)
{
        const int64_t all = outer * n * inner, half = outer * (n / 2 + 1) * inner;
        const double limit = dtype == LG_F64 ? 2e-15 : 1e-6;
        double *v = calloc((size_t)(8 * all), sizeof *v), *w = v + 2 * all, *h = v + 4 * all, *re = v + 6 * all;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(outer, n, inner, 2), .dtype = dtype), *real, *y;
        read_all(x, v, 2 * all);
        sums(v, w, outer, n, inner);
        y = lg_fft(x, .dim = 1);
        assert_true(distance(y, w, 2 * all) < limit);
        assert_true(distance(lg_ifft(y, .dim = 1), v, 2 * all) < 2 * limit);
        real = lg_contiguous(lg_select(x, -1, 0));
        for (int64_t i = 0; i < all; i++) {
                re[i] = v[2 * i];
                v[2 * i + 1] = 0;
        }
        sums(v, w, outer, n, inner);
        for (int64_t i = 0; i < half; i++) {
                const int64_t line = i / (inner * (n / 2 + 1)), at = line * n * inner + i % (inner * (n / 2 + 1));
                h[2 * i] = w[2 * at];
                h[2 * i + 1] = w[2 * at + 1];
        }
        y = lg_rfft(real, .dim = 1);
        assert_true(distance(y, h, 2 * half) < limit);
        assert_true(distance(lg_irfft(y, .n = n, .dim = 1), re, all) < 2 * limit);
        lg_scope_end(c, scope);
        assert_ok(c);
        free(v);
}

TEST_CASE(any_length)
{
        lg_ctx *c = open_ctx();
        for (int64_t n = 1; n <= 130; n += 1 + n / 40)
                for (int k = 0; k < 4; k++)
                        check_length(c, k < 2 ? 3 : 1, n, k % 2 ? 17 : 1, n % 2 ? LG_F32 : LG_F64);
        const int64_t lengths[] = {256, 289, 360, 512, 1009, 1024, 1210, 2018};
        for (int i = 0; i < 8; i++)
                for (int k = 0; k < 3; k++)
                        check_length(c, k == 1 ? 9 : 1, lengths[i], k == 2 ? 2 : 1, k ? LG_F32 : LG_F64);
        lg_close(c);
}

/* Transforms of long lines, which are split, and back; element k of a wave's transform is n. */
TEST_CASE(long_lines)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {1 << 15, 3 * 5 * 7 * 11 * 13, 20011, 1 << 14};
        for (int i = 0; i < 4; i++)
                for (int d = 0; d < 2; d++) {
                        const int64_t n = lengths[i], inner = i == 3 ? 2 : 1;
                        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(n, inner), .dtype = d ? LG_F32 : LG_F64);
                        lg_tensor *y = lg_irfft(lg_rfft(x, .dim = LG_ZERO_INT), .n = n, .dim = LG_ZERO_INT);
                        assert_true(lg_item(lg_amax(lg_abs(lg_sub(x, y)))) < (d ? 1e-5 : 1e-14));
                        lg_tensor *t = lg_mul_scalar(lg_arange(c, 0, (double)n, 1, .dtype = LG_F64),
                                                     2 * acos(-1) * 5 / (double)n);
                        lg_tensor *wave =
                                lg_expand(lg_unsqueeze(lg_cast(lg_complex(lg_cos(t), lg_sin(t)), lg_dtype_of(x)), 1),
                                          LG_SHAPE(n, inner, 2));
                        y = lg_div_scalar(lg_fft(wave, .dim = LG_ZERO_INT), (double)n);
                        assert_true(fabs(lg_item(lg_select(lg_select(lg_select(y, 0, 5), 0, inner - 1), 0, 0)) - 1) <
                                    (d ? 1e-5 : 1e-13));
                        y = lg_rfft(lg_select(wave, -1, 0), .dim = LG_ZERO_INT);
                        assert_true(fabs(lg_item(lg_select(lg_select(lg_select(y, 0, 5), 0, 0), 0, 0)) * 2 / (double)n -
                                         1) < (d ? 1e-5 : 1e-13));
                        assert_ok(c);
                }
        lg_close(c);
}

TEST_CASE(empty_batches)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(0, 6, 2));
        assert_shape(lg_fft(x), LG_SHAPE(0, 6, 2));
        assert_shape(lg_irfft(x), LG_SHAPE(0, 10));
        assert_shape(lg_rfft(lg_zeros(c, LG_SHAPE(0, 6))), LG_SHAPE(0, 4, 2));
        assert_shape(lg_fft2(lg_zeros(c, LG_SHAPE(0, 3, 4, 2))), LG_SHAPE(0, 3, 4, 2));
        assert_shape(lg_complex_abs(x), LG_SHAPE(0, 6));
        assert_shape(lg_stft(lg_zeros(c, LG_SHAPE(0, 16)), 8), LG_SHAPE(0, 5, 9, 2));
        assert_shape(lg_istft(lg_zeros(c, LG_SHAPE(0, 5, 9, 2)), 8), LG_SHAPE(0, 16));
        assert_shape(lg_hann_window(c, 0), LG_SHAPE(0));
        assert_shape(lg_fftfreq(c, 0), LG_SHAPE(0));
        assert_shape(lg_rfftfreq(c, 0), LG_SHAPE(0));
        assert_shape(lg_fft(lg_zeros(c, LG_SHAPE(0, 2)), .n = 3), LG_SHAPE(3, 2));
        assert_ok(c);
        lg_close(c);
}

#define WRONG(call, code, text) assert_fails(c, call, code, text)

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(3, 4, 2)), *r = lg_zeros(c, LG_SHAPE(3, 4)),
                  *s = lg_zeros(c, LG_SHAPE(5, 9, 2));
        WRONG(lg_fft(lg_zeros(c, LG_SHAPE(3, 3))), LG_ERR_SHAPE, "fft: x is f32 (3, 3) on");
        WRONG(lg_fft(lg_zeros(c, LG_SHAPE_0D)), LG_ERR_SHAPE, "the last dimension of a complex tensor");
        WRONG(lg_fft(lg_zeros(c, LG_SHAPE(2))), LG_ERR_SHAPE, "fft: x is f32 (2,) on");
        WRONG(lg_rfft(lg_zeros(c, LG_SHAPE_0D)), LG_ERR_SHAPE, "rfft: x is f32 () on");
        WRONG(lg_fft(x, .dim = 2), LG_ERR_ARGUMENT, "fft: there is no dimension 2");
        WRONG(lg_fft(x, .n = -2), LG_ERR_ARGUMENT, "fft: n is -2");
        WRONG(lg_fft(x, .norm = (lg_fft_norm)3), LG_ERR_ARGUMENT, "fft: norm is 3");
        WRONG(lg_rfft(lg_zeros(c, LG_SHAPE(3, 0))), LG_ERR_ARGUMENT, "has 0 elements");
        WRONG(lg_irfft(lg_zeros(c, LG_SHAPE(3, 1, 2))), LG_ERR_ARGUMENT, "irfft: the transform of dimension 1 of x");
        WRONG(lg_rfft(lg_zeros(c, LG_SHAPE(4), .dtype = LG_F16)), LG_ERR_DTYPE, "rfft: x is f16 (4,)");
        WRONG(lg_rfft(lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64)), LG_ERR_DTYPE, "rfft: x is i64");
        WRONG(lg_fft2(x, .s = LG_INTS(2)), LG_ERR_ARGUMENT, "fft2: s has 1 sizes for 2 dimensions");
        WRONG(lg_fft2(lg_zeros(c, LG_SHAPE(4, 2))), LG_ERR_ARGUMENT, "fft2: there is no dimension");
        WRONG(lg_fftn(x, .s = LG_INTS(2, 2, 2)), LG_ERR_ARGUMENT, "fftn: s has 3 sizes for 2 dimensions");
        WRONG(lg_fftn(x, .dims = LG_DIMS(0, -2)), LG_ERR_ARGUMENT, "fftn: dim");
        WRONG(lg_rfftn(r, .s = LG_INTS(2, 0)), LG_ERR_ARGUMENT, "rfftn: the transform of dimension 1 of x");
        WRONG(lg_rfftn(lg_zeros(c, LG_SHAPE_0D)), LG_ERR_SHAPE, "rfftn: x is f32 () on");
        WRONG(lg_complex_abs(r), LG_ERR_SHAPE, "complex_abs: x is f32 (3, 4)");
        WRONG(lg_complex_mul(x, r), LG_ERR_SHAPE, "complex_mul: b is f32 (3, 4)");
        WRONG(lg_complex(x, lg_zeros(c, LG_SHAPE(3))), LG_ERR_SHAPE, "complex");
        WRONG(lg_fftshift(x, LG_DIMS(3)), LG_ERR_ARGUMENT, "fftshift: there is no dimension 3");
        WRONG(lg_fftfreq(c, -1), LG_ERR_ARGUMENT, "lg_fftfreq: n is -1");
        WRONG(lg_rfftfreq(c, 4, .d = LG_ZERO), LG_ERR_ARGUMENT, "lg_rfftfreq: d is 0");
        WRONG(lg_hann_window(c, -1), LG_ERR_ARGUMENT, "lg_hann_window: n is -1");
        WRONG(lg_kaiser_window(c, 4, .beta = NAN), LG_ERR_ARGUMENT, "lg_kaiser_window: alpha is 0 and beta is nan");
        WRONG(lg_hann_window(c, 4, .dtype = LG_I64), LG_ERR_DTYPE, "lg_hann_window: dtype i64");
        WRONG(lg_stft(x, 4), LG_ERR_SHAPE, "stft: x is f32 (3, 4, 2)");
        WRONG(lg_stft(r, 9, .not_centered = true), LG_ERR_SHAPE, "shorter than a frame of 9 samples");
        WRONG(lg_stft(r, 16), LG_ERR_SHAPE, "to reflect 8 samples at both ends");
        WRONG(lg_stft(r, 3), LG_ERR_ARGUMENT, "stft: n is 3, hop 0");
        WRONG(lg_stft(r, 4, .win_length = 5), LG_ERR_ARGUMENT, "win_length 5");
        WRONG(lg_stft(r, 4, .pad_mode = 9), LG_ERR_ARGUMENT, "stft: pad_mode is 9");
        WRONG(lg_stft(r, 4, .window = lg_ones(c, LG_SHAPE(3))), LG_ERR_SHAPE, "stft: window is f32 (3,)");
        WRONG(lg_stft(r, 4, .window = lg_ones(c, LG_SHAPE(4), .dtype = LG_F64)), LG_ERR_DTYPE, "stft: window is f64");
        WRONG(lg_istft(x, 8), LG_ERR_SHAPE, "istft: x is f32 (3, 4, 2)");
        WRONG(lg_istft(s, 8, .window = lg_zeros(c, LG_SHAPE(8))), LG_ERR_ARGUMENT, "istft: the windows' squares");
        WRONG(lg_istft(s, 8, .length = -1), LG_ERR_ARGUMENT, "length -1");
        lg_close(c);
}

/* Derivatives of long lines with a large prime factor: <F x, g> is <x, F^T g>. */
TEST_CASE(derivatives_of_long_lines)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {1009, 2 * 509, 20014};
        for (int i = 0; i < 6; i++) {
                const int64_t n = lengths[i / 2], half = n / 2 + 1;
                const bool back = i % 2;
                const lg_shape of[] = {LG_SHAPE(n), LG_SHAPE(half, 2)};
                lg_tensor *x = lg_set_requires_grad(lg_normal(c, 0, 1, of[back], .dtype = LG_F64), true);
                lg_tensor *g = lg_normal(c, 0, 1, of[!back], .dtype = LG_F64);
                lg_tensor *y = back ? lg_irfft(x, .n = n) : lg_rfft(x);
                lg_tensor *dx = lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g));
                const double forward = lg_item(lg_sum(lg_mul(y, g))), backward = lg_item(lg_sum(lg_mul(x, dx)));
                assert_near(backward, forward, 1e-10 * (1 + fabs(forward)));
        }
        lg_close(c);
}
