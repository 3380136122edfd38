/* cudnn_calls.h - what all functions of the simulated cuDNN share: the handle, the lock, failures on purpose. */
#ifndef SIM_CUDNN_CALLS_H
#define SIM_CUDNN_CALLS_H

#include "sim.h"
#include <cudnn.h>

struct cudnnContext {
        cudaStream_t stream;
        int device;
};

namespace cudasim::dnn
{
/* Returns s, and has cudnnGetLastErrorString say that the call fails on purpose. */
cudnnStatus_t failed(const char *call, cudnnStatus_t s);
} // namespace cudasim::dnn

#define LOCK std::lock_guard<std::recursive_mutex> guard_(everything())
#define FAIL                                                                                                           \
        if (fails(__func__))                                                                                           \
        return failed(__func__, CUDNN_STATUS_INTERNAL_ERROR)
#define FAIL_MEMORY(where)                                                                                             \
        if (fails(__func__))                                                                                           \
        return failed(__func__, CUDNN_STATUS_INTERNAL_ERROR_##where##_ALLOCATION_FAILED)

#endif
