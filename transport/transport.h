/* transport.h - the interface of transport modules, which move bytes between the processes of a job by MPI.
 *
 * A module is a shared library that exports lg_transport_module(). libgrad.so itself does not link MPI, because the
 * ABIs of Open MPI and MPICH differ: mpi.c is compiled once against each, and libgrad loads the module of the MPI whose
 * launcher started the process. All calls on an open transport come from one thread at a time. No function prints,
 * exits or aborts: on failure it returns false and describes the cause in `why`. MPI itself may end the process during
 * its initialisation.
 */
#ifndef LG_TRANSPORT_H
#define LG_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LG_TRANSPORT_ABI 4

typedef struct lg_transport_api lg_transport_api;

/* One end of the connections between all processes of the job. The caller of open() provides `api->bytes` zeroed bytes
 * that begin with this struct. */
typedef struct lg_transport {
        const lg_transport_api *api;
        int rank, size;  /* rank of this process, number of processes */
        int most_tag;    /* largest tag that messages may have; the smallest is 0 */
        bool any_thread; /* a thread other than the opening one may use t, even while others call MPI */
        bool recovers;   /* the launcher keeps other processes running when one dies */
        char host[256];  /* name of this machine */
        char why[512];   /* message of the last call that failed */
        /* Optional callback and its data, set by the code that opens t. Called at exit() if t is still open and open()
         * initialised MPI (not the program); may close t. */
        void (*exits)(struct lg_transport *t);
        void *user;
} lg_transport;

/* A send or receive in progress. */
typedef struct lg_transfer {
        uint64_t request; /* handle of the transfer, private to the module */
} lg_transfer;

typedef enum lg_progress { LG_TRANSFER_FAILED = -1, LG_TRANSFER_UNDER_WAY = 0, LG_TRANSFER_DONE = 1 } lg_progress;

struct lg_transport_api {
        uint32_t abi;     /* always LG_TRANSPORT_ABI */
        const char *name; /* name of the MPI library, such as "Open MPI" */
        size_t bytes;     /* size of the module's struct that begins with an lg_transport */

        /* Connects this process with all others that the launcher started; all must call open() within `seconds` of
         * each other. Messages of one transport are never received by another. Sets rank to host of t. An MPI that the
         * program has initialised is used as it is. Otherwise open() initialises MPI, which is finalised when the
         * process exits, unless a transport was left open or closed as broken. */
        bool (*open)(lg_transport *t, double seconds);
        /* Closes t. If broken, messages may be incomplete and close() does not wait for other ranks. */
        void (*close)(lg_transport *t, bool broken);
        /* Writes the version of the MPI library to ret, as one line of text. */
        void (*version)(char *ret, size_t size);

        /* Start to send or receive up to INT_MAX bytes at p, which must stay allocated until the transfer is done or
         * cancelled. Messages from one rank with the same tag arrive in the order in which they were sent. After a
         * failed call *ret counts as finished: test() and cancel() accept it. */
        bool (*send)(lg_transport *t, int to, int tag, const void *p, size_t bytes, lg_transfer *ret);
        bool (*receive)(lg_transport *t, int from, int tag, void *p, size_t bytes, lg_transfer *ret);
        /* Returns whether transfer x is done, without waiting, and for a receive sets *ret_bytes (may be NULL) to the
         * size of the message. A sender must never send more than the receiver has room for. After DONE or FAILED, x is
         * finished. The death of a rank is not reported: transfers with that rank stay under way. */
        lg_progress (*test)(lg_transport *t, lg_transfer *x, size_t *ret_bytes);
        /* Gives up transfer x. The memory of a message that is being sent may still be read. */
        void (*cancel)(lg_transport *t, lg_transfer *x);
};

/* The entry point of a module. */
typedef const lg_transport_api *lg_transport_module_fn(void);

#endif
