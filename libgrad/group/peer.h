/* peer.h - what exchange.c and together.c share: a process of a group, its messages. Private to libgrad/group/. */
#ifndef LG_PEER_H
#define LG_PEER_H

#include <pthread.h>
#include <stdatomic.h>
#include "group/exchange.h"

#define LG__PIECE ((size_t)1 << 18)  /* bytes of a message of data, at most */
#define LG__WINDOW 4                 /* pieces of each rank on their way at once */
#define LG__STAGING (LG__PIECE * 64) /* bytes of pieces, at most: less in each where there are many ranks */
#define LG__PEER_PARTS 9             /* arrays behind the record */
#define LG__LEAVE (LG__RECEIVE + 1)  /* the last operation */

/* What a process tells another before an operation, or instead of it. */
typedef struct lg__said {
        lg__joint joint;
        bool failed, between; /* between: after its last operation, which the others can finish */
        char why[600];
} lg__said;

typedef struct lg__move {
        lg_transfer x;
        int rank; /* the other */
        int key;  /* that of the record when it began */
} lg__move;

struct lg__peer {
        lg_ctx *ctx;
        size_t bytes; /* of the record and its arrays */
        lg_transport *t;
        int rank, size, tag;
        double seconds;
        uint64_t count;     /* of operations */
        bool under_way;     /* one of them */
        atomic_bool broken; /* and why, which was written before it; a thread of the courier may break the group */
        char why[600];
        bool orphan;     /* the group is that of a parent process */
        bool told;       /* that it waits for others to leave */
        lg__joint joint; /* the operation under way */
        lg__said said, last;
        int *world;
        lg__said *says;               /* what each rank has said last */
        lg_transfer *ears, *farewell; /* of the receive for what it says next; of our last words */
        bool *listens, *heard;        /* that receive is under way; it has been done, and not been looked at */
        lg__move *moves;              /* messages of the operation under way */
        int move_count, key;
        size_t piece;         /* bytes of a message of data, at most: 8 bytes at least */
        const void **parts;   /* of each rank, to be summed */
        double *weights;      /* of each rank; the greatest is about 1 */
        uint64_t bits;        /* of all ranks together */
        bool weighted;        /* not all weights are 1 */
        bool linked;          /* all have said that data may go from device to device */
        pthread_mutex_t lock; /* for these two */
        pthread_cond_t hurry; /* patience has ended */
        bool patient;
        char *staging; /* pieces of each rank */
};

/* Tells the ranks that take part what comes, and hears it from them. All return false if the group is broken. */
bool lg__peer_agrees(lg__peer *p, const lg__joint *j);
/* Begin to send or receive data, p->piece bytes at most, 4 * LG__WINDOW messages with each rank at most; the end of
 * those that began with that p->key, which is 0 or above; and the end of all. */
bool lg__peer_sends(lg__peer *p, int r, const void *from, size_t bytes);
bool lg__peer_receives(lg__peer *p, int r, void *to, size_t bytes);
bool lg__peer_waits_for(lg__peer *p, int key);
bool lg__peer_waits(lg__peer *p);

#endif
