/* tape.h - the kernel calls of a step as a list that can be run again. Private to libgrad/.
 *
 * While a context has a tape, every kernel call is added to it with a copy of its arguments before it runs, and new
 * storages and scratch memory come from the tape's own cache, so that their addresses stay valid. Running the tape
 * calls the kernels again in the same order with the same addresses. Steps of the host (counting an optimiser's steps)
 * and values that change from run to run (a learning rate, the position of the random generator) are entries with a
 * function. A tape has one device.
 */
#ifndef LG_TAPE_H
#define LG_TAPE_H

#include "core/core.h"

enum { LG__KERNEL_UPLOAD = -1 }; /* a copy of values of the host, which the tape keeps */

/* Brings the arguments of a call up to date before it runs again, or does the work of the host. */
typedef void lg__tape_fn(void *owner, int64_t index, void *args);

typedef struct lg__tape_call {
        const char *op;
        bool (*run)(lg_queue *q, const void *args); /* NULL: an elementwise kernel, or work of the host */
        int kernel;                                 /* an lg__kernel, or LG__KERNEL_POINTWISE + an elementwise one */
        lg__tape_fn *refresh;                       /* NULL: the arguments never change */
        void *owner;
        int64_t index;
        int64_t args;    /* offset in the tape's bytes; -1: work of the host */
        int64_t updates; /* offset of the copied array of a pass over many tensors; -1: none */
} lg__tape_call;

struct lg__tape {
        lg_ctx *ctx;
        lg__device *device; /* of the first call */
        lg__cache *arena;
        lg__tape_call *calls;
        int64_t count, room;
        char *bytes;
        int64_t used, bytes_room;
        void **scratch; /* addresses of workspaces in the order of their requests */
        int64_t scratch_count, scratch_room, next_scratch;
        uint64_t counter, draws; /* position of the random generator at the beginning; blocks that the calls use */
        const char *refused;     /* why the calls cannot be run again, or NULL */
        struct lg__tape_watch *watches;
        lg__tape_fn *refresh; /* for the next call */
        void *owner;
        int64_t index;
};

/* Begins a tape: calls of c are added to it until lg__tape_end(). Without `memory`, storages come from the device's
 * cache and the tape cannot run. Returns false with an error. */
bool lg__tape_begin(lg__tape *t, lg_ctx *c, lg__device *d, bool memory);
void lg__tape_end(lg__tape *t);
/* Runs all calls again. Returns false with an error. */
bool lg__tape_run(lg__tape *t);
void lg__tape_free(lg__tape *t);
/* Returns the name of the first call whose kernel or whose numbers differ in two tapes of the same step, or NULL.
 * Numbers that are refreshed do not count. */
const char *lg__tape_difference(const lg__tape *a, const lg__tape *b);
/* Makes the tape depend on an object: it is valid while o exists and the `bytes` bytes at p, a part of it, are the
 * same. Does nothing without a tape. */
void lg__tape_watch(lg_ctx *c, lg__object *o, const void *p, size_t bytes);
bool lg__tape_valid(const lg__tape *t);
/* Prints the memory of a tape and its calls. */
void lg__tape_print(FILE *f, const lg__tape *t);
/* Adds work of the host. Does nothing without a tape. */
void lg__tape_host(lg_ctx *c, lg__tape_fn *fn, void *owner, int64_t index);
/* Sets the function that updates the arguments of the next call. Does nothing without a tape. */
void lg__tape_refresh(lg_ctx *c, lg__tape_fn *fn, void *owner, int64_t index);
/* Stops and goes on with adding calls and with the tape's memory: for what is done in a first step only. Returns the
 * tape, or NULL. */
lg__tape *lg__tape_pause(lg_ctx *c);
void lg__tape_resume(lg__tape *t);
/* Counts a change of s in place, now and whenever the tape runs. */
void lg__storage_changed(lg__storage *s);

#endif
