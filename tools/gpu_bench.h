/* gpu_bench.h - what the parts of gpu_bench share: a clock, rows to measure, and figures as lines of JSON. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <grad.h>

enum { MOST_PARAMETERS = 256 };

/* Takes a result that nobody looks at. */
static inline void drop(const void *result)
{
        (void)result;
}

/* What a row works on: its tensors and what one call moves and computes. */
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

enum { F32 = 1 << LG_F32, F64 = 1 << LG_F64, F16 = 1 << LG_F16, BF16 = 1 << LG_BF16, FLOATS = F32 | F16 | BF16 };

/* A thing to measure, once for each dtype. Only run is timed. Sizes: on a device, and where a simulation runs it. */
typedef struct row {
        const char *name;
        const char
                *kernels; /* of kernels.def and pointwise.def that run; gpu_report.py finds those that no row names */
        unsigned dtypes;  /* F32 | ... */
        int64_t size[4], small[4];
        void (*make)(work *w);
        void (*run)(work *w);
        bool float32_product; /* TF32 changes it */
} row;

typedef struct rows {
        const row *row;
        int count;
} rows;
#define ROWS(table)                                                                                                    \
        {                                                                                                              \
                table, (int)(sizeof table / sizeof *table)                                                             \
        }

extern const rows pointwise_rows, reduction_rows, choice_rows, product_rows;

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

/* ---- what rows are made of (gpu_work.c) ---- */

lg_tensor *values(work *w, lg_shape shape); /* in [-1, 1), of w's dtype */
lg_tensor *leaf(work *w, lg_shape shape);
lg_tensor *indices(work *w, lg_shape shape, int64_t below);
double width(const work *w); /* bytes of an element */
void make_flat(work *w);     /* x of size[0] elements, read once and written once */
void make_matrix(work *w);   /* the same, size[0] x size[1] */
/* size[0] images of size[1] channels, size[2] wide, with channels last, as libgrad keeps them. */
lg_tensor *images(work *w);
double image_bytes(const work *w);
/* Gradients of y for z of its shape: by x; by w; by both. */
void run_backward(work *w);
void run_backward_w(work *w);
void run_backward_both(work *w);

#endif
