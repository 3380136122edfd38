/* engine.h - state that a CPU queue keeps between calls: its worker threads, tables of kernels. */
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

/* Ranges of one thread's share that were taken: the low 16 bits count those from the front, which the thread itself
 * takes, the next 16 those from the back, which others take; the high half is the region's epoch. The word of an
 * earlier epoch means that nothing was taken yet, so nobody resets it. */
typedef struct lg_share {
        _Alignas(LG_CACHE_LINE) atomic_uint_fast64_t taken;
        atomic_int_fast64_t delay; /* the thread's own, of the last region that was measured; 0: none */
} lg_share;

/* Worker threads of a queue; parallel.c describes the protocol. All zero: no workers yet. Members without atomic type
 * are accessed by the caller of lg_parallel only, except those of the region. */
typedef struct lg_pool {
        unsigned era;     /* identifies the process that created the workers */
        int workers;      /* number of worker threads that exist */
        int refused;      /* q->threads for which the system last refused to create a worker; 0: none */
        atomic_bool busy; /* a region (a loop on several threads) is running */
        atomic_bool stop; /* workers must exit when they wake up */
        int64_t measured; /* number of measurements */
        int unmeasured;   /* loops since the last one */
        /* The region: written before it opens. Workers read `shape` at any time, the others after they have taken a
         * range, which keeps the region open. In the cache line that idle workers poll. */
        _Alignas(LG_CACHE_LINE) lg_range_fn *fn;
        const void *job;
        int64_t n, grain;
        atomic_uint_fast64_t shape; /* low 31 bits: ranges; the next 10: threads - 1; the rest: bits of the epoch */
        atomic_uint epoch;          /* number of regions so far; idle workers wait for a change */
        atomic_int caller_core;     /* core on which the last region was opened */
        atomic_int_fast64_t opened; /* when the region was opened, if it is measured, or 0 */
        /* Ranges that workers have finished, and in the highest bit, whether the caller sleeps until one reports. */
        _Alignas(LG_CACHE_LINE) atomic_uint finished;
        int64_t delay[LG_MOST_WORKERS + 1]; /* nanoseconds from opening a region to the first range of each worker:
                                               about the least of the last measurements; 0: unknown */
        _Alignas(LG_CACHE_LINE) atomic_uint_fast64_t asleep[(LG_MOST_WORKERS + 63) / 64]; /* a bit for each worker */
        lg_share share[LG_MOST_WORKERS + 1];                                              /* of the caller, and so on */
        pthread_t id[LG_MOST_WORKERS];
        struct lg_worker {
                struct lg_pool *pool;
                int thread; /* its number, from 1 on */
        } worker[LG_MOST_WORKERS];
#if !LG_FUTEX
        pthread_mutex_t lock;
        pthread_cond_t changed;
#endif
} lg_pool;

/* Stops the workers and joins them. In a child of fork(), which has no workers, only clears *p. */
void lg_pool_close(lg_pool *p);

/* Struct to which a CPU queue's memo points; zeroed at first. Without it, loops run on the calling thread. */
#define LG_KEPT_TABLES 16
typedef struct lg_engine {
        lg_pool pool;
        void *tables[LG_KEPT_TABLES]; /* of the latest lengths of Fourier transforms (fft.h), from aligned_alloc */
        unsigned next_table;          /* counts the tables that were kept */
} lg_engine;

#endif
