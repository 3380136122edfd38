/* conv.c - convolution and its two derivatives: chooses the algorithm.
 *
 * The choice was measured on one thread with AVX-512 over the layers of usual networks, by tests/convolutions_bench
 * --algorithms, which runs each algorithm in turn (1 in its last column: the choice was the fastest):
 *   - Groups narrower than a vector, depthwise included: runs of pixels by vectors of several groups (32 groups of 4 to
 *     4, 3x3: 2.9 times as fast as the direct algorithm).
 *   - 1x1 with stride 1 and one group: a product (with AVX2 0.94 to 1.1 times as fast as direct, weight gradient 1.1 to
 *     1.7 times).
 *   - 3x3 with stride 1, from 16 channels and outputs on: Winograd's algorithm, 1.1 to 2.8 times as fast as direct. Not
 *     for a single tile, whose weights cost more than the products (512 to 512, 4x4: 0.75), and not for the weight
 *     gradient of images of 2x2 (0.6 to 0.8).
 *   - Input gradient with few channels per vector: products that are summed in the image (6 to 16, 5x5: twice as fast;
 *     but 8 to 8, 3x3: half as fast). Also with a stride, if windows are dilated, or phases are many or empty.
 *   - All others: direct. */
#include "conv.h"

#define WINOGRAD_CHANNELS 16
#define WINOGRAD_PIXELS 17
#define WEIGHT_PIXELS 4 /* largest image, in pixels, whose weight gradient is direct: a quarter of a tile */
#define MOST_PHASES 16  /* maximum phases of a direct input gradient; each phase reads all of g */
#define SUM_TIME 16     /* estimated time to add a vector to the image, in multiply-adds */

typedef enum algorithm { EMPTY, PRODUCTS, DIRECT, GROUPS, WINOGRAD } algorithm;

static bool is_empty(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        return a->n == 0 || a->channels == 0 || a->outputs == 0 || at->kernel[0] == 0 || at->kernel[1] == 0 ||
               at->in[0] == 0 || at->in[1] == 0 || at->out[0] == 0 || at->out[1] == 0;
}

bool lg_conv_is_plain(const lg_conv_geometry *at)
{
        bool plain = true;
        for (int d = 0; d < 2; d++)
                plain = plain && at->kernel[d] == 1 && at->stride[d] == 1 && at->padding[d] == 0 &&
                        at->out[d] == at->in[d];
        return plain;
}

static bool suits_winograd(const lg_conv_args *a)
{
        const int64_t pixels = a->at.out[0] * a->at.out[1];
        return lg_conv_winograd_fits(a) && a->channels >= WINOGRAD_CHANNELS && a->outputs >= WINOGRAD_CHANNELS &&
               (a->kind == LG_CONV_WEIGHT_GRAD ? pixels > WEIGHT_PIXELS : a->n * pixels >= WINOGRAD_PIXELS);
}

/* Returns whether products are estimated to be faster for the input gradient: they multiply fewer unused pixels and
 * lanes than the direct algorithm, but must add windows to the image. */
static bool adds_windows(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t lanes = LG_VECTOR / (int64_t)lg_bytes_of(a->dtype);
        const int64_t channels = a->channels / at->groups, outputs = a->outputs / at->groups;
        const int64_t run = at->kernel[1] * channels, vectors = lg_ceil_div(at->kernel[0] * run, lanes);
        const double direct = (double)(at->in[0] * at->in[1]) * (double)(at->kernel[0] * at->kernel[1]) *
                              (double)(lg_ceil_div(channels, lanes) * outputs) /
                              (double)(at->stride[0] * at->stride[1]);
        const double products = (double)(at->out[0] * at->out[1]) *
                                (double)(outputs * vectors + at->kernel[0] * lg_ceil_div(run, lanes) * SUM_TIME);
        return products < direct;
}

/* Returns whether the direct algorithm can compute an input gradient with a stride phase by phase: each pixel must use
 * at least one kernel element, and the elements of g that it reads must be contiguous pixels. */
static bool suits_phases(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t phases = at->stride[0] * at->stride[1];
        bool suits = phases <= MOST_PHASES;
        for (int d = 0; d < 2; d++)
                suits = suits && (at->stride[d] == 1 || (at->dilation[d] == 1 && at->stride[d] <= at->kernel[d]));
        return suits;
}

static algorithm algorithm_of(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        if (is_empty(a))
                return EMPTY;
        if (lg_conv_suits_groups(a))
                return GROUPS;
        if (lg_conv_is_plain(at) && lg_conv_products_fit(a))
                return PRODUCTS;
        if (suits_winograd(a))
                return WINOGRAD;
        if (a->kind == LG_CONV_INPUT_GRAD && (!suits_phases(a) || adds_windows(a)))
                return PRODUCTS;
        return a->kind == LG_CONV_WEIGHT_GRAD && !lg_conv_cut_fits(a) ? PRODUCTS : DIRECT;
}

/* Computes a convolution without products: zeros, or the bias alone, followed by the epilogue. */
static void fill_empty(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), pixels = a->n * at->out[0] * at->out[1];
        const int64_t image = a->n * at->in[0] * at->in[1] * a->channels;
        const int64_t weights = a->outputs * (a->channels / at->groups) * at->kernel[0] * at->kernel[1];
        const int64_t count = a->kind == LG_CONV_INPUT_GRAD    ? image
                              : a->kind == LG_CONV_WEIGHT_GRAD ? weights
                                                               : pixels * a->outputs;
        if (count && !a->b)
                memset(a->out, 0, (size_t)(count * size));
        for (int64_t i = 0; count && a->b && i < pixels; i++)
                memcpy((char *)a->out + i * a->outputs * size, a->b, (size_t)(a->outputs * size));
        if (count && lg_conv_has_end(a))
                (a->dtype == LG_F64 ? lg_conv_end_all_f64 : lg_conv_end_all_f32)(a, pixels);
}

void lg_conv_share(lg_queue *q, const lg_conv_args *a, int64_t parts, lg_range_fn *f, const void *job)
{
        const lg_conv_geometry *at = &a->at;
        const double pixels = (double)a->n * (double)(at->out[0] * at->out[1]);
        const double window = (double)(at->kernel[0] * at->kernel[1]) * (double)(a->channels / at->groups);
        const double work = 2 * pixels * window * (double)a->outputs;
        lg_parallel(q, parts, work < LG_PARALLEL_WORK ? lg_most(parts, 1) : 1, f, job);
}

lg_conv_args lg_conv_as_forward(const lg_conv_args *a)
{
        lg_conv_args f = *a;
        if (a->kind != LG_CONV_INPUT_GRAD)
                return f;
        f.x = a->g;
        f.b = NULL;
        f.channels = a->outputs;
        f.outputs = a->channels;
        for (int d = 0; d < 2; d++) {
                f.at.in[d] = a->at.out[d];
                f.at.out[d] = a->at.in[d];
                f.at.padding[d] = (a->at.kernel[d] - 1) * a->at.dilation[d] - a->at.padding[d];
        }
        return f;
}

static bool convolve(lg_queue *q, const lg_conv_args *a, algorithm chosen)
{
        const bool weight = a->kind == LG_CONV_WEIGHT_GRAD;
        switch (chosen) {
        case EMPTY:
                fill_empty(a);
                return true;
        case PRODUCTS:
                return lg_conv_products(q, a);
        case DIRECT:
                return weight ? lg_conv_weight(q, a) : lg_conv_direct(q, a);
        case GROUPS:
                return lg_conv_groups(q, a);
        case WINOGRAD:
                return weight ? lg_conv_winograd_weight(q, a) : lg_conv_winograd(q, a);
        }
        return false;
}

static bool widen(lg_queue *q, lg_dtype t, int64_t n, const void **array)
{
        return !*array || (*array = lg_widen(q, t, n, *array));
}

/* Computes a convolution of f16 or bf16 in f32. Winograd's algorithm reads and writes 16-bit images itself; for the
 * others all arrays are widened. */
static bool convolve_half(lg_queue *q, const lg_conv_args *a)
{
        const lg_dtype t = a->dtype;
        const int64_t x = a->n * a->at.in[0] * a->at.in[1] * a->channels;
        const int64_t y = a->n * a->at.out[0] * a->at.out[1] * a->outputs;
        const int64_t w = a->outputs * (a->channels / a->at.groups) * a->at.kernel[0] * a->at.kernel[1];
        const int64_t out = a->kind == LG_CONV_FORWARD ? y : a->kind == LG_CONV_INPUT_GRAD ? x : w;
        lg_conv_args f = *a;
        f.dtype = LG_F32;
        const algorithm chosen = algorithm_of(&f);
        if (!widen(q, t, a->outputs, &f.b) || !widen(q, t, out, &f.z))
                return false;
        if (chosen == WINOGRAD) {
                f.dtype = t;
                return convolve(q, &f, chosen);
        }
        if (!widen(q, t, x, &f.x) || !widen(q, t, y, &f.g) || !widen(q, t, w, &f.w) ||
            !(f.out = lg_widen(q, t, out, NULL)) || !convolve(q, &f, chosen))
                return false;
        lg_narrow(q, t, out, a->out, f.out);
        return true;
}

bool LG_CPU(conv)(lg_queue *q, const lg_conv_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "conv: no kernel for dtype %d", (int)a->dtype);
        return lg_is_half(a->dtype) ? convolve_half(q, a) : convolve(q, a, algorithm_of(a));
}
