/* trace.h - looking inside a run: which ops run, how long they take, and which op made the first NaN.
 *
 * lg_set_trace() calls a function after each op, forward and backward; lg_trace_print() is one that prints a line.
 * lg_set_anomaly() turns the first op that makes a NaN or an infinity into an error. Neither costs time while it is
 * off:
 *
 *     lg_set_trace(c, lg_trace_print, .user = stderr, .synchronize = true);
 *     lg_backward(lg_cross_entropy(lg_forward(net, x), y));
 *     lg_set_trace(c, NULL);
 *
 * An op computes a tensor from tensors, views included; a function made of several ops appears as these. Functions that
 * create tensors, change them in place or read their values, and steps of optimisers, are not reported.
 */
#ifndef LG_TRACE_H
#define LG_TRACE_H

#include "grad/base.h"

LG_BEGIN

/* ---- traces ---- */

/* The maximum number of inputs, and of outputs, in an lg_trace_record. */
#define LG_TRACE_MAX 8

/* One op that ran. In a backward, .op is .of, if its derivative ran as one kernel, or an op of that derivative. */
typedef struct lg_trace_record {
        const char *op;     /* name of the op, such as "matmul" */
        const char *of;     /* in a backward, the op whose derivative this is; NULL in a forward */
        const char *module; /* path and type of the module that ran or recorded the op, "0.2 (Conv2d)"; "" outside */
        lg_device device;   /* where it ran */
        int in_count, out_count;                      /* numbers of entries; inputs beyond LG_TRACE_MAX are left out */
        lg_shape in[LG_TRACE_MAX], out[LG_TRACE_MAX]; /* shapes of inputs and outputs */
        lg_dtype in_dtype[LG_TRACE_MAX], out_dtype[LG_TRACE_MAX]; /* and their dtypes */
        double seconds;         /* duration of the call; includes the work of a GPU only with .synchronize */
        int64_t bytes_used;     /* of live buffers on the device, afterwards */
        const char *attributes; /* those of the op that are not the usual ones, "dim 1, descending"; "": none */
} lg_trace_record;

/* Receives the record of an op. The record and its texts are valid until the callback returns. The callback must not
 * compute with tensors. The op fails with the error that the callback sets, and with LG_ERR_STATE if the callback frees
 * tensors, modules, optimisers or averages, clears gradients, or moves modules. */
typedef void lg_trace_fn(const lg_trace_record *r, void *user);

typedef struct lg_trace_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;       /* passed to fn; default NULL */
        bool synchronize LG_DEFAULT; /* wait for the device after each op; default false */
} lg_trace_options;
/* Calls fn after each op of c from now on; fn = NULL ends the trace. With .synchronize, an op whose kernel found a
 * device-side error, such as a label out of range, fails at once, with LG_ERR_ARGUMENT.
 * Example: lg_set_trace(c, lg_trace_print, .user = stderr) */
#define lg_set_trace(...) LG_CALL2(lg_set_trace_with, lg_trace_options, lg_set_trace_takes_c_fn, V, V, __VA_ARGS__)
LG_API bool lg_set_trace_with(lg_ctx *c, lg_trace_fn *fn, const lg_trace_options *options);

/* Prints a line for an op to the FILE that user points to: name, device, microseconds, inputs, outputs, attributes,
 * module. It is an lg_trace_fn. Call ferror() on the file to find out whether everything was written. */
LG_API void lg_trace_print(const lg_trace_record *r, void *user);

/* ---- anomalies ---- */

typedef struct lg_anomaly_options {
        LG_OPTIONS_HEAD
        bool nan_only LG_DEFAULT; /* infinities are intentional, such as masks of -inf or log(0); default false */
} lg_anomaly_options;
/* Turns anomaly detection on or off. While it is on, the first op fails with LG_ERR_STATE whose output contains a NaN
 * although its inputs contain none, or an infinity although its inputs are finite. A NaN that is in the data is not
 * reported; look for it by lg_any(lg_isnan(x)). The message names the op, forward or backward, the element and the
 * module. Each op then waits for the device, so use it only to search. lg_anomaly() returns whether it is on.
 * Example: lg_set_anomaly(c, true, .nan_only = true) */
#define lg_set_anomaly(...)                                                                                            \
        LG_CALL2(lg_set_anomaly_with, lg_anomaly_options, lg_set_anomaly_takes_c_on, V, V, __VA_ARGS__)
LG_API bool lg_set_anomaly_with(lg_ctx *c, bool on, const lg_anomaly_options *options);
LG_API bool lg_anomaly(const lg_ctx *c);

LG_END_C
#endif
