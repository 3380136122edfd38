/* graph.h - the recorded graph: nodes, the edges between them and the values they save. Private to libgrad/. */
#ifndef LG_GRAPH_PRIVATE_H
#define LG_GRAPH_PRIVATE_H

#include "tensor/tensor.h"

/* Edge from an input of a node to the node output that the input came from, with the input's shape, dtype and device.
 * node is NULL if that input needs no gradient. */
typedef struct lg__edge {
        lg__node *node;
        const int64_t *size; /* ndim sizes, stored in the node's allocation */
        int output, ndim;
        lg_dtype dtype;
        lg_device device;
} lg__edge;

/* Tensor value saved for the derivative of a node: a reference to its storage, and its layout. No reference to the
 * node that computed the value is kept, because a node that refers to itself would never be freed. */
typedef struct lg__saved {
        lg__storage *storage;
        const int64_t *size; /* ndim sizes, then ndim strides, stored in the node's allocation */
        int64_t offset;
        lg_dtype dtype;
        int ndim;
        uint32_t version;
        int slot; /* index of the saved input or output of the node */
        bool is_output;
} lg__saved;

/* Returns an array of ndim sizes as a shape. */
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

typedef struct lg__cast lg__cast; /* the cached 16-bit copy of a leaf; defined in autocast.c */
typedef struct lg__hook {
        struct lg__hook *next;
        lg_hook_fn *fn;
        void *user;
        int output;
} lg__hook;

/* Watcher of backward passes, which is called as soon as the gradient of one of its tensors is complete. It is in the
 * context's list from lg__watcher_add() to lg__watcher_remove(), which is never called during a backward pass.
 * Callbacks that return false have set an error. */
typedef struct lg__watcher {
        struct lg__watcher *next;
        const void *call;                          /* the backward pass being watched, or NULL outside one */
        const char *name;                          /* prefix of error messages */
        lg_list (*tensors)(struct lg__watcher *w); /* tensors to watch; some may have no leaf node */
        bool (*begin)(struct lg__watcher *w);
        bool (*complete)(struct lg__watcher *w, int64_t number); /* tensors(w)[number] has its final gradient */
        bool (*end)(struct lg__watcher *w, bool ok); /* after the backward pass; if ok is false, an error is set */
        void (*free)(struct lg__watcher *w);         /* called when the owner of the watcher is freed */
} lg__watcher;
void lg__watcher_add(lg_ctx *c, lg__watcher *w);
void lg__watcher_remove(lg_ctx *c, lg__watcher *w);

/* Node of the graph: one application of an op, or a leaf, which has op NULL and one output. */
struct lg__node {
        const lg__op *op;
        lg_ctx *ctx;
        uint64_t sequence;
        int refs;
        int in_count, out_count, saved_count;
        bool freed;        /* a backward pass has already freed the saved values */
        uint32_t place;    /* number by which a profiler finds the module that recorded the node, or 0 */
        size_t bytes;      /* size of the whole allocation: node, edges, saved values, sizes, attributes */
        lg__hook *hooks;   /* last element of a circular list, so hooks->next is the first hook; NULL: no hooks */
        lg__cast *cast;    /* 16-bit copy of this leaf that an lg_autocast() region caches, or NULL */
        lg_tensor **grads; /* accumulated gradients of leaves and retained outputs, indexed by output; NULL: none yet */
        uint32_t retain;   /* bit i: the gradient of output i is accumulated in grads[i] */
        lg__node *next;    /* next node to free, during lg__node_unref() */
        struct lg__pending *pending; /* this node's record in the innermost backward call that reached it, or NULL */
        char *where;                 /* path of the module that recorded the node, if an observer noted it, or NULL */
        lg__edge *edges;             /* in_count edges, one for each input */
        lg__saved *saved;            /* saved_count saved inputs and outputs */
        void *attributes;
};
void lg__node_ref(lg__node *n);
void lg__node_unref(lg__node *n);      /* n may be NULL; frees chains of nodes without recursion */
void lg__node_free_saved(lg__node *n); /* after a backward without .retain_graph */
/* Returns the leaf node of t, and creates it if t has none. */
lg__node *lg__leaf_node(lg_tensor *t);
/* Detaches t from its node before t is freed, and frees the gradient stored for t. */
void lg__leave_node(lg_tensor *t);
/* Forward pass that a backward pass recomputes (lg_recompute): the sequence number when it began, and its `count`
 * inputs and parameters, some of which may be LG_END. */
typedef struct lg__rerun {
        uint64_t since;
        lg_tensor *const *given;
        int count;
        const char *name; /* type of the module, for messages */
} lg__rerun;
/* Frees the cached 16-bit copy of one leaf, or of all leaves of a context. */
void lg__drop_cast(const lg__node *leaf);
void lg__drop_casts(lg_ctx *c);
/* Frees the accumulated gradient of an output, if there is one. */
void lg__node_clear_grad(lg__node *n, int output);
/* Tells a recorder that the gradient of t, if t is a leaf, is read, or freed. */
void lg__leaf_used(const lg_tensor *t, bool read);
/* Replaces the accumulated gradient of an output by g. Takes ownership of g, which the library owned. */
bool lg__node_set_grad(lg__node *n, int output, lg_tensor *g);
/* Returns false and sets an error prefixed with `op` if two gradients of one value differ in device or dtype, because
 * the parameter's module was moved or cast after part of the graph was recorded. */
bool lg__gradients_meet(const lg_tensor *was, const lg_tensor *g, const char *op);
/* Returns another handle of the same value and node, owned by the library, or NULL with an error. */
lg_tensor *lg__alias_of(const lg_tensor *g);
/* Runs lg_backward() on a loss that the caller has checked. Error messages begin with `name`. */
bool lg__backward(const char *name, lg_tensor *loss, lg_backward_options o);
/* Runs lg_grad() from y, whose gradient is `grad`, and stores the results in ret. Both are tensors of the innermost
 * scope, and are freed before the derivatives run, to save memory. */
bool lg__spend_grad(lg_tensor *y, lg_tensor *grad, lg_list inputs, bool create_graph, lg_tensor **ret);
/* Adds g to the accumulated gradient of a leaf or retained output. Takes ownership of g, which the caller owned. */
bool lg__node_accumulate(lg__node *n, int output, lg_tensor *g, bool create_graph);

#endif
