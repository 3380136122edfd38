/* init.h - filling parameters with first values. */
#ifndef LG_INIT_H
#define LG_INIT_H

#include "grad/nn.h"

LG_BEGIN

LG_END_C
#endif
