/* group.h - groups of processes, and tensors that go from one process to others.
 *
 * A launcher (mpirun, srun) starts a program as several processes, the ranks 0, 1, ... of a group. Each has a context,
 * one device and its share of the data; collective functions join what they compute:
 *
 *     lg_group *g = lg_group_open(c);
 *     lg_tensor *sum = lg_all_reduce(x, g);
 *     printf("rank %d of %d: %g\n", lg_group_rank(g), lg_group_size(g), lg_item(sum));
 *
 * A program that no launcher has started is a group of one, and runs as if it had no group. Messages go by Open MPI or
 * MPICH, by modules of their own that are loaded when the first group is opened: the one whose launcher has started the
 * process, or the one whose file $LIBGRAD_MPI names. An empty LIBGRAD_MPI makes each process a group of one.
 *
 * All processes of a group must call the same collective functions in the same order, with tensors of the same dtype
 * and shape; lg_backward() calls those of the derivatives. Before data is exchanged, processes compare what they are
 * about to do: a difference is LG_ERR_COMM on all of them, and the message says which rank does what.
 *
 * If a call fails on one rank, that rank's next call of a function of this header, or lg_close(), reports it to the
 * others, which fail with LG_ERR_COMM and the message of the first failure. If a rank clears its error and then leaves
 * the group while others wait for it, they get the message as well. A process that exits without lg_close() leaves its
 * groups at its exit, unless the program has initialised MPI. A process that does not answer within the group's time
 * limit counts as failed. After LG_ERR_COMM a group is broken: lg_clear_error() lets the program read and save, but
 * every collective function of this group fails again.
 *
 * Sums are added in the order of ranks, and each element is summed once, so all ranks get the same bits: f16, bf16 and
 * f32 in f32, f64 in f64, integers exactly and modulo their range; bool is true where any is. NAN is the maximum.
 *
 * Tensors on CUDA devices are exchanged by NCCL 2.14 or later, if all ranks have it, from GPU to GPU and without
 * waiting for it: then all ranks get the same bits, too, but sums are added in NCCL's order, those of f16 and bf16 may
 * be rounded in between, and a maximum may leave NAN out. The call that waits for the result, such as lg_item(), fails
 * with LG_ERR_COMM if another process does not take part within the time limit; parameters are then as they were before
 * the optimiser's step. Without NCCL, or if two ranks use the same GPU, tensors go through the memory of the host, and
 * a message says why (see lg_on_message()). lg_device_info() returns NCCL's version.
 */
#ifndef LG_GROUP_H
#define LG_GROUP_H

#include "grad/tensor.h"

LG_BEGIN

/* ---- groups ---- */

/* Several processes, as one of them sees them. */
typedef struct lg_group lg_group;

typedef struct lg_group_open_options {
        LG_OPTIONS_HEAD
        double timeout LG_DEFAULT;   /* in seconds: how long to wait for another process; default 300 */
        lg_device device LG_DEFAULT; /* default: the default device, for cuda:0 that with the local rank's number */
} lg_group_open_options;
/* Joins all processes that the launcher has started, which must all call this function. Without a launcher the group
 * has this process alone, and no MPI is loaded. An MPI that the program has initialised is used; otherwise it is
 * initialised, and finalised when the process exits, unless the group is broken. If MPI itself cannot start, for
 * example because it must use a network that is not there, Open MPI 4 and MPICH 4 print why and end the process: MPI
 * has no way to ask for an error before it is initialised. If several threads of a process open or split groups, they
 * must do so one after the other, in the same order on all ranks. Fails with LG_ERR_COMM also if the module cannot be
 * loaded, if MPI fails, or if MPI finds one process of several, because the launcher belongs to another MPI.
 * Example: lg_group_open(c, .timeout = 60) */
#define lg_group_open(...) LG_CALL1(lg_group_open_with, lg_group_open_options, lg_group_open_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_group *lg_group_open_with(lg_ctx *c, const lg_group_open_options *options);

/* Splits a group: ranks that give the same color form a new group, in the order of their ranks. All ranks of g must
 * call this function. A rank whose color is negative is in none of them, and gets NULL without an error. */
LG_API LG_NEW lg_group *lg_group_split(lg_group *g, int color);

/* Leaves a group and frees it; in a child of fork(), where calls that use the group fail with LG_ERR_COMM, frees it
 * only. All its ranks do so, or close their contexts; the first wait for the last, however long that takes, with a
 * message after the time limit (lg_on_message()). If the group is broken, or if the launcher lets processes live on
 * where another dies, the wait ends at the time limit. Fails with LG_ERR_STATE in a function given to lg_set_trace().
 */
LG_API void lg_group_close(lg_group *g);

/* Returns the rank of this process, from 0, the number of processes of the group, or how many lower ranks run on the
 * same host. NULL is a group of one. */
LG_API int lg_group_rank(const lg_group *g);
LG_API int lg_group_size(const lg_group *g);
LG_API int lg_group_local_rank(const lg_group *g);

/* Returns the name of the host of a rank, valid until lg_group_close(), or NULL if there is no such rank. */
LG_API const char *lg_group_host(const lg_group *g, int rank);

/* Returns the name and version of the MPI by which messages are sent, such as "Open MPI v4.1.4, ...", valid until
 * lg_group_close(); "none" if no launcher has started this process, or if g is NULL. */
LG_API const char *lg_group_transport(const lg_group *g);

/* Returns the device of this rank, for lg_module_to() and the .device of loaders. */
LG_API lg_device lg_group_device(const lg_group *g);

/* Waits until all ranks of the group have called it. */
LG_API bool lg_barrier(lg_group *g);

/* ---- collective functions ----
 *
 * Functions with a result are ops: their derivatives are collective, too, and of any order. The loss that is
 * differentiated is the sum of what all ranks call lg_backward() with. Where a gradient is needed on one rank, it must
 * be needed on all. Functions that end in an underscore do so in place to x, which must not be in the recorded graph,
 * and also fail as lg_fill_() does. All fail with LG_ERR_STATE if a backward finds that the group was freed.
 */

/* How the tensors of all ranks become one. */
typedef enum lg_reduce_op {
        LG_REDUCE_OP_SUM = 0,  /* of the elements of all ranks; of bool, whether any is true */
        LG_REDUCE_OP_MEAN = 1, /* the same divided by the number of ranks; of float dtypes only */
        LG_REDUCE_OP_MAX = 2   /* the greatest; ranks that have it share its gradient equally */
} lg_reduce_op;

typedef struct lg_all_reduce_options {
        LG_OPTIONS_HEAD
        lg_reduce_op op LG_DEFAULT; /* default LG_REDUCE_OP_SUM */
} lg_all_reduce_options;
/* Returns the sum, mean (of float dtypes) or maximum of x over all ranks, element by element.
 * Example: lg_all_reduce(x, g, .op = LG_REDUCE_OP_MEAN) */
#define lg_all_reduce(...)                                                                                             \
        LG_CALL2(lg_all_reduce_with, lg_all_reduce_options, lg_all_reduce_takes_x_g, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_all_reduce_with(lg_tensor *x, lg_group *g, const lg_all_reduce_options *options);
LG_API bool lg_all_reduce_(lg_tensor *x, lg_group *g, lg_reduce_op op);

/* Returns the x of rank `root` on all ranks; the others give a tensor of the same dtype and shape. */
LG_API LG_NEW lg_tensor *lg_broadcast(lg_tensor *x, lg_group *g, int root);
LG_API bool lg_broadcast_(lg_tensor *x, lg_group *g, int root);

/* Concatenates the tensors of all ranks, (n, ...) each, along dimension 0 in rank order: (size n, ...). */
LG_API LG_NEW lg_tensor *lg_all_gather(lg_tensor *x, lg_group *g);

/* Returns part r on rank r, (n, ...), of the sum, mean or maximum of x, (size n, ...), over all ranks.
 * Example: lg_reduce_scatter(x, g) */
#define lg_reduce_scatter(...)                                                                                         \
        LG_CALL2(lg_reduce_scatter_with, lg_all_reduce_options, lg_reduce_scatter_takes_x_g, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_reduce_scatter_with(lg_tensor *x, lg_group *g, const lg_all_reduce_options *options);

/* Sends x to another rank, which must call lg_receive(); the two wait for each other. Returns a 0-d tensor with the
 * value 0: add it to the loss, so that lg_backward() receives the gradient of x. */
LG_API LG_NEW lg_tensor *lg_send(lg_tensor *x, lg_group *g, int to);

/* Receives a tensor from another rank, of the dtype, shape and device of `like`, whose values do not matter. If `like`
 * requires grad, as it must if and only if x of lg_send() does, so does the result, and its gradient is sent back. */
LG_API LG_NEW lg_tensor *lg_receive(lg_tensor *like, lg_group *g, int from);

LG_END_C
#endif
