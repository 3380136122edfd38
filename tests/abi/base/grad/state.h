/* state.h - weights in files, and checkpoints from which a run continues.
 *
 * lg_save() and lg_load() write and read the weights of a module, lg_weights_open() reads a file without one. An
 * lg_checkpoint saves a whole run, so that a program that was stopped continues to the same figures. Here, path is the
 * file of the run to continue, or NULL for a new run:
 *
 *     lg_checkpoint *run = lg_checkpoint_new(c);
 *     lg_checkpoint_add(run, "model", net);
 *     lg_checkpoint_add(run, "optimizer", opt);
 *     lg_checkpoint_add(run, "batches", loader);
 *     if (path)
 *             lg_checkpoint_load(run, path);
 *     ...
 *     lg_checkpoint_save(run, "run.safetensors");
 *
 * Files are safetensors (https://github.com/huggingface/safetensors), which PyTorch reads, with its state_dict's names.
 *
 * Saving writes a temporary file next to the old one and replaces it only when the new one is whole: a kill, a crash or
 * a full disk leaves the old file as it is. A process that is killed leaves the temporary file, ".NAME.grad-0.tmp",
 * which the next save of that file removes unless its writer still holds a lock on it (flock). Nothing is saved while
 * the context holds an error, or if a device-side error is pending, so a failed run does not overwrite a good file.
 *
 * Loading matches all names, checks and reads everything before it changes anything. Values beyond 64 MB are read
 * twice: once to see that they can be read, and once into place. If the second reading fails, the message says that
 * part of the values are in place.
 *
 * Functions fail with LG_ERR_IO if a file cannot be opened, read or written; with LG_ERR_FORMAT if it is not a whole
 * safetensors file; and with LG_ERR_ARGUMENT if names or shapes do not fit, or LG_ERR_DTYPE if only dtypes do not, with
 * up to ten names of each kind in the message.
 */
#ifndef LG_STATE_H
#define LG_STATE_H

#include "grad/nn.h"
#include "grad/optim.h"
#include "grad/scaler.h"
#include "grad/schedule.h"
#include "grad/data.h"

LG_BEGIN

/* ---- weights of a module ---- */

/* Writes the parameters and buffers of m, on whatever devices they are, to a file. Fails with LG_ERR_ARGUMENT if a name
 * is not UTF-8 or a path in m is too long, and with the error of a device if one is pending.
 * Example: lg_save(net, "net.safetensors") */
LG_API bool lg_save(lg_module *m, const char *path);

typedef struct lg_load_options {
        LG_OPTIONS_HEAD
        /* Leaves parameters that the file lacks as they are, and ignores tensors that m lacks; it is an error only if
         * they have nothing in common. Default false: both are errors. */
        bool partial LG_DEFAULT;
        /* With .partial, also leaves those whose shape differs in the file as they are. Default false: an error. */
        bool skip_mismatched LG_DEFAULT;
        /* Reads only tensors whose names begin with this, such as "backbone.", which it removes; default NULL: all. */
        const char *prefix LG_DEFAULT;
        /* Pairs of a name, without .prefix, of a tensor in the file, or of its beginning up to a dot, and a
         * replacement. An empty replacement removes the dot, too. The first pair that fits counts. Default: none. */
        lg_names_in rename LG_DEFAULT;
        bool cast LG_DEFAULT; /* converts from other float dtypes; default false: they are an error */
} lg_load_options;
/* Reads the values of a file into the parameters and buffers of m, which keep their handles, devices, dtypes and
 * gradients. Without .partial, the file must have each of them and no other; only num_batches_tracked may be missing.
 * Example: lg_load(net, "net.safetensors", .partial = true, .rename = LG_NAMES("fc", "6")) */
#define lg_load(...) LG_CALL2(lg_load_with, lg_load_options, lg_load_takes_m_path, V, V, __VA_ARGS__)
LG_API bool lg_load_with(lg_module *m, const char *path, const lg_load_options *options);

/* Copies the parameters and buffers of `from` into those of `to`, two modules of one context and of the same structure,
 * on any devices. Values are converted to the dtypes of `to`. Fails with LG_ERR_ARGUMENT if names differ. */
LG_API bool lg_copy_state(lg_module *to, lg_module *from);

/* ---- files without a module ---- */

/* A file that is open, to list what is in it and to read single tensors. */
typedef struct lg_weights lg_weights;

/* Opens a safetensors file, reads its header and checks it; or, if its name ends in ".onnx", reads an ONNX file into
 * memory, of which the tensors are the initialisers. */
LG_API LG_NEW lg_weights *lg_weights_open(lg_ctx *c, const char *path);

/* A tensor in a file. Its texts are valid until lg_weights_close(). */
typedef struct lg_weight {
        const char *name;       /* as lg_weights_read() takes it */
        const char *dtype_name; /* as the file has it: "F32", "I16"; "int16" in ONNX files */
        lg_dtype dtype;         /* LG_DTYPE_NONE if libgrad has none for it; such tensors cannot be read */
        lg_shape shape;
        int64_t bytes; /* of its values */
} lg_weight;

/* Fills *ret with tensor number i, from 0, in the order of the file. Returns false, without an error, if there is none.
 * Example: for (int64_t n = 0; lg_weights_at(file, n, &weight); n++) */
#define lg_weights_at(w, i, ret) lg_weights_at_with((w), (i), (ret), sizeof(lg_weight))
LG_API bool lg_weights_at_with(const lg_weights *w, int64_t i, lg_weight *ret, size_t size);

/* Reads the tensor of that name, on the context's default device. Fails with LG_ERR_FORMAT also if the file has become
 * shorter or has a bool that is not 0 or 1. */
LG_API LG_NEW lg_tensor *lg_weights_read(lg_weights *w, const char *name);

/* Sets *ret_key and *ret_value to the key and the value of entry number i, from 0, of the file's "__metadata__",
 * ordered by key. An ONNX file has "input NAME" and "output NAME" with dtype and shape ("float (batch, 3, 224, 224)"),
 * "opset" and "producer". Both are valid until lg_weights_close(). Returns false, without an error, if there is none.
 */
LG_API bool lg_weights_metadata(const lg_weights *w, int64_t i, const char **ret_key, const char **ret_value);

/* Closes the file. Tensors that were read from it stay. */
LG_API void lg_weights_close(lg_weights *w);

/* ---- checkpoints ----
 *
 * A checkpoint saves what was added to it and the context's random state to one file, and loads it again. Names are not
 * empty, contain no dot, differ from each other, and are not "random". All that is added must outlive it.
 */

/* A list of what makes up a run. Gradients are not saved: save between lg_step() and the next lg_backward(). */
typedef struct lg_checkpoint lg_checkpoint;

/* Makes an empty checkpoint. */
LG_API LG_NEW lg_checkpoint *lg_checkpoint_new(lg_ctx *c);

/* The kinds of objects that a checkpoint saves. */
typedef enum lg_state_kind {
        LG_STATE_MODULE = 1,    /* lg_module */
        LG_STATE_OPTIMIZER = 2, /* lg_optimizer */
        LG_STATE_SCHEDULER = 3, /* lg_scheduler */
        LG_STATE_EMA = 4,       /* lg_ema */
        LG_STATE_LOADER = 5,    /* lg_loader */
        LG_STATE_SCALER = 6,    /* lg_scaler */
} lg_state_kind;

/* Adds an object of one of these kinds, which the macro finds by the type of its pointer. Add an optimiser or an
 * average after the module whose parameters it holds: then its tensors are saved under the names of the parameters,
 * otherwise under numbers.
 * Example: lg_checkpoint_add(k, "model", net) */
#define lg_checkpoint_add(k, name, object) lg_checkpoint_add_with((k), (name), LG_STATE_KIND(object), (object))
LG_API bool lg_checkpoint_add_with(lg_checkpoint *k, const char *name, lg_state_kind kind, void *object);

/* Adds a number of the program. A save reads it and a load sets it. */
LG_API bool lg_checkpoint_add_number(lg_checkpoint *k, const char *name, double *number);
LG_API bool lg_checkpoint_add_i64(lg_checkpoint *k, const char *name, int64_t *number);

/* Adds a text of the program, UTF-8 in an array of `size` bytes, from 1 to 2^31 - 1, with the zero at its end.
 * lg_checkpoint_save() fails with LG_ERR_ARGUMENT if the text has no end or is not UTF-8, lg_checkpoint_load() with
 * LG_ERR_FORMAT if it is too long for the array.
 * Example: lg_checkpoint_add_text(k, "name", name, sizeof name) */
LG_API bool lg_checkpoint_add_text(lg_checkpoint *k, const char *name, char *text, size_t size);

/* Writes all that was added, and the random state, to a file, as lg_save() does. Fails with LG_ERR_STATE also if an
 * object or a parameter of an optimiser was freed. */
LG_API bool lg_checkpoint_save(lg_checkpoint *k, const char *path);

/* Restores bit for bit what was saved. The program must have made the same objects and added them under the same names.
 * A loader that was saved in the middle of an epoch continues there: the next lg_each_batch() gives the rest of that
 * epoch, in the same order. Fails with LG_ERR_ARGUMENT also if an optimiser or a schedule is of another type, or if a
 * loader has another number of samples or batch size; with LG_ERR_FORMAT if a number in the file is malformed or out of
 * range; with LG_ERR_IO if there is no such file, as on the first run of a program; and with LG_ERR_STATE if an object
 * was freed or inside a call that began in a step of an added loader. */
LG_API bool lg_checkpoint_load(lg_checkpoint *k, const char *path);

/* Frees the checkpoint, but not what was added to it. */
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
constexpr lg_state_kind lg_state_kind_of(const lg_scaler *)
{
        return LG_STATE_SCALER;
}
#define LG_STATE_KIND(object) lg_state_kind_of(object)
#else
/* clang-format off */
/* The lg_state_kind of an object, by the type of the pointer to it. */
#define LG_STATE_KIND(object)                                                                                          \
        _Generic((object), lg_module *: LG_STATE_MODULE, lg_optimizer *: LG_STATE_OPTIMIZER,                           \
                 lg_scheduler *: LG_STATE_SCHEDULER, lg_ema *: LG_STATE_EMA, lg_loader *: LG_STATE_LOADER,                           \
                 lg_scaler *: LG_STATE_SCALER)
/* clang-format on */
#endif
#endif
