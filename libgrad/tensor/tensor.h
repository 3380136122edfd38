/* tensor.h - layouts, tensors and the scopes that own them; what computes on tensors without a graph. Private to
 * libgrad/. */
#ifndef LG_TENSOR_PRIVATE_H
#define LG_TENSOR_PRIVATE_H

#include "core/core.h"

/* ---- layouts and tensors: dtype.c, layout.c, tensor.c, values.c ---- */

/* How elements lie in a storage: what a tensor and a saved value have in common. Strides and offset in elements. */
typedef struct lg__layout {
        lg_dtype dtype;
        lg_shape shape;
        int64_t strides[LG_MAX_DIMS];
        int64_t offset;
} lg__layout;

/* Copies what a layout of so many dimensions has, and leaves the rest of it unset. */
static inline void lg__layout_copy(lg__layout *to, const lg__layout *from)
{
        to->dtype = from->dtype;
        to->offset = from->offset;
        to->shape.ndim = from->shape.ndim;
        for (int i = 0; i < from->shape.ndim; i++) {
                to->shape.size[i] = from->shape.size[i];
                to->strides[i] = from->strides[i];
        }
}

typedef enum lg__owner { LG__OWNER_SCOPE, LG__OWNER_CALLER, LG__OWNER_LIBRARY } lg__owner;

struct lg_tensor {
        lg__link link; /* in its scope, or in ctx->owned */
        uint32_t live; /* LG__LIVE while the handle is good */
        uint8_t owner; /* lg__owner */
        lg_ctx *ctx;
        lg__scope *scope; /* NULL unless owner is SCOPE */
        lg__storage *storage;
        uint64_t serial; /* no two tensors of a context have the same */
        lg__node *node;  /* what made it, or its leaf node; NULL: needs no gradient */
        int output;      /* of node */
        bool alias;      /* another handle of the same value: a gradient that is kept does not end with it */
        lg_tensor *next_dead;
        lg__layout at; /* last: all before it is zero in a new record; sizes and strides beyond ndim are unset */
};
#define LG__LIVE 0x4c697665u
#define LG__DEAD 0x44656164u

/* A new handle over a storage (a new reference) in the innermost scope. NULL and an error on failure. */
lg_tensor *lg__tensor_new(lg_ctx *c, lg__storage *s, const lg__layout *at);
/* A new contiguous tensor of uninitialised values. */
lg_tensor *lg__tensor_empty(lg_ctx *c, lg_device device, lg_dtype dtype, lg_shape shape);
lg_tensor *lg__tensor_like(const lg_tensor *t); /* contiguous, of t's dtype, shape and device */
/* A new tensor of uninitialised values in a dense layout; strides that are all zero: row-major. */
lg_tensor *lg__tensor_on(lg__device *d, const lg__layout *at);
lg_tensor *lg__tensor_laid(lg_ctx *c, lg_device device, const lg__layout *at);
lg_tensor *lg__tensor_beside(const lg_tensor *t); /* as lg__tensor_like, but laid as t is, if that is dense */
/* Ends a handle whoever owns it. NULL: nothing. */
void lg__tensor_release(lg_tensor *t);
/* Takes a tensor out of its scope; only the library frees it (lg__tensor_release). Returns t. */
lg_tensor *lg__tensor_own(lg_tensor *t);
/* Owns t, which may be NULL, in the place of *held, which is released. */
static inline void lg__tensor_hold(lg_tensor **held, lg_tensor *t)
{
        lg__tensor_release(*held);
        *held = lg__tensor_own(t);
}
/* Gives a tensor of the library (back) to the innermost scope. */
void lg__tensor_disown(lg_tensor *t);
/* True if t is a live tensor of a context without error; otherwise an error "op: ..." is set where it can be. */
bool lg__check(const lg_tensor *t, const char *op, const char *argument);
/* True if t, which may be NULL, is of context c; otherwise an error "op: ..." is set in c or, if c has one already, in
 * t's context, so that whoever mixes contexts is told. Before lg__check, which sees the tensor's context only. */
bool lg__in_context(lg_ctx *c, const lg_tensor *t, const char *op, const char *argument);
/* The same of y beside x, either of which may be NULL. */
static inline bool lg__same_context(const lg_tensor *x, const lg_tensor *y, const char *op, const char *argument)
{
        return !x || lg__in_context(x->ctx, y, op, argument);
}
/* Returns whether p can be a tensor: NULL and small numbers, which C converts to pointers with a warning, cannot. */
static inline bool lg__is_address(const void *p)
{
        return (uintptr_t)p >= 4096;
}
/* The context of a tensor, dead ones too: it is told their errors. Of NULL: NULL. */
lg_ctx *lg__ctx_of(const lg_tensor *t);
static inline size_t lg__dtype_bytes(lg_dtype d)
{
        return d == LG_F64 || d == LG_I64 ? 8 : d == LG_F32 || d == LG_I32 ? 4 : d == LG_F16 || d == LG_BF16 ? 2 : 1;
}
/* Where the elements begin; NULL where there is no memory, as an empty storage has none. */
static inline void *lg__data(const lg_tensor *t)
{
        char *data = t->storage->data;
        return data ? data + t->at.offset * (int64_t)lg__dtype_bytes(t->at.dtype) : NULL;
}
/* In the header, since shapes by value are copied otherwise. */
static inline int64_t lg__shape_numel(lg_shape s)
{
        int64_t n = 1;
        for (int i = 0; i < s.ndim; i++)
                n *= s.size[i];
        return n;
}
static inline int64_t lg__layout_numel(const lg__layout *at)
{
        int64_t n = 1;
        for (int i = 0; i < at->shape.ndim; i++)
                n *= at->shape.size[i];
        return n;
}
static inline bool lg__same_shape(const lg__layout *a, const lg__layout *b)
{
        bool same = a->shape.ndim == b->shape.ndim;
        for (int i = 0; i < a->shape.ndim && same; i++)
                same = a->shape.size[i] == b->shape.size[i];
        return same;
}
static inline bool lg__shape_equal(lg_shape a, lg_shape b)
{
        bool equal = a.ndim == b.ndim;
        for (int i = 0; i < a.ndim && equal; i++)
                equal = a.size[i] == b.size[i];
        return equal;
}
bool lg__shape_valid(lg_ctx *c, const char *op, lg_shape s); /* sizes >= 0, product in range, ndim in range */
void lg__layout_contiguous(lg__layout *at);                  /* sets strides from the shape, offset 0 */
bool lg__layout_is_contiguous(const lg__layout *at);
/* Some order of dimensions in which the elements lie without gaps or overlap: row-major, channels-last, ... */
bool lg__layout_is_dense(const lg__layout *at);
/* The lowest and the highest element of the storage that a layout of at least one element reaches. */
void lg__layout_reach(const lg__layout *at, int64_t *ret_low, int64_t *ret_high);
/* True if two indices may lie on one element of the storage, as in an expanded view. */
bool lg__layout_overlaps(const lg__layout *at);
/* Gives `at` the strides of a dense layout of the same shape, so that elementwise results lie as their inputs do; false
 * if `like` is not that. */
bool lg__keep_layout(lg__layout *at, const lg__layout *like);
/* Channels last: (N, C, spaces...) lying as (N, spaces..., C); at least 3 dimensions. */
void lg__layout_channels_last(lg__layout *at); /* sets strides from the shape, offset 0 */
bool lg__layout_is_channels_last(const lg__layout *at);
/* True for weights of a convolution with channels last, on a device whose convolutions take them so. */
bool lg__lies_last(const lg_tensor *w);
static inline bool lg__dtype_float(lg_dtype d)
{
        return d >= LG_F32 && d <= LG_BF16;
}
/* True unless d is an integer dtype and the value, cut to a whole number, is out of its range: LG_ERR_ARGUMENT. */
bool lg__dtype_holds(lg_ctx *c, const char *op, lg_dtype d, double value);
/* "(2, 3)" into text, which is returned; "f32 (2, 3) on cpu" for a tensor. */
typedef struct lg__text {
        char s[LG_MAX_DIMS * 22 + 80]; /* the longest sizes have 20 characters */
} lg__text;
lg__text lg__shape_text(lg_shape s);
lg__text lg__tensor_text(const lg_tensor *t);
/* Copies elements between any layouts, dtypes and (contiguous only) devices; nothing is recorded. */
bool lg__copy_values(lg_tensor *to, const lg_tensor *from, const char *op);
/* From the host, with the checks of lg_write. */
bool lg__write_values(lg_tensor *t, const char *op, const void *data, lg_dtype dtype, size_t bytes);
/* From the program's memory. */
bool lg__upload(lg__device *d, void *to, const void *from, size_t bytes, const char *op);
bool lg__fill_values(lg_tensor *t, double value, const char *op);
/* A plain contiguous copy on a device, unrecorded, in the innermost scope. */
lg_tensor *lg__clone_values(const lg_tensor *t, lg_device device, lg_dtype dtype);

/* ---- creations: create.c ---- */

/* The options of a creation like x: dtype and device are x's unless they are given. */
bool lg__take_like(const lg_tensor *x, const char *op, const lg_create_options *options, lg_create_options *ret);
/* The checks that every creation makes; `dtype` of the options, taken, is set where the default is not f32. */
bool lg__may_create(lg_ctx *c, const char *op, lg_shape shape, const lg_create_options *o);
/* An uninitialised tensor after those checks. */
lg_tensor *lg__create(lg_ctx *c, const char *op, lg_shape shape, const lg_create_options *o);
/* Ends a creation: t, which may be NULL, if all went well and, where asked, as a leaf; else it is freed. */
lg_tensor *lg__created(lg_tensor *t, bool ok, bool requires_grad);

/* ---- pinned memory: pinned.c ---- */

/* A copy to the device that s is pinned for; and the end of all such copies, before s is written or freed. */
bool lg__pinned_upload(lg__device *d, void *to, lg__storage *s, const void *from, size_t bytes, const char *op);
void lg__storage_finish_copies(lg__storage *s);

/* ---- scopes: scope.c ---- */

struct lg__scope {
        struct lg__scope *parent;
        uint64_t id;
        bool fence; /* around a call to the user's code: that code cannot end it, nor a scope around it */
        bool lent;  /* the record is the caller's */
        lg__link tensors;
};
/* Like lg_scope_begin, but a fence. */
lg_scope lg__scope_begin(lg_ctx *c);
/* The same in a record of the caller's, which must be ended before that goes; cannot fail. */
lg_scope lg__scope_enter(lg_ctx *c, lg__scope *s);
/* Ends the scope of a call of the user's code, with those that it left open. The results, good tensors, go to the scope
 * around, `outer`, where everything else that the call made ends; ret_new: which were made in it, by bit. False if
 * release functions have set an error. */
bool lg__scope_leave(lg_ctx *c, lg_scope scope, const lg__scope *outer, lg_tensor *const *results, int64_t count,
                     uint32_t *ret_new);
/* Ends one scope, which is open, wherever it is in the chain: those inside it stay. */
void lg__scope_remove(lg_ctx *c, lg__scope *s);
void lg__scopes_finish(lg_ctx *c); /* ends all, the outermost too */
/* A tensor was made in the outermost scope. */
void lg__scope_outermost(lg_ctx *c);

/* ---- shapes as arguments: broadcast.c; elementwise kernels: elementwise.c ---- */

/* The shape that a and b broadcast to (NumPy's rule), or LG_ERR_SHAPE. */
bool lg__broadcast(lg_ctx *c, const char *op, lg_shape a, lg_shape b, lg_shape *ret);
/* dim in 0 ... ndim-1 from one that may be negative; -1 and LG_ERR_ARGUMENT otherwise. */
int lg__dim(lg_ctx *c, const char *op, int dim, int ndim);
/* The same of a set, in place: of one without dimensions all of them; none may be given twice. */
bool lg__dims(lg_ctx *c, const char *op, lg_dims *dims, int ndim);
/* The same along the lines of x, which is checked; a 0-d tensor is a line of one. */
int lg__line_dim(const lg_tensor *x, const char *op, int dim);
/* A shape as (outer, n, inner) around a dimension; a 0-d shape is one row of one. */
void lg__split(lg_shape s, int dim, int64_t *ret_outer, int64_t *ret_n, int64_t *ret_inner);
/* Strides of t read as `shape` (broadcast): 0 where sizes are repeated. */
void lg__broadcast_strides(const lg__layout *t, lg_shape shape, int64_t strides[LG_MAX_DIMS]);
/* out = kernel(in...), unrecorded: shapes broadcast to out's. */
bool lg__pointwise_run(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op);
/* out += kernel(in...), of float dtypes. */
bool lg__pointwise_add(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op);

#endif
