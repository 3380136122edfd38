/* conv.c - convolution and its two derivatives as products: windows of the image are laid out as rows of a matrix.
 *
 * Weights are brought to (outputs, kernel, channels), so that in an image with channels last a kernel row without
 * dilation is one run of memory. Images are worked on in tiles that only their sizes determine; each slot of the
 * parallel loop has one tile's matrix, so that scratch grows with the threads and not with the batch.
 */
#include "cpu.h"

#define TILE_BYTES ((int64_t)1 << 20)
#define TILE_PIXELS 128 /* at least, or the weights are packed for too few rows */
#define TASKS 16
#define PARALLEL_WORK 1e6 /* in 2mnk */
#define FEW_PIXELS 256
#define CHUNK_BYTES ((int64_t)16 << 20) /* all partial weight gradients together */

typedef struct job {
        const lg_conv_args *a;
        int64_t size;                 /* of an element */
        int64_t channels, outputs, k; /* of a group; k: length of a row of its windows */
        int64_t pixels, tile;         /* of the output: all, at once */
        bool direct;                  /* an image is its own matrix of windows */
        char *w;                      /* (outputs, kernel, channels of a group) */
        int slots;                    /* of the parallel loop */
        int64_t slot_bytes;           /* of each slot's matrix of windows */
        char *windows;
} job;

/* ---- windows ---- */

/* Output pixel `pixel` of all: its image, the first input pixel it sees, and which columns of the kernel meet one. */
typedef struct window {
        int64_t n, row, col, lo, hi;
} window;

static window window_of(const lg_conv_geometry *at, int64_t pixel)
{
        window w;
        int64_t per_image = at->out[0] * at->out[1], in_image = pixel % per_image;
        w.n = pixel / per_image;
        w.row = in_image / at->out[1] * at->stride[0] - at->padding[0];
        w.col = in_image % at->out[1] * at->stride[1] - at->padding[1];
        w.lo = w.col < 0 ? lg_least(lg_ceil_div(-w.col, at->dilation[1]), at->kernel[1]) : 0;
        w.hi = w.col < at->in[1] ? lg_least(lg_ceil_div(at->in[1] - w.col, at->dilation[1]), at->kernel[1]) : 0;
        w.hi = lg_most(w.hi, w.lo);
        return w;
}

/* The element of x or dx that column `lo` of kernel row `row` meets, in a group. */
static int64_t image_offset(const job *j, const window *w, int64_t row, int64_t group)
{
        const lg_conv_geometry *at = &j->a->at;
        int64_t col = w->col + w->lo * at->dilation[1];
        return ((w->n * at->in[0] + row) * at->in[1] + col) * j->a->channels + group * j->channels;
}

/* A kernel row that lies in one run of the image. */
static bool joined(const job *j)
{
        return j->a->at.dilation[1] == 1 && j->a->at.groups == 1;
}

/* Kernel rows [from, to) of the windows of `count` pixels as a matrix. */
static void gather(const job *j, int64_t group, int64_t first, int64_t count, int64_t from, int64_t to, char *windows)
{
        const lg_conv_geometry *at = &j->a->at;
        const size_t run = (size_t)(j->channels * j->size);
        const int64_t step = at->dilation[1] * j->a->channels * j->size;
        for (int64_t i = 0; i < count; i++) {
                const window w = window_of(at, first + i);
                for (int64_t k = from; k < to; k++) {
                        int64_t row = w.row + k * at->dilation[0];
                        if (row < 0 || row >= at->in[0]) {
                                memset(windows, 0, (size_t)at->kernel[1] * run);
                                windows += (size_t)at->kernel[1] * run;
                                continue;
                        }
                        const char *image = (const char *)j->a->x + image_offset(j, &w, row, group) * j->size;
                        memset(windows, 0, (size_t)w.lo * run);
                        if (joined(j))
                                memcpy(windows + (size_t)w.lo * run, image, (size_t)(w.hi - w.lo) * run);
                        for (int64_t c = w.lo; c < w.hi && !joined(j); c++, image += step)
                                memcpy(windows + (size_t)c * run, image, run);
                        memset(windows + (size_t)w.hi * run, 0, (size_t)(at->kernel[1] - w.hi) * run);
                        windows += (size_t)at->kernel[1] * run;
                }
        }
}

#define TYPED(suffix, type)                                                                                            \
        static void add_##suffix(int64_t n, type *to, const type *from)                                                \
        {                                                                                                              \
                LG_SIMD                                                                                                \
                for (int64_t i = 0; i < n; i++)                                                                        \
                        to[i] += from[i];                                                                              \
        }                                                                                                              \
        /* (rows, kernel, channels) from (rows, channels, kernel) */                                                   \
        static void kernel_first_##suffix(int64_t channels, int64_t taps, type *to, const type *from)                  \
        {                                                                                                              \
                for (int64_t k = 0; k < taps; k++)                                                                     \
                        for (int64_t c = 0; c < channels; c++)                                                         \
                                to[k * channels + c] = from[c * taps + k];                                             \
        }                                                                                                              \
        /* and back: the sum of `count` rows, `apart` elements from each other */                                      \
        static void sum_back_##suffix(int64_t channels, int64_t taps, type *to, const type *from, int64_t count,       \
                                      int64_t apart)                                                                   \
        {                                                                                                              \
                for (int64_t c = 0; c < channels; c++)                                                                 \
                        for (int64_t k = 0; k < taps; k++) {                                                           \
                                type sum = 0;                                                                          \
                                for (int64_t i = 0; i < count; i++)                                                    \
                                        sum += from[i * apart + k * channels + c];                                     \
                                to[c * taps + k] = sum;                                                                \
                        }                                                                                              \
        }
TYPED(f32, float)
TYPED(f64, double)

/* Adds the windows of `count` pixels to rows [top, bottom) of dx. */
static void scatter(const job *j, int64_t group, int64_t first, int64_t count, int64_t top, int64_t bottom,
                    const char *windows)
{
        const lg_conv_geometry *at = &j->a->at;
        const int64_t run = joined(j) ? at->kernel[1] * j->channels : j->channels;
        const int64_t step = at->dilation[1] * j->a->channels * j->size;
        for (int64_t i = 0; i < count; i++) {
                const window w = window_of(at, first + i);
                for (int64_t k = 0; k < at->kernel[0]; k++, windows += at->kernel[1] * j->channels * j->size) {
                        int64_t row = w.row + k * at->dilation[0];
                        if (row < top || row >= bottom)
                                continue;
                        char *image = (char *)j->a->out + image_offset(j, &w, row, group) * j->size;
                        for (int64_t c = w.lo; c < w.hi; c = joined(j) ? w.hi : c + 1, image += step) {
                                const char *from = windows + c * j->channels * j->size;
                                int64_t n = joined(j) ? (w.hi - w.lo) * j->channels : run;
                                if (j->a->dtype == LG_F64)
                                        add_f64(n, (double *)image, (const double *)from);
                                else
                                        add_f32(n, (float *)image, (const float *)from);
                        }
                }
        }
}

/* ---- the products of a tile, for one group ---- */

static lg_gemm_args product_of(const job *j, int64_t m, int64_t n, int64_t k)
{
        return (lg_gemm_args){.dtype = j->a->dtype, .m = m, .n = n, .k = k};
}

/* y = windows w^T + b */
static void forward_tile(const job *j, int64_t group, int64_t first, int64_t count, char *windows)
{
        const lg_conv_args *a = j->a;
        const size_t run = (size_t)(j->outputs * j->size);
        char *y = (char *)a->out + (first * a->outputs + group * j->outputs) * j->size;
        for (int64_t i = 0; i < count && a->b; i++)
                memcpy(y + i * a->outputs * j->size, (const char *)a->b + group * (int64_t)run, run);
        lg_gemm_args g = product_of(j, count, j->outputs, j->k);
        g.a = windows;
        g.a_row = j->k;
        if (j->direct) {
                g.a = (const char *)a->x + (first * a->channels + group * j->channels) * j->size;
                g.a_row = a->channels;
        } else {
                gather(j, group, first, count, 0, a->at.kernel[0], windows);
        }
        g.a_col = g.b_row = 1;
        g.b = j->w + group * j->outputs * j->k * j->size;
        g.b_col = j->k;
        g.c = y;
        g.ldc = a->outputs;
        g.beta = a->b != NULL;
        lg_multiply(&g);
}

/* windows = g w, added to rows [top, bottom) of dx */
static void input_grad_tile(const job *j, int64_t group, int64_t first, int64_t count, int64_t top, int64_t bottom,
                            char *windows)
{
        const lg_conv_args *a = j->a;
        lg_gemm_args g = product_of(j, count, j->k, j->outputs);
        g.a = (const char *)a->g + (first * a->outputs + group * j->outputs) * j->size;
        g.a_row = a->outputs;
        g.a_col = g.b_col = 1;
        g.b = j->w + group * j->outputs * j->k * j->size;
        g.b_row = j->k;
        g.c = windows;
        g.ldc = j->k;
        if (j->direct) {
                g.c = (char *)a->out + (first * a->channels + group * j->channels) * j->size;
                g.ldc = a->channels;
        }
        lg_multiply(&g);
        if (!j->direct)
                scatter(j, group, first, count, top, bottom, windows);
}

/* Columns of kernel rows [from, to) of dw += g^T windows; dw is (outputs, kernel, channels of a group). */
static void weight_grad_tile(const job *j, int64_t group, int64_t first, int64_t count, int64_t from, int64_t to,
                             bool add, char *dw, char *windows)
{
        const lg_conv_args *a = j->a;
        const int64_t row = a->at.kernel[1] * j->channels;
        lg_gemm_args g = product_of(j, j->outputs, (to - from) * row, count);
        g.a = (const char *)a->g + (first * a->outputs + group * j->outputs) * j->size;
        g.a_row = g.b_col = 1;
        g.a_col = a->outputs;
        g.b = windows;
        g.b_row = g.n;
        if (j->direct) {
                g.b = (const char *)a->x + (first * a->channels + group * j->channels) * j->size;
                g.b_row = a->channels;
        } else {
                gather(j, group, first, count, from, to, windows);
        }
        g.c = dw + (group * j->outputs * j->k + from * row) * j->size;
        g.ldc = j->k;
        g.beta = add;
        lg_multiply(&g);
}

/* ---- the three kernels ---- */

static void forward(lg_queue *q, const job *j)
{
        int64_t groups = j->a->at.groups, tasks = lg_ceil_div(j->pixels, j->tile) * groups;
        LG_PARALLEL_FOR(q, j->slots > 1)
        for (int slot = 0; slot < j->slots; slot++) {
                for (int64_t t = tasks * slot / j->slots; t < tasks * (slot + 1) / j->slots; t++) {
                        int64_t first = t / groups * j->tile;
                        forward_tile(j, t % groups, first, lg_least(j->tile, j->pixels - first),
                                     j->windows + slot * j->slot_bytes);
                }
        }
}

/* Rows of one image, or several whole images, that one task fills. */
typedef struct band {
        int64_t n, images, top, bottom; /* of the input */
        int64_t first, end;             /* the output pixels that reach them */
} band;

static band band_of(const job *j, int64_t images, int64_t bands, int64_t i)
{
        const lg_conv_geometry *at = &j->a->at;
        const int64_t per_image = at->out[0] * at->out[1];
        band b = {.n = i / bands * images, .top = at->in[0] * (i % bands) / bands};
        b.images = lg_least(images, j->a->n - b.n);
        b.bottom = at->in[0] * (i % bands + 1) / bands;
        b.first = b.n * per_image;
        b.end = b.first + b.images * per_image;
        if (bands > 1) {
                int64_t above = b.top + at->padding[0] - (at->kernel[0] - 1) * at->dilation[0];
                int64_t from = above > 0 ? lg_ceil_div(above, at->stride[0]) : 0;
                int64_t to = lg_least(at->out[0], (b.bottom - 1 + at->padding[0]) / at->stride[0] + 1);
                b.first += lg_least(from, at->out[0]) * at->out[1];
                b.end = lg_most(b.n * per_image + to * at->out[1], b.first);
        }
        return b;
}

static void fill_band(const job *j, const band *b, char *windows)
{
        const lg_conv_args *a = j->a;
        const int64_t row = a->at.in[1] * a->channels * j->size;
        if (!j->direct)
                memset((char *)a->out + (b->n * a->at.in[0] + b->top) * row, 0,
                       (size_t)(((b->images - 1) * a->at.in[0] + b->bottom - b->top) * row));
        for (int64_t group = 0; group < a->at.groups; group++)
                for (int64_t first = b->first; first < b->end; first += j->tile)
                        input_grad_tile(j, group, first, lg_least(j->tile, b->end - first), b->top, b->bottom, windows);
}

static void input_grad(lg_queue *q, const job *j)
{
        const lg_conv_args *a = j->a;
        int64_t per_image = lg_most(a->at.out[0] * a->at.out[1], 1);
        int64_t images = lg_least(lg_ceil_div(FEW_PIXELS, per_image), lg_most(a->n / TASKS, 1)); /* at a time */
        int64_t bands =
                a->n >= TASKS || j->direct ? 1 : lg_least(lg_ceil_div(TASKS, a->n), lg_most(a->at.in[0] / 4, 1));
        int64_t tasks = lg_ceil_div(a->n, images) * bands;
        LG_PARALLEL_FOR(q, j->slots > 1)
        for (int slot = 0; slot < j->slots; slot++) {
                for (int64_t t = tasks * slot / j->slots; t < tasks * (slot + 1) / j->slots; t++) {
                        const band b = band_of(j, images, bands, t);
                        fill_band(j, &b, j->windows + slot * j->slot_bytes);
                }
        }
}

/* How the sum over all pixels is cut: into chunks of tiles with a sum of their own, and by kernel rows. */
typedef struct cut {
        int64_t chunks, rows, tiles;
        char *sums; /* (chunks, outputs, kernel, channels of a group) */
} cut;

static void sum_chunk(const job *j, const cut *c, int64_t task, char *windows)
{
        const int64_t groups = j->a->at.groups, kernel = j->a->at.kernel[0];
        const int64_t chunk = task / (c->rows * groups), row = task / groups % c->rows;
        char *sum = c->sums + chunk * j->a->outputs * j->k * j->size;
        const int64_t start = c->tiles * chunk / c->chunks, end = c->tiles * (chunk + 1) / c->chunks;
        for (int64_t t = start; t < end; t++)
                weight_grad_tile(j, task % groups, t * j->tile, lg_least(j->tile, j->pixels - t * j->tile),
                                 kernel * row / c->rows, kernel * (row + 1) / c->rows, t > start, sum, windows);
}

static void sum_chunks(lg_queue *q, const job *j, const cut *c)
{
        const lg_conv_args *a = j->a;
        const int64_t taps = a->at.kernel[0] * a->at.kernel[1], all = a->outputs * j->k;
        LG_PARALLEL_FOR(q, all * c->chunks >= LG_PARALLEL_MIN)
        for (int64_t o = 0; o < a->outputs; o++) {
                const int64_t offset = o * j->k;
                if (a->dtype == LG_F64)
                        sum_back_f64(j->channels, taps, (double *)a->out + offset, (const double *)c->sums + offset,
                                     c->chunks, all);
                else
                        sum_back_f32(j->channels, taps, (float *)a->out + offset, (const float *)c->sums + offset,
                                     c->chunks, all);
        }
}

static bool weight_grad(lg_queue *q, const job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t bytes = a->outputs * j->k * j->size;
        cut c = {.tiles = lg_ceil_div(j->pixels, j->tile)};
        c.chunks = lg_least(lg_least(c.tiles, TASKS), lg_most(CHUNK_BYTES / lg_most(bytes, 1), 1));
        c.rows = c.chunks * a->at.groups < TASKS ? a->at.kernel[0] : 1;
        const int64_t tasks = c.chunks * c.rows * a->at.groups;
        if (!(c.sums = q->workspace(q, (size_t)(c.chunks * bytes))))
                return false;
        LG_PARALLEL_FOR(q, j->slots > 1)
        for (int slot = 0; slot < j->slots; slot++) {
                for (int64_t t = tasks * slot / j->slots; t < tasks * (slot + 1) / j->slots; t++)
                        sum_chunk(j, &c, t, j->windows + slot * j->slot_bytes);
        }
        sum_chunks(q, j, &c);
        return true;
}

/* ---- preparation ---- */

/* Tiles that are few enough for the cache and many enough for threads. */
static int64_t tile_of(const job *j)
{
        int64_t fit = lg_most(TILE_BYTES / (lg_most(j->k, j->outputs) * j->size), TILE_PIXELS);
        int64_t share = lg_most(lg_ceil_div(j->pixels, TASKS), TILE_PIXELS);
        return lg_least(fit, share);
}

static bool bring_weights(lg_queue *q, job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t taps = a->at.kernel[0] * a->at.kernel[1];
        j->w = taps == 1 ? (char *)(uintptr_t)a->w : q->workspace(q, (size_t)(a->outputs * j->k * j->size));
        LG_PARALLEL_FOR(q, a->outputs * j->k >= LG_PARALLEL_MIN)
        for (int64_t o = 0; o < (taps > 1 && j->w ? a->outputs : 0); o++) {
                if (a->dtype == LG_F64)
                        kernel_first_f64(j->channels, taps, (double *)j->w + o * j->k, (const double *)a->w + o * j->k);
                else
                        kernel_first_f32(j->channels, taps, (float *)j->w + o * j->k, (const float *)a->w + o * j->k);
        }
        return j->w != NULL;
}

static bool prepare(lg_queue *q, job *j)
{
        const lg_conv_geometry *at = &j->a->at;
        bool plain = true;
        for (int d = 0; d < 2; d++)
                plain = plain && at->kernel[d] == 1 && at->stride[d] == 1 && at->padding[d] == 0 &&
                        at->out[d] == at->in[d];
        j->direct = plain;
        j->tile = tile_of(j);
        double work = 2.0 * (double)j->pixels * (double)j->k * (double)j->a->outputs;
        j->slots = work < PARALLEL_WORK ? 1 : q->threads;
        j->slot_bytes = j->direct ? 0 : lg_ceil_div(j->tile * j->k * j->size, 64) * 64;
        if (!(j->windows = q->workspace(q, (size_t)(j->slots * j->slot_bytes))))
                return false;
        return j->a->kind == LG_CONV_WEIGHT_GRAD || bring_weights(q, j);
}

/* Nothing to sum: zeros, or the bias alone. */
static void fill_empty(const job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t image = a->n * a->at.in[0] * a->at.in[1] * a->channels;
        const int64_t count = a->kind == LG_CONV_INPUT_GRAD    ? image
                              : a->kind == LG_CONV_WEIGHT_GRAD ? a->outputs * j->k
                                                               : j->pixels * a->outputs;
        if (count && !a->b)
                memset(a->out, 0, (size_t)(count * j->size));
        for (int64_t i = 0; count && a->b && i < j->pixels; i++)
                memcpy((char *)a->out + i * a->outputs * j->size, a->b, (size_t)(a->outputs * j->size));
}

bool lg_conv_products(lg_queue *q, const lg_conv_args *a)
{
        job j = {.a = a, .size = (int64_t)lg_size_of(a->dtype)};
        j.channels = a->channels / a->at.groups;
        j.outputs = a->outputs / a->at.groups;
        j.k = j.channels * a->at.kernel[0] * a->at.kernel[1];
        j.pixels = a->n * a->at.out[0] * a->at.out[1];
        if (j.pixels == 0 || j.k == 0 || j.outputs == 0) {
                fill_empty(&j);
                return true;
        }
        if (j.k > INT32_MAX || a->outputs > INT32_MAX || a->channels > INT32_MAX)
                return lg_queue_fail(q, LG_BROKEN, "conv: more than 2^31 - 1 channels or elements in a window");
        if (!prepare(q, &j))
                return false;
        if (a->kind == LG_CONV_WEIGHT_GRAD)
                return weight_grad(q, &j);
        if (a->kind == LG_CONV_FORWARD)
                forward(q, &j);
        else
                input_grad(q, &j);
        return true;
}

/* By way of f32 copies. */
static bool conv_half(lg_queue *q, const lg_conv_args *a)
{
        const int64_t x = a->n * a->at.in[0] * a->at.in[1] * a->channels;
        const int64_t y = a->n * a->at.out[0] * a->at.out[1] * a->outputs;
        const int64_t w = a->outputs * (a->channels / a->at.groups) * a->at.kernel[0] * a->at.kernel[1];
        const int64_t out = a->kind == LG_CONV_FORWARD ? y : a->kind == LG_CONV_INPUT_GRAD ? x : w;
        lg_conv_args f = *a;
        f.dtype = LG_F32;
        if ((a->x && !(f.x = lg_widen(q, a->dtype, x, a->x))) || (a->g && !(f.g = lg_widen(q, a->dtype, y, a->g))) ||
            (a->w && !(f.w = lg_widen(q, a->dtype, w, a->w))) ||
            (a->b && !(f.b = lg_widen(q, a->dtype, a->outputs, a->b))) || !(f.out = lg_widen(q, a->dtype, out, NULL)) ||
            !LG_CPU(conv)(q, &f))
                return false;
        lg_narrow(q, a->dtype, out, a->out, f.out);
        return true;
}

bool LG_CPU(conv)(lg_queue *q, const lg_conv_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "conv: no kernel for dtype %d", (int)a->dtype);
        return lg_is_half(a->dtype) ? conv_half(q, a) : lg_conv_products(q, a);
}
