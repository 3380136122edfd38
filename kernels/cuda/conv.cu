/* conv.cu - convolution: by cuDNN, by matrix products, or directly by its formulas.
 *
 * The direct kernels serve what the others refuse: depthwise and empty convolutions, and images whose windows would not
 * fit in memory. They have a thread for each element of the result, a block for each one of a weight gradient.
 */
#include "conv.h"
#include "dnn.h"

/* ---- weights and biases ---- */

static lg_copy_args weights_copy(const lg_conv_args *a)
{
        const int64_t kernel = a->at.kernel[0] * a->at.kernel[1], channels = a->channels / a->at.groups;
        lg_copy_args c = {};
        c.ndim = 3;
        c.shape[0] = a->outputs;
        c.shape[1] = kernel;
        c.shape[2] = channels;
        c.in_strides[0] = c.out_strides[0] = kernel * channels;
        c.in_dtype = c.out_dtype = a->dtype;
        return c;
}

bool lg_conv_weights_last(lg_queue *q, const lg_conv_args *a, void *to, lg_dtype t)
{
        lg_copy_args c = weights_copy(a);
        c.in = a->w;
        c.in_strides[1] = a->weights_last ? c.shape[2] : 1;
        c.in_strides[2] = a->weights_last ? 1 : c.shape[1];
        c.out_strides[1] = c.shape[2];
        c.out_strides[2] = 1;
        c.out = to;
        c.out_dtype = t;
        return lg_cuda_copy(q, &c);
}

bool lg_conv_weights_back(lg_queue *q, const lg_conv_args *a, const void *from, lg_dtype t)
{
        lg_copy_args c = weights_copy(a);
        c.in = from;
        c.in_dtype = t;
        c.in_strides[1] = c.shape[2];
        c.in_strides[2] = 1;
        c.out_strides[1] = a->weights_last ? c.shape[2] : 1;
        c.out_strides[2] = a->weights_last ? 1 : c.shape[1];
        c.out = a->out;
        return lg_cuda_copy(q, &c);
}

template <typename T, int V>
static __global__ void bias_loop(const T *b, T *y, lg_divisor packs, unsigned rows_step, int64_t rows, bool add)
{
        unsigned row = (unsigned)LG_FIRST;
        const unsigned at = lg_split(&row, packs);
        const lg_pack<T, V> values = ((const lg_pack<T, V> *)b)[at];
        for (int64_t r = row; r < rows && row < rows_step; r += rows_step) {
                lg_pack<T, V> *to = (lg_pack<T, V> *)y + r * packs.by + at, sum = values;
                if (add) {
                        const lg_pack<T, V> was = *to;
                        for (int u = 0; u < V; u++)
                                lg_put(&sum.v[u], lg_wide(was.v[u]) + lg_wide(values.v[u]));
                }
                *to = sum;
        }
}

/* How threads cover y: a thread has a fixed place within a row and handles every step-th row from its own on. */
typedef struct row_loop {
        lg_divisor packs;
        unsigned step;
        int64_t rows, blocks;
} row_loop;

static row_loop row_loop_of(lg_queue *q, const lg_conv_args *a, int pack)
{
        const int64_t packs = a->outputs / pack, most = (int64_t)lg_cuda(q)->processors * 16;
        row_loop l = {lg_divisor_of(packs), 0, a->n * a->at.out[0] * a->at.out[1], 0};
        l.blocks = l.rows ? (packs + LG_THREADS - 1) / LG_THREADS : 0;
        while (l.blocks < most && l.blocks * LG_THREADS < l.rows * packs)
                l.blocks *= 2;
        l.step = packs ? (unsigned)(l.blocks * LG_THREADS / packs) : 0;
        return l;
}

template <typename T> static bool add_bias(lg_queue *q, const lg_conv_args *a, bool add)
{
        constexpr int V = 16 / (int)sizeof(T);
        const T *b = (const T *)a->b;
        T *y = (T *)a->out;
        const bool packed = a->outputs % V == 0 && lg_is_aligned(b, 16) && lg_is_aligned(y, 16);
        const row_loop l = row_loop_of(q, a, packed ? V : 1);
        return packed ? lg_launch(q, "conv (bias)", bias_loop<T, V>, l.blocks, b, y, l.packs, l.step, l.rows, add)
                      : lg_launch(q, "conv (bias)", bias_loop<T, 1>, l.blocks, b, y, l.packs, l.step, l.rows, add);
}

bool lg_conv_bias(lg_queue *q, const lg_conv_args *a, bool add)
{
        return LG_WITH_STORED(a->dtype, add_bias<T>(q, a, add));
}

/* ---- the epilogue of a forward convolution, after any of the algorithms ---- */

template <typename T, int V>
static __global__ void end_loop(lg_conv_args a, lg_divisor packs, unsigned rows_step, int64_t rows)
{
        typedef LG_COMPUTE(T) H;
        unsigned row = (unsigned)LG_FIRST;
        const unsigned at = lg_split(&row, packs) * V;
        H bias[V] = {0}, scale[V], shift[V], y[V], z[V];
        if (a.b)
                lg_read<T, V>((const T *)a.b + at, bias);
        if (a.scale) {
                lg_read<H, V>((const H *)a.scale + at, scale);
                lg_read<H, V>((const H *)a.shift + at, shift);
        }
        for (int64_t r = row; r < rows && row < rows_step; r += rows_step) {
                const int64_t from = r * a.outputs + at;
                lg_read<T, V>((const T *)a.out + from, y);
                if (a.z)
                        lg_read<T, V>((const T *)a.z + from, z);
                LG_UNROLL
                for (int u = 0; u < V; u++) {
                        y[u] += a.b ? bias[u] : (H)0;
                        y[u] = a.scale ? y[u] * scale[u] + shift[u] : y[u];
                        y[u] += a.z ? z[u] : (H)0;
                        y[u] = a.relu && y[u] <= 0 ? (H)0 : y[u];
                }
                lg_write<T, V>((T *)a.out + from, y);
        }
}

template <typename T> static bool end_rows(lg_queue *q, const lg_conv_args *a)
{
        constexpr int V = 16 / (int)sizeof(T);
        const bool packed = lg_even(V, a->outputs, a->out, a->b, a->scale, a->shift, a->z);
        const row_loop l = row_loop_of(q, a, packed ? V : 1);
        return packed ? lg_launch(q, "conv (end)", end_loop<T, V>, l.blocks, *a, l.packs, l.step, l.rows)
                      : lg_launch(q, "conv (end)", end_loop<T, 1>, l.blocks, *a, l.packs, l.step, l.rows);
}

/* ---- directly by the formulas ---- */

/* Returns the offset of w[o, c, k, l]; in_group is the number of channels per group. */
static __device__ inline int64_t weight_at(const lg_conv_args &a, int64_t in_group, int64_t o, int64_t c, int64_t k,
                                           int64_t l)
{
        const int64_t *kernel = a.at.kernel;
        return a.weights_last ? ((o * kernel[0] + k) * kernel[1] + l) * in_group + c
                              : ((o * in_group + c) * kernel[0] + k) * kernel[1] + l;
}

/* Computes y[n, i, j, o] by the formula, a thread for each element. */
template <typename H> static __global__ void forward_loop(lg_conv_args a, int64_t count)
{
        const lg_conv_geometry &g = a.at;
        int64_t in_group = a.channels / g.groups, out_group = a.outputs / g.groups;
        for (int64_t e = LG_FIRST; e < count; e += LG_STEP) {
                int64_t o = e % a.outputs, j = e / a.outputs % g.out[1], i = e / a.outputs / g.out[1] % g.out[0];
                int64_t n = e / a.outputs / g.out[1] / g.out[0], first = o / out_group * in_group;
                H sum = a.b ? lg_load<H>(a.b, a.dtype, o) : (H)0;
                for (int64_t k = 0; k < g.kernel[0]; k++)
                        for (int64_t l = 0; l < g.kernel[1]; l++) {
                                int64_t y = i * g.stride[0] - g.padding[0] + k * g.dilation[0];
                                int64_t x = j * g.stride[1] - g.padding[1] + l * g.dilation[1];
                                if (y < 0 || y >= g.in[0] || x < 0 || x >= g.in[1])
                                        continue;
                                int64_t at = ((n * g.in[0] + y) * g.in[1] + x) * a.channels + first;
                                for (int64_t c = 0; c < in_group; c++)
                                        sum += lg_load<H>(a.x, a.dtype, at + c) *
                                               lg_load<H>(a.w, a.dtype, weight_at(a, in_group, o, c, k, l));
                        }
                lg_store<H>(a.out, a.dtype, e, sum);
        }
}

/* Returns the output pixel that reads input pixel x through kernel element k along dimension `side`, or -1. */
static __device__ inline int64_t seen_from(const lg_conv_geometry &g, int side, int64_t x, int64_t k)
{
        int64_t from = x + g.padding[side] - k * g.dilation[side];
        if (from < 0 || from % g.stride[side] || from / g.stride[side] >= g.out[side])
                return -1;
        return from / g.stride[side];
}

/* Computes dx[n, y, x, c] by the formula, a thread for each element. */
template <typename H> static __global__ void input_grad_loop(lg_conv_args a, int64_t count)
{
        const lg_conv_geometry &g = a.at;
        int64_t in_group = a.channels / g.groups, out_group = a.outputs / g.groups;
        for (int64_t e = LG_FIRST; e < count; e += LG_STEP) {
                int64_t c = e % a.channels, x = e / a.channels % g.in[1], y = e / a.channels / g.in[1] % g.in[0];
                int64_t n = e / a.channels / g.in[1] / g.in[0], first = c / in_group * out_group;
                H sum = 0;
                for (int64_t k = 0; k < g.kernel[0]; k++)
                        for (int64_t l = 0; l < g.kernel[1]; l++) {
                                int64_t i = seen_from(g, 0, y, k), j = seen_from(g, 1, x, l);
                                if (i < 0 || j < 0)
                                        continue;
                                int64_t at = ((n * g.out[0] + i) * g.out[1] + j) * a.outputs + first;
                                for (int64_t o = 0; o < out_group; o++)
                                        sum += lg_load<H>(a.g, a.dtype, at + o) *
                                               lg_load<H>(a.w, a.dtype,
                                                          weight_at(a, in_group, first + o, c % in_group, k, l));
                        }
                lg_store<H>(a.out, a.dtype, e, sum);
        }
}

/* Computes dw[o, c, k, l]: a block for each element adds up over images and output pixels. */
template <typename H> static __global__ void weight_grad_loop(lg_conv_args a, int64_t count)
{
        LG_SHARED(H, sums, LG_THREADS / 32);
        const lg_conv_geometry &g = a.at;
        int64_t in_group = a.channels / g.groups, out_group = a.outputs / g.groups, pixels = a.n * g.out[0] * g.out[1];
        for (int64_t e = blockIdx.x; e < count; e += gridDim.x) {
                int64_t l = e % g.kernel[1], k = e / g.kernel[1] % g.kernel[0],
                        c = e / g.kernel[1] / g.kernel[0] % in_group;
                int64_t o = e / g.kernel[1] / g.kernel[0] / in_group, channel = o / out_group * in_group + c;
                H sum = 0;
                for (int64_t p = threadIdx.x; p < pixels; p += LG_THREADS) {
                        int64_t j = p % g.out[1], i = p / g.out[1] % g.out[0], n = p / g.out[1] / g.out[0];
                        int64_t y = i * g.stride[0] - g.padding[0] + k * g.dilation[0];
                        int64_t x = j * g.stride[1] - g.padding[1] + l * g.dilation[1];
                        if (y >= 0 && y < g.in[0] && x >= 0 && x < g.in[1])
                                sum += lg_load<H>(a.g, a.dtype, p * a.outputs + o) *
                                       lg_load<H>(a.x, a.dtype,
                                                  ((n * g.in[0] + y) * g.in[1] + x) * a.channels + channel);
                }
                sum = lg_block_sum(sum, sums);
                if (threadIdx.x == 0)
                        lg_store<H>(a.out, a.dtype, weight_at(a, in_group, o, c, k, l), sum);
        }
}

static bool straight(lg_queue *q, const lg_conv_args *a)
{
        const lg_conv_geometry *g = &a->at;
        int64_t weights = lg_conv_weights(a);
        int64_t in = a->n * g->in[0] * g->in[1] * a->channels, out = a->n * g->out[0] * g->out[1] * a->outputs;
        if (a->kind == LG_CONV_FORWARD)
                return LG_WITH_FLOAT(a->dtype,
                                     lg_launch(q, "conv", forward_loop<H>, out ? lg_blocks(q, out) : 0, *a, out));
        if (a->kind == LG_CONV_INPUT_GRAD)
                return LG_WITH_FLOAT(
                        a->dtype, lg_launch(q, "conv (input)", input_grad_loop<H>, in ? lg_blocks(q, in) : 0, *a, in));
        return LG_WITH_FLOAT(a->dtype, lg_launch(q, "conv (weights)", weight_grad_loop<H>,
                                                 weights < 65536 ? weights : 65536, *a, weights));
}

static bool convolve(lg_queue *q, const lg_conv_args *a)
{
        const lg_dnn_answer answer = lg_dnn_conv(q, a);
        if (answer != LG_DNN_REFUSED)
                return answer == LG_DNN_DONE;
        return lg_conv_has_products(a) ? lg_conv_products(q, a) : straight(q, a);
}

extern "C" bool lg_cuda_conv(lg_queue *q, const lg_conv_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "conv: no kernel for dtype %d", (int)a->dtype);
        if (!a->scale && !a->z && !a->relu)
                return convolve(q, a);
        /* The epilogue adds the bias, too; but in f16 and bf16 the convolution does, before it rounds its sums. */
        lg_conv_args conv = *a, end = *a;
        (lg_bytes_of(a->dtype) == 2 ? end : conv).b = NULL;
        return convolve(q, &conv) && LG_WITH_STORED(a->dtype, end_rows<T>(q, &end));
}
