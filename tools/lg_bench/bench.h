/* bench.h - declarations shared by the parts of lg-bench: items to measure, their results, limits of the machine. */
#ifndef BENCH_H
#define BENCH_H

#include <grad.h>

/* The operands of a call of an item. Everything belongs to the context. */
typedef struct work {
        lg_ctx *c;
        lg_device device;
        int64_t count; /* elements of a kernel's input */
        lg_dtype amp;  /* dtype of lg_autocast() around the forward and the loss; LG_F32: no casts */
        lg_tensor *x, *y, *g, *w, *b;
        lg_module *net;
        lg_optimizer *opt;
} work;

/* LARGE: a workload that is chosen by its name only. */
typedef enum place { WORKLOAD, LARGE, IN_CACHE, IN_MEMORY } place;

/* An item to measure: a training step, or a kernel on arrays of one size. Only run is timed. */
typedef struct item {
        char name[32]; /* name of the item, such as "lenet" or "gelu/cache" */
        const char *what;
        place place;
        void (*make)(work *w);
        void (*run)(work *w);
        double units;           /* units per call, for times per unit: 1000 ops in op-chain, otherwise 1 */
        double (*flops)(void);  /* returns operations of a call's products and convolutions; NULL: not counted */
        double bytes, elements; /* of a kernel: bytes that a call must read and write, elements of its input */
} item;

/* Returns all items, which are in static storage, and stores their number in *ret_count. */
const item *items_all(int *ret_count);
/* Returns whether comma-separated names choose the item; NULL chooses all but large ones. A name may be a group's, or a
 * kernel's without the size. */
bool item_chosen(const item *it, const char *names);
/* Returns the first name that chooses no item, as a new string for the caller to free, or NULL if there is none. */
char *items_unknown(const char *names);

extern const item workloads[];
extern const int workload_count;
lg_module *encoder_new(lg_ctx *c);
double encoder_flops(double batch);
lg_tensor *encoder_input(lg_ctx *c, int64_t batch);
lg_module *gpt_new(lg_ctx *c);
lg_tensor *gpt_tokens(lg_ctx *c, int64_t batch, int64_t length);
double gpt_flops(double batch, double length);

/* A kernel, which is measured on arrays that fit in the cache and on large ones. */
typedef struct kernel {
        const char *name, *what;
        void (*make)(work *w);
        void (*run)(work *w);
        double passes; /* arrays of the input's size that it must at least read or write */
} kernel;
extern const kernel kernels[];
extern const int kernel_count;
enum { CACHE_ELEMENTS = 1 << 16, MEMORY_ELEMENTS = 1 << 24 };

/* Discards a result that a benchmark does not need. */
static inline void drop(const void *result)
{
        (void)result;
}

/* ---- measuring (measure.c) ---- */

/* Seconds per unit: the median, quartiles and extremes of the samples. */
typedef struct result {
        int samples;
        int64_t calls; /* calls per sample */
        double median, low, high, least, most;
        double cpu;             /* median CPU time of the process */
        int64_t peak, resident; /* bytes: peak of libgrad's buffers; growth of the process (-1: unknown) */
        int64_t parameters;     /* elements that the optimiser updates */
        int64_t batch;          /* samples per step and process; 0: the item has no module */
        int processes;
} result;

/* The conditions under which items run. */
typedef struct conditions {
        const char *device;
        int threads;
        lg_dtype amp;
        bool recorded;  /* steps run through a recorder (lg_recorder_new) */
        bool processes; /* modules are data-parallel over the processes that a launcher has started */
} conditions;

/* An item that is ready to run, in its own context. */
typedef struct live {
        const item *it;
        work w;
        lg_recorder *recorder; /* that runs the item; NULL: none */
        lg_group *g;           /* group of the processes; NULL: one process */
        bool warm;
        int64_t before; /* resident bytes of the process before the item was made */
} live;

/* Prepares an item to run. An error is in lg_error(l->w.c). */
void live_make(live *l, const item *it, const conditions *how);
/* Runs the item for `seconds`, at least once; all processes run it equally often, by the clock of rank 0. Returns false
 * after an error. */
bool live_measure(live *l, double seconds, result *ret);
void live_free(live *l);

/* Returns the seconds of a monotonic clock. */
double bench_now(void);

/* ---- limits of the machine (limits.c) ---- */

typedef struct limits {
        int threads;
        double flops;         /* most FLOP/s measured */
        const char *flops_by; /* description of how `flops` was measured */
        double memory, cache; /* bytes/s of a copy, reads plus writes */
        double round_trip;    /* seconds of a word from one thread to another and back; 0: one thread, or not the CPU */
} limits;
/* Measures the limits of a device, each for about a quarter of `seconds`. Returns false after an error of c. */
bool limits_measure(limits *ret, lg_ctx *c, lg_device device, double seconds);
/* Returns the FLOP/s of `threads` threads that multiply and add in registers. */
double peak_flops(int threads, double seconds);

/* ---- reports (report.c) ---- */

/* Print the limits, the result of an item, or its failure, as a line of JSON or rows of a table. */
void report_head(const limits *l, lg_ctx *c, lg_device device, bool json);
void report_item(const item *it, const result *r, const limits *l, bool json);
void report_error(const char *name, const char *why, bool json);

#endif
