/* state.h - what outlives a program: weights in files, whole runs that go on where they stopped.
 *
 * Files are safetensors files (https://github.com/huggingface/safetensors), which PyTorch reads and writes too, and
 * names are those of PyTorch's state_dict. A file is written beside the old one and takes its place only when it is
 * whole: a kill, a crash or a full disk leaves the old file. Loading checks everything before it changes anything; what
 * a file has beyond 64 MB of values is read twice, to see that it can be, and into place: should the second reading
 * fail, the message says that part of the values are in place.
 *
 * LG_ERR_IO: a file cannot be opened, read or written; LG_ERR_FORMAT: it is no whole safetensors file; LG_ERR_ARGUMENT:
 * names or shapes that do not fit, LG_ERR_DTYPE: dtypes that do not: the message names the first ten of each kind.
 */
#ifndef LG_STATE_H
#define LG_STATE_H

#include "grad/nn.h"
#include "grad/optim.h"
#include "grad/schedule.h"
#include "grad/data.h"

LG_BEGIN

/* Writes the parameters and buffers of m, on whatever device, to a file. Refused while the context holds an error, so
 * that a failed run does not overwrite a good file. lg_save(net, "net.safetensors") */
LG_API bool lg_save(lg_module *m, const char *path);

typedef struct lg_load_options {
        LG_OPTIONS_HEAD
        bool partial LG_DEFAULT;       /* what only one side has stays as it is; nothing in common is an error */
        const char *prefix LG_DEFAULT; /* tensors whose names begin so, without it: "backbone." */
        lg_names_in rename
                LG_DEFAULT;   /* pairs: a name in the file, or the beginning of one up to a dot, and its new name */
        bool cast LG_DEFAULT; /* other float dtypes are converted */
} lg_load_options;
/* Puts the values of a file into the parameters and buffers of m, which keep their handles, devices, dtypes and
 * gradients. lg_load(net, "net.safetensors", .partial = true, .rename = LG_NAMES("fc", "6")) */
#define lg_load(...) LG_CALL2(lg_load_with, lg_load_options, lg_load_takes_m_path, __VA_ARGS__)
LG_API bool lg_load_with(lg_module *m, const char *path, const lg_load_options *options);
/* Puts the values of `from` into `to`: modules of one structure, on one or two devices. */
LG_API bool lg_copy_state(lg_module *to, lg_module *from);

/* A file that is open for reading without a module: what is in it, and the values of single tensors. It belongs to the
 * context until lg_weights_close. */
typedef struct lg_weights lg_weights;
/* Opens a file and checks its header; fails as lg_load does. */
LG_API LG_NEW lg_weights *lg_weights_open(lg_ctx *c, const char *path);
/* A tensor in a file; its texts last until lg_weights_close. */
typedef struct lg_weight {
        const char *name;
        const char *dtype_name; /* in the file: "F32", "I16" */
        lg_dtype dtype;         /* LG_DTYPE_NONE: one that libgrad does not have: it cannot be read */
        lg_shape shape;
        int64_t bytes;
} lg_weight;
/* The i-th tensor, from 0, in the order of the file. False, without an error: there are no more than i. */
#define lg_weights_at(w, i, ret) lg_weights_at_with((w), (i), (ret), sizeof(lg_weight))
LG_API bool lg_weights_at_with(const lg_weights *w, int64_t i, lg_weight *ret, size_t size);
/* A tensor's values, on the context's default device. LG_ERR_ARGUMENT: there is none of that name; LG_ERR_DTYPE. */
LG_API LG_NEW lg_tensor *lg_weights_read(lg_weights *w, const char *name);
/* The i-th of the texts that the file has beside its tensors ("__metadata__"), by key, in two pointers that last as the
 * names do. False, without an error: there are no more than i. */
LG_API bool lg_weights_text(const lg_weights *w, int64_t i, const char **ret_key, const char **ret_value);
LG_API void lg_weights_close(lg_weights *w);

/* A whole run: what is added to it is saved to one file and loaded from it, together with the context's random state.
 * It belongs to the context until lg_checkpoint_free, and must not be used when something that was added has been
 * freed. */
typedef struct lg_checkpoint lg_checkpoint;
LG_API LG_NEW lg_checkpoint *lg_checkpoint_new(lg_ctx *c);
/* Adds a module, an optimiser, a schedule, an average (lg_ema) or a loader under a name without a dot. An optimiser and
 * an average come after the module whose parameters they hold: their tensors are named by its paths.
 * lg_checkpoint_add(k, "model", net); lg_checkpoint_add(k, "optimizer", opt); lg_checkpoint_add(k, "batches", loader)
 */
typedef enum lg_state_kind {
        LG_STATE_MODULE = 1,
        LG_STATE_OPTIMIZER = 2,
        LG_STATE_SCHEDULER = 3,
        LG_STATE_EMA = 4,
        LG_STATE_LOADER = 5,
} lg_state_kind;
#define lg_checkpoint_add(k, name, object) lg_checkpoint_add_with((k), (name), LG_STATE_KIND(object), (object))
LG_API bool lg_checkpoint_add_with(lg_checkpoint *k, const char *name, lg_state_kind kind, void *object);
/* Adds numbers of the program's own, which must last as long as k: a save reads them, a load sets them. */
LG_API bool lg_checkpoint_add_number(lg_checkpoint *k, const char *name, double *number);
LG_API bool lg_checkpoint_add_i64(lg_checkpoint *k, const char *name, int64_t *number);
/* The same of a text of UTF-8 in `size` bytes, its end included: lg_checkpoint_add_text(k, "name", name, sizeof name)
 */
LG_API bool lg_checkpoint_add_text(lg_checkpoint *k, const char *name, char *text, size_t size);
LG_API bool lg_checkpoint_save(lg_checkpoint *k, const char *path);
/* Bit for bit what was saved. A loader that was stopped in an epoch goes on there: the next lg_each_batch gives the
 * rest of that epoch. What the file has beside what was added is an error, too. A program looks for the file first, or
 * takes LG_ERR_IO for a first run. */
LG_API bool lg_checkpoint_load(lg_checkpoint *k, const char *path);
LG_API void lg_checkpoint_free(lg_checkpoint *k);

LG_END_C

#ifdef __cplusplus
constexpr lg_state_kind lg_state_kind_of(const lg_module *)
{
        return LG_STATE_MODULE;
}
constexpr lg_state_kind lg_state_kind_of(const lg_optimizer *)
{
        return LG_STATE_OPTIMIZER;
}
constexpr lg_state_kind lg_state_kind_of(const lg_scheduler *)
{
        return LG_STATE_SCHEDULER;
}
constexpr lg_state_kind lg_state_kind_of(const lg_ema *)
{
        return LG_STATE_EMA;
}
constexpr lg_state_kind lg_state_kind_of(const lg_loader *)
{
        return LG_STATE_LOADER;
}
#define LG_STATE_KIND(object) lg_state_kind_of(object)
#else
/* clang-format off */
#define LG_STATE_KIND(object)                                                                                          \
        _Generic((object), lg_module *: LG_STATE_MODULE, lg_optimizer *: LG_STATE_OPTIMIZER,                           \
                 lg_scheduler *: LG_STATE_SCHEDULER, lg_ema *: LG_STATE_EMA, lg_loader *: LG_STATE_LOADER)
/* clang-format on */
#endif
#endif
