/* vecmath.h - f32 versions of e^x, logarithm, tanh, erf, sigmoid, sin, cos and the normal distribution for vectorised
 * loops.
 *
 * Each function consists of arithmetic and bitwise selections, without branches, calls or tables, so that the compiler
 * can vectorise the surrounding loop for any instruction set. Subnormals are kept; NaN, infinities and signs of zeros
 * are as in C. Errors are below 1.5 ulp, except for the normal distribution; tools/ulp.c measures them for all
 * arguments. Coefficients minimise the largest error (Remez exchange with 60 digits) and were then rounded to f32 and
 * moved to neighbouring values while the error decreased; "(2^-n)" is the remaining error. */
#ifndef LG_CPU_VECMATH_H
#define LG_CPU_VECMATH_H

#include <math.h>
#include "../half.h"

#define LG_LANE static inline __attribute__((always_inline))

/* Returns a b + c, rounded once where the processor has a fast fused multiply-add. */
LG_LANE float lg_fma_f32(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
        return fmaf(a, b, c);
#else
        return a * b + c;
#endif
}

/* Returns c0 + c1 x + c2 x^2 + c3 x^3 from two independent halves; x2 is x^2. */
LG_LANE float lg_cubic_f32(float x, float x2, float c0, float c1, float c2, float c3)
{
        return lg_fma_f32(x2, lg_fma_f32(x, c3, c2), lg_fma_f32(x, c1, c0));
}

/* Returns c ? a : b for c of 0 or 1 by selecting bits: a branch would keep loops from being vectorised. */
LG_LANE float lg_select_f32(int c, float a, float b)
{
        const uint32_t m = 0u - (uint32_t)c;
        return lg_f32_of_bits((lg_bits_of_f32(a) & m) | (lg_bits_of_f32(b) & ~m));
}

/* Returns x - k * (first 15 bits of ln(2)), which is exact, for |x| < 2^20 and k = x / ln(2), rounded. Stores k in
 * *ret_k and k + bias in the low bits of *ret_bits. */
LG_LANE float lg_less_ln2_f32(float x, int bias, float *ret_k, uint32_t *ret_bits)
{
        const float magic = 0x1.8p23f + (float)bias, z = lg_fma_f32(x, 0x1.715476p0f, magic), k = z - magic;
        *ret_k = k;
        *ret_bits = lg_bits_of_f32(z);
        return lg_fma_f32(k, -0x1.62e4p-1f, x);
}
#define LG_LN2_REST 0x1.7f7d1cp-20f

/* Returns P(r) of e^r = 1 + r + r^2 P(r), for |r| <= ln(2) / 2 (2^-26); r2 is r^2. */
LG_LANE float lg_exp_curve_f32(float r, float r2)
{
        const float p = lg_cubic_f32(r, r2, 0x1.fffffep-2f, 0x1.5554aep-3f, 0x1.5556a0p-5f, 0x1.122802p-7f);
        return lg_fma_f32(r2 * r2, 0x1.6bedc0p-10f, p);
}

/* Returns high, which is exact, of e^x = 2^k (1 + high + low) for |x| < 2^20. Stores low in *ret_low and k + bias in
 * the low bits of *ret_k. */
LG_LANE float lg_split_expm1_f32(float x, int bias, uint32_t *ret_k, float *ret_low)
{
        float k;
        const float high = lg_less_ln2_f32(x, bias, &k, ret_k), rest = k * -LG_LN2_REST, r = high + rest, r2 = r * r;
        *ret_low = lg_fma_f32(r2, lg_exp_curve_f32(r, r2), rest);
        return high;
}

/* Returns q of e^(x - rest) = 2^k (1 + q) for |x| < 2^20. Stores k + bias in the low bits of *ret_k. */
LG_LANE float lg_reduced_expm1_f32(float x, float rest, int bias, uint32_t *ret_k)
{
        float k;
        const float high = lg_less_ln2_f32(x, bias, &k, ret_k);
        const float r = lg_fma_f32(k, -LG_LN2_REST, high) - rest, r2 = r * r;
        return lg_fma_f32(r2, lg_exp_curve_f32(r, r2), r);
}

/* Returns e^x. Powers of 2 from 2^-150 to 2^128 are products of two, of which only the second product rounds. */
LG_LANE float lg_exp_f32(float x)
{
        uint32_t k, below = 0u - (lg_bits_of_f32(x) >> 31);
        const float q = lg_reduced_expm1_f32(x, 0, 127 - 32, &k);
        const float s = lg_f32_of_bits((k + (below & 64)) << 23);
        const float e = lg_fma_f32(q, s, s) * lg_f32_of_bits(lg_bits_of_f32(0x1p32f) - (below & 64u << 23));
        return lg_select_f32(x > 89, INFINITY, lg_select_f32(x < -104, 0, e));
}

/* Returns e^x - 1 = (s - 1 + s high) + s low with s = 2^k; the large terms are exact where they cancel. Half of this is
 * computed and then doubled, since 2^128 is infinite. */
LG_LANE float lg_expm1_f32(float x)
{
        uint32_t k;
        float low;
        const float high = lg_split_expm1_f32(x, 126, &k, &low), s = lg_f32_of_bits(k << 23);
        const float e = 2 * lg_fma_f32(s, low, lg_fma_f32(s, high, s - 0.5f));
        const float edge = lg_select_f32(x > 89, INFINITY, lg_select_f32(x < -25, -1, x));
        return lg_select_f32((x > 89) | (x < -25) | (fabsf(x) < 0x1p-25f), edge, e);
}

/* Returns e^(x - low) for x in [-104.5, 0]. */
LG_LANE float lg_exp_below_f32(float x, float low)
{
        uint32_t k;
        const float q = lg_reduced_expm1_f32(x, low, 127 + 32, &k), s = lg_f32_of_bits(k << 23);
        return lg_fma_f32(q, s, s) * 0x1p-32f;
}

/* Returns e^-x for x >= 0. */
LG_LANE float lg_exp_minus_f32(float x)
{
        return lg_select_f32(x > 104, 0, lg_exp_below_f32(-x, 0));
}

/* Returns 1 / (1 + e^-x). With e^|x| = (1 + q) / s, the result is s / (1 + (q + s)) for x < 0, and 1 minus this for x >
 * 0. The rounding error of the divisor is corrected. */
LG_LANE float lg_sigmoid_f32(float x)
{
        uint32_t k;
        float low;
        const float a = lg_select_f32(fabsf(x) > 104, 104, fabsf(x)), high = lg_split_expm1_f32(a, 0, &k, &low);
        const float s = lg_f32_of_bits((127 + 32 - k) << 23) * 0x1p-32f;
        const float t = high + low + s, d = 1 + t, u = 1 / d, r = lg_fma_f32(-u * u, t - (d - 1), u);
        return lg_select_f32(x < 0, r * s, lg_fma_f32(-s, r, 1));
}

/* Returns tanh(x): x + x^3 P(x^2) for |x| < 0.55 (2^-24), else 1 - 2 / (e^2x + 1), which is 1 for x > 10. */
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

/* Returns log(2^k (1 + f)) for sqrt(1/2) <= 1 + f < sqrt(2): k ln(2) + f - f^2 / 2 + f^3 P(f) (2^-25). */
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

/* Returns log(1 + x), with f = x / 2^k + (1 / 2^k - 1), exact but for the last bit. s = 2^-k is computed as a quarter
 * of 2^(2 - k), since 2^-128 would be subnormal. */
LG_LANE float lg_log1p_f32(float x)
{
        const int32_t i = (int32_t)(lg_bits_of_f32(1 + x) - lg_bits_of_f32(LG_SQRT_HALF));
        const float s = lg_f32_of_bits(lg_bits_of_f32(4) - ((uint32_t)i & 0xff800000)) * 0.25f;
        const float r = lg_log_of_f32((float)(i >> 23), lg_fma_f32(s, x, s - 1));
        const float edge = lg_select_f32(x == -1, -INFINITY, lg_select_f32(x > 0, x, NAN));
        return copysignf(lg_select_f32((x > -1) & (x < INFINITY), r, edge), x);
}

/* Returns erf(x): x + x P(x^2) for |x| < 0.9 (2^-25), else 1 - e^Q(x) (2^-29), which is 1 for x > 4. */
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

/* Largest angle for lg_near_sin and lg_near_cos; larger ones are left to libm (see SIN in scalar.h). */
#define LG_ANGLE_MOST 0x1p17f

/* Returns r of x = k pi / 2 + r + low with |r| < 0.8. Stores low, and k in the low bits of *ret_k. k times the first
 * part of pi / 2 is subtracted exactly; low is the rounding error of the second subtraction. */
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

/* Returns sin(x + turns pi / 2): r + r^3 S(r^2) (2^-27) or 1 - r^2 / 2 + r^4 C(r^2) (2^-32), with either sign. */
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

/* Returns sin(x); the sign of x is applied separately, which keeps the sign of 0. */
LG_LANE float lg_near_sin_f32(float x)
{
        return lg_f32_of_bits(lg_bits_of_f32(lg_turned_sin_f32(fabsf(x), 0)) ^ (lg_bits_of_f32(x) & 1u << 31));
}

LG_LANE float lg_near_cos_f32(float x)
{
        return lg_turned_sin_f32(x, 1);
}

/* Returns e^(-x^2 / 2). With a fused multiply-add, the rounding error of x^2 is corrected. */
LG_LANE float lg_bell_f32(float x)
{
        const float s = x * x;
        return lg_select_f32(s > 208, 0, lg_exp_below_f32(-0.5f * s, 0.5f * lg_fma_f32(x, x, -s)));
}

/* Returns the distribution function of the normal distribution; for x < 0, e^(-x^2 / 2) P(-x) / Q(-x) (2^-25). */
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
