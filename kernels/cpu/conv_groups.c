/* conv_groups.c - convolution of groups that are narrower than a vector, and its two derivatives: a vector is outputs
 * of several groups, and for each channel of a group meets a permutation of what these see: lanes of a group get that
 * channel. Depthwise, where each output sees one channel, its own, nothing is permuted. Any stride and dilation;
 * nothing is copied and no zero multiplied: outputs are taken in runs that see the same elements of the kernel.
 */
#include "conv.h"

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
        const void *from;        /* what outputs see: x, or g of INPUT_GRAD */
        int64_t in[2], out[2];   /* pixels */
        int64_t seen, made;      /* channels of what is seen and of outputs: all, */
        int64_t each, per_group; /* and of a group */
        int64_t step, seen_step; /* outputs of a vector, whole groups, and the channels that they see */
        bool permutes;           /* groups are more than depthwise */
        int64_t width;           /* outputs in whole vectors */
        int64_t chunks, taps;    /* taps: of the kernel */
        char *weights;           /* (channels of a group, kernel, width); of WEIGHT_GRAD the sums of each chunk */
        int32_t *places;         /* (channels of a group, LG_PLACES): for lg_vec_permute() */
} job;

#define LG_BOTH "conv_groups.inc"
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

/* A vector of outputs takes whole groups, as many as it and one of what they see have room for. */
static void set_groups(job *j, int64_t lanes)
{
        const lg_conv_args *a = j->a;
        const bool back = a->kind == LG_CONV_INPUT_GRAD;
        j->seen = back ? a->outputs : a->channels;
        j->made = back ? a->channels : a->outputs;
        j->each = j->seen / a->at.groups;
        j->per_group = j->made / a->at.groups;
        const int64_t groups = lg_least(lanes / lg_most(j->each, 1), lanes / lg_most(j->per_group, 1));
        j->step = groups * j->per_group;
        j->seen_step = groups * j->each;
        j->permutes = j->each > 1 || j->per_group > 1;
        j->width = lg_ceil_div(j->made, lanes) * lanes + lanes;
}

/* The other ways fill a vector with outputs of one group; but to permute takes a third of a multiply-add. */
bool lg_conv_suits_groups(const lg_conv_args *a)
{
        const int64_t lanes = LG_VECTOR / (int64_t)lg_bytes_of(a->dtype);
        job j = {.a = a};
        set_groups(&j, lanes);
        return a->at.groups > 1 && 3 * j.step > 4 * j.per_group;
}

/* Where lane l of a vector finds channel e of its group, in units of 32 bits. */
static void set_places(const job *j, int64_t size)
{
        const int64_t units = size / (int64_t)sizeof(int32_t);
        for (int64_t e = 0; e < j->each; e++)
                for (int64_t i = 0; i < LG_PLACES; i++) {
                        const int64_t lane = i / units, from = lane / j->per_group * j->each + e;
                        j->places[e * LG_PLACES + i] = (int32_t)(lane < j->step ? from * units + i % units : 0);
                }
}

static bool prepare(lg_queue *q, job *j, int64_t size)
{
        const lg_conv_args *a = j->a;
        const bool back = a->kind == LG_CONV_INPUT_GRAD, sums = a->kind == LG_CONV_WEIGHT_GRAD;
        set_groups(j, LG_VECTOR / size);
        j->from = back ? a->g : a->x;
        j->taps = a->at.kernel[0] * a->at.kernel[1];
        for (int d = 0; d < 2; d++) {
                j->in[d] = back ? a->at.out[d] : a->at.in[d];
                j->out[d] = back ? a->at.in[d] : a->at.out[d];
                if (!(j->sides[d].runs = q->workspace(q, (size_t)j->out[d] * sizeof(run))))
                        return false;
        }
        set_runs(j, 0, sums ? lg_most(lg_least(RUN_PIXELS / j->out[1], RUN_ROWS), 1) : 1);
        set_runs(j, 1, RUN_PIXELS);
        j->chunks = sums ? lg_least(a->n * j->sides[0].count, CHUNKS) : 1;
        j->weights = q->workspace(q, (size_t)(j->chunks * j->each * j->taps * j->width * size));
        j->places = q->workspace(q, (size_t)j->each * LG_PLACES * sizeof *j->places);
        return j->weights && j->places;
}

bool lg_conv_groups(lg_queue *q, const lg_conv_args *a)
{
        const bool f64 = a->dtype == LG_F64;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        job j = {.a = a};
        if (!prepare(q, &j, size))
                return false;
        set_places(&j, size);
        if (a->kind == LG_CONV_WEIGHT_GRAD) {
                lg_conv_share(q, a, j.chunks, f64 ? sum_parts_f64 : sum_parts_f32, &j);
                lg_conv_add_sums(q, a, &(lg_conv_sums){j.weights, j.chunks, 1, j.each * j.taps, a->outputs, j.width});
                return true;
        }
        lg_conv_share(q, a, 1, f64 ? turn_weights_f64 : turn_weights_f32, &j);
        lg_conv_share(q, a, a->n * j.sides[0].count, f64 ? image_parts_f64 : image_parts_f32, &j);
        return true;
}
