/* fft.h - Fourier transforms, complex numbers as pairs, windows and spectrograms.
 *
 * A complex tensor has a last dimension of size 2, the real and the imaginary part. Dimensions of complex tensors count
 * without it: -1 is the one before the pairs. Tensors are f32 or f64. Definitions and defaults are those of PyTorch's
 * torch.fft, torch.stft and torch.istft. All have derivatives of any order. The lengths that are fastest have small
 * prime factors only, but every length n takes time proportional to n log n.
 */
#ifndef LG_FFT_H
#define LG_FFT_H

#include "grad/base.h"

LG_BEGIN

/* ---- transforms ---- */

/* The factor of a transform of n elements, and that of its inverse. */
typedef enum lg_fft_norm {
        LG_FFT_BACKWARD = 0, /* 1, and 1 / n for the inverse; the default */
        LG_FFT_FORWARD = 1,  /* 1 / n, and 1 for the inverse */
        LG_FFT_ORTHO = 2,    /* 1 / sqrt(n) for both */
} lg_fft_norm;

typedef struct lg_fft_options {
        LG_OPTIONS_HEAD
        int64_t n LG_DEFAULT;        /* length of the transform; longer lines are cut, shorter ones end in zeros */
        int64_t dim LG_DEFAULT;      /* the dimension; default -1; LG_ZERO_INT for 0 */
        lg_fft_norm norm LG_DEFAULT; /* the factor; default LG_FFT_BACKWARD */
} lg_fft_options;
/* Computes discrete Fourier transforms along a dimension: y[k] is the sum of x[j] exp(-2 pi i j k / n), times the
 * factor of .norm; in the inverse ones the exponent is positive. fft and ifft map complex x to complex y of n elements.
 * rfft maps real x to the first n / 2 + 1 elements of its transform, which determine the others, since y[n - k] is the
 * conjugate of y[k]; irfft is its inverse, which gives n reals: n defaults to 2 (m - 1) for m elements, so odd lengths
 * need .n. irfft ignores the imaginary parts of elements 0 and, for even n, n / 2. hfft and ihfft are irfft and rfft in
 * the opposite direction. The default of .n is x's size; n is at least 1.
 * Examples: lg_fft(x, .dim = -2), lg_ifft(x, .n = 8), lg_rfft(x, .norm = LG_FFT_ORTHO), lg_irfft(x, .n = 7),
 * lg_hfft(x), lg_ihfft(x) */
#define lg_fft(...) LG_CALL1(lg_fft_with, lg_fft_options, lg_fft_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fft_with(lg_tensor *x, const lg_fft_options *options);
#define lg_ifft(...) LG_CALL1(lg_ifft_with, lg_fft_options, lg_ifft_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_ifft_with(lg_tensor *x, const lg_fft_options *options);
#define lg_rfft(...) LG_CALL1(lg_rfft_with, lg_fft_options, lg_rfft_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rfft_with(lg_tensor *x, const lg_fft_options *options);
#define lg_irfft(...) LG_CALL1(lg_irfft_with, lg_fft_options, lg_irfft_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_irfft_with(lg_tensor *x, const lg_fft_options *options);
#define lg_hfft(...) LG_CALL1(lg_hfft_with, lg_fft_options, lg_hfft_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_hfft_with(lg_tensor *x, const lg_fft_options *options);
#define lg_ihfft(...) LG_CALL1(lg_ihfft_with, lg_fft_options, lg_ihfft_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_ihfft_with(lg_tensor *x, const lg_fft_options *options);

typedef struct lg_fftn_options {
        LG_OPTIONS_HEAD
        lg_ints_in s LG_DEFAULT;     /* a length for each dimension, or -1 for x's size; default: x's sizes */
        lg_dims dims LG_DEFAULT;     /* the dimensions; default: the last two (fft2), or as many as .s has, or all */
        lg_fft_norm norm LG_DEFAULT; /* the factor, of each dimension; default LG_FFT_BACKWARD */
} lg_fftn_options;
/* Compute the transforms of two (fft2) or several (fftn) dimensions, one after the other, with the factors of all.
 * rfft2 and rfftn map reals: the last of the dimensions has n / 2 + 1 elements in the result; irfft2 and irfftn are
 * their inverses, for which the last entry of .s is the length of the result.
 * Examples: lg_fft2(x, .dims = LG_DIMS(0, 1)), lg_ifft2(x), lg_rfft2(x, .norm = LG_FFT_ORTHO), lg_fftn(x),
 * lg_irfft2(x, .s = LG_INTS(-1, 7)), lg_ifftn(x), lg_rfftn(x, .s = LG_INTS(8, 8)), lg_irfftn(x) */
#define lg_fft2(...) LG_CALL1(lg_fft2_with, lg_fftn_options, lg_fft2_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fft2_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_ifft2(...) LG_CALL1(lg_ifft2_with, lg_fftn_options, lg_ifft2_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_ifft2_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_rfft2(...) LG_CALL1(lg_rfft2_with, lg_fftn_options, lg_rfft2_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rfft2_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_irfft2(...) LG_CALL1(lg_irfft2_with, lg_fftn_options, lg_irfft2_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_irfft2_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_fftn(...) LG_CALL1(lg_fftn_with, lg_fftn_options, lg_fftn_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fftn_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_ifftn(...) LG_CALL1(lg_ifftn_with, lg_fftn_options, lg_ifftn_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_ifftn_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_rfftn(...) LG_CALL1(lg_rfftn_with, lg_fftn_options, lg_rfftn_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rfftn_with(lg_tensor *x, const lg_fftn_options *options);
#define lg_irfftn(...) LG_CALL1(lg_irfftn_with, lg_fftn_options, lg_irfftn_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_irfftn_with(lg_tensor *x, const lg_fftn_options *options);

/* ---- complex numbers ---- */

/* Joins real and imaginary parts, which broadcast, to pairs. lg_select(x, -1, 0) and lg_select(x, -1, 1) are the parts
 * of complex x. */
LG_API LG_NEW lg_tensor *lg_complex(lg_tensor *re, lg_tensor *im);
/* Multiplies complex tensors, which broadcast: (a + b i) (c + d i). */
LG_API LG_NEW lg_tensor *lg_complex_mul(lg_tensor *a, lg_tensor *b);
/* Negates the imaginary parts. */
LG_API LG_NEW lg_tensor *lg_complex_conj(lg_tensor *x);
/* Computes absolute values, without the last dimension; the derivative at 0 is 0. */
LG_API LG_NEW lg_tensor *lg_complex_abs(lg_tensor *x);
/* Computes angles in [-pi, pi], without the last dimension; the derivative at 0 is 0. */
LG_API LG_NEW lg_tensor *lg_complex_angle(lg_tensor *x);

/* ---- frequencies ---- */

typedef struct lg_fftfreq_options {
        LG_OPTIONS_HEAD
        double d LG_DEFAULT;           /* time between two samples, finite and not 0; default 1 */
        lg_dtype dtype LG_DEFAULT;     /* a float dtype; default f32 */
        lg_device device LG_DEFAULT;   /* default: the context's default device */
        bool requires_grad LG_DEFAULT; /* gives the result a gradient; default false */
} lg_fftfreq_options;
/* Return the frequencies of the elements of a transform of n >= 0 elements, in cycles per unit of time: k / (n d) for
 * k = 0, 1, ..., and in the second half of lg_fftfreq() (n - k) below 0; lg_rfftfreq() returns the n / 2 + 1 of rfft.
 * Examples: lg_fftfreq(c, 8, .d = 0.1), lg_rfftfreq(c, 8) */
#define lg_fftfreq(...) LG_CALL2(lg_fftfreq_with, lg_fftfreq_options, lg_fftfreq_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_fftfreq_with(lg_ctx *c, int64_t n, const lg_fftfreq_options *options);
#define lg_rfftfreq(...) LG_CALL2(lg_rfftfreq_with, lg_fftfreq_options, lg_rfftfreq_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_rfftfreq_with(lg_ctx *c, int64_t n, const lg_fftfreq_options *options);

/* Rolls x so that frequency 0 moves to the middle of each of the dimensions (fftshift), or back (ifftshift). x is any
 * tensor and dims are all its dimensions: for complex x, name those that are not the pairs.
 * Example: lg_fftshift(lg_fft(x), LG_DIMS(-2)) */
LG_API LG_NEW lg_tensor *lg_fftshift(lg_tensor *x, lg_dims dims);
LG_API LG_NEW lg_tensor *lg_ifftshift(lg_tensor *x, lg_dims dims);

/* ---- windows ---- */

typedef struct lg_window_options {
        LG_OPTIONS_HEAD
        bool symmetric LG_DEFAULT;     /* the last element mirrors the first; default false: the window is periodic */
        double alpha LG_DEFAULT;       /* of Hamming's window, finite; default 0.54; LG_ZERO for 0 */
        double beta LG_DEFAULT;        /* of Hamming's window; default 0.46; or Kaiser's, default 12; LG_ZERO for 0 */
        lg_dtype dtype LG_DEFAULT;     /* a float dtype; default f32 */
        lg_device device LG_DEFAULT;   /* default: the context's default device */
        bool requires_grad LG_DEFAULT; /* gives the result a gradient; default false */
} lg_window_options;
/* Return windows of n >= 0 elements, computed in f64 and rounded. With t = k / N, where N is n, or n - 1 if .symmetric:
 *
 *   hann      0.5 - 0.5 cos(2 pi t)                       hamming   alpha - beta cos(2 pi t)
 *   blackman  0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)   bartlett  1 - |2 t - 1|
 *   kaiser    I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta), with the modified Bessel function of order 0
 *
 * A window of one element is 1.
 * Examples: lg_hann_window(c, 400), lg_hamming_window(c, 400, .symmetric = true), lg_blackman_window(c, 400),
 * lg_bartlett_window(c, 400), lg_kaiser_window(c, 400, .beta = 8) */
#define lg_hann_window(...)                                                                                            \
        LG_CALL2(lg_hann_window_with, lg_window_options, lg_hann_window_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_hann_window_with(lg_ctx *c, int64_t n, const lg_window_options *options);
#define lg_hamming_window(...)                                                                                         \
        LG_CALL2(lg_hamming_window_with, lg_window_options, lg_hamming_window_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_hamming_window_with(lg_ctx *c, int64_t n, const lg_window_options *options);
#define lg_blackman_window(...)                                                                                        \
        LG_CALL2(lg_blackman_window_with, lg_window_options, lg_blackman_window_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_blackman_window_with(lg_ctx *c, int64_t n, const lg_window_options *options);
#define lg_bartlett_window(...)                                                                                        \
        LG_CALL2(lg_bartlett_window_with, lg_window_options, lg_bartlett_window_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bartlett_window_with(lg_ctx *c, int64_t n, const lg_window_options *options);
#define lg_kaiser_window(...)                                                                                          \
        LG_CALL2(lg_kaiser_window_with, lg_window_options, lg_kaiser_window_takes_c_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_kaiser_window_with(lg_ctx *c, int64_t n, const lg_window_options *options);

/* ---- spectrograms ---- */

/* Options of lg_stft() and lg_istft(). */
typedef struct lg_stft_options {
        LG_OPTIONS_HEAD
        int64_t hop LG_DEFAULT;        /* step between frames; default n / 4 */
        int64_t win_length LG_DEFAULT; /* length of the window, which zeros on both sides make n; default n */
        lg_tensor *window LG_DEFAULT;  /* (win_length), of x's dtype; default: ones */
        bool not_centered LG_DEFAULT;  /* frame t begins at sample t hop; default false: sample t hop is its middle */
        int64_t pad_mode LG_DEFAULT;   /* lg_pad_mode of the n / 2 samples on both sides of centered frames; default
                                          LG_PAD_REFLECT; LG_ZERO_INT for LG_PAD_CONSTANT */
        bool normalized LG_DEFAULT;    /* factor 1 / sqrt(n), as LG_FFT_ORTHO; default false */
        bool two_sided LG_DEFAULT;     /* n frequencies; default false: the first n / 2 + 1 */
        int64_t length LG_DEFAULT;     /* of the result of lg_istft(); default: until the end of the frames */
} lg_stft_options;
/* Computes the short-time Fourier transform of x (T) or (N, T): lg_rfft() of frames of n samples times a window. The
 * result is (N, n / 2 + 1, frames, 2); there are 1 + floor((T' - n) / hop) frames of the T' samples after padding.
 * Example: lg_stft(x, 400, .hop = 160, .window = lg_hann_window(c, 400)) */
#define lg_stft(...) LG_CALL2(lg_stft_with, lg_stft_options, lg_stft_takes_x_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_stft_with(lg_tensor *x, int64_t n, const lg_stft_options *options);
/* Reverses lg_stft() with the same options: the frames of x (n / 2 + 1, frames, 2) or (N, n / 2 + 1, frames, 2) are
 * transformed back, multiplied by the window and added where they were, and the sum is divided by that of the squares
 * of the window. LG_ERR_ARGUMENT if this is below 1e-11 at a sample of the result, which waits for the device.
 * Example: lg_istft(s, 400, .hop = 160, .window = lg_hann_window(c, 400), .length = 16000) */
#define lg_istft(...) LG_CALL2(lg_istft_with, lg_stft_options, lg_istft_takes_x_n, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_istft_with(lg_tensor *x, int64_t n, const lg_stft_options *options);

LG_END_C
#endif
