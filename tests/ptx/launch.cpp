/* launch.cpp - the runtime's functions that nvcc's objects call to register and launch kernels, which are here those of
 * translate.py. */
#include "ptx.h"
#include "runtime.h"
#include <cstdio>
#include <memory>
#include <set>

namespace ptx
{
const char *running = "";
u64 known_low = 1ull << 63, known_size = 64, shared_bytes; /* no device's memory yet */
char *shared_low;

void bad_address(const char *space, u64 at, size_t bytes, const char *file, int line)
{
        cudasim::die("%s, %s:%d: %zu bytes of %s memory at %#llx: the address is %s", running, file, line, bytes, space,
                     (unsigned long long)at, at % bytes ? "misaligned" : "outside of it");
}

extern "C" char __ehdr_start[],
        _end[] __attribute__((visibility("hidden"))); /* of this module, with its tables of constants */

void look_up(const char *space, u64 at, size_t bytes, const char *file, int line)
{
        if (at % bytes == 0 && at - (u64)__ehdr_start < (u64)(_end - __ehdr_start))
                return;
        const cudasim::device *d = cudasim::owner((const void *)at);
        if (!d || at % bytes)
                bad_address(space, at, bytes, file, line);
        known_low = (u64)d->memory.base;
        known_size = d->memory.bytes;
}

template <typename T> static T towards(int mode, T a, T b, T c)
{
        const int before = fegetround();
        volatile T x = a, y = b, z = c, r;
        fesetround(mode);
        r = std::fma(x, y, z);
        fesetround(before);
        return r;
}
f32 fused_towards(int mode, f32 a, f32 b, f32 c)
{
        return towards(mode, a, b, c);
}
f64 fused_towards(int mode, f64 a, f64 b, f64 c)
{
        return towards(mode, a, b, c);
}

namespace
{
std::map<const void *, const kernel *> &kernels() /* by the address of the host's function */
{
        static auto &all = *new std::map<const void *, const kernel *>;
        return all;
}

struct configuration {
        dim3 grid, block;
        size_t shared;
        cudaStream_t stream;
};
thread_local configuration pushed;

struct alignas(16) unit { /* of memory for a parameter */
        char bytes[16];
};

/* Writes to the file $PTX_LAUNCHED all kernels, each as "- FILE NAME", and then each that is launched as "+ FILE NAME".
 */
void count(const kernel *k)
{
        static FILE *const file = getenv("PTX_LAUNCHED") ? fopen(getenv("PTX_LAUNCHED"), "w") : nullptr;
        static auto &seen = *new std::set<const kernel *>;
        if (file && seen.empty())
                for (auto &one : kernels())
                        fprintf(file, "- %s %s\n", one.second->file, one.second->name);
        if (file && seen.insert(k).second) {
                fprintf(file, "+ %s %s\n", k->file, k->name);
                fflush(file);
        }
}
} // namespace
} // namespace ptx

using namespace ptx;

extern "C" {
void __cudaRegisterFatBinaryEnd(void **)
{
}
void __cudaUnregisterFatBinary(void **)
{
}
char __cudaInitModule(void **)
{
        return 1;
}

void __cudaRegisterFunction(void **file, const char *host, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *)
{
        const kernel *k = (const kernel *)file;
        while (k->name && strcmp(k->name, name) != 0)
                k++;
        if (!k->name)
                cudasim::die("there is no kernel %s in the PTX", name);
        kernels()[host] = k;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream)
{
        pushed = {grid, block, shared, stream};
        return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
        *grid = pushed.grid;
        *block = pushed.block;
        *shared = pushed.shared;
        *(cudaStream_t *)stream = pushed.stream;
        return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *k, const void *host)
{
        auto found = kernels().find(host);
        if (found == kernels().end())
                return cudaErrorInvalidDeviceFunction;
        *k = (cudaKernel_t)found->second;
        return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream)
{
        const kernel *k = (const kernel *)handle;
        count(k);
        if ((size_t)block.x * block.y * block.z > k->most_threads)
                cudasim::die("%s: more threads than its __launch_bounds__, %zu", k->name, k->most_threads);
        if (k->shared > 48 * 1024)
                cudasim::die("%s: %zu bytes of static shared memory", k->name, k->shared);
        auto copies = std::make_shared<std::vector<std::vector<unit>>>();
        std::vector<char *> params;
        for (size_t i = 0; i < k->count; i++) {
                copies->emplace_back((k->params[i] + sizeof(unit) - 1) / sizeof(unit));
                memcpy(copies->back().data(), args[i], k->params[i]);
                params.push_back((char *)copies->back().data());
        }
        cudasim::launch(k->name, grid, block, shared, stream, [k, params, copies = std::move(copies)] {
                static char key;
                if (k->shared)
                        shared_low = (char *)cudasim::shared(&key, k->shared);
                shared_bytes = k->shared;
                running = k->name;
                k->run(params.data());
        });
        return cudaPeekAtLastError();
}

long ptx_narrow(void)
{
        return cudasim::narrow();
}
}
