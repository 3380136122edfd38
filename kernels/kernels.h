/* kernels.h - what a kernel is, the table of kernels, and the interface of a device. It knows nothing of libgrad.
 *
 * A kernel sees pointers into one device's memory, sizes, strides (in elements), dtypes, and a queue. It overwrites its
 * output unless its arguments say otherwise. It returns false after noting why with lg_queue_fail(). Sizes may be zero.
 */
#ifndef LG_KERNELS_H
#define LG_KERNELS_H

#include "types.h"
#include "conv.h"
#include "pool.h"
#include "norm.h"
#include "index.h"
#include "sort.h"
#include "links.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For tables by dtype. */
#define LG_DTYPE_COUNT (LG_BOOL + 1)

/* Errors that a kernel found in data on the device: an index or a label that is out of range. On the CPU the op
 * reports it, on other devices the next read or wait. */
#define LG_DEVICE_OK 0
#define LG_DEVICE_LOST (-1) /* not found in data: an operation of a link was given up (links.h) */
typedef struct lg_device_error {
        int64_t code;  /* the number that came with the kernel's arguments; LG_DEVICE_OK: nothing. The first one stays
                        */
        int64_t value; /* the label or index */
        int64_t limit; /* how many there are, from 0 on */
} lg_device_error;

typedef enum lg_status { LG_OK = 0, LG_NO_MEMORY, LG_BROKEN, LG_LOST } lg_status;

/* One device of one context: what kernels run on. A device may put more behind it (see lg_device_api.queue_size). */
typedef struct lg_queue {
        const struct lg_device_api *api;
        int index;             /* which device of its type */
        int threads;           /* most threads a kernel may use, at least 1 */
        bool deterministic;    /* only kernels that repeat themselves bit for bit */
        bool tf32;             /* f32 products and convolutions may round their inputs to TF32 */
        lg_device_error error; /* what kernels on host memory found; other devices keep theirs on the device */
        lg_status status;      /* the first failure since the owner last looked */
        char message[200];
        /* Scratch of `bytes` bytes, 64-byte aligned, good until the kernel returns (in stream order). Several calls in
         * one kernel give several pieces. NULL: none left, already noted in status. */
        void *(*workspace)(struct lg_queue *q, size_t bytes);
        /* Gives the device's cached memory back to the system, for what a driver or library takes of it for itself.
         * False: there was none. */
        bool (*release_cached)(struct lg_queue *q);
        void *owner; /* of workspace() and release_cached() */
        void *memo;  /* the device's own: what its kernels remember between calls. close() frees it */
} lg_queue;

/* Notes a failure; the first one stays. Returns false. */
bool lg_queue_fail(lg_queue *q, lg_status status, const char *format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 3, 4)))
#endif
        ;

#define LG_PW_INPUTS 4
/* y = f(inputs) over a common shape; strides may be 0 (broadcast) or negative. A derivative kernel takes its inputs in
 * the slots G, A (or X), B, Y; slots that the formula does not name are NULL. TERNARY's forward takes C (bool), A, B;
 * its derivatives take G, C. With `accumulate`, of float dtypes and no comparison, y = y + f(inputs), rounded once; no
 * element of y is named twice. */
typedef struct lg_pointwise_args {
        int ndim;
        int64_t shape[LG_MAX_DIMS];
        lg_dtype dtype; /* of all inputs but C, and of the output but for comparisons and tests (bool) */
        void *out;
        int64_t out_strides[LG_MAX_DIMS];
        const void *in[LG_PW_INPUTS];
        int64_t in_strides[LG_PW_INPUTS][LG_MAX_DIMS];
        double p0, p1;
        bool accumulate;
} lg_pointwise_args;

/* out[i] = (out_dtype) in[i] over a common shape, any strides. To bool: not zero. Float to integer: towards zero,
 * saturating, NaN is 0. Integer to a narrower integer: the low bits. */
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
/* Philox 4x32-10 (philox.h), contiguous, float dtypes. Element i takes its words from block `offset` + i/4 (f32 and
 * smaller: one word each) or i/2 (f64: two words each). UNIFORM: a + (b - a) * u, u in [0, 1), below b.
 * NORMAL: a + b * z, Box-Muller in f64 over pairs of words of a block, then rounded. philox.h defines both. */
typedef struct lg_random_args {
        int64_t n;
        lg_dtype dtype;
        void *out;
        lg_random_kind kind;
        double a, b;
        uint64_t seed, offset;
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
/* out[k] = reduction over the reduced dimensions of in[k, r]; out is contiguous over the kept shape. Floats accumulate
 * in f64 and are rounded once, at the end. SUM: out dtype is the input's for floats, i64 for integers and bool. ARGMAX,
 * ARGMIN: i64 out, the index in the row-major order of the reduced shape, the first of equals; NaN goes before all
 * numbers in MAX, MIN, ARGMAX and ARGMIN, which want count > 0. VAR: divides by max(0, count - correction). MEAN: SUM
 * / count. NORM: the square root of the sum of squares; STD: that of VAR. */
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
 * with rows of stride ldc >= n. Of A's and B's two strides one is 1 (or the dimension has size 1) and the other at
 * least the row length; none of a batch is negative. beta is 0 (C is overwritten, NaN or not) or 1. Float dtypes; f16
 * and bf16 accumulate in f32. */
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
        bool relu;        /* C = max(C, 0) at the end; NaN stays */
} lg_gemm_args;

/* y = softmax(x) or its logarithm over the middle dimension of (outer, n, inner), contiguous. */
typedef struct lg_softmax_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool log;
        const void *x;
        void *y;
} lg_softmax_args;

/* dx = y * (g - sum(g * y)), or for the logarithm g - exp(y) * sum(g); sums over the middle dimension. */
typedef struct lg_softmax_vjp_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool log;
        const void *y, *g;
        void *dx;
} lg_softmax_vjp_args;

/* Class indices t[i] in [0, classes) or ignore_index; e = label_smoothing; lp = log_softmax(x) of each row.
 *   weights:  q[i, c] = w_i * ((1 - e) * [c == t_i] + e / classes), and 0 where t_i is ignored;
 *             w_i is 1 / (rows not ignored) for MEAN, else 1.
 * cross_entropy: loss[i] = -sum_c q[i,c] lp[i,c] for NONE (rows values), their sum otherwise (one value; MEAN of no
 * rows is NaN). cross_entropy_vjp: dx[i, c] = g_i * (softmax(x)[i,c] * sum_c q[i,c] - q[i,c]), g_i is g[i] for NONE,
 * else g[0]. class_weights: out = q. A label that is neither is noted with `origin` and its row counts as ignored.
 * All contiguous; x, out of vjp and class_weights are (rows, classes); labels i64. f16 and bf16 compute in f32, and of
 * them losses and g are f32. */
typedef struct lg_cross_entropy_args {
        lg_dtype dtype;
        int64_t rows, classes;
        lg_reduction reduction;
        int64_t ignore_index;
        double label_smoothing;
        const int64_t *labels;
        const void *x; /* not in class_weights */
        const void *g; /* only in cross_entropy_vjp */
        void *out;
        int origin;
} lg_cross_entropy_args;

/* Over the middle dimension of (outer, n, inner), contiguous; reverse: from the other end. Floats are added up in f64.
 *   cumsum:        y[i] = x[0] + ... + x[i], float dtypes and i64
 *   logcumsumexp:  y[i] = log(e^x[0] + ... + e^x[i]), float dtypes */
typedef struct lg_cumsum_args {
        lg_dtype dtype;
        int64_t outer, n, inner;
        bool reverse;
        const void *x;
        void *y;
} lg_cumsum_args;

/* What a layer with bias and ReLU passes on, over (rows, columns), row after row: out = g where y > 0, else 0, and the
 * sums of out's columns, added up in f32 or better and rounded once. out may be g. Float dtypes. */
typedef struct lg_relu_sums_args {
        lg_dtype dtype;
        int64_t rows, columns;
        const void *y, *g;
        void *out;
        void *sums;
} lg_relu_sums_args;

#define LG_UPDATE_STATES 3
/* One tensor of a pass over many: n elements, contiguous. Of 16-bit tensors, elements are computed in f32 and rounded
 * once. */
typedef struct lg_update {
        lg_dtype dtype; /* of param and grad */
        int64_t n;
        void *param;
        const void *grad;
        void *state[LG_UPDATE_STATES]; /* the optimiser's buffers: f64 for f64, else f32 */
        float *master;                 /* of 16-bit tensors: what is updated, and then rounded to param; or NULL */
        int64_t *skipped;              /* on the device: how many steps were skipped, or NULL: none */
} lg_update;

/* The dials of each optimiser, lg_NAME_dials: f64 that a step computes by (updates.def). */
#define GROUP(x) double x;
#define OPTION(x) double x;
#define STEP double step;
#define UPDATE(name, always, maybe, dials, numbers, rule)                                                              \
        typedef struct lg_##name##_dials {                                                                             \
                dials                                                                                                  \
        } lg_##name##_dials;
#include "updates.def"
#undef GROUP
#undef OPTION
#undef STEP

#define LG_DIALS 8
/* to[i] = value[i] for i < LG_DIALS: f64 on the device, by which a later kernel computes. */
typedef struct lg_dials_args {
        double value[LG_DIALS];
        double *to;
} lg_dials_args;

/* One step of the optimiser that the kernel is named for (updates.def) over many tensors. Nothing changes while a
 * device-side error is set on the device. */
typedef struct lg_pass {
        int64_t count;
        const lg_update *updates; /* host memory */
        const double *dials; /* on the device, as updates.def lists them: of an update, the step is less by `skipped` */
        const float *skip;   /* on the device; if it is not 0, only `skipped` changes, by 1; NULL: nothing is */
} lg_pass;

/* total[0] = the sum of the squares of all elements of all gradients, one f64 on the device, added up in f64. Of the
 * updates count dtype, n and grad. */
typedef struct lg_norms_args {
        int64_t count;
        const lg_update *updates; /* host memory */
        double *total;
} lg_norms_args;

/* param[i] *= factor[0], one f64 on the device, which is rounded to what the dtype is computed in. Of the updates count
 * dtype, n and param. */
typedef struct lg_scale_args {
        int64_t count;
        const lg_update *updates; /* host memory */
        const double *factor;
} lg_scale_args;

/* param[i] /= scale[0], one f32 on the device, by its inverse, rounded from f64 to f32; found[0], one f32 on the
 * device, becomes 1 if a quotient is not finite. Of the updates count dtype, n and param. */
typedef struct lg_unscale_args {
        int64_t count;
        const lg_update *updates; /* host memory */
        const float *scale;
        float *found;
} lg_unscale_args;

/* The scale of losses, after a step: if found[0] is not 0, scale[0] *= backoff and steps[0] = 0; else steps[0] += 1 or,
 * where that would be `interval`, scale[0] *= growth, if that is finite, and steps[0] = 0. All on the device. Nothing
 * changes while a device-side error is set. */
typedef struct lg_rescale_args {
        float *scale;
        int64_t *steps;
        const float *found;
        double growth, backoff;
        int64_t interval;
} lg_rescale_args;

/* Every pointwise kernel has a number: one for each forward, then one for the derivative by each input. */
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

/* A device module of another number is refused: that of the types of these headers, raised when they change, and one of
 * the lists of kernels, from the names and their places. */
#define LG_DEVICE_TYPES 16
enum {
        LG_DEVICE_ABI = LG_DEVICE_TYPES * (1 << 24)
#define POINTWISE(name) +(int)sizeof #name *(LG_PW_##name + 1)
#include "pointwise.def"
#define KERNEL(name, args) +(int)sizeof #name #args *(int)offsetof(lg_kernels, name)
#include "kernels.def"
#define UPDATE(name, ...) +(int)sizeof #name *(int)sizeof(lg_##name##_dials)
#include "updates.def"
};

typedef struct lg_device_facts {
        char name[96];
        int64_t total_bytes, free_bytes; /* -1: not known */
        int processors;                  /* cores or multiprocessors; 0: not known */
        int major, minor;                /* compute capability; 0.0: it has none */
        /* Versions in words, or why there is none; empty: it needs none. */
        char driver[32], runtime[32], blas[64], dnn[128], links[128];
} lg_device_facts;

/* A device type. The CPU's is built in; others are modules whose symbol lg_device_module returns one. */
typedef struct lg_device_api {
        uint32_t abi; /* LG_DEVICE_ABI */
        const char *name;
        size_t queue_size; /* of the struct that begins with an lg_queue; the caller gives it zeroed */
        /* How many devices there are; 0 and a reason in words if none. */
        int (*count)(char *reason, size_t size);
        /* Makes q ready for device q->index; false and a reason. close() undoes it, also after a failed open. */
        bool (*open)(lg_queue *q, char *reason, size_t size);
        void (*close)(lg_queue *q);
        /* bytes > 0; 64-byte aligned; NULL: none left, or what else was wrong is noted in q. */
        void *(*allocate)(lg_queue *q, size_t bytes);
        void (*free)(lg_queue *q, void *p, size_t bytes);
        bool (*upload)(lg_queue *q, void *device, const void *host,
                       size_t bytes); /* `host` is read before it returns */
        bool (*download)(lg_queue *q, void *host, const void *device, size_t bytes); /* waits */
        bool (*copy)(lg_queue *q, void *to, const void *from, size_t bytes);         /* within the device */
        /* Between two devices of this type, after what both queues hold and before what they get later; nothing waits.
         * NULL: copies go through the host. */
        bool (*copy_between)(lg_queue *to_queue, void *to, lg_queue *from_queue, const void *from, size_t bytes);
        /* Pinned host memory, which copy_async() reads without the host waiting. The following are NULL together: the
         * device has none. pin() gives NULL if none is left. */
        void *(*pin)(lg_queue *q, size_t bytes);
        void (*unpin)(lg_queue *q, void *p);
        /* Copies from pinned memory beside the queue's work, but after what the queue holds now; *mark > 0 names it. */
        bool (*copy_async)(lg_queue *q, void *device, const void *pinned, size_t bytes, uint64_t *mark);
        bool (*stream_wait)(lg_queue *q, uint64_t mark); /* what the queue gets later comes after that copy */
        bool (*event_query)(lg_queue *q, uint64_t mark, bool wait); /* true: that copy has read its memory */
        /* Waits for all work of the queue; gives the error noted since the last call (code 0: none) and clears it. */
        bool (*synchronize)(lg_queue *q, lg_device_error *ret);
        bool (*clear_error)(lg_queue *q); /* forgets an error of the work that the queue holds now; waits for nothing */
        bool (*facts)(int index, lg_device_facts *ret); /* *ret is given zeroed */
        const lg_kernels *kernels;
        bool weights_last;            /* convolutions take weights with channels last, and are faster so */
        const lg_device_links *links; /* with devices of other processes; NULL: there are none */
} lg_device_api;

/* The CPU device, with the kernels of the best instruction set that this machine has. */
const lg_device_api *lg_cpu_device(void);

#ifdef __cplusplus
}
#endif
#endif
