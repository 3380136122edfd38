/* current.cu - lg_on_device: changes the thread's current device for the time of a call, then restores the caller's. */
#include "cuda.h"
#include <cuda.h>
#ifndef LG_CUDASIM
#include <dlfcn.h>
#endif

typedef CUresult (*context_state)(CUdevice, unsigned *, int *);

static context_state find_context_state()
{
#ifdef LG_CUDASIM
        return cuDevicePrimaryCtxGetState;
#else
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); /* the CUDA runtime has loaded libcuda already */
        return driver ? (context_state)dlsym(driver, "cuDevicePrimaryCtxGetState") : NULL;
#endif
}

/* Returns false if the process does not use that device yet: cudaSetDevice would then take memory there. */
static bool in_use(int index)
{
        static const context_state state = find_context_state();
        unsigned flags;
        int active = 1;
        return !state || state(index, &flags, &active) != CUDA_SUCCESS || active;
}

lg_on_device::lg_on_device(int index) : call("cudaGetDevice"), error(cudaGetDevice(&before)), moved(false)
{
        if (error == cudaSuccess && before != index) {
                call = "cudaSetDevice";
                error = cudaSetDevice(index);
                moved = error == cudaSuccess;
        }
        if (error != cudaSuccess)
                cudaGetLastError();
}

lg_on_device::~lg_on_device()
{
        if (moved && in_use(before) && cudaSetDevice(before) != cudaSuccess)
                cudaGetLastError();
}
