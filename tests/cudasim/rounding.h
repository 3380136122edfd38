/* rounding.h - functions as a GPU's may round: off by units in the last place, as many as CUDA's documentation admits.
 *
 * Included before each kernel of the simulator's module "rounding"; results that are whole numbers stay.
 */
#ifndef SIM_ROUNDING_H
#define SIM_ROUNDING_H

#include "cudasim.h"

namespace cudasim
{
/* Returns y off by at most `most` units, drawn by y itself; I has as many bits as T. */
template <typename I, typename T> static inline T shifted(T y, int most)
{
        I bits;
        memcpy(&bits, &y, sizeof y);
        if (!(std::fabs(y) > (T)1e-30 && std::fabs(y) < (T)1e30) || (std::fabs(y) < 1048576 && y == std::rint(y)))
                return y;
        uint64_t drawn = (uint64_t)bits * 0x9E3779B97F4A7C15u;
        drawn = (drawn ^ drawn >> 29) * 0xBF58476D1CE4E5B9u >> 33;
        bits = (I)(bits + (I)(drawn % (2 * (unsigned)most + 1)) - (I)most);
        memcpy(&y, &bits, sizeof y);
        return y;
}
template <int of_f32, int of_f64> static inline float off(float y)
{
        return shifted<uint32_t>(y, of_f32);
}
template <int of_f32, int of_f64> static inline double off(double y)
{
        return shifted<uint64_t>(y, of_f64);
}
} // namespace cudasim

#define exp(x) cudasim::off<1, 1>(exp(x))
#define expf(x) cudasim::off<1, 1>(expf(x))
#define expm1(x) cudasim::off<1, 1>(expm1(x))
#define expm1f(x) cudasim::off<1, 1>(expm1f(x))
#define exp2(x) cudasim::off<2, 1>(exp2(x))
#define exp2f(x) cudasim::off<2, 1>(exp2f(x))
#define log(x) cudasim::off<1, 1>(log(x))
#define logf(x) cudasim::off<1, 1>(logf(x))
#define log1p(x) cudasim::off<1, 1>(log1p(x))
#define log1pf(x) cudasim::off<1, 1>(log1pf(x))
#define log2(x) cudasim::off<1, 1>(log2(x))
#define log2f(x) cudasim::off<1, 1>(log2f(x))
#define log10(x) cudasim::off<2, 1>(log10(x))
#define log10f(x) cudasim::off<2, 1>(log10f(x))
#define sin(x) cudasim::off<2, 2>(sin(x))
#define sinf(x) cudasim::off<2, 2>(sinf(x))
#define cos(x) cudasim::off<2, 2>(cos(x))
#define cosf(x) cudasim::off<2, 2>(cosf(x))
#define tan(x) cudasim::off<4, 2>(tan(x))
#define tanf(x) cudasim::off<4, 2>(tanf(x))
#define asin(x) cudasim::off<4, 2>(asin(x))
#define asinf(x) cudasim::off<4, 2>(asinf(x))
#define acos(x) cudasim::off<3, 2>(acos(x))
#define acosf(x) cudasim::off<3, 2>(acosf(x))
#define atan(x) cudasim::off<2, 2>(atan(x))
#define atanf(x) cudasim::off<2, 2>(atanf(x))
#define sinh(x) cudasim::off<3, 2>(sinh(x))
#define sinhf(x) cudasim::off<3, 2>(sinhf(x))
#define cosh(x) cudasim::off<2, 1>(cosh(x))
#define coshf(x) cudasim::off<2, 1>(coshf(x))
#define tanh(x) cudasim::off<2, 2>(tanh(x))
#define tanhf(x) cudasim::off<2, 2>(tanhf(x))
#define asinh(x) cudasim::off<3, 3>(asinh(x))
#define asinhf(x) cudasim::off<3, 3>(asinhf(x))
#define acosh(x) cudasim::off<4, 3>(acosh(x))
#define acoshf(x) cudasim::off<4, 3>(acoshf(x))
#define atanh(x) cudasim::off<3, 2>(atanh(x))
#define atanhf(x) cudasim::off<3, 2>(atanhf(x))
#define erf(x) cudasim::off<2, 2>(erf(x))
#define erff(x) cudasim::off<2, 2>(erff(x))
#define erfc(x) cudasim::off<4, 5>(erfc(x))
#define erfcf(x) cudasim::off<4, 5>(erfcf(x))
#define pow(a, b) cudasim::off<4, 2>(pow(a, b))
#define powf(a, b) cudasim::off<4, 2>(powf(a, b))
#define atan2(a, b) cudasim::off<3, 2>(atan2(a, b))
#define atan2f(a, b) cudasim::off<3, 2>(atan2f(a, b))

#endif
