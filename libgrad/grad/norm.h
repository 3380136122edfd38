/* norm.h - normalisation and dropout. */
#ifndef LG_NORM_H
#define LG_NORM_H

#include "grad/base.h"

LG_BEGIN

LG_END_C
#endif
