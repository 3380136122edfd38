/* transport.h - how the processes of a job exchange bytes: the table of a module, one for each MPI.
 *
 * A module is a shared library with the function lg_transport_module. libgrad.so links no MPI: the ABIs of Open MPI and
 * MPICH differ, so each has a module of its own, mpi.c compiled against it, and the one is loaded whose launcher has
 * started the process. All calls for an open transport come from one thread at a time. Nothing here prints, exits or
 * aborts; a function that fails returns false, and `why` says what happened. MPI itself may end the process while it is
 * initialised.
 */
#ifndef LG_TRANSPORT_H
#define LG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LG_TRANSPORT_ABI 4

typedef struct lg_transport_api lg_transport_api;

/* One end of the connections between all processes of the job. Whoever opens it provides `api->bytes` zeroed bytes,
 * which begin with this. */
typedef struct lg_transport {
        const lg_transport_api *api;
        int rank, size;  /* this process, and how many there are */
        int most_tag;    /* tags are 0 to most_tag */
        bool any_thread; /* may be used by another thread than the one that opened it, whatever others do */
        bool recovers;   /* the launcher lets a process live on where another dies */
        char host[256];  /* the name of this machine */
        char why[512];   /* what the last call that failed has to say */
        /* Set by whoever opens, with what it needs; may be NULL. Called if the process exits while t is open, unless
         * the program has initialised MPI: it may close t. */
        void (*exits)(struct lg_transport *t);
        void *user;
} lg_transport;

/* A message on its way. */
typedef struct lg_transfer {
        uint64_t request; /* the module's own */
} lg_transfer;

typedef enum lg_progress { LG_TRANSFER_FAILED = -1, LG_TRANSFER_UNDER_WAY = 0, LG_TRANSFER_DONE = 1 } lg_progress;

struct lg_transport_api {
        uint32_t abi;     /* LG_TRANSPORT_ABI */
        const char *name; /* of the library, "Open MPI" */
        size_t bytes;     /* of an lg_transport of this module */

        /* Joins the processes that the launcher has started, all of which must call this within so many seconds of each
         * other; messages of one open are never received by another. Sets all of t. An MPI that the program has
         * initialised is used as it is. One that is initialised here is finalised when the process ends, unless an open
         * ended broken. */
        bool (*open)(lg_transport *t, double seconds);
        /* Leaves. `broken`: messages may be under way, so that others may not be waited for. */
        void (*close)(lg_transport *t, bool broken);
        /* The library's version, a line of text. */
        void (*version)(char *ret, size_t size);

        /* Begin to send or to receive up to INT_MAX bytes. The memory is the transport's until the transfer is done or
         * canceled. Messages from one rank with the same tag arrive in the order in which they were sent. A
         * transfer that could not begin is over: it may be tested and canceled like one that is done. */
        bool (*send)(lg_transport *t, int to, int tag, const void *p, size_t bytes, lg_transfer *ret);
        bool (*receive)(lg_transport *t, int from, int tag, void *p, size_t bytes, lg_transfer *ret);
        /* Whether a transfer is done, and of a message that was received how many bytes it has: never more than there
         * is room for, which the sender must know. Does not wait; a transfer that is done or has failed is over.
         * ret_bytes may be NULL. A rank that has died is not reported: its messages stay under way. */
        lg_progress (*test)(lg_transport *t, lg_transfer *x, size_t *ret_bytes);
        /* Gives a transfer up. A message that is being sent may still be read from its memory. */
        void (*cancel)(lg_transport *t, lg_transfer *x);
};

/* The entry of a module. */
typedef const lg_transport_api *lg_transport_module_fn(void);

#endif
