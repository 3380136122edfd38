/* gpu_launches.c - reads the number of launches so far from the CUDA module that libgrad has loaded. */
#include <dlfcn.h>
#include <stdlib.h>
#include "gpu_bench.h"

int64_t count_launches(void)
{
        const char *path = getenv("LIBGRAD_CUDA");
        void *module = dlopen(path && *path ? path : "libgrad-cuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        if (!module)
                return -1;
        union {
                void *symbol;
                int64_t (*call)(void);
        } launches = {dlsym(module, "lg_cuda_launches")};
        int64_t count = launches.symbol ? launches.call() : -1;
        dlclose(module);
        return count;
}
