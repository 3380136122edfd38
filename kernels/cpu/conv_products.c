/* conv_products.c - convolutions as matrix products. 1x1 is a single product. The input gradient is the product of g
 * and the weights, whose rows are windows that are added to the image. The weight gradient is a sum of products for
 * each kernel element.
 *
 * Weights for the input gradient are reordered to (outputs, kernel, channels), so that without dilation a row of the
 * kernel is one contiguous run of an image with channels last. */
#include "conv.h"

#define TILE_BYTES ((int64_t)1 << 20) /* target bytes of a matrix of windows */
#define TILE_PIXELS 128               /* minimum pixels; packing the weights does not pay for fewer rows */
#define TASKS 16
#define FEW_PIXELS 256

typedef struct job {
        const lg_conv_args *a;
        int64_t size, channels, outputs;   /* size: bytes of an element; the others are per group */
        int64_t taps, k;                   /* elements of a kernel; elements of a window */
        int64_t tile;                      /* output pixels per product */
        int64_t images, bands;             /* images per task; or tasks per image (bands of rows) */
        int64_t windows_bytes, slot_bytes; /* bytes for windows; for all scratch of a thread */
        char *w, *scratch;
} job;

static lg_gemm_args product_of(const job *j, int64_t m, int64_t n, int64_t k)
{
        return (lg_gemm_args){.dtype = j->a->dtype, .m = m, .n = n, .k = k};
}

/* Returns the address of element i of p. */
static char *element(const job *j, const void *p, int64_t i)
{
        return lg_byte_at(p, i * j->size);
}

/* ---- 1x1 with stride 1 and one group: images are matrices of pixels by channels ---- */

static bool multiply_pixels(lg_queue *q, const job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t pixels = a->n * a->at.out[0] * a->at.out[1], channels = a->channels, outputs = a->outputs;
        lg_gemm_args g;
        if (a->kind == LG_CONV_FORWARD) { /* y = x w^T */
                g = product_of(j, pixels, outputs, channels);
                g.a = a->x, g.a_row = channels, g.a_col = 1;
                g.b = a->w, g.b_row = 1, g.b_col = channels;
                g.bias = a->b, g.relu = a->relu, g.beta = a->z != NULL;
                if (a->z)
                        memcpy(a->out, a->z, (size_t)(pixels * outputs * j->size));
        } else if (a->kind == LG_CONV_INPUT_GRAD) { /* dx = g w */
                g = product_of(j, pixels, channels, outputs);
                g.a = a->g, g.a_row = outputs, g.a_col = 1;
                g.b = a->w, g.b_row = channels, g.b_col = 1;
        } else { /* dw = g^T x */
                g = product_of(j, outputs, channels, pixels);
                g.a = a->g, g.a_row = 1, g.a_col = outputs;
                g.b = a->x, g.b_row = channels, g.b_col = 1;
        }
        g.c = a->out;
        g.ldc = g.n;
        return LG_CPU(gemm)(q, &g);
}

/* Allocates scratch for each thread: `count` elements, and the scratch of products whose sides are at most `most`. */
static bool set_scratch(lg_queue *q, job *j, int64_t count, int64_t most)
{
        const lg_gemm_args largest = {.dtype = j->a->dtype, .m = most, .n = most, .k = most};
        const int64_t strips = (int64_t)lg_multiply_bytes(&largest, LG_BY_STRIPS);
        const int64_t short_strips = (int64_t)lg_multiply_bytes(&largest, LG_BY_SHORT_STRIPS);
        j->windows_bytes = lg_ceil_div(count * j->size, 64) * 64;
        j->slot_bytes = j->windows_bytes + lg_ceil_div(lg_most(strips, short_strips), 64) * 64;
        return (j->scratch = q->workspace(q, (size_t)(q->threads * j->slot_bytes))) != NULL;
}

/* ---- the input gradient ---- */

/* Window of an output pixel: its image, its first input pixel, and the kernel columns [lo, hi) inside the image. */
typedef struct window {
        int64_t n, row, col, lo, hi;
} window;

/* Part of the input gradient that one task computes: rows of one image, or several whole images. */
typedef struct band {
        int64_t n, images, top, bottom; /* n: first image; rows [top, bottom) of the input */
        int64_t first, end;             /* output pixels whose windows overlap the band */
} band;

static window window_of(const lg_conv_geometry *at, int64_t pixel)
{
        window w;
        const int64_t per_image = at->out[0] * at->out[1], in_image = pixel % per_image;
        w.n = pixel / per_image;
        w.row = in_image / at->out[1] * at->stride[0] - at->padding[0];
        w.col = in_image % at->out[1] * at->stride[1] - at->padding[1];
        w.lo = w.col < 0 ? lg_least(lg_ceil_div(-w.col, at->dilation[1]), at->kernel[1]) : 0;
        w.hi = w.col < at->in[1] ? lg_least(lg_ceil_div(at->in[1] - w.col, at->dilation[1]), at->kernel[1]) : 0;
        w.hi = lg_most(w.hi, w.lo);
        return w;
}

#define LG_BOTH "conv_products.inc"
#include "both.inc"

static band band_of(const job *j, int64_t i)
{
        const lg_conv_geometry *at = &j->a->at;
        const int64_t per_image = at->out[0] * at->out[1];
        band b = {.n = i / j->bands * j->images, .top = at->in[0] * (i % j->bands) / j->bands};
        b.images = lg_least(j->images, j->a->n - b.n);
        b.bottom = at->in[0] * (i % j->bands + 1) / j->bands;
        b.first = b.n * per_image;
        b.end = b.first + b.images * per_image;
        if (j->bands > 1) {
                const int64_t above = b.top + at->padding[0] - (at->kernel[0] - 1) * at->dilation[0];
                const int64_t from = above > 0 ? lg_ceil_div(above, at->stride[0]) : 0;
                const int64_t to = lg_least(at->out[0], (b.bottom - 1 + at->padding[0]) / at->stride[0] + 1);
                b.first += lg_least(from, at->out[0]) * at->out[1];
                b.end = lg_most(b.n * per_image + to * at->out[1], b.first);
        }
        return b;
}

/* Computes a band of the input gradient: the sum of the windows g w of all pixels that overlap it. */
static void fill_band(const job *j, const band *b, char *windows)
{
        const lg_conv_args *a = j->a;
        const int64_t row = a->at.in[1] * a->channels;
        memset(element(j, a->out, (b->n * a->at.in[0] + b->top) * row), 0,
               (size_t)(((b->images - 1) * a->at.in[0] + b->bottom - b->top) * row * j->size));
        for (int64_t group = 0; group < a->at.groups; group++)
                for (int64_t first = b->first; first < b->end; first += j->tile) {
                        lg_gemm_args g = product_of(j, lg_least(j->tile, b->end - first), j->k, j->outputs);
                        g.a = element(j, a->g, first * a->outputs + group * j->outputs), g.a_row = a->outputs;
                        g.a_col = g.b_col = 1;
                        g.b = element(j, j->w, group * j->outputs * j->k), g.b_row = j->k;
                        g.c = windows, g.ldc = j->k;
                        lg_multiply(&g, lg_product_algorithm_of(&g), windows + j->windows_bytes);
                        (a->dtype == LG_F64 ? add_windows_f64 : add_windows_f32)(j, b, group, first, g.m, windows);
                }
}

static void fill_bands(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        for (int64_t i = first; i < end; i++) {
                const band b = band_of(j, i);
                fill_band(j, &b, j->scratch + thread * j->slot_bytes);
        }
}

static void turn_weights(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        (void)thread;
        (j->a->dtype == LG_F64 ? turn_outputs_f64 : turn_outputs_f32)(j, first, end);
}

static bool fill_input(lg_queue *q, job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t pixels = a->n * a->at.out[0] * a->at.out[1], per_image = a->at.out[0] * a->at.out[1];
        const int64_t fit = lg_most(TILE_BYTES / (lg_most(j->k, j->outputs) * j->size), TILE_PIXELS);
        j->tile = lg_least(fit, lg_most(lg_ceil_div(pixels, TASKS), TILE_PIXELS));
        j->images = lg_least(lg_ceil_div(FEW_PIXELS, per_image), lg_most(a->n / TASKS, 1));
        j->bands = a->n >= TASKS ? 1 : lg_least(lg_ceil_div(TASKS, a->n), lg_most(a->at.in[0] / 4, 1));
        if (!set_scratch(q, j, j->tile * j->k, lg_most(j->k, lg_most(j->outputs, j->tile))) ||
            !(j->w = q->workspace(q, (size_t)(a->outputs * j->k * j->size))))
                return false;
        lg_parallel(q, a->outputs, lg_grain(j->k), turn_weights, j);
        lg_conv_share(q, a, lg_ceil_div(a->n, j->images) * j->bands, fill_bands, j);
        return true;
}

/* ---- the weight gradient: for each kernel element, sums over runs of pixels ---- */

/* Finds the outputs [first, end) of dimension d for which kernel element k is inside the image. */
static void find_outputs(const lg_conv_geometry *at, int d, int64_t k, int64_t *ret_first, int64_t *ret_end)
{
        const int64_t before = at->padding[d] - k * at->dilation[d], after = at->in[d] + before;
        *ret_first = before > 0 ? lg_least(lg_ceil_div(before, at->stride[d]), at->out[d]) : 0;
        *ret_end =
                after > 0 ? lg_most(lg_least(lg_ceil_div(after, at->stride[d]), at->out[d]), *ret_first) : *ret_first;
}

static void sum_tap(const job *j, int64_t group, int64_t tap, char *sums)
{
        const lg_conv_args *a = j->a;
        const lg_conv_geometry *at = &a->at;
        const int64_t k[] = {tap / at->kernel[1], tap % at->kernel[1]};
        int64_t first[2], end[2];
        for (int d = 0; d < 2; d++)
                find_outputs(at, d, k[d], &first[d], &end[d]);
        lg_gemm_args g = product_of(j, j->outputs, j->channels, end[1] - first[1]);
        g.a_row = g.b_col = 1, g.a_col = a->outputs, g.b_row = at->stride[1] * a->channels;
        g.c = sums, g.ldc = j->channels;
        memset(sums, 0, (size_t)(j->outputs * j->channels * j->size));
        g.beta = 1;
        const int64_t col = first[1] * at->stride[1] - at->padding[1] + k[1] * at->dilation[1];
        for (int64_t n = 0; n < a->n && g.k > 0; n++)
                for (int64_t i = first[0]; i < end[0]; i++) {
                        const int64_t row = i * at->stride[0] - at->padding[0] + k[0] * at->dilation[0];
                        const int64_t in_pixel = (n * at->in[0] + row) * at->in[1] + col;
                        const int64_t out_pixel = (n * at->out[0] + i) * at->out[1] + first[1];
                        g.a = element(j, a->g, out_pixel * a->outputs + group * j->outputs);
                        g.b = element(j, a->x, in_pixel * a->channels + group * j->channels);
                        lg_multiply(&g, lg_product_algorithm_of(&g), sums + j->windows_bytes);
                }
        (a->dtype == LG_F64 ? put_sums_f64 : put_sums_f32)(j, group, tap, sums);
}

static void sum_taps(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        for (int64_t i = first; i < end; i++)
                sum_tap(j, i / j->taps, i % j->taps, j->scratch + thread * j->slot_bytes);
}

static bool sum_weights(lg_queue *q, job *j)
{
        const int64_t most = lg_most(lg_most(j->outputs, j->channels), j->a->at.out[1]);
        if (!set_scratch(q, j, j->outputs * j->channels, most))
                return false;
        lg_conv_share(q, j->a, j->taps * j->a->at.groups, sum_taps, j);
        return true;
}

bool lg_conv_products_fit(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        return a->kind != LG_CONV_FORWARD || (at->groups == 1 && !a->scale && lg_conv_is_plain(at));
}

bool lg_conv_products(lg_queue *q, const lg_conv_args *a)
{
        job j = {.a = a, .size = (int64_t)lg_bytes_of(a->dtype), .taps = a->at.kernel[0] * a->at.kernel[1]};
        j.channels = a->channels / a->at.groups;
        j.outputs = a->outputs / a->at.groups;
        j.k = j.channels * j.taps;
        if (j.k > INT32_MAX || a->outputs > INT32_MAX || a->channels > INT32_MAX)
                return lg_queue_fail(q, LG_BROKEN, "conv: more than 2^31 - 1 channels or elements in a window");
        if (a->at.groups == 1 && lg_conv_is_plain(&a->at))
                return multiply_pixels(q, &j);
        return a->kind == LG_CONV_INPUT_GRAD ? fill_input(q, &j) : sum_weights(q, &j);
}
