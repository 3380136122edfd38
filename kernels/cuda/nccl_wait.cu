/* nccl_wait.cu - waits that end within a time limit whatever other processes do.
 *
 * NCCL does not report a process that has died: kernels of its peers wait for ever, and so would a host that waits for
 * their stream. So the host polls an event until the time limit and then gives the link up: it first sets the device's
 * error word, so that optimisers queued after the operation leave parameters as they are, and then ends NCCL's kernels.
 */
#include "nccl.h"
#if LG_NCCL
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define SPIN_SECONDS 2e-3     /* a wait spins (yielding the processor) for this time, then sleeps between checks */
#define NAP_NANOSECONDS 50000 /* length of one sleep of the host thread in a wait */

double lg_nccl_now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void lg_nccl_pause(double start)
{
        const struct timespec nap = {0, NAP_NANOSECONDS};
        if (lg_nccl_now() - start < SPIN_SECONDS)
                sched_yield();
        else
                nanosleep(&nap, NULL);
}

/* Returns whether event e has happened or CUDA reports an error, which a later wait for the stream finds. */
static bool is_over(cudaEvent_t e)
{
        const cudaError_t s = cudaEventQuery(e);
        if (s != cudaSuccess)
                cudaGetLastError();
        return s != cudaErrorNotReady;
}

bool lg_nccl_under_way(lg_link *l)
{
        if (!l->comm || l->ended == l->mark)
                return false;
        if (is_over(l->marks[l->mark % LG_CUDA_MARKS]))
                l->ended = l->mark;
        return l->ended != l->mark;
}

/* Sets the device's error word before the abort: work queued after the operation runs when NCCL's kernels end. */
void lg_nccl_give_up(lg_queue *q, lg_link *l, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        vsnprintf(l->why, sizeof l->why, format, args);
        va_end(args);
        if (lg_nccl_under_way(l) && (cudaMemcpyAsync(lg_cuda(q)->error, l->lost, sizeof *l->lost,
                                                     cudaMemcpyHostToDevice, l->aside) != cudaSuccess ||
                                     cudaStreamSynchronize(l->aside) != cudaSuccess))
                cudaGetLastError();
        lg_nccl_find()->cancel(l->comm);
        l->comm = NULL;
        l->ended = l->mark;
}

bool lg_nccl_lost(lg_queue *q, const lg_link *l)
{
        return !l->comm && !lg_queue_fail(q, LG_LOST, "%s", l->why);
}

ncclResult_t lg_nccl_finish(const lg_link *l, ncclResult_t s)
{
        const double start = lg_nccl_now();
        while (s == ncclInProgress && lg_nccl_now() - start < l->seconds) {
                const ncclResult_t asked = lg_nccl_find()->state(l->comm, &s);
                s = asked == ncclSuccess ? s : asked;
                lg_nccl_pause(start);
        }
        return s;
}

bool lg_nccl_done(lg_queue *q, lg_link *l, const char *call, ncclResult_t s)
{
        s = lg_nccl_finish(l, s);
        if (s == ncclSuccess)
                return true;
        if (s == ncclInProgress)
                lg_nccl_give_up(q, l, "NCCL: no end after %g s of %s", l->seconds, call);
        else
                lg_nccl_give_up(q, l, "%s: %s", call, lg_nccl_find()->words(s));
        return !lg_nccl_lost(q, l);
}

/* ---- waits of the host for the device ---- */

bool lg_nccl_goes_on(lg_queue *q, lg_link *l, double start)
{
        ncclResult_t s = ncclSuccess;
        const ncclResult_t asked = lg_nccl_find()->state(l->comm, &s);
        s = asked == ncclSuccess ? s : asked;
        if (s != ncclSuccess && s != ncclInProgress)
                lg_nccl_give_up(q, l, "%s: %s", l->doing, lg_nccl_find()->words(s));
        else if (lg_nccl_now() - start >= l->seconds)
                lg_nccl_give_up(q, l, "NCCL: no end after %g s of %s", l->seconds, l->doing);
        return !lg_nccl_lost(q, l);
}

lg_link *lg_nccl_links(lg_queue *q)
{
        return (lg_link *)lg_cuda(q)->links;
}

static bool any_is_under_way(lg_queue *q)
{
        bool any = false;
        for (lg_link *l = lg_nccl_links(q); l; l = l->next)
                any = lg_nccl_under_way(l) || any;
        return any;
}

/* Waits until e has happened or no operation of a link is under way. Returns false if a link was given up. */
static bool poll(lg_queue *q, cudaEvent_t e)
{
        const double start = lg_nccl_now();
        while (!is_over(e)) {
                bool any = false, good = true;
                for (lg_link *l = lg_nccl_links(q); l; l = l->next)
                        if (lg_nccl_under_way(l)) {
                                any = true;
                                good = lg_nccl_goes_on(q, l, start) && good;
                        }
                if (!any || !good)
                        return good;
                lg_nccl_pause(start);
        }
        return true;
}

bool lg_cuda_links_before(lg_queue *q, cudaEvent_t e)
{
        return !lg_nccl_links(q) || !any_is_under_way(q) || poll(q, e);
}

bool lg_cuda_links_before(lg_queue *q, cudaStream_t s)
{
        if (!lg_nccl_links(q) || !any_is_under_way(q))
                return true;
        cudaEvent_t here = lg_nccl_links(q)->before;
        return lg_cuda_good(q, "cudaEventRecord", cudaEventRecord(here, s)) && poll(q, here);
}

bool lg_cuda_links_before(lg_queue *q)
{
        bool good = true;
        for (lg_link *l = lg_nccl_links(q); l; l = l->next)
                if (lg_nccl_under_way(l))
                        good = poll(q, l->marks[l->mark % LG_CUDA_MARKS]) && good;
        return good;
}

/* Only the latest link's table is in use: what it does not hold is waited for once more. */
bool lg_cuda_wait_for_links(lg_queue *q, const void *what)
{
        const void **used = lg_nccl_links(q)->used;
        const uint64_t hash = (uint64_t)(uintptr_t)what * 0x9e3779b97f4a7c15u >> 32;
        for (uint64_t i = 0; i < 16; i++) {
                const void **at = &used[(hash + i) % LG_NCCL_USED];
                if (*at == what)
                        return true;
                if (!*at) {
                        *at = what;
                        break;
                }
        }
        return lg_cuda_links_before(q);
}
#else

bool lg_cuda_wait_for_links(lg_queue *, const void *)
{
        return true;
}
#endif
