/* norm.h - the arguments of normalisation and dropout; part of kernels.h. */
#ifndef LG_KERNELS_NORM_H
#define LG_KERNELS_NORM_H

#include "types.h"

#endif
