/* rank.h - what the test programs that mpirun starts have of their rank, and how they end: with "held" if all did. */
#ifndef LG_TEST_RANK_H
#define LG_TEST_RANK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "grad.h"

static lg_ctx *c;
static lg_group *g;
static int failures, rank, size;

#define CHECK(holds)                                                                                                   \
        ((holds) ? (void)0                                                                                             \
                 : (void)(failures++, fprintf(stderr, "rank %d of %d, line %d: %s: %s\n", rank, size, __LINE__,        \
                                              #holds, lg_error(c) ? lg_error(c) : "")))

/* Opens c, and g with that time limit on the device that LG_TEST_DEVICE names. */
static inline bool join(double seconds)
{
        const char *device = getenv("LG_TEST_DEVICE");
        c = lg_open(.threads = 1, .seed = 3);
        if (device)
                lg_set_default_device(c, lg_parse_device(c, device));
        g = lg_group_open(c, .timeout = seconds);
        rank = lg_group_rank(g);
        size = lg_group_size(g);
        if (g)
                lg_set_default_device(c, lg_group_device(g));
        return g != NULL;
}

/* A process says nothing until another one wakes it. Before MPI makes threads, all of them keep the signal back. */
static inline sigset_t wake_up(void)
{
        sigset_t s;
        sigemptyset(&s);
        sigaddset(&s, SIGUSR1);
        return s;
}

static inline void keep_wake_up(void)
{
        const sigset_t s = wake_up();
        pthread_sigmask(SIG_BLOCK, &s, NULL);
}

static inline void await_wake_up(void)
{
        const sigset_t s = wake_up();
        int got;
        sigwait(&s, &got);
}

/* The process of a rank, which all ask for. */
static inline pid_t process_of(int of)
{
        return (pid_t)lg_item_i64(lg_broadcast(lg_full(c, LG_SHAPE_0D, getpid(), .dtype = LG_I64), g, of));
}

/* LeakSanitizer's, where the program was built with it. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* The program's status. Leaks are asked for while MPI is there: its own remains come later. seconds: launchers may end
 * all with the first process of a broken group that ends; by then the others have said what they have to say. */
static inline int verdict(unsigned seconds)
{
        failures += __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
        if (!failures)
                printf("held\n");
        fflush(stdout);
        sleep(seconds);
        return failures > 0;
}

#endif
