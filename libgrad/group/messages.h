/* messages.h - messages between the ranks of a group over a transport, and collectives on host memory made of such
 * messages. Private to libgrad/group/.
 *
 * Before each collective every rank describes it to all others, so that differing descriptions, or a rank that has
 * failed, are an error on all of them before any data is sent. Sums are added in the order of ranks, so all ranks get
 * the same bits, whatever the sizes of messages. Every wait has a time limit. After a failure the communicator is
 * broken: every collective fails at once with the message of the first failure.
 */
#ifndef LG_MESSAGES_H
#define LG_MESSAGES_H

#include <signal.h>
#include <stdatomic.h>
#include "group/group.h"
#include "../../transport/transport.h"

#define LG__PIECE ((size_t)1 << 18)  /* greatest size of a data message, in bytes */
#define LG__WINDOW 4                 /* pieces per rank that are in transit at once */
#define LG__STAGING (LG__PIECE * 64) /* greatest size of the receive buffer, shared by all ranks */

/* The message by which a rank describes its next collective to another rank, or reports its failure instead. */
typedef struct lg__rank_message {
        lg__collective collective;
        bool failed, between; /* between: failed between collectives, so others can finish the last collective */
        char why[600];
} lg__rank_message;

/* The state that a communicator keeps for each rank. */
typedef struct lg__inbox {
        int world;                /* the other rank's number in the transport */
        lg__rank_message message; /* the last message received from the rank */
        lg_transfer receive;      /* the receive of the next message */
        bool posted, arrived;     /* posted: the receive is under way; arrived: the message is not handled yet */
        lg_transfer notice;       /* the message to that rank that this process failed */
} lg__inbox;

/* A data message in transit. */
typedef struct lg__piece {
        lg_transfer transfer;
        int rank; /* the rank that the message is sent to or received from */
        int key;  /* the communicator's `key` when the transfer began */
} lg__piece;

/* A communicator: one rank's side of the messages of a group. */
typedef struct lg__comm {
        lg_ctx *ctx;
        size_t bytes; /* of this record and its arrays */
        lg_transport *t;
        int rank, size, tag; /* tag: of descriptions; data messages have the next tag */
        double seconds;      /* time limit of every wait */
        uint64_t count;      /* number of collectives so far */
        bool active;         /* a collective has begun and not ended */
        atomic_bool broken;  /* set by any thread, after `why` */
        char why[600];
        bool orphan;                  /* this process is a fork() child of the process that made the communicator */
        bool reported;                /* the message that other ranks have not left was printed */
        lg__collective collective;    /* the last collective of this rank */
        lg__rank_message own, notice; /* messages sent: this rank's last description; its failure */
        lg__inbox *inbox;             /* array, by rank */
        lg__piece *pieces;
        int piece_count, key;
        size_t piece_bytes; /* greatest size of a data message; at least 8 */
        const void **parts; /* addresses of each rank's part, to be reduced */
        double *weights;    /* by rank; if not all are 1, scaled so that the greatest is in [1, 2) */
        char *staging;      /* the receive buffer: LG__WINDOW pieces of each rank */
        /* Results of the last collective: not all weights are 1; all can use a device link; OR of all ranks' bits. */
        bool weighted, linked;
        uint64_t bits;
        atomic_bool background; /* no caller waits: polling sleeps, for threads that compute */
} lg__comm;

/* Makes the communicator of `size` processes, whose ranks in the transport are world[0 .. size); this one is number
 * `rank` of them. Messages have the tags first_tag and first_tag + 1. Returns NULL with LG_ERR_MEMORY. */
lg__comm *lg__comm_new(lg_ctx *c, lg_transport *t, int rank, int size, const int *world, int first_tag, double seconds);
/* Reports to another process that this one could not make its communicator. to: its rank in the transport. */
void lg__comm_refuse(lg_transport *t, int rank, int to, int first_tag, const char *why);
/* Leaves the group and waits for all other ranks to do so; frees m. Returns false if the communicator is broken. */
bool lg__comm_free(lg__comm *m);
/* Breaks the communicator in a child of fork(), without a message to others. */
void lg__comm_orphan(lg__comm *m);
/* Breaks the communicator and reports why to all other ranks, in place of the next collective. */
void lg__comm_fail(lg__comm *m, const char *why);

/* Compares this rank's next collective with that of the other ranks that take part. Returns false if m is broken. */
bool lg__comm_agree(lg__comm *m, const lg__collective *what);
/* Exchanges the data of the collective that was agreed on. `in` and `out` have the elements of the shape, but
 * LG__ALL_GATHER writes `size` times as many, and LG__REDUCE_SCATTER the size-th part. `in` and `out` may be the same
 * memory if both have as many elements. LG__BROADCAST reads `in` of the root only; LG__SEND has no out, LG__RECEIVE no
 * in, LG__BARRIER neither. Floats are summed in f32, or f64 if they are f64; integers wrap around; bool is true where
 * any rank has true. NaN is the maximum. A mean is weighted if any rank has a weight; values of weight 0 count as 0. */
bool lg__comm_exchange(lg__comm *m, const void *in, void *out);

/* Returns this rank's weight over the sum of all weights of the last collective; NAN if that is 0. */
double lg__comm_share(const lg__comm *m);

/* Start to send or to receive up to m->piece_bytes bytes, with at most 4 * LG__WINDOW messages per rank in transit;
 * wait for the messages that were started with m->key == key (-1: for all). Return false if m is broken. */
bool lg__piece_send(lg__comm *m, int rank, const void *from, size_t bytes);
bool lg__piece_receive(lg__comm *m, int rank, void *to, size_t bytes);
bool lg__pieces_wait(lg__comm *m, int key);

/* Enclose all calls of the transport, so that SIGPIPE, which TCP raises for a message to a dead process, does not end
 * the program. The first blocks SIGPIPE and returns the signal mask for the second, which discards a pending one. */
sigset_t lg__sigpipe_guard(void);
void lg__sigpipe_restore(const sigset_t *was);

#endif
