/* bench.h - what the parts of lg-bench share: items to measure, their results, the limits of the machine. */
#ifndef BENCH_H
#define BENCH_H

#include <grad.h>

/* What one call of an item works on. Everything belongs to the context. */
typedef struct work {
        lg_ctx *c;
        lg_device device;
        int64_t count; /* elements of a kernel's input */
        lg_dtype amp;  /* of lg_autocast() around the forward and the loss; LG_F32: no casts */
        lg_tensor *x, *y, *g, *w, *b;
        lg_module *net;
        lg_optimizer *opt;
} work;

typedef enum place { WORKLOAD, IN_CACHE, IN_MEMORY } place;

/* A thing to measure: a training step, or a kernel on arrays of one size. Only run is timed. */
typedef struct item {
        char name[32]; /* "lenet", "gelu/cache" */
        const char *what;
        place place;
        void (*make)(work *w);
        void (*run)(work *w);
        double units;           /* of which a call does so many: 1000 ops in op-chain, otherwise 1 */
        double (*flops)(void);  /* of the products and convolutions of a call; NULL: not counted */
        double bytes, elements; /* of a kernel: what a call must read and write, elements of its input */
} item;

/* All items; stores how many in *ret_count. They are in static storage. */
const item *items_all(int *ret_count);
/* Whether the comma-separated names choose it; NULL chooses all. A name may be that of a group, or lack the size. */
bool item_chosen(const item *it, const char *names);
/* The first name that chooses nothing, as a new text; NULL: each of them does. */
char *items_unknown(const char *names);

extern const item workloads[];
extern const int workload_count;
lg_module *encoder_new(lg_ctx *c);
double encoder_flops(void);
lg_tensor *encoder_input(lg_ctx *c);

/* A kernel, which is measured on few and on many elements. */
typedef struct kernel {
        const char *name, *what;
        void (*make)(work *w);
        void (*run)(work *w);
        double passes; /* over an array of the input's size, read or written, at the least */
} kernel;
extern const kernel kernels[];
extern const int kernel_count;
enum { CACHE_ELEMENTS = 1 << 16, MEMORY_ELEMENTS = 1 << 24 };

/* Takes a result that nobody looks at. */
static inline void drop(const void *result)
{
        (void)result;
}

/* ---- measuring (measure.c) ---- */

/* Seconds of one unit: the median, quartiles and extremes of some samples. */
typedef struct result {
        int samples;
        int64_t calls; /* in a sample */
        double median, low, high, least, most;
        double cpu;             /* the median of the process's CPU time */
        int64_t peak, resident; /* bytes: of libgrad's buffers; of the process above what it had before; -1: unknown */
        int64_t parameters;     /* numbers that the optimiser updates */
        int64_t batch;          /* samples of a step, of each process; 0: it has no module */
        int processes;
} result;

/* How items run. */
typedef struct conditions {
        const char *device;
        int threads;
        lg_dtype amp;
        bool processes; /* modules are data-parallel over those that a launcher has started */
} conditions;

/* An item that is ready to run, in a context of its own. */
typedef struct live {
        const item *it;
        work w;
        lg_group *g; /* NULL: one process */
        bool warm;
        int64_t before; /* resident bytes */
} live;

/* Makes it ready. An error is in lg_error(l->w.c). */
void live_make(live *l, const item *it, const conditions *how);
/* Runs it for so many seconds, at least once; all processes run it as often, by the clock of rank 0. Returns false
 * after an error. */
bool live_measure(live *l, double seconds, result *ret);
void live_free(live *l);

/* Seconds of a clock that only goes forward. */
double bench_now(void);

/* ---- limits of the machine (limits.c) ---- */

typedef struct limits {
        int threads;
        double flops;         /* FLOP/s */
        const char *flops_by; /* what measured it */
        double memory, cache; /* bytes/s of a copy, what it reads and what it writes */
} limits;
/* Measures them on a device for about a quarter of the seconds each. Returns false after an error of c. */
bool limits_measure(limits *ret, lg_ctx *c, lg_device device, double seconds);
/* FLOP/s of n threads that multiply and add in registers. */
double peak_flops(int threads, double seconds);

/* ---- reports (report.c) ---- */

/* As lines of JSON, or as rows of a table. */
void report_head(const limits *l, lg_ctx *c, lg_device device, bool json);
void report_item(const item *it, const result *r, const limits *l, bool json);
void report_error(const char *name, const char *why, bool json);

#endif
