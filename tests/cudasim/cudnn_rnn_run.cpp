/* cudnn_rnn_run.cpp - a recurrent layer and its derivatives in plain loops.
 *
 * The reserve space begins with a mark, which says that a forward in training has filled it, or that the derivative of
 * the data has replaced the gates by their gradients, which the derivative of the weights needs.
 */
#include "cudnn_rnn.h"
#include <cmath>
#include <cstdlib>
#include <vector>

namespace cudasim::dnn
{
namespace
{
enum : uint64_t { FORWARD = 0x726e6e666f727731, DERIVED = 0x726e6e6465726976 };

/* A layer's numbers, of type S, as float or double has them. */
template <typename S> struct numbers {
        layer l;
        const S *w[2], *b[2];
        bool tf32;

        numbers(const layer &of, const char *space) : l(of)
        {
                static const char *const text = getenv("NVIDIA_TF32_OVERRIDE");
                tf32 = sizeof(S) == 4 && l.r.math != CUDNN_FMA_MATH && !(text && *text == '0');
                for (int half = 0; half < 2; half++) {
                        w[half] = (const S *)(space + l.matrix_at(half));
                        b[half] = l.biases() ? (const S *)(space + l.bias_at(half)) : nullptr;
                }
        }
        /* As a factor of a product. */
        S in(S v) const
        {
                if (tf32) {
                        uint32_t bits;
                        memcpy(&bits, &v, 4);
                        bits &= 0xffffe000u;
                        memcpy(&v, &bits, 4);
                }
                return v;
        }
        /* Row `row` of the weight times x, and the bias. */
        S gate(int half, int64_t row, const S *x) const
        {
                const int64_t n = half ? l.r.hidden : l.r.inputs;
                S sum = b[half] ? b[half][row] : 0;
                for (int64_t i = 0; x && i < n; i++)
                        sum += in(w[half][row * n + i]) * in(x[i]);
                return sum;
        }
        S *kept(char *reserve, int64_t t, int64_t sample, int what) const
        {
                return (S *)(reserve + head) + ((t * l.batch + sample) * l.kept() + what) * l.r.hidden;
        }
};

template <typename S> S sigmoid(S x)
{
        return 1 / (1 + std::exp(-x));
}

void set_mark(char *reserve, uint64_t mark)
{
        memcpy(reserve, &mark, sizeof mark);
}
void need_mark(const char *call, const char *reserve, uint64_t mark)
{
        uint64_t found;
        memcpy(&found, reserve, sizeof found);
        if (found != mark)
                die("%s: a reserve space that the call before it has not filled", call);
}

/* ---- forward ---- */

/* The state of unit k after a step, and of an LSTM its cell in c[k]. keep[i] gets what the reserve space has. */
template <typename S> S cell(const numbers<S> &n, const S *x, const S *h, S *c, int64_t k, S *const *keep)
{
        const int64_t H = n.l.r.hidden;
        S a[4] = {}, s[4] = {};
        for (int g = 0; g < n.l.gates; g++) {
                a[g] = n.gate(0, g * H + k, x);
                s[g] = n.gate(1, g * H + k, h);
        }
        if (n.l.lstm) {
                const S v[] = {sigmoid(a[0] + s[0]), sigmoid(a[1] + s[1]), std::tanh(a[2] + s[2]),
                               sigmoid(a[3] + s[3])};
                c[k] = v[1] * c[k] + v[0] * v[2];
                for (int i = 0; i < 5 && keep[0]; i++)
                        keep[i][k] = i < 4 ? v[i] : c[k];
                return v[3] * std::tanh(c[k]);
        }
        if (n.l.gru) {
                const S r = sigmoid(a[0] + s[0]), z = sigmoid(a[1] + s[1]), m = std::tanh(a[2] + r * s[2]);
                const S v[] = {r, z, m, s[2]};
                for (int i = 0; i < 4 && keep[0]; i++)
                        keep[i][k] = v[i];
                return m + z * ((h ? h[k] : 0) - m);
        }
        return n.l.r.mode == CUDNN_RNN_TANH ? std::tanh(a[0] + s[0]) : a[0] + s[0] <= 0 ? 0 : a[0] + s[0];
}

template <typename S> void forward(const layer &l, const places &p)
{
        const numbers<S> n(l, p.space);
        const int64_t H = l.r.hidden, I = l.r.inputs;
        for (int64_t b = 0; b < l.batch; b++) {
                const S *h = p.h0 ? (const S *)p.h0 + b * H : nullptr;
                std::vector<S> c((size_t)H, 0);
                if (p.c0)
                        memcpy(c.data(), (const S *)p.c0 + b * H, (size_t)H * sizeof(S));
                for (int64_t t = 0; t < l.steps; t++) {
                        S *keep[6] = {}, *y = (S *)p.to + (t * l.batch + b) * H;
                        for (int i = 0; p.reserve && i < l.kept(); i++)
                                keep[i] = n.kept(p.reserve, t, b, i);
                        for (int64_t k = 0; k < H; k++)
                                y[k] = cell(n, (const S *)p.x + (t * l.batch + b) * I, h, c.data(), k, keep);
                        h = y;
                }
                if (p.h)
                        memcpy((S *)p.h + b * H, h, (size_t)H * sizeof(S));
                if (p.c)
                        memcpy((S *)p.c + b * H, c.data(), (size_t)H * sizeof(S));
        }
        if (p.reserve)
                set_mark(p.reserve, FORWARD);
}

/* ---- derivatives ---- */

/* The gradients of unit k's gates at a step, which replace what the reserve space has: those of the parts from the
 * input, and where they differ, for the GRU's last, of the part from the state behind them. d: of h after the step,
 * before: h before it. Returns what reaches the state before directly. */
template <typename S>
S gates_back(const numbers<S> &n, S *const *keep, int64_t k, S d, S before, S c_before, S y, S *dc)
{
        if (n.l.lstm) {
                const S i = keep[0][k], f = keep[1][k], g = keep[2][k], o = keep[3][k], u = std::tanh(keep[4][k]);
                const S e = *dc + d * o * (1 - u * u);
                keep[0][k] = e * g * i * (1 - i);
                keep[1][k] = e * c_before * f * (1 - f);
                keep[2][k] = e * i * (1 - g * g);
                keep[3][k] = d * u * o * (1 - o);
                *dc = e * f;
                return 0;
        }
        if (n.l.gru) {
                const S r = keep[0][k], z = keep[1][k], m = keep[2][k], e = d * (1 - z) * (1 - m * m);
                keep[0][k] = e * keep[3][k] * r * (1 - r);
                keep[1][k] = d * (before - m) * z * (1 - z);
                keep[2][k] = e;
                keep[3][k] = e * r;
                return d * z;
        }
        keep[0][k] = n.l.r.mode == CUDNN_RNN_TANH ? d * (1 - y * y) : y > 0 ? d : 0;
        return 0;
}

/* The gradient that gate g has for the input (half 0) or the state. */
template <typename S> S gradient(const numbers<S> &n, S *const *keep, int half, int g, int64_t k)
{
        return keep[n.l.gru && half && g == 2 ? 3 : g][k];
}

/* Adds the product of a step's gradients and a weight to `to`, unless that is NULL. */
template <typename S> void add_back(const numbers<S> &n, S *const *keep, int half, S *to)
{
        const int64_t H = n.l.r.hidden, count = half ? H : n.l.r.inputs;
        for (int g = 0; to && g < n.l.gates; g++)
                for (int64_t k = 0; k < H; k++)
                        for (int64_t i = 0; i < count; i++)
                                to[i] += n.in(gradient(n, keep, half, g, k)) * n.in(n.w[half][(g * H + k) * count + i]);
}

template <typename S> void derive(const layer &l, const places &p)
{
        need_mark("cudnnRNNBackwardData", p.reserve, FORWARD);
        const numbers<S> n(l, p.space);
        const int64_t H = l.r.hidden, I = l.r.inputs;
        memset(p.dx, 0, (size_t)(l.steps * l.batch * I) * sizeof(S));
        for (int64_t b = 0; b < l.batch; b++) {
                std::vector<S> dh((size_t)H, 0), dc((size_t)H, 0);
                if (p.dh)
                        memcpy(dh.data(), (const S *)p.dh + b * H, (size_t)H * sizeof(S));
                if (p.dc)
                        memcpy(dc.data(), (const S *)p.dc + b * H, (size_t)H * sizeof(S));
                for (int64_t t = l.steps - 1; t >= 0; t--) {
                        const int64_t row = t * l.batch + b;
                        const S *y = (const S *)p.y + row * H, *dy = (const S *)p.dy + row * H;
                        const S *h = t ? y - l.batch * H : p.h0 ? (const S *)p.h0 + b * H : nullptr;
                        const S *c = t && l.lstm ? n.kept(p.reserve, t - 1, b, 4)
                                     : p.c0      ? (const S *)p.c0 + b * H
                                                 : nullptr;
                        S *keep[6] = {};
                        for (int i = 0; i < l.kept(); i++)
                                keep[i] = n.kept(p.reserve, t, b, i);
                        for (int64_t k = 0; k < H; k++)
                                dh[(size_t)k] = gates_back(n, keep, k, dh[(size_t)k] + dy[k], h ? h[k] : 0,
                                                           c ? c[k] : 0, y[k], &dc[(size_t)k]);
                        add_back(n, keep, 1, dh.data());
                        add_back(n, keep, 0, (S *)p.dx + row * I);
                }
                if (p.dh0)
                        memcpy((S *)p.dh0 + b * H, dh.data(), (size_t)H * sizeof(S));
                if (p.dc0)
                        memcpy((S *)p.dc0 + b * H, dc.data(), (size_t)H * sizeof(S));
        }
        set_mark(p.reserve, DERIVED);
}

/* Adds the gradients of the weights to what is in the space. */
template <typename S> void derive_weights(const layer &l, const places &p)
{
        need_mark("cudnnRNNBackwardWeights", p.reserve, DERIVED);
        const numbers<S> n(l, p.dspace);
        const int64_t H = l.r.hidden;
        for (int half = 0; half < 2; half++) {
                const int64_t count = half ? H : l.r.inputs;
                S *dw = (S *)(p.dspace + l.matrix_at(half)), *db = (S *)(p.dspace + l.bias_at(half));
                for (int64_t row = 0; row < (int64_t)l.steps * l.batch; row++) {
                        const int64_t t = row / l.batch, b = row % l.batch;
                        const S *h = t      ? (const S *)p.y + (row - l.batch) * H
                                     : p.h0 ? (const S *)p.h0 + b * H
                                            : nullptr;
                        const S *by = half ? h : (const S *)p.x + row * count;
                        S *keep[6] = {};
                        for (int i = 0; i < l.kept(); i++)
                                keep[i] = n.kept(p.reserve, t, b, i);
                        for (int64_t k = 0; k < l.gates * H; k++) {
                                const S d = gradient(n, keep, half, (int)(k / H), k % H);
                                for (int64_t i = 0; by && i < count; i++)
                                        dw[k * count + i] += n.in(d)*n.in(by[i]);
                                if (l.biases())
                                        db[k] += d;
                        }
                }
        }
}
} // namespace

void run_forward(const layer &l, const places &p)
{
        l.r.type == CUDNN_DATA_DOUBLE ? forward<double>(l, p) : forward<float>(l, p);
}

void run_derive(const layer &l, const places &p)
{
        l.r.type == CUDNN_DATA_DOUBLE ? derive<double>(l, p) : derive<float>(l, p);
}

void run_derive_weights(const layer &l, const places &p)
{
        l.r.type == CUDNN_DATA_DOUBLE ? derive_weights<double>(l, p) : derive_weights<float>(l, p);
}
} // namespace cudasim::dnn
