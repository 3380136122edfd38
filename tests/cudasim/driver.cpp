/* driver.cpp - a libcuda.so.1 that loads and runs nothing, with which cuDNN compiles kernels where there is no GPU.
 *
 * It has the functions that cuDNN and NVRTC look up by name. Those by which a compiled kernel is loaded say success, so
 * that a plan is finished; all others say what the toolkit's stub says, that this is no driver.
 */
#include <cuda.h>
#undef cuGetProcAddress

extern "C" {
CUresult cuInit(unsigned)
{
        return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
        *version = CUDA_VERSION;
        return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *, CUjit_option *, void **, unsigned, CUlibraryOption *,
                           void **, unsigned)
{
        *library = (CUlibrary)library; /* any address that is not NULL */
        return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *)
{
        *kernel = (CUkernel)library;
        return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary)
{
        return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute, CUkernel, CUdevice)
{
        *value = 0;
        return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice)
{
        return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char **text)
{
        *text = "this driver only loads";
        return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
        return cuGetErrorString(error, text);
}
}

/* Defines a function that is looked up, whose arguments it does not read, under its name in the library. */
#define REFUSED(name)                                                                                                  \
        extern "C" CUresult refused_##name(void) __asm__(#name);                                                       \
        CUresult refused_##name(void)                                                                                  \
        {                                                                                                              \
                return CUDA_ERROR_STUB_LIBRARY;                                                                        \
        }
REFUSED(cuCtxGetCurrent)
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPopCurrent)
REFUSED(cuCtxPushCurrent)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetCount)
REFUSED(cuGetExportTable)
REFUSED(cuGetProcAddress)
REFUSED(cuGetProcAddress_v2)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate)
REFUSED(cuLinkDestroy)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuStreamGetCtx)
