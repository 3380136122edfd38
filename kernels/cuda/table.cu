/* table.cu - the kernels of CUDA, in the order of the lists; each called on its device. */
#include "cuda.h"

#define UNARY(name, ...) ONE(name) ONE(name##_da)
#define BINARY(name, ...) ONE(name) ONE(name##_da) ONE(name##_db)
#define TERNARY(name, ...) ONE(name) ONE(name##_da) ONE(name##_db)
#define COMPARE(name, ...) ONE(name)
#define COMPARE_SCALAR(name, ...) ONE(name)
#define TEST(name, ...) ONE(name)

extern "C" {
#define ONE(name) bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a);
#include "../pointwise.def"
#undef ONE
extern const lg_kernels lg_cuda_kernels;
}
const lg_kernels lg_cuda_kernels = {
        {
#define ONE(name) lg_entry<lg_cuda_##name>::call,
#include "../pointwise.def"
#undef ONE
        },
#define KERNEL(name, args) lg_entry<lg_cuda_##name>::call,
#include "../kernels.def"
#undef KERNEL
};
