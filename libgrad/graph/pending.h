/* pending.h - gradients on their way through one backward call: a record for each node reached, a heap of them by age.
 * Private to backward.c and pending.c. */
#ifndef LG_PENDING_H
#define LG_PENDING_H

#include "graph/op.h"

typedef struct lg__call_state call;

typedef struct lg__pending {
        lg__link link;             /* in the call's list of all */
        struct lg__pending *outer; /* the same node's in a backward call that this one runs inside of */
        const call *owner;
        lg__node *node;
        bool queued, needed, visited;
        bool asked;           /* lg_grad() wants the gradient of one of its outputs */
        int edge;             /* next one to visit */
        lg__watcher *watcher; /* of a leaf: who is told when nothing more arrives; NULL: nobody, or it was told */
        int64_t number;       /* of the leaf, to the watcher */
        int64_t waiting;      /* edges to the leaf on which something can still arrive */
        size_t bytes;
        lg_tensor *grads[]; /* by output, owned */
} pending;

typedef struct stack {
        pending **items;
        int64_t count, room;
} stack;

/* One lg_backward or lg_grad. */
struct lg__call_state {
        lg_ctx *ctx;
        const char *name;
        stack heap; /* those with gradients, the newest node on top */
        lg__link all;
        bool create_graph, retain_graph;
        bool only_needed; /* lg_grad: go only where the inputs are, keep nothing on leaves */
        bool spends;      /* frees the outputs and their gradients, tensors of the innermost scope, once it has begun */
        bool watched;     /* some leaves have watchers */
        lg_list inputs;
        lg_tensor **result;
};

/* Makes room for one more item. */
bool lg__stack_room(lg_ctx *c, stack *s);
bool lg__heap_push(call *k, pending *p);
pending *lg__heap_pop(stack *h);
/* The record of a node in this call, or NULL; or made when it is first needed. */
pending *lg__pending_find(const call *k, const lg__node *n);
pending *lg__pending_get(call *k, lg__node *n);
void lg__pending_free(pending *p);
/* derive.c: adds g, which this takes over, to what has arrived at an output of n. */
bool lg__arrive(call *k, lg__node *n, int output, lg_tensor *g);
/* A result of a derivative as a handle that the call owns, cast and summed to what the input was. */
lg_tensor *lg__settle(lg_tensor *g, const lg__edge *e);
/* region.c: adds the gradients of a view to their part of what has arrived at its base. Returns false if the view's own
 * derivative has to run; else ret_ok says whether it went well. */
bool lg__derive_view(call *k, lg__vjp *v, bool *ret_ok);
/* Runs the derivative of p's node, and hands its results on. */
bool lg__derive_node(call *k, pending *p);
/* watch.c. Before the nodes run, with the records of the outputs: which leaves have watchers, and how much can arrive
 * there. Watchers with no leaf in the graph are left alone. */
bool lg__watch_begin(call *k);
/* A leaf has got all that can arrive, and it was handed on. */
bool lg__watch_tell(const call *k, pending *leaf);
/* After all nodes, or after an error; returns whether all is well. */
bool lg__watch_end(call *k, bool ok);
/* Frees all records of a call, after a failure too. */
void lg__pending_finish(call *k);

#endif
