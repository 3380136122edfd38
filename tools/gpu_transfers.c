/* gpu_transfers.c - times copies between host and device, on a device and between two, as a part of gpu_bench. */
#include <stdio.h>
#include "gpu_bench.h"

static void run_to_device(work *w)
{
        drop(lg_to(w->x, w->device));
}
static void run_to_host(work *w)
{
        drop(lg_to(w->y, lg_cpu()));
}
static void run_within(work *w)
{
        drop(lg_copy(w->y, LG_NO_DEVICE));
}

static void measure(bench *b, const char *name, work *w, void (*run)(work *w))
{
        if (time_is_over(b))
                return;
        double us = time_calls(b, w, run);
        printf("{\"part\": \"transfers\", \"name\": \"%s\", \"bytes\": %.0f", name, w->bytes);
        end_figure(b, "us", us);
}

void measure_transfers(bench *b)
{
        const int64_t n = b->small ? 1 << 12 : 1 << 26;
        lg_scope scope = lg_scope_begin(b->c);
        work w = {.c = b->c, .device = b->device, .bytes = 4 * (double)n};
        lg_device all[2] = {LG_NO_DEVICE, LG_NO_DEVICE};
        w.y = lg_uniform(b->c, -1, 1, LG_SHAPE(n), .device = b->device);
        w.x = lg_to(w.y, lg_cpu());
        measure(b, "host to device", &w, run_to_device);
        w.x = lg_pin(w.x, b->device);
        measure(b, "pinned host to device", &w, run_to_device);
        measure(b, "device to host", &w, run_to_host);
        measure(b, "on the device", &w, run_within);
        if (lg_try_all_cuda(b->c, 2, all) == 2) {
                w.x = w.y;
                w.device = all[lg_device_equal(all[0], b->device)];
                measure(b, "device to device", &w, run_to_device);
        }
        lg_scope_end(b->c, scope);
        lg_empty_cache(b->c);
}
