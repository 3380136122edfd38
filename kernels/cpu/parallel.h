/* parallel.h - loops that are distributed over the threads of a queue. */
#ifndef LG_CPU_PARALLEL_H
#define LG_CPU_PARALLEL_H

#include "../kernels.h"

/* Number of elements for which a second thread starts to pay off. Tests lower it. */
extern int64_t lg__parallel_min;
#define LG_PARALLEL_WORK (64.0 * (double)lg__parallel_min) /* the same threshold in multiply-adds */

/* Body of a loop for items [first, end). `thread` is the number of the calling thread, 0 for the caller of lg_parallel
 * and always below q->threads; it selects scratch memory that no two threads share. */
typedef void lg_range_fn(const void *job, int64_t first, int64_t end, int thread);

/* Calls fn for ranges of `grain` items (the last may be shorter) that together cover [0, n). The ranges depend only on
 * n and grain, their order also on the threads. Uses other threads if there are at least two full ranges. lg_parallel
 * called inside a range runs on the calling thread. Never fails: if threads cannot be created, fewer are used. */
void lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job);

/* Defines the range function `range`, which calls item(job, i) for each item. */
#define LG_EACH(range, item)                                                                                           \
        static void range(const void *job, int64_t first, int64_t end, int thread)                                     \
        {                                                                                                              \
                (void)thread;                                                                                          \
                for (int64_t i = first; i < end; i++)                                                                  \
                        item(job, i);                                                                                  \
        }
/* Defines the range function `range` over chunks of `size` elements: calls chunk(j, first, n) for each. `count`:
 * expression for the number of elements of the job j, whose type is `type`. */
#define LG_EACH_CHUNK(range, chunk, type, size, count)                                                                 \
        static void range(const void *user, int64_t first, int64_t end, int thread)                                    \
        {                                                                                                              \
                const type *j = user;                                                                                  \
                const int64_t all = (count);                                                                           \
                (void)thread;                                                                                          \
                for (int64_t i = first * (size); i < end * (size) && i < all; i += (size))                             \
                        chunk(j, i, all - i < (size) ? all - i : (size));                                              \
        }

/* Returns the number of items of `cost` elements each that are worth another thread; at least 1. */
static inline int64_t lg_grain(int64_t cost)
{
        const int64_t elements = lg__parallel_min / 2;
        return cost < 1 ? elements : cost >= elements ? 1 : (elements + cost - 1) / cost;
}

#endif
