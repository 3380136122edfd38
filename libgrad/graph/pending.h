/* pending.h - the state of one backward call: a record of pending gradients for each node reached, and a heap of the
 * records, newest node first. Private to graph/. */
#ifndef LG_PENDING_H
#define LG_PENDING_H

#include "graph/op.h"

typedef struct lg__call_state call;

typedef struct lg__pending {
        lg__link link;             /* in the call's list of all records */
        struct lg__pending *outer; /* the same node's record in the enclosing backward call, if calls are nested */
        const call *owner;
        lg__node *node;
        bool queued, needed, visited;
        bool asked;           /* lg_grad() was asked for the gradient of one of the node's outputs */
        int edge;             /* index of the next edge to visit, in the depth-first search */
        lg__watcher *watcher; /* called when a leaf's gradient is complete; NULL: none, or already called */
        int64_t number;       /* index of the leaf among the watcher's tensors */
        int64_t waiting;      /* number of edges that may still deliver a gradient to the leaf */
        size_t bytes;
        lg_tensor *grads[]; /* accumulated gradients, indexed by output, owned by this record */
} pending;

typedef struct stack {
        pending **items;
        int64_t count, room;
} stack;

/* State of one lg_backward() or lg_grad() call. */
struct lg__call_state {
        lg_ctx *ctx;
        const char *name;
        stack heap; /* records that have gradients, newest node on top */
        lg__link all;
        bool create_graph, retain_graph;
        bool only_needed; /* lg_grad(): visit only nodes that lead to `inputs`, and accumulate nothing on leaves */
        bool spends;      /* free the outputs and the given gradients once the call has begun */
        bool watched;     /* some leaves have watchers */
        lg_list inputs;
        lg_tensor **result;
};

/* Makes room for one more item. Returns false and sets an error if there is no memory. */
bool lg__stack_room(lg_ctx *c, stack *s);
bool lg__heap_push(call *k, pending *p);
pending *lg__heap_pop(stack *h);
/* Returns the record of a node in this call. If there is none, find returns NULL and get creates a record. */
pending *lg__pending_find(const call *k, const lg__node *n);
pending *lg__pending_get(call *k, lg__node *n);
void lg__pending_free(pending *p);
/* Adds g to the gradient pending at an output of n, and takes ownership of g (derive.c). */
bool lg__arrive(call *k, lg__node *n, int output, lg_tensor *g);
/* Returns g, a result of a derivative, as a handle that the call owns, summed and cast to the shape and dtype of the
 * input that edge e describes. Returns NULL and sets an error if g does not fit. */
lg_tensor *lg__reduce_to_input(lg_tensor *g, const lg__edge *e);
/* Adds the gradient of a view in place to the viewed region of its base's pending gradient (region.c). Returns false
 * if the view's own derivative must run instead; otherwise ret_ok says whether it succeeded. */
bool lg__derive_view(call *k, lg__vjp *v, bool *ret_ok);
/* Runs the derivative of p's node, and adds the results to the pending gradients of its inputs. */
bool lg__derive_node(call *k, pending *p);
/* Finds the watched leaves, counts the edges that can deliver gradients to each, and starts the watchers that have a
 * leaf in the graph. Called after the outputs have records and before any node runs (watch.c). */
bool lg__watch_begin(call *k);
/* Calls the watcher of a leaf whose gradient is complete and accumulated. */
bool lg__watch_tell(const call *k, pending *leaf);
/* Ends the watchers, after all nodes have run or after an error. Returns whether everything succeeded. */
bool lg__watch_end(call *k, bool ok);
/* Frees all records of a call, also after a failure. */
void lg__pending_finish(call *k);

#endif
