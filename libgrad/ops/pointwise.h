/* pointwise.h - declarations shared by the files of the elementwise ops. Private to libgrad/ops/. */
#ifndef LG_OPS_POINTWISE_H
#define LG_OPS_POINTWISE_H

#include "graph/op.h"

#define LG__POINTWISE_FIELDS(FIELD) FIELD(f64, p0, 0) FIELD(f64, p1, 0)
LG__ATTRIBUTES(pointwise, LG__POINTWISE_FIELDS)

bool lg__pointwise_infer(lg__call *call);
bool lg__pointwise_infer_compare(lg__call *call); /* for comparisons: the result is bool */
bool lg__pointwise_forward(lg__call *call);
bool lg__pointwise_fused(lg__vjp *v);
bool lg__pointwise_form(lg__form *f, const lg__call *call); /* pointwise_forms.c */
/* Returns parameter i of the op as a 0-d tensor of the dtype and device of the output's gradient. */
lg_tensor *lg__pointwise_parameter(const lg__vjp *v, int i);

/* Random numbers of kernels/variates.h, of parameters and of uniform numbers in [0, 1), and the derivative of a gamma
 * variate b by its shape a. Without derivatives. */
lg_tensor *lg_gamma_draw(lg_tensor *shape, lg_tensor *uniform);
lg_tensor *lg_gamma_slope(lg_tensor *shape, lg_tensor *drawn);
lg_tensor *lg_poisson_draw(lg_tensor *rate, lg_tensor *uniform);

/* Derivatives of elementwise ops: pointwise_vjp.c. */
#define UNARY(name, ...) bool lg__pointwise_vjp_##name(lg__vjp *v);
#define BINARY UNARY
#define TERNARY UNARY
#include "../../kernels/pointwise.def"

#endif
