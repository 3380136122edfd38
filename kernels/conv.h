/* conv.h - the arguments of convolutions; part of kernels.h. */
#ifndef LG_KERNELS_CONV_H
#define LG_KERNELS_CONV_H

#include "types.h"

#endif
