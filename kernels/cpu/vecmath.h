/* vecmath.h - e^x, the logarithm, tanh, erf, the sigmoid and the normal distribution in f32, for loops of vectors.
 *
 * Each function is arithmetic and choices of bits, without branch, call or table, so that the compiler makes vectors of
 * the loop around it, whatever the instruction set is. Subnormal numbers are kept; NaN, infinities and the signs of
 * zeros are as C has them. Largest errors, as tests/test_kernels_ulp.c prints them: e^x and log 1.1 ulp, tanh and
 * sigmoid 2.5, erf 3.5. Coefficients are those of the least largest error (Remez' exchange in 60 digits), rounded to
 * f32 and moved to neighbours while that made the error less; "(2^-n)" is what is left of it.
 */
#ifndef LG_CPU_VECMATH_H
#define LG_CPU_VECMATH_H

#include <math.h>
#include "../half.h"

#define LG_LANE static inline __attribute__((always_inline))

/* a b + c, rounded once where that is as fast. */
LG_LANE float lg_fma_f32(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
        return fmaf(a, b, c);
#else
        return a * b + c;
#endif
}

/* c0 + c1 x + c2 x^2 + c3 x^3, by halves that do not wait for each other; x2 is x^2. */
LG_LANE float lg_cubic_f32(float x, float x2, float c0, float c1, float c2, float c3)
{
        return lg_fma_f32(x2, lg_fma_f32(x, c3, c2), lg_fma_f32(x, c1, c0));
}

/* Both sides are computed and the bits chosen: a choice by branch would keep loops from being vectorised. */
LG_LANE float lg_select_f32(int c, float a, float b)
{
        const uint32_t m = 0u - (uint32_t)c;
        return lg_f32_of_bits((lg_bits_of_f32(a) & m) | (lg_bits_of_f32(b) & ~m));
}

/* x - rest = k ln(2) + r, |r| <= ln(2) / 2, |x| < 2^20: returns e^r - 1 (2^-26), and k + bias in the low bits of an
 * integer. ln(2) is 15 bits, whose product with k is exact, and the rest. */
LG_LANE float lg_reduced_expm1_f32(float x, float rest, int bias, uint32_t *ret_k)
{
        const float magic = 0x1.8p23f + (float)bias, z = lg_fma_f32(x, 0x1.715476p0f, magic), k = z - magic;
        const float r = lg_fma_f32(k, -0x1.7f7d1cp-20f, lg_fma_f32(k, -0x1.62e4p-1f, x)) - rest;
        const float r2 = r * r;
        const float q = lg_cubic_f32(r, r2, 0x1.fffffep-2f, 0x1.5554aep-3f, 0x1.5556a0p-5f, 0x1.122802p-7f);
        *ret_k = lg_bits_of_f32(z);
        return lg_fma_f32(r2, lg_fma_f32(r2 * r2, 0x1.6bedc0p-10f, q), r);
}

/* e^x. Powers of 2 from 2^-150 to 2^128 are products of two, and only the second product rounds. */
LG_LANE float lg_exp_f32(float x)
{
        uint32_t k, below = 0u - (lg_bits_of_f32(x) >> 31);
        const float q = lg_reduced_expm1_f32(x, 0, 127 - 32, &k);
        const float s = lg_f32_of_bits((k + (below & 64)) << 23);
        const float e = lg_fma_f32(q, s, s) * lg_f32_of_bits(lg_bits_of_f32(0x1p32f) - (below & 64u << 23));
        return lg_select_f32(x > 89, INFINITY, lg_select_f32(x < -104, 0, e));
}

/* e^(x - low) for x in [-104.5, 0]. */
LG_LANE float lg_exp_below_f32(float x, float low)
{
        uint32_t k;
        const float q = lg_reduced_expm1_f32(x, low, 127 + 32, &k), s = lg_f32_of_bits(k << 23);
        return lg_fma_f32(q, s, s) * 0x1p-32f;
}

/* e^-x for x >= 0. */
LG_LANE float lg_exp_minus_f32(float x)
{
        return lg_select_f32(x > 104, 0, lg_exp_below_f32(-x, 0));
}

/* 1 / (1 + e^-x), by the exponential that cannot overflow. */
LG_LANE float lg_sigmoid_f32(float x)
{
        const float e = lg_exp_minus_f32(fabsf(x));
        return lg_select_f32(x < 0, e, 1) / (1 + e);
}

/* -E / (E + 2) with E = e^(-2 |x|) - 1, which is exact near 0; from 10 on it is 1. */
LG_LANE float lg_tanh_f32(float x)
{
        uint32_t k;
        const float a = fabsf(x), q = lg_reduced_expm1_f32(-2 * a, 0, 127, &k), s = lg_f32_of_bits(k << 23);
        const float e = lg_fma_f32(q, s, s - 1);
        return copysignf(lg_select_f32(a > 10, 1, -e / (e + 2)), x);
}

/* x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2): k ln(2) + f - f^2 / 2 + f^3 P(f) (2^-25). */
LG_LANE float lg_log_f32(float x)
{
        const float least = 0x1p-126f, root = 0x1.6a09e6p-1f;
        const float normal = lg_select_f32(x < least, x * 0x1p24f, x);
        const int32_t i = (int32_t)(lg_bits_of_f32(normal) - lg_bits_of_f32(root));
        const float k = (float)((i >> 23) - 24 * (x < least));
        const float f = lg_f32_of_bits(((uint32_t)i & 0x7fffff) + lg_bits_of_f32(root)) - 1, f2 = f * f;
        const float p0 = lg_cubic_f32(f, f2, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a00ap-3f, -0x1.547256p-3f);
        const float p4 = lg_cubic_f32(f, f2, 0x1.22da2ap-3f, -0x1.0d853ap-3f, 0x1.055b86p-3f, -0x1.38b5eep-4f);
        const float p = lg_fma_f32(f2 * f2, p4, p0);
        const float low = lg_fma_f32(f2, -0.5f, lg_fma_f32(p * f, f2, k * 0x1.7f7d1cp-20f));
        const float r = lg_fma_f32(k, 0x1.62e4p-1f, f + low);
        const float edge = lg_select_f32(x == 0, -INFINITY, lg_select_f32(x > 0, x, NAN));
        return lg_select_f32((x > 0) & (x < INFINITY), r, edge);
}

/* x + x P(x^2) below 0.9 (2^-25), Q(x - 2.375) below 3.9 (2^-24), then 1. */
LG_LANE float lg_erf_f32(float x)
{
        const float a = fabsf(x), z = a * a, z2 = z * z, t = a - 2.375f, t2 = t * t, t4 = t2 * t2;
        const float p0 = lg_cubic_f32(z, z2, 0x1.06eba6p-3f, -0x1.8126fap-2f, 0x1.ce1dd2p-4f, -0x1.b6bee2p-6f);
        const float p = lg_fma_f32(z2 * z2, lg_fma_f32(z, -0x1.3f4f70p-11f, 0x1.4876c8p-8f), p0);
        const float q0 = lg_cubic_f32(t, t2, 0x1.ff9962p-1f, 0x1.06903ep-8f, -0x1.37ce7ep-7f, 0x1.c1f762p-7f);
        const float q4 = lg_cubic_f32(t, t2, -0x1.ae4b58p-7f, 0x1.11a16ap-7f, -0x1.98dd74p-9f, 0x1.232096p-13f);
        const float q8 = lg_cubic_f32(t, t2, 0x1.3bbb6cp-11f, -0x1.7561f6p-12f, 0x1.94efc8p-15f, 0x1.713a18p-15f);
        const float q12 = lg_fma_f32(t2, 0x1.661322p-20f, lg_fma_f32(t, -0x1.95ad44p-20f, -0x1.31fbd4p-16f));
        const float q = lg_fma_f32(t4, lg_fma_f32(t4, lg_fma_f32(t4, q12, q8), q4), q0);
        const float r = lg_select_f32(a < 0.9f, lg_fma_f32(a, p, a), q);
        return copysignf(lg_select_f32(a > 3.9f, 1, r), x);
}

/* e^(-x^2 / 2). Where products can be added unrounded, what the square's rounding took away counts, too. */
LG_LANE float lg_bell_f32(float x)
{
        const float s = x * x;
        return lg_select_f32(s > 208, 0, lg_exp_below_f32(-0.5f * s, 0.5f * lg_fma_f32(x, x, -s)));
}

/* The normal distribution: for x < 0 it is e^(-x^2 / 2) P(-x) / Q(-x) (2^-25). */
LG_LANE float lg_normal_cdf_f32(float x)
{
        const float a = fabsf(x), s = x * x;
        const float p0 = lg_cubic_f32(a, s, 0.5f, 0x1.c064b6p-2f, 0x1.76a454p-3f, 0x1.4c06aap-5f);
        const float q0 = lg_cubic_f32(a, s, 1, 0x1.ac748ap+0f, 0x1.338462p+0f, 0x1.dfea2ap-2f);
        const float p = lg_fma_f32(s * s, 0x1.0cc426p-8f, p0);
        const float q = lg_fma_f32(s * s, lg_fma_f32(a, 0x1.50d82ep-7f, 0x1.a028eep-4f), q0);
        const float tail = lg_select_f32(s > 208, 0, lg_bell_f32(x) * p / q);
        return lg_select_f32(x < 0, tail, 1 - tail);
}

#endif
