/* data.h - data sets and loaders. */
#ifndef LG_DATA_H
#define LG_DATA_H

#include "grad/base.h"

LG_BEGIN

/* ---- data sets ----
 *
 * A data set is a number of samples, each of up to LG_MAX_FIELDS fields: arrays of fixed dtype and shape, such as an
 * image and its label. It belongs to the context until lg_dataset_free; loaders and data sets that are made of it keep
 * what they need.
 */
#define LG_MAX_FIELDS 8

/* What a field of every sample is. A ragged one has up to shape.size[0] rows; batches are padded to their longest. */
typedef struct lg_field {
        LG_FIELD_HEAD
        const char *name;
        lg_dtype dtype;
        lg_shape shape; /* of one sample */
        bool ragged;
        double pad; /* what the padding of batches is */
} lg_field;
typedef struct lg_fields {
        LG_FIELDS_HEAD
        lg_field field[LG_MAX_FIELDS];
} lg_fields; /* LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(3)), LG_FIELD("y", LG_I64, LG_SHAPE_0D)) */
typedef struct lg_dataset_options {
        LG_OPTIONS_HEAD
        double scale LG_DEFAULT; /* batches get x * scale + shift; 1 (integers stay integers if neither is given) */
        double shift LG_DEFAULT;
} lg_dataset_options;
/* Rows of x with rows of y, both on the CPU, sizes equal in dimension 0. The data set keeps copies only of the handles:
 * their values must not change. lg_dataset_tensors(c, x, y, .scale = 1.0 / 255) */
#define lg_dataset_tensors(...)                                                                                        \
        LG_CALL3(lg_dataset_tensors_with, lg_dataset_options, lg_dataset_tensors_takes_c_x_y, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_tensors_with(lg_ctx *c, lg_tensor *x, lg_tensor *y,
                                                  const lg_dataset_options *options);
/* The same of any number of fields, which are called "x", "y" and "field2" to "field7". x is the first, which scale and
 * shift are of. lg_dataset_list(c, LG_LIST(images, labels, weights)) */
#define lg_dataset_list(...)                                                                                           \
        LG_CALL2(lg_dataset_list_with, lg_dataset_options, lg_dataset_list_takes_c_tensors, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_list_with(lg_ctx *c, lg_list_in tensors, const lg_dataset_options *options);

/* Random numbers of one sample: the same for the same seed, epoch and sample, whichever thread draws them. */
typedef struct lg_rng lg_rng;
LG_API double lg_rng_uniform(lg_rng *r);           /* in [0, 1) */
LG_API double lg_rng_normal(lg_rng *r);            /* mean 0, standard deviation 1 */
LG_API int64_t lg_rng_below(lg_rng *r, int64_t n); /* 0 to n - 1; 0 if n < 1 */

/* A sample that is being made. */
typedef struct lg_sample {
        int64_t index;                 /* which one */
        int fields;                    /* how many */
        void *data[LG_MAX_FIELDS];     /* where they go: memory for the whole shape, aligned for the dtype */
        int64_t length[LG_MAX_FIELDS]; /* of a ragged field: how many rows it has, to be set; at first the most */
        lg_rng *rng;
} lg_sample;
/* Writes the fields of one sample. It runs in the loader's threads, in several at once: it must not use the context or
 * its tensors, and it must be as ready for that as the program is. False: the sample cannot be made; the loader's call
 * fails with LG_ERR_IO and what lg_sample_fail said. */
typedef bool lg_sample_fn(lg_sample *s, void *user);
/* Says why a sample cannot be made. Returns false. return lg_sample_fail(s, "%s: %s", path, strerror(errno)); */
LG_API bool lg_sample_fail(lg_sample *s, const char *format, ...) LG_PRINTF(2, 3);

typedef struct lg_source_options {
        LG_OPTIONS_HEAD
        void (*release)(void *user) LG_DEFAULT; /* is called as the data set ends, or where it cannot be made */
        bool (*seek)(void *user,
                     int64_t sample) LG_DEFAULT; /* of a stream: that sample comes next; false: it cannot be done */
} lg_source_options;
/* `size` samples that a function of the program makes, in any order.
 * lg_dataset_new(c, 1000, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(3))), make_sample, &files) */
#define lg_dataset_new(...)                                                                                            \
        LG_CALL5(lg_dataset_new_with, lg_source_options, lg_dataset_new_takes_c_size_fields_get_user, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_new_with(lg_ctx *c, int64_t size, lg_fields fields, lg_sample_fn *get, void *user,
                                              const lg_source_options *options);
/* Samples that come one after the other and end at some time: the function returns false without lg_sample_fail then.
 * One thread at a time calls it. A second epoch, and a run that is resumed, need .seek. A stream is not shuffled, cut
 * or joined, and one loader at a time reads it. */
#define lg_dataset_stream(...)                                                                                         \
        LG_CALL4(lg_dataset_stream_with, lg_source_options, lg_dataset_stream_takes_c_fields_next_user, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_stream_with(lg_ctx *c, lg_fields fields, lg_sample_fn *next, void *user,
                                                 const lg_source_options *options);

/* The samples of these numbers, in this order; a sample may come twice. */
LG_API LG_NEW lg_dataset *lg_dataset_subset(lg_dataset *d, lg_ints_in samples);
/* The samples of one data set after those of another: lg_dataset_concat(c, a, b). Their fields are the same. */
#define lg_dataset_concat(...) lg_dataset_concat_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_dataset, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_dataset *lg_dataset_concat_list(lg_ctx *c, lg_dataset *const *sets);
typedef struct lg_split_options {
        LG_OPTIONS_HEAD
        uint64_t seed LG_DEFAULT; /* drawn from the context's random state if 0 */
} lg_split_options;
/* Two parts drawn at random without overlap: round(fraction * size) samples, and the others.
 * lg_dataset_split(d, 0.9, &train, &valid, .seed = 1) */
#define lg_dataset_split(...)                                                                                          \
        LG_CALL4(lg_dataset_split_with, lg_split_options, lg_dataset_split_takes_d_fraction_first_second, __VA_ARGS__)
LG_API bool lg_dataset_split_with(lg_dataset *d, double fraction, lg_dataset **ret_first, lg_dataset **ret_second,
                                  const lg_split_options *options);

/* One sample as CPU tensors of the innermost scope, without a dimension of rows. What transforms draw is of seed 0 and
 * epoch 0. LG_ERR_STATE for a stream. */
struct lg_batch;
#define lg_dataset_get(d, i, ret) lg_dataset_get_with((d), (i), (ret), sizeof(lg_batch))
LG_API bool lg_dataset_get_with(lg_dataset *d, int64_t i, struct lg_batch *ret, size_t size);
LG_API lg_fields lg_dataset_fields(const lg_dataset *d); /* the names belong to the data set */
LG_API int64_t lg_dataset_size(const lg_dataset *d);     /* -1: a stream */
/* What the numbers of y mean, of Fashion-MNIST, CIFAR-10 and folders of images, also in data sets made of them; none of
 * others. They last as long as d. */
LG_API lg_names lg_dataset_classes(const lg_dataset *d);
LG_API void lg_dataset_free(lg_dataset *d);

/* ---- batches ---- */

/* The samples of a batch as they were made, and the batch. */
typedef struct lg_collation {
        int64_t count;                         /* of samples */
        lg_fields in, out;                     /* what they are, and what the batch gets of each */
        const void *from[LG_MAX_FIELDS];       /* the samples, one after the other, each of the whole shape */
        const int64_t *lengths[LG_MAX_FIELDS]; /* of ragged fields: the rows of each sample; others: NULL */
        void *to[LG_MAX_FIELDS];               /* the batch, in the same way */
        lg_rng *rng;                           /* of this batch */
} lg_collation;
/* Makes a batch, as lg_sample_fn makes a sample. False: it cannot be made: LG_ERR_ARGUMENT. */
typedef bool lg_collate_fn(const lg_collation *b, void *user);
typedef struct lg_collate lg_collate;
typedef struct lg_collate_options {
        LG_OPTIONS_HEAD
        void (*release)(void *user) LG_DEFAULT; /* is called as it ends, or where it cannot be made */
} lg_collate_options;
/* A way to make batches of samples: fields are what a batch has for each sample, and none of them is ragged. For a
 * loader's .collate. It belongs to the context until lg_collate_free; loaders keep what they need. */
#define lg_collate_new(...)                                                                                            \
        LG_CALL4(lg_collate_new_with, lg_collate_options, lg_collate_new_takes_c_fields_fn_user, __VA_ARGS__)
LG_API LG_NEW lg_collate *lg_collate_new_with(lg_ctx *c, lg_fields fields, lg_collate_fn *fn, void *user,
                                              const lg_collate_options *options);
LG_API void lg_collate_free(lg_collate *m);

/* One step's data. The tensors belong to the step's scope. */
typedef struct lg_batch {
        lg_tensor *x, *y;     /* the first two fields; y is NULL where there is one */
        int64_t index, count; /* which batch of the epoch, from 0; how many in an epoch, -1: not known */
        lg_loader *loader;
        lg_tensor *field[LG_MAX_FIELDS];
        lg_tensor *length[LG_MAX_FIELDS]; /* i64 (N): how many rows each sample of a ragged field has; others: NULL */
        int64_t fields;                   /* how many */
} lg_batch;
typedef struct lg_loader_options {
        LG_OPTIONS_HEAD
        bool shuffle LG_DEFAULT;     /* a new order each epoch, from the seed */
        bool drop_last LG_DEFAULT;   /* leave out a last batch that is not full; LG_ERR_ARGUMENT if that leaves none */
        int workers LG_DEFAULT;      /* threads that make batches ahead; 0: none; LG_AUTO: half as many as CPUs */
        lg_device device LG_DEFAULT; /* where the batches go; the context's default */
        uint64_t seed LG_DEFAULT;    /* of order and transforms; drawn from the context's random state if 0 */
        lg_tensor *weights
                LG_DEFAULT; /* (N), not negative: how often each sample is drawn, in relation; in place of .shuffle */
        lg_collate *collate LG_DEFAULT; /* makes batches of samples */
        int64_t samples LG_DEFAULT;     /* that .weights draw in an epoch; N, or as many as have a weight */
        int no_replacement LG_DEFAULT;  /* 1: samples that .weights drew are not drawn again in that epoch */
        int prefetch LG_DEFAULT;        /* how many batches workers make ahead, which take memory; as many as workers */
} lg_loader_options;
/* lg_loader_open(c, data, 64, .shuffle = true). It belongs to the context until lg_loader_free. */
#define lg_loader_open(...)                                                                                            \
        LG_CALL3(lg_loader_open_with, lg_loader_options, lg_loader_open_takes_c_data_batch_size, __VA_ARGS__)
LG_API LG_NEW lg_loader *lg_loader_open_with(lg_ctx *c, lg_dataset *data, int64_t batch_size,
                                             const lg_loader_options *options);
/* Ends the scope of this loader's last step and begins the next one with a batch; false at the end of an epoch (the
 * following call begins a new one) and on an error. In a hook or an own function that was called inside the last step,
 * and in a release function that runs as that step ends, lg_loader_next, lg_loader_restart and lg_loader_free are
 * LG_ERR_STATE and leave the loader as it is. */
#define lg_loader_next(l, ret) lg_loader_next_with((l), (ret), sizeof(lg_batch))
LG_API bool lg_loader_next_with(lg_loader *l, lg_batch *ret, size_t size);
/* Ends the step's scope; the next call begins a new epoch. Returns l. */
LG_API lg_loader *lg_loader_restart(lg_loader *l);
/* lg_each_batch(b, loader) { ... b.x ... b.y ... } runs the block for each batch of a new epoch; b is a lg_batch. It
 * may be left by break, goto or return: the next lg_each_batch begins a new epoch all the same. A loop in a loop takes
 * a loader of its own: two over one loader never end. */
#ifdef __cplusplus
/* clang-format off */
#define LG_FIRST_BATCH(l) lg_batch{NULL, NULL, 0, 0, (l), {}, {}, 0}
/* clang-format on */
#else
#define LG_FIRST_BATCH(l)                                                                                              \
        {                                                                                                              \
                .loader = (l)                                                                                          \
        }
#endif
#define lg_each_batch(b, l)                                                                                            \
        for (lg_batch b = LG_FIRST_BATCH(lg_loader_restart(l)); lg_loader_next_with(b.loader, &b, sizeof(lg_batch));)
LG_API int64_t lg_loader_batches(const lg_loader *l); /* in an epoch; -1: not known */
LG_API void lg_loader_free(lg_loader *l);

LG_END_C

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
#endif
