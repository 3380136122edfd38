/* pool.h - the arguments of pooling; part of kernels.h. */
#ifndef LG_KERNELS_POOL_H
#define LG_KERNELS_POOL_H

#include "types.h"

#endif
