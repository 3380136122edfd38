/* profile.h - where the time and the memory of training steps go.
 *
 * A profiler records some steps, then prints tables: times by op and derivative, by module, and by region, a part of
 * the program that you name:
 *
 *     lg_profiler *p = lg_profiler_open(c, .skip = 3, .steps = 10, .path = "trace.json");
 *     lg_each_batch(b, loader) {
 *             lg_region(c, "augment") noisy = lg_add(b.x, lg_normal(c, 0, 0.1, lg_shape_of(b.x)));
 *             lg_backward(lg_cross_entropy(lg_forward(net, noisy), b.y));
 *             ...
 *             lg_profiler_step(p);
 *     }
 *     lg_profiler_print(stdout, p);
 *     lg_profiler_close(p);
 *
 * The file shows each call on a time line; open it at ui.perfetto.dev or chrome://tracing. The same kernels run with a
 * profiler and without it, and give the same results; it costs less than 0.3 microseconds for an op. On CUDA it also
 * measures how long the device works for each op, by events, without waiting for the device until the steps have ended,
 * and names ops for NVIDIA's tools (NVTX).
 */
#ifndef LG_PROFILE_H
#define LG_PROFILE_H

#include <stdio.h>
#include "grad/base.h"

LG_BEGIN

typedef struct lg_profiler lg_profiler;

typedef struct lg_profiler_options {
        LG_OPTIONS_HEAD
        int64_t skip LG_DEFAULT;  /* first steps that are not recorded, such as those that fill caches; default 0 */
        int64_t steps LG_DEFAULT; /* number of steps that are recorded after them; default 0: until the profiler ends */
        const char *path LG_DEFAULT; /* file for a trace in Chrome's JSON format; default NULL: none */
} lg_profiler_options;
/* Makes a profiler of c, which records from now on or after .skip steps. LG_ERR_STATE if c has a profiler already. The
 * memory of the trace comes from c's memory functions: about 100 bytes for a call.
 * Example: lg_profiler_open(c, .skip = 3, .steps = 10, .path = "trace.json") */
#define lg_profiler_open(...)                                                                                          \
        LG_CALL1(lg_profiler_open_with, lg_profiler_options, lg_profiler_open_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_profiler *lg_profiler_open_with(lg_ctx *c, const lg_profiler_options *options);

/* Ends a step. After the last step to be recorded, the profiler stops, waits for the devices and writes its file. Later
 * calls do nothing. Returns false with an error as lg_profiler_close() does. */
LG_API bool lg_profiler_step(lg_profiler *p);

typedef struct lg_profiler_print_options {
        LG_OPTIONS_HEAD
        int rows LG_DEFAULT; /* most rows of each table, the others are summed in one more; default 20 */
} lg_profiler_print_options;
/* Prints the times and memory that were recorded, in three tables, sorted by the time that a row took itself, without
 * the calls inside it that have rows of their own. By op: ops, derivatives, "forward" and "backward" (the work of
 * calling modules and derivatives), optimisers, loaders, copies and waits; "other" is the program's own time. By
 * module: its ops and their derivatives; the total includes the modules inside it. By region: those of lg_region(), if
 * there are any.
 *
 * The times of the rows sum to the time of the recorded steps. GFLOP/s counts products, convolutions, attention and
 * recurrent layers, GB/s the elements of inputs and outputs; both refer to the device's time, if it was measured.
 * Memory is that of tensors on all devices: allocated; kept, which is allocated and not freed; and the most that was in
 * use while the row's own work ran. Call it after the last step; calls that have not returned are not included.
 * LG_ERR_IO if f cannot be written. Example: lg_profiler_print(stdout, p, .rows = 10) */
#define lg_profiler_print(...)                                                                                         \
        LG_CALL2(lg_profiler_print_with, lg_profiler_print_options, lg_profiler_print_takes_f_p, V, V, __VA_ARGS__)
LG_API bool lg_profiler_print_with(FILE *f, lg_profiler *p, const lg_profiler_print_options *options);

/* Stops recording, writes the file unless it is written, and frees p. Returns false with LG_ERR_IO if the file cannot
 * be written, and with an error if recording stopped for lack of memory, which has not affected the program. While c
 * has an error, nothing is written. lg_close() frees p without writing. */
LG_API bool lg_profiler_close(lg_profiler *p);

/* Names the statement or block that follows as a region of the profile; regions nest. Costs almost nothing without a
 * profiler. Do not leave the block by break, goto or return; call lg_region_begin() and lg_region_end() instead.
 * Example: lg_region(c, "augment") { x = lg_add(x, noise); } */
#define lg_region(c, name)                                                                                             \
        for (uint64_t LG_LOCAL(lg_region_) = lg_region_begin((c), (name)), LG_LOCAL(lg_go_) = 1; LG_LOCAL(lg_go_);     \
             LG_LOCAL(lg_go_) = 0, lg_region_end((c), LG_LOCAL(lg_region_)))

/* Begins a region, whose name is copied. Returns its number for lg_region_end(), or 0 if c is not profiled. */
LG_API uint64_t lg_region_begin(lg_ctx *c, const char *name);
/* Ends a region and those begun inside it. Does nothing for 0 and for regions that have ended. */
LG_API void lg_region_end(lg_ctx *c, uint64_t region);

LG_END_C
#endif
