/* conv_direct.c - convolution without a matrix of windows: with channels last, a line of a window is one run of memory,
 * and a block of pixels times a panel of outputs a product whose rows begin anywhere. Any stride, dilation, padding and
 * groups.
 *
 * The input gradient is a convolution of g by the turned weights. With a stride, pixels of the input that are as far
 * from the next multiple of it see the same elements of the kernel: each such phase is a convolution of stride 1.
 */
#include "conv.h"
#include "conv_end.h"

#define IMAGE_BYTES (256 * 1024) /* of the rows that a part reads: they stay in the second cache */
#define PARTS 16
#define PIXELS 256
#define LONG_WINDOW 64 /* whose lines outside the image are worth being found */

typedef struct job {
        const lg_conv_args *call, *a;      /* a: as a forward convolution; of kind INPUT_GRAD the weights are turned */
        bool apart;                        /* outputs are the pixels of a phase, by a stride apart */
        int64_t place[2], first;           /* of a phase: its first pixel, and its first tap in the panels */
        bool few, joined;                  /* joined: a line of a window is one run; few: outputs of one channel */
        bool skips;                        /* lines of windows that no pixel of a block has in the image */
        int64_t groups, channels, outputs; /* channels and outputs of a group */
        int64_t taps, k;                   /* of a kernel, of a window; of all phases */
        int64_t *place_of;                 /* of each tap in a panel */
        int64_t width, panels;             /* outputs of a panel, panels of a group */
        char *weights, *scratch;           /* all panels; of each thread */
        int64_t scratch_bytes;
        lg_conv_cut cut;
} job;

/* Of pixels [first, end) of a part the lines of their windows that meet the image; all, if the pixels are of several
 * images. */
static void find_lines(const job *j, const lg_conv_rows *r, int64_t first, int64_t end, int64_t *ret_from,
                       int64_t *ret_end)
{
        const lg_conv_geometry *at = &j->a->at;
        const int64_t top = first / at->out[1], bottom = (end - 1) / at->out[1], kernel = at->kernel[0];
        *ret_from = 0;
        *ret_end = kernel;
        if (!j->skips || top / r->count != bottom / r->count)
                return;
        const int64_t highest = (r->top + top % r->count) * at->stride[0] - at->padding[0];
        const int64_t lowest = highest + (bottom - top) * at->stride[0];
        if (lowest < 0)
                *ret_from = lg_least(lg_ceil_div(-lowest, at->dilation[0]), kernel);
        *ret_end = lg_least(lg_ceil_div(lg_most(at->in[0] - highest, 0), at->dilation[0]), kernel);
}

#define LG_BOTH "conv_direct.inc"
#include "both.inc"

static void set_sizes(job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t lanes = LG_VECTOR / (int64_t)lg_bytes_of(a->dtype);
        j->groups = a->at.groups;
        j->channels = a->channels / j->groups;
        j->outputs = a->outputs / j->groups;
        j->joined = a->at.dilation[1] == 1 && a->at.groups == 1;
        j->apart = a->kind == LG_CONV_INPUT_GRAD && (a->at.stride[0] > 1 || a->at.stride[1] > 1);
        j->few = a->channels == 1 && a->at.stride[1] == 1 && !j->apart &&
                 j->outputs <= lg_least(lanes / 2, LG_BLOCK_ROWS);
        j->taps = a->at.kernel[0] * a->at.kernel[1];
        j->k = j->taps * j->channels;
        j->width = j->outputs <= lanes ? lanes : LG_BLOCK_VECTORS * lanes;
        j->panels = lg_ceil_div(j->outputs, j->width);
}

/* How many of `count` elements of a kernel come before phase `place`, ordered by phases. */
static int64_t taps_before(int64_t count, int64_t stride, int64_t place)
{
        return count / stride * place + lg_least(count % stride, place);
}

/* Where a panel has element `tap` of a kernel: as it lies; of INPUT_GRAD phase by phase, each turned by 180 degrees. */
static int64_t tap_in_panel(const job *j, int64_t tap)
{
        const lg_conv_geometry *at = &j->call->at;
        const int64_t in[2] = {tap / at->kernel[1], tap % at->kernel[1]};
        int64_t before[2], count[2], turned[2];
        if (j->call->kind != LG_CONV_INPUT_GRAD)
                return tap;
        for (int d = 0; d < 2; d++) {
                const int64_t stride = at->stride[d], place = in[d] % stride;
                before[d] = taps_before(at->kernel[d], stride, place);
                count[d] = taps_before(at->kernel[d], stride, place + 1) - before[d];
                turned[d] = count[d] - 1 - in[d] / stride;
        }
        return before[0] * at->kernel[1] + count[0] * before[1] + turned[0] * count[1] + turned[1];
}

/* The pixels place, place + stride, ... of the input's gradient, as a forward convolution. */
static lg_conv_args phase_of(const job *j, lg_conv_args part, int64_t *ret_first)
{
        const lg_conv_geometry *at = &j->call->at;
        int64_t before[2];
        for (int d = 0; d < 2; d++) {
                const int64_t stride = at->stride[d], from = (j->place[d] + at->padding[d]) / stride;
                const int64_t tap = (j->place[d] + at->padding[d]) % stride;
                before[d] = taps_before(at->kernel[d], stride, tap);
                part.at.kernel[d] = taps_before(at->kernel[d], stride, tap + 1) - before[d];
                part.at.stride[d] = 1;
                part.at.padding[d] = (part.at.kernel[d] - 1) * at->dilation[d] - from;
                part.at.out[d] = lg_ceil_div(at->in[d] - j->place[d], stride);
        }
        *ret_first = before[0] * at->kernel[1] + part.at.kernel[0] * before[1];
        return part;
}

/* Scratch may be that of a part before. */
static bool run_part(lg_queue *q, job *j)
{
        const bool f64 = j->a->dtype == LG_F64;
        j->cut = lg_conv_cut_of(j->a, IMAGE_BYTES, PARTS, PIXELS);
        j->skips = j->cut.copies && j->k >= LONG_WINDOW;
        const int64_t room = j->scratch_bytes, pointers = j->cut.pixels * (int64_t)sizeof(void *);
        j->scratch_bytes = lg_most(j->cut.bytes + lg_ceil_div((j->apart ? 2 : 1) * pointers, 64) * 64, room);
        if (j->scratch_bytes > room && !(j->scratch = q->workspace(q, (size_t)(q->threads * j->scratch_bytes))))
                return false;
        lg_conv_share(q, j->call, j->cut.parts, f64 ? image_parts_f64 : image_parts_f32, j);
        return true;
}

bool lg_conv_direct(lg_queue *q, const lg_conv_args *a)
{
        const lg_conv_args forward = lg_conv_as_forward(a);
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        job j = {.call = a, .a = &forward};
        set_sizes(&j);
        j.place_of = q->workspace(q, (size_t)j.taps * sizeof *j.place_of);
        j.weights = q->workspace(q, (size_t)(j.groups * j.panels * j.k * j.width * size));
        if (!j.place_of || !j.weights)
                return false;
        for (int64_t tap = 0; tap < j.taps; tap++)
                j.place_of[tap] = tap_in_panel(&j, tap);
        lg_conv_share(q, a, j.groups * j.panels, a->dtype == LG_F64 ? weight_parts_f64 : weight_parts_f32, &j);
        if (!j.apart)
                return run_part(q, &j);
        for (int64_t i = 0; i < a->at.stride[0] * a->at.stride[1]; i++) {
                j.place[0] = i / a->at.stride[1];
                j.place[1] = i % a->at.stride[1];
                if (j.place[0] >= a->at.in[0] || j.place[1] >= a->at.in[1])
                        continue;
                const lg_conv_args part = phase_of(&j, forward, &j.first);
                j.a = &part;
                if (!run_part(q, &j))
                        return false;
        }
        return true;
}
