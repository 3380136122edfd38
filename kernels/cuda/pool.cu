/* pool.cu - pooling: a thread for each element of the result. */
#include "cuda.h"

typedef struct window {
        int64_t first, end, step, size;
} window;

static __device__ inline window window_of(const lg_pool_args &a, int side, int64_t i)
{
        const lg_conv_geometry &g = a.at;
        int64_t in = g.in[side];
        if (a.adaptive) {
                int64_t first = i * in / g.out[side], end = ((i + 1) * in + g.out[side] - 1) / g.out[side];
                return window{first, end, 1, end - first};
        }
        int64_t step = g.dilation[side], first = i * g.stride[side] - g.padding[side];
        int64_t last = first + (g.kernel[side] - 1) * step + 1, most = in + g.padding[side];
        window w = {first, last < in ? last : in, step, (last < most ? last : most) - first};
        if (first < 0)
                w.first = first + (-first + step - 1) / step * step;
        return w;
}

static __device__ inline double size_of(const lg_pool_args &a, const window &row, const window &column)
{
        if (a.divisor)
                return (double)a.divisor;
        if (a.count_padding || a.adaptive)
                return (double)(row.size * column.size);
        int64_t h = row.end - row.first, w = column.end - column.first;
        return (double)((h > 0 ? h : 0) * (w > 0 ? w : 0));
}

/* MAX, AVG, MAX_PICK: element e of the output. */
template <typename H> static __global__ void forward_loop(lg_pool_args a, int64_t count)
{
        for (int64_t e = LG_FIRST; e < count; e += LG_STEP) {
                int64_t c = e % a.channels, j = e / a.channels % a.at.out[1],
                        i = e / a.channels / a.at.out[1] % a.at.out[0];
                int64_t base = e / a.channels / a.at.out[1] / a.at.out[0] * a.at.in[0] * a.at.in[1];
                if (a.kind == LG_POOL_MAX_PICK) {
                        lg_store<H>(a.to, a.dtype, e,
                                    lg_load<H>(a.from, a.dtype, (base + a.index[e]) * a.channels + c));
                        continue;
                }
                window row = window_of(a, 0, i), column = window_of(a, 1, j);
                H value = 0;
                int32_t place = -1;
                for (int64_t y = row.first; y < row.end; y += row.step)
                        for (int64_t x = column.first; x < column.end; x += column.step) {
                                H v = lg_load<H>(a.from, a.dtype, (base + y * a.at.in[1] + x) * a.channels + c);
                                if (a.kind == LG_POOL_AVG) {
                                        value += v;
                                        place = 0;
                                } else if (place < 0 || v > value || (v != v && value == value)) {
                                        value = v;
                                        place = (int32_t)(y * a.at.in[1] + x);
                                }
                        }
                if (a.kind == LG_POOL_AVG && place == 0)
                        value = value * (H)(1 / size_of(a, row, column));
                if (a.kind == LG_POOL_MAX)
                        a.index[e] = place;
                lg_store<H>(a.to, a.dtype, e, value);
        }
}

/* MAX_GRAD, AVG_GRAD: element e of the input looks for the windows that it is in, in order. */
template <typename H> static __global__ void backward_loop(lg_pool_args a, int64_t count)
{
        for (int64_t e = LG_FIRST; e < count; e += LG_STEP) {
                int64_t c = e % a.channels, x = e / a.channels % a.at.in[1],
                        y = e / a.channels / a.at.in[1] % a.at.in[0];
                int64_t n = e / a.channels / a.at.in[1] / a.at.in[0];
                H sum = 0;
                for (int64_t i = 0; i < a.at.out[0]; i++) {
                        window row = window_of(a, 0, i);
                        if (y < row.first || y >= row.end || (y - row.first) % row.step)
                                continue;
                        for (int64_t j = 0; j < a.at.out[1]; j++) {
                                window column = window_of(a, 1, j);
                                if (x < column.first || x >= column.end || (x - column.first) % column.step)
                                        continue;
                                int64_t at = ((n * a.at.out[0] + i) * a.at.out[1] + j) * a.channels + c;
                                H g = lg_load<H>(a.from, a.dtype, at);
                                if (a.kind == LG_POOL_AVG_GRAD)
                                        sum += g * (H)(1 / size_of(a, row, column));
                                else if (a.index[at] == y * a.at.in[1] + x)
                                        sum += g;
                        }
                }
                lg_store<H>(a.to, a.dtype, e, sum);
        }
}

extern "C" bool lg_cuda_pool(lg_queue *q, const lg_pool_args *a)
{
        int64_t in = a->n * a->channels * a->at.in[0] * a->at.in[1],
                out = a->n * a->channels * a->at.out[0] * a->at.out[1];
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "pool: no kernel for dtype %d", (int)a->dtype);
        if (a->kind == LG_POOL_MAX_GRAD || a->kind == LG_POOL_AVG_GRAD)
                return LG_WITH_FLOAT(
                        a->dtype, lg_launch(q, "pool (backward)", backward_loop<H>, in ? lg_blocks(q, in) : 0, *a, in));
        return LG_WITH_FLOAT(a->dtype, lg_launch(q, "pool", forward_loop<H>, out ? lg_blocks(q, out) : 0, *a, out));
}
