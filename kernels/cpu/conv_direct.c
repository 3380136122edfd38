/* conv_direct.c - direct convolution, without an im2col matrix. With channels last, a line of a window is one
 * contiguous run; a block of pixels times a panel of outputs is a product whose left rows start at arbitrary addresses.
 * Any stride, dilation, padding and groups.
 *
 * The input gradient is a convolution of g with rotated weights. With a stride, input pixels with the same position
 * modulo the stride use the same kernel elements: each such phase is a convolution with stride 1. */
#include "conv.h"

#define IMAGE_BYTES (256 * 1024) /* bytes of the rows that a part reads; they stay in the L2 cache */
#define PARTS 16
#define PIXELS 256
#define LONG_WINDOW 64 /* smallest window, in elements, for which rows outside the image are skipped */
#define SHORT_LINE 16  /* longest line of outputs for which columns outside the image are skipped, too */

typedef struct job {
        const lg_conv_args *call, *a;      /* the original arguments; the current phase as forward convolution */
        int64_t place[2], phase_stride[2]; /* output pixels of a phase: the first one, and the stride */
        int64_t size[2], first; /* size of the whole output; position of this phase's first tap in the panels */
        bool few, joined;       /* few: one channel, few outputs; joined: a line of a window is contiguous */
        bool skips[2];          /* whether rows and columns of windows outside the image are skipped */
        int64_t groups, channels, outputs; /* channels and outputs are per group */
        int64_t phases;                    /* phases of an input gradient with a stride; else 1 */
        int64_t taps, k;                   /* elements of a kernel, of a window; over all phases */
        int64_t *place_of;                 /* position in a panel of each kernel element */
        int64_t width, panels;             /* outputs per panel, panels per group */
        char *weights, *scratch;           /* all packed panels of weights; scratch of each thread */
        int64_t scratch_bytes;
        lg_conv_cut cut;
} job;

/* Outputs of a part, rows by columns of each image, with the same kernel elements [tap, tap_end) inside the image. */
typedef struct area {
        int64_t first[2], end[2], tap[2], tap_end[2];
} area;

/* Finds the kernel elements, in dimension d, that are inside the image for the output at `place`. */
static void find_taps(const lg_conv_geometry *at, int d, int64_t place, int64_t *ret_first, int64_t *ret_end)
{
        const int64_t from = place * at->stride[d] - at->padding[d];
        *ret_first = lg_least(lg_ceil_div(lg_most(-from, 0), at->dilation[d]), at->kernel[d]);
        *ret_end = lg_least(lg_ceil_div(lg_most(at->in[d] - from, 0), at->dilation[d]), at->kernel[d]);
}

/* Finds t->end[d] <= most: the outputs from t->first[d] on with the same taps. Output 0 is row `top` of the image. */
static void find_end(const job *j, int d, int64_t top, int64_t most, area *t)
{
        int64_t first, end;
        t->tap[d] = 0;
        t->tap_end[d] = j->a->at.kernel[d];
        t->end[d] = most;
        if (!j->skips[d])
                return;
        find_taps(&j->a->at, d, top + t->first[d], &t->tap[d], &t->tap_end[d]);
        for (t->end[d] = t->first[d] + 1; t->end[d] < most; t->end[d]++) {
                find_taps(&j->a->at, d, top + t->end[d], &first, &end);
                if (first != t->tap[d] || end != t->tap_end[d])
                        return;
        }
}

/* Advances t to the next area of a part, columns first; t is zeroed before the first one. Returns false at the end. */
static bool next_area(const job *j, const lg_conv_rows *r, area *t)
{
        t->first[1] = t->end[1];
        if (t->end[0] == 0 || t->end[1] == j->a->at.out[1]) {
                t->first[0] = t->end[0];
                t->first[1] = 0;
                if (t->first[0] == r->count)
                        return false;
                find_end(j, 0, r->top, r->count, t);
        }
        find_end(j, 1, 0, j->a->at.out[1], t);
        return true;
}

static int64_t pixels_of(const lg_conv_rows *r, const area *t)
{
        return r->images * (t->end[0] - t->first[0]) * (t->end[1] - t->first[1]);
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
        for (int d = 0; d < 2; d++) {
                j->size[d] = a->at.out[d];
                j->phase_stride[d] = a->kind == LG_CONV_INPUT_GRAD ? a->at.stride[d] : 1;
        }
        j->phases = j->phase_stride[0] * j->phase_stride[1];
        j->few = a->channels == 1 && a->at.stride[1] == 1 && j->phases == 1 &&
                 j->outputs <= lg_least(lanes / 2, LG_BLOCK_ROWS);
        j->taps = a->at.kernel[0] * a->at.kernel[1];
        j->k = j->taps * j->channels;
        j->width = j->outputs <= lanes ? lanes : LG_BLOCK_VECTORS * lanes;
        j->panels = lg_ceil_div(j->outputs, j->width);
}

/* Returns how many of `count` kernel elements in a dimension precede phase `place` when ordered by phases. */
static int64_t taps_before(int64_t count, int64_t stride, int64_t place)
{
        return count / stride * place + lg_least(count % stride, place);
}

/* Returns the position of kernel element `tap` in a panel: unchanged, or for INPUT_GRAD ordered by phase, each phase
 * rotated by 180 degrees. */
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

/* Returns the forward convolution of the phase j->place: input pixels place, place + stride, ... of the gradient. */
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

/* Computes one phase. Scratch of an earlier phase is reused if large enough. */
static bool run_part(lg_queue *q, job *j)
{
        const bool f64 = j->a->dtype == LG_F64;
        j->cut = lg_conv_cut_of(j->a, IMAGE_BYTES, PARTS, PIXELS);
        const bool bare = j->cut.reaches && !j->cut.copies; /* there is no padded copy of the image */
        j->few = j->few && !bare;
        j->skips[0] = bare || (j->cut.copies && !j->few && j->k >= LONG_WINDOW);
        j->skips[1] = bare || (j->skips[0] && j->a->at.out[1] <= SHORT_LINE);
        const int64_t room = j->scratch_bytes, pointers = 2 * j->cut.pixels * (int64_t)sizeof(void *);
        j->scratch_bytes = lg_most(j->cut.bytes + lg_ceil_div(pointers, 64) * 64, room);
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
        for (int64_t i = 0; i < j.phases; i++) {
                j.place[0] = i / j.phase_stride[1];
                j.place[1] = i % j.phase_stride[1];
                if (j.place[0] >= j.size[0] || j.place[1] >= j.size[1])
                        continue;
                const lg_conv_args part = j.phases > 1 ? phase_of(&j, forward, &j.first) : forward;
                j.a = &part;
                if (!run_part(q, &j))
                        return false;
        }
        return true;
}
