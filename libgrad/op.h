/* op.h - what an op is, and the one function that applies it. Private to libgrad/. */
#ifndef LG_OP_H
#define LG_OP_H

#include "core.h"

#define LG__MAX_OUT 8
#define LG__MAX_SAVED 8 /* inputs that can be saved */

/* An application on its way: inputs after promotion, outputs to be described (infer) and filled (forward). */
typedef struct lg__call {
        lg_ctx *ctx;
        const lg__op *op;
        lg__device *device;
        int in_count;
        lg_tensor *const *in; /* entries may be NULL where the op allows it */
        const void *attributes;
        int out_count;
        unsigned saves;              /* set by infer: what this application saves beside the op's saves[] */
        lg_tensor *out[LG__MAX_OUT]; /* made by lg__apply between infer and forward */
        /* Set by infer: dtype and shape, strides unless row-major; views: all of it. As many as the op has outputs are
         * zero before. */
        lg__layout out_at[LG__MAX_OUT];
} lg__call;

/* A derivative on its way. */
typedef struct lg__vjp {
        lg_ctx *ctx;
        const lg__op *op;
        const lg__node *node;
        const void *attributes;
        int in_count, out_count;
        lg_tensor *in[LG__MAX_SAVED]; /* saved inputs; NULL: not saved */
        lg_tensor **grad_in;          /* to be set where needs[i]; shapes broadcast to the input's are summed later */
        const bool *needs;
        lg_tensor *out[LG__MAX_OUT];  /* saved outputs; NULL: not saved */
        lg_tensor *grad[LG__MAX_OUT]; /* of the outputs; NULL: nobody used it */
} lg__vjp;

enum {
        LG__PROMOTE = 1,      /* inputs are cast to their common dtype */
        LG__TO_FLOAT = 2,     /* integer inputs become f32 (after promotion) */
        LG__FLOAT = 4,        /* integer inputs are an error */
        LG__VIEW = 8,         /* the output shares the storage of input 0 */
        LG__NO_GRAD = 16,     /* no derivative */
        LG__OPTIONAL = 32,    /* the last input may be NULL */
        LG__VARIADIC = 64,    /* any number of inputs */
        LG__ANY_DEVICE = 128, /* the op itself deals with devices (to) */
        LG__CONDITION = 256,  /* input 0 is bool and takes no part in promotion */
        LG__TO_NUMBER = 512,  /* bool inputs become i64 */
};

/* What a derivative needs again: bits of inputs and of outputs. */
#define LG__IN(i) (1u << (i))
#define LG__OUT(i) (1u << (16 + (i)))

struct lg__op {
        const char *name;
        int in_count, out_count;
        unsigned flags;
        unsigned saves[3]; /* what the derivative by input 0, 1, 2 needs again */
        bool (*infer)(lg__call *call);
        bool (*forward)(lg__call *call); /* NULL for views */
        bool (*vjp)(lg__vjp *v);         /* written in ops */
        bool (*fused)(lg__vjp *v);       /* the same by a kernel, first order only; may be NULL */
        const char *arguments[3];        /* names of the inputs, for messages */
        int pointwise;                   /* lg_pointwise_id of an elementwise op's kernel; its derivatives follow */
};

/* The structural ops, from ops.def, LG__OP(matmul) for one; the elementwise ones by the number of their kernel. */
enum {
#define OP(name, ...) LG__OP_##name,
#define COMPOSITE(name)
#include "ops/skip_pointwise.h"
#include "ops/ops.def"
#include "ops/skip_end.h"
#undef OP
#undef COMPOSITE
        LG__OP_COUNT
};
extern const lg__op lg__ops[LG__OP_COUNT];
extern const lg__op lg__pointwise_ops[LG_PW_COUNT]; /* rows without a name: derivatives */
#define LG__OP(name) (&lg__ops[LG__OP_##name])

/* Applies an op: checks, promotion, shape rule, outputs, kernel, recording. ctx may be NULL (then it is the inputs').
 * Gives out_count results to ret_out and returns the first, or NULL. */
lg_tensor *lg__apply(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, const void *attributes,
                     size_t bytes, lg_tensor **ret_out);
lg_tensor *lg__apply1(const lg__op *op, lg_tensor *x, const void *attributes, size_t bytes);
lg_tensor *lg__apply2(const lg__op *op, lg_tensor *x, lg_tensor *y, const void *attributes, size_t bytes);

/* The dtype that an op of these n inputs, some of which may be NULL, computes in. PyTorch's rule: 0-d tensors decide
 * only if they are of a higher category (bool, integer, float) than the others. */
lg_dtype lg__common_dtype(lg_tensor *const *in, int n);
/* 16-bit floats as f32, others as they are, NULL as NULL. Functions that are made of several ops compute so and cast
 * their result: it is rounded once, and what leads to it may be out of the 16-bit range. */
static inline lg_tensor *lg__widened(lg_tensor *x)
{
        return x && (x->at.dtype == LG_F16 || x->at.dtype == LG_BF16) ? lg_cast(x, LG_F32) : x;
}

/* The shape that a and b broadcast to (NumPy's rule), or LG_ERR_SHAPE. */
bool lg__broadcast(lg_ctx *c, const char *op, lg_shape a, lg_shape b, lg_shape *ret);
/* x itself if it lies channels-last already, else a copy that does (recorded); 3 dimensions or more. */
lg_tensor *lg__channels_last(lg_tensor *x);
/* x summed to a shape that broadcasts to x's: the one place where gradients of broadcasts are summed. */
lg_tensor *lg__sum_to(lg_tensor *x, lg_shape shape);
/* dim in 0 ... ndim-1 from one that may be negative; -1 and LG_ERR_ARGUMENT otherwise. */
int lg__dim(lg_ctx *c, const char *op, int dim, int ndim);
/* The same along the lines of x, which is checked; a 0-d tensor is a line of one. */
int lg__line_dim(const lg_tensor *x, const char *op, int dim);
/* A shape as (outer, n, inner) around a dimension; a 0-d shape is one row of one. */
void lg__split(lg_shape s, int dim, int64_t *ret_outer, int64_t *ret_n, int64_t *ret_inner);
/* Strides of t read as `shape` (broadcast): 0 where sizes are repeated. */
void lg__broadcast_strides(const lg__layout *t, lg_shape shape, int64_t strides[LG_MAX_DIMS]);
/* A 0-d constant of x's dtype and device, outside the graph. */
lg_tensor *lg__constant(const lg_tensor *x, double value);
/* out = kernel(in...), unrecorded: shapes broadcast to out's. */
bool lg__pointwise_run(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op);
/* True if t's values may be changed in place (inplace.c); otherwise an error is set. Who changes them bumps the
 * storage's version. */
bool lg__may_change(const lg_tensor *t, const char *op, const char *argument);
/* That a loss knows this reduction. LG_BATCH_MEAN is for those that say so. */
bool lg__check_reduction(lg_ctx *c, const char *op, lg_reduction reduction, bool batch_mean);
/* The shape and dtype of input i of a node under derivation. */
static inline const lg__edge *lg__input(const lg__vjp *v, int i)
{
        return &v->node->edges[i];
}

#endif
