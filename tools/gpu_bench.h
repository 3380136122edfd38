/* gpu_bench.h - declarations shared by the parts of gpu_bench: a clock, the work to measure, figures as lines of JSON.
 */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <grad.h>

enum { MOST_PARAMETERS = 256 };

/* Discards a result that a benchmark does not need. */
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
        lg_tensor *x, *y, *z, *w, *v, *mean, *var;
        lg_list parameters;
        lg_tensor *room[MOST_PARAMETERS]; /* storage of the list `parameters` */
        lg_module *net;
        lg_optimizer *opt;
        lg_scaler *scaler;
        double bytes, flops; /* bytes and operations per call; 0: not counted */
} work;

typedef struct bench {
        lg_ctx *c;
        lg_device device;
        bool small, tf32;
        bool quick;                    /* fewer and shorter repeats of each figure */
        double end;                    /* time of now() at which measuring stops */
        int figures, failed, left_out; /* figures printed, of them failed, and left out so far */
} bench;

/* Returns the seconds of a monotonic clock. */
double now(void);
/* Returns the microseconds of one call of run: the median of several repeats, each of many calls and one wait; or -1
 * after an error. */
double time_calls(bench *b, work *w, void (*run)(work *w));
/* Ends the line of a figure with `, "key": value`, or with the context's error, which is then cleared. */
void end_figure(bench *b, const char *key, double value);
/* Ends the line of a figure that has failed, with the reason. */
void end_failed(bench *b, const char *why);
/* Returns whether the time is over, and then counts a figure as left out. */
bool time_is_over(bench *b);

void measure_kernels(bench *b);
void measure_transfers(bench *b);
void measure_errors(bench *b);
/* Returns the number of kernel launches and computing library calls of CUDA devices so far, or -1 if it is unknown. */
int64_t count_launches(void);

#endif
