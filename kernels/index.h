/* index.h - the arguments of picking and placing by index; part of kernels.h. */
#ifndef LG_KERNELS_INDEX_H
#define LG_KERNELS_INDEX_H

#include "types.h"

#endif
