/* kernels.h - the table of kernels, the arguments of each, and the interface of a device. Independent of libgrad.
 *
 * A kernel receives a queue and pointers into one device's memory, with sizes (may be 0), strides in elements and
 * dtypes. Its output is overwritten unless its arguments say otherwise. On failure it calls lg_queue_fail() and returns
 * false. */
#ifndef LG_KERNELS_H
#define LG_KERNELS_H

#include "types.h"
#include "conv.h"
#include "pool.h"
#include "norm.h"
#include "attention.h"
#include "index.h"
#include "interpolate.h"
#include "rotary.h"
#include "sort.h"
#include "recurrent.h"
#include "fft.h"
#include "linalg.h"
#include "links.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Length of tables indexed by lg_dtype. */
#define LG_DTYPE_COUNT (LG_BOOL + 1)

/* Error that a kernel found in data on the device: an index or label out of range. The op that ran the kernel reports
 * it on the CPU, the next read or wait on other devices. */
#define LG_DEVICE_OK 0
#define LG_DEVICE_LOST (-1) /* no bad data: an operation of a link was abandoned (links.h) */
typedef struct lg_device_error {
        int64_t code;  /* origin given in the kernel's arguments; LG_DEVICE_OK: no error. The first error is kept */
        int64_t value; /* the bad label or index */
        int64_t limit; /* number of valid values: they are [0, limit) */
} lg_device_error;

typedef enum lg_status { LG_OK = 0, LG_NO_MEMORY, LG_BROKEN, LG_LOST } lg_status;

/* Queue of one device of one context, on which kernels run. Devices may append members (lg_device_api.queue_size). */
typedef struct lg_queue {
        const struct lg_device_api *api;
        int index;             /* number of the device within its type */
        int threads;           /* maximum number of threads of a kernel, at least 1 */
        bool deterministic;    /* use only kernels whose results are the same bits in every run */
        bool tf32, conv_tf32;  /* f32 products, or convolutions, may round their inputs to TF32 */
        lg_device_error error; /* error found by kernels on host memory; other devices keep theirs on the device */
        lg_status status;      /* first failure since the owner last cleared it */
        char message[200];
        /* Returns scratch memory of `bytes` bytes, aligned to 64 bytes and valid until the kernel returns (in stream
         * order). Each call returns a separate piece. Returns NULL and records it in `status` if none is left. */
        void *(*workspace)(struct lg_queue *q, size_t bytes);
        /* Returns the device's cached memory to the system, for a driver or library. Returns false if there is none. */
        bool (*release_cached)(struct lg_queue *q);
        void *owner; /* user data of workspace() and release_cached() */
        void *memo;  /* private data of the device, kept between calls and freed by close() */
} lg_queue;

/* Records a failure and its message unless an earlier failure is recorded. Returns false. */
bool lg_queue_fail(lg_queue *q, lg_status status, const char *format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 3, 4)))
#endif
        ;

#define LG_PW_INPUTS 4
/* Elementwise y = f(inputs) over a common shape. Strides may be 0 (broadcast) or negative. A derivative kernel takes
 * its inputs in the slots G, A (or X), B, Y; slots that the formula does not use are NULL. TERNARY's forward takes C
 * (bool), A, B; its derivatives take G, C. With `accumulate` (float dtypes, no comparisons), y = y + f(inputs), rounded
 * once; then no two positions may share an element of y. */
typedef struct lg_pointwise_args {
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        lg_dtype dtype; /* of all inputs but C, and of the output, except that comparisons and tests give bool */
        void *out;
        int64_t out_strides[LG_MAX_DIMS];
        const void *in[LG_PW_INPUTS];
        int64_t in_strides[LG_PW_INPUTS][LG_MAX_DIMS];
        double p0, p1;
        bool accumulate;
} lg_pointwise_args;

/* out[i] = (out_dtype) in[i] over a common shape, any strides. To bool: true if not zero. Float to integer: truncated,
 * saturated, NaN gives 0. Integer to a narrower integer: the low bits. */
typedef struct lg_copy_args {
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        lg_dtype out_dtype, in_dtype;
        void *out;
        int64_t out_strides[LG_MAX_DIMS];
        const void *in;
        int64_t in_strides[LG_MAX_DIMS];
} lg_copy_args;

/* out[i] = value: `real` for float dtypes, `integer` for the others. */
typedef struct lg_fill_args {
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        lg_dtype dtype;
        void *out;
        int64_t strides[LG_MAX_DIMS];
        double real;
        int64_t integer;
} lg_fill_args;

/* out[i] = start + i * step, contiguous; computed in f64 for float dtypes, in i64 for integers. */
typedef struct lg_arange_args {
        int64_t n;
        lg_dtype dtype;
        void *out;
        double start, step;
} lg_arange_args;

typedef enum lg_random_kind { LG_RANDOM_UNIFORM, LG_RANDOM_NORMAL } lg_random_kind;
/* Random numbers by Philox 4x32-10 (philox.h); contiguous, float dtypes. Element i takes its words from block `offset`
 * + i / 4 (one word each) or, for f64, i / 2 (two words each). UNIFORM: a + (b - a) * u with u in [0, 1), always below
 * b. NORMAL: a + b * z by Box-Muller in f64 over pairs of words of a block, then rounded. */
typedef struct lg_random_args {
        int64_t n;
        lg_dtype dtype;
        void *out;
        lg_random_kind kind;
        double a, b;
        uint64_t seed, offset;
        const uint64_t *moved; /* two numbers in device memory that are added to seed and offset; NULL: none */
} lg_random_args;

typedef enum lg_reduce_kind {
        LG_REDUCE_SUM,
        LG_REDUCE_MAX,
        LG_REDUCE_MIN,
        LG_REDUCE_ARGMAX,
        LG_REDUCE_ARGMIN,
        LG_REDUCE_VAR,
        LG_REDUCE_MEAN,
        LG_REDUCE_NORM,
        LG_REDUCE_STD
} lg_reduce_kind;
/* out[k] = reduction of in[k, r] over the reduced dimensions r; out is contiguous over the kept shape. Floats
 * accumulate in f64 and are rounded once, at the end. SUM: floats keep their dtype, integers and bool give i64. MAX,
 * MIN, ARGMAX and ARGMIN need at least one reduced element and treat NaN as the extreme. ARGMAX and ARGMIN give i64:
 * the index in row-major order of the reduced shape, the first of equals. MEAN: SUM / count. VAR: divided by max(0,
 * count - correction). STD: square root of VAR. NORM: square root of the sum of squares. */
typedef struct lg_reduce_args {
        lg_reduce_kind kind;
        lg_dtype dtype;
        int kept_ndim, reduced_ndim;
        int64_t kept[LG_MAX_DIMS], kept_strides[LG_MAX_DIMS];
        int64_t reduced[LG_MAX_DIMS], reduced_strides[LG_MAX_DIMS];
        const void *in;
        void *out;
        double correction;
} lg_reduce_args;

/* C[i] = relu(A[i] B[i] + beta C[i] + bias) for each index i of the batch shape. A is (m, k), B is (k, n), C is (m, n)
 * with row stride ldc >= n. One of the two strides of A is 1 (or its dimension has size 1) and the other at least the
 * row length; likewise for B. Strides of the batch are not negative. beta is 1, or 0 to overwrite C even if it holds
 * NaN. All dtypes but bool; f16 and bf16 accumulate in f32, integers wrap without relu. */
typedef struct lg_gemm_args {
        lg_dtype dtype;
        int64_t m, n, k;
        const void *a, *b;
        void *c;
        int64_t a_row, a_col, b_row, b_col, ldc;
        int batch_ndim;
        int64_t batch[LG_MAX_DIMS], a_batch[LG_MAX_DIMS], b_batch[LG_MAX_DIMS], c_batch[LG_MAX_DIMS];
        int beta;
        const void *bias; /* n values, added to each row of C; or NULL */
        bool relu;        /* applies C = max(C, 0) last; NaN stays NaN */
} lg_gemm_args;

/* y = softmax(x) or its logarithm over the middle dimension of (outer, n, inner), contiguous. */
typedef struct lg_softmax_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool log;
        const void *x;
        void *y;
} lg_softmax_args;

/* Derivative of softmax, dx = y * (g - sum(g * y)), or of log-softmax, dx = g - exp(y) * sum(g); the sums are over the
 * middle dimension of (outer, n, inner), contiguous. */
typedef struct lg_softmax_vjp_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool log;
        const void *y, *g;
        void *dx;
} lg_softmax_vjp_args;

/* Cross entropy of class indices t[i], in [0, classes) or ignore_index. e = label_smoothing; lp = log_softmax(x) of
 * each row.
 *   weights:  q[i, c] = w_i * ((1 - e) * [c == t_i] + e / classes), and 0 where t_i is ignored;
 *             w_i is 1 / (rows not ignored) for MEAN, else 1.
 * cross_entropy: loss[i] = -sum_c q[i,c] lp[i,c] for NONE (one value per row), else the sum of these (one value; MEAN
 * without rows is NaN). cross_entropy_vjp: dx[i, c] = g_i * (softmax(x)[i,c] * sum_c q[i,c] - q[i,c]), where g_i is
 * g[i] for NONE, else g[0]. class_weights: out = q. Any other label is recorded as a device error with code `origin`,
 * and its row counts as ignored. All contiguous; x and the out of vjp and class_weights are (rows, classes); labels are
 * i64. With f16 and bf16, computation is in f32 and losses and g are f32. */
typedef struct lg_cross_entropy_args {
        lg_dtype dtype;
        int64_t rows, classes;
        lg_reduction reduction;
        int64_t ignore_index;
        double label_smoothing;
        const int64_t *labels;
        const void *x; /* logits; unused by class_weights */
        const void *g; /* gradient of the loss, for cross_entropy_vjp only */
        void *out;
        int origin;
} lg_cross_entropy_args;

/* Running sums over the middle dimension of (outer, n, inner), contiguous; `reverse` starts at the other end. Floats
 * accumulate in f64.
 *   cumsum:        y[i] = x[0] + ... + x[i], float dtypes and i64
 *   logcumsumexp:  y[i] = log(e^x[0] + ... + e^x[i]), float dtypes */
typedef struct lg_cumsum_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool reverse;
        const void *x;
        void *y;
} lg_cumsum_args;

/* Derivative of bias + ReLU over (rows, columns), row-major: out = g where y > 0, else 0; sums = the column sums of
 * out, accumulated in f32 or f64 and rounded once. out may be g. Float dtypes. */
typedef struct lg_relu_sums_args {
        lg_dtype dtype;
        int64_t rows, columns;
        const void *y, *g;
        void *out;
        void *sums;
} lg_relu_sums_args;

#define LG_UPDATE_STATES 3
/* One tensor of an optimiser step or of another pass over many tensors: n elements, contiguous. Elements of 16-bit
 * tensors are computed in f32 and rounded once. */
typedef struct lg_update {
        lg_dtype dtype; /* dtype of param and grad */
        int64_t n;
        void *param;
        const void *grad;
        void *state[LG_UPDATE_STATES]; /* the optimiser's buffers, f64 if dtype is f64, else f32; NULL where absent */
        float *master;                 /* for 16-bit tensors: f32 values, updated and then rounded to param; or NULL */
        int64_t *skipped; /* in device memory: number of skipped steps; NULL: none (requires lg_pass.skip NULL) */
} lg_update;

/* Inputs of a step of each optimiser, lg_NAME_step_inputs: f64 values in the order of updates.def. */
#define GROUP(x) double x;
#define OPTION(x) double x;
#define STEP double step;
#define UPDATE(name, always, maybe, step_inputs, numbers, rule)                                                        \
        typedef struct lg_##name##_step_inputs {                                                                       \
                step_inputs                                                                                            \
        } lg_##name##_step_inputs;
#include "updates.def"
#undef GROUP
#undef OPTION
#undef STEP

#define LG_STEP_INPUTS 9
/* Numbers that change from step to step: 64-bit words, such as f64 inputs of an optimiser step. */
typedef struct lg_dial {
        double value[LG_STEP_INPUTS];
        double *to; /* LG_STEP_INPUTS words in device memory */
} lg_dial;

/* Stores the values of `count` dials, as bits. */
typedef struct lg_dials_args {
        int64_t count;
        const lg_dial *dials; /* array of `count` in host memory */
} lg_dials_args;

/* One step, over many tensors, of the optimiser whose name the kernel has (updates.def). Does nothing while the device
 * has a pending device-side error. */
typedef struct lg_pass {
        int64_t count;
        const lg_update *updates; /* array of `count` in host memory */
        const double
                *step_inputs; /* in device memory, in the order of updates.def; `skipped` is subtracted from `step` */
        const float *skip;    /* one f32 in device memory; if not 0, only `skipped` is incremented; NULL counts as 0 */
} lg_pass;

/* total[0] = sum of the squares of all elements of all gradients, one f64 in device memory, accumulated in f64. Reads
 * only dtype, n and grad of the updates. */
typedef struct lg_norms_args {
        int64_t count;
        const lg_update *updates; /* array of `count` in host memory */
        double *total;
} lg_norms_args;

/* param[i] *= factor[0], one f64 in device memory, rounded first to the type in which the dtype is computed. Uses only
 * dtype, n and param of the updates. */
typedef struct lg_scale_args {
        int64_t count;
        const lg_update *updates; /* array of `count` in host memory */
        const double *factor;
} lg_scale_args;

/* param[i] /= scale[0], one f32 in device memory: multiplies by the inverse, computed in f64 and rounded to f32.
 * found[0], one f32 in device memory, becomes 1 if a result is not finite. Uses only dtype, n and param of updates. */
typedef struct lg_unscale_args {
        int64_t count;
        const lg_update *updates; /* array of `count` in host memory */
        const float *scale;
        float *found;
} lg_unscale_args;

/* Updates the loss scale after a step, all in device memory. If found[0] is not 0: scale[0] *= backoff and steps[0] =
 * 0. Otherwise steps[0] += 1, and when steps[0] reaches `interval`: scale[0] *= growth if the result is finite, and
 * steps[0] = 0. Does nothing while the device has a pending device-side error. */
typedef struct lg_rescale_args {
        float *scale;
        int64_t *steps;
        const float *found;
        double growth, backoff;
        int64_t interval;
} lg_rescale_args;

/* Numbers of the pointwise kernels: for each op the forward kernel, then its derivative by each input. */
typedef enum lg_pointwise_id {
#define POINTWISE(name) LG_PW_##name,
#include "pointwise.def"
        LG_PW_COUNT
} lg_pointwise_id;

typedef struct lg_kernels {
        bool (*pointwise[LG_PW_COUNT])(lg_queue *q, const lg_pointwise_args *a);
#define KERNEL(name, args) bool (*name)(lg_queue * q, const args *a);
#include "kernels.def"
} lg_kernels;

/* Version of the interface; device modules with another one are refused. LG_DEVICE_TYPES is raised by hand when types
 * in these headers change; the sum changes with the names and the order in the lists of kernels. */
#define LG_DEVICE_TYPES 23
enum {
        LG_DEVICE_ABI = LG_DEVICE_TYPES * (1 << 24)
#define POINTWISE(name) +(int)sizeof #name *(LG_PW_##name + 1)
#include "pointwise.def"
#define KERNEL(name, args) +(int)sizeof #name #args *(int)offsetof(lg_kernels, name)
#include "kernels.def"
#define UPDATE(name, ...) +(int)sizeof #name *(int)sizeof(lg_##name##_step_inputs)
#include "updates.def"
};

typedef struct lg_device_facts {
        char name[96];
        int64_t total_bytes, free_bytes; /* of the device's memory; -1: unknown */
        int processors;                  /* number of cores or multiprocessors; 0: unknown */
        int major, minor;                /* compute capability; 0.0: not applicable */
        /* Versions as text, or the reason why the library is missing; empty if not applicable. */
        char driver[32], runtime[32], blas[64], dnn[128], links[128];
} lg_device_facts;

/* Functions of a device type. The CPU's is built in; others are modules whose symbol lg_device_module returns one. */
typedef struct lg_device_api {
        uint32_t abi; /* must equal LG_DEVICE_ABI */
        const char *name;
        size_t queue_size; /* bytes of the device's struct that begins with lg_queue; the caller allocates it zeroed */
        /* Returns the number of devices; if 0, writes the reason as text to `reason`. */
        int (*count)(char *reason, size_t size);
        /* Prepares q for device q->index, or returns false and writes a reason. close() must also follow a failure. */
        bool (*open)(lg_queue *q, char *reason, size_t size);
        void (*close)(lg_queue *q);
        /* Returns bytes > 0 of device memory, aligned to 64 bytes; NULL if none is left, or with an error in q. */
        void *(*allocate)(lg_queue *q, size_t bytes);
        void (*free)(lg_queue *q, void *p, size_t bytes);
        bool (*upload)(lg_queue *q, void *device, const void *host, size_t bytes);   /* returns after reading `host` */
        bool (*download)(lg_queue *q, void *host, const void *device, size_t bytes); /* returns after writing `host` */
        bool (*copy)(lg_queue *q, void *to, const void *from, size_t bytes);         /* copies within the device */
        /* Copies between two devices of this type after the work queued so far on both queues and before later work of
         * both; the host does not wait. NULL if unsupported: copies then pass through host memory. */
        bool (*copy_between)(lg_queue *to_queue, void *to, lg_queue *from_queue, const void *from, size_t bytes);
        /* Allocates pinned host memory, which copy_async() reads without making the host wait; NULL if none is left.
         * pin, unpin, copy_async, stream_wait and event_query are NULL if the device has no pinned memory. */
        void *(*pin)(lg_queue *q, size_t bytes);
        void (*unpin)(lg_queue *q, void *p);
        /* Copies from pinned memory after the work queued so far, concurrently with later work; *mark > 0 names it. */
        bool (*copy_async)(lg_queue *q, void *device, const void *pinned, size_t bytes, uint64_t *mark);
        bool (*stream_wait)(lg_queue *q, uint64_t mark);            /* makes work queued later wait for copy `mark` */
        bool (*event_query)(lg_queue *q, uint64_t mark, bool wait); /* returns true once the copy has read its memory */
        /* Waits for all queued work. Moves the error recorded since the last call (code 0: none) to *ret. */
        bool (*synchronize)(lg_queue *q, lg_device_error *ret);
        /* Waits for the work queued so far and writes the element of type `from` at p to *ret, converted to `to`
         * (LG_F64 or LG_I64) as the kernel copy does; else as synchronize(). NULL: callers copy, download and
         * synchronize. */
        bool (*item)(lg_queue *q, const void *p, lg_dtype from, void *ret, lg_dtype to, lg_device_error *error);
        bool (*clear_error)(lg_queue *q); /* clears errors of the work queued so far; the host does not wait */
        bool (*facts)(int index, lg_device_facts *ret); /* the caller passes *ret zeroed */
        const lg_kernels *kernels;
        bool weights_last;            /* convolutions take weights with channels last, which is faster on this device */
        const lg_device_links *links; /* links with devices of other processes; NULL: unsupported */
        /* Returns how many bytes a recurrent layer keeps for its derivative in a format of the device's own; 0: none,
         * but gates and cells (recurrent.h). NULL: always 0. Of a's pointers it reads only which are NULL. */
        int64_t (*recurrent_reserve)(lg_queue *q, const lg_recurrent_args *a);
        /* Times of work on the device, for profilers; all three are NULL if kernels have run when they return, so that
         * the host's clock times them. time_mark() marks the end of the work queued so far, in a new mark or in *mark,
         * if that is not NULL. time_between() stores the seconds from one mark to another, after the device has passed
         * both. No failure is recorded in q. */
        bool (*time_mark)(lg_queue *q, void **mark);
        bool (*time_between)(lg_queue *q, void *from, void *to, double *ret);
        void (*time_free)(lg_queue *q, void *mark); /* mark may be NULL */
        /* Begins and ends a named range of this thread for the tools of the device's maker (NVTX); NULL: unsupported.
         */
        void (*range_begin)(const char *name);
        void (*range_end)(void);
        /* Calls run(user), whose kernel calls are recorded as a graph and not run, and returns the graph; NULL: the
         * device or a call refused it, and q is as before. launch() queues a graph. All three are NULL if unsupported.
         */
        void *(*capture)(lg_queue *q, bool (*run)(void *user), void *user);
        bool (*launch)(lg_queue *q, void *graph);
        void (*free_graph)(lg_queue *q, void *graph);
} lg_device_api;

/* Returns the CPU device, with the kernels of the best instruction set that this machine supports. */
const lg_device_api *lg_cpu_device(void);

#ifdef __cplusplus
}
#endif
#endif
