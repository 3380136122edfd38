/* norm.h - what normalisations and dropout share: dtypes and checks of their parameters. Private to ops/. */
#ifndef LG_OPS_NORM_H
#define LG_OPS_NORM_H

#include "../op.h"

/* What is computed in beside x: weights, biases and their gradients. */
static inline lg_dtype lg__norm_dtype(const lg_tensor *x)
{
        return x->at.dtype == LG_F64 ? LG_F64 : LG_F32;
}

bool lg__norm_check_float(const lg_tensor *x, const char *op);
/* x is of a float dtype and eps is not negative. */
bool lg__norm_check(const lg_tensor *x, double eps, const char *op);
/* x is live, and w and b are of its context or NULL. */
bool lg__norm_check_tensors(const lg_tensor *x, const lg_tensor *w, const lg_tensor *b, const char *op);
/* t is NULL, or a float tensor of that shape beside x. */
bool lg__norm_check_parameter(const lg_tensor *x, const lg_tensor *t, lg_shape shape, const char *op, const char *name);
/* A parameter as a kernel wants it, in x's lg__norm_dtype and contiguous. */
lg_tensor *lg__norm_parameter(lg_tensor *t, const lg_tensor *x);

#endif
