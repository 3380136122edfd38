/* nn.h - the record of a module: named parts (parameters, buffers, children) and a forward function. Private to nn/. */
#ifndef LG_NN_PRIVATE_H
#define LG_NN_PRIVATE_H

#include "graph/graph.h"

/* A computed part has a tensor only while the module runs: the result of its parametrizations (parametrize.c). */
typedef enum lg__part_kind { LG__PARAMETER = 1, LG__BUFFER = 2, LG__CHILD = 4, LG__COMPUTED = 8 } lg__part_kind;

/* A named part of a module. The parts of a module form a list in the order in which they were added. */
typedef struct lg__part {
        struct lg__part *next;
        lg__part_kind kind;
        char *name;
        lg_tensor *tensor; /* owned by the library, if computed by the running forward's scope; NULL for a child */
        lg_module *child;  /* owned; NULL for a parameter or a buffer */
} lg__part;

/* A result of lg_parameters() or lg_parameters_matching(), cached: the parameters whose paths match a pattern. */
typedef struct lg__listing {
        struct lg__listing *next;
        char *pattern; /* owned; NULL: the list has all parameters */
        lg_tensor **items;
        int64_t count;
} lg__listing;

/* Operations after a module that the module applies itself while it writes its result, in this order: a batch norm in
 * evaluation mode (NULL: none), the sum with `plus` (NULL: none), ReLU. */
typedef struct lg__epilogue {
        const lg_module *norm;
        lg_tensor *plus;
        bool relu;
} lg__epilogue;
/* A forward function of one input x that also applies `epilogue` to its result. */
typedef lg_tensor *lg__epilogue_fn(lg_module *m, lg_tensor *x, lg__epilogue epilogue);
enum {
        LG__EPILOGUE_SUM = 1,
        LG__EPILOGUE_RELU = 2,
        LG__EPILOGUE_NORM = 4,
        LG__RECORDS_RELU = 8 /* while the context records, the module can apply a ReLU only, no sum and no norm */
};

struct lg_module {
        lg__object object; /* in the context's list of objects while parent is NULL */
        lg_module *parent;
        lg__part *part; /* the part of the parent that holds this module; NULL without a parent */
        int levels;     /* depth of its tree of modules, 1 without children; at most LG_MAX_MODULE_DEPTH, since forwards
                           recurse */
        int running;    /* number of calls under way that use the module, which cannot be freed meanwhile */
        bool copied;    /* the module is a copy whose .clone callback is running */
        int replaced;   /* number of calls of lg_forward_params() under way that have replaced the parameters */
        char *type;
        lg_forward_fn *forward;
        lg_forward_all_fn *forward_all;
        lg__epilogue_fn *forward_epilogue; /* at most one of the three forwards is set; none: a container */
        unsigned epilogues; /* the epilogues that forward_epilogue can apply: LG__EPILOGUE_..., LG__RECORDS_RELU */
        void *user;
        void (*release)(void *user);
        void *(*clone)(lg_module *copy, void *user);
        void *config; /* of a built-in module: an owned copy of its options, to which `user` points; may be NULL */
        size_t config_bytes;
        bool counts_batches; /* a batch norm with running statistics: `batches` is saved in files as PyTorch's
                                num_batches_tracked */
        int64_t batches;
        lg__watcher *parallel; /* data_parallel.c's watcher, which averages its gradients over the ranks of a group;
                                  NULL: not data-parallel */
        int64_t every;   /* of a Sequential: number of children in each group that the backward recomputes; 0: none */
        bool convolves;  /* a convolution: its weights have the layout that its device prefers for convolutions */
        int held;        /* 0; while lg_find_lr() runs: 1 + `training` at its start, and no part can be removed */
        int64_t changes; /* number of times that parts were added or replaced in it, or its forward was changed */
        bool training, was_training; /* was_training: `training` before lg_module_print(), which restores it */
        int printing;                /* number of calls of lg_module_print() under way */
        lg__part *parts, **end;
        lg__listing *listings; /* cached results of lg_parameters() and lg_parameters_matching(); freed when a part is
                                  added */
        lg_shape shape;        /* shape of the first result of the last forward, for lg_module_print() */
        bool has_shape;
        int64_t kept_bytes,
                most_bytes; /* memory that the last measured forward kept, and its peak, for lg_module_print_memory() */
        int64_t used_before, peak_before; /* the device's statistics before the forward that is being measured */
};

/* Lets a tape depend on the parts of m, and on whether it is in training. */
void lg__module_seen(lg_module *m);
/* Returns a new module without parts; NULL if an error is set or there is no memory. */
lg_module *lg__module_new(lg_ctx *c, const char *type, lg_forward_fn *forward);
/* Returns a new module without parts whose forward gets a copy of the `bytes` bytes of `config` as its user data. */
lg_module *lg__module_with(lg_ctx *c, const char *type, lg_forward_fn *forward, const void *config, size_t bytes);
/* Returns a new module with the parts that fill(m, options) adds. If `fill` fails, restores the random state and
 * returns NULL. `config` may be NULL. */
typedef bool lg__fill_fn(lg_module *m, const void *options);
lg_module *lg__module_build(lg_ctx *c, const char *type, lg_forward_fn *forward, const void *config, size_t bytes,
                            lg__fill_fn *fill, const void *options);
/* Add to m a parameter with values uniform in [-bound, bound), or a parameter or buffer with a constant value. Return
 * false with an error. */
bool lg__module_uniform(lg_module *m, const char *name, double bound, lg_shape shape, lg_dtype dtype, lg_device device);
bool lg__module_constant(lg_module *m, lg__part_kind kind, const char *name, double value, lg_shape shape,
                         lg_dtype dtype, lg_device device);
/* Returns m's parameter or buffer of that name, or NULL if m itself has none. */
lg_tensor *lg__module_tensor(const lg_module *m, const char *name);
/* Returns whether dtype is 0 (not given) or a float dtype; if not, sets LG_ERR_DTYPE. */
bool lg__module_dtype(lg_ctx *c, const char *op, lg_dtype dtype);
/* Adds a computed part without a tensor. Returns NULL and sets an error if there is no memory. */
lg__part *lg__module_add_computed(lg_module *m, const char *name);
/* Frees part p of m, its tensor and its child included. */
void lg__module_remove(lg_module *m, lg__part *p);
/* Computes the computed parts of m in the open scope; false with an error. The second function forgets them. */
bool lg__compute_parts(lg_module *m);
void lg__forget_parts(lg_module *m);
/* Returns the list of parametrizations of m's tensor of that name: its parameters are the originals, its children the
 * modules that compute the tensor of them, one after the other. NULL: none. */
lg_module *lg__parametrizations_of(const lg_module *m, const char *name);
/* Makes `child` a child of m, which owns it from then on. Returns false with an error in the name of function `op`. */
bool lg__module_attach(lg_module *m, const char *name, lg_module *child, const char *op);
/* Puts `child` in place of the module in part p and frees that one. Returns false with an error in the name of `op`. */
bool lg__module_exchange(lg__part *p, lg_module *child, const char *op);
/* Returns false, with an error in the name of function `op`, if a running lg_forward_params() has replaced the
 * parameters of m or of a module in it. */
bool lg__module_is_whole(const lg_module *m, const char *op);
/* The first forbids to remove parts of m and of the modules in it, and notes their training modes, which the second
 * restores. */
void lg__module_hold(lg_module *m);
void lg__module_unhold(lg_module *m);
/* Undoes the construction of m: returns its children to the context, destroys m and returns NULL. */
lg_module *lg__module_give_up(lg_module *m);
/* The greatest number of inputs of a forward. */
#define LG__MAX_INPUTS 16
/* Sets the forward of m, which may be NULL, to one that can apply the epilogues in `epilogues`. Returns m. */
static inline lg_module *lg__module_set_epilogues(lg_module *m, lg__epilogue_fn *forward, unsigned epilogues)
{
        if (m) {
                m->forward_epilogue = forward;
                m->epilogues = epilogues;
        }
        return m;
}
/* Returns the result of lg_forward(m, x) with `epilogue` applied, which m must support; NULL with an error. */
lg_tensor *lg__forward_with_epilogue(lg_module *m, lg_tensor *x, lg__epilogue epilogue);
/* A call of a module with a function of its own, such as lg_run_rnn(): `forward` computes the results in place of the
 * module's forward, and `name` begins error messages. */
typedef struct lg__typed_call {
        const char *name;
        lg_forward_all_fn *forward;
        void *user;
} lg__typed_call;
/* Runs m as lg_forward_all() does, by that function: in a scope of its own, seen by observers. inputs.items[0] is
 * needed, other inputs may be NULL. Returns false and sets an error on failure; then ret->count is 0. */
bool lg__forward_typed(lg_module *m, lg_list inputs, const lg__typed_call *call, lg_outputs *ret);
/* Computes lg_batch_norm() in training mode with the statistics of all ranks' batches; group: the id of a group. */
lg_tensor *lg__sync_batch_norm(lg_tensor *x, uint64_t group, lg_tensor *w, lg_tensor *b, lg_batch_norm_options o);
/* Returns whether m is a batch norm whose statistics are those of all ranks of a group. */
bool lg__norm_is_shared(const lg_module *m);
/* The first returns whether m is a batch norm in evaluation mode that maps y (N, channels, ...) of `ndim` dimensions to
 * y * scale + shift. The second computes scale and shift (channels), in f64 if `beside` is f64, else in f32. */
bool lg__norm_is_affine(const lg_module *m, int ndim, int64_t channels);
bool lg__norm_affine(const lg_module *m, lg_dtype beside, lg_tensor **ret_scale, lg_tensor **ret_shift);
/* Applies ReLU: the forward of ReLU modules. A module with this forward is recognised as a ReLU. */
lg_tensor *lg__relu_forward(lg_module *m, lg_list inputs, void *user);
/* Applies a Linear: the forward of Linear modules. A module with this forward is recognised as a Linear. */
lg_tensor *lg__linear_forward(lg_module *m, lg_tensor *x, lg__epilogue epilogue);
/* Returns the input of a module that takes one; NULL with LG_ERR_ARGUMENT if the number of inputs is not 1. */
lg_tensor *lg__module_input(const lg_module *m, lg_list inputs);
/* Returns the part of m whose name is the first `length` bytes of `name` and whose kind is in `kinds`; NULL: none. */
lg__part *lg__module_part(const lg_module *m, const char *name, size_t length, int kinds);
/* Writes m's path from its outermost module, as in "0.2", to text ("" for the outermost one) and returns text. */
const char *lg__module_path(const lg_module *m, char text[LG__PATH]);
/* Writes m's path and type, as in "0.2 (Conv2d)"; for an outermost module only "(Conv2d)". */
void lg__module_title(const lg_module *m, char *text, size_t size);
/* Returns m's path from root, in text, or "-" if m is root. */
const char *lg__module_path_in(const lg_module *root, const lg_module *m, char text[LG__PATH]);
/* Runs one forward of root in a scope of its own, on the inputs in `o` or on zeros of shape o->input, and restores the
 * random state. Root cannot be freed meanwhile. */
bool lg__module_try(lg_module *root, const lg_module_print_options *o);
/* Returns whether m has a line in printed tables: a module with children but no parameters of its own has none. */
bool lg__module_has_line(const lg_module *m);
/* Returns whether a path matches a shell pattern. A leading '!' inverts the result. */
bool lg__path_matches(const char *pattern, const char *path);
/* Calls fn for the parameters and buffers of m and its children in the order in which the parts were added, depth
 * first. Returns false once fn does, or with an error if a path is too long. path: scratch memory. */
typedef bool lg__visit_fn(const char *path, lg__part *p, void *user);
bool lg__module_visit(lg_module *m, char path[LG__PATH], lg__visit_fn *fn, void *user);
/* Returns the convolution weight w in the layout that its device prefers: w or a copy in the open scope. */
lg_tensor *lg__laid_for_device(lg_tensor *w);
/* A range of a Sequential's children, parts [first, first + count), or the whole module if count is 0. */
typedef struct lg__stretch {
        int64_t first, count;
} lg__stretch;
/* Runs the forward of that part of m. */
lg_tensor *lg__forward_span(lg_module *m, lg__stretch s, lg_tensor *const *inputs);
/* Does the same with `params` in place of all parameters of m, as lg_forward_params() does. */
lg_tensor *lg__forward_params_span(lg_module *m, lg__stretch s, lg_list params, lg_tensor *const *inputs);
/* Does the same as lg__forward_span(), but the backward recomputes the activations, as for lg_recompute(). */
lg_tensor *lg__recompute_span(lg_module *m, lg__stretch s, lg_tensor *const *inputs);
/* Updates the cached parameter lists of m to the tensors that its parts hold now. */
void lg__module_relist(lg_module *m);
/* Returns the module after m in a depth-first walk through root, which begins with root itself; NULL at the end. */
lg_module *lg__module_next(const lg_module *m, const lg_module *root);

#endif
