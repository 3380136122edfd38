/* core.h - the records behind the public types: contexts, storages, tensors, nodes. Private to libgrad/. */
#ifndef LG_CORE_H
#define LG_CORE_H

#include <locale.h>
#include <stdarg.h>
#include <stdatomic.h>
#include "grad.h"
#include "../kernels/kernels.h"

#define LG_DEVICE_TYPE_COUNT (LG_DEVICE_SHADOW + 1)

typedef struct lg__storage lg__storage;
typedef struct lg__node lg__node;
typedef struct lg__op lg__op;
typedef struct lg__observer lg__observer;
typedef struct lg__frame lg__frame;

/* ---- lists ---- */

typedef struct lg__link {
        struct lg__link *prev, *next;
} lg__link;
void lg__link_init(lg__link *head);
void lg__link_add(lg__link *head, lg__link *link); /* at the end */
void lg__link_remove(lg__link *link);              /* of a link in no list: nothing */

/* What belongs to a context beside tensors (modules, optimisers, loaders, data sets): destroyed by lg_close, newest
 * first. The first member of such a record. */
typedef struct lg__object {
        lg__link link;
        lg_ctx *ctx;
        const struct lg__type *type; /* NULL: it is being destroyed */
        struct lg__weak *weak;       /* those who look at it */
        int uses;                    /* by other objects */
        bool freed;                  /* by the user: it ends with its last use */
} lg__object;
/* A kind of object. What outlives a step has a visit: it names all that the object holds (state/roster.h). */
typedef struct lg__roster lg__roster;
typedef struct lg__type {
        void (*destroy)(lg__object *o);
        bool (*visit)(lg__object *o, lg__roster *r);
        bool (*may_change)(lg__object *o, const char *op); /* before a load changes anything; false: an error */
        void (*restored)(lg__object *o);                   /* after it; NULL: nothing to do */
} lg__type;
void lg__object_register(lg_ctx *c, lg__object *o, const lg__type *type);
void lg__object_destroy(lg__object *o); /* unregisters and destroys; NULL: nothing */
/* A reference that becomes NULL when the object is destroyed. */
typedef struct lg__weak {
        lg__object *object;
        struct lg__weak *next;
} lg__weak;
void lg__weak_set(lg__weak *w, lg__object *o); /* to o, from what it referred to; either may be NULL */
/* Of records that others keep: one more use, which returns the record, and the end of one; what the user's call to free
 * it does. NULL: nothing. */
void *lg__object_use(void *o);
void lg__object_done(void *o);
void lg__object_free(void *o);
/* False, with LG_ERR_STATE, if o is being destroyed: a release function of what it owns calls `op`. */
bool lg__object_lasts(const lg__object *o, const char *op);

/* ---- memory: cache.c (buffers), pool.c (records) ---- */

/* A cached allocator of one device: free blocks by size class, each block described by a record on the host. Large
 * blocks are split where less is asked, and joined again when both parts are free. */
typedef struct lg__block {
        struct lg__block *next, *prev;   /* in the list of free ones; next is the owner's while it is used */
        struct lg__block *lower, *upper; /* parts of the same piece of the system's memory, by address */
        void *p;
        size_t bytes;
        bool free;
} lg__block;
#define LG__CLASSES 480
typedef struct lg__cache {
        lg_ctx *ctx;
        lg_device device;
        lg__block *free[LG__CLASSES];
        uint64_t some[(LG__CLASSES + 63) / 64]; /* classes that have a free block, by bit */
        lg_memory_stats_t stats;
        int64_t limit; /* of used and cached bytes; 0: none */
} lg__cache;
/* bytes > 0. NULL and LG_ERR_MEMORY: none left, also after the caches were emptied. */
lg__block *lg__cache_get(lg__cache *cache, size_t bytes);
void lg__cache_put(lg__cache *cache, lg__block *block); /* NULL: nothing */
void lg__cache_empty(lg__cache *cache);

/* Records of up to LG__POOL_MAX bytes, in steps of 16, cut from slabs; bigger ones come from the CPU's cache. */
#define LG__POOL_MAX 1024
typedef struct lg__pool {
        struct lg__slab *slabs;
        void *free[LG__POOL_MAX / 16 + 1];
} lg__pool;
/* Zeroed. NULL and LG_ERR_MEMORY: none left. The size is given again to free. */
void *lg__alloc(lg_ctx *c, size_t bytes);
void *lg__alloc_unset(lg_ctx *c, size_t bytes);  /* not zeroed */
void lg__free(lg_ctx *c, void *p, size_t bytes); /* NULL: nothing */
/* Straight from the hooks, after an emptied cache if need be: for what is too big for the pool and older than the
 * cache. */
void *lg__host_alloc(lg_ctx *c, size_t bytes);
void lg__host_free(lg_ctx *c, void *p, size_t bytes);
char *lg__strdup(lg_ctx *c, const char *s);
void lg__strfree(lg_ctx *c, char *s);
void lg__pool_finish(lg_ctx *c);

/* ---- devices: device.c ---- */

/* One device of a context, opened when it is first used. */
typedef struct lg__device {
        struct lg__device *next;
        lg_device id;
        const lg_device_api *api;
        lg_queue *queue;
        lg__cache cache;
        lg__block *scratch; /* workspaces of the kernel that runs */
} lg__device;
/* NULL and LG_ERR_DEVICE if there is none. {0, 0} is the default device. */
lg__device *lg__device_get(lg_ctx *c, lg_device id);
void lg__devices_finish(lg_ctx *c);
/* Waits for all devices, whatever they tell, and empties their caches. */
void lg__devices_empty(lg_ctx *c);
/* Ends a kernel call: frees its workspaces; a failure becomes the context's error "op: ...". Returns ok. */
bool lg__kernel_done(lg__device *d, const char *op, bool ok);
/* LG__RUN(d, "matmul", gemm, &args) runs a structural kernel and tells its failure. */
#define LG__RUN(d, op, kernel, args) lg__kernel_done((d), (op), (d)->api->kernels->kernel((d)->queue, (args)))
/* By which number kernels note an index or a label that is out of range: the function that was given it. */
typedef enum lg__fault {
        LG__FAULT_CROSS_ENTROPY = 1,
        LG__FAULT_NLL,
        LG__FAULT_GATHER,
        LG__FAULT_SCATTER_ADD,
        LG__FAULT_INDEX_SELECT,
        LG__FAULT_INDEX_ADD,
        LG__FAULT_EMBEDDING,
        LG__FAULT_ONE_HOT
} lg__fault;
/* Waits for a device and reports the fault that kernels noted. */
bool lg__device_wait(lg__device *d);

/* ---- contexts: context.c, error.c, scope.c ---- */

typedef struct lg__scope {
        struct lg__scope *parent;
        uint64_t id;
        bool fence; /* around a call to the user's code: that code cannot end it, nor a scope around it */
        bool lent;  /* the record is the caller's */
        lg__link tensors;
} lg__scope;
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

/* What lower rooms need of upper ones; lg_open fills it in. */
typedef struct lg__upward {
        /* graph/: the node of a leaf, made where it is missing; the end of a tensor, which leaves its node. */
        lg__node *(*leaf_node)(lg_tensor *t);
        void (*leave_node)(lg_tensor *t);
        /* ops/: those that the graph itself applies, and whether there is an elementwise one of that name. */
        lg_tensor *(*add)(lg_tensor *a, lg_tensor *b);
        lg_tensor *(*cast)(lg_tensor *x, lg_dtype dtype);
        lg_tensor *(*contiguous)(lg_tensor *x);
        lg_tensor *(*channels_last)(lg_tensor *x);
        lg_tensor *(*sum_to)(lg_tensor *x, lg_shape shape);
        bool (*has_op)(const char *name);
} lg__upward;

#define LG__MESSAGE 1024 /* bytes of the longest message */
struct lg_ctx {
        uint32_t live; /* LG__CTX_LIVE */
        lg_error_code error;
        char message[LG__MESSAGE];
        lg_alloc_fn *alloc;
        lg_free_fn *free;
        void *memory_user; /* of both */
        const lg__upward *up;
        lg__pool pool;
        lg__device *devices, *cpu;
        lg_device default_device;
        lg_random_state random;
        int threads;
        bool deterministic, tf32;
        bool recording;            /* the grad mode */
        lg_message_fn *message_fn; /* NULL: nobody listens */
        void *message_user;
        lg__scope *scope;
        int64_t outermost_count;      /* tensors made in the outermost scope */
        bool outermost_told;          /* that these are many */
        uint64_t scope_ids, sequence; /* the last ones given */
        lg__link objects, owned;      /* objects; tensors of no scope */
        lg_tensor *dead, *dead_tail;  /* records waiting to be used again */
        int64_t dead_count, live_count;
        lg__observer *observers;       /* who looks on, observer.h; NULL: nobody */
        lg__observer *next_observer;   /* after the one that is told just now */
        bool observing;                /* one of them is told something: what it does is not observed */
        const lg__frame *frame;        /* modules and derivatives that run, the innermost first */
        const struct lg__files *files; /* the system's calls on files, io/files.h; NULL: the usual ones */
        int guests;                    /* calls of the user's code that are under way, beside those behind a fence */
        int64_t exports;               /* storages that other programs use; exports.c */
        struct lg__export *collected;  /* given back, and waiting for their end */
        _Atomic(struct lg__export *) given_back; /* by any thread */
};
#define LG__CTX_LIVE 0x6c67u
/* The last part of lg_close: devices and memory. */
void lg__context_finish(lg_ctx *c);

/* Sets the first error; later ones are dropped. Both return what a failing function returns. */
void *lg__fail(lg_ctx *c, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);
void *lg__vfail(lg_ctx *c, lg_error_code code, const char *format, va_list args);
/* Not what kernels found and nobody has waited for: lg_clear_error does that, too. */
void lg__forget_error(lg_ctx *c);
/* Numbers have a decimal point in all that the library writes, whatever locale the program has set: between the two
 * calls this thread, and no other, formats as C does. */
static inline locale_t lg__point_begin(void)
{
        return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* the one that C libraries hold ready: no memory */
}
static inline void lg__point_end(locale_t was)
{
        uselocale(was);
}
/* Ends the writing of a file: true if all of it was taken, or LG_ERR_IO. */
bool lg__written(lg_ctx *c, FILE *f, const char *op);
/* True if c is there and holds no error. */
static inline bool lg__ok(const lg_ctx *c)
{
        return c && !c->error;
}

/* CPUs that this process may run on. */
int lg__processors(void);
/* How many threads that number asks for; 0: as the environment says, or all. */
int lg__threads_for(int asked);
/* False, with LG_ERR_STATE, while a function given to lg_trace runs: the call around it has tensors, gradients and
 * modules in its hands that must stay. */
bool lg__may_end(lg_ctx *c, const char *op);
/* Calls a release function of the user's, if there is one; c may be NULL. */
static inline void lg__release(lg_ctx *c, void (*release)(void *user), void *user)
{
        if (c)
                c->guests++;
        if (release)
                release(user);
        if (c)
                c->guests--;
}

/* ---- options: options.c ---- */

/* The caller's options as this library knows them: what an older program does not have is zero; what a newer one has
 * beyond must be zero, else LG_ERR_ARGUMENT. NULL: all are defaults. False if c is NULL or holds an error. */
bool lg__take(lg_ctx *c, const char *op, const void *options, void *ret, size_t size);
/* The same without a context that could be told. What is known of the options is in ret even so. */
bool lg__take_without(const void *options, void *ret, size_t size);
/* Gives a struct to a caller who knows `size` bytes of it: what both know, zero beyond. */
void lg__give(void *ret, size_t size, const void *from, size_t known);
/* What an option says: LG_ZERO is 0, and 0 is its default. */
static inline double lg__option(double given, double otherwise)
{
        return given == LG_ZERO ? 0 : given == 0 ? otherwise : given;
}
/* The same of whole numbers: LG_ZERO_INT is 0. */
static inline int64_t lg__whole_option(int64_t given, int64_t otherwise)
{
        return given == LG_ZERO_INT ? 0 : given == 0 ? otherwise : given;
}
/* That pair where it is given, else the number for both sides. */
static inline lg_pair lg__sides(lg_pair pair, int64_t both)
{
        return pair.given ? pair : LG_PAIR(both, both);
}

/* ---- storages and tensors: storage.c, tensor.c ---- */

/* Memory of one device, counted. `version` counts changes in place. */
struct lg__storage {
        lg_ctx *ctx;
        lg__device *device;
        lg__block *block; /* NULL: empty or borrowed */
        char *data;
        size_t bytes;
        int refs;
        uint32_t version;
        void (*release)(void *user); /* of borrowed memory */
        void *user;
        lg__device *pinned_for; /* host memory that this device reads on its own; NULL: plain */
        uint64_t mark;          /* of the last such copy; 0: none */
};
lg__storage *lg__storage_new(lg__device *d, size_t bytes);
lg__storage *lg__storage_ref(lg__storage *s);
void lg__storage_unref(lg__storage *s); /* NULL: nothing */
/* pinned.c: a copy to the device that s is pinned for; and the end of all such copies, before s is written or freed. */
bool lg__pinned_upload(lg__device *d, void *to, lg__storage *s, const void *from, size_t bytes, const char *op);
void lg__storage_settle(lg__storage *s);

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
/* Gives `at` the strides of a dense layout of the same shape, so that elementwise results lie as their inputs do; false
 * if `like` is not that. */
bool lg__keep_layout(lg__layout *at, const lg__layout *like);
/* Channels last: (N, C, spaces...) lying as (N, spaces..., C); at least 3 dimensions. */
void lg__layout_channels_last(lg__layout *at); /* sets strides from the shape, offset 0 */
bool lg__layout_is_channels_last(const lg__layout *at);
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

/* ---- the graph: graph.c, backward.c ---- */

/* Where a gradient goes on: an output of another node; of what shape and dtype that value was. node NULL: nowhere. */
typedef struct lg__edge {
        lg__node *node;
        int output;
        lg_dtype dtype;
        lg_shape shape;
        lg_device device;
} lg__edge;

/* A value kept for a derivative: storage and layout, and where it came from (an output of the node itself: the node is
 * not named here, or it would keep itself alive). */
typedef struct lg__saved {
        lg__storage *storage;
        lg__layout at;
        uint32_t version;
        bool is_output;
        int slot; /* which input or output */
} lg__saved;

typedef struct lg__hook {
        struct lg__hook *next;
        lg_hook_fn *fn;
        void *user;
        int output;
} lg__hook;

/* One application of an op, or a leaf (op NULL, one output). */
struct lg__node {
        const lg__op *op;
        lg_ctx *ctx;
        uint64_t sequence;
        int refs;
        int in_count, out_count, saved_count;
        bool freed;   /* what it saved is gone: a backward went through */
        size_t bytes; /* of this record */
        lg__hook *hooks;
        lg_tensor **grads;           /* by output, of leaves and retained outputs; NULL: none is kept */
        uint32_t retain;             /* outputs whose gradient is kept, by bit */
        lg__node *next;              /* in the work list of unref */
        struct lg__pending *pending; /* in the innermost backward call that reached it */
        char *where;                 /* the module that recorded it, if an observer noted it; NULL: not known */
        lg__edge *edges;             /* in_count */
        lg__saved *saved;            /* saved_count */
        void *attributes;
};
void lg__node_ref(lg__node *n);
void lg__node_unref(lg__node *n);      /* NULL: nothing; never recurses */
void lg__custom_release(lg__node *n);  /* of a node of lg_custom: its user data; of others: nothing */
void lg__node_free_saved(lg__node *n); /* after a backward that does not retain the graph */
/* The node of a leaf that requires grad, made when it is first needed. */
lg__node *lg__leaf_node(lg_tensor *t);
/* t, which ends, leaves its node, and takes the gradient that is kept for it along. */
void lg__leave_node(lg_tensor *t);
/* Forgets a kept gradient. */
void lg__node_clear_grad(lg__node *n, int output);
/* False, with an error of `op`, if the two gradients of one value are on two devices: its module moved in between. */
bool lg__gradients_meet(const lg_tensor *was, const lg_tensor *g, const char *op);
/* Takes over g, a tensor that the caller owns, as (part of) the gradient of a leaf or retained output. */
bool lg__node_accumulate(lg__node *n, int output, lg_tensor *g, bool create_graph);

/* ---- ops that modules alone use ---- */

/* relu(lg_linear(x, w, b)) as one op. */
lg_tensor *lg__linear_relu(lg_tensor *x, lg_tensor *w, lg_tensor *b);

#endif
