/* exchange.h - the processes of a group, and what they do together on memory of the host. Private to libgrad/.
 *
 * Before each operation every process tells all others what it is about to do, so that a difference, or a process that
 * has failed, is an error on all of them before any data is on its way. Sums are made in the order of the ranks: they
 * are the same bits on all, whatever the sizes of messages. Whoever waits gives up after the time limit. After a
 * failure the group is broken: every operation fails at once, with the words of the first failure.
 */
#ifndef LG_EXCHANGE_H
#define LG_EXCHANGE_H

#include <signal.h>
#include "core/core.h"
#include "../../transport/transport.h"

typedef enum lg__together {
        LG__BARRIER,
        LG__ALL_REDUCE,
        LG__BROADCAST,
        LG__ALL_GATHER,
        LG__REDUCE_SCATTER,
        LG__SEND,
        LG__RECEIVE
} lg__together;

typedef enum lg__rank_reduction { LG__RANKS_SUM, LG__RANKS_MEAN, LG__RANKS_MAX } lg__rank_reduction;

/* An operation of all processes, or of two of them. Sizes are those of the tensor that a process gives; of the one that
 * receives, what it expects. */
#define LG__JOINT_NAME 64
typedef struct lg__joint {
        lg__together what;
        lg_dtype dtype;
        lg__rank_reduction reduction;
        int root; /* of LG__BROADCAST; of LG__SEND and LG__RECEIVE the other process */
        lg_shape shape;
        bool recorded;             /* of LG__SEND and LG__RECEIVE: the gradient goes the other way later */
        char name[LG__JOINT_NAME]; /* of what it is about, if that has a name; the same on all */
        /* What may differ: data may go from device to device; a mean is weighted; bits that all get to know together.
         */
        bool linked;
        bool weighted;
        double weight;
        uint64_t bits;
} lg__joint;

/* One of the processes of a group. */
typedef struct lg__peer lg__peer;

/* The processes whose ranks in the transport are world[0 .. size), of which this is number `rank`; messages have the
 * tags first_tag and first_tag + 1. seconds: the time limit. NULL and LG_ERR_MEMORY: no memory. */
lg__peer *lg__peer_new(lg_ctx *c, lg_transport *t, int rank, int size, const int *world, int first_tag, double seconds);
/* A process that could not make an lg__peer tells one of the others, whose rank in the transport is `to`. */
void lg__peer_refuse(lg_transport *t, int rank, int to, int first_tag, const char *why);
/* Leaves the group, as all others must then do, waits for them, and frees p; NULL: nothing. False: the group is broken,
 * now or before. */
bool lg__peer_free(lg__peer *p);

/* In a child of fork(): the group is broken here, and others hear nothing of it. */
void lg__peer_orphan(lg__peer *p);

/* Why the group is broken; NULL: it is whole. */
const char *lg__peer_why(const lg__peer *p);
/* Tells all others that this process has failed, in place of its next operation, and breaks the group. */
void lg__peer_fail(lg__peer *p, const char *why);

/* Around all that calls the transport: a message by TCP to a process that has died may raise SIGPIPE in this thread,
 * which must not end the program. end: gives back what begin returned; a SIGPIPE that came in between is gone. */
typedef struct lg__calm {
        sigset_t was;
} lg__calm;
lg__calm lg__calm_begin(void);
void lg__calm_end(const lg__calm *k);

/* Figures of the last operation: this process's weight over the sum of all (NAN if that is 0), whether any weight is
 * not 1, the bits of all, and whether all have said that data may go from device to device. */
double lg__peer_share(const lg__peer *p);
bool lg__peer_weighted(const lg__peer *p);
uint64_t lg__peer_bits(const lg__peer *p);
bool lg__peer_linked(const lg__peer *p);
/* Whoever waits leaves the processor to others: for a thread beside one that computes. */
void lg__peer_be_patient(lg__peer *p, bool on);

/* Runs an operation; false: the group is broken. `in` and `out` have the elements of the shape, but LG__ALL_GATHER
 * gives `size` times as many to out, and LG__REDUCE_SCATTER the size-th part. in may be out where both have as many
 * elements. LG__BROADCAST reads `in` of the root alone; LG__SEND has no out, LG__RECEIVE no in, LG__BARRIER neither.
 * Floats are summed in f32, or in f64 if they are f64; integers wrap around; bool is true where any is. NaN is the
 * greatest. A mean is weighted where any process says so; what has the weight 0 is not looked at. */
bool lg__peer_run(lg__peer *p, const lg__joint *j, const void *in, void *out);
/* Its two halves: all say what they are about to do; then, unless data goes from device to device, it is exchanged. */
bool lg__peer_agree(lg__peer *p, const lg__joint *j);
bool lg__peer_move(lg__peer *p, const void *in, void *out);

/* to = the reduction, element by element, of from[0] to from[n - 1], in this order; to may be one of them. weights: of
 * a weighted mean, else NULL. */
void lg__reduce_ranks(lg_dtype dtype, lg__rank_reduction reduction, int n, const void *const *from,
                      const double *weights, int64_t count, void *to);

#endif
