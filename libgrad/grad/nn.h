/* nn.h - modules: parameters with a forward. A module belongs to its context; one that is given to another belongs to
 * it. */
#ifndef LG_NN_H
#define LG_NN_H

#include "grad/base.h"

LG_BEGIN

/* The forward of an own module: inputs as given to lg_forward. */
typedef lg_tensor *lg_forward_fn(lg_module *m, lg_list inputs, void *user);
typedef struct lg_module_options {
        lg_forward_fn *forward LG_DEFAULT;
        void *user LG_DEFAULT;
        void (*release)(void *user) LG_DEFAULT; /* when the module is freed */
} lg_module_options;
/* An own module; give it children and parameters with the two calls below.
 * lg_nn_module(c, "Block", forward, .user = p) */
#define lg_nn_module(c, type, ...) lg_nn_module_((c), (type), LG_INIT(lg_module_options){.forward = __VA_ARGS__})
LG_API lg_module *lg_nn_module_(lg_ctx *c, const char *type, lg_module_options o);
/* m takes the child; returns the child. Names: not empty, no dot, not taken. Modules nest up to LG_MAX_MODULE_DEPTH
 * levels, the outermost one counted; what would make more, here or in lg_nn_sequential and its kin, is LG_ERR_ARGUMENT.
 */
#define LG_MAX_MODULE_DEPTH 128
LG_API lg_module *lg_module_add(lg_module *m, const char *name, lg_module *child);
/* m takes the tensor as a parameter (it then requires grad) or a buffer; returns it. Float leaves that own their
 * values. */
LG_API lg_tensor *lg_module_add_parameter(lg_module *m, const char *name, lg_tensor *t);
LG_API lg_tensor *lg_module_add_buffer(lg_module *m, const char *name, lg_tensor *t);

/* lg_forward(m, x), or several inputs: lg_forward(m, x, mask) */
#define lg_forward(...) lg_forward_(__VA_ARGS__, LG_END)
LG_API lg_tensor *lg_forward_(lg_module *m, ...);

/* Moves parameters, buffers and gradients; handles stay. All or nothing. */
LG_API bool lg_module_to(lg_module *m, lg_device device);
LG_API void lg_train(lg_module *m, bool on); /* training mode, on at first; of all inside too */
LG_API bool lg_is_training(const lg_module *m);
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
/* One line per layer: name, type, output shape for an input of `input` shape (batch included; {0}: without),
 * parameters. LG_ERR_IO: f could not be written, a full disk for one. */
LG_API bool lg_module_print(FILE *f, lg_module *m, lg_shape input);
/* Frees a module that has no parent, with all inside it; optimisers over its parameters keep nothing of it. While its
 * forward or lg_each_parameter runs, or that of a module in it, LG_ERR_STATE, and nothing is freed. */
LG_API void lg_module_free(lg_module *m);

LG_END_C
#endif
