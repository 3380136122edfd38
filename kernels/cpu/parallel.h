/* parallel.h - loops over the threads of a queue. */
#ifndef LG_CPU_PARALLEL_H
#define LG_CPU_PARALLEL_H

#include "../kernels.h"

/* From so many elements on, a second thread brings more than it costs. Tests make it small. */
extern int64_t lg__parallel_min;
#define LG_PARALLEL_WORK (64.0 * (double)lg__parallel_min) /* the same in multiply-adds */

/* A part of a loop: items first to end - 1. `thread` is the number of the thread that runs it, 0 for the caller, always
 * below q->threads: for scratch memory that no two threads share. */
typedef void lg_range_fn(const void *job, int64_t first, int64_t end, int thread);

/* Calls fn for ranges of `grain` items (the last may be shorter) that together are [0, n). Which ranges there are
 * depends on n and grain alone, not on the number of threads; their order does. Other threads help from two grains on.
 * Within a range, lg_parallel runs on the calling thread. Never fails: it does without threads that cannot be made. */
void lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job);

/* Makes `range` a range function, which calls item(job, i) for each of its items. */
#define LG_EACH(range, item)                                                                                           \
        static void range(const void *job, int64_t first, int64_t end, int thread)                                     \
        {                                                                                                              \
                (void)thread;                                                                                          \
                for (int64_t i = first; i < end; i++)                                                                  \
                        item(job, i);                                                                                  \
        }
/* The same of chunks of `size` of the `count` elements of a job j: calls chunk(j, first, n). */
#define LG_EACH_CHUNK(range, chunk, type, size, count)                                                                 \
        static void range(const void *user, int64_t first, int64_t end, int thread)                                    \
        {                                                                                                              \
                const type *j = user;                                                                                  \
                const int64_t all = (count);                                                                           \
                (void)thread;                                                                                          \
                for (int64_t i = first * (size); i < end * (size) && i < all; i += (size))                             \
                        chunk(j, i, all - i < (size) ? all - i : (size));                                              \
        }

/* So many items of `cost` elements each as are worth another thread; at least 1. */
static inline int64_t lg_grain(int64_t cost)
{
        const int64_t elements = lg__parallel_min / 2;
        return cost < 1 ? elements : cost >= elements ? 1 : (elements + cost - 1) / cost;
}

#endif
