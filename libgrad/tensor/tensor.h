/* tensor.h - layouts, tensors, scopes, which own tensors, and unrecorded operations on values. Private to libgrad/. */
#ifndef LG_TENSOR_PRIVATE_H
#define LG_TENSOR_PRIVATE_H

#include "core/core.h"

/* ---- layouts and tensors: dtype.c, layout.c, tensor.c, values.c ---- */

/* Layout of elements in a storage, for tensors and saved values. Strides and offset are in elements. */
typedef struct lg__layout {
        lg_dtype dtype;
        lg_shape shape;
        int64_t strides[LG_MAX_DIMS];
        int64_t offset;
} lg__layout;

/* Copies a layout. Sizes and strides beyond ndim are not copied. */
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
        lg__link link; /* in the list of its scope, or in ctx->owned */
        uint32_t live; /* LG__LIVE until the tensor is freed, then LG__DEAD */
        uint8_t owner; /* an lg__owner */
        lg_ctx *ctx;
        lg__scope *scope; /* NULL unless owner is LG__OWNER_SCOPE */
        lg__storage *storage;
        uint64_t serial; /* unique number within the context */
        lg__node *node;  /* node that computed it, or its leaf node; NULL: needs no gradient */
        int output;      /* index of this tensor among the outputs of node */
        bool alias;      /* a further handle of a value: freeing it does not free the accumulated gradient */
        lg_tensor *next_dead;
        lg__layout at; /* last member: a new record is zeroed up to here. Sizes and strides beyond ndim are unset */
};
#define LG__LIVE 0x4c697665u
#define LG__DEAD 0x44656164u

/* Returns a new tensor in the innermost scope, with a new reference to storage s, or NULL and sets an error. */
lg_tensor *lg__tensor_new(lg_ctx *c, lg__storage *s, const lg__layout *at);
/* Returns a new contiguous tensor of uninitialised values. */
lg_tensor *lg__tensor_empty(lg_ctx *c, lg_device device, lg_dtype dtype, lg_shape shape);
lg_tensor *lg__tensor_like(const lg_tensor *t); /* like lg__tensor_empty(), with t's dtype, shape and device */
/* Returns a new tensor of uninitialised values in a dense layout; if all strides are zero, row-major. */
lg_tensor *lg__tensor_on(lg__device *d, const lg__layout *at);
lg_tensor *lg__tensor_laid(lg_ctx *c, lg_device device, const lg__layout *at);
lg_tensor *lg__tensor_beside(const lg_tensor *t); /* like lg__tensor_like(), in t's layout if that is dense */
/* Frees the handle t, whoever owns it. t may be NULL. */
void lg__tensor_release(lg_tensor *t);
/* Moves a tensor from its scope to the library, which calls lg__tensor_release(). Returns t, which may be NULL. */
lg_tensor *lg__tensor_own(lg_tensor *t);
/* Releases *held and stores t in its place, owned by the library. t may be NULL. */
static inline void lg__tensor_hold(lg_tensor **held, lg_tensor *t)
{
        lg__tensor_release(*held);
        *held = lg__tensor_own(t);
}
/* Moves a tensor owned by the library to the innermost scope. */
void lg__tensor_disown(lg_tensor *t);
/* Returns whether t is a live tensor whose context has no error. Sets an error "op: argument ..." if t was freed. */
bool lg__check(const lg_tensor *t, const char *op, const char *argument);
/* Returns whether p can be a tensor: NULL and small numbers, which C converts to pointers with a warning, cannot. */
static inline bool lg__is_address(const void *p)
{
        return (uintptr_t)p >= 4096;
}
/* Returns whether t, which may be NULL, belongs to context c. If not, sets an error in c or, if c has one already, in
 * t's context. Must be called before lg__check(), which sees only the tensor's own context. */
bool lg__in_context(lg_ctx *c, const lg_tensor *t, const char *op, const char *argument);
/* Checks that x and y, either of which may be NULL, belong to one context, as lg__in_context() does. */
static inline bool lg__same_context(const lg_tensor *x, const lg_tensor *y, const char *op, const char *argument)
{
        return !lg__is_address(x) || lg__in_context(x->ctx, y, op, argument);
}
/* Returns the context of a tensor, even of a freed one, so that errors can be set in it. If t is no address, returns
 * NULL. */
lg_ctx *lg__ctx_of(const lg_tensor *t);
static inline size_t lg__dtype_bytes(lg_dtype d)
{
        return d == LG_F64 || d == LG_I64 ? 8 : d == LG_F32 || d == LG_I32 ? 4 : d == LG_F16 || d == LG_BF16 ? 2 : 1;
}
/* Returns the address of the first element, or NULL if the storage has no memory, as when it is empty. */
static inline void *lg__data(const lg_tensor *t)
{
        char *data = t->storage->data;
        return data ? data + t->at.offset * (int64_t)lg__dtype_bytes(t->at.dtype) : NULL;
}
/* Inline, because passing shapes by value to a function copies them. */
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
/* Returns whether a and b have the same shape and strides; those of dimensions of size 1 do not count. */
static inline bool lg__layout_same(const lg__layout *a, const lg__layout *b)
{
        bool same = lg__same_shape(a, b);
        for (int i = 0; i < a->shape.ndim && same; i++)
                same = a->strides[i] == b->strides[i] || a->shape.size[i] == 1;
        return same;
}
bool lg__shape_valid(lg_ctx *c, const char *op, lg_shape s); /* checks ndim, sizes and their product */
void lg__layout_contiguous(lg__layout *at);                  /* sets strides from the shape, offset 0 */
bool lg__layout_is_contiguous(const lg__layout *at);
/* Returns whether elements have no gaps or overlaps in some order of dimensions (row-major, channels-last, ...). */
bool lg__layout_is_dense(const lg__layout *at);
/* Sets the lowest and highest element of the storage that a layout covers, which has at least one element. */
void lg__layout_reach(const lg__layout *at, int64_t *ret_low, int64_t *ret_high);
/* Returns true if two indices may refer to one element of the storage, as in an expanded view. */
bool lg__layout_overlaps(const lg__layout *at);
/* Copies the strides of `like` to `at`, so that elementwise results have the layout of their inputs. Returns false if
 * `like` is not dense or has another shape. */
bool lg__keep_layout(lg__layout *at, const lg__layout *like);
/* Channels-last layout: (N, C, spatial...) stored in the order (N, spatial..., C); needs at least 3 dimensions. */
void lg__layout_channels_last(lg__layout *at); /* sets strides from the shape, offset 0 */
bool lg__layout_is_channels_last(const lg__layout *at);
/* Returns whether w is a channels-last convolution weight on a device whose convolutions accept this layout. */
bool lg__lies_last(const lg_tensor *w);
static inline bool lg__dtype_float(lg_dtype d)
{
        return d >= LG_F32 && d <= LG_BF16;
}
/* Returns false and sets LG_ERR_ARGUMENT if d is an integer dtype whose range lacks the value, truncated; else true. */
bool lg__dtype_holds(lg_ctx *c, const char *op, lg_dtype d, double value);
/* Text of a shape, "(2, 3)", or of a tensor, "f32 (2, 3) on cpu". */
typedef struct lg__text {
        char s[LG_MAX_DIMS * 22 + 80]; /* a size has at most 20 characters */
} lg__text;
lg__text lg__shape_text(lg_shape s);
lg__text lg__tensor_text(const lg_tensor *t);
/* Copies elements between tensors of the same shape and any layouts, dtypes and devices. Nothing is recorded. */
bool lg__copy_values(lg_tensor *to, const lg_tensor *from, const char *op);
/* Copies values from host memory to t, with the checks of lg_write(). */
bool lg__write_values(lg_tensor *t, const char *op, const void *data, lg_dtype dtype, size_t bytes);
/* Copies bytes from host memory to device d. */
bool lg__upload(lg__device *d, void *to, const void *from, size_t bytes, const char *op);
bool lg__fill_values(lg_tensor *t, double value, const char *op);
/* Returns a contiguous, unrecorded copy on a device, with this dtype, in the innermost scope. */
lg_tensor *lg__clone_values(const lg_tensor *t, lg_device device, lg_dtype dtype);

/* ---- creation functions: create.c ---- */

/* Sets *ret to the options of a function like lg_zeros_like(): dtype and device default to those of x. */
bool lg__take_like(const lg_tensor *x, const char *op, const lg_create_options *options, lg_create_options *ret);
/* Checks the shape and options of a new tensor. o->dtype must be set if the function's default dtype is not f32. */
bool lg__may_create(lg_ctx *c, const char *op, lg_shape shape, const lg_create_options *o);
/* Checks like lg__may_create(), then returns an uninitialised tensor, of f32 by default, or NULL and sets an error. */
lg_tensor *lg__create(lg_ctx *c, const char *op, lg_shape shape, const lg_create_options *o);
/* Ends a creation function: returns t, as a leaf if requires_grad. If not ok, releases t, which may be NULL. */
lg_tensor *lg__created(lg_tensor *t, bool ok, bool requires_grad);

/* ---- pinned memory: pinned.c ---- */

/* lg__pinned_upload() starts an asynchronous copy from pinned storage s to the device that s is pinned for.
 * lg__storage_finish_copies() waits for the copies from s, and must be called before s is written or freed. */
bool lg__pinned_upload(lg__device *d, void *to, lg__storage *s, const void *from, size_t bytes, const char *op);
void lg__storage_finish_copies(lg__storage *s);

/* ---- scopes: scope.c ---- */

struct lg__scope {
        struct lg__scope *parent;
        uint64_t id;
        bool fence;    /* encloses a call of user code, which cannot end this scope or an outer one */
        bool borrowed; /* the record belongs to the caller and is not freed */
        lg__link tensors;
};
/* Begins a scope that is a fence: user code called in it cannot end the scope or an outer one. */
lg_scope lg__scope_begin(lg_ctx *c);
/* Begins a fence scope in the record s of the caller, which must end the scope before s is freed. Cannot fail. */
lg_scope lg__scope_enter(lg_ctx *c, lg__scope *s);
/* Ends the scope around a call of user code, and scopes left open inside. Results that the call created move to the
 * scope `outer`; all other tensors created in the call are freed. ret_new: bit i is set if result i was created in the
 * call. Returns false if an error is set, for instance by release functions. */
bool lg__scope_leave(lg_ctx *c, lg_scope scope, const lg__scope *outer, lg_tensor *const *results, int64_t count,
                     uint32_t *ret_new);
/* Ends an open scope anywhere in the chain of scopes; scopes inside it stay open. */
void lg__scope_remove(lg_ctx *c, lg__scope *s);
void lg__scopes_finish(lg_ctx *c); /* ends all scopes, including the outermost */
/* Counts a tensor created in the outermost scope, and sends a message once if there are very many. */
void lg__scope_outermost(lg_ctx *c);

/* ---- shapes as arguments: broadcast.c; elementwise kernels: elementwise.c ---- */

/* Sets *ret to the shape that a and b broadcast to by NumPy's rule. Returns false and sets LG_ERR_SHAPE if none. */
bool lg__broadcast(lg_ctx *c, const char *op, lg_shape a, lg_shape b, lg_shape *ret);
/* Returns dim as 0 to ndim - 1; negative numbers count from the end. Returns -1 and sets LG_ERR_ARGUMENT if invalid. */
int lg__dim(lg_ctx *c, const char *op, int dim, int ndim);
/* Returns dim like lg__dim(); a 0-d tensor has a dimension of size 1, 0 or -1, as in PyTorch. */
int lg__scalar_dim(lg_ctx *c, const char *op, int dim, int ndim);
/* Converts a set of dimensions in place, like lg__scalar_dim(). An empty set becomes all, that of a 0-d tensor empty;
 * repeated dimensions are an error. */
bool lg__dims(lg_ctx *c, const char *op, lg_dims *dims, int ndim);
/* Checks x and converts dim like lg__scalar_dim(). */
int lg__line_dim(const lg_tensor *x, const char *op, int dim);
/* Splits a shape around dimension dim: the product of the sizes before dim, the size of dim, the product after dim. A
 * 0-d shape gives 1, 1, 1. */
void lg__split(lg_shape s, int dim, int64_t *ret_outer, int64_t *ret_n, int64_t *ret_inner);
/* Sets the strides for reading t with the broadcast shape `shape`: 0 in repeated dimensions. */
void lg__broadcast_strides(const lg__layout *t, lg_shape shape, int64_t strides[LG_MAX_DIMS]);
/* Computes out = kernel(in...) without recording; inputs broadcast to out's shape. */
bool lg__pointwise_run(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op);
/* Computes out += kernel(in...) without recording, for float dtypes. */
bool lg__pointwise_add(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op);

#endif
