/* table.cu - the kernels of CUDA, in the order of the lists; each begins by making its device the current one. */
#include "cuda.h"

#define UNARY(name, ...) ONE(name) ONE(name##_da)
#define BINARY(name, ...) ONE(name) ONE(name##_da) ONE(name##_db)
#define TERNARY(name, ...) ONE(name) ONE(name##_da) ONE(name##_db)
#define COMPARE(name, ...) ONE(name)
#define COMPARE_SCALAR(name, ...) ONE(name)
#define TEST(name, ...) ONE(name)

template <typename A, bool (*kernel)(lg_queue *, const A *)> static bool on_its_device(lg_queue *q, const A *a)
{
        return lg_cuda_select(q) && kernel(q, a);
}

extern "C" {
#define ONE(name) bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a);
#include "../pointwise.def"
#undef ONE
extern const lg_kernels lg_cuda_kernels;
}
const lg_kernels lg_cuda_kernels = {
        {
#define ONE(name) on_its_device<lg_pointwise_args, lg_cuda_##name>,
#include "../pointwise.def"
#undef ONE
        },
#define KERNEL(name, args) on_its_device<args, lg_cuda_##name>,
#include "../kernels.def"
#undef KERNEL
};
