/* core.h - contexts, errors, memory, devices and storages. Private to libgrad/. */
#ifndef LG_CORE_H
#define LG_CORE_H

#include <locale.h>
#include <stdarg.h>
#include <stdatomic.h>
#include "grad.h"
#include "../../kernels/kernels.h"

#define LG_DEVICE_TYPE_COUNT (LG_DEVICE_SHADOW + 1)

typedef struct lg__storage lg__storage;
typedef struct lg__recipe lg__recipe;
typedef struct lg__node lg__node;
typedef struct lg__op lg__op;
typedef struct lg__observer lg__observer;
typedef struct lg__frame lg__frame;
typedef struct lg__scope lg__scope;
typedef struct lg__tape lg__tape;

/* ---- linked lists ---- */

typedef struct lg__link {
        struct lg__link *prev, *next;
} lg__link;
void lg__link_init(lg__link *head);
void lg__link_add(lg__link *head, lg__link *link); /* adds at the end of the list */
void lg__link_remove(lg__link *link);              /* does nothing for a link in no list */

/* Base of what a context owns besides tensors (modules, optimisers, loaders, data sets), destroyed by lg_close(),
 * newest first. Must be the first member of such a record. */
typedef struct lg__object {
        lg__link link;
        lg_ctx *ctx;
        const struct lg__type *type; /* NULL while the object is being destroyed */
        struct lg__weak *weak;       /* list of weak references to the object */
        int uses;                    /* number of other objects that use this one */
        uint32_t bytes : 31;         /* size of the record */
        uint32_t freed : 1;          /* freed by the user: destroyed when `uses` becomes 0 */
} lg__object;
/* Type of an object. Types whose objects have state to save have `visit`, which lists the tensors and values of an
 * object (state/entries.h). */
typedef struct lg__state_entries lg__state_entries;
typedef struct lg__type {
        void (*destroy)(lg__object *o); /* releases what the record refers to; may be NULL */
        bool (*visit)(lg__object *o, lg__state_entries *list);
        bool (*may_change)(lg__object *o, const char *op); /* called before a load; false: an error is set */
        void (*restored)(lg__object *o);                   /* called after a load; may be NULL */
} lg__type;
/* Creates an object of this size, zero except for the lg__object, and registers it with c. Returns NULL if c is NULL,
 * c has an error or there is no memory. */
void *lg__object_new(lg_ctx *c, const lg__type *type, size_t bytes);
void *lg__object_destroy(void *o); /* unregisters, destroys and frees o, which may be NULL; returns NULL */
/* Weak reference: becomes NULL when the object is destroyed. */
typedef struct lg__weak {
        lg__object *object;
        struct lg__weak *next, **at; /* at: address of the pointer to this reference */
} lg__weak;
void lg__weak_set(lg__weak *w, lg__object *o); /* makes w refer to o, which may be NULL */
/* lg__object_use() counts a use and returns o. lg__object_done() ends a use, and destroys o after the last if o was
 * freed. lg__object_free() frees o for the user: at once or after the last use. o may be NULL. */
void *lg__object_use(void *o);
void lg__object_done(void *o);
void lg__object_free(void *o);
/* Returns false and sets LG_ERR_STATE if o is being destroyed and `op` was called from a release function. */
bool lg__object_lasts(const lg__object *o, const char *op);

/* ---- memory: cache.c (buffers), records.c ---- */

/* Caching allocator of one device: free blocks in lists by size class, each described by a record on the host. Large
 * blocks are split for smaller requests, and joined again when both parts are free. */
typedef struct lg__block {
        struct lg__cache *cache;
        struct lg__block *next, *prev;   /* list of free blocks; the owner of a block in use may set next */
        struct lg__block *lower, *upper; /* adjacent parts of one system allocation */
        void *p;
        size_t bytes;
        bool free;
} lg__block;
#define LG__CLASSES 480
typedef struct lg__cache {
        lg_ctx *ctx;
        lg_device device;
        lg__block *free[LG__CLASSES];
        uint64_t some[(LG__CLASSES + 63) / 64]; /* bit k: class k has a free block */
        lg_memory_stats_t stats;
        int64_t limit;           /* maximum of used and cached bytes together; 0: no limit */
        struct lg__cache *whole; /* the device's cache, which counts the memory of a tape's; NULL: not of a tape */
        bool left;               /* by its tape: the cache is freed with its last block in use */
} lg__cache;
/* Returns a block of at least `bytes` > 0 bytes, or NULL with LG_ERR_MEMORY. Empties the caches before failing. */
lg__block *lg__cache_get(lg__cache *cache, size_t bytes);
void lg__cache_put(lg__block *block); /* returns a block to its cache; block may be NULL */
/* Frees the cache of a tape, when none of its blocks is in use. */
void lg__cache_leave(lg__cache *cache);
void lg__cache_empty(lg__cache *cache);

/* Pool of records of up to LG__POOL_MAX bytes, in steps of 16, cut from slabs. Larger ones are blocks of the CPU's
 * cache. */
#define LG__POOL_MAX 1024
typedef struct lg__pool {
        struct lg__slab *slabs;
        void *free[LG__POOL_MAX / 16 + 1];
} lg__pool;
/* Returns zeroed memory, or NULL with LG_ERR_MEMORY. lg__free() needs the same size again. */
void *lg__alloc(lg_ctx *c, size_t bytes);
void *lg__alloc_unset(lg_ctx *c, size_t bytes);  /* as lg__alloc(), but not zeroed */
void lg__free(lg_ctx *c, void *p, size_t bytes); /* p may be NULL; bytes as allocated */
/* Allocates directly from the memory hooks; if they fail, empties the caches and tries again. For records too large
 * for the pool that are created before the CPU's cache. */
void *lg__host_alloc(lg_ctx *c, size_t bytes);
void lg__host_free(lg_ctx *c, void *p, size_t bytes);
/* Makes room for one more item in an array from lg__alloc(); `items` is the address of the array pointer. Doubles a
 * full array. Returns false, with an error and nothing changed, if there is no memory. */
bool lg__grow(lg_ctx *c, void *items, int64_t count, int64_t *room, size_t item_bytes);
char *lg__strdup(lg_ctx *c, const char *s);
void lg__strfree(lg_ctx *c, char *s);
void lg__pool_finish(lg_ctx *c);

/* ---- devices: device_type.c, device.c ---- */

/* Returns the name of a device type, such as "cuda". */
const char *lg__device_type_name(lg_device_type type);
/* Returns the interface of a device type, whose module is loaded if necessary, or NULL and writes a reason. */
const lg_device_api *lg__device_type(lg_device_type type, char *reason, size_t size);

/* Device of a context, opened at first use. */
typedef struct lg__device {
        struct lg__device *next;
        lg_device id;
        const lg_device_api *api;
        lg_queue *queue;
        lg__cache cache;
        lg__cache *arena;   /* cache that new storages and workspaces use instead, or NULL */
        lg__block *scratch; /* workspaces of the current kernel call */
} lg__device;
/* Returns the device, opened if necessary, or NULL with an error. An id of {0, 0} is the default device. */
lg__device *lg__device_get(lg_ctx *c, lg_device id);
void lg__devices_finish(lg_ctx *c);
/* Waits for all devices, ignoring their errors, and empties their caches. */
void lg__devices_empty(lg_ctx *c);
/* Ends a kernel call: frees its workspaces, sets the error "op: ..." if the call failed, and returns its success. */
bool lg__kernel_done(lg__device *d, const char *op, bool ok);
/* Adds a kernel call to the tape of d's context, which has one. */
bool lg__tape_add(lg__device *d, const char *op, int kernel, const void *args, size_t bytes);
/* Adds a copy of values of the host, which the tape keeps in device memory. */
bool lg__tape_upload(lg__device *d, const char *op, void *to, const void *from, size_t bytes);
typedef enum lg__kernel {
#define KERNEL(name, args) LG__KERNEL_##name,
#include "../../kernels/kernels.def"
        LG__KERNEL_POINTWISE /* and from here on the elementwise kernels */
} lg__kernel;
/* LG__RUN(d, "matmul", gemm, &args) runs the kernel gemm on device d, and sets an error if it fails. */
#define LG__RUN(d, op, kernel, args)                                                                                   \
        lg__kernel_done(                                                                                               \
                (d), (op),                                                                                             \
                (!(d)->cache.ctx->tape || lg__tape_add((d), (op), LG__KERNEL_##kernel, (args), sizeof *(args))) &&     \
                        (d)->api->kernels->kernel((d)->queue, (args)))
/* Public function that was given an index or label; kernels record its number if a value is out of range. */
typedef enum lg__origin {
        LG__ORIGIN_CROSS_ENTROPY = 1,
        LG__ORIGIN_NLL,
        LG__ORIGIN_GATHER,
        LG__ORIGIN_SCATTER_ADD,
        LG__ORIGIN_INDEX_SELECT,
        LG__ORIGIN_INDEX_ADD,
        LG__ORIGIN_EMBEDDING,
        LG__ORIGIN_ONE_HOT,
        LG__ORIGIN_TAKE_ALONG_DIM,
        LG__ORIGIN_SCATTER,
        LG__ORIGIN_SCATTER_SCALAR,
        LG__ORIGIN_SCATTER_REDUCE,
        LG__ORIGIN_INDEX_COPY,
        LG__ORIGIN_INDEX_REDUCE,
        LG__ORIGIN_MAX_UNPOOL,
        LG__ORIGIN_TAKE, /* from here on, negative indices count from the end */
        LG__ORIGIN_PUT,
        LG__ORIGIN_INDEX_FILL,
        LG__ORIGIN_INDEX,
        LG__ORIGIN_INDEX_PUT,
        LG__ORIGIN_MASKED_SCATTER,
        LG__ORIGIN_ATTENTION,
        LG__ORIGIN_RECURRENT,
        LG__ORIGIN_CHOLESKY, /* from here on, the error is in a matrix of a batch */
        LG__ORIGIN_SOLVE,
        LG__ORIGIN_INVERSE,
        LG__ORIGIN_EIGH,
        LG__ORIGIN_SVD
} lg__origin;
/* Waits for a device and reports the error that kernels recorded. Returns whether there was none. */
bool lg__device_wait(lg__device *d);
/* Reads the element at p by api->item(), which waits for the device, and reports errors as lg__device_wait() does. */
bool lg__device_item(lg__device *d, const void *p, lg_dtype from, void *ret, lg_dtype to);

/* ---- contexts: context.c, error.c ---- */

/* Functions of higher folders that lower folders call; lg_open() sets the pointers. */
typedef struct lg__upward {
        /* exports.c: frees exports that other programs have released */
        void (*collect)(lg_ctx *c, bool all);
        /* graph/: returns t's leaf node, created if missing; detaches a tensor that is being freed from its node */
        lg__node *(*leaf_node)(lg_tensor *t);
        void (*leave_node)(lg_tensor *t);
        /* ops/: ops that the graph itself applies; whether an elementwise op of that name exists */
        lg_tensor *(*add)(lg_tensor *a, lg_tensor *b);
        lg_tensor *(*cast)(lg_tensor *x, lg_dtype dtype);
        lg_tensor *(*contiguous)(lg_tensor *x);
        lg_tensor *(*channels_last)(lg_tensor *x);
        lg_tensor *(*sum_to)(lg_tensor *x, lg_shape shape);
        bool (*has_op)(const char *name);
} lg__upward;

#define LG__PATH 1024    /* maximum bytes of the path of a module's part or of an entry of a checkpoint */
#define LG__MESSAGE 1024 /* maximum bytes of a message */
struct lg_ctx {
        uint32_t live; /* LG__CTX_LIVE while the context is open */
        lg_error_code error;
        char message[LG__MESSAGE];
        char cleared[300]; /* message of the last cleared error, kept until the processes of a group agree again */
        void (*report_error)(lg_ctx *c); /* reports the error to other ranks; NULL: no group */
        lg_alloc_fn *alloc;
        lg_free_fn *free;
        void *memory_user; /* user pointer of alloc and free */
        const lg__upward *up;
        lg__pool pool;
        lg__device *devices, *cpu;
        lg_device default_device;
        lg_random_state random;
        uint64_t rank_seed; /* added to the seed of random draws, different for each rank; 0 without a group */
        int threads;
        bool deterministic, tf32, conv_tf32;
        bool recording;                /* grad mode: ops are recorded */
        int recomputing;               /* number of recomputed forward passes in progress (nn/recompute.c) */
        const struct lg__rerun *rerun; /* the innermost recomputed forward pass, or NULL */
        lg_dtype autocast;             /* dtype of the innermost autocast region (graph/autocast.c), or LG_DTYPE_NONE */
        lg__link casts;                /* cached casts of leaves, freed when the outermost region ends */
        lg_message_fn *message_fn;     /* receiver of messages, or NULL */
        void *message_user;
        lg__scope *scope;             /* the innermost scope */
        int64_t outermost_count;      /* number of tensors created in the outermost scope */
        bool outermost_reported;      /* message about too many tensors in this scope was sent */
        uint64_t scope_ids, sequence; /* the last scope id and node or tensor number assigned */
        lg__link objects, owned;      /* all objects; all tensors that belong to no scope */
        struct lg__watcher *watchers; /* watchers of backward passes (graph/graph.h) */
        lg_tensor *dead, *dead_tail;  /* queue of freed tensor records, to be reused */
        int64_t dead_count, live_count;
        lg__observer *observers;     /* list of observers (observer.h), or NULL */
        lg__observer *next_observer; /* the observer after the one whose callback runs */
        bool observing;              /* an observer's callback is running: its operations are not observed */
        lg__tape *tape, *replayed;   /* list to which kernel calls are added; list that is running; or NULL */
        uint32_t run, runs;          /* number of the recorder's run in progress, or 0; number of the last one */
        uint32_t run_storages;       /* number of storages made in the run */
        const char *unread;          /* function that runs a module and forbids it to read values, or NULL */
        const lg__frame *frame;      /* innermost frame of running modules, derivatives and named spans */
        lg_profiler *profiler;       /* open profiler, or NULL */
        double work;                 /* floating-point operations of products, convolutions and the like, all devices */
        const struct lg__files *files; /* replaced file system calls (io/files.h), or NULL for the usual ones */
        int user_calls;                /* number of running calls of user code, apart from those inside fence scopes */
        int64_t exports;               /* number of storages used by other programs (exports.c) */
        struct lg__export *collected;  /* released exports, not freed yet */
        _Atomic(struct lg__export *) given_back; /* exports released by any thread, or a mark */
};
#define LG__CTX_LIVE 0x6c67u
/* Counts the floating-point operations of a product, convolution, attention or recurrent layer, for profilers. */
static inline void lg__device_work(const lg__device *d, double flops)
{
        d->cache.ctx->work += flops;
}
/* Last part of lg_close(): frees devices, memory and the context. */
void lg__context_finish(lg_ctx *c);

/* Sets the context's error unless one is set already. Returns NULL, which also serves as false. */
void *lg__fail(lg_ctx *c, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);
void *lg__vfail(lg_ctx *c, lg_error_code code, const char *format, va_list args);
/* Returns false and sets LG_ERR_ARGUMENT if count is negative, or items is NULL although count is not 0. */
bool lg__list_ok(lg_ctx *c, const char *op, int64_t count, const void *items);
/* Formats a message and passes it to the function set by lg_on_message(), if any. */
void lg__message(lg_ctx *c, const char *format, ...) LG_PRINTF(2, 3);
/* Clears the error of the context only; lg_clear_error() also clears errors that kernels recorded on devices. */
void lg__forget_error(lg_ctx *c);
/* lg__point_begin() switches this thread to the "C" locale, so that numbers are formatted with a decimal point
 * whatever locale the program has set; lg__point_end() switches back. */
static inline locale_t lg__point_begin(void)
{
        return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0)); /* static in C libraries: allocates nothing */
}
static inline void lg__point_end(locale_t was)
{
        uselocale(was);
}
/* Search for the known names most similar to an unknown `name` (near.c). Initialise with .name only. */
#define LG__NEAREST 3
typedef struct lg__near {
        const char *name;
        int count;
        size_t edits[LG__NEAREST]; /* edit distances between name and each text, in ascending order */
        char text[LG__NEAREST][88], words[LG__NEAREST * 88 + 32];
} lg__near;
void lg__near_offer(lg__near *n, const char *candidate);
/* Returns the end of an error message, such as "; the nearest are "0.weight" and "1.weight"", or "" without names. */
const char *lg__near_words(lg__near *n);
/* Returns the code for a system call that failed with that errno: LG_ERR_MEMORY for ENOMEM, else LG_ERR_IO. */
lg_error_code lg__system_code(int error);
/* Flushes f. Returns true if all data was written, else false and sets LG_ERR_IO or LG_ERR_MEMORY. */
bool lg__written(lg_ctx *c, FILE *f, const char *op);
/* Returns true if c is not NULL and has no error. */
static inline bool lg__ok(const lg_ctx *c)
{
        return c && !c->error;
}

/* Reports the error of a context, if it has one, to the other processes of its groups. */
static inline void lg__report_error(lg_ctx *c)
{
        if (c && c->error && c->report_error)
                c->report_error(c);
}
/* Calls lg__report_error(c), then returns lg__ok(c); for public functions in which other processes may wait. */
static inline bool lg__enter(lg_ctx *c)
{
        lg__report_error(c);
        return lg__ok(c);
}

/* Returns how many cores this process may use: those of its affinity mask, a core with two hardware threads once, and
 * no more than the CPU time that its cgroups allow; at least 1. lg__processors_under() reads /proc and /sys of a
 * folder, for tests. */
int lg__processors(void);
int lg__processors_under(const char *root);
/* Returns the number of threads: `asked`, limited, or if 0 that of OMP_NUM_THREADS or the number of CPUs. */
int lg__threads_for(int asked);
/* Returns false and sets LG_ERR_STATE while a function given to lg_set_trace() runs, because the traced call still
 * uses tensors, gradients and modules that `op` might free. */
bool lg__may_end(lg_ctx *c, const char *op);
/* Returns false and sets LG_ERR_STATE while a recorder runs its function: what `op` does cannot be part of a step that
 * is run again from a list. */
bool lg__unrecorded(lg_ctx *c, const char *op);
/* Calls the user's release function, which may be NULL, and counts the call as user code. c may be NULL. */
static inline void lg__release(lg_ctx *c, void (*release)(void *user), void *user)
{
        if (c)
                c->user_calls++;
        if (release)
                release(user);
        if (c)
                c->user_calls--;
}

/* ---- options: options.c ---- */

/* Copies the caller's options to ret, which has the size that this library knows. Options that an older program lacks
 * become zero; options that only a newer program has must be zero, else LG_ERR_ARGUMENT. If options is NULL, all are
 * zero, the default. Returns false if c is NULL or has an error. */
bool lg__take(lg_ctx *c, const char *op, const void *options, void *ret, size_t size);
/* Copies options like lg__take(), but sets no error. Known options are copied even if false is returned. */
bool lg__take_without(const void *options, void *ret, size_t size);
/* Copies a struct of `known` bytes to a caller whose version of it has `size` bytes, and zeroes the rest. */
void lg__give(void *ret, size_t size, const void *from, size_t known);
/* Returns the value of an option: 0 for LG_ZERO, the default `otherwise` for 0, else `given`. */
static inline double lg__option(double given, double otherwise)
{
        return given == LG_ZERO ? 0 : given == 0 ? otherwise : given;
}
/* Returns the value of an integer option: 0 for LG_ZERO_INT, the default `otherwise` for 0, else `given`. */
static inline int64_t lg__whole_option(int64_t given, int64_t otherwise)
{
        return given == LG_ZERO_INT ? 0 : given == 0 ? otherwise : given;
}
/* Returns `sides` if they were given, else (each, each, each). */
static inline lg_triple lg__sides(lg_triple sides, int64_t each)
{
        return sides.given ? sides : LG_TRIPLE(each, each, each);
}
/* Returns the pair, if it was given, as a triple of depth 1. */
static inline lg_triple lg__deepened(lg_pair p)
{
        return (lg_triple){.given = p.given, .d = 1, .h = p.h, .w = p.w};
}

/* Returns the index, from 0 to n - 1, of the element that padding copies to position i of a dimension whose own
 * elements are at 0 to n - 1. Not for constant padding. */
static inline int64_t lg__pad_source(int64_t i, int64_t n, lg_pad_mode mode)
{
        if (i >= 0 && i < n)
                return i;
        if (mode == LG_PAD_REFLECT)
                return i < 0 ? -i : 2 * n - 2 - i;
        if (mode == LG_PAD_CIRCULAR)
                return i < 0 ? i + n : i - n;
        return i < 0 ? 0 : n - 1;
}

/* ---- storages: storage.c ---- */

/* Reference-counted memory of one device. `version` counts changes in place. */
struct lg__storage {
        lg_ctx *ctx;
        lg__device *device;
        lg__block *block; /* NULL if empty or borrowed */
        char *data;
        size_t bytes;
        int refs;
        uint32_t version;
        uint32_t run, number;        /* run of a recorder that made it, and its number there; 0: none */
        void (*release)(void *user); /* called when borrowed memory is no longer used */
        void *user;
        lg__device *pinned_for; /* device that copies from this pinned host memory asynchronously; NULL: not pinned */
        uint64_t mark;          /* event of the last asynchronous copy from this memory; 0: none */
        lg__recipe *recipe;     /* how to recompute the values, or NULL */
        int savers;             /* number of refs that derivatives hold, counted if there is a recipe */
};
lg__storage *lg__storage_new(lg__device *d, size_t bytes);
lg__storage *lg__storage_ref(lg__storage *s);
void lg__storage_unref(lg__storage *s); /* s may be NULL */
/* lg__storage_save() adds a reference held by a derivative, lg__storage_unsave() removes one. A storage with a recipe
 * and no other references frees its memory, and data is NULL until lg__storage_refill(). */
lg__storage *lg__storage_save(lg__storage *s);
void lg__storage_unsave(lg__storage *s);
/* Allocates uninitialised memory in place of the memory that was freed. Returns false and sets an error on failure. */
bool lg__storage_refill(lg__storage *s);

/* Recipe for recomputing a storage: the source storage, and the versions of source and storage for which the recipe is
 * valid. graph/remake.c extends this record, of `bytes` bytes, with the op. */
struct lg__recipe {
        lg__storage *from;
        uint32_t from_version, version;
        size_t bytes;
};

/* ---- exports, storages used by other programs: exports.c ---- */

/* Base of the record of an export, allocated by lg__alloc(); its first member. */
typedef struct lg__export {
        struct lg__export *next; /* next in a list of released exports */
        lg__storage *storage;
        size_t bytes; /* size of the whole record */
} lg__export;

/* Creates a record of this size with a reference to s. Returns NULL and sets an error if there is no memory. */
lg__export *lg__export_new(lg__storage *s, size_t bytes);
/* Releases an export, from any thread. The context frees the record later or, after lg_close(), at once. */
void lg__export_end(lg__export *e);
/* Frees released exports. Unless `all`, only those that call no release function, which is allowed everywhere. */
void lg__exports_collect(lg_ctx *c, bool all);
/* Last step of lg_close(): frees the context, or leaves that to the thread that releases its last export. */
void lg__exports_close(lg_ctx *c);

#endif
