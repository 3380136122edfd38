/* bugs.cu - deliberate bugs in kernels: "bugs NAME" runs one and prints its results. tests/ptx/bugs.py knows which way
 * finds which. */
#ifdef LG_CUDASIM
#define RUN(k, n, ...) cudasim::start(#k, k, dim3(1), dim3(n), 0, nullptr, __VA_ARGS__)
#else
#include <cuda_runtime.h>
#define RUN(k, n, ...) k<<<1, n>>>(__VA_ARGS__)
#define LG_SHARED(type, name, count) __shared__ type name[count]
#endif
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A product that is rounded before the difference on a host only. */
static __global__ void contract(const float *a, float *o)
{
        o[threadIdx.x] = a[0] * a[0] - a[1];
}

/* Shifts by 30 to 33. */
static __global__ void shift(const float *a, float *o)
{
        o[threadIdx.x] = (float)(1u << (30 + threadIdx.x + (unsigned)a[2]));
}

/* Conversions of what the type cannot hold. */
static __global__ void convert(const float *a, float *o)
{
        const float x = a[3 + threadIdx.x];
        o[threadIdx.x] = (float)(int)x;
        o[4 + threadIdx.x] = (float)(unsigned)x;
}

static __global__ void divide(const float *a, float *o)
{
        o[threadIdx.x] = (float)(7 / ((int)a[2] + (threadIdx.x > 1)));
}

static __global__ void misaligned(const float *a, float *o)
{
        const float4 v = *(const float4 *)(a + 9);
        o[threadIdx.x] = v.x + v.w;
}

/* Reads behind the array, within the device's memory. */
static __global__ void beyond(const float *a, float *o)
{
        o[threadIdx.x] = a[16 + 48 * threadIdx.x];
}

static __global__ void host_pointer(const float *a, float *o)
{
        const float *p;
        memcpy(&p, a + 14, sizeof p);
        o[threadIdx.x] = *p;
}

static __global__ void unset(const float *a, float *o)
{
        float v;
        if (a[2] > 0)
                v = a[0];
        o[threadIdx.x] = v * a[8];
}

/* An exponential that is expected to be the host's to the last bit. */
static __global__ void functions(const float *a, float *o)
{
        o[threadIdx.x] = expf(a[9] * 0.3f * (float)(threadIdx.x + 1));
}

static __global__ void no_barrier(const float *a, float *o)
{
        LG_SHARED(float, s, 64);
        s[threadIdx.x] = a[8 + threadIdx.x % 4];
        o[threadIdx.x] = s[63 - threadIdx.x];
}

/* A shuffle that names lanes that do not come. */
static __global__ void lanes(const float *a, float *o)
{
        o[threadIdx.x] = threadIdx.x < 16 ? __shfl_down_sync(0xffffffffu, a[8], 1) : 0;
}

int main(int argc, char **argv)
{
        float own = 7, *p = &own, *a, *o, r[64] = {0};
        float h[16] = {1 + 0x1p-12f, 1 + 0x1p-11f, 0, NAN, 3e9f, -3e9f, 300.7f, 0, 2, 3, 4, 5, 6, 7};
        memcpy(h + 14, &p, sizeof p);
        cudaMalloc((void **)&a, sizeof h);
        cudaMalloc((void **)&o, sizeof r);
        cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
        cudaMemcpy(o, r, sizeof r, cudaMemcpyHostToDevice);
        const struct {
                const char *name;
                void (*kernel)(const float *, float *);
                unsigned threads;
        } bugs[] = {{"contract", contract, 1},
                    {"shift", shift, 4},
                    {"convert", convert, 4},
                    {"divide", divide, 4},
                    {"misaligned", misaligned, 1},
                    {"beyond", beyond, 4},
                    {"host_pointer", host_pointer, 1},
                    {"unset", unset, 1},
                    {"functions", functions, 4},
                    {"no_barrier", no_barrier, 64},
                    {"lanes", lanes, 32}};
        for (const auto &bug : bugs)
                if (argc > 1 && strcmp(argv[1], bug.name) == 0)
                        RUN(bug.kernel, bug.threads, a, o);
        const cudaError_t e = cudaGetLastError();
        cudaDeviceSynchronize();
        cudaMemcpy(r, o, sizeof r, cudaMemcpyDeviceToHost);
        cudaFree(a);
        cudaFree(o);
        for (int i = 0; i < 8; i++)
                printf("%s%.9g", i ? " " : "", r[i]);
        printf("\n");
        return e != cudaSuccess;
}
