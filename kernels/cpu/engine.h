/* engine.h - state that a CPU queue keeps between calls: its worker threads. */
#ifndef LG_CPU_ENGINE_H
#define LG_CPU_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include "parallel.h"

/* On Linux, threads sleep on a word of memory (futex); elsewhere on a mutex and a condition variable. */
#if defined(__linux__) && !defined(LG_NO_FUTEX)
#define LG_FUTEX 1
#else
#define LG_FUTEX 0
#endif

#define LG_MOST_WORKERS 511
#define LG_CACHE_LINE 64

/* Worker threads of a queue; parallel.c describes the protocol. All zero: no workers yet. Members without atomic type
 * are accessed by the caller of lg_parallel only, except those of the region. */
typedef struct lg_pool {
        unsigned era;     /* identifies the process that created the workers */
        int workers;      /* number of worker threads that exist */
        int refused;      /* q->threads for which the system last refused to create a worker; 0: none */
        atomic_bool busy; /* a region (a loop on several threads) is running */
        atomic_bool stop; /* workers must exit when they wake up */
        char apart0[LG_CACHE_LINE];
        /* The region: written before it opens, read by workers in it. In the cache line that idle workers poll. */
        lg_range_fn *fn;
        const void *job;
        int64_t n, grain, ranges;
        atomic_uint epoch;      /* number of regions so far; idle workers wait for a change */
        atomic_int asleep;      /* workers that sleep instead of polling `epoch` */
        atomic_int caller_core; /* core on which the last region was opened */
        char apart1[LG_CACHE_LINE];
        _Alignas(16) atomic_uint_fast64_t taken; /* ranges taken: from the front (low half), the back (high half) */
        atomic_uint inside;                      /* free places, workers in the region; in the cache line of `taken` */
        char apart2[LG_CACHE_LINE];
#if !LG_FUTEX
        pthread_mutex_t lock;
        pthread_cond_t changed;
#endif
        pthread_t id[LG_MOST_WORKERS];
} lg_pool;

/* Stops the workers and joins them. In a child of fork(), which has no workers, only clears *p. */
void lg_pool_close(lg_pool *p);

/* Struct to which a CPU queue's memo points; zeroed at first. Without it, loops run on the calling thread. */
typedef struct lg_engine {
        lg_pool pool;
} lg_engine;

#endif
