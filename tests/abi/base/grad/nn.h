/* nn.h - modules: layers and networks that own their parameters and have a forward.
 *
 * A module (lg_module) holds named parameters, named buffers and named child modules, as PyTorch's nn.Module does. The
 * layers that come with the library are in layers.h; lg_nn_module() makes a module of your own. A program builds one
 * module out of others, gives its parameters to an optimiser, and runs it in each step:
 *
 *     lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 784, 128), lg_nn_relu(c), lg_nn_linear(c, 128, 10));
 *     lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
 *     lg_tensor *scores = lg_forward(net, x);
 *
 * A new module belongs to its context. A module that is added to another one as a child belongs to that parent and is
 * freed with it. Parameters and buffers belong to their module: their handles stay valid as long as it lives, and
 * lg_free() leaves them alone. Functions work on a module and all modules in it, except where they name a single one.
 *
 * A path names a part of a module: the names of the children that lead to the part and its own name, joined by dots, as
 * in PyTorch's state_dict ("0.weight", "encoder.1.running_mean"). It has at most 1022 bytes.
 */
#ifndef LG_NN_H
#define LG_NN_H

#include "grad/base.h"

LG_BEGIN

/* ---- modules of your own ----
 *
 * A module of your own combines ops and other modules in a forward that you write. Make it with lg_nn_module(), then
 * add children, parameters and buffers, which the forward reaches by lg_child(), lg_parameter() and lg_buffer().
 *
 * Each part of a module has a name of its own there, of 1 to 63 bytes without a dot (else LG_ERR_ARGUMENT).
 */

/* The most results that a forward can have. */
#define LG_MAX_OUTPUTS 8

/* The results of a forward: items[0] to items[count - 1]. */
typedef struct lg_outputs {
        int64_t count; /* 1 to LG_MAX_OUTPUTS */
        lg_tensor *items[LG_MAX_OUTPUTS];
} lg_outputs;

/* The forward of a module with one result. inputs are those of lg_forward(); the array is valid until the callback
 * returns, and its entries from inputs.count to 15 are NULL, which ops refuse. Returns the result, or NULL if a call in
 * it failed. For errors that the callback itself finds, it calls lg_set_error(). */
typedef lg_tensor *lg_forward_fn(lg_module *m, lg_list inputs, void *user);

/* The forward of a module with several results: sets *out. Returns false if a call in it failed. */
typedef bool lg_forward_all_fn(lg_module *m, lg_list inputs, lg_outputs *out, void *user);

typedef struct lg_module_options {
        LG_OPTIONS_HEAD
        lg_forward_fn *forward LG_DEFAULT;         /* the forward, if it has one result; default: none */
        lg_forward_all_fn *forward_all LG_DEFAULT; /* the forward, if it has several results; default: none */
        void *user LG_DEFAULT;                     /* passed to the callbacks; default NULL */
        /* Called with .user when the module is freed or if lg_nn_module() fails; default: none. */
        void (*release)(void *user) LG_DEFAULT;
        /* Makes the .user of a copy for lg_module_clone(). copy has its children and parameters already. Returns NULL
         * if it fails. Default: none; a module with .user cannot be cloned then. */
        void *(*clone)(lg_module *copy, void *user)LG_DEFAULT;
} lg_module_options;
/* Makes a module of your own. type, which is not empty, names it in tables and messages. Without a forward the module
 * is a container of named children, which another module runs; it has either .forward or .forward_all.
 * Example: lg_nn_module(c, "Block", .forward = block, .user = p) */
#define lg_nn_module(...) LG_CALL2(lg_nn_module_with, lg_module_options, lg_nn_module_takes_c_type, V, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_module_with(lg_ctx *c, const char *type, const lg_module_options *options);

/* The most levels of modules in modules, the outermost module included. So deep, a forward needs 80 kB of the stack,
 * and a backward through lg_recompute() of every level 500 kB. */
#define LG_MAX_MODULE_DEPTH 128

/* Adds a child under a name and returns it. From then on the child belongs to m. Fails with LG_ERR_ARGUMENT if the
 * child has a parent already, contains m, or makes modules nest more than LG_MAX_MODULE_DEPTH levels deep, and with
 * LG_ERR_STATE if it is a copy that its .clone callback is still making. */
LG_API lg_module *lg_module_add(lg_module *m, const char *name, lg_module *child);

/* Adds a tensor as a parameter and returns it. From then on t belongs to m and requires grad. t must be a leaf of a
 * float dtype, contiguous, not a view, and not owned by a module or optimiser already (else LG_ERR_ARGUMENT). */
LG_API lg_tensor *lg_module_add_parameter(lg_module *m, const char *name, lg_tensor *t);

/* Adds a tensor of any dtype as a buffer and returns it: values that are moved and saved but not trained, such as
 * running statistics. t, which then belongs to m, is as for lg_module_add_parameter() but must not require grad. */
LG_API lg_tensor *lg_module_add_buffer(lg_module *m, const char *name, lg_tensor *t);

/* ---- forward ----
 *
 * A forward runs in a scope of its own: when it returns, all tensors made in it are freed except its results, which
 * pass to the innermost open scope of the caller, and what the graph has saved.
 *
 * A module has up to 16 inputs; another number than it takes is LG_ERR_ARGUMENT. LG_ERR_STATE if m is a container
 * without a forward, if it is being freed, or if its callback returned neither a result nor an error. The ops that run
 * set errors of their own, and the message of such an error names the module in which it arose.
 */

/* Runs m on one or several inputs and returns its result. If m has several results, returns the first and frees others.
 * Examples: lg_forward(net, x), lg_forward(net, x, mask) */
#define lg_forward(...)                                                                                                \
        lg_forward_list(LG_ARG1(__VA_ARGS__),                                                                          \
                        LG_ARRAY(lg_tensor, LG_ARG2(__VA_ARGS__, lg_forward_takes_m_inputs), LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_forward_list(lg_module *m, lg_tensor *const *inputs);

/* Runs m and stores all its results in *out, an lg_outputs. If it fails, returns false and sets out->count to 0.
 * Example: lg_forward_all(lstm, &out, x, h) */
#define lg_forward_all(...)                                                                                            \
        lg_forward_all_list(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, lg_forward_all_takes_m_out_inputs),             \
                            sizeof(lg_outputs), LG_ARRAY(lg_tensor, LG_TAIL2(__VA_ARGS__)))
LG_API bool lg_forward_all_list(lg_module *m, lg_outputs *ret, size_t size, lg_tensor *const *inputs);

/* Runs m as lg_forward() does, but with the tensors of params in place of its parameters (PyTorch's functional_call),
 * for example for MAML. params has one tensor for each parameter, in the order of lg_parameters(m), of a float dtype
 * and its shape and device. They may be results of ops, through which gradients flow. Buffers are the module's own:
 * batch norm updates its running statistics. While it runs, m cannot be moved, converted, cloned or saved
 * (LG_ERR_STATE).
 * Example: lg_forward_params(net, LG_LIST(w, b), x) */
#define lg_forward_params(...)                                                                                         \
        lg_forward_params_list(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, lg_forward_params_takes_m_params_inputs),    \
                               LG_ARRAY(lg_tensor, LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_forward_params_list(lg_module *m, lg_list_in params, lg_tensor *const *inputs);

/* Runs m as lg_forward() does, but without keeping what its derivative needs: the backward runs m again (PyTorch's
 * torch.utils.checkpoint). This saves the memory of the activations inside m for the time of a second forward.
 * Gradients are the same, bit for bit (on a GPU, after lg_set_deterministic(); batch norms in evaluation mode, which
 * unrecorded forwards compute with the layer in front of them, may round differently): the second run has the random
 * state and the lg_autocast() region of the first one and does not update running statistics. m must still exist, and m
 * and all modules in it be in the same training mode, when the backward runs (else LG_ERR_STATE). A tensor that
 * requires grad but is neither an input nor a parameter of m makes the backward fail with LG_ERR_STATE; if no input and
 * no parameter requires grad, it counts as a constant. While nothing is recorded, this is lg_forward().
 * Example: lg_recompute(net, x) */
#define lg_recompute(...)                                                                                              \
        lg_recompute_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_tensor, LG_ARG2(__VA_ARGS__, lg_recompute_takes_m_inputs), \
                                                         LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_recompute_list(lg_module *m, lg_tensor *const *inputs);

/* Makes a Sequential run its children as lg_recompute() does, n at a time, whenever its forward is recorded; the last
 * ones, up to n, run as usual, since the backward begins with them (PyTorch's checkpoint_sequential). Between groups
 * one activation is kept. A ReLU is in the group of the child before it. With n = 0, as at first, it keeps all. */
LG_API bool lg_recompute_every(lg_module *m, int64_t n);

/* ---- parameters, buffers and children ----
 *
 * Tensors and modules that these functions return belong to the module that has them as parts. Registration order is
 * that in which parts were added, those of a child in its place. A part that does not exist is LG_ERR_ARGUMENT.
 */

/* Returns all parameters, in registration order, frozen ones included. The array belongs to m and is valid until a part
 * is added to m or to a module in it. The list is empty if m is NULL or the call fails. */
LG_API lg_list lg_parameters(lg_module *m);

/* Returns the parameters whose paths match a shell pattern, in registration order: "*.bias", "0.*" (* matches dots,
 * too). A leading '!' selects those that do not match the rest. The array belongs to m as that of lg_parameters() does.
 * The list is empty if nothing matches, which is no error, and if the call fails.
 * Example: lg_add_param_group(opt, lg_parameters_matching(net, "*.bias"), .weight_decay = LG_ZERO) */
LG_API lg_list lg_parameters_matching(lg_module *m, const char *pattern);

/* Returns the number of elements in all parameters. */
LG_API int64_t lg_parameter_numel(lg_module *m);

/* Receives a parameter or, with is_buffer true, a buffer, and its path, which is valid until the callback returns. */
typedef void lg_tensor_fn(const char *path, lg_tensor *t, bool is_buffer, void *user);

/* Calls fn for each parameter and buffer, in registration order. fn must not add parts to any of these modules. */
LG_API bool lg_each_tensor(lg_module *m, lg_tensor_fn *fn, void *user);

/* Returns the parameter or the buffer with that path.
 * Examples: lg_parameter(net, "0.weight"), lg_buffer(net, "1.running_mean") */
LG_API lg_tensor *lg_parameter(lg_module *m, const char *path);
LG_API lg_tensor *lg_buffer(lg_module *m, const char *path);

/* Returns a child of m by its number, from 0 in registration order, or the module with that path in m.
 * Example: lg_child_named(net, "encoder.1") */
LG_API lg_module *lg_child(lg_module *m, int index);
LG_API lg_module *lg_child_named(lg_module *m, const char *path);

/* Returns whether there is a module with that path in m. Never fails. */
LG_API bool lg_has_child(const lg_module *m, const char *path);

/* Puts `child` in place of the module with that path in m, under its name and at its place, frees the old module and
 * returns child. An optimiser of parameters of the old module fails at its next step: make a new one, or give it the
 * new parameters only. Fails as lg_module_add() does, and with LG_ERR_STATE while the old module runs. Example:
 * lg_module_replace(net, "fc", lg_nn_linear(c, 512, 10)) */
LG_API lg_module *lg_module_replace(lg_module *m, const char *path, lg_module *child);

/* Returns a property of the single module m: */
LG_API int lg_child_count(const lg_module *m);         /* the number of its children, without those inside them */
LG_API const char *lg_module_type(const lg_module *m); /* "Linear" or the type given to lg_nn_module(); belongs to m */
LG_API lg_ctx *lg_module_ctx(const lg_module *m);      /* the context that it belongs to */

/* ---- training mode, freezing, moving, copying ----
 *
 * Freezing, moving and converting fail with LG_ERR_STATE in a callback of lg_set_trace().
 */

/* Puts m into training mode (on), which is the initial mode, or into evaluation mode. Dropout and batch norm depend on
 * the mode. lg_is_training() returns whether m is in training mode. */
LG_API void lg_train(lg_module *m, bool on);
LG_API bool lg_is_training(const lg_module *m);

/* Freezes all parameters (on) or unfreezes them. Frozen ones do not require grad and lose their gradients. */
LG_API bool lg_freeze(lg_module *m, bool on);

/* Moves the parameters, buffers and gradients to a device. The handles stay the same, and optimisers move their state
 * at the next step. If the call fails, nothing has moved. */
LG_API bool lg_module_to(lg_module *m, lg_device device);

/* Converts the parameters, buffers and gradients that are of a float dtype to the float dtype dtype. The handles stay
 * the same. The running statistics of batch norm become f32 where dtype is f16 or bf16. Optimisers keep their state;
 * give those of 16-bit parameters .master = true. If the call fails, nothing has changed. */
LG_API bool lg_module_cast(lg_module *m, lg_dtype dtype);

typedef struct lg_clone_options {
        LG_OPTIONS_HEAD
        lg_device device LG_DEFAULT; /* of the copy; default: for each tensor, that of its original */
} lg_clone_options;
/* Makes a copy of m: a module of the same structure with copies of all parameters and buffers, in the same modes, with
 * the same parameters frozen, without gradients and hooks. The copy has no parent and belongs to the context. Fails
 * with LG_ERR_STATE also if a module of your own has .user but no .clone, or if its .clone fails.
 * Example: lg_module_clone(net, .device = lg_cpu()) */
#define lg_module_clone(...) LG_CALL1(lg_module_clone_with, lg_clone_options, lg_module_clone_takes_m, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_module_clone_with(lg_module *m, const lg_clone_options *options);

/* ---- printing ----
 *
 * Both functions write a table of the module to a file and flush it. LG_ERR_IO if f cannot be written.
 */

/* Options of lg_module_print() and lg_module_print_memory(): what m is run on. */
typedef struct lg_module_print_options {
        LG_OPTIONS_HEAD
        /* Zeros of this shape, batch included, in the dtype and on the device of the first parameter; default: none. */
        lg_shape input LG_DEFAULT;
        /* These tensors, for modules that take indices or several inputs; they replace .input; default: none. */
        lg_list_in inputs LG_DEFAULT;
} lg_module_print_options;
/* Prints one line for each layer, with its name, type, output shape and number of parameters, and a line with the
 * total. For the output shapes, give an input: m runs on it once, in evaluation mode and unrecorded; the modes and the
 * random state stay as they were. If this forward fails, the last line of the table says why, and no error is set.
 * Works while an error is set, then without output shapes. Waits for all devices if an input is given.
 * Example: lg_module_print(stdout, net, .input = LG_SHAPE(64, 1, 28, 28))
 * Example: lg_module_print(stdout, gpt, .inputs = LG_LIST(ids)) */
#define lg_module_print(...)                                                                                           \
        LG_CALL2(lg_module_print_with, lg_module_print_options, lg_module_print_takes_f_m, V, V, __VA_ARGS__)
LG_API bool lg_module_print_with(FILE *f, lg_module *m, const lg_module_print_options *options);

/* Prints one line for each layer and one with the total: the bytes of the parameters, gradients and buffers, the bytes
 * that one recorded forward keeps in memory for the derivative (its result included), and the most that were in use
 * during that forward. A result that the backward makes again, as that of a large GELU, counts in the line of its layer
 * and not in the total: the layer behind it frees it. m runs once on the input, in its current mode; gradients, modes,
 * buffers and the random state stay as they were. Without an input m runs on a 0-d tensor, which few modules take. If
 * the forward fails, so does the call, with the same error, and nothing is printed.
 * Example: lg_module_print_memory(stdout, net, .input = LG_SHAPE(64, 1, 28, 28)) */
#define lg_module_print_memory(...)                                                                                    \
        LG_CALL2(lg_module_print_memory_with, lg_module_print_options, lg_module_print_memory_takes_f_m, V, V,         \
                 __VA_ARGS__)
LG_API bool lg_module_print_memory_with(FILE *f, lg_module *m, const lg_module_print_options *options);

/* ---- freeing ---- */

/* Frees a module that has no parent (else LG_ERR_ARGUMENT). Results that were computed with it stay valid, and so does
 * their graph. An optimiser of its parameters cannot step any more: lg_step() fails with LG_ERR_STATE. Fails with
 * LG_ERR_STATE in a callback of lg_set_trace() or while a forward or lg_each_tensor() runs m or a module in it. */
LG_API void lg_module_free(lg_module *m);

LG_END_C
#endif
