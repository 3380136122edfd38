/* graph.h - the recorded graph: gradients, backward, grad mode, custom ops.
 *
 * While grad mode is on, each op whose input needs a gradient records itself and what its derivative needs.
 * lg_backward() walks that graph from a result back to its leaves and adds to each leaf the gradient of the result with
 * respect to it. A leaf is a tensor that no recorded op made: a parameter, or one created with .requires_grad = true:
 *
 *     lg_tensor *w = lg_ones(c, LG_SHAPE(3), .requires_grad = true);
 *     lg_tensor *loss = lg_sum(lg_square(w));
 *     lg_backward(loss);
 *     lg_print(stdout, lg_grad_of(w));
 *
 * An op stays in the graph as long as a tensor that depends on it exists. The values it has saved for derivatives are
 * freed earlier, by the first lg_backward() or lg_grad() that passes through it, unless .retain_graph is set. A value
 * that was saved must not be changed in place before the backward: that is LG_ERR_STATE, with a message that names the
 * op.
 */
#ifndef LG_GRAPH_H
#define LG_GRAPH_H

#include "grad/base.h"

LG_BEGIN

/* ---- leaves and their gradients ----
 *
 * A tensor that these functions return is t itself, which belongs to its owner as before, unless stated otherwise.
 */

/* Sets whether the leaf t, of a float dtype, requires grad, and returns t. Turning it off frees its gradient and hooks.
 * Fails with LG_ERR_STATE if t is no leaf (use lg_detach()) or, for off, in a callback of lg_set_trace(). */
LG_API lg_tensor *lg_set_requires_grad(lg_tensor *t, bool on);

/* Returns a property of t; false if t is NULL or was freed: */
LG_API bool lg_requires_grad(const lg_tensor *t); /* whether t is, or was recorded from, a leaf that requires grad */
LG_API bool lg_is_leaf(const lg_tensor *t);       /* whether no recorded op made t */

/* Returns the gradient that lg_backward() has accumulated for a leaf, or for a tensor with lg_retain_grad(), or NULL if
 * there is none. It has the shape, dtype and device of t. It belongs to t and is valid until the next lg_backward(),
 * lg_zero_grad() or lg_clear_grad(), or until t is freed. */
LG_API lg_tensor *lg_grad_of(const lg_tensor *t);

/* Frees the gradient of t, so that the next lg_backward() starts from zero. lg_zero_grad() does so for all parameters
 * of an optimiser. Fails with LG_ERR_STATE inside a callback of lg_set_trace(). */
LG_API bool lg_clear_grad(lg_tensor *t);

/* Makes lg_backward() keep the gradient of an inner tensor as it does for a leaf; lg_grad_of() returns it. Returns t.
 * Fails with LG_ERR_STATE if t needs no gradient. */
LG_API lg_tensor *lg_retain_grad(lg_tensor *t);

/* Receives the whole gradient of a tensor in each lg_backward() and lg_grad() that reaches it, before the gradient is
 * used or added to a leaf. Returns a gradient to use instead, of the same shape and device (its dtype is cast), or NULL
 * to leave it. The callback must not change grad in place. grad belongs to the library; tensors that the callback makes
 * live until it returns, except the one that it returns. If the callback sets an error, the backward fails. */
typedef lg_tensor *lg_hook_fn(lg_tensor *grad, void *user);

/* Adds a hook to t. Hooks run in the order in which they were added and stay as long as t or a graph recorded with t.
 * One that a hook adds runs from the next gradient on. Fails with LG_ERR_STATE if t needs no gradient. */
LG_API bool lg_hook(lg_tensor *t, lg_hook_fn *fn, void *user);

/* Removes the latest hook of t that was added with this fn and user, also while a backward runs. Returns false without
 * an error if there is none. */
LG_API bool lg_unhook(lg_tensor *t, lg_hook_fn *fn, void *user);

/* ---- backward ---- */

typedef struct lg_backward_options {
        LG_OPTIONS_HEAD
        lg_tensor *grad LG_DEFAULT;   /* the gradient of loss; default: 1, for a loss of one element */
        bool retain_graph LG_DEFAULT; /* keep what the graph saved; default false */
        bool create_graph LG_DEFAULT; /* record the gradients, too; implies .retain_graph; default false */
} lg_backward_options;
/* Adds d loss / d leaf to the gradient of every leaf that loss depends on, and frees what the graph saved for
 * derivatives. With .grad = v, of the shape and device of loss, loss may have any shape, and the gradients are the
 * vector-Jacobian products d <v, loss> / d leaf. Works in any grad mode. Fails with LG_ERR_DEVICE or LG_ERR_DTYPE if
 * lg_module_to() or lg_module_cast() changed a leaf, so that its gradients are on two devices or have two dtypes; with
 * LG_ERR_STATE if loss needs no gradient, a saved value was changed in place, or an earlier backward freed what the
 * graph saved; and with the error that a hook or custom op set. After a failure some leaves may have received their
 * gradient and some ops may have freed what they saved: clear the gradients and run the forward again.
 * Example: lg_backward(loss, .retain_graph = true) */
#define lg_backward(...) LG_CALL1(lg_backward_with, lg_backward_options, lg_backward_takes_loss, V, __VA_ARGS__)
LG_API bool lg_backward_with(lg_tensor *loss, const lg_backward_options *options);

typedef struct lg_grad_options {
        LG_OPTIONS_HEAD
        lg_list_in grads LG_DEFAULT;   /* gradients of the outputs; default, and NULL entries: 1, for one element */
        lg_tensor **result LG_DEFAULT; /* receives as many gradients as inputs; may be inputs.items; default NULL */
        bool retain_graph LG_DEFAULT;  /* as for lg_backward(); default false */
        bool create_graph LG_DEFAULT;  /* as for lg_backward(); default false */
} lg_grad_options;
/* Computes the gradients of the outputs, summed, with respect to the inputs, which may be inner tensors, and adds
 * nothing to the gradients of leaves. With .grads = v, one for each output, the outputs may have any shape, and the sum
 * is that of <v[i], output[i]>. Returns the first gradient and stores all of them in .result; they belong to the
 * innermost open scope. A gradient is NULL if no output depends on that input, and all are NULL on failure, so check
 * lg_error(). Fails with LG_ERR_STATE if an input or output needs no gradient, and otherwise as lg_backward() does.
 * Example: lg_grad(LG_LIST(y), LG_LIST(x), .create_graph = true) */
#define lg_grad(...) LG_CALL2(lg_grad_with, lg_grad_options, lg_grad_takes_outputs_inputs, V, V, __VA_ARGS__)
LG_API lg_tensor *lg_grad_with(lg_list_in outputs, lg_list_in inputs, const lg_grad_options *options);

/* ---- grad mode ---- */

/* Turns grad mode off for the statement or block that follows: its ops are not recorded, so their results need no
 * gradient, and leaves that require a gradient may be changed in place. Restores the previous mode at the end of the
 * block. Do not leave the block by break, goto or return; call lg_set_grad_mode() twice instead.
 * Example: lg_no_grad(c) { lg_sub_(w, lg_mul_scalar(lg_grad_of(w), 0.1)); } */
#define lg_no_grad(c)                                                                                                  \
        for (bool LG_LOCAL(lg_was_) = lg_set_grad_mode((c), false), LG_LOCAL(lg_go_) = true; LG_LOCAL(lg_go_);         \
             LG_LOCAL(lg_go_) = false, lg_set_grad_mode((c), LG_LOCAL(lg_was_)))

/* Turns grad mode on or off and returns the previous mode. It is on at first. lg_grad_mode() returns the mode
 * without a change. Both work while an error is set. */
LG_API bool lg_set_grad_mode(lg_ctx *c, bool on);
LG_API bool lg_grad_mode(const lg_ctx *c);

/* Returns t outside the graph, as a tensor that needs no gradient and shares the memory of t: changes show in both. */
LG_API LG_NEW lg_tensor *lg_detach(lg_tensor *t);

/* ---- autocast ----
 *
 * Mixed precision: inside a region of lg_autocast(), matrix products, convolutions and linear layers compute in f16 or
 * bf16, which takes half of the memory and, on hardware with 16-bit units, less time; ops that need more precision
 * compute in f32. Parameters and optimisers stay f32, and gradients arrive at them in f32:
 *
 *     lg_autocast(c, LG_BF16) {
 *             loss = lg_cross_entropy(lg_forward(net, x), y);
 *     }
 *     lg_backward(loss);
 *
 * An op casts its inputs of the dtypes f32, f16 and bf16, as torch.autocast() does on CUDA:
 * - to the dtype of the region: lg_matmul(), lg_linear(), convolutions and transposed ones, PReLU layers;
 * - to f32: losses, lg_softmax(), lg_log_softmax(), lg_logsumexp(), layer, RMS and group norm, lg_normalize(),
 *   lg_cosine_similarity(), lg_norm(), lg_sum(), lg_prod(), lg_cumsum(), lg_cumprod(), lg_exp(), lg_expm1(), lg_log()
 *   and those of other bases, lg_square() and other powers, lg_reciprocal(), lg_rdiv_scalar(), lg_rsqrt(),
 *   lg_softplus(), lg_tan(), lg_asin(), lg_acos(), lg_sinh(), lg_cosh();
 * - to the widest of them: lg_atan2(), lg_scatter_add();
 * - not at all: all others, promoted as usual. Batch norm keeps the dtype of its input, with f32 statistics.
 * An op with an f64 input casts nothing. The casts are recorded: a gradient passes them and has the dtype of what was
 * cast. The derivatives themselves are not cast. f16 has a small range: gradients below 6e-8 become 0 in it.
 */

/* Casts the inputs of ops as described above for the statement or block that follows. dtype is LG_BF16, LG_F16 or, for
 * a region inside another one in which nothing is cast, LG_F32. Restores what was before at the end of the block. The
 * cast of an f32 leaf is made once, and again after a change of its values, and is kept until the outermost region
 * ends. Do not leave the block by break, goto or return; call lg_set_autocast_mode() twice instead.
 * Example: lg_autocast(c, LG_BF16) { y = lg_forward(net, x); } */
#define lg_autocast(c, dtype)                                                                                          \
        for (lg_dtype LG_LOCAL(lg_dtype_was_) = lg_set_autocast_mode((c), (dtype)), LG_LOCAL(lg_dtype_go_) = LG_F32;   \
             LG_LOCAL(lg_dtype_go_) != LG_DTYPE_NONE;                                                                  \
             LG_LOCAL(lg_dtype_go_) = LG_DTYPE_NONE, lg_set_autocast_mode((c), LG_LOCAL(lg_dtype_was_)))

/* Sets the dtype to which ops cast, as lg_autocast() does, and returns the previous one. LG_DTYPE_NONE, which is the
 * first one, is outside of all regions. Fails with LG_ERR_STATE in a callback of lg_set_trace(). lg_autocast_mode()
 * returns the dtype without a change. Both return LG_DTYPE_NONE if c is NULL and work while an error is set. */
LG_API lg_dtype lg_set_autocast_mode(lg_ctx *c, lg_dtype dtype);
LG_API lg_dtype lg_autocast_mode(const lg_ctx *c);

/* ---- custom ops ----
 *
 * A custom op is a function of the program with a derivative of its own. The forward computes the outputs from the
 * inputs, by ops or by own code on their values; the backward computes the gradients of the inputs from those of the
 * outputs. All inputs are saved for the backward, so they must not be changed in place before it. This op computes x^3:
 *
 *     static bool cube(lg_custom_call *k)
 *     {
 *             k->out[0] = lg_mul(lg_square(k->in[0]), k->in[0]);
 *             return true;
 *     }
 *     static bool cube_backward(lg_custom_call *k)
 *     {
 *             k->grad_in[0] = lg_mul(k->grad_out[0], lg_mul_scalar(lg_square(k->in[0]), 3));
 *             return true;
 *     }
 *     ...
 *     lg_tensor *y = lg_custom(c, "cube", LG_LIST(x), .forward = cube, .backward = cube_backward);
 */

/* The maximum number of inputs, and of outputs, of a custom op. */
#define LG_CUSTOM_MAX 8

/* The arguments and results of a forward or backward callback, which must not free or change what it gets. */
typedef struct lg_custom_call {
        lg_ctx *ctx;
        void *user;                         /* .user of lg_custom() */
        int in_count, out_count;            /* of the op */
        lg_tensor *in[LG_CUSTOM_MAX];       /* the inputs */
        lg_tensor *out[LG_CUSTOM_MAX];      /* forward: the outputs, which it sets; backward: NULL */
        lg_tensor *grad_out[LG_CUSTOM_MAX]; /* backward: the gradients of the outputs; NULL: zero */
        lg_tensor *grad_in[LG_CUSTOM_MAX];  /* backward: the gradients of the inputs, which it sets; NULL: zero */
        bool needs[LG_CUSTOM_MAX];          /* backward: whether grad_in[i] is used */
} lg_custom_call;

/* The forward or the backward of a custom op. Returns false after lg_set_error() on failure. The forward is not
 * recorded; the library copies its outputs, so they may be views of inputs. The backward may set gradients of a shape
 * that the input broadcasts to, which are summed, or of another dtype, which are cast. It must use ops if the gradients
 * are differentiated again (.create_graph). Tensors that a callback makes live until it returns. */
typedef bool lg_custom_fn(lg_custom_call *call);

typedef struct lg_custom_options {
        LG_OPTIONS_HEAD
        lg_custom_fn *forward LG_DEFAULT;       /* required */
        lg_custom_fn *backward LG_DEFAULT;      /* required */
        void *user LG_DEFAULT;                  /* passed to the callbacks; default NULL */
        void (*release)(void *user) LG_DEFAULT; /* called once when .user is no longer needed; default: none */
        int out_count LG_DEFAULT;               /* the number of outputs; default 1 */
        lg_tensor **out LG_DEFAULT;             /* on success, receives all .out_count outputs; default NULL */
} lg_custom_options;
/* Runs .forward and records the op with .backward as its derivative, for 1 to LG_CUSTOM_MAX inputs and outputs. Returns
 * the first output; all outputs are on the device of the first input and belong to the innermost open scope. .release
 * runs when the recorded op is freed, or before lg_custom() returns if it fails or records nothing. Fails with
 * LG_ERR_STATE if .forward returns false without an error or leaves an output NULL, and with the error of .forward.
 * Example: lg_custom(c, "cube", LG_LIST(x), .forward = cube, .backward = cube_backward) */
#define lg_custom(...) LG_CALL3(lg_custom_with, lg_custom_options, lg_custom_takes_c_name_inputs, V, V, V, __VA_ARGS__)
LG_API lg_tensor *lg_custom_with(lg_ctx *c, const char *name, lg_list_in inputs, const lg_custom_options *options);

/* ---- the graph as a picture ---- */

typedef struct lg_graph_dot_options {
        LG_OPTIONS_HEAD
        lg_module *module LG_DEFAULT; /* leaves that are its parameters are labelled with their paths; default: none */
} lg_graph_dot_options;
/* Writes the graph behind t to f in Graphviz's dot language: a box for each op with the shape of its result (views have
 * no frame), an ellipse for each leaf, arrows along the forward. Ops that were recorded while lg_set_trace() or
 * lg_set_anomaly() was on are grouped by module, in graphs of up to 5000 nodes. `dot -Tsvg graph.dot > graph.svg` draws
 * the file. Works while an error is set. Fails with LG_ERR_IO if f cannot be written.
 * Example: lg_graph_dot(f, loss, .module = net) */
#define lg_graph_dot(...) LG_CALL2(lg_graph_dot_with, lg_graph_dot_options, lg_graph_dot_takes_f_t, V, V, __VA_ARGS__)
LG_API bool lg_graph_dot_with(FILE *f, const lg_tensor *t, const lg_graph_dot_options *options);

LG_END_C
#endif
