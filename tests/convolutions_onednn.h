/* convolutions_onednn.h - one convolution by oneDNN, where this machine has it, for convolutions_bench.c. */
#ifndef LG_TESTS_CONVOLUTIONS_ONEDNN_H
#define LG_TESTS_CONVOLUTIONS_ONEDNN_H

#include <stdbool.h>
#include <stddef.h>
#include "../kernels/kernels.h"

typedef struct bench_onednn bench_onednn;
enum { BENCH_ONEDNN_ALGORITHMS = 2 };

/* How many elements a convolution of that kind writes. */
size_t bench_convolution_count(const lg_conv_args *a, lg_conv_kind kind);

/* f32, on the memory of the arguments. Way 0: directly, channels last as libgrad, the weights in the layout that it
 * prefers; 1: by Winograd's algorithm, all in the layouts that it prefers. Reorders are a part of the run. NULL: no
 * oneDNN here, or it has no such algorithm for this. */
bench_onednn *bench_onednn_open(const lg_conv_args *a, int algorithm);
void bench_onednn_run(bench_onednn *x);
void bench_onednn_close(bench_onednn *x); /* NULL: nothing happens */

#endif
