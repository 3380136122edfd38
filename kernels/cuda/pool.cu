/* pool.cu - pooling, channels last: a thread has V channels of a pixel. In a derivative it visits the windows that
 * contain the pixel. */
#include "shape.h"

/* A window along one side: pixels first, first + step, ... below `end`; size: the number of pixels for an average,
 * padding included. I is int32_t if all sizes fit. */
template <typename I> struct window {
        I first, end, step, size;
};

template <typename I> static __device__ inline window<I> window_of(const lg_pool_args &a, int side, I i)
{
        const lg_conv_geometry &g = a.at;
        const I in = (I)g.in[side];
        if (a.adaptive) {
                const int64_t out = g.out[side];
                const I first = (I)((int64_t)i * in / out), end = (I)((((int64_t)i + 1) * in + out - 1) / out);
                return window<I>{first, end, 1, (I)(end - first)};
        }
        const I step = (I)g.dilation[side], first = i * (I)g.stride[side] - (I)g.padding[side];
        const I last = first + ((I)g.kernel[side] - 1) * step + 1, most = in + (I)g.padding[side];
        window<I> w = {first, last < in ? last : in, step, (last < most ? last : most) - first};
        if (first < 0)
                w.first = first + (-first + step - 1) / step * step;
        return w;
}

/* Finds windows [first, end) of a side that include all windows that contain pixel y. */
template <typename I> static __device__ inline void windows_at(const lg_pool_args &a, int side, I y, I *first, I *end)
{
        const lg_conv_geometry &g = a.at;
        const I out = (I)g.out[side];
        if (a.adaptive) {
                /* Window i begins at or before y if i <= ((y + 1) out - 1) / in, and ends after y if i >= y out / in.
                 */
                *first = (I)((int64_t)y * out / g.in[side]);
                *end = (I)((((int64_t)y + 1) * out - 1) / g.in[side]) + 1;
        } else {
                const I stride = (I)g.stride[side], reach = ((I)g.kernel[side] - 1) * (I)g.dilation[side];
                const I at = y + (I)g.padding[side];
                *first = at > reach ? (at - reach + stride - 1) / stride : 0;
                *end = at / stride + 1;
        }
        *end = *end < out ? *end : out;
}

template <typename I> static __device__ inline bool covers(const window<I> &w, I y)
{
        return y >= w.first && y < w.end && (w.step == 1 || (y - w.first) % w.step == 0);
}

template <typename H, typename I>
static __device__ inline H size_of(const lg_pool_args &a, const window<I> &row, const window<I> &column)
{
        if (a.divisor)
                return (H)a.divisor;
        if (a.count_padding || a.adaptive)
                return (H)row.size * (H)column.size;
        return (H)(row.end - row.first) * (H)(column.end - column.first); /* average pooling has no dilation */
}

/* Pack p of (n, height, width, channels): V channels of a pixel from c on; x, y and n are the pixel's place. */
template <typename I> struct pixel {
        I c, x, y;
        int64_t n;
};
template <typename I, int V>
static __device__ inline pixel<I> pixel_of(int64_t p, int64_t channels, const int64_t *side)
{
        typedef typename std::conditional<sizeof(I) == 4, uint32_t, uint64_t>::type U;
        const U e = (U)p, packs = (U)(channels / V), at = e / packs, row = at / (U)side[1];
        return pixel<I>{(I)((e - at * packs) * V), (I)(at - row * (U)side[1]), (I)(row % (U)side[0]),
                        (int64_t)(row / (U)side[0])};
}

template <typename T, typename I, int V> static __global__ void greatest(lg_pool_args a, int64_t packs)
{
        typedef LG_COMPUTE(T) H;
        for (int64_t e = LG_FIRST; e < packs; e += LG_STEP) {
                const pixel<I> to = pixel_of<I, V>(e, a.channels, a.at.out);
                const window<I> row = window_of<I>(a, 0, to.y), column = window_of<I>(a, 1, to.x);
                const T *from = (const T *)a.from + to.n * a.at.in[0] * a.at.in[1] * a.channels + to.c;
                H best[V], v[V];
                int32_t place[V];
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        best[j] = 0;
                        place[j] = -1;
                }
                for (I y = row.first; y < row.end; y += row.step)
                        for (I x = column.first; x < column.end; x += column.step) {
                                const I at = y * (I)a.at.in[1] + x;
                                lg_read<T, V>(from + at * (I)a.channels, v);
                                LG_UNROLL
                                for (int j = 0; j < V; j++)
                                        if (place[j] < 0 || v[j] > best[j] || (v[j] != v[j] && best[j] == best[j])) {
                                                best[j] = v[j];
                                                place[j] = (int32_t)at;
                                        }
                        }
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        a.index[e * V + j] = place[j];
                lg_write<T, V>((T *)a.to + e * V, best);
        }
}

/* Averages. Elements are first divided by the power of two of the size, which is exact, so sums do not overflow. */
template <typename T, typename I, int V> static __global__ void averages(lg_pool_args a, int64_t packs)
{
        typedef LG_COMPUTE(T) H;
        for (int64_t e = LG_FIRST; e < packs; e += LG_STEP) {
                const pixel<I> to = pixel_of<I, V>(e, a.channels, a.at.out);
                const window<I> row = window_of<I>(a, 0, to.y), column = window_of<I>(a, 1, to.x);
                const T *from = (const T *)a.from + to.n * a.at.in[0] * a.at.in[1] * a.channels + to.c;
                const bool any = row.first < row.end && column.first < column.end;
                int exponent = 0;
                const H scale = any ? 1 / frexp(size_of<H, I>(a, row, column), &exponent) : (H)0;
                const H part = ldexp((H)1, -exponent);
                H sum[V] = {0}, v[V];
                for (I y = row.first; y < row.end; y += row.step)
                        for (I x = column.first; x < column.end; x += column.step) {
                                lg_read<T, V>(from + (y * (I)a.at.in[1] + x) * (I)a.channels, v);
                                LG_UNROLL
                                for (int j = 0; j < V; j++)
                                        sum[j] += v[j] * part;
                        }
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        sum[j] *= scale;
                lg_write<T, V>((T *)a.to + e * V, sum);
        }
}

template <typename T, typename I, int V> static __global__ void picks(lg_pool_args a, int64_t packs)
{
        for (int64_t e = LG_FIRST; e < packs; e += LG_STEP) {
                const pixel<I> to = pixel_of<I, V>(e, a.channels, a.at.out);
                const T *from = (const T *)a.from + to.n * a.at.in[0] * a.at.in[1] * a.channels + to.c;
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        ((T *)a.to)[e * V + j] = from[a.index[e * V + j] * (I)a.channels + j];
        }
}

/* Computes the derivative: each input pixel adds up, in a fixed order, over the windows that contain the pixel. */
template <typename T, typename I, int V, bool AVERAGE> static __global__ void backward(lg_pool_args a, int64_t packs)
{
        typedef LG_COMPUTE(T) H;
        for (int64_t e = LG_FIRST; e < packs; e += LG_STEP) {
                const pixel<I> to = pixel_of<I, V>(e, a.channels, a.at.in);
                const int64_t base = to.n * a.at.out[0] * a.at.out[1] * a.channels + to.c;
                const I here = to.y * (I)a.at.in[1] + to.x;
                I first_i, end_i, first_j, end_j;
                windows_at<I>(a, 0, to.y, &first_i, &end_i);
                windows_at<I>(a, 1, to.x, &first_j, &end_j);
                H sum[V] = {0}, g[V];
                for (I i = first_i; i < end_i; i++) {
                        const window<I> row = window_of<I>(a, 0, i);
                        for (I j = first_j; covers(row, to.y) && j < end_j; j++) {
                                const window<I> column = window_of<I>(a, 1, j);
                                if (!covers(column, to.x))
                                        continue;
                                const int64_t at = base + (int64_t)(i * (I)a.at.out[1] + j) * a.channels;
                                const H share = AVERAGE ? 1 / size_of<H, I>(a, row, column) : (H)1;
                                lg_read<T, V>((const T *)a.from + at, g);
                                LG_UNROLL
                                for (int k = 0; k < V; k++)
                                        sum[k] += AVERAGE ? g[k] * share : a.index[at + k] == here ? g[k] : (H)0;
                        }
                }
                lg_write<T, V>((T *)a.to + e * V, sum);
        }
}

template <typename T, typename I, int V> static bool pool(lg_queue *q, const lg_pool_args *a)
{
        const int64_t in = a->n * a->channels * a->at.in[0] * a->at.in[1] / V,
                      out = a->n * a->channels * a->at.out[0] * a->at.out[1] / V;
        const bool back = a->kind == LG_POOL_MAX_GRAD || a->kind == LG_POOL_AVG_GRAD;
        const int64_t packs = back ? in : out;
        void (*kernel)(lg_pool_args, int64_t) = a->kind == LG_POOL_MAX        ? greatest<T, I, V>
                                                : a->kind == LG_POOL_AVG      ? averages<T, I, V>
                                                : a->kind == LG_POOL_MAX_PICK ? picks<T, I, V>
                                                : a->kind == LG_POOL_MAX_GRAD ? backward<T, I, V, false>
                                                                              : backward<T, I, V, true>;
        return lg_launch(q, back ? "pool (backward)" : "pool", kernel, packs ? lg_blocks(q, packs) : 0, *a, packs);
}

/* Returns whether every index, also of pixels in the padding, fits in 32 bits. */
static bool is_small(const lg_pool_args *a)
{
        double in = (double)a->n * (double)a->channels, out = in;
        for (int i = 0; i < 2; i++) {
                const lg_conv_geometry *g = &a->at;
                in *= (double)g->in[i] + 2 * (double)g->padding[i] + (double)g->kernel[i] * (double)g->dilation[i];
                out *= (double)g->out[i] * (a->adaptive ? 1 : (double)g->stride[i]) + 1;
        }
        return in < (double)LG_NARROW - 1 && out < (double)LG_NARROW - 1;
}

extern "C" bool lg_cuda_pool(lg_queue *q, const lg_pool_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "pool: no kernel for dtype %d", (int)a->dtype);
        const bool small = is_small(a);
        return LG_WITH_STORED(a->dtype, !small ? pool<T, int64_t, 1>(q, a)
                                        : lg_even(LG_PACK(T), a->channels, a->from, a->to)
                                                ? pool<T, int32_t, LG_PACK(T)>(q, a)
                                                : pool<T, int32_t, 1>(q, a));
}
