/* graph.h - the recorded graph: nodes, their edges and what they save. Private to libgrad/. */
#ifndef LG_GRAPH_PRIVATE_H
#define LG_GRAPH_PRIVATE_H

#include "tensor/tensor.h"

/* Where a gradient goes on: an output of another node; of what shape and dtype that value was. node NULL: nowhere. */
typedef struct lg__edge {
        lg__node *node;
        const int64_t *size; /* ndim of them, in the node's record */
        int output, ndim;
        lg_dtype dtype;
        lg_device device;
} lg__edge;

/* A value kept for a derivative: storage and layout, and where it came from (an output of the node itself: the node is
 * not named here, or it would keep itself alive). */
typedef struct lg__saved {
        lg__storage *storage;
        const int64_t *size; /* ndim of them, and as many strides, in the node's record */
        int64_t offset;
        lg_dtype dtype;
        int ndim;
        uint32_t version;
        int slot; /* which input or output */
        bool is_output;
} lg__saved;

/* Those sizes as a shape. */
static inline lg_shape lg__shape_of(const int64_t *size, int ndim)
{
        lg_shape s = {.ndim = ndim};
        for (int i = 0; i < ndim; i++)
                s.size[i] = size[i];
        return s;
}
static inline bool lg__sizes_equal(const lg__layout *at, const int64_t *size, int ndim)
{
        bool equal = at->shape.ndim == ndim;
        for (int i = 0; i < ndim && equal; i++)
                equal = at->shape.size[i] == size[i];
        return equal;
}

typedef struct lg__cast lg__cast; /* autocast.c */
typedef struct lg__hook {
        struct lg__hook *next;
        lg_hook_fn *fn;
        void *user;
        int output;
} lg__hook;

/* Looks on while backwards run, and is told as soon as the gradient of one of its tensors is complete. In the context's
 * list from lg__watcher_add to lg__watcher_remove, which nothing calls while one runs. Functions that return false have
 * set an error. */
typedef struct lg__watcher {
        struct lg__watcher *next;
        const void *call;                          /* the backward that runs; NULL: none */
        const char *name;                          /* for messages */
        lg_list (*tensors)(struct lg__watcher *w); /* some may have no leaf */
        bool (*begin)(struct lg__watcher *w);
        bool (*complete)(struct lg__watcher *w, int64_t number); /* what this backward brings is in the kept gradient */
        bool (*end)(struct lg__watcher *w, bool ok);             /* !ok: an error is set */
        void (*free)(struct lg__watcher *w);                     /* its owner ends */
} lg__watcher;
void lg__watcher_add(lg_ctx *c, lg__watcher *w);
void lg__watcher_remove(lg_ctx *c, lg__watcher *w);

/* One application of an op, or a leaf (op NULL, one output). */
struct lg__node {
        const lg__op *op;
        lg_ctx *ctx;
        uint64_t sequence;
        int refs;
        int in_count, out_count, saved_count;
        bool freed;                  /* what it saved is gone: a backward went through */
        size_t bytes;                /* of this record */
        lg__hook *hooks;             /* the last one, behind which the first comes; NULL: none */
        lg__cast *cast;              /* of a leaf, that a region of lg_autocast() keeps; or NULL */
        lg_tensor **grads;           /* by output, of leaves and retained outputs; NULL: none is kept */
        uint32_t retain;             /* outputs whose gradient is kept, by bit */
        lg__node *next;              /* in the work list of unref */
        struct lg__pending *pending; /* in the innermost backward call that reached it */
        char *where;                 /* the module that recorded it, if an observer noted it; NULL: not known */
        lg__edge *edges;             /* in_count */
        lg__saved *saved;            /* saved_count */
        void *attributes;
};
void lg__node_ref(lg__node *n);
void lg__node_unref(lg__node *n);      /* NULL: nothing; never recurses */
void lg__node_free_saved(lg__node *n); /* after a backward that does not retain the graph */
/* The node of a leaf that requires grad, made when it is first needed. */
lg__node *lg__leaf_node(lg_tensor *t);
/* t, which ends, leaves its node, and takes the gradient that is kept for it along. */
void lg__leave_node(lg_tensor *t);
/* A forward that a backward runs again: what was recorded since, and the tensors that it is given, and LG_END. */
typedef struct lg__rerun {
        uint64_t since;
        lg_tensor *const *given;
        int count;
        const char *name; /* of the module */
} lg__rerun;
/* Ends the cast that is kept of a leaf, or those of all leaves. */
void lg__drop_cast(const lg__node *leaf);
void lg__drop_casts(lg_ctx *c);
/* Forgets a kept gradient. */
void lg__node_clear_grad(lg__node *n, int output);
/* False, with an error of `op`, if the two gradients of one value are on two devices: its module moved in between. */
bool lg__gradients_meet(const lg_tensor *was, const lg_tensor *g, const char *op);
/* Another handle, owned by the library, of the same value. */
lg_tensor *lg__alias_of(const lg_tensor *g);
/* lg_backward() by another name, of a loss that was checked. */
bool lg__backward(const char *name, lg_tensor *loss, lg_backward_options o);
/* lg_grad() of y, given its gradient, both tensors of the innermost scope: they end before the derivatives run. */
bool lg__spend_grad(lg_tensor *y, lg_tensor *grad, lg_list inputs, bool create_graph, lg_tensor **ret);
/* Takes over g, a tensor that the caller owns, as (part of) the gradient of a leaf or retained output. */
bool lg__node_accumulate(lg__node *n, int output, lg_tensor *g, bool create_graph);

#endif
