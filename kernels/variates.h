/* variates.h - random numbers of the gamma and Poisson distributions, in f64: each is a function of its parameter and
 * of one uniform number in [0, 1), whose 53 bits are the key of the Philox words that it uses.
 *
 * Included by scalar.h. */
#ifndef LG_VARIATES_H
#define LG_VARIATES_H

#include "philox.h"
#include "special.h"

#define LG_ROUNDS 256 /* maximum number of proposals; each is accepted with a probability of 0.7 or more */

LG_FN uint64_t lg_variate_key(double seed)
{
        return (uint64_t)(seed * 9007199254740992.0);
}

/* Returns a uniform number in (0, 1) of 52 bits. */
LG_FN double lg_open_uniform(uint32_t hi, uint32_t lo)
{
        return ((double)(lg_philox_bits53(hi, lo) >> 1) + 0.5) * (1.0 / 4503599627370496.0);
}

/* Returns a gamma variate of shape a and scale 1 (Marsaglia and Tsang, 2000); NaN for a below 0. A shape below 1 is
 * raised by 1, and the variate multiplied by u^(1 / a). */
LG_FN double lg_gamma_draw(double a, double seed)
{
        const uint64_t key = lg_variate_key(seed);
        double boost = 1;
        if (!(a > 0))
                return a == 0 ? 0 : NAN;
        if (a < 1) {
                const lg_philox_words b = lg_philox_block(key, 0);
                boost = pow(lg_open_uniform(b.w[0], b.w[1]), 1 / a);
                a += 1;
        }
        const double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
        for (int i = 1; i <= LG_ROUNDS; i++) {
                const lg_philox_words b = lg_philox_block(key, (uint64_t)i);
                const double r = sqrt(-2 * log(((double)b.w[0] + 0.5) * (1.0 / 4294967296.0)));
                const double z = r * cos(6.283185307179586476925 * ((double)b.w[1] * (1.0 / 4294967296.0)));
                const double u = lg_open_uniform(b.w[2], b.w[3]), t = 1 + c * z, v = t * t * t;
                if (v > 0 && log(u) < 0.5 * z * z + d * (1 - v + log(v)))
                        return boost * d * v;
        }
        return NAN;
}

/* Returns the derivative by a, with the uniform number behind it fixed, of a gamma variate x of shape a: -(dP/da) / p
 * for the distribution function P(a, x) and the density p (Figurnov et al., 2018). Below a + 1 by the power series of
 * P, with term t and psi = digamma(a + n + 1); above by the continued fraction of 1 - P and its derivative by a
 * (Lentz). */
LG_FN double lg_gamma_slope(double a, double x)
{
        const double l = log(x);
        if (!(a > 0) || !(x > 0) || x == INFINITY)
                return x == 0 ? 0 : NAN;
        if (x < a + 1) {
                double t = 1 / a, psi = lg_digamma(a + 1), sum = t * (psi - l);
                for (int n = 1; n < 100000 && t * fabs(psi - l) > 1e-17 * fabs(sum); n++) {
                        psi += 1 / (a + n);
                        t *= x / (a + n);
                        sum += t * (psi - l);
                }
                return x * sum;
        }
        double b = x + 1 - a, c = 1e300, dc = 0, d = 1 / b, dd = d * d, h = d, dh = dd;
        for (int i = 1; i < 100000; i++) {
                const double n = i * (a - i), f = 1 / c;
                b += 2;
                dc = -1 + i * f - n * f * f * dc; /* of c = b + n / c, where db/da = -1 and dn/da = i */
                c = b + n * f;
                dd = -1 + i * d + n * dd;
                d = 1 / (b + n * d);
                dd *= -d * d;
                const double step = c * d, dstep = dc * d + c * dd;
                dh = dh * step + h * dstep;
                h *= step;
                if (fabs(step - 1) + fabs(dstep) < 4e-16)
                        break;
        }
        return x * (h * (l - lg_digamma(a)) + dh);
}

/* Returns a Poisson variate: by inversion for rates below 10, else by transformed rejection (Hoermann, 1993: PTRS); NaN
 * for rates below 0. */
LG_FN double lg_poisson_draw(double rate, double seed)
{
        const uint64_t key = lg_variate_key(seed);
        if (!(rate >= 0))
                return NAN;
        if (rate < 10) {
                const lg_philox_words w = lg_philox_block(key, 0);
                double k = 0, p = exp(-rate), rest = lg_open_uniform(w.w[0], w.w[1]) - p;
                for (; rest > 0 && k < 128; rest -= p)
                        p *= rate / ++k;
                return k;
        }
        const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4);
        for (int i = 0; i < LG_ROUNDS; i++) {
                const lg_philox_words w = lg_philox_block(key, (uint64_t)i);
                const double u = lg_open_uniform(w.w[0], w.w[1]) - 0.5, v = lg_open_uniform(w.w[2], w.w[3]);
                const double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + rate + 0.43);
                if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
                        return k;
                if (k < 0 || (us < 0.013 && v > us))
                        continue;
                if (log(v * alpha / (a / (us * us) + b)) <= k * log(rate) - rate - lg_lgamma(k + 1))
                        return k;
        }
        return NAN;
}

#endif
