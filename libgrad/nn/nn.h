/* nn.h - what a module is: a record with named parts (parameters, buffers, children) and a forward. Private to nn/. */
#ifndef LG_NN_PRIVATE_H
#define LG_NN_PRIVATE_H

#include "graph/graph.h"

typedef enum lg__part_kind { LG__PARAMETER = 1, LG__BUFFER = 2, LG__CHILD = 4 } lg__part_kind;

/* A named part of a module, in the order in which they were added. */
typedef struct lg__part {
        struct lg__part *next;
        lg__part_kind kind;
        char *name;
        lg_tensor *tensor; /* owned; of parameters and buffers */
        lg_module *child;  /* owned */
} lg__part;

/* The parameters that match a pattern. */
typedef struct lg__listing {
        struct lg__listing *next;
        char *pattern; /* NULL: all */
        lg_tensor **items;
        int64_t count;
} lg__listing;

/* What follows a module and can be done in the pass over memory that makes its result: a batch norm in evaluation, a
 * sum, ReLU. Zero: nothing. */
typedef struct lg__ending {
        const lg_module *norm;
        lg_tensor *plus;
        bool relu;
} lg__ending;
/* The forward of a module that takes one input and does what follows, too. */
typedef lg_tensor *lg__ending_fn(lg_module *m, lg_tensor *x, lg__ending ending);
enum {
        LG__ENDS_WITH_SUM = 1,
        LG__ENDS_WITH_RELU = 2,
        LG__ENDS_WITH_NORM = 4,
        LG__RECORDS_RELU = 8 /* while the context records, it ends with ReLU alone */
};

struct lg_module {
        lg__object object; /* in the context's list as long as there is no parent */
        lg_module *parent;
        lg__part *part; /* of the parent that it is */
        int levels;     /* of modules, itself the first: at most LG_MAX_MODULE_DEPTH, since forwards recurse */
        int running;    /* forwards and visits of it that are under way */
        bool copied;    /* its .clone makes it just now */
        int lent;       /* calls of lg_forward_params that have put other tensors in the places of its parameters */
        char *type;
        lg_forward_fn *forward;
        lg_forward_all_fn *forward_all;
        lg__ending_fn *forward_ending; /* one of the three, or none: a container */
        unsigned ends;                 /* which endings forward_ending knows */
        void *user;
        void (*release)(void *user);
        void *(*clone)(lg_module *copy, void *user);
        void *config; /* of a module that comes with libgrad: its options, which are `user` */
        size_t config_bytes;
        bool counts_batches; /* batch norm with running statistics: PyTorch's num_batches_tracked, in files only */
        int64_t batches;
        lg__watcher *parallel; /* data_parallel.c: its gradients are averaged over the ranks of a group; NULL: they are
                                  not */
        int64_t every;         /* of a Sequential: so many children at a time are recomputed; 0: none */
        bool convolves;        /* its weights lie as convolutions want them */
        bool training, was_training; /* the latter while lg_module_print runs */
        int printing;                /* how many of these run */
        lg__part *parts, **end;
        lg__listing *
                listings; /* what lg_parameters() and lg_parameters_matching() gave; none after a change of structure */
        lg_shape shape;   /* of the last forward's result, for lg_module_print */
        bool has_shape;
        int64_t kept_bytes, most_bytes;   /* of the last forward that was measured, for lg_module_print_memory */
        int64_t used_before, peak_before; /* while it is measured: of the device */
};

/* A module without parts; NULL while an error is set. */
lg_module *lg__module_new(lg_ctx *c, const char *type, lg_forward_fn *forward);
/* The same; the forward gets a copy of `config` as its user data. */
lg_module *lg__module_with(lg_ctx *c, const char *type, lg_forward_fn *forward, const void *config, size_t bytes);
/* The same, with parts that `fill` makes; NULL, with the random state as it was, if that fails. `config` may be NULL.
 */
typedef bool lg__fill_fn(lg_module *m, const void *options);
lg_module *lg__module_build(lg_ctx *c, const char *type, lg_forward_fn *forward, const void *config, size_t bytes,
                            lg__fill_fn *fill, const void *options);
/* A parameter or buffer of that name, uniform in [-bound, bound) or constant. */
bool lg__module_uniform(lg_module *m, const char *name, double bound, lg_shape shape, lg_dtype dtype, lg_device device);
bool lg__module_constant(lg_module *m, lg__part_kind kind, const char *name, double value, lg_shape shape,
                         lg_dtype dtype, lg_device device);
/* The parameter or buffer of that name, or NULL if this module has none. */
lg_tensor *lg__module_tensor(const lg_module *m, const char *name);
/* True if dtype is not given or a float dtype. */
bool lg__module_dtype(lg_ctx *c, const char *op, lg_dtype dtype);
/* Adds the child to m under that name, or sets an error of `op` and returns false. */
bool lg__module_attach(lg_module *m, const char *name, lg_module *child, const char *op);
/* Puts `child` in place of the module in part p and frees that one, or sets an error of `op` and returns false. */
bool lg__module_exchange(lg__part *p, lg_module *child, const char *op);
/* False, with an error of `op`: lg_forward_params has other tensors in the places of its parameters just now. */
bool lg__module_is_whole(const lg_module *m, const char *op);
/* Undoes what was begun: children go back to the context, the module is destroyed. Returns NULL. */
lg_module *lg__module_give_up(lg_module *m);
/* Up to how many inputs a forward takes. */
#define LG__MAX_INPUTS 16
/* Gives m, which may be NULL, a forward that knows endings. Returns m. */
static inline lg_module *lg__module_ends(lg_module *m, lg__ending_fn *forward, unsigned ends)
{
        if (m) {
                m->forward_ending = forward;
                m->ends = ends;
        }
        return m;
}
/* lg_forward(m, x) with an ending that m knows. */
lg_tensor *lg__forward_ending(lg_module *m, lg_tensor *x, lg__ending ending);
/* lg_batch_norm() in training by the statistics of all ranks of that group (its id). */
lg_tensor *lg__sync_batch_norm(lg_tensor *x, uint64_t group, lg_tensor *w, lg_tensor *b, lg_batch_norm_options o);
/* True for a batch norm whose statistics are those of all ranks of a group. */
bool lg__norm_is_shared(const lg_module *m);
/* True for a batch norm whose result on y (N, channels, ...) of `ndim` dimensions is y scale + shift; these are f64
 * beside f64, else f32. */
bool lg__norm_is_affine(const lg_module *m, int ndim, int64_t channels);
bool lg__norm_affine(const lg_module *m, lg_dtype beside, lg_tensor **ret_scale, lg_tensor **ret_shift);
/* What tells a ReLU. */
lg_tensor *lg__relu_forward(lg_module *m, lg_list inputs, void *user);
/* The input of a module that takes one, or NULL and LG_ERR_ARGUMENT. */
lg_tensor *lg__module_input(const lg_module *m, lg_list inputs);
/* The part of m with that name, of one of the kinds; NULL: none. */
lg__part *lg__module_part(const lg_module *m, const char *name, size_t length, int kinds);
/* "0.2" into text, from the outermost module on; "" for that one itself. Returns text. */
const char *lg__module_path(const lg_module *m, char text[LG__PATH]);
/* "0.2 (Conv2d)", "(Conv2d)" of the outermost. */
void lg__module_title(const lg_module *m, char *text, size_t size);
/* The same from root on, "-" for root itself. */
const char *lg__module_path_in(const lg_module *root, const lg_module *m, char text[LG__PATH]);
/* Runs one forward on what the options say, in a scope of its own; the random state stays. Counts as one that runs
 * root. */
bool lg__module_try(lg_module *root, const lg_module_print_options *o);
/* Has a line in tables: containers show through. */
bool lg__module_has_line(const lg_module *m);
/* Calls fn for parameters and buffers in the order in which they were added, a child's in its place; stops where that
 * returns false. */
typedef bool lg__visit_fn(const char *path, lg__part *p, void *user);
bool lg__module_visit(lg_module *m, char path[LG__PATH], lg__visit_fn *fn, void *user);
/* Weights of a convolution as they lie on their device, which may be w; of the open scope. */
lg_tensor *lg__laid_for_device(lg_tensor *w);
/* Parts [first, first + count) of a Sequential, or, if count is 0, a module as a whole. */
typedef struct lg__stretch {
        int64_t first, count;
} lg__stretch;
lg_tensor *lg__forward_span(lg_module *m, lg__stretch s, lg_tensor *const *inputs);
/* lg_forward_params() of that; params are all of m's. */
lg_tensor *lg__forward_params_span(lg_module *m, lg__stretch s, lg_list params, lg_tensor *const *inputs);
/* lg_recompute() of that. */
lg_tensor *lg__recompute_span(lg_module *m, lg__stretch s, lg_tensor *const *inputs);
/* Lists that m has given get the tensors that its parts have now. */
void lg__module_relist(lg_module *m);
/* The next module after m within root, depth first; NULL: none. Begin with root itself. */
lg_module *lg__module_next(const lg_module *m, const lg_module *root);

#endif
