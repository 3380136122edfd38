/* parallel.h - training one module on several ranks of a group, each with its share of the data.
 *
 *     lg_group *g = lg_group_open(c);
 *     lg_module_to(net, lg_group_device(g));
 *     lg_data_parallel(net, g);
 *
 * The loop behind it is that of a single process: forward, lg_backward(), lg_step().
 *
 * All ranks begin with the parameters and buffers of rank 0. While lg_backward() runs, gradients of the parameters are
 * averaged over the ranks; after it, all ranks hold the same bits, so that optimisers, clipping, loss scaling and
 * averages do the same everywhere. If the loss is a mean over a rank's batch and all batches have as many samples, one
 * step is that of a single process with all samples. Buffers, such as running statistics, become those of rank 0.
 *
 * Each rank has random numbers of its own: with the same seed, lg_dropout() and lg_randn() give other values on each
 * rank, from lg_group_open() on. lg_permutation() and data loaders do not.
 *
 * All ranks must call lg_backward() equally often. Each backward that reaches a parameter of the module averages
 * gradients. Ranks may reach different parameters: one without a gradient counts as 0 on that rank, and has none if
 * that is so on all ranks. Earlier gradients are averaged, too. lg_grad() leaves gradients as they are.
 */
#ifndef LG_PARALLEL_PUBLIC_H
#define LG_PARALLEL_PUBLIC_H

#include "grad/group.h"
#include "grad/nn.h"

LG_BEGIN

typedef struct lg_data_parallel_options {
        LG_OPTIONS_HEAD
        int64_t bucket_bytes LG_DEFAULT; /* gradients travel in messages of about this size; default 25 MiB */
        bool keep_buffers LG_DEFAULT;    /* each rank keeps its own buffers; default false */
} lg_data_parallel_options;
/* Makes a module data-parallel over the ranks of g, all of which must call this function with a module of the same
 * parameters and buffers, and gives all ranks the values of rank 0. With a group of one it changes nothing. It lasts
 * until the module is freed; copies of the module are not data-parallel. Gradients of parameters with one dtype and
 * device go together; parameters that are frozen or moved later are taken out or followed, on all ranks alike. Fails
 * with LG_ERR_COMM if parameters differ between ranks, and with LG_ERR_STATE if the module, one around it or one in it
 * is data-parallel already. lg_backward() then fails with LG_ERR_COMM as functions of group.h do, and with LG_ERR_STATE
 * if the group was freed, and for .create_graph.
 * Example: lg_data_parallel(net, g, .bucket_bytes = 4 << 20) */
#define lg_data_parallel(...)                                                                                          \
        LG_CALL2(lg_data_parallel_with, lg_data_parallel_options, lg_data_parallel_takes_net_g, V, V, __VA_ARGS__)
LG_API bool lg_data_parallel_with(lg_module *m, lg_group *g, const lg_data_parallel_options *options);

/* Leaves gradients as they are for the statement or block that follows: backwards in it accumulate on each rank, and
 * the next backward behind it averages all that has accumulated. Restores the previous mode at the end of the block. Do
 * not leave the block by break, goto or return; call lg_set_sync_mode() twice instead.
 * Example: lg_no_sync(net) { lg_backward(lg_mean(lg_forward(net, x))); } */
#define lg_no_sync(m)                                                                                                  \
        for (bool LG_LOCAL(lg_sync_was_) = lg_set_sync_mode((m), false), LG_LOCAL(lg_sync_go_) = true;                 \
             LG_LOCAL(lg_sync_go_); LG_LOCAL(lg_sync_go_) = false, lg_set_sync_mode((m), LG_LOCAL(lg_sync_was_)))

/* Turns the averaging of gradients, on at first, on or off and returns the previous mode. lg_sync_mode() only
 * returns it. Fails with LG_ERR_STATE if m is not data-parallel or in a backward; works while an error is set. */
LG_API bool lg_set_sync_mode(lg_module *m, bool on);
LG_API bool lg_sync_mode(const lg_module *m);

/* Sets how much the gradients of this rank count in the mean, from the next backward on; at least 0, and 1 at first.
 * With the number of samples in the rank's batch, a mean over unequal batches is that over all samples. A weight of 0
 * ignores this rank; if all are 0, gradients are NaN. Fails with LG_ERR_STATE if m is not data-parallel, or if
 * lg_sync_batch_norm() was called for a module in it: losses of all ranks meet in these derivatives, so multiply the
 * loss instead, by the weight over the mean of all weights. Recorded steps need the weight 1 on all ranks. */
LG_API bool lg_set_data_parallel_weight(lg_module *m, double weight);

/* Lets the batch norms in m, in training mode, normalise by the statistics of the batches of all ranks of g instead of
 * their own, as torch.nn.SyncBatchNorm does; batches may have different sizes. All ranks must run them equally often,
 * also in lg_module_print_memory(). Copies made by lg_module_clone() do the same. A group of one changes nothing. Fails
 * with LG_ERR_COMM if the group is broken, and so does a forward, with LG_ERR_STATE if the group was freed. */
LG_API bool lg_sync_batch_norm(lg_module *m, lg_group *g);

LG_END_C
#endif
