/* lg_info.h - declarations shared by the parts of lg-info. */
#ifndef LG_INFO_H
#define LG_INFO_H

#include <grad.h>
#include <stdio.h>
#include <time.h>

static inline double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Prints, on rank 0, the processes that a launcher has started and how fast they exchange tensors; prints the context's
 * error on every rank. */
void print_group(lg_ctx *c);

#endif
