/* conv.h - convolution and pooling over images (N, C, H, W) and signals (N, C, L). */
#ifndef LG_CONV_H
#define LG_CONV_H

#include "grad/base.h"

LG_BEGIN

LG_END_C
#endif
