/* vecmath.h - e^x, the logarithm, tanh, erf, the sigmoid, sin, cos and the normal distribution in f32, for loops of
 * vectors.
 *
 * Each function is arithmetic and choices of bits, without branch, call or table, so that the compiler makes vectors of
 * the loop around it, whatever the instruction set is. Subnormal numbers are kept; NaN, infinities and the signs of
 * zeros are as C has them. Errors are below 1.5 ulp but for the normal distribution: tools/ulp.c measures them for all
 * arguments. Coefficients are those of the least largest error (Remez' exchange in 60 digits), rounded to f32 and moved
 * to neighbours while that made the error less; "(2^-n)" is what is left of it.
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

/* x is about k ln(2), |x| < 2^20: returns x less k times the first 15 bits of ln(2), which is exact, k, and k + bias in
 * the low bits of an integer. */
LG_LANE float lg_less_ln2_f32(float x, int bias, float *ret_k, uint32_t *ret_bits)
{
        const float magic = 0x1.8p23f + (float)bias, z = lg_fma_f32(x, 0x1.715476p0f, magic), k = z - magic;
        *ret_k = k;
        *ret_bits = lg_bits_of_f32(z);
        return lg_fma_f32(k, -0x1.62e4p-1f, x);
}
#define LG_LN2_REST 0x1.7f7d1cp-20f

/* e^r = 1 + r + r^2 P(r) for |r| <= ln(2) / 2 (2^-26): returns P(r). */
LG_LANE float lg_exp_curve_f32(float r, float r2)
{
        const float p = lg_cubic_f32(r, r2, 0x1.fffffep-2f, 0x1.5554aep-3f, 0x1.5556a0p-5f, 0x1.122802p-7f);
        return lg_fma_f32(r2 * r2, 0x1.6bedc0p-10f, p);
}

/* e^x = 2^k (1 + high + low), |x| < 2^20: returns high, which is exact, low, and k + bias in the low bits of an
 * integer. */
LG_LANE float lg_split_expm1_f32(float x, int bias, uint32_t *ret_k, float *ret_low)
{
        float k;
        const float high = lg_less_ln2_f32(x, bias, &k, ret_k), rest = k * -LG_LN2_REST, r = high + rest, r2 = r * r;
        *ret_low = lg_fma_f32(r2, lg_exp_curve_f32(r, r2), rest);
        return high;
}

/* e^(x - rest) = 2^k (1 + q), |x| < 2^20: returns q, and k + bias in the low bits of an integer. */
LG_LANE float lg_reduced_expm1_f32(float x, float rest, int bias, uint32_t *ret_k)
{
        float k;
        const float high = lg_less_ln2_f32(x, bias, &k, ret_k);
        const float r = lg_fma_f32(k, -LG_LN2_REST, high) - rest, r2 = r * r;
        return lg_fma_f32(r2, lg_exp_curve_f32(r, r2), r);
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

/* e^x - 1 = (s - 1 + s high) + s low, s = 2^k: what is large is exact where it becomes small. In halves, since 2^128 is
 * no number. */
LG_LANE float lg_expm1_f32(float x)
{
        uint32_t k;
        float low;
        const float high = lg_split_expm1_f32(x, 126, &k, &low), s = lg_f32_of_bits(k << 23);
        const float e = 2 * lg_fma_f32(s, low, lg_fma_f32(s, high, s - 0.5f));
        const float edge = lg_select_f32(x > 89, INFINITY, lg_select_f32(x < -25, -1, x));
        return lg_select_f32((x > 89) | (x < -25) | (fabsf(x) < 0x1p-25f), edge, e);
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

/* 1 / (1 + e^-x). With e^|x| = (1 + q) / s it is s / (1 + (q + s)) for x < 0, and 1 less that for x > 0. What rounding
 * takes from the divisor counts, too. */
LG_LANE float lg_sigmoid_f32(float x)
{
        uint32_t k;
        float low;
        const float a = lg_select_f32(fabsf(x) > 104, 104, fabsf(x)), high = lg_split_expm1_f32(a, 0, &k, &low);
        const float s = lg_f32_of_bits((127 + 32 - k) << 23) * 0x1p-32f;
        const float t = high + low + s, d = 1 + t, u = 1 / d, r = lg_fma_f32(-u * u, t - (d - 1), u);
        return lg_select_f32(x < 0, r * s, lg_fma_f32(-s, r, 1));
}

/* x + x^3 P(x^2) below 0.55 (2^-24), then 1 - 2 / (e^2x + 1), which from 10 on is 1. */
LG_LANE float lg_tanh_f32(float x)
{
        uint32_t k;
        const float a = fabsf(x), z = a * a;
        const float p2 = lg_fma_f32(z, 0x1.0d5176p-6f, -0x1.af7d36p-5f);
        const float p = lg_fma_f32(z, lg_fma_f32(z, p2, 0x1.10cefcp-3f), -0x1.555452p-2f);
        const float q = lg_reduced_expm1_f32(2 * a, 0, 0, &k), s = lg_f32_of_bits((128 - k) << 23);
        const float far = lg_select_f32(a > 10, 1, 1 - s / (lg_fma_f32(s, 0.5f, 1) + q));
        return copysignf(lg_select_f32(a < 0.55f, lg_fma_f32(a * z, p, a), far), x);
}

/* log(2^k (1 + f)), sqrt(1/2) <= 1 + f < sqrt(2): k ln(2) + f - f^2 / 2 + f^3 P(f) (2^-25). */
LG_LANE float lg_log_of_f32(float k, float f)
{
        const float f2 = f * f;
        const float p0 = lg_cubic_f32(f, f2, 0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a00ap-3f, -0x1.547256p-3f);
        const float p4 = lg_cubic_f32(f, f2, 0x1.22da2ap-3f, -0x1.0d853ap-3f, 0x1.055b86p-3f, -0x1.38b5eep-4f);
        const float p = lg_fma_f32(f2 * f2, p4, p0);
        const float low = lg_fma_f32(f2, -0.5f, lg_fma_f32(p * f, f2, k * LG_LN2_REST));
        return lg_fma_f32(k, 0x1.62e4p-1f, f + low);
}
#define LG_SQRT_HALF 0x1.6a09e6p-1f

LG_LANE float lg_log_f32(float x)
{
        const float least = 0x1p-126f, normal = lg_select_f32(x < least, x * 0x1p24f, x);
        const int32_t i = (int32_t)(lg_bits_of_f32(normal) - lg_bits_of_f32(LG_SQRT_HALF));
        const float k = (float)((i >> 23) - 24 * (x < least));
        const float f = lg_f32_of_bits(((uint32_t)i & 0x7fffff) + lg_bits_of_f32(LG_SQRT_HALF)) - 1;
        const float edge = lg_select_f32(x == 0, -INFINITY, lg_select_f32(x > 0, x, NAN));
        return lg_select_f32((x > 0) & (x < INFINITY), lg_log_of_f32(k, f), edge);
}

/* log(1 + x) by f = x / 2^k + (1 / 2^k - 1), which is exact but for the last bit. Four times 2^-128 is no subnormal. */
LG_LANE float lg_log1p_f32(float x)
{
        const int32_t i = (int32_t)(lg_bits_of_f32(1 + x) - lg_bits_of_f32(LG_SQRT_HALF));
        const float s = lg_f32_of_bits(lg_bits_of_f32(4) - ((uint32_t)i & 0xff800000)) * 0.25f;
        const float r = lg_log_of_f32((float)(i >> 23), lg_fma_f32(s, x, s - 1));
        const float edge = lg_select_f32(x == -1, -INFINITY, lg_select_f32(x > 0, x, NAN));
        return copysignf(lg_select_f32((x > -1) & (x < INFINITY), r, edge), x);
}

/* x + x P(x^2) below 0.9 (2^-25), then 1 - e^Q(x) (2^-29), which from 4 on is 1. */
LG_LANE float lg_erf_f32(float x)
{
        uint32_t k;
        const float a = fabsf(x), z = a * a;
        const float p3 = lg_fma_f32(z, lg_fma_f32(z, -0x1.3f4f70p-11f, 0x1.4876c8p-8f), -0x1.b6bee2p-6f);
        const float p1 = lg_fma_f32(z, lg_fma_f32(z, p3, 0x1.ce1dd2p-4f), -0x1.8126fap-2f);
        const float near = lg_fma_f32(a, lg_fma_f32(z, p1, 0x1.06eba6p-3f), a);
        const float even2 = lg_fma_f32(z, lg_fma_f32(z, 0x1.9fb316p-13f, 0x1.6d9ce6p-6f), -0x1.4621bap-1f);
        const float odd = lg_fma_f32(z, lg_fma_f32(z, -0x1.91cd1ep-9f, -0x1.aa7324p-4f), -0x1.20b752p+0f);
        const float power = lg_fma_f32(a, odd, lg_fma_f32(z, even2, -0x1.5d1112p-13f));
        const float q = lg_reduced_expm1_f32(power, 0, 127, &k), s = lg_f32_of_bits(k << 23);
        const float far = lg_select_f32(a > 4, 1, lg_fma_f32(-s, q, 1 - s));
        return copysignf(lg_select_f32(a < 0.9f, near, far), x);
}

/* Larger angles are left to libm: see SIN in scalar.h. */
#define LG_ANGLE_MOST 0x1p17f

/* x = k pi / 2 + r + low, |r| < 0.8: returns r, low, and k in the low bits of an integer. k times the first part of
 * pi / 2 is taken from x exactly; of what is taken then, low is what rounding leaves. */
LG_LANE float lg_reduced_angle_f32(float x, uint32_t *ret_k, float *ret_low)
{
        const float magic = 0x1.8p23f, z = lg_fma_f32(x, 0x1.45f306p-1f, magic), k = z - magic;
        *ret_k = lg_bits_of_f32(z);
#ifdef FP_FAST_FMAF
        const float more = fmaf(k, -0x1.921fb6p0f, x), r = more + k * 0x1.777a5cp-25f;
        *ret_low = fmaf(k, 0x1.ee59dap-50f, fmaf(k, 0x1.777a5cp-25f, more - r));
#else
        const double d = (double)x - (double)k * 0x1.921fb544p0 - (double)k * 0x1.0b4611a626331p-34;
        const float r = (float)d;
        *ret_low = (float)(d - (double)r);
#endif
        return r;
}

/* sin(x + turns pi / 2): r + r^3 S(r^2) (2^-27) or 1 - r^2 / 2 + r^4 C(r^2) (2^-32), with either sign. */
LG_LANE float lg_turned_sin_f32(float x, uint32_t turns)
{
        uint32_t k;
        float low;
        const float r = lg_reduced_angle_f32(x, &k, &low), z = r * r, half = 0.5f * z, w = 1 - half;
        const float s = lg_fma_f32(z, lg_fma_f32(z, -0x1.990f92p-13f, 0x1.1106aep-7f), -0x1.555544p-3f);
        const float c = lg_fma_f32(z, lg_fma_f32(z, 0x1.99911cp-16f, -0x1.6c0af4p-10f), 0x1.555548p-5f);
        const float sine = r + lg_fma_f32(z * r, s, low);
        const float cosine = w + lg_fma_f32(z * z, c, lg_fma_f32(-r, low, 1 - w - half));
        const float v = lg_select_f32((k + turns) & 1, cosine, sine);
        return lg_f32_of_bits(lg_bits_of_f32(v) ^ (((k + turns) & 2) << 30));
}

/* The sign of x apart, for that of 0. */
LG_LANE float lg_near_sin_f32(float x)
{
        return lg_f32_of_bits(lg_bits_of_f32(lg_turned_sin_f32(fabsf(x), 0)) ^ (lg_bits_of_f32(x) & 1u << 31));
}

LG_LANE float lg_near_cos_f32(float x)
{
        return lg_turned_sin_f32(x, 1);
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
