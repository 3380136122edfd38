/* fft.h - arguments of discrete Fourier transforms. Part of kernels.h. */
#ifndef LG_KERNELS_FFT_H
#define LG_KERNELS_FFT_H

#include "types.h"

/* Kinds of transforms: complex to complex; real to the first n / 2 + 1 complex elements; and back from these. */
typedef enum lg_fft_kind { LG_FFT_COMPLEX, LG_FFT_REAL, LG_FFT_HALF } lg_fft_kind;

/* Discrete Fourier transforms of n elements, over the middle dimension of (outer, n, inner), contiguous. A complex
 * element is a pair, real part first. With e(t) = exp(-2 pi i t / n), or exp(2 pi i t / n) if `inverse`:
 *   COMPLEX  y[k] = scale * sum over j of x[j] e(j k), for 0 <= k < n
 *   REAL     the same for 0 <= k <= n / 2, of real x
 *   HALF     y[j] = scale * sum over 0 <= k <= n / 2 of w[k] Re(x[k] e(j k)), real; x is (outer, n / 2 + 1, inner)
 * w[k] is 1 for k = 0 and k = n / 2, else 2. With `adjoint`, w is 1 everywhere in HALF, and REAL multiplies y[k] by the
 * w[k] above. n >= 1; f32 and f64. x and y do not overlap. */
typedef struct lg_fft_args {
        lg_dtype dtype;
        lg_fft_kind kind;
        bool inverse, adjoint;
        int64_t outer, n, inner;
        double scale;
        const void *x;
        void *y;
} lg_fft_args;

#endif
