/* conv_direct.c - convolution without a matrix of windows: with channels last, a line of a window is one run of memory,
 * and a block of pixels times a panel of outputs a product whose rows begin anywhere. Any stride, dilation, padding and
 * groups.
 */
#include "conv.h"
#include "conv_end.h"

#define IMAGE_BYTES (256 * 1024) /* of the rows that a part reads: they stay in the second cache */
#define PARTS 16
#define PIXELS 256
#define LONG_WINDOW 64 /* whose lines outside the image are worth being found */

typedef struct job {
        const lg_conv_args *a;             /* as a forward convolution; of kind INPUT_GRAD the weights are turned */
        bool few, joined;                  /* joined: a line of a window is one run; few: outputs of one channel */
        bool skips;                        /* lines of windows that no pixel of a block has in the image */
        int64_t groups, channels, outputs; /* channels and outputs of a group */
        int64_t taps, k;                   /* of a kernel, of a window */
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
        if (highest < at->in[0])
                *ret_end = lg_least(lg_ceil_div(at->in[0] - highest, at->dilation[0]), kernel);
        else
                *ret_end = 0;
        *ret_end = lg_most(*ret_end, *ret_from);
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
        j->few = a->channels == 1 && a->at.stride[1] == 1 && j->outputs <= lg_least(lanes / 2, LG_BLOCK_ROWS);
        j->taps = a->at.kernel[0] * a->at.kernel[1];
        j->k = j->taps * j->channels;
        j->width = j->outputs <= lanes ? lanes : LG_BLOCK_VECTORS * lanes;
        j->panels = lg_ceil_div(j->outputs, j->width);
}

bool lg_conv_direct(lg_queue *q, const lg_conv_args *a)
{
        const lg_conv_args turned = lg_conv_as_forward(a);
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        const bool f64 = a->dtype == LG_F64;
        job j = {.a = &turned};
        set_sizes(&j);
        j.cut = lg_conv_cut_of(&turned, IMAGE_BYTES, PARTS, PIXELS);
        j.skips = j.cut.copies && j.k >= LONG_WINDOW;
        j.scratch_bytes = j.cut.bytes + lg_ceil_div(j.cut.pixels * (int64_t)sizeof(void *), 64) * 64;
        j.weights = q->workspace(q, (size_t)(j.groups * j.panels * j.k * j.width * size));
        j.scratch = q->workspace(q, (size_t)(q->threads * j.scratch_bytes));
        if (!j.weights || !j.scratch)
                return false;
        lg_conv_share(q, a, j.groups * j.panels, f64 ? weight_parts_f64 : weight_parts_f32, &j);
        lg_conv_share(q, a, j.cut.parts, f64 ? image_parts_f64 : image_parts_f32, &j);
        return true;
}
