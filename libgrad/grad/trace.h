/* trace.h - looking inside a run: what ran where, where a NaN came from, where the memory is. */
#ifndef LG_TRACE_H
#define LG_TRACE_H

#include "grad/nn.h"

LG_BEGIN

LG_END_C
#endif
