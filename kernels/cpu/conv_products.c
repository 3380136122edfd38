/* conv_products.c - convolution and its two derivatives as products: windows of the image are laid out as rows of a
 * matrix.
 *
 * Weights are brought to (outputs, kernel, channels), so that in an image with channels last a kernel row without
 * dilation is one run of memory. Images are worked on in tiles that only their sizes determine; each slot of the
 * parallel loop has one tile's matrix, so that scratch grows with the threads and not with the batch.
 */
#include "conv.h"

#define TILE_BYTES ((int64_t)1 << 20)
#define TILE_PIXELS 128 /* at least, or the weights are packed for too few rows */
#define TASKS 16
#define FEW_PIXELS 256
#define CHUNK_BYTES ((int64_t)16 << 20) /* all partial weight gradients together */

/* ---- the products of a tile, for one group ---- */

static lg_gemm_args product_of(const lg_conv_job *j, int64_t m, int64_t n, int64_t k)
{
        return (lg_gemm_args){.dtype = j->a->dtype, .m = m, .n = n, .k = k};
}

/* y = relu(windows w^T + bias + z), where the weights and the bias have the scale and the shift. */
static void forward_tile(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, char *windows)
{
        const lg_conv_args *a = j->a;
        const size_t run = (size_t)(j->outputs * j->size);
        const int64_t row = a->outputs * j->size;
        char *y = (char *)a->out + first * row + group * (int64_t)run;
        for (int64_t i = 0; i < count && a->z; i++)
                memcpy(y + i * row, lg_byte_at(a->z, y - (char *)a->out + i * row), run);
        lg_gemm_args g = product_of(j, count, j->outputs, j->k);
        g.a = windows;
        g.a_row = j->k;
        if (j->direct) {
                g.a = (const char *)a->x + (first * a->channels + group * j->channels) * j->size;
                g.a_row = a->channels;
        } else {
                lg_conv_gather(j, group, first, count, 0, a->at.kernel[0], windows);
        }
        g.a_col = g.b_row = 1;
        g.b = j->w + group * j->outputs * j->k * j->size;
        g.b_col = j->k;
        g.c = y;
        g.ldc = a->outputs;
        g.beta = a->z != NULL;
        g.bias = lg_byte_at(j->bias, group * (int64_t)run);
        g.relu = a->relu;
        lg_multiply(&g, lg_way_of(&g), windows + j->windows_bytes);
}

/* windows = g w, added to rows [top, bottom) of dx */
static void input_grad_tile(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, int64_t top,
                            int64_t bottom, char *windows)
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
        lg_multiply(&g, lg_way_of(&g), windows + j->windows_bytes);
        if (!j->direct)
                lg_conv_scatter(j, group, first, count, top, bottom, windows);
}

/* Columns of kernel rows [from, to) of dw += g^T windows; dw is (outputs, kernel, channels of a group). */
static void weight_grad_tile(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, int64_t from,
                             int64_t to, bool add, char *dw, char *windows)
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
                lg_conv_gather(j, group, first, count, from, to, windows);
        }
        g.c = dw + (group * j->outputs * j->k + from * row) * j->size;
        g.ldc = j->k;
        g.beta = add;
        lg_multiply(&g, lg_way_of(&g), windows + j->windows_bytes);
}

/* ---- the three kernels ---- */

/* One at a time for each thread, or all on this one. */
static void run_tasks(lg_queue *q, const lg_conv_job *j, int64_t tasks, lg_range_fn *run, const void *job)
{
        lg_parallel(q, tasks, j->slots > 1 ? 1 : lg_most(tasks, 1), run, job);
}

static void forward_tiles(const void *user, int64_t first, int64_t end, int thread)
{
        const lg_conv_job *j = user;
        const int64_t groups = j->a->at.groups;
        for (int64_t t = first; t < end; t++) {
                int64_t pixel = t / groups * j->tile;
                forward_tile(j, t % groups, pixel, lg_least(j->tile, j->pixels - pixel),
                             j->windows + thread * j->slot_bytes);
        }
}

static void forward(lg_queue *q, const lg_conv_job *j)
{
        run_tasks(q, j, lg_ceil_div(j->pixels, j->tile) * j->a->at.groups, forward_tiles, j);
}

/* Rows of one image, or several whole images, that one task fills. */
typedef struct band {
        int64_t n, images, top, bottom; /* of the input */
        int64_t first, end;             /* the output pixels that reach them */
} band;

static band band_of(const lg_conv_job *j, int64_t images, int64_t bands, int64_t i)
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

static void fill_band(const lg_conv_job *j, const band *b, char *windows)
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

typedef struct bands {
        const lg_conv_job *j;
        int64_t images, bands;
} bands;

static void fill_bands(const void *user, int64_t first, int64_t end, int thread)
{
        const bands *s = user;
        for (int64_t i = first; i < end; i++) {
                const band b = band_of(s->j, s->images, s->bands, i);
                fill_band(s->j, &b, s->j->windows + thread * s->j->slot_bytes);
        }
}

static void input_grad(lg_queue *q, const lg_conv_job *j)
{
        const lg_conv_args *a = j->a;
        int64_t per_image = lg_most(a->at.out[0] * a->at.out[1], 1);
        int64_t images = lg_least(lg_ceil_div(FEW_PIXELS, per_image), lg_most(a->n / TASKS, 1)); /* at a time */
        int64_t count =
                a->n >= TASKS || j->direct ? 1 : lg_least(lg_ceil_div(TASKS, a->n), lg_most(a->at.in[0] / 4, 1));
        run_tasks(q, j, lg_ceil_div(a->n, images) * count, fill_bands, &(bands){j, images, count});
}

/* How the sum over all pixels is cut: into chunks of tiles with a sum of their own, and by kernel rows. */
typedef struct cut {
        const lg_conv_job *j;
        int64_t chunks, rows, tiles;
        char *sums; /* (chunks, outputs, kernel, channels of a group) */
} cut;

static void sum_chunk(const lg_conv_job *j, const cut *c, int64_t task, char *windows)
{
        const int64_t groups = j->a->at.groups, kernel = j->a->at.kernel[0];
        const int64_t chunk = task / (c->rows * groups), row = task / groups % c->rows;
        char *sum = c->sums + chunk * j->a->outputs * j->k * j->size;
        const int64_t start = c->tiles * chunk / c->chunks, end = c->tiles * (chunk + 1) / c->chunks;
        for (int64_t t = start; t < end; t++)
                weight_grad_tile(j, task % groups, t * j->tile, lg_least(j->tile, j->pixels - t * j->tile),
                                 kernel * row / c->rows, kernel * (row + 1) / c->rows, t > start, sum, windows);
}

static void sum_chunks(const void *user, int64_t first, int64_t end, int thread)
{
        const cut *c = user;
        for (int64_t t = first; t < end; t++)
                sum_chunk(c->j, c, t, c->j->windows + thread * c->j->slot_bytes);
}

static bool weight_grad(lg_queue *q, const lg_conv_job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t bytes = a->outputs * j->k * j->size;
        cut c = {.j = j, .tiles = lg_ceil_div(j->pixels, j->tile)};
        c.chunks = lg_least(lg_least(c.tiles, TASKS), lg_most(CHUNK_BYTES / lg_most(bytes, 1), 1));
        c.rows = c.chunks * a->at.groups < TASKS ? a->at.kernel[0] : 1;
        const int64_t tasks = c.chunks * c.rows * a->at.groups;
        if (!(c.sums = q->workspace(q, (size_t)(c.chunks * bytes))))
                return false;
        run_tasks(q, j, tasks, sum_chunks, &c);
        const int64_t taps = a->at.kernel[0] * a->at.kernel[1];
        lg_conv_add_sums(q, a, &(lg_conv_sums){c.sums, c.chunks, a->outputs, taps, j->channels, j->channels});
        return true;
}

/* ---- preparation ---- */

/* Tiles that are few enough for the cache and many enough for threads. */
static int64_t tile_of(const lg_conv_job *j)
{
        int64_t fit = lg_most(TILE_BYTES / (lg_most(j->k, j->outputs) * j->size), TILE_PIXELS);
        int64_t share = lg_most(lg_ceil_div(j->pixels, TASKS), TILE_PIXELS);
        return lg_least(fit, share);
}

/* The scale and shift of an output in its weights and its bias. */
#define FOLD(suffix, type)                                                                                             \
        static void fold_##suffix(const lg_conv_job *j, int64_t o)                                                     \
        {                                                                                                              \
                const lg_conv_args *a = j->a;                                                                          \
                const type scale = ((const type *)a->scale)[o], b = a->b ? ((const type *)a->b)[o] : 0;                \
                type *w = (type *)j->w + o * j->k;                                                                     \
                for (int64_t i = 0; i < j->k; i++)                                                                     \
                        w[i] *= scale;                                                                                 \
                ((type *)j->bias)[o] = b * scale + ((const type *)a->shift)[o];                                        \
        }
FOLD(f32, float)
FOLD(f64, double)

static void bring_outputs(const void *user, int64_t first, int64_t end, int thread)
{
        const lg_conv_job *j = user;
        const int64_t bytes = j->k * j->size;
        (void)thread;
        for (int64_t o = first; o < end; o++) {
                lg_conv_kernel_first(j, j->w + o * bytes, (const char *)j->a->w + o * bytes);
                if (j->a->scale)
                        (j->a->dtype == LG_F64 ? fold_f64 : fold_f32)(j, o);
        }
}

static bool bring_weights(lg_queue *q, lg_conv_job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t bytes = j->k * j->size;
        j->w = lg_byte_at(a->w, 0);
        j->bias = lg_byte_at(a->b, 0);
        if (j->k == j->channels && !a->scale)
                return true;
        if (!(j->w = q->workspace(q, (size_t)(a->outputs * bytes))) ||
            (a->scale && !(j->bias = q->workspace(q, (size_t)(a->outputs * j->size)))))
                return false;
        lg_parallel(q, a->outputs, lg_grain(j->k), bring_outputs, j);
        return true;
}

static bool prepare(lg_queue *q, lg_conv_job *j)
{
        const lg_conv_geometry *at = &j->a->at;
        bool plain = true;
        for (int d = 0; d < 2; d++)
                plain = plain && at->kernel[d] == 1 && at->stride[d] == 1 && at->padding[d] == 0 &&
                        at->out[d] == at->in[d];
        j->direct = plain;
        j->tile = tile_of(j);
        double work = 2.0 * (double)j->pixels * (double)j->k * (double)j->a->outputs;
        j->slots = work < LG_PARALLEL_WORK ? 1 : q->threads;
        j->windows_bytes = j->direct ? 0 : lg_ceil_div(j->tile * j->k * j->size, 64) * 64;
        const int64_t most = lg_most(j->k, lg_most(j->outputs, j->tile));
        const lg_gemm_args largest = {.dtype = j->a->dtype, .m = most, .n = most, .k = most};
        const size_t strips = lg_multiply_bytes(&largest, LG_BY_STRIPS);
        const size_t short_strips = lg_multiply_bytes(&largest, LG_BY_SHORT_STRIPS);
        j->slot_bytes = j->windows_bytes + lg_ceil_div(lg_most((int64_t)strips, (int64_t)short_strips), 64) * 64;
        if (!(j->windows = q->workspace(q, (size_t)(j->slots * j->slot_bytes))))
                return false;
        return j->a->kind == LG_CONV_WEIGHT_GRAD || bring_weights(q, j);
}

bool lg_conv_products(lg_queue *q, const lg_conv_args *a)
{
        lg_conv_job j = {.a = a, .size = (int64_t)lg_bytes_of(a->dtype)};
        j.channels = a->channels / a->at.groups;
        j.outputs = a->outputs / a->at.groups;
        j.k = j.channels * a->at.kernel[0] * a->at.kernel[1];
        j.pixels = a->n * a->at.out[0] * a->at.out[1];
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
