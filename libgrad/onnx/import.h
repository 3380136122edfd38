/* import.h - the operators of ONNX files, as functions that compute them by libgrad's ops. Private to onnx/. */
#ifndef LG_ONNX_IMPORT_H
#define LG_ONNX_IMPORT_H

#include "model.h"

#define LG__ONNX_MOST_OUT 8 /* results of a node */
#define LG__ONNX_MOST_IN 64 /* operands of a node, but for those of Concat, Sum, Max, Min and Mean */

/* The run of one node. Operands are on one device, except those that the operator reads on the host. */
typedef struct lg__onnx_call {
        lg_ctx *ctx;
        const lg__onnx_model *model;
        const lg__onnx_node *node;
        int64_t opset;
        int in_count;                      /* without operands at the end that are left out */
        lg_tensor **in;                    /* NULL: left out */
        uint32_t known;                    /* bits of operands whose values do not depend on those of the inputs */
        lg_tensor *out[LG__ONNX_MOST_OUT]; /* results after the first; the function sets those that it is asked for */
} lg__onnx_call;

/* Computes the results of a node; returns the first, or NULL with an error. May return an operand. */
typedef lg_tensor *lg__onnx_fn(lg__onnx_call *c);

typedef struct lg__onnx_operator {
        const char *name;
        lg__onnx_fn *fn;
        int least_in, most_in; /* number of operands; most_in -1: any number */
        uint32_t host;         /* bits of operands whose values are read on the host: shapes, axes, sizes */
        uint32_t stats;        /* bits of operands that are not trained: running statistics */
        bool draws;            /* the results are random */
} lg__onnx_operator;

/* The head of an operator's function; operators.def lists all. */
#define LG__ONNX(name) lg_tensor *lg__onnx_##name(lg__onnx_call *c)

/* Returns the operator of that name, or NULL. */
const lg__onnx_operator *lg__onnx_find(const char *name);

/* ---- attributes ---- */

/* Return the value of an attribute, or `otherwise` if the node has none of that name and type. */
int64_t lg__onnx_int(const lg__onnx_call *c, const char *name, int64_t otherwise);
double lg__onnx_float(const lg__onnx_call *c, const char *name, double otherwise);
const char *lg__onnx_text(const lg__onnx_call *c, const char *name, const char *otherwise);
/* Returns an attribute of that name, or NULL. */
const lg__onnx_attribute *lg__onnx_attribute_of(const lg__onnx_call *c, const char *name);
/* Returns whether the node needs its result i. */
bool lg__onnx_wants(const lg__onnx_call *c, int i);

/* ---- operands ---- */

/* Whole numbers: shapes, axes, sizes. */
typedef struct lg__onnx_ints {
        int64_t count;
        int64_t v[256];
} lg__onnx_ints;

/* Returns operand i, or NULL if it is left out. */
static inline lg_tensor *lg__onnx_in(const lg__onnx_call *c, int i)
{
        return i < c->in_count ? c->in[i] : NULL;
}
/* Reads all values of operand i, as lg_read() does. lg_onnx_save() permits it if they do not depend on the inputs. */
bool lg__onnx_read(const lg__onnx_call *c, int i, void *to, lg_dtype dtype, size_t bytes);
/* Reads operand i, or an attribute, as whole numbers; if there is none, ret->count is -1. False with an error. */
bool lg__onnx_ints_in(const lg__onnx_call *c, int i, lg__onnx_ints *ret);
bool lg__onnx_ints_of(const lg__onnx_call *c, const char *name, lg__onnx_ints *ret);
/* Returns whether all are sizes, 0 to INT32_MAX, so that sums and products of two do not overflow; else sets an error.
 */
bool lg__onnx_are_sizes(const lg__onnx_call *c, const lg__onnx_ints *ints);
/* Reads axes from operand i or, if there is none, from attribute `name`, as dims of a tensor of `ndim` dimensions. */
bool lg__onnx_axes(const lg__onnx_call *c, int i, const char *name, int ndim, lg_dims *ret);
/* Reads operand i, one number. Returns `otherwise` if it is left out. The context's error tells a failure. */
double lg__onnx_number(const lg__onnx_call *c, int i, double otherwise);
/* The same for a whole number within the range of int32_t, which larger ones are cut to. */
int32_t lg__onnx_whole(const lg__onnx_call *c, int i, int32_t otherwise);
/* Returns dim, which may count from the end, as one of 0 to ndim - 1; -1 with an error. */
int lg__onnx_axis(const lg__onnx_call *c, int64_t axis, int ndim);

/* Sets an error that begins with the operator's name and the node's. Returns NULL. */
void *lg__onnx_fail(const lg__onnx_call *c, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);

#endif
