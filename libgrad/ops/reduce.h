/* reduce.h - which dimensions a reduction takes away: what reduce.c and reduce_made.c share. */
#ifndef LG_OPS_REDUCE_H
#define LG_OPS_REDUCE_H

#include "../op.h"

typedef struct lg__reduced {
        double correction;
        uint32_t dims; /* by bit */
        bool keep_dim;
} lg__reduced;

static inline bool lg__is_reduced(const lg__reduced *a, int dim)
{
        return a->dims >> dim & 1;
}

/* Checks a reduction's arguments for the function `name` and gives what was asked for. */
bool lg__reduced_of(const char *name, const lg_tensor *x, const lg_reduce_options *options, lg__reduced *ret);
/* The same, and x must be of a float dtype. */
bool lg__reduced_of_float(const char *name, const lg_tensor *x, const lg_reduce_options *options, lg__reduced *ret);
lg_dims lg__reduced_dims(int ndim, const lg__reduced *a);
lg_shape lg__reduced_shape(lg_shape s, const lg__reduced *a, bool keep_dim);
int64_t lg__reduced_count(lg_shape s, const lg__reduced *a);

#endif
