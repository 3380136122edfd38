/* trace.h - looking inside a run: what ran where, where a NaN came from. */
#ifndef LG_TRACE_H
#define LG_TRACE_H

#include "grad/base.h"

LG_BEGIN

/* One kernel or copy that an op ran. Shapes of up to 8 inputs and outputs. In a backward, `backward` is true: `op` is
 * the op whose derivative ran as one fused kernel, or an op that a derivative is written in, of the node `of`. */
#define LG_TRACE_MAX 8
typedef struct lg_trace_record {
        const char *op;
        const char *of;     /* whose derivative this is; NULL in a forward */
        const char *module; /* path and type of the module it ran (or was recorded) in, "0.2 (Conv2d)"; "" outside */
        lg_device device;
        int in_count, out_count;
        lg_shape in[LG_TRACE_MAX], out[LG_TRACE_MAX];
        lg_dtype in_dtype[LG_TRACE_MAX], out_dtype[LG_TRACE_MAX];
        double seconds;     /* of the call; of the work too with .synchronize, or where the device works at once */
        int64_t bytes_used; /* of live buffers on the device, afterwards */
} lg_trace_record;
typedef void lg_trace_fn(const lg_trace_record *r, void *user);
typedef struct lg_trace_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;
        bool synchronize LG_DEFAULT; /* waits for the device after each op */
} lg_trace_options;
/* From now on fn is called after each op; it must not compute with tensors. If it sets an error, the op fails; so it
 * does where fn frees tensors, modules, optimisers or averages, forgets gradients or moves modules: LG_ERR_STATE.
 * lg_trace(c, fn, .user = p), lg_trace(c, NULL)
 */
#define lg_trace(...) LG_CALL2(lg_trace_with, lg_trace_options, lg_trace_takes_c_fn, __VA_ARGS__)
LG_API bool lg_trace_with(lg_ctx *c, lg_trace_fn *fn, const lg_trace_options *options);
/* A lg_trace_fn that prints a line for each op to the FILE* that `user` is: lg_trace(c, lg_trace_print, .user =
 * stderr). Whether all was written, ferror says of that file. */
LG_API void lg_trace_print(const lg_trace_record *r, void *user);

/* Anomaly detection: the first op whose result holds a NaN or an infinity although its inputs hold none becomes an
 * error, LG_ERR_STATE: which op, forward or backward, which element, and where in the module tree. Waits after every
 * op. lg_anomaly(c, true), lg_anomaly(c, true, .nan_only = true) */
typedef struct lg_anomaly_options {
        LG_OPTIONS_HEAD
        bool nan_only LG_DEFAULT; /* infinities are meant: masks of -inf, log(0) */
} lg_anomaly_options;
#define lg_anomaly(...) LG_CALL2(lg_anomaly_with, lg_anomaly_options, lg_anomaly_takes_c_on, __VA_ARGS__)
LG_API bool lg_anomaly_with(lg_ctx *c, bool on, const lg_anomaly_options *options);
LG_API bool lg_get_anomaly(const lg_ctx *c);

LG_END_C
#endif
