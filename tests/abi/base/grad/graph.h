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
        LG_OPTIONS_HEAD
        lg_tensor *grad LG_DEFAULT;
        bool retain_graph LG_DEFAULT; /* implied by create_graph */
        bool create_graph LG_DEFAULT;
} lg_backward_options;
/* Adds d loss / d leaf to the gradient of every leaf that loss depends on. Frees what the graph saved. */
#define lg_backward(...) LG_CALL1(lg_backward_with, lg_backward_options, lg_backward_takes_loss, __VA_ARGS__)
LG_API bool lg_backward_with(lg_tensor *loss, const lg_backward_options *options);

typedef struct lg_grad_options {
        LG_OPTIONS_HEAD
        lg_list_in grads LG_DEFAULT;   /* of the outputs; ones if not given */
        lg_tensor **result LG_DEFAULT; /* as many as inputs; NULL: no output depends on it, or a failure (all) */
        bool retain_graph LG_DEFAULT;
        bool create_graph LG_DEFAULT;
} lg_grad_options;
/* Computes gradients of the outputs by the inputs, which may be inner tensors, and accumulates nowhere. Returns the
 * first one; all go to .result if given. lg_grad(LG_LIST(y), LG_LIST(x), .create_graph = true) */
#define lg_grad(...) LG_CALL2(lg_grad_with, lg_grad_options, lg_grad_takes_outputs_inputs, __VA_ARGS__)
LG_API lg_tensor *lg_grad_with(lg_list_in outputs, lg_list_in inputs, const lg_grad_options *options);

/* Nothing is recorded while a no-grad region is open. lg_no_grad(c) { ... } is a block; do not leave it by break, goto
 * or return: use the pair then. */
#define lg_no_grad(c)                                                                                                  \
        for (bool LG_LOCAL(lg_was_) = lg_grad_mode((c), false), LG_LOCAL(lg_go_) = true; LG_LOCAL(lg_go_);             \
             LG_LOCAL(lg_go_) = false, lg_grad_mode((c), LG_LOCAL(lg_was_)))
/* Turns recording on or off and returns whether it was on. */
LG_API bool lg_grad_mode(lg_ctx *c, bool on);
LG_API bool lg_get_grad_mode(const lg_ctx *c);
/* The same values outside the graph; shares the storage. */
LG_API LG_NEW lg_tensor *lg_detach(lg_tensor *t);

/* An own op. forward computes out[i] from in[i] by ops or in own ways, unrecorded; backward gets the gradients of the
 * outputs (NULL: zero) and sets grad_in[i] (NULL: zero), by ops if it must be differentiated again. Both return false
 * after lg_set_error on failure. `user` is theirs; release(user) runs once, when the op's node is freed, or before
 * lg_custom returns if it fails or records nothing. The name is copied. */
#define LG_CUSTOM_MAX 8
typedef struct lg_custom_call {
        lg_ctx *ctx;
        void *user;
        int in_count, out_count;
        lg_tensor *in[LG_CUSTOM_MAX], *out[LG_CUSTOM_MAX];
        lg_tensor *grad_out[LG_CUSTOM_MAX], *grad_in[LG_CUSTOM_MAX];
        bool needs[LG_CUSTOM_MAX]; /* whether grad_in[i] is wanted */
} lg_custom_call;
typedef bool lg_custom_fn(lg_custom_call *call);
typedef struct lg_custom_options {
        LG_OPTIONS_HEAD
        lg_custom_fn *forward LG_DEFAULT;  /* required */
        lg_custom_fn *backward LG_DEFAULT; /* required where an input needs a gradient */
        void *user LG_DEFAULT;
        void (*release)(void *user) LG_DEFAULT;
        int out_count LG_DEFAULT;   /* 1 */
        lg_tensor **out LG_DEFAULT; /* gets all outputs: out_count entries */
} lg_custom_options;
/* Returns the first output. lg_custom(c, "cube", LG_LIST(x), .forward = cube, .backward = cube_backward) */
#define lg_custom(...) LG_CALL3(lg_custom_with, lg_custom_options, lg_custom_takes_c_name_inputs, __VA_ARGS__)
LG_API lg_tensor *lg_custom_with(lg_ctx *c, const char *name, lg_list_in inputs, const lg_custom_options *options);

/* Writes the graph behind t in graphviz's dot language: a box for each op with the shape of its result, an ellipse for
 * each leaf, arrows in the direction of the forward. With .module, its parameters stand under their paths. Where the
 * graph was recorded while lg_trace or lg_anomaly was on, boxes stand in frames by module. LG_ERR_IO: f could not be
 * written. lg_graph_dot(f, loss, .module = net); then: dot -Tsvg graph.dot > graph.svg */
typedef struct lg_graph_dot_options {
        LG_OPTIONS_HEAD
        lg_module *module LG_DEFAULT;
} lg_graph_dot_options;
#define lg_graph_dot(...) LG_CALL2(lg_graph_dot_with, lg_graph_dot_options, lg_graph_dot_takes_f_t, __VA_ARGS__)
LG_API bool lg_graph_dot_with(FILE *f, const lg_tensor *t, const lg_graph_dot_options *options);

LG_END_C
#endif
