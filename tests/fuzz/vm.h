/* vm.h - the machine behind fuzz_api.c: bytes choose calls of libgrad and their operands.
 *
 * The machine has one or two contexts. Each has slots for tensors, scopes, modules and so on; a result goes to the next
 * slot, an operand is a byte that names one. Tensors and scopes stay in their slots when they have ended, for libgrad
 * notices their use; what must not be used after its end (a module, say) leaves its slot.
 */
#ifndef LG_FUZZ_VM_H
#define LG_FUZZ_VM_H

#include <math.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include "../failing.h"
#include "fuzz.h"

#define TENSORS 16
#define SCOPES 8
#define MODULES 6
#define OBJECTS 4
#define MOST_MEMORY (2 << 20) /* of a context */

typedef struct side {
        lg_ctx *ctx;
        failing memory;
        lg_tensor *tensors[TENSORS];
        lg_scope scopes[SCOPES];
        lg_module *modules[MODULES]; /* roots only */
        lg_optimizer *optimizers[OBJECTS];
        lg_scheduler *schedulers[OBJECTS];
        lg_ema *emas[OBJECTS];
        lg_dataset *datasets[OBJECTS];
        lg_loader *loaders[OBJECTS];
        lg_transform *transforms[OBJECTS];
        lg_collate *collates[OBJECTS];
        lg_group *groups[OBJECTS];
        lg_scaler *scalers[OBJECTS];
        lg_profiler *profiler;
        uint64_t region; /* the last one begun */
        int next;        /* slot of the next tensor */
} side;

/* How options are handed on: as the macros do, as by a header with fewer or more of them, more with one of those set,
 * without their size, none at all. */
typedef enum way { AS_THEY_ARE, OLDER, NEWER, NEWER_SET, SIZELESS, NONE, WAYS } way;

typedef struct vm {
        const uint8_t *at, *end;
        side sides[2], *now;
        int steps;     /* left */
        int depth;     /* of callbacks */
        int lent;      /* release functions that have not run */
        bool odd;      /* NULL was an operand, or a callback cleared errors: a call may fail without an error */
        lg_ctx *in;    /* whose call the innermost callback is in; NULL: none, or it is not known */
        way way;       /* of the next options that are handed on */
        size_t amount; /* of it: how many bytes, and so on */
        void *handed;  /* by this step: a copy of options */
        bool refused;  /* it is one that no call takes */
        bool unread;   /* nor reads: its size says nothing */
        FILE *nowhere;
} vm;

/* ---- operands: bytes beyond the end are 0 ---- */

uint8_t byte(vm *m);
bool flag(vm *m);
int64_t size(vm *m);  /* mostly 0 ... 8, seldom an extreme one */
int64_t small(vm *m); /* 1 ... 4 */
int dim(vm *m);
double number(vm *m);
lg_dtype dtype(vm *m);
lg_dtype float_dtype(vm *m); /* mostly */
lg_device device(vm *m);
lg_shape shape(vm *m);
lg_dims dims(vm *m);
/* A tensor of the current context; seldom NULL, dead or of the other one. */
lg_tensor *tensor(vm *m);
lg_tensor *maybe(vm *m);                          /* or NULL, where that is allowed */
lg_tensor *fresh(vm *m, lg_shape s);              /* of random values, f32, may require grad */
lg_tensor *indices(vm *m, lg_shape s, int64_t n); /* 0 ... n - 1, i64; seldom others */
lg_list list(vm *m, lg_tensor *room[4]);
lg_module *module(vm *m); /* a root or a child, or NULL */
/* Options as a call gets them: as they are or, once after call_odd_options, in another way. */
const void *hand(vm *m, const void *options, size_t size, size_t kept);
#define HAND(m, o) HAND_WITH(m, o, size_)
/* The same where callbacks rely on what the options have up to that member. */
#define HAND_WITH(m, o, member)                                                                                        \
        ((const __typeof__(o) *)hand((m), &(o), sizeof(o), offsetof(__typeof__(o), member) + sizeof((o).member)))

/* ---- results ---- */

void give(vm *m, lg_tensor *t);      /* of a call that computes: NULL and an error, or a good tensor and none */
void give_read(vm *m, lg_tensor *t); /* of a call that only reads */
bool failed(const vm *m);            /* an error is set */
void check_done(vm *m, bool ok);     /* the same for calls that return a bool */
void check_gradient(const lg_tensor *g, const lg_tensor *of); /* g is NULL, or of its shape, dtype and device */
uint64_t parameter_values(vm *m);                             /* of all modules of the current context, as a hash */

/* Puts what was just made into a slot that its first byte names. */
#define PUT(m, slots, object) ((slots)[byte(m) % (sizeof(slots) / sizeof *(slots))] = (object))
#define PICK(m, slots) ((slots)[byte(m) % (sizeof(slots) / sizeof *(slots))])
#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ---- running ---- */

typedef void call(vm *m);
#define CALL(name, inside) call call_##name;
#include "calls.def"
#undef CALL

/* Calls every generated call so often at most, until it succeeds, and then again with each of its allocations failing.
 * Returns how many never succeeded, after printing them. */
int made_that_fail(int64_t tries);
void side_open(side *s);
void side_close(vm *m, side *s);
void step(vm *m);
/* What callbacks do: a few steps, inside a call of that context. */
void mischief(vm *m, lg_ctx *in);
void release(void *user); /* for lg_borrow, lg_custom and modules: of a debt */
typedef struct debt {
        vm *m;
        lg_ctx *ctx; /* of the call that it was given to */
        void *memory;
} debt;
debt *owe(vm *m, size_t bytes);
void forgive(debt *d);   /* where release cannot have been called */
void files_forget(void); /* those that the program wrote */

#endif
