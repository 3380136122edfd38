/* tape.h - the kernel calls of a step as a list that can be run again. Private to libgrad/.
 *
 * While a context has a tape, every kernel call is added to it with a copy of its arguments before it runs, and new
 * storages and workspaces come from the tape's own cache, so that their addresses stay valid. Running the tape calls
 * the kernels again in the same order with the same addresses. Numbers that change from run to run, such as a learning
 * rate, are in device memory: in dials, which one kernel sets before the calls. What the host does in a step, such as
 * counting it, is repeated by functions. A tape has one device. Where the device can, the calls are captured as a
 * graph, which is then launched as a whole; operations of a link to other processes, which are no kernels, stay between
 * several graphs.
 */
#ifndef LG_TAPE_H
#define LG_TAPE_H

#include <stdio.h>
#include "core/core.h"

/* Bytes that are appended one after the other; `room` are allocated. */
typedef struct lg__bytes {
        char *p;
        int64_t used, room;
} lg__bytes;

/* Writes the present numbers of a dial. `ahead` counts the works of the host with the same owner that are before the
 * dial on the tape, but are not done yet. */
typedef void lg__dial_fn(void *owner, int64_t index, int64_t ahead, double *value);
/* Does the work of the host in a step; data is a copy of what lg__tape_host() was given. */
typedef void lg__host_fn(void *owner, const void *data, size_t bytes);
/* Returns whether a tape that was recorded with this data computes the same as the function would. */
typedef bool lg__fits_fn(void *owner, const void *data, size_t bytes);
/* Does what the function would do before the calls of a tape. Returns false with an error. */
typedef bool lg__prepare_fn(void *owner);

typedef struct lg__tape_dial {
        lg__dial_fn *refresh;
        void *owner;
        int64_t index, ahead;
} lg__tape_dial;

typedef struct lg__tape_call {
        const char *op;
        int kernel;      /* an lg__kernel, or LG__KERNEL_POINTWISE + an elementwise one; unused for other calls */
        lg__host_fn *fn; /* of work of the host; NULL: none */
        void *owner;     /* of that work */
        lg_link *link;   /* of an operation of a link or, without arguments, a wait for one; NULL: neither */
        uint64_t ticket; /* of the operation in its last run; of a wait: the number of the operation's call */
        void *graph;     /* the kernel calls between the last call of a link and this one, captured; NULL: none */
        int64_t args;    /* offset of the arguments or of the work's data in the tape's bytes */
        int64_t bytes;   /* number of bytes of these */
        int64_t updates; /* offset of the copied array of a pass over many tensors; -1: none */
} lg__tape_call;

/* Note on a kernel call, for printing. */
typedef struct lg__tape_note {
        lg_dtype dtype; /* of the result of its op; 0: unknown */
        lg_shape shape;
        int64_t bytes;   /* of the operands and results of the op */
        double seconds;  /* that it took when the tape first ran, if kernels have run when they return */
        void *from, *to; /* marks before and after it in the recorded run on other devices */
} lg__tape_note;

/* A piece of memory that a step uses. Requests and returns of pieces are events, which are numbered together. */
typedef struct lg__life {
        const lg__block *block; /* until it is returned */
        int64_t bytes, at;      /* rounded up; offset in the planned memory */
        int64_t from, to;       /* events that request and return it; to: INT64_MAX if the step keeps it */
        int64_t tried;          /* an offset that is tried */
        struct lg__life *next;  /* the next one by that */
} lg__life;

/* The memory of a tape. A tape that cannot run notes the requests of the device's cache. The next one has its pieces at
 * places that were planned from these, as long as its events are the same; after that, its cache serves the others. */
typedef struct lg__arena {
        lg__cache cache;
        lg__life *lives;
        int64_t count, room, next; /* next: number of the next request */
        int64_t events;
        lg__block *planned; /* memory of all planned pieces, or NULL */
        bool noting, follows;
} lg__arena;

struct lg__tape {
        lg_ctx *ctx;
        lg__device *device;
        lg__arena *memory;
        lg__cache *arena; /* the memory's; NULL: the tape cannot run */
        lg__tape_call *calls;
        int64_t count, room;
        lg__tape_note *notes; /* of the calls, if there is an arena */
        int64_t note_room, described;
        bool timing, timed;   /* the last call has a mark and needs another; the calls were timed */
        lg__tape_dial *dials; /* and their values, in the same order */
        lg_dial *values;
        int64_t dial_count, dial_room, value_room;
        lg__bytes data;  /* of calls and watches */
        lg__block *kept; /* memory of the dials and of values of the host */
        void **scratch;  /* addresses of workspaces in the order of their requests */
        int64_t scratch_count, scratch_room, next_scratch;
        lg_random_state random; /* at the beginning */
        uint64_t rank_seed, draws;
        const char *refused; /* why the calls cannot be run again, or NULL */
        struct lg__tape_watch *watches;
        void *graph;          /* the kernel calls after the last call of a link, captured; NULL: none */
        bool tried, captured; /* capturing was tried, with success */
        uint64_t run;         /* ctx->run while the tape is paused */
};

/* Begins a tape: calls of c are added to it until lg__tape_end(). `before` is a tape of the same step; NULL: storages
 * come from the device's cache and the tape cannot run. Returns false with an error. */
bool lg__tape_begin(lg__tape *t, lg_ctx *c, lg__device *d, lg__tape *before);
void lg__tape_end(lg__tape *t);
/* Runs all calls again. Returns false with an error. */
bool lg__tape_run(lg__tape *t);
void lg__tape_free(lg__tape *t);
/* Notes the end of the last call. */
static inline void lg__tape_done(lg__tape *t)
{
        if (t->timing)
                t->device->api->time_mark(t->device->queue, &t->notes[t->count - 1].to);
        t->timing = false;
}
/* Notes the result of the op that made the last calls, and the bytes of its operands and results. */
void lg__tape_describe(lg__tape *t, lg_dtype dtype, lg_shape shape, int64_t bytes);
/* Returns the name of the first call whose kernel or whose numbers differ in two tapes of the same step, or NULL. */
const char *lg__tape_difference(const lg__tape *a, const lg__tape *b);

/* Plans the memory of the lives that `noted` has, which move to a. Returns false with an error. */
bool lg__arena_plan(lg__arena *a, lg__arena *noted);
/* Finds an offset for each piece, so that no two overlap that are in use at once; `order` has room for `count`
 * addresses. Returns the bytes of all together. */
int64_t lg__place_lives(lg__life *lives, int64_t count, lg__life **order);

/* Makes the tape depend on an object: it is valid while o exists and the `bytes` bytes at p, a part of it, are the
 * same. Does nothing without a tape. */
void lg__tape_watch(lg_ctx *c, lg__object *o, const void *p, size_t bytes);
bool lg__tape_valid(const lg__tape *t);
/* Makes the tape depend on an object: it is valid while o exists and fits(o, copy of data, bytes) holds, and its runs
 * begin with prepare(o). Both may be NULL. Does nothing without a tape. */
void lg__tape_check(lg_ctx *c, lg__object *o, lg__fits_fn *fits, const void *data, size_t bytes,
                    lg__prepare_fn *prepare);
/* Returns false if the tape will not be valid again: an object was freed, or does not fit. */
bool lg__tape_lasts(const lg__tape *t);
/* Does what must precede a run, and may fail with an error. */
bool lg__tape_prepare(const lg__tape *t);
/* Adds work of the host, which the caller has done. Does nothing without a tape. */
void lg__tape_host(lg_ctx *c, lg__host_fn *fn, void *owner, const void *data, size_t bytes);
/* Starts an operation of a link and sets *ticket, or lets d's later work wait for it, as d->api->links do; runs of the
 * tape do so again. Return false with an error. */
bool lg__tape_link(lg__device *d, const char *op, lg_link *link, const lg_link_args *a, uint64_t *ticket);
bool lg__tape_wait(lg__device *d, const char *op, lg_link *link, uint64_t ticket);
/* Sets a dial, to what refresh() writes, and lets runs of the tape do so. `to` has LG_STEP_INPUTS words in device
 * memory; a tape uses memory of its own instead. Returns the memory, or NULL with an error. */
double *lg__dial(lg__device *d, const char *op, double *to, lg__dial_fn *refresh, void *owner, int64_t index);
/* Returns what a kernel adds to its seed and position (lg_random_args.moved): NULL without a tape. */
const uint64_t *lg__tape_moved(lg_ctx *c);
/* Stops and goes on with adding calls, with the tape's memory and with noting ops: for what is done in a first step or
 * in some steps only. Returns the tape, or NULL. */
lg__tape *lg__tape_pause(lg_ctx *c);
void lg__tape_resume(lg__tape *t);
/* Appends a copy of bytes, aligned. Returns their offset; -1: no memory. */
int64_t lg__bytes_put(lg_ctx *c, lg__bytes *to, const void *data, size_t bytes);
/* Free parts of a tape. */
void lg__tape_drop_graphs(lg__tape *t);
void lg__tape_drop_watches(lg__tape *t);
/* Counts a change of s in place, now and whenever the tape runs. */
void lg__storage_changed(lg__storage *s);
/* Returns whether there is a tape, on which s was changed so. */
bool lg__tape_changes(const lg_ctx *c, const lg__storage *s);

#endif
