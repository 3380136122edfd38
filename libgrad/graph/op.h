/* op.h - what an op is, and the one function that applies it. Private to libgrad/. */
#ifndef LG_OP_H
#define LG_OP_H

#include "graph/graph.h"

#define LG__MAX_OUT 8
#define LG__MAX_ATTRIBUTES 256 /* bytes of an op's attributes */

/* ---- signatures: all of an op that can be said in data ---- */

/* Which dtypes an operand takes. Those up to LG__FLOAT take part in the promotion of an op that promotes. */
typedef enum lg__class {
        LG__ANY,    /* any */
        LG__NUMBER, /* any; bool is cast to i64 */
        LG__WHOLE,  /* any; all integers and bool are cast to i64 */
        LG__REAL,   /* any; integers and bool are cast to f32 */
        LG__FLOAT,  /* float dtypes */
        LG__WEIGHT, /* float dtypes; cast to f64 beside an input 0 of f64, else to f32 */
        LG__INDEX,  /* i64 */
        LG__MASK    /* bool */
} lg__class;

/* Which layout an operand has; one of another is copied, and the copy recorded. */
typedef enum lg__order {
        LG__STRIDED,       /* any */
        LG__ROW_MAJOR,     /* contiguous */
        LG__CHANNELS_LAST, /* from 3 dimensions on; below, contiguous */
        LG__KERNEL         /* row-major or, on devices whose convolutions take it, channels last */
} lg__order;

/* Bits of lg__operand.saved_for: the derivative by input i. */
#define LG__BY(i) (1u << (i))

typedef struct lg__operand {
        const char *name;
        lg__class takes;
        lg__order order;
        bool optional;      /* may be NULL */
        bool variadic;      /* the last one: one or more, which share a bit of saved_for */
        uint32_t saved_for; /* the derivatives that need its value */
} lg__operand;

typedef struct lg__result {
        const char *name;
        uint32_t saved_for;
} lg__result;

/* What lg_autocast() makes of float inputs, if none is f64: nothing, casts to the dtype of the region, to f32, or to
 * the widest of them. They are those of PyTorch's ATen/autocast_mode.h for CUDA. What a composite of the first class
 * does inside is not cast either. */
typedef enum lg__autocast { LG__AS_IT_IS, LG__LOW, LG__F32, LG__WIDEST } lg__autocast;

enum {
        LG__PROMOTE = 1,   /* inputs are cast to their common dtype */
        LG__ALIASES = 2,   /* the result shares the storage of input 0 */
        LG__ACROSS = 4,    /* inputs and results may be on several devices */
        LG__UNORDERED = 8, /* sums in any order, unless lg_set_deterministic is on */
        LG__HANDLES = 16,  /* its derivative is the program's: it gets handles that it may keep */
        LG__ADDS = 32      /* adds to input 0 in place */
};

/* ---- attributes: typed fields, from which the struct and its text are made ---- */

/* The types of fields, in C: numbers, and others. */
#define LG__NUMBER_TYPES(TYPE)                                                                                         \
        TYPE(bool, bool)                                                                                               \
        TYPE(int, int)                                                                                                 \
        TYPE(i64, int64_t)                                                                                             \
        TYPE(u64, uint64_t)                                                                                            \
        TYPE(f64, double)                                                                                              \
        TYPE(reduction, lg_reduction)                                                                                  \
        TYPE(origin, lg__origin)
#define LG__FIELD_TYPES(TYPE)                                                                                          \
        LG__NUMBER_TYPES(TYPE)                                                                                         \
        TYPE(dtype, lg_dtype)                                                                                          \
        TYPE(device, lg_device)                                                                                        \
        TYPE(dims, lg_dims)                                                                                            \
        TYPE(shape, lg_shape)                                                                                          \
        TYPE(geometry, lg_conv_geometry)
#define LG__TYPE(of, type) LG__FIELD_##of,
typedef enum lg__field_type { LG__FIELD_TYPES(LG__TYPE) } lg__field_type;
#undef LG__TYPE
#define LG__TYPE(of, type) typedef type lg__field_##of;
LG__FIELD_TYPES(LG__TYPE)
#undef LG__TYPE
typedef struct lg__field {
        const char *name;
        lg__field_type type;
        double usual; /* the default of a number, which texts leave out */
} lg__field;
#define LG__MEMBER(type, name, usual) lg__field_##type name;
#define LG__ROW(type, name, usual) {#name, LG__FIELD_##type, usual},
/* LG__ATTRIBUTES(cumsum, FIELDS) with a list FIELDS(FIELD) of FIELD(type, name, default) makes the struct
 * cumsum_attributes and cumsum_fields, its description for LG__HAS(cumsum) in the signature. */
#define LG__ATTRIBUTES(of, FIELDS)                                                                                     \
        typedef struct of##_attributes {                                                                               \
                FIELDS(LG__MEMBER)                                                                                     \
        } of##_attributes;                                                                                             \
        _Static_assert(sizeof(of##_attributes) <= LG__MAX_ATTRIBUTES, "attributes are too large");                     \
        static const lg__field of##_fields[] = {FIELDS(LG__ROW){NULL}};
#define LG__HAS(of) .fields = of##_fields, .attributes_bytes = sizeof(of##_attributes)

/* ---- ops ---- */

/* An application on its way: inputs after promotion, outputs to be described (infer) and filled (forward). */
typedef struct lg__call {
        lg_ctx *ctx;
        const lg__op *op;
        lg__device *device;
        int in_count;
        lg_tensor *const *in; /* entries are NULL where an optional operand was not given */
        void *attributes;     /* a copy, in which infer completes what depends on the inputs; of a composite: options */
        uint32_t moved;       /* the inputs that forward has changed in place, bits LG__BY(i) */
        int out_count;
        lg_tensor *out[LG__MAX_OUT]; /* out_count of them, made by lg__apply between infer and forward */
        /* Set by infer: dtype and shape, strides unless row-major; of aliases all of it. Before, the first result is
         * like input 0, in dtype and shape or as its alias, and the others are zero. */
        lg__layout out_at[LG__MAX_OUT];
} lg__call;

/* A derivative on its way. */
typedef struct lg__vjp {
        lg_ctx *ctx;
        const lg__op *op;
        const lg__node *node;
        const void *attributes;
        int in_count, out_count;
        lg_tensor **in;      /* saved inputs; NULL: not saved */
        lg_tensor **grad_in; /* to be set where needs[i]; shapes broadcast to the input's are summed later */
        /* The sum of what has arrived at that input, of its dtype, shape and device: a derivative may add to it in
         * place, and set grad_in[i] to it. NULL: nothing has, or it may not be changed. */
        lg_tensor **sums;
        const bool *needs;
        lg_tensor *out[LG__MAX_OUT];  /* saved outputs; NULL: not saved */
        lg_tensor *grad[LG__MAX_OUT]; /* of the outputs, NULL: nobody used it; may be released and set to NULL */
} lg__vjp;

struct lg__op {
        const char *name;
        const lg__operand *operands;
        const lg__result *results;
        int operand_count, result_count;
        unsigned flags;
        lg__autocast autocast;
        const lg__field *fields; /* of the attributes, up to one without a name; NULL: none */
        size_t attributes_bytes;
        bool (*infer)(lg__call *call);   /* shape rule: what the results are, without making them; NULL: like input 0 */
        bool (*forward)(lg__call *call); /* NULL: nothing is computed */
        bool (*vjp)(lg__vjp *v);         /* the derivative, written in ops; NULL: there is none */
        bool (*fused)(lg__vjp *v);       /* the same by a kernel, first order only; may be NULL */
        /* A composite has nothing of these but makes its first result of other ops. */
        lg_tensor *(*compose)(const lg__call *call);
        void (*release)(lg_ctx *c, const void *attributes); /* of a node that ends; NULL: nothing to do */
        int pointwise;   /* lg_pointwise_id of an elementwise op's kernel; its derivatives follow */
        uint32_t passes; /* elementwise: the derivatives that are the gradient itself, bits LG__BY(i) */
};
#define LG__COUNT_OF(type, ...) ((int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))
#define LG__OPERANDS(...)                                                                                              \
        .operands = (const lg__operand[]){__VA_ARGS__}, .operand_count = LG__COUNT_OF(lg__operand, __VA_ARGS__)
#define LG__RESULTS(...)                                                                                               \
        .results = (const lg__result[]){__VA_ARGS__}, .result_count = LG__COUNT_OF(lg__result, __VA_ARGS__)

/* LG__DEFINE(matmul, LG__OPERANDS(...), ...) is the op of that name. LG__COMPOSITE(mean, {"x", LG__FLOAT}) is the one
 * of a static function compose_mean. */
#define LG__DEFINE(of, ...) const lg__op lg__op_##of = {.name = #of, __VA_ARGS__};
#define LG__COMPOSITE(of, ...) LG__DEFINE(of, .compose = compose_##of, LG__OPERANDS(__VA_ARGS__))

/* The structural ops, each of which stands in the file of its family, and composites: LG__OP(matmul) for one. The
 * elementwise ones by the number of their kernel. */
#define OP(name) extern const lg__op lg__op_##name;
#define COMPOSITE(name) OP(name)
#include "ops/ops.def"
extern const lg__op lg__pointwise_ops[LG_PW_COUNT]; /* rows without a name: derivatives */
#define LG__OP(name) (&lg__op_##name)
bool lg__has_elementwise(const char *name);
/* Whether an elementwise op takes these numbers; if not, sets an error of `name`. */
bool lg__pointwise_takes(lg_ctx *c, const char *name, int id, double p0, double p1);

/* remake.c: with the recipe of its result, an application that was recorded lets what follows save nothing but that. */
bool lg__remember(const lg__call *call);
/* Makes what a derivative reads again, if it was given back; errors are those of `name`. */
bool lg__remake(lg__storage *s, const char *name);

/* The name of input i. */
const char *lg__operand_name(const lg__op *op, int i);
static inline const lg__operand *lg__operand_of(const lg__op *op, int i)
{
        return &op->operands[i < op->operand_count ? i : op->operand_count - 1];
}
/* The attributes that are not the usual ones, "dim 1, descending"; cut to the text's size. */
typedef struct lg__attributes_text {
        char s[200];
} lg__attributes_text;
lg__attributes_text lg__attributes_text_of(const lg__op *op, const void *attributes);

/* The context of these inputs if they are all that the op's signature wants: given, live, of one context without an
 * error and of one device, of the right dtypes. Else NULL, with an error where there is a context to take it. */
lg_ctx *lg__accept(const lg__op *op, lg_tensor *const *in, int in_count);
/* Casts and copies inputs to the dtypes and layouts of the signature; recorded. */
bool lg__prepare(const lg__op *op, lg_tensor **in, int in_count);

/* Applies an op: checks, promotion, shape rule, outputs, kernel, recording. Entries of in may be NULL, which is an
 * error unless the operand is optional. attributes: NULL if the op has none. Gives the results to ret_out, unless that
 * is NULL, and returns the first, or NULL. */
lg_tensor *lg__apply(const lg__op *op, lg_tensor *const *in, int in_count, const void *attributes, lg_tensor **ret_out);
/* The same of an op whose inputs lg_autocast() casts: autocast.c. */
lg_tensor *lg__apply_cast(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, const void *attributes,
                          lg_tensor **ret_out);
lg_tensor *lg__apply1(const lg__op *op, lg_tensor *x, const void *attributes);
lg_tensor *lg__apply2(const lg__op *op, lg_tensor *x, lg_tensor *y, const void *attributes);
#define LG__APPLY(name, attributes, ...)                                                                               \
        lg__apply(LG__OP(name), (lg_tensor *[]){__VA_ARGS__}, LG__COUNT_OF(lg_tensor *, __VA_ARGS__), attributes, NULL)

/* The dtype that an op of these n inputs, some of which may be NULL, computes in. PyTorch's rule: 0-d tensors decide
 * only if they are of a higher category (bool, integer, float) than the others. */
lg_dtype lg__common_dtype(lg_tensor *const *in, int n);
/* 16-bit floats as f32, others as they are, NULL as NULL. Functions that are made of several ops compute so and cast
 * their result: it is rounded once, and what leads to it may be out of the 16-bit range. */
static inline lg_tensor *lg__widened(lg_tensor *x)
{
        return x && (x->at.dtype == LG_F16 || x->at.dtype == LG_BF16) ? lg_cast(x, LG_F32) : x;
}

/* The result of an op that is no view, made of x by others that may have had nothing to do. */
static inline lg_tensor *lg__made(lg_tensor *y, const lg_tensor *x)
{
        return y && y->storage == x->storage ? lg_copy(y, LG_NO_DEVICE) : y;
}

/* x itself if it lies channels-last already, else a copy that does (recorded); 3 dimensions or more. */
lg_tensor *lg__channels_last(lg_tensor *x);
/* x summed to a shape that broadcasts to x's: the one place where gradients of broadcasts are summed. */
lg_tensor *lg__sum_to(lg_tensor *x, lg_shape shape);
/* x less its mean over these dimensions, of a float dtype. */
lg_tensor *lg__centered(lg_tensor *x, lg_dims dims);
/* A 0-d constant of x's dtype and device, outside the graph. */
lg_tensor *lg__constant(const lg_tensor *x, double value);
/* True if t's values may be changed in place (inplace.c); otherwise an error is set. Who changes them bumps the
 * storage's version. */
bool lg__may_change(const lg_tensor *t, const char *op, const char *argument);
/* That a loss knows this reduction. LG_BATCH_MEAN is for those that say so. */
bool lg__check_reduction(lg_ctx *c, const char *op, lg_reduction reduction, bool batch_mean);
/* A gradient on its way that a derivative may change in place: nobody else sees it, and nothing is recorded. */
bool lg__grad_is_unseen(const lg_tensor *g);
/* g where the result of a node under derivation, of a layer with ReLU, is above 0, else 0: g itself where it may be
 * changed. May set grad_in[2], of the bias, if that is needed. */
lg_tensor *lg__grad_of_relu(lg__vjp *v, lg_tensor *g);
/* The shape and dtype of input i of a node under derivation. */
static inline const lg__edge *lg__input(const lg__vjp *v, int i)
{
        return &v->node->edges[i];
}
static inline lg_shape lg__input_shape(const lg__vjp *v, int i)
{
        return lg__shape_of(v->node->edges[i].size, v->node->edges[i].ndim);
}
/* Words to end an error with about x, which is not (N, C, ...) with `spaces` dimensions after C, and that many
 * channels: the call that makes it so, where its sizes show which; else empty. */
const char *lg__layout_hint(const lg_tensor *x, int spaces, int64_t channels);
/* relu(lg_linear(x, w, b)) as one op. */
lg_tensor *lg__linear_relu(lg_tensor *x, lg_tensor *w, lg_tensor *b);
/* What follows a convolution: batch norm in evaluation as scale and shift (outputs; both or neither), a sum, ReLU. */
typedef struct lg__conv_ending {
        lg_tensor *scale, *shift, *residual;
        bool relu;
} lg__conv_ending;
/* The options of all convolutions: those of one have some of them, and zero for the others. */
typedef struct lg__conv_options {
        int64_t stride, padding, dilation, groups, output_padding;
        lg_pair strides, paddings, dilations, output_paddings;
} lg__conv_options;
/* relu(conv scale + shift + residual) of lg_conv2d or lg_conv1d (signal); while the context records, ReLU alone. */
lg_tensor *lg__conv_ending_with(lg_tensor *x, lg_tensor *w, lg_tensor *b, bool signal, const lg__conv_options *options,
                                const lg__conv_ending *ending);
lg_tensor *lg__conv_transpose2d(lg_tensor *x, lg_tensor *w, lg_tensor *b, const lg__conv_options *options);

#endif
