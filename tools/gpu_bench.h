/* gpu_bench.h - what the parts of gpu_bench share: a clock, and figures as lines of JSON. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <grad.h>

/* What a row works on: its tensors and what one call moves and computes. */
typedef struct work {
        lg_ctx *c;
        lg_device device;
        lg_dtype dtype;
        int64_t size[4];
        lg_tensor *x, *y, *z, *w;
        lg_module *net;
        lg_optimizer *opt;
        double bytes, flops; /* of a call; 0: not counted */
} work;

/* A thing to measure. Only run is timed. Sizes: on a device, and where a simulation runs it. */
typedef struct row {
        const char *name;
        lg_dtype dtype;
        int64_t size[4], small[4];
        void (*make)(work *w);
        void (*run)(work *w);
        bool float32_product; /* TF32 changes it */
} row;

typedef struct bench {
        lg_ctx *c;
        lg_device device;
        bool small, tf32;
        double end; /* by the clock */
} bench;

extern const row kernel_rows[];
extern const int kernel_row_count;

/* Seconds of a clock that only goes forward. */
double now(void);
/* Microseconds of one call of run: the median of several repeats of many calls and one wait. -1 on an error. */
double time_calls(bench *b, work *w, void (*run)(work *w));

#endif
