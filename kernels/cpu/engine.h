/* engine.h - what a CPU queue keeps between calls: the threads that help in loops. */
#ifndef LG_CPU_ENGINE_H
#define LG_CPU_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include "parallel.h"

/* Linux puts a thread to sleep on a word of memory; elsewhere it takes a lock and a condition. */
#if defined(__linux__) && !defined(LG_NO_FUTEX)
#define LG_FUTEX 1
#else
#define LG_FUTEX 0
#endif

#define LG_MOST_WORKERS 511
#define LG_CACHE_LINE 64

/* The threads of a queue; parallel.c says how they meet. All zero: none yet. What only the caller of lg_parallel
 * touches is not atomic. */
typedef struct lg_pool {
        unsigned era;     /* the process that the workers belong to */
        int workers;      /* threads that exist */
        int refused;      /* the number of threads of the queue for which the system refused one; 0: it did not */
        atomic_bool busy; /* a region runs */
        atomic_bool stop; /* workers end */
        char apart0[LG_CACHE_LINE];
        /* The region: written before it opens, read by those who have entered it; beside what they watched. */
        lg_range_fn *fn;
        const void *job;
        int64_t n, grain, ranges;
        atomic_uint epoch;      /* counts regions: what workers wait for */
        atomic_int asleep;      /* workers that do not watch it any more */
        atomic_int caller_core; /* where the last region was opened */
        char apart1[LG_CACHE_LINE];
        _Alignas(16) atomic_uint_fast64_t taken; /* ranges taken from the front, and from the back */
        atomic_uint inside;                      /* who may enter the region and who has: of the same cache line */
        char apart2[LG_CACHE_LINE];
#if !LG_FUTEX
        pthread_mutex_t lock;
        pthread_cond_t changed;
#endif
        pthread_t id[LG_MOST_WORKERS];
} lg_pool;

/* Ends the workers and waits for them. In a child of the process that made them, forgets them. */
void lg_pool_close(lg_pool *p);

/* Where memo of a CPU queue points; zeroed at first. A queue without one runs all loops on the caller. */
typedef struct lg_engine {
        lg_pool pool;
} lg_engine;

#endif
