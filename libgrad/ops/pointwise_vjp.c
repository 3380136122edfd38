/* pointwise_vjp.c - the derivatives of elementwise ops as ops: the formulas of kernels/pointwise.def, with their words
 * defined as calls. The file contains nothing else, because the macros G, X, A, B, C and Y would affect other code. */
#include <math.h>
#include "../../kernels/constants.h"
#include "pointwise.h"
#include "vocabulary.h"

#define V1(op, a) lg_##op(a)
#define V2(op, a, b) lg_##op(a, b)
#define VN(op, a, number) lg_##op(a, number)
#define V3(op, a, b, c) lg_##op(a, b, c)
#define K(value) lg__constant(v->grad[0], value)
#define P0 lg__pointwise_parameter(v, 0)
#define P1 lg__pointwise_parameter(v, 1)
#define NUMBER0 ((const pointwise_attributes *)v->attributes)->p0
#define G v->grad[0]
#define X v->in[0]
#define A v->in[0]
#define B v->in[1]
#define C v->in[0]
#define Y v->out[0]

#define UNARY(name, types, params, formula, dx, domain, kinks)                                                         \
        bool lg__pointwise_vjp_##name(lg__vjp *v)                                                                      \
        {                                                                                                              \
                return (v->grad_in[0] = dx) != NULL;                                                                   \
        }
#define BINARY(name, types, formula, da, db, domain_a, domain_b, kinks)                                                \
        bool lg__pointwise_vjp_##name(lg__vjp *v)                                                                      \
        {                                                                                                              \
                if (v->needs[0] && !(v->grad_in[0] = da))                                                              \
                        return false;                                                                                  \
                return !v->needs[1] || (v->grad_in[1] = db) != NULL;                                                   \
        }
#define TERNARY(name, types, formula, da, db, domain_a, domain_b)                                                      \
        bool lg__pointwise_vjp_##name(lg__vjp *v)                                                                      \
        {                                                                                                              \
                if (v->needs[1] && !(v->grad_in[1] = da))                                                              \
                        return false;                                                                                  \
                return !v->needs[2] || (v->grad_in[2] = db) != NULL;                                                   \
        }
#include "../../kernels/pointwise.def"
