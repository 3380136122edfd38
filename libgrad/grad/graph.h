/* graph.h - recording, backward, gradients, own ops. */
#ifndef LG_GRAPH_H
#define LG_GRAPH_H

#include "grad/base.h"

LG_BEGIN

/* Marks a leaf (a float tensor that no recorded op made) as one that gets gradients, or not. Returns t. */
LG_API lg_tensor *lg_requires_grad(lg_tensor *t, bool on);
LG_API bool lg_needs_grad(const lg_tensor *t); /* a leaf that requires grad, or a result of one */
LG_API bool lg_is_leaf(const lg_tensor *t);
/* The gradient accumulated on a leaf (or on a tensor under lg_retain_grad), or NULL. It belongs to the leaf and lives
 * until lg_zero_grad or the leaf ends; the next backward may change it. */
LG_API lg_tensor *lg_grad_of(const lg_tensor *t);
/* Forgets the gradient of one leaf. */
LG_API bool lg_clear_grad(lg_tensor *t);
/* The gradient of this inner tensor will be kept, as a leaf's is. Returns t. */
LG_API lg_tensor *lg_retain_grad(lg_tensor *t);
/* Called with each gradient that reaches t, before it is used; may return another of that shape, or NULL to leave it.
 * It must not change that gradient in place: others may hold the same memory. A hook that a hook adds is called from
 * the next gradient on. */
typedef lg_tensor *lg_hook_fn(lg_tensor *grad, void *user);
LG_API bool lg_hook(lg_tensor *t, lg_hook_fn *fn, void *user);

/* grad: d(something)/d(t), of t's shape; ones for a tensor of one element. */
typedef struct lg_backward_options {
        lg_tensor *loss LG_DEFAULT;
        lg_tensor *grad LG_DEFAULT;
        bool retain_graph LG_DEFAULT; /* implied by create_graph */
        bool create_graph LG_DEFAULT;
} lg_backward_options;
/* Adds d loss / d leaf to the gradient of every leaf that loss depends on. Frees what the graph saved. */
#define lg_backward(...) lg_backward_(LG_INIT(lg_backward_options){.loss = __VA_ARGS__})
LG_API bool lg_backward_(lg_backward_options o);

typedef struct lg_grad_options {
        lg_list inputs LG_DEFAULT;
        lg_list grads LG_DEFAULT;      /* of the outputs; ones if not given */
        lg_tensor **result LG_DEFAULT; /* as many as inputs; NULL: no output depends on it, or a failure (all) */
        bool retain_graph LG_DEFAULT;
        bool create_graph LG_DEFAULT;
} lg_grad_options;
/* Computes gradients of the outputs by the inputs, which may be inner tensors, and accumulates nowhere. Returns the
 * first one; all go to .result if given. lg_grad(LG_LIST(y), LG_LIST(x), .create_graph = true) */
#define lg_grad(outputs, ...) lg_grad_((outputs), LG_INIT(lg_grad_options){.inputs = __VA_ARGS__})
LG_API lg_tensor *lg_grad_(lg_list outputs, lg_grad_options o);

/* Nothing is recorded while a no-grad region is open. lg_no_grad(c) { ... } is a block; do not leave it by break, goto
 * or return: use the pair then. */
#define lg_no_grad(c)                                                                                                  \
        for (bool lg_was_ = lg_grad_mode((c), false), lg_go_ = true; lg_go_; lg_go_ = false, lg_grad_mode((c), lg_was_))
/* Turns recording on or off and returns what it was. */
LG_API bool lg_grad_mode(lg_ctx *c, bool on);
/* The same values outside the graph; shares the storage. */
LG_API lg_tensor *lg_detach(lg_tensor *t);

/* An own op. forward computes out[i] from in[i] by ops or in own ways, unrecorded; backward gets the gradients of the
 * outputs (NULL: zero) and sets grad_in[i] (NULL: zero), by ops if it shall be derived again. Both return false after
 * lg_set_error on failure. `user` is theirs; release(user) runs once, when the op's node is freed, or before lg_custom
 * returns if it fails or records nothing. The struct and the name are copied. */
#define LG_CUSTOM_MAX 8
typedef struct lg_custom_call {
        lg_ctx *ctx;
        void *user;
        int in_count, out_count;
        lg_tensor *in[LG_CUSTOM_MAX], *out[LG_CUSTOM_MAX];
        lg_tensor *grad_out[LG_CUSTOM_MAX], *grad_in[LG_CUSTOM_MAX];
        bool needs[LG_CUSTOM_MAX]; /* whether grad_in[i] is wanted */
} lg_custom_call;
typedef struct lg_custom_op {
        const char *name;
        int out_count;
        bool (*forward)(lg_custom_call *call);
        bool (*backward)(lg_custom_call *call);
        void (*release)(void *user);
        void *user;
} lg_custom_op;
/* Returns the first output; all of them go to ret_out (out_count entries) unless it is NULL. */
LG_API lg_tensor *lg_custom(lg_ctx *c, const lg_custom_op *op, lg_list inputs, lg_tensor **ret_out);

/* Writes the graph behind t in graphviz's dot language: a box for each op with the shape of its result, an ellipse for
 * each leaf, arrows in the direction of the forward. With .module, its parameters stand under their paths. Where the
 * graph was recorded while lg_trace or lg_anomaly was on, boxes stand in frames by module. LG_ERR_IO: f could not be
 * written. lg_graph_dot(f, loss, .module = net); then: dot -Tsvg graph.dot > graph.svg */
typedef struct lg_dot_options {
        const lg_tensor *t LG_DEFAULT;
        lg_module *module LG_DEFAULT;
} lg_dot_options;
#define lg_graph_dot(f, ...) lg_graph_dot_((f), LG_INIT(lg_dot_options){.t = __VA_ARGS__})
LG_API bool lg_graph_dot_(FILE *f, lg_dot_options o);

LG_END_C
#endif
