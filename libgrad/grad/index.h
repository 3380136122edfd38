/* index.h - picking and placing elements by index, sorting, joining and taking apart. */
#ifndef LG_INDEX_H
#define LG_INDEX_H

#include "grad/base.h"

LG_BEGIN

/* The tensors of the list joined along a dimension; all other sizes are equal; dtypes are promoted. */
LG_API lg_tensor *lg_cat(lg_list list, int dim);

LG_END_C
#endif
