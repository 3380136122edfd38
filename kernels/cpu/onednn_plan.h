/* onednn_plan.h - the primitives that a queue remembers, one plan for each geometry that was asked for. */
#ifndef LG_CPU_ONEDNN_PLAN_H
#define LG_CPU_ONEDNN_PLAN_H

#include "onednn.h"
#include <dnnl.h>
#include <dnnl_debug.h>

/* What a primitive is made for; zeroed wholly before it is filled, compared bytewise. */
typedef struct key {
        lg_conv_kind kind;
        int threads, bias;
        int64_t n, channels, outputs;
        lg_conv_geometry at;
} key;

/* An array of the primitive: images and weights lie as the kernel's arguments tell, or are reordered in scratch. */
typedef struct operand {
        dnnl_memory_t outside, inside; /* the same one where nothing is reordered */
        dnnl_primitive_t reorder;      /* NULL: none */
        size_t bytes;                  /* of the reordered copy */
} operand;

enum { SRC, WEIGHTS, DST, OPERANDS };
typedef struct plan {
        key key;
        uint64_t used; /* when, counted in calls; 0: an empty place */
        bool refused;
        int64_t images; /* at a time; a divisor of key.n */
        dnnl_primitive_t conv;
        operand operand[OPERANDS]; /* the images in, the weights, the images out: or the gradients by them */
        dnnl_memory_t bias, scratch;
        size_t scratch_bytes;
} plan;

/* A table of sets of a few plans each, of which the one unused for longest goes first. */
#define SETS 64
#define WAYS 4
typedef struct memo {
        dnnl_engine_t engine;
        dnnl_stream_t stream;
        uint64_t calls;
        plan plans[SETS][WAYS];
} memo;

/* True if status is success; else the queue is told what went wrong. */
bool lg__onednn_good(lg_queue *q, const char *what, dnnl_status_t status);
/* The memo of the queue's engine, made when it is first asked for. NULL: the queue knows why. */
memo *lg__onednn_memo(lg_queue *q);
/* The plan of a call on that many threads, made when it is first asked for; it may say that it is refused. NULL: the
 * queue knows why. */
plan *lg__onednn_plan(lg_queue *q, memo *m, const lg_conv_args *a, int threads);
/* Which operand a kernel gives, and what oneDNN calls operand i of it. */
int lg__onednn_result_of(lg_conv_kind kind);
int lg__onednn_argument_of(lg_conv_kind kind, int i);

#endif
