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
        uint32_t bytes : 31;         /* of the record */
        uint32_t freed : 1;          /* by the user: it ends with its last use */
} lg__object;
/* A kind of object. What outlives a step has a visit: it names all that the object holds (state/roster.h). */
typedef struct lg__roster lg__roster;
typedef struct lg__type {
        void (*destroy)(lg__object *o); /* ends what the record refers to; NULL: nothing */
        bool (*visit)(lg__object *o, lg__roster *r);
        bool (*may_change)(lg__object *o, const char *op); /* before a load changes anything; false: an error */
        void (*restored)(lg__object *o);                   /* after it; NULL: nothing to do */
} lg__type;
/* A registered record of so many bytes, zero behind its head. NULL: no memory, or c is NULL or holds an error. */
void *lg__object_new(lg_ctx *c, const lg__type *type, size_t bytes);
void *lg__object_destroy(void *o); /* unregisters, destroys and frees; of NULL nothing. Returns NULL */
/* A reference that becomes NULL when the object is destroyed. */
typedef struct lg__weak {
        lg__object *object;
        struct lg__weak *next, **at; /* at: what points to this one */
} lg__weak;
void lg__weak_set(lg__weak *w, lg__object *o); /* to o, from what it referred to; either may be NULL */
/* Of records that others keep: one more use, which returns the record, and the end of one; what the user's call to free
 * it does. NULL: nothing. */
void *lg__object_use(void *o);
void lg__object_done(void *o);
void lg__object_free(void *o);
/* False, with LG_ERR_STATE, if o is being destroyed: a release function of what it owns calls `op`. */
bool lg__object_lasts(const lg__object *o, const char *op);

/* ---- memory: cache.c (buffers), records.c ---- */

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
/* Makes room for one more item in an array from lg__alloc, whose address is `items`: a full one doubles. False: no
 * memory, and nothing has changed. */
bool lg__grow(lg_ctx *c, void *items, int64_t count, int64_t *room, size_t item_bytes);
char *lg__strdup(lg_ctx *c, const char *s);
void lg__strfree(lg_ctx *c, char *s);
void lg__pool_finish(lg_ctx *c);

/* ---- devices: device_type.c, device.c ---- */

/* "cuda" */
const char *lg__device_type_name(lg_device_type type);
/* The interface of a device type, whose module is loaded if need be; NULL and a reason in words. */
const lg_device_api *lg__device_type(lg_device_type type, char *reason, size_t size);

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
typedef enum lg__origin {
        LG__ORIGIN_CROSS_ENTROPY = 1,
        LG__ORIGIN_NLL,
        LG__ORIGIN_GATHER,
        LG__ORIGIN_SCATTER_ADD,
        LG__ORIGIN_INDEX_SELECT,
        LG__ORIGIN_INDEX_ADD,
        LG__ORIGIN_EMBEDDING,
        LG__ORIGIN_ONE_HOT
} lg__origin;
/* Waits for a device and reports the error that kernels noted. */
bool lg__device_wait(lg__device *d);

/* ---- contexts: context.c, error.c ---- */

/* What lower rooms need of upper ones; lg_open fills it in. */
typedef struct lg__upward {
        /* exports.c: ends what other programs have given back */
        void (*collect)(lg_ctx *c, bool all);
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

#define LG__PATH 1024    /* bytes of the longest path to a part of a module, or of what a checkpoint holds */
#define LG__MESSAGE 1024 /* bytes of the longest message */
struct lg_ctx {
        uint32_t live; /* LG__CTX_LIVE */
        lg_error_code error;
        char message[LG__MESSAGE];
        char cleared[300]; /* the last error's message that was cleared, until processes of a group have agreed again */
        void (*report_error)(lg_ctx *c); /* to the other processes of its groups; NULL: there is no group */
        lg_alloc_fn *alloc;
        lg_free_fn *free;
        void *memory_user; /* of both */
        const lg__upward *up;
        lg__pool pool;
        lg__device *devices, *cpu;
        lg_device default_device;
        lg_random_state random;
        uint64_t apart; /* differs by rank: added to the seed of what is drawn; 0 without a group */
        int threads;
        bool deterministic, tf32;
        bool recording;                /* the grad mode */
        int recomputing;               /* forwards that run again, nn/recompute.c */
        const struct lg__rerun *rerun; /* the innermost of them; NULL: none */
        lg_dtype autocast;             /* of the innermost region, graph/autocast.c; LG_DTYPE_NONE: outside */
        lg__link casts;                /* those that the outermost region keeps */
        lg_message_fn *message_fn;     /* NULL: nobody listens */
        void *message_user;
        lg__scope *scope;             /* the innermost */
        int64_t outermost_count;      /* tensors made in the outermost scope */
        bool outermost_told;          /* that these are many */
        uint64_t scope_ids, sequence; /* the last ones given */
        lg__link objects, owned;      /* objects; tensors of no scope */
        struct lg__watcher *watchers; /* of backwards, graph/graph.h */
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
/* False, with LG_ERR_ARGUMENT: a list has entries but no array, or fewer than none. */
bool lg__list_ok(lg_ctx *c, const char *op, int64_t count, const void *items);
/* For who listens, see lg_on_message(). */
void lg__message(lg_ctx *c, const char *format, ...) LG_PRINTF(2, 3);
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
/* near.c: of names that are offered, the nearest ones to a name that is not there. Begins with .name alone. */
#define LG__NEAREST 3
typedef struct lg__near {
        const char *name;
        int count;
        size_t edits[LG__NEAREST]; /* between name and each, fewest first */
        char text[LG__NEAREST][88], words[LG__NEAREST * 88 + 32];
} lg__near;
void lg__near_offer(lg__near *n, const char *candidate);
/* "; the nearest are "0.weight", ..." to end a message with; empty: none was offered. */
const char *lg__near_words(lg__near *n);
/* Returns the code for a system call that failed with that errno: LG_ERR_MEMORY for ENOMEM, else LG_ERR_IO. */
lg_error_code lg__system_code(int error);
/* Ends the writing of a file: true if all of it was taken, or LG_ERR_IO. */
bool lg__written(lg_ctx *c, FILE *f, const char *op);
/* True if c is there and holds no error. */
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
/* Returns what lg__ok() does; for public functions at which other processes may wait for this one. */
static inline bool lg__enter(lg_ctx *c)
{
        lg__report_error(c);
        return lg__ok(c);
}

/* CPUs that this process may run on. */
int lg__processors(void);
/* How many threads that number asks for; 0: as the environment says, or all. */
int lg__threads_for(int asked);
/* False, with LG_ERR_STATE, while a function given to lg_set_trace runs: the call around it has tensors, gradients and
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

/* Returns which of n elements stands at place i of a padded dimension; a constant has none. */
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
        lg__recipe *recipe;     /* how the values can be made again; NULL: they cannot */
        int savers;             /* of refs, with a recipe: derivatives that wait for a backward */
};
lg__storage *lg__storage_new(lg__device *d, size_t bytes);
lg__storage *lg__storage_ref(lg__storage *s);
void lg__storage_unref(lg__storage *s); /* NULL: nothing */
/* A reference of a derivative. Where only these are left, a storage with a recipe gives its memory back, and data is
 * NULL until lg__storage_refill(). */
lg__storage *lg__storage_save(lg__storage *s);
void lg__storage_unsave(lg__storage *s);
/* Memory, not set, in place of what was given back. */
bool lg__storage_refill(lg__storage *s);

/* From which other storage values were made, when both had these versions; how, says whoever extends this record of
 * `bytes` bytes (graph/remake.c). */
struct lg__recipe {
        lg__storage *from;
        uint32_t from_version, version;
        size_t bytes;
};

/* ---- storages that other programs use, and give back in any thread, even after lg_close: exports.c ---- */

/* The first member of a record, from lg__alloc, that is an export. */
typedef struct lg__export {
        struct lg__export *next; /* among those that were given back */
        lg__storage *storage;
        size_t bytes; /* of the whole record */
} lg__export;

/* A new record of so many bytes with a reference to the storage. NULL and an error: no memory. */
lg__export *lg__export_new(lg__storage *s, size_t bytes);
/* Gives it back, in any thread. The record and its storage end when the context collects them; after lg_close, here. */
void lg__export_end(lg__export *e);
/* Ends what was given back. Unless `all`, only what calls no release function: that may be done anywhere. */
void lg__exports_collect(lg_ctx *c, bool all);
/* The end of lg_close: the context is freed, here or by the last of its exports. */
void lg__exports_close(lg_ctx *c);

#endif
