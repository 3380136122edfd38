/* conv_end.h - the end of a forward convolution, of sums that are in registers. */
#ifndef LG_CPU_CONV_END_H
#define LG_CPU_CONV_END_H

#include "conv.h"
#include "block.h"

#define LG_BOTH "conv_end.inc"
#include "both.inc"

#endif
