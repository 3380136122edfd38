/* cudnn_run.cpp - a convolution, its input gradient or its weight gradient in plain loops, as a plan runs it. */
#include "cudnn_graph.h"
#include "runtime.h"

namespace cudasim::dnn
{
namespace
{
double load(const tensor &t, const char *p, int64_t at, bool tf32)
{
        switch (t.type) {
        case CUDNN_DATA_DOUBLE:
                return ((const double *)p)[at];
        case CUDNN_DATA_HALF:
                return __half2float(((const __half *)p)[at]);
        case CUDNN_DATA_BFLOAT16:
                return __bfloat162float(((const __nv_bfloat16 *)p)[at]);
        default: {
                uint32_t bits;
                memcpy(&bits, p + at * 4, 4);
                bits &= tf32 ? 0xffffe000u : 0xffffffffu;
                float f;
                memcpy(&f, &bits, 4);
                return f;
        }
        }
}

void store(const tensor &t, char *p, int64_t at, double v)
{
        switch (t.type) {
        case CUDNN_DATA_DOUBLE:
                ((double *)p)[at] = v;
                break;
        case CUDNN_DATA_HALF:
                ((__half *)p)[at] = __float2half((float)v);
                break;
        case CUDNN_DATA_BFLOAT16:
                ((__nv_bfloat16 *)p)[at] = __float2bfloat16((float)v);
                break;
        default:
                ((float *)p)[at] = (float)v;
        }
}

int64_t place(const tensor &t, int64_t a, int64_t b, int64_t c, int64_t d)
{
        return a * t.strides[0] + b * t.strides[1] + c * t.strides[2] + d * t.strides[3];
}

/* A tensor's values, tightly packed by the given order of its dimensions, the last one fastest. */
template <typename S> std::vector<S> unpack(const tensor &t, const char *p, const int (&order)[4], bool tf32)
{
        std::vector<S> v;
        int64_t i[4];
        v.reserve((size_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]));
        for (i[order[0]] = 0; i[order[0]] < t.dims[order[0]]; i[order[0]]++)
                for (i[order[1]] = 0; i[order[1]] < t.dims[order[1]]; i[order[1]]++)
                        for (i[order[2]] = 0; i[order[2]] < t.dims[order[2]]; i[order[2]]++)
                                for (i[order[3]] = 0; i[order[3]] < t.dims[order[3]]; i[order[3]]++)
                                        v.push_back((S)load(t, p, place(t, i[0], i[1], i[2], i[3]), tf32));
        return v;
}

template <typename S> void pack(const run &r, const tensor &t, char *p, const int (&order)[4], const S *v)
{
        int64_t i[4];
        for (i[order[0]] = 0; i[order[0]] < t.dims[order[0]]; i[order[0]]++)
                for (i[order[1]] = 0; i[order[1]] < t.dims[order[1]]; i[order[1]]++)
                        for (i[order[2]] = 0; i[order[2]] < t.dims[order[2]]; i[order[2]]++)
                                for (i[order[3]] = 0; i[order[3]] < t.dims[order[3]]; i[order[3]]++) {
                                        S sum = *v++;
                                        if (r.m.biased)
                                                sum += (S)load(r.m.bias, r.bias, i[1] * r.m.bias.strides[1], false);
                                        store(t, p, place(t, i[0], i[1], i[2], i[3]), sum);
                                }
}

/* Of the simulator's own memory, and most of the work: not for sanitizers. */
template <typename S>
__attribute__((no_sanitize("address", "undefined"))) void add_scaled(int64_t n, S by, const S *x, S *y)
{
        for (int64_t i = 0; i < n; i++)
                y[i] += by * x[i];
}

/* One pixel of x meets one of y through one element of the kernel; c channels and o outputs in each group. `w` lies as
 * (c, all outputs), but for an input gradient as (all outputs, c). */
template <typename S>
__attribute__((no_sanitize("address", "undefined"))) void one_element(int kind, int64_t groups, int64_t c, int64_t o,
                                                                      S *x, S *w, S *y)
{
        for (int64_t g = 0; g < groups; g++, x += c, y += o, w += kind == 1 ? o * c : o)
                for (int64_t i = 0; i < (kind == 1 ? o : c); i++)
                        if (kind == 0)
                                add_scaled(o, x[i], w + i * o * groups, y);
                        else if (kind == 1)
                                add_scaled(c, y[i], w + i * c, x);
                        else
                                add_scaled(o, x[i], y, w + i * o * groups);
}

/* S: what is added up in. */
template <typename S> void convolve_in(const run &r)
{
        const meaning &m = r.m;
        static const bool tensor_cores = number("NVIDIA_TF32_OVERRIDE", 1) != 0;
        const bool tf32 = r.engine == TENSOR && tensor_cores;
        const int64_t channels = m.x.dims[1], outputs = m.w.dims[0], c = m.w.dims[1], groups = channels / c,
                      o = outputs / groups;
        const int pixels[4] = {0, 2, 3, 1}, by_output[4] = {2, 3, 1, 0}, by_channel[4] = {2, 3, 0, 1};
        const int(&weights)[4] = m.kind == 1 ? by_channel : by_output;
        std::vector<S> x, w, y, late;
        auto get = [&](int kind, const tensor &t, const char *p, const int(&order)[4]) {
                return m.kind == kind ? std::vector<S>((size_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]), 0)
                                      : unpack<S>(t, p, order, tf32);
        };
        y = get(0, m.y, r.y, pixels);
        x = get(1, m.x, r.x, pixels);
        w = get(2, m.w, r.w, weights);
        std::vector<S> &sums = m.kind == 0 ? y : m.kind == 1 ? x : w;
        late.assign(r.backwards ? sums.size() : 0, 0); /* every other pixel is added up on its own */
        int64_t number = 0;
        for (int64_t n = 0; n < m.x.dims[0]; n++)
                for (int64_t i = 0; i < m.y.dims[2]; i++)
                        for (int64_t j = 0; j < m.y.dims[3]; j++)
                                for (int64_t k = 0; k < m.w.dims[2]; k++)
                                        for (int64_t l = 0; l < m.w.dims[3]; l++) {
                                                int64_t h = i * m.stride[0] - m.padding[0] + k * m.dilation[0];
                                                int64_t v = j * m.stride[1] - m.padding[1] + l * m.dilation[1];
                                                if (h < 0 || v < 0 || h >= m.x.dims[2] || v >= m.x.dims[3])
                                                        continue;
                                                S *to = r.backwards && number++ % 2 ? late.data() : sums.data();
                                                S *px = (m.kind == 1 ? to : x.data()) +
                                                        ((n * m.x.dims[2] + h) * m.x.dims[3] + v) * channels;
                                                S *py = (m.kind == 0 ? to : y.data()) +
                                                        ((n * m.y.dims[2] + i) * m.y.dims[3] + j) * outputs;
                                                S *pw = (m.kind == 2 ? to : w.data()) +
                                                        (k * m.w.dims[3] + l) * c * outputs;
                                                one_element(m.kind, groups, c, o, px, pw, py);
                                        }
        for (size_t i = 0; i < late.size(); i++)
                sums[i] += late[i];
        if (m.kind == 0)
                pack(r, m.result, r.y, pixels, sums.data());
        else if (m.kind == 1)
                pack(r, m.result, r.x, pixels, sums.data());
        else
                pack(r, m.result, r.w, weights, sums.data());
}
} // namespace

void convolve(const run &r)
{
        r.m.wide ? convolve_in<double>(r) : convolve_in<float>(r);
}
} // namespace cudasim::dnn
