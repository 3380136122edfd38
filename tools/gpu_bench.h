/* gpu_bench.h - what the parts of gpu_bench share: a clock, what is measured, and figures as lines of JSON. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <grad.h>

enum { MOST_PARAMETERS = 256 };

/* Takes a result that nobody looks at. */
static inline void drop(const void *result)
{
        (void)result;
}

/* One figure to be measured: its tensors, and the bytes and operations of one call. */
typedef struct work {
        lg_ctx *c;
        lg_device device;
        lg_dtype dtype;
        int64_t size[4];
        lg_tensor *x, *y, *z, *w, *mean, *var;
        lg_list parameters;
        lg_tensor *room[MOST_PARAMETERS]; /* of the list */
        lg_module *net;
        lg_optimizer *opt;
        lg_scaler *scaler;
        double bytes, flops; /* of a call; 0: not counted */
} work;

typedef struct bench {
        lg_ctx *c;
        lg_device device;
        bool small, tf32;
        bool quick;                    /* fewer repeats */
        double end;                    /* by the clock */
        int figures, failed, left_out; /* so far */
} bench;

/* Seconds of a clock that only goes forward. */
double now(void);
/* Microseconds of one call of run: the median of several repeats of many calls and one wait. -1 on an error. */
double time_calls(bench *b, work *w, void (*run)(work *w));
/* Ends the line of a figure: with `, "key": value`, or the context's error instead, which is then forgotten. */
void end_figure(bench *b, const char *key, double value);
/* Ends the line of a figure that is not as it must be. */
void end_failed(bench *b, const char *why);
/* Whether the time is over; then what was due is counted as left out. */
bool time_is_over(bench *b);

void measure_kernels(bench *b);
void measure_transfers(bench *b);
void measure_errors(bench *b);
/* Kernels launched and libraries called by CUDA devices so far; -1: not known of this device. */
int64_t count_launches(void);

#endif
