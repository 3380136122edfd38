/* messages.h - messages between the ranks of a group over a transport, and the collectives that they make up, on memory
 * of the host. Private to libgrad/group/.
 *
 * Before each collective every rank describes it to all others, so that a difference, or a rank that has failed, is an
 * error on all of them before any data is sent. Sums are added in the order of ranks, so all ranks get the same bits,
 * whatever the sizes of messages. Every wait has a time limit. After a failure the communicator is broken: every
 * collective fails at once with the message of the first failure.
 */
#ifndef LG_MESSAGES_H
#define LG_MESSAGES_H

#include <signal.h>
#include <stdatomic.h>
#include "group/group.h"
#include "../../transport/transport.h"

#define LG__PIECE ((size_t)1 << 18)  /* bytes of a message of data, at most */
#define LG__WINDOW 4                 /* pieces of each rank that are under way at once */
#define LG__STAGING (LG__PIECE * 64) /* bytes of the receive buffer, at most: pieces are smaller for many ranks */

/* The message that a rank sends to another before a collective, or instead of it. */
typedef struct lg__rank_message {
        lg__collective collective;
        bool failed, between; /* between: after a collective that the others can still finish */
        char why[600];
} lg__rank_message;

/* The state that a communicator keeps for each rank. */
typedef struct lg__inbox {
        int world;                /* the rank in the transport */
        lg__rank_message message; /* the last one received */
        lg_transfer receive;      /* of the next one */
        bool posted, arrived;     /* that receive is under way; it is done, and not handled yet */
        lg_transfer notice;       /* of this rank's failure */
} lg__inbox;

/* A message of data that is under way. */
typedef struct lg__piece {
        lg_transfer transfer;
        int rank; /* the other */
        int key;  /* that of the communicator when it began */
} lg__piece;

/* A communicator: one rank's side of the messages of a group. */
typedef struct lg__comm {
        lg_ctx *ctx;
        size_t bytes; /* of this record and its arrays */
        lg_transport *t;
        int rank, size, tag; /* descriptions have this tag, data the next one */
        double seconds;      /* the time limit */
        uint64_t count;      /* of collectives */
        bool active;         /* one of them has begun and not ended */
        atomic_bool broken;  /* set after `why`, by any thread */
        char why[600];
        bool orphan;                  /* made by the parent of this process */
        bool told;                    /* a message has said that others have not left */
        lg__collective collective;    /* the last one */
        lg__rank_message own, notice; /* this rank's last description; its failure */
        lg__inbox *inbox;             /* one for each rank */
        lg__piece *pieces;
        int piece_count, key;
        size_t piece_bytes; /* of a message of data, at most; at least 8 */
        const void **parts; /* of each rank, to be reduced */
        double *weights;    /* of each rank; the greatest is about 1 */
        char *staging;      /* the receive buffer: LG__WINDOW pieces of each rank */
        /* The last collective: not all weights are 1; all ranks can use a device link; the bits of all ranks. */
        bool weighted, linked;
        uint64_t bits;
        atomic_bool background; /* no caller waits: it leaves the processor to threads that compute */
} lg__comm;

/* Makes the communicator of the processes whose ranks in the transport are world[0 .. size), as number `rank` of them.
 * Messages have the tags first_tag and first_tag + 1. NULL and LG_ERR_MEMORY: no memory. */
lg__comm *lg__comm_new(lg_ctx *c, lg_transport *t, int rank, int size, const int *world, int first_tag, double seconds);
/* Reports to another process that this one could not make its communicator. to: its rank in the transport. */
void lg__comm_refuse(lg_transport *t, int rank, int to, int first_tag, const char *why);
/* Leaves, as all other ranks must do, waits for them, and frees m. Returns false if the communicator is broken. */
bool lg__comm_free(lg__comm *m);
/* Breaks the communicator in a child of fork(), without a message to others. */
void lg__comm_orphan(lg__comm *m);
/* Breaks the communicator and reports that to all other ranks, in place of the next collective. */
void lg__comm_fail(lg__comm *m, const char *why);

/* Compares a collective with what the other ranks that take part are about to do. Returns false if m is broken. */
bool lg__comm_agree(lg__comm *m, const lg__collective *what);
/* Exchanges the data of the collective that was agreed on. `in` and `out` have the elements of the shape, but
 * LG__ALL_GATHER writes `size` times as many, and LG__REDUCE_SCATTER the size-th part. They may be the same memory
 * where both have as many elements. LG__BROADCAST reads `in` of the root only; LG__SEND has no out, LG__RECEIVE no in,
 * LG__BARRIER neither. Floats are summed in f32, or f64 if they are f64; integers wrap around; bool is true where any
 * is. NaN is the maximum. A mean is weighted if any rank has a weight; values of weight 0 are not read. */
bool lg__comm_exchange(lg__comm *m, const void *in, void *out);

/* Returns this rank's weight over the sum of all weights of the last collective; NAN if that is 0. */
double lg__comm_share(const lg__comm *m);

/* Begin to send or to receive m->piece_bytes at most, 4 * LG__WINDOW messages with each rank at most; wait for the
 * messages that began with that m->key, or with -1 for all. Return false if m is broken. */
bool lg__piece_send(lg__comm *m, int rank, const void *from, size_t bytes);
bool lg__piece_receive(lg__comm *m, int rank, void *to, size_t bytes);
bool lg__pieces_wait(lg__comm *m, int key);

/* Keep SIGPIPE, which TCP raises for a message to a process that has died, from ending the program: around all calls of
 * the transport. The first returns the thread's signal mask for the second, which drops a SIGPIPE that came meanwhile.
 */
sigset_t lg__sigpipe_guard(void);
void lg__sigpipe_restore(const sigset_t *was);

#endif
