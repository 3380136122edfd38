/* create.h - what every creation does with its options. Private to libgrad/. */
#ifndef LG_CREATE_H
#define LG_CREATE_H

#include "tensor/tensor.h"

/* The caller's options, taken; `dtype` is set where the default is not f32. */
typedef lg_create_options lg__plan;

/* The options of a creation like x: dtype and device are x's unless they are given. */
bool lg__take_like(const lg_tensor *x, const char *op, const lg_create_options *options, lg__plan *ret);
/* The checks that every creation makes. */
bool lg__may_create(lg_ctx *c, const char *op, lg_shape shape, const lg__plan *o);
/* An uninitialised tensor after those checks. */
lg_tensor *lg__create(lg_ctx *c, const char *op, lg_shape shape, const lg__plan *o);
/* Ends a creation: t if all went well and, where asked, as a leaf; else it is freed. */
lg_tensor *lg__created(lg_tensor *t, bool ok, bool requires_grad);

#endif
