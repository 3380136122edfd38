/* data.h - data sets, and loaders that turn their samples into batches.
 *
 * A data set is a number of samples, each with up to LG_MAX_FIELDS fields, arrays of one dtype and shape, such as an
 * image and its label. A loader goes through a data set in batches, in order or shuffled, and can make them ahead of
 * time in threads of its own:
 *
 *     lg_dataset *train = lg_dataset_tensors(c, images, labels, .scale = 1.0 / 255);
 *     lg_loader *batches = lg_loader_open(c, train, 64, .shuffle = true, .workers = 2);
 *     for (int epoch = 0; epoch < 5; epoch++)
 *             lg_each_batch(b, batches) {
 *                     lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
 *                     ...
 *             }
 *
 * Data sets of files are in files.h; random changes to samples (augmentation) are in transforms.h.
 */
#ifndef LG_DATA_H
#define LG_DATA_H

#include "grad/group.h"

/* ---- fields ----
 *
 * Samples have 1 to LG_MAX_FIELDS fields, each with its own name and a dtype that can hold .pad (else LG_ERR_ARGUMENT).
 * A shape has fewer than LG_MAX_DIMS dimensions, since a batch has one more, and for a ragged field at least one.
 */

/* The largest number of fields in a sample. */
#define LG_MAX_FIELDS 8

/* One field of a sample. A ragged field has at most shape.size[0] rows, and fewer in some samples; a batch is padded to
 * the longest of its samples. */
typedef struct lg_field {
        LG_FIELD_HEAD
        const char *name; /* "x", "label", ... */
        lg_dtype dtype;   /* of its elements */
        lg_shape shape;   /* of one sample, without the dimension of the batch */
        bool ragged;      /* whether samples differ in their number of rows */
        double pad;       /* the value of padding in a ragged field */
} lg_field;

/* A list of fields. LG_FIELDS() makes one; those that lg_dataset_fields() returns belong to the data set. */
typedef struct lg_fields {
        LG_FIELDS_HEAD
        lg_field field[LG_MAX_FIELDS]; /* `count` of them are in use */
} lg_fields;

/* A field, LG_FIELD(name, dtype, shape) or, ragged, LG_RAGGED_FIELD(name, dtype, shape, pad), and a list of fields.
 * Example: LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(3)), LG_FIELD("y", LG_I64, LG_SHAPE_0D)) */
#ifdef __cplusplus
constexpr lg_field lg_make_field(const char *name, lg_dtype dtype, lg_shape shape, bool ragged, double pad)
{
        return lg_field{name, dtype, shape, ragged, pad};
}
constexpr lg_field lg_this_field(lg_field f)
{
        return f;
}
template <class... T> constexpr lg_fields lg_make_fields(T... t)
{
        static_assert(sizeof...(T) > 0 && sizeof...(T) <= LG_MAX_FIELDS, "LG_FIELDS() takes 1 to 8 fields");
        return lg_fields{lg_by_name<int>((int)sizeof...(T)), {lg_this_field(t)...}};
}
#define LG_FIELD(name, dtype, shape) lg_make_field((name), (dtype), (shape), false, 0)
#define LG_RAGGED_FIELD(name, dtype, shape, pad) lg_make_field((name), (dtype), (shape), true, (pad))
#define LG_FIELDS(...) lg_make_fields(__VA_ARGS__)
#else
#define LG_FIELD(name_, dtype_, shape_) ((lg_field){.name = (name_), .dtype = (dtype_), .shape = (shape_)})
#define LG_RAGGED_FIELD(name_, dtype_, shape_, pad_)                                                                   \
        ((lg_field){.name = (name_), .dtype = (dtype_), .shape = (shape_), .ragged = true, .pad = (pad_)})
#define LG_FIELDS(...)                                                                                                 \
        ((lg_fields){.count = LG_COUNT(lg_field, __VA_ARGS__) *                                                        \
                              (int)sizeof(char[LG_COUNT(lg_field, __VA_ARGS__) ? 1 : -1]),                             \
                     .field = {__VA_ARGS__}})
#endif

LG_BEGIN

/* ---- data sets of tensors ----
 *
 * Loaders and data sets that use a data set keep it alive until they end, also after lg_dataset_free().
 */

typedef struct lg_dataset_options {
        LG_OPTIONS_HEAD
        double scale LG_DEFAULT; /* x is multiplied by it; default 1. LG_ZERO sets 0. */
        double shift LG_DEFAULT; /* is added to x after that; default 0 */
} lg_dataset_options;
/* Makes a data set of the rows of two tensors on the CPU: sample i is x[i] in the field "x" and y[i] in the field "y".
 * Both have the same size in dimension 0. If .scale or .shift is given, "x" is x * scale + shift in f64 if x is f64,
 * else in f32, and must not be f16 or bf16; otherwise it keeps its dtype. The data set shares the memory of contiguous
 * tensors and copies others: their values must not change while it is in use, but the tensors may be freed.
 * Example: lg_dataset_tensors(c, x, y, .scale = 1.0 / 255) */
#define lg_dataset_tensors(...)                                                                                        \
        LG_CALL3(lg_dataset_tensors_with, lg_dataset_options, lg_dataset_tensors_takes_c_x_y, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_tensors_with(lg_ctx *c, lg_tensor *x, lg_tensor *y,
                                                  const lg_dataset_options *options);

/* Makes a data set of the rows of 1 to LG_MAX_FIELDS tensors, as lg_dataset_tensors() does of two. The fields are named
 * "x", "y" and "field2" to "field7"; .scale and .shift apply to the first.
 * Example: lg_dataset_list(c, LG_LIST(images, labels, weights)) */
#define lg_dataset_list(...)                                                                                           \
        LG_CALL2(lg_dataset_list_with, lg_dataset_options, lg_dataset_list_takes_c_tensors, V, V, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_list_with(lg_ctx *c, lg_list_in tensors, const lg_dataset_options *options);

/* ---- data sets of functions ----
 *
 * lg_dataset_new() and lg_dataset_stream() make a data set whose samples a function of the program writes. The loader's
 * threads call that function, several at once; without workers, lg_loader_next() and lg_dataset_get() call it in their
 * own thread. It must therefore be safe to call from several threads, and must not use the context or its tensors.
 */

/* The random numbers of a sample or a batch, valid until the function that gets them returns. They depend on the
 * loader's seed, the epoch and the number of the sample (where .weights may draw it twice: its place in the epoch), not
 * on the thread. */
typedef struct lg_rng lg_rng;

/* Draws a number; 0 if r is NULL: */
LG_API double lg_rng_uniform(lg_rng *r);           /* from the uniform distribution over [0, 1) */
LG_API double lg_rng_normal(lg_rng *r);            /* from the normal distribution, mean 0, standard deviation 1 */
LG_API int64_t lg_rng_below(lg_rng *r, int64_t n); /* a whole number of 0 to n - 1, uniformly; 0 if n < 1 */

/* A sample that a function of the program makes. */
typedef struct lg_sample {
        int64_t index; /* its number in the data set; in a stream, how many samples come before it */
        int fields;    /* the number of its fields */
        /* Where to write each field: memory for the field's whole shape, row-major and aligned for its dtype. */
        void *data[LG_MAX_FIELDS];
        /* For each ragged field, the number of rows, which the function sets; at first, the most that it may be. */
        int64_t length[LG_MAX_FIELDS];
        lg_rng *rng; /* its random numbers */
} lg_sample;

/* Writes the fields of sample s->index. `user` is the pointer that was given with the function. Returns false if the
 * sample cannot be made, after lg_sample_fail(): the call that wants the sample then fails with LG_ERR_IO and that
 * message, or with LG_ERR_ARGUMENT if a length is out of range. */
typedef bool lg_sample_fn(lg_sample *s, void *user);

/* Sets the message of the error that makes a sample fail, unless it has one already. Returns false.
 * Example: return lg_sample_fail(s, "%s: %s", path, strerror(errno)); */
LG_API bool lg_sample_fail(lg_sample *s, const char *format, ...) LG_PRINTF(2, 3);

typedef struct lg_source_options {
        LG_OPTIONS_HEAD
        void (*release)(void *user) LG_DEFAULT; /* called when the data set ends or cannot be made; default: none */
        /* For a stream: makes `sample` the next one, or returns false if that is not possible; default: none. */
        bool (*seek)(void *user, int64_t sample) LG_DEFAULT;
} lg_source_options;
/* Makes a data set of `size` samples, which get(sample, user) writes in any order. .seek is not allowed.
 * Example: lg_dataset_new(c, 1000, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(3))), make_sample, &files) */
#define lg_dataset_new(...)                                                                                            \
        LG_CALL5(lg_dataset_new_with, lg_source_options, lg_dataset_new_takes_c_size_fields_get_user, V, I, V, V, V,   \
                 __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_new_with(lg_ctx *c, int64_t size, lg_fields fields, lg_sample_fn *get, void *user,
                                              const lg_source_options *options);

/* Makes a data set of samples that next(sample, user) writes one after another, for data of unknown size. next returns
 * false without lg_sample_fail() after the last sample. One thread at a time calls it. A second epoch, and an epoch
 * that lg_checkpoint_load() resumes, need .seek: otherwise lg_loader_next() fails with LG_ERR_STATE. One loader at a
 * time can read a stream, in its own order only: it cannot be shuffled, weighted, split, joined or indexed.
 * Example: lg_dataset_stream(c, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(3))), make_sample, &files) */
#define lg_dataset_stream(...)                                                                                         \
        LG_CALL4(lg_dataset_stream_with, lg_source_options, lg_dataset_stream_takes_c_fields_next_user, V, V, V, V,    \
                 __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_stream_with(lg_ctx *c, lg_fields fields, lg_sample_fn *next, void *user,
                                                 const lg_source_options *options);

/* ---- data sets of data sets ----
 *
 * These data sets select or join the samples of others, which must not be streams, without copying them, and keep the
 * others alive. They nest up to LG_MAX_DATA_DEPTH levels deep.
 */

/* The most levels of data sets in data sets, the innermost included; the same holds for transforms in transforms. */
#define LG_MAX_DATA_DEPTH 128

/* Makes a data set of the samples of d with the given numbers, in this order. A number may occur more than once.
 * Example: lg_dataset_subset(d, LG_INTS(0, 2, 4)) */
LG_API LG_NEW lg_dataset *lg_dataset_subset(lg_dataset *d, lg_ints_in samples);

/* Makes a data set of the samples of the first data set, then those of the second, and so on. All must have the same
 * number of fields, with equal dtypes and shapes (else LG_ERR_SHAPE); names and padding are those of the first.
 * Example: lg_dataset_concat(c, a, b) */
#define lg_dataset_concat(...) lg_dataset_concat_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_dataset, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_dataset *lg_dataset_concat_list(lg_ctx *c, lg_dataset *const *sets);

typedef struct lg_split_options {
        LG_OPTIONS_HEAD
        uint64_t seed LG_DEFAULT; /* of the random choice; default 0: drawn from the context's random state */
} lg_split_options;
/* Splits d at random into two data sets that share no sample: *ret_first gets round(fraction * size) samples,
 * *ret_second the others; both are NULL after an error. fraction is in [0, 1], and d has fewer than 2^31 samples.
 * Example: lg_dataset_split(d, 0.9, &train, &valid, .seed = 1) */
#define lg_dataset_split(...)                                                                                          \
        LG_CALL4(lg_dataset_split_with, lg_split_options, lg_dataset_split_takes_d_fraction_first_second, V, V, V, V,  \
                 __VA_ARGS__)
LG_API bool lg_dataset_split_with(lg_dataset *d, double fraction, lg_dataset **ret_first, lg_dataset **ret_second,
                                  const lg_split_options *options);

/* ---- samples, fields and classes ---- */

/* A batch of a loader, or a sample. Its tensors belong to the innermost scope, for a batch that of its step. */
typedef struct lg_batch {
        lg_tensor *x, *y; /* the first two fields; y is NULL if there is only one */
        /* The number of the batch in its epoch, from 0, and how many batches an epoch has, -1 if that is not known. */
        int64_t index, count;
        lg_loader *loader;               /* the loader that made it; NULL for a sample */
        lg_tensor *field[LG_MAX_FIELDS]; /* all fields, each (N, ...) with the N samples of the batch */
        /* For each ragged field, i64 (N), the number of rows of each sample; NULL for others. */
        lg_tensor *length[LG_MAX_FIELDS];
        int64_t fields; /* the number of fields */
        int64_t loop;   /* which lg_each_batch() over the loader it is of; the library's own */
} lg_batch;

/* Reads sample i into *ret, as tensors on the CPU without the dimension of a batch. Ragged fields have the rows of this
 * sample only. ret->index is i and ret->count the size of d. Random transforms draw the numbers of seed 0 and epoch 0.
 * Fails with LG_ERR_STATE if d is a stream, and with the error of the function or file that the sample comes from.
 * Example: lg_dataset_get(d, 0, &sample) */
#define lg_dataset_get(d, i, ret) lg_dataset_get_with((d), (i), (ret), sizeof(lg_batch))
LG_API bool lg_dataset_get_with(lg_dataset *d, int64_t i, lg_batch *ret, size_t size);

/* Returns the fields, whose names are valid as long as d lives, or the number of samples, -1 for a stream. */
LG_API lg_fields lg_dataset_fields(const lg_dataset *d);
LG_API int64_t lg_dataset_size(const lg_dataset *d);

/* Returns the names of the classes that the numbers in "y" stand for: for lg_dataset_fashion_mnist(),
 * lg_dataset_cifar10() and lg_dataset_image_folder(), and for data sets made of them (for lg_dataset_concat(), of the
 * first). Returns no names for other data sets, and if d is NULL. The names are valid as long as d lives. */
LG_API lg_names lg_dataset_classes(const lg_dataset *d);

/* Frees d, or marks it to be freed when the last loader or data set that uses it ends. */
LG_API void lg_dataset_free(lg_dataset *d);

/* ---- collate functions ----
 *
 * By default, a batch is its samples stacked along a new dimension 0, ragged fields padded. A collate function of the
 * program makes batches in another way, for instance by mixing samples, as lg_mixup() of transforms.h does. The rules
 * of lg_sample_fn hold for it: the loader's threads call it, several at once, and it must not use the context.
 */

/* The samples of a batch, and the memory to write the batch to. */
typedef struct lg_collation {
        int64_t count;                   /* the number of samples */
        lg_fields in, out;               /* the fields of a sample, and those that the batch has for each sample */
        const void *from[LG_MAX_FIELDS]; /* for each field of `in`: the samples one after another, each in full */
        /* For each ragged field of `in`, the number of rows of each sample; NULL for others. */
        const int64_t *lengths[LG_MAX_FIELDS];
        void *to[LG_MAX_FIELDS]; /* for each field of `out`: where to write its values, one sample after another */
        lg_rng *rng;             /* the random numbers of this batch */
} lg_collation;

/* Makes a batch: writes b->to from b->from. Returns false if that is not possible: lg_loader_next() then fails with
 * LG_ERR_ARGUMENT. `user` is the pointer given to lg_collate_new(). */
typedef bool lg_collate_fn(const lg_collation *b, void *user);

/* A way to make batches, for the .collate of loaders. Loaders that use it keep it alive until they end. */
typedef struct lg_collate lg_collate;

typedef struct lg_collate_options {
        LG_OPTIONS_HEAD
        void (*release)(void *user) LG_DEFAULT; /* called when it ends or cannot be made; default: none */
} lg_collate_options;
/* Returns a way to make batches: fn(batch, user). `fields`, none of them ragged, describe what it makes of each sample.
 * Example: lg_collate_new(c, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE_0D)), collate, NULL) */
#define lg_collate_new(...)                                                                                            \
        LG_CALL4(lg_collate_new_with, lg_collate_options, lg_collate_new_takes_c_fields_fn_user, V, V, V, V,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_collate *lg_collate_new_with(lg_ctx *c, lg_fields fields, lg_collate_fn *fn, void *user,
                                              const lg_collate_options *options);

/* Frees m, or marks it to be freed when the last loader that uses it ends. */
LG_API void lg_collate_free(lg_collate *m);

/* ---- loaders ----
 *
 * A loader goes through a data set in batches. Each batch is a step with a scope of its own: asking for the next batch
 * frees the tensors of the step before, except those that were handed out by lg_escape() or lg_keep(). The same seed
 * gives the same batches with any number of workers. In a child of fork() a loader starts workers of its own and
 * continues with the next batch; a stream begins a new epoch.
 *
 * lg_loader_next(), lg_loader_restart() and lg_loader_close() fail with LG_ERR_STATE and leave the loader unchanged if
 * they are called inside a call that began in the loader's last step (by a hook or a custom function), by a release
 * function that runs as that step ends, or, without workers, by a function that makes samples for this loader. With
 * workers such a function runs in another thread, which must not use the loader or its context.
 */

typedef struct lg_loader_options {
        LG_OPTIONS_HEAD
        bool shuffle LG_DEFAULT;   /* goes through the samples in a new random order each epoch; default false */
        bool drop_last LG_DEFAULT; /* leaves out the last batch if it is not full; default false */
        /* Threads that make batches ahead, up to 64; LG_AUTO starts half as many as there are CPUs. Default 0: batches
         * are made when they are asked for. Only one thread reads a stream. */
        int workers LG_DEFAULT;
        lg_device device LG_DEFAULT; /* of the batches; default: the context's default device */
        /* Default 0: drawn from the context if .shuffle, .weights, .collate or a random transform needs it, else 0. */
        uint64_t seed LG_DEFAULT;
        /* Draws samples at random, with replacement, in proportion to these weights: a tensor (N) on the CPU, with 0 or
         * more for each of the N samples; not with .shuffle. Default NULL: each sample once. */
        lg_tensor *weights LG_DEFAULT;
        lg_collate *collate LG_DEFAULT; /* makes the batches; default NULL: samples are stacked */
        /* Samples that .weights draws in an epoch; default: N or, with .no_replacement, those with a weight above 0. */
        int64_t samples LG_DEFAULT;
        bool no_replacement LG_DEFAULT; /* no sample is drawn twice in an epoch; default false */
        int prefetch LG_DEFAULT; /* how many batches workers make ahead, which take memory; default: one per worker */
        /* Ranks that share the samples: each gets batch_size of the next size x batch_size samples, of one order, so
         * that together they make the batches of a single process. All must open the loader, and draw by the seed of
         * rank 0. The last batches may differ by one sample between ranks. Default: this process has all samples. */
        lg_group *group LG_DEFAULT;
} lg_loader_options;
/* Opens a loader that goes through `data` in batches of batch_size samples; the last batch of an epoch may be smaller.
 * Fails with LG_ERR_ARGUMENT if options exclude each other, if a stream is to be shuffled, weighted or shared, if
 * .drop_last leaves no batch, if there are fewer samples than ranks, or if more than 2^31 - 1 samples are to be
 * shuffled; with LG_ERR_STATE if another loader reads the stream; with LG_ERR_COMM if sample counts or batch sizes
 * differ between ranks, and as functions of group.h do; and with LG_ERR_MEMORY also if the system starts too few
 * threads.
 * Example: lg_loader_open(c, data, 64, .shuffle = true) */
#define lg_loader_open(...)                                                                                            \
        LG_CALL3(lg_loader_open_with, lg_loader_options, lg_loader_open_takes_c_data_batch_size, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_loader *lg_loader_open_with(lg_ctx *c, lg_dataset *data, int64_t batch_size,
                                             const lg_loader_options *options);

/* Ends the scope of the last step, begins that of the next, and fills *ret with its batch. Returns false at the end of
 * an epoch, after which the next call begins a new one, and after an error, such as that of a sample's function, file
 * or transform. After lg_clear_error(), the next call makes the same batch again; a stream begins a new epoch.
 * Example: for (lg_batch b; lg_loader_next(l, &b);) */
#define lg_loader_next(l, ret) lg_loader_next_with((l), (ret), sizeof(lg_batch))
LG_API bool lg_loader_next_with(lg_loader *l, lg_batch *ret, size_t size);

/* Ends the scope of the last step and the epoch: the next lg_loader_next() begins a new one, or goes on with the epoch
 * that lg_checkpoint_load() has just restored. Returns l, also after an error. */
LG_API lg_loader *lg_loader_restart(lg_loader *l);

#ifdef __cplusplus
/* clang-format off */
#define LG_FIRST_BATCH(l) lg_batch{NULL, NULL, 0, 0, (l), {}, {}, 0, 0}
/* clang-format on */
#else
/* The first value of the batch of lg_each_batch(). */
#define LG_FIRST_BATCH(l)                                                                                              \
        {                                                                                                              \
                .loader = (l)                                                                                          \
        }
#endif

/* Runs the statement or block that follows for each batch of an epoch; b is the lg_batch. The block may be left by
 * break, goto or return: the next lg_each_batch() begins a new epoch all the same. The scope of the step that was left
 * then stays open, and owns the tensors made after the loop, until the loader is used again: lg_loader_restart() ends
 * it. A loop inside another needs a loader of its own: after an inner loop over the same loader, the outer one ends
 * with LG_ERR_STATE. Calls lg_loader_restart() and lg_loader_next().
 * Example: lg_each_batch(b, loader) lg_print(stdout, b.x); */
#define lg_each_batch(b, l) for (lg_batch b = LG_FIRST_BATCH(l); lg_each_batch_with(&b, sizeof(lg_batch));)
LG_API bool lg_each_batch_with(lg_batch *b, size_t size);

/* Returns the number of batches in an epoch, -1 for a stream, or 0 if l is NULL. */
LG_API int64_t lg_loader_batches(const lg_loader *l);

/* Ends the scope of the last step, stops the loader's threads and frees the loader. */
LG_API void lg_loader_close(lg_loader *l);

LG_END_C
#endif
