/* schedule.h - learning rates that change, gradients that are clipped, averages of weights. */
#ifndef LG_SCHEDULE_H
#define LG_SCHEDULE_H

#include "grad/optim.h"

LG_BEGIN

LG_END_C
#endif
