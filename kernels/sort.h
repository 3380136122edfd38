/* sort.h - the arguments of sorting; part of kernels.h. */
#ifndef LG_KERNELS_SORT_H
#define LG_KERNELS_SORT_H

#include "types.h"

#endif
