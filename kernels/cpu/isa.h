/* isa.h - names of functions and tables that are compiled once for each instruction set. */
#ifndef LG_CPU_ISA_H
#define LG_CPU_ISA_H

#include "../kernels.h"

#define LG_ISA_NAME_(name, isa) lg__cpu_##name##_##isa
#define LG_ISA_NAME(name, isa) LG_ISA_NAME_(name, isa)
#define LG_CPU(name) LG_ISA_NAME(name, LG_ISA)

/* Returns the kernels of the instruction set "portable", "avx2" or "avx512"; NULL if this build or machine lacks it. */
const lg_kernels *lg__cpu_kernels(const char *isa);

#endif
