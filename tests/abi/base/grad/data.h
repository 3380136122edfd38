/* data.h - data sets and loaders. */
#ifndef LG_DATA_H
#define LG_DATA_H

#include "grad/base.h"

LG_BEGIN

/* A tensor from an IDX file (LeCun's format), plain or, where libgrad is built with zlib, gzip: u8 or any other IDX
 * type that has a dtype here (u8, i32, f32, f64; signed bytes and shorts become i32). The file must be a regular one:
 * symbolic links are followed (as /dev/stdin is, if a file is redirected to it), but pipes, terminals and devices are
 * refused. LG_ERR_IO: cannot be opened or read; LG_ERR_FORMAT: magic, sizes or truncation; LG_ERR_MEMORY. */
LG_API LG_NEW lg_tensor *lg_read_idx(lg_ctx *c, const char *path);

/* Pairs of an input and a target. It belongs to the context until lg_dataset_free. */
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
/* Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), part "train" or "test": x (N, 1, 28, 28) f32 in [0, 1], y (N) i64. Looks
 * in .folder if given, else in $LIBGRAD_DATA and its fashion-mnist/, else in /usr/share/datasets/fashion-mnist. */
typedef struct lg_fashion_mnist_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT;
} lg_fashion_mnist_options;
#define lg_fashion_mnist(...)                                                                                          \
        LG_CALL2(lg_fashion_mnist_with, lg_fashion_mnist_options, lg_fashion_mnist_takes_c_part, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_fashion_mnist_with(lg_ctx *c, const char *part, const lg_fashion_mnist_options *options);
LG_API int64_t lg_dataset_size(const lg_dataset *d);
LG_API void lg_dataset_free(lg_dataset *d);

/* One step's data. The tensors belong to the step's scope. */
typedef struct lg_batch {
        lg_tensor *x, *y;
        int64_t index, count; /* which batch of the epoch, from 0; how many in an epoch */
        lg_loader *loader;
} lg_batch;
typedef struct lg_loader_options {
        LG_OPTIONS_HEAD
        bool shuffle LG_DEFAULT;     /* a new order each epoch, from the seed */
        bool drop_last LG_DEFAULT;   /* leave out a last batch that is not full; LG_ERR_ARGUMENT if that leaves none */
        int workers LG_DEFAULT;      /* threads that make batches ahead; 0: none */
        lg_device device LG_DEFAULT; /* where the batches go; the context's default */
        uint64_t seed LG_DEFAULT;    /* of the order; drawn from the context's random state if 0 */
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
 * may be left by break, goto or return: the next lg_each_batch begins a new epoch all the same. */
#ifdef __cplusplus
#define LG_FIRST_BATCH(l)                                                                                              \
        lg_batch                                                                                                       \
        {                                                                                                              \
                NULL, NULL, 0, 0, (l)                                                                                  \
        }
#else
#define LG_FIRST_BATCH(l)                                                                                              \
        {                                                                                                              \
                .loader = (l)                                                                                          \
        }
#endif
#define lg_each_batch(b, l)                                                                                            \
        for (lg_batch b = LG_FIRST_BATCH(lg_loader_restart(l)); lg_loader_next_with(b.loader, &b, sizeof(lg_batch));)
LG_API int64_t lg_loader_batches(const lg_loader *l); /* in an epoch */
LG_API void lg_loader_free(lg_loader *l);

LG_END_C
#endif
