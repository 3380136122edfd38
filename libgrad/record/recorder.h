/* recorder.h - recorders, their recordings and what these depend on. Private to record/. */
#ifndef LG_RECORDER_H
#define LG_RECORDER_H

#include "core/observer.h"
#include "core/tape.h"
#include "grad/record.h"
#include "graph/op.h"

#define LG__RECORDED_INPUTS 8

/* An op of a run: its attributes, and a number made of its operands. */
typedef struct noted {
        const lg__op *op;
        int64_t attributes; /* offset in the log's bytes */
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

/* What the context is set to, which chooses kernels and what is recorded. */
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
        char *bytes;
        int64_t bytes_used, bytes_room;
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

#endif
