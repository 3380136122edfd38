/* table.c - the kernels of one instruction set, in the order of the lists. */
#include "cpu.h"

#define UNARY(name, ...) ONE(name) ONE(name##_da)
#define BINARY(name, ...) ONE(name) ONE(name##_da) ONE(name##_db)
#define TERNARY(name, ...) ONE(name) ONE(name##_da) ONE(name##_db)
#define COMPARE(name, ...) ONE(name)
#define COMPARE_SCALAR(name, ...) ONE(name)
#define TEST(name, ...) ONE(name)

#define ONE(name) bool LG_CPU(name)(lg_queue * q, const lg_pointwise_args *a);
#include "../pointwise.def"
#undef ONE

extern const lg_kernels LG_CPU(kernels);
const lg_kernels LG_CPU(kernels) = {
        .pointwise =
                {
#define ONE(name) [LG_PW_##name] = LG_CPU(name),
#include "../pointwise.def"
#undef ONE
                },
#define KERNEL(name, args) .name = LG_CPU(name),
#include "../kernels.def"
#undef KERNEL
};
