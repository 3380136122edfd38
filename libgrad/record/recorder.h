/* recorder.h - recorders, their recordings and what these depend on. Private to record/. */
#ifndef LG_RECORDER_H
#define LG_RECORDER_H

#include "core/observer.h"
#include "core/tape.h"
#include "grad/record.h"
#include "graph/op.h"

#define LG__RECORDED_INPUTS 8
#define LG__RUN_OP "lg_recorder_run"

/* An op of a run: its attributes, and a number made of its operands. */
typedef struct noted {
        const lg__op *op;
        int64_t attributes; /* offset in those of the recording */
        uint64_t operands;
} noted;

/* A tensor made before the run that an op of the run uses. */
typedef struct outer {
        lg_tensor *tensor;
        uint64_t serial;
        lg__storage *storage;
        lg__node *node; /* its leaf node, only to compare, or NULL */
        bool firm;      /* of a module or of the program, which freeing makes another run of; not a gradient */
        bool read;      /* the run reads a gradient that it had before */
} outer;

/* The gradient of a leaf that the run uses, which is outers[outer].tensor. */
typedef struct leaf {
        int64_t outer;
        lg__node *node;
        bool had;          /* a gradient before the run */
        lg_tensor *before; /* another handle of the gradient before the recorded run, if that reads it; or NULL */
        lg_tensor *grad;   /* another one of that after it, or NULL */
        lg_tensor *next;   /* another one, to be given to the leaf, or NULL */
} leaf;

/* Modes of the context, which choose kernels and whether ops are recorded. */
typedef struct modes {
        int threads;
        lg_dtype autocast;
        lg_device device; /* of new tensors */
        bool grad, deterministic, tf32, conv_tf32;
        const lg__watcher *watchers; /* the last data-parallel module */
} modes;

typedef struct recording {
        struct recording *next;
        int input_count;
        lg__layout given[LG__RECORDED_INPUTS]; /* layouts of the copies of the inputs */
        lg__device *device;
        modes modes;
        int64_t known;      /* the number of the recorder's leaves before the first run */
        uint64_t graded;    /* which of these had a gradient then */
        int64_t runs, used; /* number of runs; the recorder's count of runs at the last one */
        noted *ops;
        int64_t count, room, at;
        lg__bytes attributes;
        outer *outers;
        int64_t outer_count, outer_room;
        leaf *leaves; /* made after the first run, and again after the second */
        int64_t leaf_count, leaf_room;
        lg__tape noted, tape;               /* of the second run, only to compare; of the third */
        lg_tensor *in[LG__RECORDED_INPUTS]; /* these copies, which the function and the tape read */
        lg_tensor *result;                  /* of the tape; NULL: none */
        uint64_t outcome;                   /* of the second run: which tensor is its result, what has gradients */
} recording;

struct lg_recorder {
        lg__object object;
        lg_function *fn;
        lg_recorder_options o;
        recording *recordings;
        recording *running;
        outer *leaves; /* those of all recordings */
        int64_t leaf_count, leaf_room;
        int64_t runs, replays;
        lg__observer observer;
        uint64_t since; /* number of the last tensor or node made before the run */
};

/* Returns a number made of both. */
static inline uint64_t lg__mix(uint64_t h, uint64_t v)
{
        return (h ^ v) * UINT64_C(0x9E3779B97F4A7C15) ^ (h >> 29);
}

/* Returns whether t is a leaf with a gradient. */
static inline bool lg__has_gradient(const lg_tensor *t)
{
        return t->node && t->node->grads && t->node->grads[0];
}

/* Returns whether the tensor is not freed. */
static inline bool lg__outer_lives(const outer *o)
{
        return o->tensor->live == LG__LIVE && o->tensor->serial == o->serial;
}

/* Returns the node of the tensor; NULL: it was freed or is no leaf. */
static inline lg__node *lg__leaf_of(const outer *o)
{
        return lg__outer_lives(o) ? o->tensor->node : NULL;
}

/* ---- log.c ---- */

/* Sets the error that two runs differ in `what` of an op or function. Returns false. */
bool lg__log_differs(lg_recorder *r, const char *name, const char *what);
/* Returns a number made of which tensor the result is, and of which leaves have a gradient after the run. */
uint64_t lg__log_outcome(lg_recorder *r, const recording *k, lg_tensor *result);
/* Returns the callbacks that note the ops of a run, and what these use. */
lg__observer lg__log_observer(void);

/* ---- leaves.c ---- */

/* Returns a number made of which of the recorder's first `count` leaves have a gradient. */
uint64_t lg__graded(const lg_recorder *r, int64_t count);
/* Returns whether the leaf is as it was before the recorded run. */
bool lg__leaf_is_same(const recording *k, const leaf *l);
/* Frees what is known of the leaves. */
void lg__forget_leaves(lg_ctx *c, recording *k);
/* Lists the leaves that the runs before used. */
bool lg__list_leaves(lg_recorder *r, recording *k);
/* Note the gradients of the leaves before and after a run. */
void lg__note_gradients_before(recording *k);
void lg__note_gradients_after(recording *k);
/* Makes what lg__set_gradients() needs, so that it cannot fail for want of memory. */
bool lg__prepare_gradients(recording *k);
/* Copies gradients that the tape reads, but that other runs have made, to where it expects them. */
bool lg__copy_gradients(const recording *k);
/* Makes the gradients that the tape computes those of their leaves. */
bool lg__set_gradients(recording *k);

/* ---- recordings.c ---- */

/* Returns what the context is set to. */
modes lg__modes_of(const lg_ctx *c);
bool lg__same_modes(modes a, modes b);
/* Returns the recording with the most runs that fits these inputs, or NULL. */
recording *lg__recording_find(const lg_recorder *r, lg_list in);
/* Frees a recording. */
void lg__recording_forget(lg_recorder *r, recording *k);
/* Begins a recording, in place of those that are of no more use, or of the one that was not used for the longest time
 * if there are too many. */
recording *lg__recording_begin(lg_recorder *r, lg_list in);

#endif
