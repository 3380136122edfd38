/* round_trip.c - the time of a word from one core to another and back. */
#include "round_trip.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { TRIPS = 2000, ROUNDS = 5 };
#define LONG 0.05 /* seconds of a round after which there is no other: the cores are busy */

/* The word goes from 0 to 2 TRIPS; one thread answers even values, the other odd ones. */
typedef struct rally {
        _Alignas(64) atomic_int word;
        int processor; /* of the answering thread; -1: any */
} rally;

static double seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool stay_on(int processor)
{
        cpu_set_t one;
        CPU_ZERO(&one);
        if (processor >= 0)
                CPU_SET((size_t)processor, &one);
        return processor < 0 || sched_setaffinity(0, sizeof one, &one) == 0;
}

static void strike(rally *r, int first)
{
        for (int i = first; i < 2 * TRIPS; i += 2) {
                for (int polls = 1; atomic_load_explicit(&r->word, memory_order_acquire) != i; polls++) {
                        if (polls % 1024 == 0) /* both threads may be on one core */
                                sched_yield();
                }
                atomic_store_explicit(&r->word, i + 1, memory_order_release);
        }
}

static void *answer(void *p)
{
        rally *r = p;
        stay_on(r->processor);
        strike(r, 1);
        return NULL;
}

double round_trip(int from, int to)
{
        double least = 0;
        cpu_set_t before;
        if (sched_getaffinity(0, sizeof before, &before) != 0 || !stay_on(from))
                return 0;
        for (int round = 0; round < ROUNDS && least * TRIPS < LONG; round++) {
                rally r = {.processor = to};
                pthread_t other;
                if (pthread_create(&other, NULL, answer, &r) != 0)
                        break;
                const double start = seconds();
                strike(&r, 0);
                const double took = (seconds() - start) / TRIPS;
                pthread_join(other, NULL);
                least = round == 0 || took < least ? took : least;
        }
        sched_setaffinity(0, sizeof before, &before);
        return least;
}

void print_round_trips(void)
{
        cpu_set_t mine;
        int first = -1, from = -1, last = -1; /* this process's first processor; a line's first and last */
        double least = 0, most = 0;
        if (sched_getaffinity(0, sizeof mine, &mine) != 0)
                return;
        for (int i = 0; i <= CPU_SETSIZE; i++) {
                const bool usable = i < CPU_SETSIZE && CPU_ISSET(i, &mine);
                const double took = usable && first >= 0 ? round_trip(first, i) : 0;
                if (from >= 0 && (i == CPU_SETSIZE || (took > 0 && (took > 1.5 * least || took < most / 1.5)))) {
                        printf("from processor %d to %d", first, from);
                        if (last > from)
                                printf(" to %d", last);
                        printf(" and back: %.2f us", least * 1e6);
                        if (most > 1.1 * least)
                                printf(" to %.2f us", most * 1e6);
                        putchar('\n');
                        from = -1;
                }
                if (took > 0) {
                        least = from < 0 || took < least ? took : least;
                        most = from < 0 || took > most ? took : most;
                        from = from < 0 ? i : from;
                        last = i;
                }
                first = usable && first < 0 ? i : first;
        }
}
