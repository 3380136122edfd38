/* table.c - table of all kernels of one instruction set. */
#include "cpu.h"

#define POINTWISE(name) bool LG_CPU(name)(lg_queue * q, const lg_pointwise_args *a);
#include "../pointwise.def"

extern const lg_kernels LG_CPU(kernels);
const lg_kernels LG_CPU(kernels) = {
        .pointwise =
                {
#define POINTWISE(name) [LG_PW_##name] = LG_CPU(name),
#include "../pointwise.def"
                },
#define KERNEL(name, args) .name = LG_CPU(name),
#include "../kernels.def"
};
