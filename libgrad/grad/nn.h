/* nn.h - modules: parameters with a forward. A module belongs to its context; one that is given to another belongs to
 * it. */
#ifndef LG_NN_H
#define LG_NN_H

#include "grad/base.h"

LG_BEGIN

/* The forward of an own module: inputs as given to lg_forward. */
typedef lg_tensor *lg_forward_fn(lg_module *m, lg_list inputs, void *user);
/* The same with several results: out->items[0 ... count - 1], and sets out->count. False after a failure. */
#define LG_MAX_OUTPUTS 8
typedef struct lg_outputs {
        int64_t count;
        lg_tensor *items[LG_MAX_OUTPUTS];
} lg_outputs;
typedef bool lg_forward_all_fn(lg_module *m, lg_list inputs, lg_outputs *out, void *user);
typedef struct lg_module_options {
        LG_OPTIONS_HEAD
        lg_forward_fn *forward LG_DEFAULT;
        lg_forward_all_fn *forward_all LG_DEFAULT; /* instead of forward */
        void *user LG_DEFAULT;
        void (*release)(void *user) LG_DEFAULT; /* when the module is freed */
        /* For lg_module_clone: the .user of a copy, which has its children and parameters already. NULL: it failed. */
        void *(*clone)(lg_module *copy, void *user)LG_DEFAULT;
} lg_module_options;
/* An own module; give it children and parameters with the calls below. Without a forward it is a container of named
 * children, which another module runs. lg_nn_module(c, "Block", .forward = block, .user = p) */
#define lg_nn_module(...) LG_CALL2(lg_nn_module_with, lg_module_options, lg_nn_module_takes_c_type, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_nn_module_with(lg_ctx *c, const char *type, const lg_module_options *options);
/* m takes the child; returns the child. Names: not empty, no dot, not taken. Modules nest up to LG_MAX_MODULE_DEPTH
 * levels, the outermost one counted; what would make more, here or in lg_nn_sequential and its kin, is LG_ERR_ARGUMENT.
 */
#define LG_MAX_MODULE_DEPTH 128
LG_API lg_module *lg_module_add(lg_module *m, const char *name, lg_module *child);
/* m takes the tensor, a leaf that owns its values: as a parameter, of a float dtype, which then requires grad; or as a
 * buffer, of any dtype, which does not. Returns it. */
LG_API lg_tensor *lg_module_add_parameter(lg_module *m, const char *name, lg_tensor *t);
LG_API lg_tensor *lg_module_add_buffer(lg_module *m, const char *name, lg_tensor *t);

/* lg_forward(m, x), or several inputs: lg_forward(m, x, mask). Of several results, the first. The array of
 * lg_forward_list ends with LG_END. */
#define lg_forward(...)                                                                                                \
        lg_forward_list(LG_ARG1(__VA_ARGS__),                                                                          \
                        LG_ARRAY(lg_tensor, LG_ARG2(__VA_ARGS__, lg_forward_takes_m_inputs), LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_forward_list(lg_module *m, lg_tensor *const *inputs);
/* All results: lg_outputs out; lg_forward_all(lstm, &out, x, h); out.items[1]. Where it fails, false, and out->count
 * is 0. */
#define lg_forward_all(...)                                                                                            \
        lg_forward_all_list(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, lg_forward_all_takes_m_out_inputs),             \
                            sizeof(lg_outputs), LG_ARRAY(lg_tensor, LG_TAIL2(__VA_ARGS__)))
LG_API bool lg_forward_all_list(lg_module *m, lg_outputs *ret, size_t size, lg_tensor *const *inputs);

/* The same with other tensors in the places of the parameters: one for each, in the order of lg_parameters(m), of its
 * shape and device, results of ops too, through which gradients flow. For MAML and the like; PyTorch's functional_call.
 * Batch norm moves the module's own statistics. lg_forward_params(net, LG_LIST(w, b), x) */
#define lg_forward_params(...)                                                                                         \
        lg_forward_params_list(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, lg_forward_params_takes_m_params_inputs),    \
                               LG_ARRAY(lg_tensor, LG_TAIL2(__VA_ARGS__)))
LG_API LG_NEW lg_tensor *lg_forward_params_list(lg_module *m, lg_list_in params, lg_tensor *const *inputs);

/* Moves parameters, buffers and gradients; handles stay. All or nothing. */
LG_API bool lg_module_to(lg_module *m, lg_device device);
/* A module of the same structure, with copies of the parameters and buffers, in the same modes, without gradients and
 * hooks; it has no parent. Each tensor is where its original is, or on .device. LG_ERR_STATE: an own module has .user,
 * but no .clone. lg_module_clone(net), lg_module_clone(net, .device = lg_cpu()) */
typedef struct lg_clone_options {
        LG_OPTIONS_HEAD
        lg_device device LG_DEFAULT;
} lg_clone_options;
#define lg_module_clone(...) LG_CALL1(lg_module_clone_with, lg_clone_options, lg_module_clone_takes_m, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_module_clone_with(lg_module *m, const lg_clone_options *options);
LG_API void lg_train(lg_module *m, bool on); /* training mode, on at first; of all inside too */
LG_API bool lg_is_training(const lg_module *m);
/* Freezes or thaws all parameters of m: frozen ones require no gradient, and optimisers leave them as they are. */
LG_API bool lg_freeze(lg_module *m, bool on);
/* All parameters, children's included, in order of names' making; the array belongs to m until its structure changes.
 */
LG_API lg_list lg_parameters(lg_module *m);
/* Those whose path matches a pattern of the shell: "*.bias", "0.*"; a leading '!' means those that do not. The array as
 * above. Groups by name: lg_add_group(opt, lg_parameters_matching(net, "*.bias"), .weight_decay = LG_ZERO) */
LG_API lg_list lg_parameters_matching(lg_module *m, const char *pattern);
/* By path: lg_child(net, 0), lg_parameter(net, "0.weight"), lg_buffer(net, "1.running_mean"); NULL and LG_ERR_ARGUMENT
 * if there is none. */
LG_API lg_module *lg_child(lg_module *m, int index);
LG_API lg_module *lg_child_named(lg_module *m, const char *path);
LG_API int lg_child_count(const lg_module *m);
LG_API lg_tensor *lg_parameter(lg_module *m, const char *path);
LG_API lg_tensor *lg_buffer(lg_module *m, const char *path);
/* Visits every parameter (and buffer) with its path. fn must not change the structure of m. */
typedef void lg_parameter_fn(const char *path, lg_tensor *t, bool is_buffer, void *user);
LG_API bool lg_each_parameter(lg_module *m, lg_parameter_fn *fn, void *user);
LG_API const char *lg_module_type(const lg_module *m);
LG_API lg_ctx *lg_module_ctx(const lg_module *m);
LG_API int64_t lg_parameter_count(lg_module *m); /* elements */
/* What a module is run on to be printed: zeros of a shape, batch included, in the dtype of the first parameter; or
 * these inputs, for modules that take indices or several tensors. */
typedef struct lg_module_print_options {
        LG_OPTIONS_HEAD
        lg_shape input LG_DEFAULT;
        lg_list_in inputs LG_DEFAULT;
} lg_module_print_options;
/* One line per layer: name, type, output shape (where an input is given), parameters. Where the forward fails on that
 * input, the last line says why, and no error is set. LG_ERR_IO: f could not be written, a full disk for one.
 * lg_module_print(stdout, net, .input = LG_SHAPE(64, 1, 28, 28)), lg_module_print(stdout, gpt, .inputs = LG_LIST(ids))
 */
#define lg_module_print(...)                                                                                           \
        LG_CALL2(lg_module_print_with, lg_module_print_options, lg_module_print_takes_f_m, __VA_ARGS__)
LG_API bool lg_module_print_with(FILE *f, lg_module *m, const lg_module_print_options *options);
/* One line per module: bytes of its parameters, gradients and buffers, what one recorded forward leaves in memory
 * for the derivative (result included), and the most that was in use meanwhile. Gradients and
 * the mode stay as they are; batch norm's statistics do too. LG_ERR_IO: f could not be written. */
#define lg_module_print_memory(...)                                                                                    \
        LG_CALL2(lg_module_print_memory_with, lg_module_print_options, lg_module_print_memory_takes_f_m, __VA_ARGS__)
LG_API bool lg_module_print_memory_with(FILE *f, lg_module *m, const lg_module_print_options *options);
/* Frees a module that has no parent, with all inside it; optimisers over its parameters keep nothing of it. While its
 * forward or lg_each_parameter runs, or that of a module in it, LG_ERR_STATE, and nothing is freed. */
LG_API void lg_module_free(lg_module *m);

LG_END_C
#endif
