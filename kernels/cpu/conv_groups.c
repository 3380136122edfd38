/* conv_groups.c - convolution with groups narrower than a vector, and its two derivatives. A vector holds outputs of
 * several groups. For each channel of a group, the input is permuted so that all lanes of a group get that channel;
 * depthwise convolution needs no permutation. Any stride and dilation. Nothing is copied and no zeros are multiplied:
 * outputs are processed in runs that use the same kernel elements. */
#include "conv.h"

#define PIXELS 6    /* output pixels per register block */
#define MOST_TAPS 9 /* maximum kernel elements per block of sums of the weight gradient */
/* Vectors in these blocks: as many as fit in the registers. */
#define SUMS (LG_BLOCK_ROWS * LG_BLOCK_VECTORS)
#define VECTORS (SUMS / PIXELS)
#define HALF ((VECTORS + 1) / 2)
#define TAP_VECTORS (SUMS < 2 * MOST_TAPS ? 1 : 2)
#define RUN_ROWS 16
#define RUN_PIXELS 512 /* pixels per run, after which sums are stored to memory */
#define CHUNKS 16

/* Run of outputs along a dimension, with the stride of its side, that use the same kernel elements. */
typedef struct run {
        int64_t first, count;
        int64_t tap, taps; /* first of these kernel elements, and their number */
        int64_t at;        /* input position that the first output reads with the first element */
} run;

/* Runs along one dimension, with strides: from output to output (step) and in the input (at_step); from kernel element
 * to kernel element (tap_step) and in the input (tap_at_step). */
typedef struct side {
        run *runs;
        int64_t count, step, at_step, tap_step, tap_at_step;
} side;

typedef struct job {
        const lg_conv_args *a;
        side sides[2];
        const void *from;                  /* the input: x, or g for INPUT_GRAD */
        int64_t in[2], out[2];             /* height and width of the input and the output */
        int64_t in_channels, out_channels; /* channels of input and output in total */
        int64_t each, per_group;           /* channels of input and output per group */
        int64_t step, in_step;             /* outputs per vector, in whole groups, and the input channels of these */
        bool permutes;                     /* lanes must be permuted: the convolution is not depthwise */
        int64_t width;                     /* number of outputs, rounded up to whole vectors */
        int64_t chunks, taps;              /* taps: number of kernel elements */
        char *weights;   /* (channels of a group, kernel, width); for WEIGHT_GRAD the sums of each chunk */
        int32_t *places; /* (channels of a group, LG_PLACES), for lg_vec_permute() */
} job;

#define LG_BOTH "conv_groups.inc"
#include "both.inc"

/* Returns a run of the single output `output` of dimension d and sets the steps of s between its kernel elements. */
static run run_of(const job *j, int d, int64_t output, side *s)
{
        const lg_conv_geometry *at = &j->a->at;
        const bool back = j->a->kind == LG_CONV_INPUT_GRAD;
        run r = {.first = output, .count = 1};
        int64_t last_tap = 0, last_at = 0;
        for (int64_t e = 0; e < at->kernel[d]; e++) {
                const int64_t k = back ? at->kernel[d] - 1 - e : e; /* in the order of input positions */
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
                        const run r = run_of(j, d, i, s);
                        if (last && last->tap == r.tap && last->taps == r.taps && last->count < most) {
                                last->count++;
                        } else {
                                last = &s->runs[s->count++];
                                *last = r;
                        }
                }
        }
}

/* Sets the groups per vector: as many whole groups as fit in a vector of outputs and in one of input channels. */
static void set_groups(job *j, int64_t lanes)
{
        const lg_conv_args *a = j->a;
        const bool back = a->kind == LG_CONV_INPUT_GRAD;
        j->in_channels = back ? a->outputs : a->channels;
        j->out_channels = back ? a->channels : a->outputs;
        j->each = j->in_channels / a->at.groups;
        j->per_group = j->out_channels / a->at.groups;
        const int64_t groups = lg_least(lanes / lg_most(j->each, 1), lanes / lg_most(j->per_group, 1));
        j->step = groups * j->per_group;
        j->in_step = groups * j->each;
        j->permutes = j->each > 1 || j->per_group > 1;
        j->width = lg_ceil_div(j->out_channels, lanes) * lanes + lanes;
}

/* Returns whether vectors of several groups pay off: other algorithms fill vectors with outputs of one group, but a
 * permutation costs a third of a multiply-add. */
bool lg_conv_suits_groups(const lg_conv_args *a)
{
        const int64_t lanes = LG_VECTOR / (int64_t)lg_bytes_of(a->dtype);
        job j = {.a = a};
        set_groups(&j, lanes);
        return a->at.groups > 1 && 3 * j.step > 4 * j.per_group;
}

/* Makes the permutations: for each channel e of a group, the source of each lane, in units of 32 bits. */
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
