/* conv_depthwise.c - convolution where each output sees one channel, its own, and its two derivatives: vectors over
 * channels, which the image has beside each other. Any stride and dilation; nothing is copied and no zero multiplied:
 * outputs are taken in runs that see the same elements of the kernel.
 */
#include "conv.h"
#include "conv_end.h"

#define PIXELS 6    /* of a block of outputs */
#define MOST_TAPS 9 /* of a block of sums of the weights' gradient */
/* Vectors of such blocks: as many as registers have room for. */
#define SUMS (LG_BLOCK_ROWS * LG_BLOCK_VECTORS)
#define VECTORS (SUMS / PIXELS)
#define HALF ((VECTORS + 1) / 2)
#define TAP_VECTORS (SUMS < 2 * MOST_TAPS ? 1 : 2)
#define RUN_ROWS 16
#define RUN_PIXELS 512 /* that pass before sums go to memory */
#define CHUNKS 16

/* Outputs along a dimension, those of its side's `step` apart, that see the same elements of the kernel. */
typedef struct run {
        int64_t first, count;
        int64_t tap, taps; /* the first of those elements, and how many */
        int64_t at;        /* what the first output sees through the first one */
} run;

/* A dimension: the steps from output to output of a run, and in what it sees; from tap to tap, and in what it sees. */
typedef struct side {
        run *runs;
        int64_t count, step, at_step, tap_step, tap_at_step;
} side;

typedef struct job {
        const lg_conv_args *a;
        side sides[2];
        const void *from;             /* what outputs see: x, or g of INPUT_GRAD */
        int64_t in[2], out[2], width; /* width: channels in whole vectors */
        int64_t chunks, taps;         /* taps: of the kernel */
        char *weights;                /* (kernel, width); of WEIGHT_GRAD the sums of each chunk */
} job;

#define LG_BOTH "conv_depthwise.inc"
#include "both.inc"

/* What output j of dimension d sees. */
static run seen(const job *j, int d, int64_t output, side *s)
{
        const lg_conv_geometry *at = &j->a->at;
        const bool back = j->a->kind == LG_CONV_INPUT_GRAD;
        run r = {.first = output, .count = 1};
        int64_t last_tap = 0, last_at = 0;
        for (int64_t e = 0; e < at->kernel[d]; e++) {
                const int64_t k = back ? at->kernel[d] - 1 - e : e; /* what is seen is in order */
                const int64_t p = back ? output + at->padding[d] - k * at->dilation[d]
                                       : output * at->stride[d] - at->padding[d] + k * at->dilation[d];
                const int64_t i = back ? p / at->stride[d] : p;
                if (p < 0 || i >= j->in[d] || (back && p % at->stride[d] != 0))
                        continue;
                if (r.taps++ == 0) {
                        r.tap = k;
                        r.at = i;
                } else {
                        s->tap_step = k - last_tap;
                        s->tap_at_step = i - last_at;
                }
                last_tap = k;
                last_at = i;
        }
        return r;
}

static void set_runs(job *j, int d, int64_t most)
{
        const bool back = j->a->kind == LG_CONV_INPUT_GRAD;
        side *s = &j->sides[d];
        s->step = back && most > 1 ? j->a->at.stride[d] : 1;
        s->at_step = back ? 1 : j->a->at.stride[d];
        for (int64_t phase = 0; phase < lg_least(s->step, j->out[d]); phase++) {
                run *last = NULL;
                for (int64_t i = phase; i < j->out[d]; i += s->step) {
                        const run r = seen(j, d, i, s);
                        if (last && last->tap == r.tap && last->taps == r.taps && last->count < most) {
                                last->count++;
                        } else {
                                last = &s->runs[s->count++];
                                *last = r;
                        }
                }
        }
}

bool lg_conv_is_depthwise(const lg_conv_args *a)
{
        return a->at.groups > 1 && a->channels == a->at.groups && a->outputs == a->at.groups;
}

bool lg_conv_depthwise(lg_queue *q, const lg_conv_args *a)
{
        const bool back = a->kind == LG_CONV_INPUT_GRAD, sums = a->kind == LG_CONV_WEIGHT_GRAD;
        const bool f64 = a->dtype == LG_F64;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), lanes = LG_VECTOR / size;
        job j = {.a = a, .from = back ? a->g : a->x, .width = lg_ceil_div(a->channels, lanes) * lanes};
        j.taps = a->at.kernel[0] * a->at.kernel[1];
        for (int d = 0; d < 2; d++) {
                j.in[d] = back ? a->at.out[d] : a->at.in[d];
                j.out[d] = back ? a->at.in[d] : a->at.out[d];
                if (!(j.sides[d].runs = q->workspace(q, (size_t)j.out[d] * sizeof(run))))
                        return false;
        }
        set_runs(&j, 0, sums ? lg_most(lg_least(RUN_PIXELS / j.out[1], RUN_ROWS), 1) : 1);
        set_runs(&j, 1, RUN_PIXELS);
        const int64_t parts = a->n * j.sides[0].count;
        j.chunks = sums ? lg_least(parts, CHUNKS) : 1;
        if (!(j.weights = q->workspace(q, (size_t)(j.chunks * j.taps * j.width * size))))
                return false;
        if (sums) {
                lg_conv_share(q, a, j.chunks, f64 ? sum_parts_f64 : sum_parts_f32, &j);
                lg_conv_add_sums(q, a, &(lg_conv_sums){j.weights, j.chunks, 1, j.taps, a->channels, j.width});
                return true;
        }
        lg_conv_share(q, a, 1, f64 ? turn_weights_f64 : turn_weights_f32, &j);
        lg_conv_share(q, a, parts, f64 ? image_parts_f64 : image_parts_f32, &j);
        return true;
}
