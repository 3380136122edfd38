/* conv_products.cu - convolution as matrix products: windows of the images become rows of a matrix (im2col).
 *
 * A row belongs to an output pixel and is (groups, kernel, channels of a group); weights are brought to the same order.
 * Pixels are processed in chunks, so that scratch memory does not grow with the batch. Sums over windows or chunks are
 * computed in f32 at least.
 */
#include "conv.h"

#if defined LG_CUDASIM || defined PTX_NARROW_H /* small chunks on the CPU, so that small tests have several */
#define CHUNK_BYTES ((int64_t)16 << 10)
#define IMAGE_MOST ((int64_t)256 << 10)
#else
#define CHUNK_BYTES ((int64_t)64 << 20)
#define IMAGE_MOST ((int64_t)256 << 20) /* bytes of the windows of one image, at most, for an input gradient */
#endif
#define SMALL ((int64_t)1 << 31)

/* A convolution as seen by the kernels that copy windows. */
typedef struct view {
        int in[2], kernel[2], out[2], stride[2], padding[2], dilation[2];
        int channels, in_group, groups;
        unsigned first, count; /* the output pixels of the chunk, numbered over all images */
        lg_divisor by_kernel[2], by_out[2], by_in[2], by_stride[2], by_groups, by_packs;
} view;

static view view_of(const lg_conv_args *a, int64_t first, int64_t count, int pack)
{
        const lg_conv_geometry *g = &a->at;
        view v;
        for (int i = 0; i < 2; i++) {
                v.in[i] = (int)g->in[i];
                v.kernel[i] = (int)g->kernel[i];
                v.out[i] = (int)g->out[i];
                v.stride[i] = (int)g->stride[i];
                v.padding[i] = (int)g->padding[i];
                v.dilation[i] = (int)g->dilation[i];
                v.by_kernel[i] = lg_divisor_of(g->kernel[i]);
                v.by_out[i] = lg_divisor_of(g->out[i]);
                v.by_in[i] = lg_divisor_of(g->in[i]);
                v.by_stride[i] = lg_divisor_of(g->stride[i]);
        }
        v.channels = (int)a->channels;
        v.groups = (int)g->groups;
        v.in_group = (int)(a->channels / g->groups);
        v.first = (unsigned)first;
        v.count = (unsigned)count;
        v.by_groups = lg_divisor_of(g->groups);
        v.by_packs = lg_divisor_of(v.in_group / pack);
        return v;
}

/* Gathers rows[p, group, k, l, c]: the input that output pixel first + p reads at kernel element (k, l), or 0. */
template <typename F, typename T, int V> static __global__ void gather_loop(view v, const F *x, T *rows, unsigned total)
{
        for (unsigned e = (unsigned)LG_FIRST; e < total; e += (unsigned)LG_STEP) {
                unsigned rest = e;
                const int c = (int)lg_split(&rest, v.by_packs) * V;
                const int l = (int)lg_split(&rest, v.by_kernel[1]), k = (int)lg_split(&rest, v.by_kernel[0]);
                const int group = (int)lg_split(&rest, v.by_groups);
                rest += v.first;
                const int j = (int)lg_split(&rest, v.by_out[1]), i = (int)lg_split(&rest, v.by_out[0]);
                const int64_t at_y = (int64_t)i * v.stride[0] - v.padding[0] + (int64_t)k * v.dilation[0];
                const int64_t at_x = (int64_t)j * v.stride[1] - v.padding[1] + (int64_t)l * v.dilation[1];
                lg_pack<T, V> to;
                if (at_y >= 0 && at_y < v.in[0] && at_x >= 0 && at_x < v.in[1]) {
                        const lg_pack<F, V> from =
                                *(const lg_pack<F, V> *)(x +
                                                         ((rest * (int64_t)v.in[0] + at_y) * v.in[1] + at_x) *
                                                                 v.channels +
                                                         group * v.in_group + c);
                        for (int u = 0; u < V; u++)
                                to.v[u] = (T)lg_wide(from.v[u]);
                } else {
                        for (int u = 0; u < V; u++)
                                to.v[u] = (T)0;
                }
                ((lg_pack<T, V> *)rows)[e] = to;
        }
}

/* Returns the output pixel that reads input pixel x through kernel element k along dimension `side`, or -1. */
static __device__ inline int seen_from(const view &v, int side, int x, int k)
{
        const int64_t from = (int64_t)x + v.padding[side] - (int64_t)k * v.dilation[side];
        if (from < 0 || from >= SMALL)
                return -1;
        unsigned i = (unsigned)from;
        return lg_split(&i, v.by_stride[side]) == 0 && i < (unsigned)v.out[side] ? (int)i : -1;
}

/* Computes dx[n, y, x, c] = sum of rows[(n, i, j), group, k, l, c] over the windows that contain pixel (y, x). */
template <typename H, typename T, int V>
static __global__ void spread_loop(view v, const H *rows, T *dx, unsigned total)
{
        for (unsigned e = (unsigned)LG_FIRST; e < total; e += (unsigned)LG_STEP) {
                unsigned n = e;
                const int c = (int)lg_split(&n, v.by_packs) * V, group = (int)lg_split(&n, v.by_groups);
                const int x = (int)lg_split(&n, v.by_in[1]), y = (int)lg_split(&n, v.by_in[0]);
                H sum[V];
                for (int u = 0; u < V; u++)
                        sum[u] = 0;
                for (int k = 0; k < v.kernel[0]; k++) {
                        const int i = seen_from(v, 0, y, k);
                        for (int l = 0; i >= 0 && l < v.kernel[1]; l++) {
                                const int j = seen_from(v, 1, x, l);
                                if (j < 0)
                                        continue;
                                const int64_t row = ((int64_t)n * v.out[0] + i) * v.out[1] + j;
                                const int64_t at = ((row * v.groups + group) * v.kernel[0] + k) * v.kernel[1] + l;
                                const lg_pack<H, V> from = *(const lg_pack<H, V> *)(rows + at * v.in_group + c);
                                for (int u = 0; u < V; u++)
                                        sum[u] += from.v[u];
                        }
                }
                lg_pack<T, V> to;
                for (int u = 0; u < V; u++)
                        lg_put(&to.v[u], sum[u]);
                ((lg_pack<T, V> *)dx)[e] = to;
        }
}

/* ---- on the host ---- */

/* The state of a convolution by matrix products. */
typedef struct job {
        lg_queue *q;
        const lg_conv_args *a;
        int64_t in_group, out_group, k, pixels;
        bool plain;    /* 1 x 1 windows: the rows are those of the image itself */
        lg_dtype work; /* dtype of `rows`: f32 for 16-bit data that is summed over windows or chunks */
        int64_t chunk; /* output pixels per chunk */
        char *rows;
} job;

static char *scratch(lg_queue *q, int64_t elements, lg_dtype t)
{
        return (char *)q->workspace(q, (size_t)elements * lg_bytes_of(t));
}

static const char *element(const void *p, int64_t i, lg_dtype t)
{
        return (const char *)p + i * (int64_t)lg_bytes_of(t);
}

template <typename F, typename T> static bool gather_as(const job *j, int64_t first, int64_t count)
{
        constexpr int V = 16 / (int)sizeof(F);
        const int64_t total = count * j->a->at.groups * j->k;
        const F *x = (const F *)j->a->x;
        T *rows = (T *)j->rows;
        if (j->in_group % V == 0 && lg_is_aligned(x, 16))
                return lg_launch(j->q, "conv (windows)", gather_loop<F, T, V>, lg_blocks(j->q, total / V),
                                 view_of(j->a, first, count, V), x, rows, (unsigned)(total / V));
        return lg_launch(j->q, "conv (windows)", gather_loop<F, T, 1>, lg_blocks(j->q, total),
                         view_of(j->a, first, count, 1), x, rows, (unsigned)total);
}

static bool gather(const job *j, int64_t first, int64_t count)
{
        if (j->work == j->a->dtype && lg_bytes_of(j->work) == 2)
                return gather_as<uint16_t, uint16_t>(j, first, count);
        return LG_WITH_STORED(j->a->dtype, gather_as<T, LG_COMPUTE(T)>(j, first, count));
}

template <typename H, typename T> static bool spread_as(const job *j, int64_t first, int64_t count)
{
        constexpr int V = 16 / (int)sizeof(H);
        const lg_conv_geometry *g = &j->a->at;
        const int64_t images = count / (g->out[0] * g->out[1]), image = g->in[0] * g->in[1] * j->a->channels;
        const H *rows = (const H *)j->rows;
        T *dx = (T *)j->a->out + first / (g->out[0] * g->out[1]) * image;
        if (j->in_group % V == 0 && lg_is_aligned(dx, V * sizeof(T)))
                return lg_launch(j->q, "conv (spread)", spread_loop<H, T, V>, lg_blocks(j->q, images * image / V),
                                 view_of(j->a, first, count, V), rows, dx, (unsigned)(images * image / V));
        return lg_launch(j->q, "conv (spread)", spread_loop<H, T, 1>, lg_blocks(j->q, images * image),
                         view_of(j->a, first, count, 1), rows, dx, (unsigned)(images * image));
}

static bool spread(const job *j, int64_t first, int64_t count)
{
        return LG_WITH_STORED(j->a->dtype, spread_as<LG_COMPUTE(T), T>(j, first, count));
}

/* Computes a product for each group; the batch arguments are the distances in elements from one group to the next. */
static bool multiply(const job *j, lg_gemm_args *p, int64_t a_batch, int64_t b_batch, int64_t c_batch)
{
        p->batch_ndim = j->a->at.groups > 1;
        p->batch[0] = j->a->at.groups;
        p->a_batch[0] = a_batch;
        p->b_batch[0] = b_batch;
        p->c_batch[0] = c_batch;
        const bool tf32 = j->q->tf32;
        j->q->tf32 = j->q->conv_tf32;
        const bool done = lg_cuda_gemm(j->q, p);
        j->q->tf32 = tf32;
        return done;
}

static lg_gemm_args product_of(lg_dtype t, int64_t m, int64_t n, int64_t k)
{
        lg_gemm_args p = {};
        p.dtype = t;
        p.m = m;
        p.n = n;
        p.k = k;
        return p;
}

/* Converts n elements at p from a's dtype to j->work in `room`, or returns p if they have it. NULL on failure. */
static const void *as_work(const job *j, const void *p, int64_t n, void *room)
{
        lg_copy_args c = {};
        if (j->work == j->a->dtype)
                return p;
        c.ndim = 1;
        c.shape[0] = n;
        c.in_strides[0] = c.out_strides[0] = 1;
        c.in_dtype = j->a->dtype;
        c.out_dtype = j->work;
        c.in = p;
        c.out = room;
        return room && lg_cuda_copy(j->q, &c) ? room : NULL;
}

static bool is_channels_last(const lg_conv_args *a)
{
        return a->weights_last || a->at.kernel[0] * a->at.kernel[1] == 1;
}

/* Returns w as (outputs, kernel, channels of a group) of dtype j->work, or NULL on failure. */
static const void *weights_of(const job *j)
{
        if (is_channels_last(j->a) && j->work == j->a->dtype)
                return j->a->w;
        char *w = scratch(j->q, lg_conv_weights(j->a), j->work);
        return w && lg_conv_weights_last(j->q, j->a, w, j->work) ? w : NULL;
}

/* Computes y = b + rows w^T in chunks. */
static bool forward(const job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t width = a->at.groups * j->k;
        const void *w = weights_of(j);
        if (!w || (a->b && !lg_conv_bias(j->q, a, false)))
                return false;
        for (int64_t first = 0; first < j->pixels; first += j->chunk) {
                const int64_t count = j->pixels - first < j->chunk ? j->pixels - first : j->chunk;
                lg_gemm_args p = product_of(a->dtype, count, j->out_group, j->k);
                if (!j->plain && !gather(j, first, count))
                        return false;
                p.a = j->plain ? element(a->x, first * a->channels, a->dtype) : j->rows;
                p.a_row = width;
                p.a_col = p.b_row = 1;
                p.b = w;
                p.b_col = j->k;
                p.c = (void *)element(a->out, first * a->outputs, a->dtype);
                p.ldc = a->outputs;
                p.beta = a->b != NULL;
                if (!multiply(j, &p, j->k, j->out_group * j->k, j->out_group))
                        return false;
        }
        return true;
}

/* Computes rows = g w in chunks, and each input pixel as the sum of its elements in the rows. */
static bool input_grad(const job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t width = a->at.groups * j->k;
        const void *w = weights_of(j);
        char *room = j->work == a->dtype ? NULL : scratch(j->q, j->chunk * a->outputs, j->work);
        if (!w || (j->work != a->dtype && !room))
                return false;
        for (int64_t first = 0; first < j->pixels; first += j->chunk) {
                const int64_t count = j->pixels - first < j->chunk ? j->pixels - first : j->chunk;
                lg_gemm_args p = product_of(j->work, count, j->k, j->out_group);
                p.a = as_work(j, element(a->g, first * a->outputs, a->dtype), count * a->outputs, room);
                p.a_row = a->outputs;
                p.a_col = p.b_col = 1;
                p.b = w;
                p.b_row = j->k;
                p.c = j->plain ? (void *)element(a->out, first * a->channels, a->dtype) : j->rows;
                p.ldc = width;
                if (!p.a || !multiply(j, &p, j->out_group, j->out_group * j->k, j->k) ||
                    (!j->plain && !spread(j, first, count)))
                        return false;
        }
        return true;
}

/* Computes dw as the sum of g^T rows over the chunks. */
static bool weight_grad(const job *j)
{
        const lg_conv_args *a = j->a;
        const int64_t width = a->at.groups * j->k;
        const bool own = !is_channels_last(a) || j->work != a->dtype;
        char *dw = own ? scratch(j->q, lg_conv_weights(a), j->work) : (char *)a->out;
        char *room = j->work == a->dtype ? NULL : scratch(j->q, j->chunk * a->outputs, j->work);
        if (!dw || (j->work != a->dtype && !room))
                return false;
        for (int64_t first = 0; first < j->pixels; first += j->chunk) {
                const int64_t count = j->pixels - first < j->chunk ? j->pixels - first : j->chunk;
                lg_gemm_args p = product_of(j->work, j->out_group, j->k, count);
                if (!j->plain && !gather(j, first, count))
                        return false;
                p.a = as_work(j, element(a->g, first * a->outputs, a->dtype), count * a->outputs, room);
                p.a_row = p.b_col = 1;
                p.a_col = a->outputs;
                p.b = j->plain ? (const char *)a->x : j->rows;
                p.b_row = width;
                p.c = dw;
                p.ldc = j->k;
                p.beta = first > 0;
                if (!p.a || !multiply(j, &p, j->out_group, j->k, j->out_group * j->k))
                        return false;
        }
        return !own || lg_conv_weights_back(j->q, a, dw, j->work);
}

/* Returns the number of pixels whose rows of dtype t fit a chunk: whole images for an input gradient. */
static int64_t chunk_of(const job *j, lg_dtype t)
{
        const int64_t row = j->a->at.groups * j->k * (int64_t)lg_bytes_of(t), image = j->a->at.out[0] * j->a->at.out[1];
        int64_t chunk = CHUNK_BYTES / row;
        if (j->a->kind == LG_CONV_INPUT_GRAD) {
                const int64_t most = (SMALL - 1) / (j->a->at.in[0] * j->a->at.in[1] * j->a->channels);
                const int64_t images = chunk / image < most ? chunk / image : most;
                chunk = (images < 1 ? 1 : images) * image;
        }
        return chunk < 1 ? 1 : chunk < j->pixels ? chunk : j->pixels;
}

static job job_of(lg_queue *q, const lg_conv_args *a)
{
        const lg_conv_geometry *g = &a->at;
        job j = {q, a, a->channels / g->groups, a->outputs / g->groups, 0, 0, true, a->dtype, 0, NULL};
        j.k = j.in_group * g->kernel[0] * g->kernel[1];
        j.pixels = a->n * g->out[0] * g->out[1];
        for (int i = 0; i < 2; i++)
                j.plain = j.plain && g->kernel[i] == 1 && g->stride[i] == 1 && g->padding[i] == 0 &&
                          g->in[i] == g->out[i];
        j.chunk = j.plain ? j.pixels : chunk_of(&j, a->dtype);
        const bool sums = a->kind == LG_CONV_INPUT_GRAD || (a->kind == LG_CONV_WEIGHT_GRAD && j.chunk < j.pixels);
        if (!j.plain && sums && a->dtype != LG_F64) {
                j.work = LG_F32;
                j.chunk = chunk_of(&j, j.work);
        }
        return j;
}

/* Returns false for empty and depthwise convolutions (tiny products) and for sizes that exceed the limits. */
bool lg_conv_has_products(const lg_conv_args *a)
{
        const lg_conv_geometry *g = &a->at;
        int64_t weights = lg_conv_weights(a), pixels = a->n * g->out[0] * g->out[1];
        int64_t inputs = a->n * g->in[0] * g->in[1] * a->channels;
        if (weights == 0 || pixels == 0 || inputs == 0 || (g->groups > 1 && a->channels == g->groups))
                return false;
        for (int i = 0; i < 2; i++)
                if (g->stride[i] >= SMALL || g->padding[i] >= SMALL || g->dilation[i] >= SMALL)
                        return false;
        const int64_t row = g->groups * (weights / a->outputs), image = g->out[0] * g->out[1] * row;
        return weights < SMALL && pixels < SMALL && inputs / a->n < SMALL && row < SMALL / 64 &&
               (a->kind != LG_CONV_INPUT_GRAD || image * (int64_t)lg_bytes_of(a->dtype) <= IMAGE_MOST);
}

bool lg_conv_products(lg_queue *q, const lg_conv_args *a)
{
        job j = job_of(q, a);
        if (!j.plain) {
                j.rows = scratch(q, j.chunk * a->at.groups * j.k, j.work);
                if (!j.rows)
                        return false;
        }
        return a->kind == LG_CONV_FORWARD      ? forward(&j)
               : a->kind == LG_CONV_INPUT_GRAD ? input_grad(&j)
                                               : weight_grad(&j);
}
