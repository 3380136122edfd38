/* bench.h - what the benchmarks of the CPU's kernels share: options, a queue of one thread, medians of turns. */
#ifndef LG_TESTS_BENCH_H
#define LG_TESTS_BENCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../kernels/cpu/isa.h"

enum { BENCH_PIECES = 64, BENCH_ROUNDS = 5, BENCH_MOST = 5 /* contenders */, BENCH_FLAGS = 3 };

typedef struct bench {
        lg_queue queue;
        const lg_kernels *kernels;
        const char *isa, *only;  /* isa: NULL is the best one */
        double seconds;          /* of each contender of a case */
        bool given[BENCH_FLAGS]; /* the benchmark's own options */
        void *scratch[BENCH_PIECES];
        size_t bytes[BENCH_PIECES];
        int pieces;
        double logs, lowest; /* of the ratios so far */
        int count;
} bench;

/* Takes [--isa avx512|avx2|portable] [--seconds S] [--only TEXT] and the benchmark's own flags, up to NULL; starts the
 * program anew if OpenMP's libraries would take more than one thread. 0, or what main() returns. */
int bench_open(bench *b, int count, char **args, const char *const *flags);
void bench_close(bench *b);
/* Before each call of a kernel: its scratch is free again, and stays where it is, as in a training. */
void bench_reuse(bench *b);

typedef void bench_fn(void *a_case, int who);
/* CPU seconds of a call of each of `count` contenders, those of `here`: medians of rounds in which they take turns. */
void bench_turns(const bench *b, bench_fn *run, void *a_case, int count, const bool *here, double *ret_seconds);

void bench_add(bench *b, double ratio);
/* Prints the geometric mean of the ratios and the lowest. */
void bench_print(const bench *b);

/* A function of the first of `files` that this machine has, or NULL. */
void *bench_find(const char *const *files, const char *function);

#endif
