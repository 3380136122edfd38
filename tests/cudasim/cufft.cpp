/* cufft.cpp - the functions of cuFFT in use: one-dimensional transforms, in double, when the stream gets there.
 *
 * Misuse dies. Plans have no memory of their own: their work area must be set, and is written to. A transform of half a
 * spectrum spoils its input. */
#include "runtime.h"
#if __has_include(<cufftXt.h>)
#include <complex>
#include <cufftXt.h>
#include <map>
#include <vector>

using namespace cudasim;

namespace
{
typedef std::complex<double> complex;

struct plan {
        int device;
        bool own_memory = true, made = false;
        cudaStream_t stream = nullptr;
        long long n, stride, distance[2], batch; /* distance: of the inputs, of the outputs */
        bool real[2], wide;
        void *work = nullptr;
};

std::map<cufftHandle, plan> &plans = *new std::map<cufftHandle, plan>;
cufftHandle next_handle;

plan &of(const char *call, cufftHandle h)
{
        const auto found = plans.find(h);
        if (found == plans.end())
                die("%s: %d is no plan, or none any longer", call, h);
        return found->second;
}

size_t work_of(const plan &p)
{
        return (size_t)(p.n * p.batch % 7) * 16;
}

/* exp(sign 2 pi i k / n) */
complex turn(long long k, long long n, int sign)
{
        const long double angle = 2 * acosl(-1) * (long double)k / (long double)n;
        return complex((double)cosl(angle), (double)sinl(angle) * sign);
}

std::vector<complex> turns_of(long long n, int sign)
{
        std::vector<complex> turns;
        for (long long k = 0; k < n; k++)
                turns.push_back(turn(k, n, sign));
        return turns;
}

std::vector<complex> convolved(const complex *x, long long n, long long step, int sign);

/* The transform of x[0], x[step], ...: n of them, with turns of n * step. */
std::vector<complex> transform(const complex *x, long long n, long long step, const std::vector<complex> &turns,
                               int sign)
{
        if (n == 1)
                return {x[0]};
        long long p = 2;
        while (n % p && p * p < n)
                p++;
        p = n % p ? n : p;
        if (p > 100)
                return convolved(x, n, step, sign);
        const long long part = n / p;
        std::vector<std::vector<complex>> parts;
        for (long long r = 0; r < p; r++)
                parts.push_back(transform(x + r * step, part, step * p, turns, sign));
        std::vector<complex> y((size_t)n);
        for (long long k = 0; k < n; k++)
                for (long long r = 0; r < p; r++)
                        y[(size_t)k] += parts[(size_t)r][(size_t)(k % part)] * turns[(size_t)(r * k % n * step)];
        return y;
}

/* The same of a number with large prime factors only, as a convolution (Bluestein). */
std::vector<complex> convolved(const complex *x, long long n, long long step, int sign)
{
        long long size = 1;
        while (size < 2 * n - 1)
                size *= 2;
        std::vector<complex> a((size_t)size), b((size_t)size), chirp((size_t)n);
        for (long long k = 0; k < n; k++) {
                chirp[(size_t)k] = turn(k * k % (2 * n), 2 * n, sign);
                a[(size_t)k] = x[k * step] * chirp[(size_t)k];
                b[(size_t)k] = b[(size_t)((size - k) % size)] = std::conj(chirp[(size_t)k]);
        }
        const std::vector<complex> turns = turns_of(size, -1), back = turns_of(size, 1);
        a = transform(a.data(), size, 1, turns, -1);
        b = transform(b.data(), size, 1, turns, -1);
        for (size_t k = 0; k < a.size(); k++)
                a[k] *= b[k] / (double)size;
        a = transform(a.data(), size, 1, back, 1);
        a.resize((size_t)n);
        for (size_t k = 0; k < a.size(); k++)
                a[k] *= chirp[k];
        return a;
}

template <typename T> complex read(const T *p, long long at, bool real)
{
        return real ? complex((double)p[at]) : complex((double)p[2 * at], (double)p[2 * at + 1]);
}

/* Half a spectrum is read as a whole one; like cuFFT, the imaginary parts at its ends count. */
template <typename T> void run(const plan &p, T *in, T *out, bool inverse)
{
        const long long half = p.n / 2 + 1;
        const int sign = inverse ? 1 : -1;
        const std::vector<complex> turns = turns_of(p.n, sign);
        std::vector<complex> x((size_t)p.n);
        for (long long b = 0; b < p.batch; b++) {
                for (long long j = 0; j < p.n; j++) {
                        const bool mirrored = p.real[1] && j >= half;
                        const complex value =
                                read(in, b * p.distance[0] + (mirrored ? p.n - j : j) * p.stride, p.real[0]);
                        x[(size_t)j] = mirrored ? std::conj(value) : value;
                }
                const std::vector<complex> y = transform(x.data(), p.n, 1, turns, sign);
                for (long long k = 0; k < (p.real[0] ? half : p.n); k++) {
                        const long long at = b * p.distance[1] + k * p.stride;
                        if (p.real[1]) {
                                out[at] = (T)y[(size_t)k].real();
                                continue;
                        }
                        out[2 * at] = (T)y[(size_t)k].real();
                        out[2 * at + 1] = (T)y[(size_t)k].imag();
                }
        }
        for (long long b = 0; p.real[1] && b < p.batch; b++)
                for (long long j = 0; j < half; j++)
                        in[2 * (b * p.distance[0] + j * p.stride)] = (T)NAN;
}

/* The bytes from the first to the last element of the input (0) or output (1). */
size_t extent(const plan &p, int side)
{
        const long long count = p.real[1 - side] && !p.real[side] ? p.n / 2 + 1 : p.n;
        return (size_t)((p.batch - 1) * p.distance[side] + (count - 1) * p.stride + 1) * (p.wide ? 8 : 4) *
               (p.real[side] ? 1 : 2);
}
} // namespace

#define GUARD std::lock_guard<std::recursive_mutex> guard_(everything())
#undef FAIL
#define FAIL                                                                                                           \
        if (fails(__func__))                                                                                           \
        return CUFFT_INTERNAL_ERROR

extern "C" {
cufftResult CUFFTAPI cufftCreate(cufftHandle *ret)
{
        GUARD;
        FAIL;
        if (fails(__func__, LOAD) || breaks_capture())
                return CUFFT_ALLOC_FAILED;
        *ret = ++next_handle;
        plans[*ret].device = current_device;
        count_handles(1);
        return CUFFT_SUCCESS;
}

cufftResult CUFFTAPI cufftDestroy(cufftHandle h)
{
        GUARD;
        const plan &p = of(__func__, h);
        if (p.made && devices[p.device].memory.base)
                wait_all(record_of(p.stream)); /* its memory is freed */
        plans.erase(h);
        count_handles(-1);
        return CUFFT_SUCCESS;
}

cufftResult CUFFTAPI cufftSetAutoAllocation(cufftHandle h, int on)
{
        GUARD;
        FAIL;
        if (of(__func__, h).made)
                die("%s: after the plan was made", __func__);
        of(__func__, h).own_memory = on;
        return CUFFT_SUCCESS;
}

cufftResult CUFFTAPI cufftSetStream(cufftHandle h, cudaStream_t s)
{
        GUARD;
        FAIL;
        of(__func__, h).stream = s;
        return CUFFT_SUCCESS;
}

cufftResult CUFFTAPI cufftXtMakePlanMany(cufftHandle h, int rank, long long *n, long long *inembed, long long istride,
                                         long long idist, cudaDataType in, long long *onembed, long long ostride,
                                         long long odist, cudaDataType out, long long batch, size_t *work,
                                         cudaDataType type)
{
        GUARD;
        plan &p = of(__func__, h);
        const bool wide = type == CUDA_C_64F;
        const cudaDataType real = wide ? CUDA_R_64F : CUDA_R_32F;
        if (p.made || p.own_memory || rank != 1 || !inembed || !onembed || istride != ostride || *n < 1 || batch < 1)
                die("%s: not a batch of transforms, in memory of the caller, as they are simulated", __func__);
        if ((!wide && type != CUDA_C_32F) || (in != type && in != real) || (out != type && out != real) ||
            (in == real && out == real))
                die("%s: types that do not go together", __func__);
        FAIL;
        if (fails(__func__, LOAD) || breaks_capture())
                return CUFFT_ALLOC_FAILED;
        p.n = *n;
        p.stride = istride;
        p.distance[0] = idist;
        p.distance[1] = odist;
        p.batch = batch;
        p.real[0] = in == real;
        p.real[1] = out == real;
        p.wide = wide;
        p.made = true;
        *work = work_of(p);
        return CUFFT_SUCCESS;
}

cufftResult CUFFTAPI cufftSetWorkArea(cufftHandle h, void *work)
{
        GUARD;
        FAIL;
        of(__func__, h).work = work;
        return CUFFT_SUCCESS;
}

cufftResult CUFFTAPI cufftXtExec(cufftHandle h, void *in, void *out, int direction)
{
        GUARD;
        const plan p = of(__func__, h);
        const size_t element = p.wide ? 16 : 8;
        if (!p.made || p.device != current_device)
                die("%s: a plan that was not made, or is of another device", __func__);
        if ((uintptr_t)in % element || (uintptr_t)out % element)
                die("%s: %p or %p is not aligned to a complex element", __func__, in, out);
        if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)
                die("%s: direction %d", __func__, direction);
        check_device(__func__, in, extent(p, 0));
        check_device(__func__, out, extent(p, 1));
        check_device(__func__, p.work, work_of(p));
        FAIL;
        if (fails(__func__, LOAD))
                return CUFFT_ALLOC_FAILED;
        const bool inverse = p.real[0] ? false : p.real[1] ? true : direction == CUFFT_INVERSE;
        enqueue(p.stream, [=] {
                if (!plans.count(h))
                        die("cufftXtExec: a graph uses a plan that was destroyed");
                if (work_of(p))
                        memset(p.work, 0xa5, work_of(p));
                if (p.wide)
                        run(p, (double *)in, (double *)out, inverse);
                else
                        run(p, (float *)in, (float *)out, inverse);
        });
        return CUFFT_SUCCESS;
}
} // extern "C"
#endif
