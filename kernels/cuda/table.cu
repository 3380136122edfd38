/* table.cu - the table of CUDA kernels, in the order of the .def lists; each runs with its queue's device current. */
#include "cuda.h"

extern "C" {
#define POINTWISE(name) bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a);
#include "../pointwise.def"
extern const lg_kernels lg_cuda_kernels;
}
const lg_kernels lg_cuda_kernels = {
        {
#define POINTWISE(name) lg_entry<lg_cuda_##name>::call,
#include "../pointwise.def"
        },
#define KERNEL(name, args) lg_entry<lg_cuda_##name>::call,
#include "../kernels.def"
};
