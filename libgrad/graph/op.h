/* op.h - the description of ops (lg__op), and lg__apply(), which applies every op. Private to libgrad/. */
#ifndef LG_OP_H
#define LG_OP_H

#include "graph/graph.h"

#define LG__MAX_OUT 8
#define LG__MAX_ATTRIBUTES 256 /* maximum size in bytes of an op's attributes */

/* ---- signatures: the operands and results of an op, described as data ---- */

/* Dtypes that an operand accepts. Classes up to LG__FLOAT take part in the type promotion of ops with LG__PROMOTE. */
typedef enum lg__class {
        LG__ANY,     /* any dtype */
        LG__NUMBER,  /* any dtype; bool is cast to i64 */
        LG__WHOLE,   /* any dtype; integers and bool are cast to i64 */
        LG__REAL,    /* any dtype; integers and bool are cast to f32 */
        LG__FLOAT,   /* float dtypes only */
        LG__WEIGHT,  /* float dtypes; cast to f64 if input 0 is f64, else to f32 */
        LG__INTEGER, /* integers and bool only; promoted like the classes up to LG__FLOAT */
        LG__INDEX,   /* i64 only */
        LG__MASK     /* bool only */
} lg__class;

/* Memory layout that an op needs of an operand; other layouts are copied, and the copy is recorded in the graph. */
typedef enum lg__order {
        LG__STRIDED,       /* any strides */
        LG__ROW_MAJOR,     /* contiguous */
        LG__CHANNELS_LAST, /* channels last with 3 or more dimensions, else contiguous */
        LG__KERNEL         /* row-major, or channels last on devices whose convolutions accept such weights */
} lg__order;

/* Bit of lg__operand.saved_for: the derivative with respect to input i needs this operand. */
#define LG__BY(i) (1u << (i))

typedef struct lg__operand {
        const char *name;
        lg__class takes;
        lg__order order;
        bool optional;      /* may be NULL */
        bool variadic;      /* last operand only: stands for one or more inputs, which share one bit LG__BY(i) */
        uint32_t saved_for; /* bits LG__BY(i): the value is saved if the derivative by input i is needed */
} lg__operand;

typedef struct lg__result {
        const char *name;
        uint32_t saved_for;
} lg__result;

/* How lg_autocast() casts the float inputs of an op, unless one is f64: not at all, to the dtype of the region, to
 * f32, or to the widest of their dtypes. The choices are those of PyTorch's ATen/autocast_mode.h for CUDA. Ops applied
 * inside a composite are not cast again, not even if the composite is LG__AS_IT_IS. */
typedef enum lg__autocast { LG__AS_IT_IS, LG__LOW, LG__F32, LG__WIDEST } lg__autocast;

enum {
        LG__PROMOTE = 1,   /* inputs are cast to their common dtype */
        LG__ALIASES = 2,   /* the result shares the storage of input 0 */
        LG__ACROSS = 4,    /* inputs and results may be on several devices */
        LG__UNORDERED = 8, /* may sum in any order, unless lg_set_deterministic() is on */
        LG__HANDLES = 16,  /* the derivative runs user code, which may keep tensors: no handles on the stack */
        LG__ADDS = 32      /* adds to input 0 in place; the result aliases input 0 */
};

/* Geometry of one side of a convolution or pooling, as in lg_conv_geometry. */
typedef struct lg__side {
        int64_t in, kernel, out, stride, padding, dilation;
} lg__side;

/* ---- attributes: lists of typed fields, which define the struct of an op's attributes and its description ---- */

/* Types of fields, as TYPE(name, C type): first numbers, then all types. */
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
        TYPE(geometry, lg_conv_geometry)                                                                               \
        TYPE(side, lg__side)
#define LG__TYPE(of, type) LG__FIELD_##of,
typedef enum lg__field_type { LG__FIELD_TYPES(LG__TYPE) } lg__field_type;
#undef LG__TYPE
#define LG__TYPE(of, type) typedef type lg__field_##of;
LG__FIELD_TYPES(LG__TYPE)
#undef LG__TYPE
typedef struct lg__field {
        const char *name;
        lg__field_type type;
        double usual; /* default value of a number, which is left out when attributes are printed */
} lg__field;
#define LG__MEMBER(type, name, usual) lg__field_##type name;
#define LG__ROW(type, name, usual) {#name, LG__FIELD_##type, usual},
/* LG__ATTRIBUTES(cumsum, FIELDS), with a list FIELDS(FIELD) of FIELD(type, name, default), defines the struct
 * cumsum_attributes and the array cumsum_fields, which describes it. LG__HAS(cumsum) in an op's definition refers to
 * both. */
#define LG__ATTRIBUTES(of, FIELDS)                                                                                     \
        typedef struct of##_attributes {                                                                               \
                FIELDS(LG__MEMBER)                                                                                     \
        } of##_attributes;                                                                                             \
        _Static_assert(sizeof(of##_attributes) <= LG__MAX_ATTRIBUTES, "attributes are too large");                     \
        static const lg__field of##_fields[] = {FIELDS(LG__ROW){NULL}};
#define LG__HAS(of) .fields = of##_fields, .attributes_bytes = sizeof(of##_attributes)

/* ---- definition and application of ops ---- */

/* Application of an op in progress: inputs after promotion, and outputs, described by infer and computed by forward. */
typedef struct lg__call {
        lg_ctx *ctx;
        const lg__op *op;
        lg__device *device;
        int in_count;
        lg_tensor *const *in; /* in_count inputs; NULL where an optional operand is absent */
        void *attributes;     /* a copy, which infer may complete from the inputs; for a composite, its options */
        uint32_t moved;       /* bits LG__BY(i) of the inputs that forward changed in place */
        int out_count;
        lg_tensor *out[LG__MAX_OUT]; /* out_count tensors, created by lg__apply() after infer and before forward */
        /* Layouts of the results, set by infer: dtype and shape, and strides unless the result is row-major; for ops
         * with LG__ALIASES, all fields. On entry to infer, out_at[0] is like input 0 and the others are zero. */
        lg__layout out_at[LG__MAX_OUT];
} lg__call;

/* Computation of a node's derivative (vector-Jacobian product) in progress. */
typedef struct lg__vjp {
        lg_ctx *ctx;
        const lg__op *op;
        const lg__node *node;
        const void *attributes;
        int in_count, out_count;
        lg_tensor **in;      /* saved inputs; NULL where an input was not saved */
        lg_tensor **grad_in; /* results, set where needs[i]; broadcast dimensions may be left, and are summed later */
        /* Gradient accumulated so far at input i, of its dtype, shape and device. A derivative may add to it in place
         * and set grad_in[i] to it. NULL if there is none yet, or if it must not be changed. */
        lg_tensor **sums;
        const bool *needs;
        lg_tensor *out[LG__MAX_OUT];  /* saved outputs; NULL where an output was not saved */
        lg_tensor *grad[LG__MAX_OUT]; /* output gradients, or NULL if unused; may be freed early */
} lg__vjp;

/* The form of an op in ONNX: statements separated by semicolons,
 *
 *   y = Operator(argument, ..., attribute = value, ...); ...
 *
 * where y is a result of the op's signature or a name that a later statement uses; several results are separated by
 * commas; the last statement may lack `y =`, and is then the first result. An argument is
 *   x               an operand of the signature or the result of an earlier statement; nothing, if it was left out
 *   Operator(...)   the first result of another operator
 *   {0.5} {1*64}    a number of x's dtype without dimensions, or a vector of so many equal ones; x: the first operand
 *   [2 3] <2>       a vector of i64, or one without dimensions
 * and a value is a whole number, a number with a point, (a list of whole numbers), 'text', a dtype's name. The name of
 * a field of the op's attributes stands for its value. Only numbers in [] may depend on sizes that ONNX does not fix.
 */
#define LG__FORM 4096
typedef struct lg__form {
        char s[LG__FORM];
        size_t length; /* LG__FORM or more: the text is cut, so that there is no form */
} lg__form;
void lg__form_add(lg__form *f, const char *format, ...) LG_PRINTF(2, 3);
/* Appends the form, with the values of fields in place of their names. */
void lg__form_expand(lg__form *f, const lg__call *call, const char *form);
/* Sets f to the form of an application that has computed its results. Returns false if it has none. */
bool lg__form_of(lg__form *f, const lg__call *call);

struct lg__op {
        const char *name;
        const lg__operand *operands;
        const lg__result *results;
        int operand_count, result_count;
        unsigned flags;
        lg__autocast autocast;
        const lg__field *fields; /* ended by a field without a name; NULL: no attributes */
        size_t attributes_bytes;
        bool (*infer)(lg__call *call);   /* shape rule: sets out_at, out_count; NULL: like input 0 */
        bool (*forward)(lg__call *call); /* computes the results; NULL for views, which compute nothing */
        bool (*vjp)(lg__vjp *v);         /* derivative made of ops, differentiable itself; NULL: none */
        bool (*fused)(lg__vjp *v);       /* derivative by a kernel, for first order only; may be NULL */
        /* Composites leave the four members above NULL and compute their first result with other ops. */
        lg_tensor *(*compose)(const lg__call *call);
        void (*release)(lg_ctx *c, const void *attributes); /* called when a node is freed; may be NULL */
        const char *onnx;                                   /* form in ONNX, or NULL; see lg__form */
        bool (*form)(lg__form *f, const lg__call *call);    /* the same by a function; returns false if there is none */
        int pointwise;   /* lg_pointwise_id of an elementwise op's kernel, whose derivative kernels have the next ids */
        uint32_t passes; /* elementwise: bits LG__BY(i) where the derivative is the gradient unchanged */
};
#define LG__COUNT_OF(type, ...) ((int)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))
#define LG__OPERANDS(...)                                                                                              \
        .operands = (const lg__operand[]){__VA_ARGS__}, .operand_count = LG__COUNT_OF(lg__operand, __VA_ARGS__)
#define LG__RESULTS(...)                                                                                               \
        .results = (const lg__result[]){__VA_ARGS__}, .result_count = LG__COUNT_OF(lg__result, __VA_ARGS__)

/* LG__DEFINE(matmul, LG__OPERANDS(...), ...) defines the op lg__op_matmul. LG__COMPOSITE(mean, {"x", LG__FLOAT})
 * defines a composite computed by the static function compose_mean(). */
#define LG__DEFINE(of, ...) const lg__op lg__op_##of = {.name = #of, __VA_ARGS__};
#define LG__COMPOSITE(of, ...) LG__DEFINE(of, .compose = compose_##of, LG__OPERANDS(__VA_ARGS__))

/* Ops and composites listed in ops.def, defined in the files of ops/; LG__OP(matmul) is a pointer to one. Elementwise
 * ops are in the array lg__pointwise_ops, indexed by the id of their kernel. */
#define OP(name) extern const lg__op lg__op_##name;
#define COMPOSITE(name) OP(name)
#include "ops/ops.def"
extern const lg__op lg__pointwise_ops[LG_PW_COUNT]; /* ids of derivative kernels have an empty row, without a name */
#define LG__OP(name) (&lg__op_##name)
bool lg__has_elementwise(const char *name);
/* Returns whether elementwise op `id` accepts p0 and p1; if not, sets an error that begins with `name`. */
bool lg__pointwise_takes(lg_ctx *c, const char *name, int id, double p0, double p1);

/* Checks the numbers of elementwise op `id` on a tensor of dtype d, and converts them to values of d for integers and
 * bool. Sets an error if one is out of range, except for a lower bound below or an upper bound above the range, which
 * has no effect. */
bool lg__pointwise_numbers(lg_ctx *c, const char *name, int id, lg_dtype d, double numbers[2]);

/* Stores how to recompute the result of a large activation from its input (remake.c), so that its memory can be freed
 * while only the backward pass needs it. Returns false and sets an error if there is no memory. */
bool lg__remember(const lg__call *call);
/* Recomputes the values of s if its memory was freed. Returns false and sets an error "name: ..." on failure. */
bool lg__remake(lg__storage *s, const char *name);

/* Returns the name of input i. */
const char *lg__operand_name(const lg__op *op, int i);
static inline const lg__operand *lg__operand_of(const lg__op *op, int i)
{
        return &op->operands[i < op->operand_count ? i : op->operand_count - 1];
}
/* Text of the attributes that differ from their defaults, such as "dim 1, descending", cut to 199 characters. */
typedef struct lg__attributes_text {
        char s[200];
} lg__attributes_text;
lg__attributes_text lg__attributes_text_of(const lg__op *op, const void *attributes);
/* Returns the field at *field of an op's attributes, and moves both forward; NULL: there is none. Begin with *field =
 * op->fields and *at = 0. */
const void *lg__next_field(const void *attributes, const lg__field **field, size_t *at);

/* Returns the context of the inputs if they fit the op's signature: given, live, of one context without an error, of
 * one device and of the right dtypes. Otherwise returns NULL, and sets an error if any input has a context. */
lg_ctx *lg__accept(const lg__op *op, lg_tensor *const *in, int in_count);
/* Casts and copies the inputs to the dtypes and layouts of the op's signature, recorded in the graph. Replaces the
 * entries of `in`. Returns false and sets an error on failure. */
bool lg__prepare(const lg__op *op, lg_tensor **in, int in_count);

/* Applies an op: checks, promotion, shape rule, outputs, kernel, recording. An entry of `in` may be NULL only if its
 * operand is optional. attributes is NULL if the op has none. Stores all results in ret_out unless that is NULL, and
 * returns the first result, or NULL and sets an error. */
lg_tensor *lg__apply(const lg__op *op, lg_tensor *const *in, int in_count, const void *attributes, lg_tensor **ret_out);
/* Applies an op inside an lg_autocast() region, after casting its inputs (autocast.c). */
lg_tensor *lg__apply_cast(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, const void *attributes,
                          lg_tensor **ret_out);
lg_tensor *lg__apply1(const lg__op *op, lg_tensor *x, const void *attributes);
lg_tensor *lg__apply2(const lg__op *op, lg_tensor *x, lg_tensor *y, const void *attributes);
/* Applies an op to a list of tensors. A list without any, or of NULLs only, gives NULL without an error. */
lg_tensor *lg__apply_list(const lg__op *op, lg_list list, const void *attributes);
#define LG__APPLY(name, attributes, ...)                                                                               \
        lg__apply(LG__OP(name), (lg_tensor *[]){__VA_ARGS__}, LG__COUNT_OF(lg_tensor *, __VA_ARGS__), attributes, NULL)

/* Returns the dtype in which an op with these n inputs, some of which may be NULL, computes. As in PyTorch, 0-d
 * tensors count only if their category (bool < integer < float) is higher than that of the other tensors. */
lg_dtype lg__common_dtype(lg_tensor *const *in, int n);
/* Returns x cast to f32 if it is a 16-bit float, else x, which may be NULL. Functions made of several ops compute in
 * f32 and cast only the result, so that it is rounded once and intermediate values cannot overflow 16 bits. */
static inline lg_tensor *lg__widened(lg_tensor *x)
{
        return x && (x->at.dtype == LG_F16 || x->at.dtype == LG_BF16) ? lg_cast(x, LG_F32) : x;
}

/* Returns y, the result of a composite that never returns a view, or a copy of y if y still shares the storage of x. */
static inline lg_tensor *lg__made(lg_tensor *y, const lg_tensor *x)
{
        return y && y->storage == x->storage ? lg_copy(y, LG_NO_DEVICE) : y;
}

/* Returns x if it is in channels-last layout, else a recorded copy that is. x has 3 dimensions or more. */
lg_tensor *lg__channels_last(lg_tensor *x);
/* Returns x summed to a shape that broadcasts to x's shape. Gradients of broadcast inputs are reduced only here. */
lg_tensor *lg__sum_to(lg_tensor *x, lg_shape shape);
/* Returns x minus its mean over these dimensions; x is of a float dtype. */
lg_tensor *lg__centered(lg_tensor *x, lg_dims dims);
/* Returns a 0-d tensor with this value, of x's dtype and device, that is not part of the graph. */
lg_tensor *lg__constant(const lg_tensor *x, double value);
/* Returns true if t's values may be changed in place, else false and sets an error (inplace.c). The caller must then
 * increment the version of t's storage. */
bool lg__may_change(const lg_tensor *t, const char *op, const char *argument);
/* Checks the options max_norm, if it is given, and norm_type of embeddings. Sets an error if they make no sense. */
bool lg__is_max_norm(lg_ctx *c, const char *op, double max_norm, double norm_type);
/* Checks that `reduction` is valid for a loss; LG_BATCH_MEAN is valid only if batch_mean. Sets an error if not. */
bool lg__check_reduction(lg_ctx *c, const char *op, lg_reduction reduction, bool batch_mean);
/* Returns whether a derivative may change the gradient g in place: no other handle shares its storage, it is dense,
 * and nothing is recorded. */
bool lg__grad_is_unseen(const lg_tensor *g);
/* Returns g where the output of the node (a layer with fused ReLU) is above 0, else 0. Changes g in place if possible.
 * May also set grad_in[2], the gradient of the bias, if that is needed. */
lg_tensor *lg__grad_of_relu(lg__vjp *v, lg_tensor *g);
/* Returns the edge of input i, which holds the shape, dtype and device of that input. */
static inline const lg__edge *lg__input(const lg__vjp *v, int i)
{
        return &v->node->edges[i];
}
static inline lg_shape lg__input_shape(const lg__vjp *v, int i)
{
        return lg__shape_of(v->node->edges[i].size, v->node->edges[i].ndim);
}
/* Returns the end of an error message about x, which is not (N, C, ...) with `spaces` spatial dimensions and
 * `channels` channels: the call that fixes x, if its sizes suggest one, else "". */
const char *lg__layout_hint(const lg_tensor *x, int spaces, int64_t channels);
/* Text "(N, C, H, W) or (C, H, W)", and the same for signals and volumes, by the number of spatial dimensions. */
static inline const char *lg__images_text(int spaces)
{
        return spaces == 1   ? "(N, C, L) or (C, L)"
               : spaces == 2 ? "(N, C, H, W) or (C, H, W)"
                             : "(N, C, D, H, W) or (C, D, H, W)";
}
/* Returns relu(lg_linear(x, w, b)), computed by one op. */
lg_tensor *lg__linear_relu(lg_tensor *x, lg_tensor *w, lg_tensor *b);
/* Operations fused after a convolution: scale and shift per output channel (batch norm in evaluation; both or
 * neither), a residual to add, and ReLU. The tensors may be NULL. */
typedef struct lg__conv_epilogue {
        lg_tensor *scale, *shift, *residual;
        bool relu;
} lg__conv_epilogue;
/* Union of the options of all convolution functions; options that a function does not have are zero. */
typedef struct lg__conv_options {
        int64_t stride, padding, dilation, groups, output_padding;
        lg_triple strides, paddings, dilations, output_paddings;
} lg__conv_options;
/* Returns relu(conv * scale + shift + residual), where conv is the convolution of `spaces` spatial dimensions, 1 to 3.
 * While the context records, scale and shift must be NULL, and the residual is added by an op of its own. */
lg_tensor *lg__conv_with_epilogue(lg_tensor *x, lg_tensor *w, lg_tensor *b, int spaces, const lg__conv_options *options,
                                  const lg__conv_epilogue *epilogue);
lg_tensor *lg__conv_transpose(lg_tensor *x, lg_tensor *w, lg_tensor *b, int spaces, const lg__conv_options *options);

#endif
