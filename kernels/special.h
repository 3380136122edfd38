/* special.h - logarithm and derivatives of the gamma function and the inverse of erf, in f64 for every device and
 * dtype.
 *
 * Included by scalar.h, which declares LG_FN. Errors are a few units in the last place of f64, except close to zeros of
 * lgamma and digamma at negative arguments. */
#ifndef LG_SPECIAL_H
#define LG_SPECIAL_H

/* Functions of one and of two arguments of this header and of variates.h. */
#define LG_SPECIAL1(F) F(lgamma) F(digamma) F(erfinv)
#define LG_SPECIAL2(F) F(polygamma) F(gamma_draw) F(gamma_slope) F(poisson_draw)

/* Returns log(Gamma(2 + w)) for |w| <= 0.5 by its power series: coefficient k >= 2 is (-1)^k (zeta(k) - 1) / k. */
LG_FN double lg_lgamma_near2(double w)
{
        const double c[] = {0.42278433509846713939,    0.3224670334241132182,     -0.06735230105319809513,
                            0.02058080842778454788,    -0.007385551028673985266,  0.002890510330741523286,
                            -0.001192753911703260977,  0.0005096695247430424223,  -0.0002231547584535793798,
                            0.00009945751278180853371, -0.0000449262367381331417, 0.00002050721277567069155,
                            -9.439488275268395904e-6,  4.374866789907487804e-6,   -2.039215753801366237e-6,
                            9.551412130407419833e-7,   -4.492469198764566043e-7,  2.120718480555466587e-7,
                            -1.004322482396809961e-7,  4.769810169363980566e-8,   -2.271109460894316491e-8,
                            1.083865921489695409e-8,   -5.183475041970046655e-9,  2.483674543802478317e-9,
                            -1.192140140586091207e-9,  5.731367241678862013e-10,  -2.759522885124233145e-10,
                            1.330476437424448948e-10};
        double s = 0;
        for (int k = (int)(sizeof c / sizeof *c) - 1; k >= 0; k--)
                s = s * w + c[k];
        return s * w;
}

/* Returns log(Gamma(x)) for x > 0: by the series around 2 below 10, else by Stirling's series. */
LG_FN double lg_lgamma_positive(double x)
{
        const double c[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                            1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400.0};
        double product = 1, s = 0;
        if (x < 0.5)
                return lg_lgamma_near2(x) - log1p(x) - log(x);
        if (x < 1.5)
                return lg_lgamma_near2(x - 1) - log1p(x - 1);
        if (x < 10) {
                for (; x > 2.5; product *= x)
                        x -= 1;
                return lg_lgamma_near2(x - 2) + log(product);
        }
        if (x == INFINITY)
                return x;
        for (int k = 7; k >= 0; k--)
                s = s / (x * x) + c[k];
        return x * (log(x) - 1) - 0.5 * log(x) + 0.91893853320467274178 + s / x;
}

/* Returns log|Gamma(x)|, which is infinite at 0, -1, -2, ... Below 0, Gamma(x) Gamma(1 - x) = pi / sin(pi x). */
LG_FN double lg_lgamma(double x)
{
        if (!(x <= 0))
                return lg_lgamma_positive(x);
        const double away = fabs(x - rint(x));
        if (x == -INFINITY || away == 0)
                return INFINITY;
        return 1.14472988584940017414 - log(sin(3.14159265358979323846 * away)) - lg_lgamma_positive(1 - x);
}

/* Returns the derivative of lgamma. The poles at -1, -2, ... give NaN, those at +0 and -0 -inf and inf. */
LG_FN double lg_digamma(double x)
{
        const double c[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760.0, 1.0 / 12};
        double s = 0, y = 0;
        if (x == 0)
                return copysign(INFINITY, -x);
        if (x < 0) {
                const double away = x - rint(x);
                if (x == -INFINITY || away == 0)
                        return NAN;
                y = -3.14159265358979323846 / tan(3.14159265358979323846 * away);
                x = 1 - x;
        }
        for (; x < 10; x += 1)
                y -= 1 / x;
        if (x == INFINITY)
                return x;
        for (int k = 6; k >= 0; k--)
                s = s / (x * x) + c[k];
        return y + (log(x) - 0.5 / x - s / (x * x));
}

/* Returns Hurwitz' zeta function, the sum of (q + k)^-s over k >= 0, for q > 0 and whole s >= 2, by Euler and
 * Maclaurin.
 */
LG_FN double lg_zeta_positive(double s, double q)
{
        /* Coefficient j is the Bernoulli number B_2j divided by (2j)! */
        const double c[] = {8.33333333333333333333e-2,   -1.38888888888888888889e-3,  3.30687830687830687831e-5,
                            -8.26719576719576719577e-7,  2.08767569878680989792e-8,   -5.28419013868749318484e-10,
                            1.33825365306846788328e-11,  -3.38968029632258286683e-13, 8.58606205627784456414e-15,
                            -2.17486869855806187304e-16, 5.50900282836022951520e-18,  -1.39544646858125233407e-19};
        double sum = 0, power = 0, a = q;
        for (int k = 0; k < 10 || a < 10; k++, a += 1) {
                power = pow(a, -s);
                sum += power;
                if (power <= 1e-17 * sum)
                        return sum;
        }
        power = pow(a, -s);
        sum += power * a / (s - 1) + 0.5 * power;
        double factor = s * power / a;
        for (int j = 0; j < 12; j++) {
                sum += c[j] * factor;
                factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
        }
        return sum;
}

/* Returns that function for q that is not 0, -1, -2, ... Below 0, the sum over all integers shifted by q is that of
 * both sides of the nearest one, and the numbers below q are subtracted. */
LG_FN double lg_zeta(double s, double q)
{
        if (!(q < 0))
                return lg_zeta_positive(s, q);
        const double away = q - rint(q), sign = fmod(s, 2.0) != 0 ? -1 : 1;
        const double up = away > 0 ? away : 1 + away, down = away > 0 ? 1 - away : -away;
        return lg_zeta_positive(s, up) + sign * (lg_zeta_positive(s, down) - lg_zeta_positive(s, 1 - q));
}

/* Returns derivative n of digamma, (-1)^(n + 1) n! zeta(n + 1, x); infinite at its poles. n is whole and 0 or more. */
LG_FN double lg_polygamma(double x, double n)
{
        double factorial = fmod(n, 2.0) != 0 ? 1 : -1;
        if (n == 0)
                return lg_digamma(x);
        if (x <= 0 && x == floor(x))
                return factorial * INFINITY;
        for (int k = 2; k <= n && k <= 171; k++)
                factorial *= k;
        return factorial * lg_zeta(n + 1, x);
}

/* Returns x with erf(x) = y. The first guess is Winitzki's (relative error 0.002), and each step of Halley's method
 * cubes the error; near the ends it uses erfc, which keeps the distance to 1. */
LG_FN double lg_erfinv(double y)
{
        const double a = fabs(y), l = log1p(-a * a), t = 4.3307467508949 + 0.5 * l; /* 2 / (0.147 pi) */
        if (!(a < 1))
                return a == 1 ? y * INFINITY : NAN;
        double x = sqrt(-l / 0.147 / (sqrt(t * t - l / 0.147) + t));
        for (int i = 0; i < 2; i++) {
                const double miss = a < 0.5 ? erf(x) - a : (1 - a) - erfc(x);
                const double step = miss / (1.12837916709551257390 * exp(-x * x));
                x -= step / (1 + x * step);
        }
        return copysign(x, y);
}

#endif
