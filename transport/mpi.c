/* mpi.c - the transport module for MPI 3 or later, compiled once against Open MPI and once against MPICH. */
#include <mpi.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "transport.h"

typedef struct mpi {
        lg_transport base;
        struct mpi *next; /* next one in the list open_ones */
        MPI_Comm all;     /* copy of MPI_COMM_WORLD, which separates libgrad's messages from the program's */
} mpi;

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits a transfer");

/* was_broken: a transport failed or stayed open, so MPI_Finalize, which could wait for ever, is skipped. is_halfway: an
 * open timed out; later ones fail, because ranks could pair their call with the unfinished one. */
static bool was_broken, is_halfway;
static pid_t owner;                                         /* process that uses MPI; forked children must not */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* lets one thread at a time open a transport */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER; /* protects open_ones */
static mpi *open_ones;

static bool done(lg_transport *t, const char *call, int code)
{
        char text[MPI_MAX_ERROR_STRING] = "";
        int n = 0;
        if (code == MPI_SUCCESS)
                return true;
        if (MPI_Error_string(code, text, &n) != MPI_SUCCESS)
                snprintf(text, sizeof text, "code %d", code);
        snprintf(t->why, sizeof t->why, "%s: %.400s", call, text);
        return false;
}
#define DONE(t, call, ...) done(t, #call, call(__VA_ARGS__))

static bool take_out(const mpi *m)
{
        pthread_mutex_lock(&listing);
        mpi **at = &open_ones;
        while (*at && *at != m)
                at = &(*at)->next;
        const bool found = *at;
        if (found)
                *at = m->next;
        pthread_mutex_unlock(&listing);
        return found;
}

static void finalize(void)
{
        int over = 0;
        if (owner != getpid())
                return;
        MPI_Finalized(&over);
        for (mpi *m = open_ones; !over && m; m = open_ones) {
                if (m->base.exits)
                        m->base.exits(&m->base);
                was_broken = take_out(m) || was_broken; /* callback may have closed m */
        }
        if (!over && !was_broken)
                MPI_Finalize();
}

/* Turns off the single-copy mechanism of Open MPI 4, by which the kernel copies each message directly between processes
 * of one machine (process_vm_readv). Copies through shared memory are faster, as the kernel pins every page of a direct
 * copy, and work in containers, which often forbid direct copies. Settings of the user (environment, mpirun --mca) are
 * kept. */
static void prefer_shared_memory(void)
{
#ifdef OPEN_MPI
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
        setenv("OMPI_MCA_btl_vader_max_send_size", "131072", 0); /* bytes per step of a copy */
#endif
}

static bool initialise_mpi(lg_transport *t)
{
        int level;
        prefer_shared_memory();
        return DONE(t, MPI_Init_thread, NULL, NULL, MPI_THREAD_MULTIPLE, &level) && atexit(finalize) == 0 &&
               DONE(t, MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN) && /* MPICH's MPI_Test needs both */
               DONE(t, MPI_Comm_set_errhandler, MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

/* Initialises MPI if necessary, checks that this thread may call MPI, and sets t->any_thread. */
static bool initialise(lg_transport *t)
{
        int ready = 0, over = 0, level = MPI_THREAD_SINGLE, is_main = 0;
        if (owner && owner != getpid()) {
                snprintf(t->why, sizeof t->why, "this process is a child of one that uses MPI");
                return false;
        }
        owner = getpid();
        if (!DONE(t, MPI_Initialized, &ready) || !DONE(t, MPI_Finalized, &over))
                return false;
        if (over) {
                snprintf(t->why, sizeof t->why, "MPI_Finalize was called before");
                return false;
        }
        if (!ready && !initialise_mpi(t))
                return false;
        if (!DONE(t, MPI_Query_thread, &level) || !DONE(t, MPI_Is_thread_main, &is_main))
                return false;
        t->any_thread = level == MPI_THREAD_MULTIPLE;
        if (level >= MPI_THREAD_SERIALIZED || is_main)
                return true;
        snprintf(t->why, sizeof t->why,
                 "the program has initialised MPI for its main thread alone; ask MPI_Init_thread for "
                 "MPI_THREAD_SERIALIZED");
        return false;
}

static int most_tag(MPI_Comm comm)
{
        int *most = NULL, found = 0;
        MPI_Comm_get_attr(comm, MPI_TAG_UB, &most, &found);
        return found && most ? *most : 32767; /* the minimum that the MPI standard guarantees */
}

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* Copies MPI_COMM_WORLD to m->all, a collective that all processes must join within `seconds`. */
static bool copy_world(mpi *m, double seconds)
{
        static MPI_Comm copy; /* static: MPI may write to it after a timeout */
        lg_transport *t = &m->base;
        MPI_Request r;
        int over = 0;
        const double start = now();
        if (!is_halfway && !DONE(t, MPI_Comm_idup, MPI_COMM_WORLD, &copy, &r))
                return false;
        while (!is_halfway && !over) {
                if (!DONE(t, MPI_Test, &r, &over, MPI_STATUS_IGNORE))
                        return false;
                is_halfway = !over && now() - start > seconds;
                if (!over && !is_halfway)
                        nanosleep(&(struct timespec){0, 50000}, NULL);
        }
        if (is_halfway) {
                snprintf(t->why, sizeof t->why, "not all processes have opened a group within the time limit");
                was_broken = true;
        }
        m->all = copy;
        return over;
}

/* Returns whether mpirun of Open MPI runs with --enable-recovery; other launchers do not report such a mode. */
static bool recovers(void)
{
        const char *on = getenv("OMPI_MCA_orte_enable_recovery");
        return on && strcmp(on, "0") != 0;
}

static bool open_copy(lg_transport *t, double seconds)
{
        mpi *m = (mpi *)t;
        char host[MPI_MAX_PROCESSOR_NAME] = "";
        int n = 0;
        if (!initialise(t) || !copy_world(m, seconds))
                return false;
        if (!DONE(t, MPI_Comm_set_errhandler, m->all, MPI_ERRORS_RETURN) || !DONE(t, MPI_Comm_rank, m->all, &t->rank) ||
            !DONE(t, MPI_Comm_size, m->all, &t->size) || !DONE(t, MPI_Get_processor_name, host, &n)) {
                MPI_Comm_free(&m->all);
                return false;
        }
        t->most_tag = most_tag(m->all);
        t->recovers = recovers();
        snprintf(t->host, sizeof t->host, "%s", host);
        return true;
}

static bool open_mpi(lg_transport *t, double seconds)
{
        pthread_mutex_lock(&opening);
        const bool ok = open_copy(t, seconds);
        if (ok) {
                pthread_mutex_lock(&listing);
                ((mpi *)t)->next = open_ones;
                open_ones = (mpi *)t;
                pthread_mutex_unlock(&listing);
        }
        pthread_mutex_unlock(&opening);
        return ok;
}

static void close_mpi(lg_transport *t, bool broken)
{
        int over = 0;
        was_broken = was_broken || broken;
        take_out((mpi *)t);
        MPI_Finalized(&over);
        if (!broken && !over)
                MPI_Comm_free(&((mpi *)t)->all);
}

static void version(char *ret, size_t size)
{
        char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        int n = 0;
        MPI_Get_library_version(text, &n);
        text[strcspn(text, "\n")] = 0; /* MPICH adds its build options on further lines */
        for (char *c = text; *c; c++)
                *c = *c == '\t' ? ' ' : *c;
        snprintf(ret, size, "%s", text);
}

static MPI_Request request_of(const lg_transfer *x)
{
        MPI_Request r;
        memcpy(&r, &x->request, sizeof r);
        return r;
}

static lg_transfer transfer_of(MPI_Request r)
{
        lg_transfer x = {0};
        memcpy(&x.request, &r, sizeof r);
        return x;
}

static bool fits(lg_transport *t, size_t bytes)
{
        if (bytes > INT_MAX)
                snprintf(t->why, sizeof t->why, "a message of %zu bytes; at most %d are possible", bytes, INT_MAX);
        return bytes <= INT_MAX;
}

static bool send_bytes(lg_transport *t, int to, int tag, const void *p, size_t bytes, lg_transfer *ret)
{
        MPI_Request r = MPI_REQUEST_NULL;
        const bool ok = fits(t, bytes) && DONE(t, MPI_Isend, p, (int)bytes, MPI_BYTE, to, tag, ((mpi *)t)->all, &r);
        *ret = transfer_of(r);
        return ok;
}

static bool receive_bytes(lg_transport *t, int from, int tag, void *p, size_t bytes, lg_transfer *ret)
{
        MPI_Request r = MPI_REQUEST_NULL;
        const bool ok = fits(t, bytes) && DONE(t, MPI_Irecv, p, (int)bytes, MPI_BYTE, from, tag, ((mpi *)t)->all, &r);
        *ret = transfer_of(r);
        return ok;
}

static lg_progress test_transfer(lg_transport *t, lg_transfer *x, size_t *ret_bytes)
{
        MPI_Request r = request_of(x);
        MPI_Status status;
        int over = 0, count = 0;
        const bool ok = DONE(t, MPI_Test, &r, &over, &status);
        *x = transfer_of(ok ? r : MPI_REQUEST_NULL);
        if (!ok)
                return LG_TRANSFER_FAILED;
        if (over && ret_bytes) {
                MPI_Get_count(&status, MPI_BYTE, &count);
                *ret_bytes = count > 0 ? (size_t)count : 0; /* MPI defines no count for a sent message */
        }
        return over ? LG_TRANSFER_DONE : LG_TRANSFER_UNDER_WAY;
}

static void cancel(lg_transport *t, lg_transfer *x)
{
        MPI_Request r = request_of(x);
        (void)t;
        if (r != MPI_REQUEST_NULL && MPI_Cancel(&r) == MPI_SUCCESS)
                MPI_Request_free(&r);
        *x = transfer_of(MPI_REQUEST_NULL);
}

static const lg_transport_api api = {
        .abi = LG_TRANSPORT_ABI,
        .name = LG_MPI_NAME,
        .bytes = sizeof(mpi),
        .open = open_mpi,
        .close = close_mpi,
        .version = version,
        .send = send_bytes,
        .receive = receive_bytes,
        .test = test_transfer,
        .cancel = cancel,
};

__attribute__((visibility("default"))) lg_transport_module_fn lg_transport_module;
const lg_transport_api *lg_transport_module(void)
{
        return &api;
}
