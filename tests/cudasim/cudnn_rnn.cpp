/* cudnn_rnn.cpp - cuDNN's recurrent layers, of one layer in one direction: descriptors and checks, which answer as
 * cuDNN 9.19 does, and plain loops.
 *
 * The weights lie in another order than cuDNN's, with a gap. The reserve space begins with a mark, which says that a
 * forward in training has filled it, or that the derivative of the data has replaced the gates by their gradients,
 * which the derivative of the weights needs.
 */
#include "cudnn_calls.h"
#include <cmath>
#include <cstdlib>
#include <set>
#include <vector>

using namespace cudasim;
using namespace cudasim::dnn;

struct cudnnTensorStruct {
        cudnnDataType_t type;
        std::vector<int> shape;
};
struct cudnnRNNDataStruct {
        cudnnDataType_t type;
        int steps = 0, batch, size;
        bool whole; /* all sequences have all steps */
};
struct cudnnRNNStruct {
        cudnnRNNMode_t mode;
        cudnnRNNBiasMode_t bias;
        cudnnDataType_t type;
        cudnnMathType_t math;
        int inputs = 0, hidden;
};

namespace
{
constexpr size_t gap = 256, head = 256;
enum : uint64_t { FORWARD = 0x726e6e666f727731, DERIVED = 0x726e6e6465726976 };

std::set<const void *> alive;

template <typename T> cudnnStatus_t make(T **ret)
{
        alive.insert(*ret = new T);
        count_handles(1);
        return CUDNN_STATUS_SUCCESS;
}
template <typename T> T *of(T *p, const char *call)
{
        if (!alive.count(p))
                die("%s: no descriptor, or one that was destroyed", call);
        return p;
}
template <typename T> cudnnStatus_t destroy(T *p, const char *call)
{
        alive.erase(of(p, call));
        delete p;
        count_handles(-1);
        return CUDNN_STATUS_SUCCESS;
}

size_t bytes_of(cudnnDataType_t t)
{
        return t == CUDNN_DATA_DOUBLE ? 8 : 4;
}

/* A layer of one call. */
struct layer {
        cudnnRNNStruct r;
        int gates, steps, batch;
        bool lstm, gru;

        layer(const cudnnRNNStruct &rnn, int t, int b) : r(rnn), gates(1), steps(t), batch(b)
        {
                lstm = r.mode == CUDNN_LSTM;
                gru = r.mode == CUDNN_GRU;
                gates = lstm ? 4 : gru ? 3 : 1;
        }
        size_t size() const
        {
                return bytes_of(r.type);
        }
        size_t biases() const
        {
                return r.bias == CUDNN_RNN_NO_BIAS ? 0 : (size_t)(gates * r.hidden) * size();
        }
        size_t matrices(int half) const
        {
                return (size_t)(gates * r.hidden * (half ? r.hidden : r.inputs)) * size();
        }
        /* Where the matrices of the input (half 0) or the state (1) begin, and their biases. */
        size_t matrix_at(int half) const
        {
                return half ? 0 : matrices(1) + gap + biases();
        }
        size_t bias_at(int half) const
        {
                return half ? matrix_at(0) + matrices(0) : matrices(1) + gap;
        }
        size_t weights() const
        {
                return bias_at(1) + biases();
        }
        /* Elements of a unit that the reserve space has for each step. */
        int kept() const
        {
                return lstm ? 5 : gru ? 6 : 1;
        }
        size_t reserve() const
        {
                return head + (size_t)(steps * batch * r.hidden * kept()) * size();
        }
        size_t work() const
        {
                return 4096 + (size_t)(batch * r.hidden) * size();
        }
};

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

struct places {
        const char *x, *y, *dy, *h0, *c0, *dh, *dc, *space;
        char *to, *h, *c, *dx, *dh0, *dc0, *dspace, *reserve;
};

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

/* ---- checks ---- */

#define NEED(condition)                                                                                                \
        if (!(condition))                                                                                              \
        return CUDNN_STATUS_BAD_PARAM

bool is_state(const layer &l, const cudnnTensorStruct *t)
{
        return t->type == l.r.type && t->shape == std::vector<int>{1, l.batch, l.r.hidden};
}

/* Checks what all three calls have, and sets *l. */
cudnnStatus_t check(const char *call, const cudnnContext *h, cudnnRNNDescriptor_t r, const int32_t *lengths,
                    cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y, cudnnTensorDescriptor_t state, layer *l)
{
        if (current_device != h->device)
                die("%s: a handle of another device", call);
        of(r, call);
        of(x, call);
        of(y, call);
        NEED(state);
        *l = layer(*r, x->steps, x->batch);
        NEED(r->inputs && x->steps && y->steps && x->type == r->type && y->type == r->type && x->size == r->inputs &&
             y->size == r->hidden && y->steps == x->steps && y->batch == x->batch && is_state(*l, of(state, call)));
        if (lengths || !x->whole || !y->whole)
                die("%s: sequences of different lengths are not simulated", call);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_spaces(const char *call, const layer &l, size_t weights, const void *space, size_t work,
                           void *workspace, size_t reserve, void *kept, bool training)
{
        NEED(space && weights >= l.weights() && workspace && work >= l.work());
        NEED(!training || (kept && reserve >= l.reserve()));
        check_device(call, space, weights);
        check_device(call, workspace, work);
        if (training)
                check_device(call, kept, reserve);
        return CUDNN_STATUS_SUCCESS;
}

/* Checks (steps, batch, columns), or with steps 0 a state, which may be NULL. */
void check_values(const char *call, const layer &l, const void *p, int steps, int columns)
{
        if (p || steps)
                check_device(call, p, (size_t)((steps ? steps : 1) * l.batch * columns) * l.size());
}

void queue(const cudnnContext *h, const layer &l, const places &p, void (*wide)(const layer &, const places &),
           void (*narrow)(const layer &, const places &), void *work, size_t bytes)
{
        enqueue(h->stream, [=] {
                memset(work, 0x5a, bytes);
                (l.r.type == CUDNN_DATA_DOUBLE ? wide : narrow)(l, p);
        });
}
} // namespace

extern "C" {
cudnnStatus_t CUDNNWINAPI cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *ret)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        return make(ret);
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t t)
{
        LOCK;
        return destroy(t, __func__);
}

cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, cudnnDataType_t type, int ndim,
                                                     const int *shape, const int *strides)
{
        LOCK;
        FAIL;
        of(t, __func__);
        NEED(ndim >= 3 && ndim <= CUDNN_DIM_MAX);
        for (int i = ndim - 1, row = 1; i >= 0; row *= shape[i--])
                NEED(shape[i] > 0 && strides[i] == row);
        t->type = type;
        t->shape.assign(shape, shape + ndim);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *ret)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        return make(ret);
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t d)
{
        LOCK;
        return destroy(d, __func__);
}

cudnnStatus_t CUDNNWINAPI cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
                                                    cudnnRNNDataLayout_t layout, int steps, int batch, int size,
                                                    const int lengths[], void *)
{
        LOCK;
        FAIL;
        of(d, __func__);
        NEED(steps > 0 && batch > 0 && size > 0 && lengths);
        bool longest = false, whole = true;
        for (int i = 0; i < batch; i++) {
                NEED(lengths[i] >= 0 && lengths[i] <= steps);
                NEED(layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED ||
                     (lengths[i] > 0 && (i == 0 || lengths[i] <= lengths[i - 1])));
                longest = longest || lengths[i] == steps;
                whole = whole && lengths[i] == steps;
        }
        NEED(longest);
        *d = {type, steps, batch, size, whole};
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *ret)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        return make(ret);
}

cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t r)
{
        LOCK;
        return destroy(r, __func__);
}

cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t r, cudnnRNNAlgo_t algorithm,
                                                   cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias,
                                                   cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                                   cudnnDataType_t type, cudnnDataType_t precision,
                                                   cudnnMathType_t math, int32_t inputs, int32_t hidden,
                                                   int32_t projection, int32_t layers, cudnnDropoutDescriptor_t dropout,
                                                   uint32_t)
{
        LOCK;
        FAIL;
        of(r, __func__);
        NEED(inputs > 0 && hidden > 0 && layers > 0 && projection > 0);
        if (precision != type || projection > hidden || (projection < hidden && mode != CUDNN_LSTM))
                return CUDNN_STATUS_NOT_SUPPORTED;
        const char *refuse = getenv("CUDASIM_CUDNN_REFUSE");
        if (refuse && *refuse == '1')
                return CUDNN_STATUS_NOT_SUPPORTED;
        if (algorithm != CUDNN_RNN_ALGO_STANDARD || direction != CUDNN_UNIDIRECTIONAL || input != CUDNN_LINEAR_INPUT ||
            (bias != CUDNN_RNN_DOUBLE_BIAS && bias != CUDNN_RNN_NO_BIAS) || projection != hidden || layers != 1 ||
            dropout || (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE))
                die("cudnnSetRNNDescriptor_v8: a layer that is not simulated");
        *r = {mode, bias, type, math, inputs, hidden};
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightSpaceSize(cudnnHandle_t h, cudnnRNNDescriptor_t r, size_t *ret)
{
        LOCK;
        FAIL;
        NEED(h && of(r, __func__)->inputs);
        *ret = layer(*r, 1, 1).weights();
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNTempSpaceSizes(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
                                                    cudnnRNNDataDescriptor_t x, size_t *work, size_t *reserve)
{
        LOCK;
        FAIL;
        NEED(h && of(r, __func__)->inputs && of(x, __func__)->steps);
        const layer l(*r, x->steps, x->batch);
        *work = l.work();
        *reserve = mode == CUDNN_FWD_MODE_TRAINING ? l.reserve() : 0;
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightParams(cudnnHandle_t h, cudnnRNNDescriptor_t r, int32_t pseudo, size_t bytes,
                                                  const void *space, int32_t id, cudnnTensorDescriptor_t matrix,
                                                  void **matrix_at, cudnnTensorDescriptor_t bias, void **bias_at)
{
        LOCK;
        FAIL;
        NEED(h && of(r, __func__)->inputs && pseudo == 0);
        const layer l(*r, 1, 1);
        NEED(of(matrix, __func__) && of(bias, __func__) && matrix != bias && id >= 0 && id < 2 * l.gates && space &&
             bytes >= l.weights());
        const int half = id / l.gates, gate = id % l.gates;
        matrix->type = bias->type = r->type;
        matrix->shape = {1, r->hidden, half ? r->hidden : r->inputs};
        bias->shape = {1, r->hidden, 1};
        *matrix_at = (char *)space + l.matrix_at(half) + (size_t)gate * l.matrices(half) / (size_t)l.gates;
        *bias_at = l.biases() ? (char *)space + l.bias_at(half) + (size_t)gate * l.biases() / (size_t)l.gates : nullptr;
        return CUDNN_STATUS_SUCCESS;
}

/* Failures on purpose of a call that computes, as those of cudnnBackendExecute; cuDNN itself may have nothing for it.
 */
#define FAIL_RUN                                                                                                       \
        FAIL;                                                                                                          \
        FAIL_MEMORY(DEVICE);                                                                                           \
        if (fails(__func__, LOAD))                                                                                     \
                return failed(__func__, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);                         \
        if (const char *broken_ = getenv("CUDASIM_CUDNN_RNN_REFUSE"); broken_ && strstr(__func__, broken_))            \
        return CUDNN_STATUS_NOT_SUPPORTED

cudnnStatus_t CUDNNWINAPI cudnnRNNForward(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
                                          const int32_t lengths[], cudnnRNNDataDescriptor_t x_desc, const void *x,
                                          cudnnRNNDataDescriptor_t y_desc, void *y, cudnnTensorDescriptor_t h_desc,
                                          const void *hx, void *hy, cudnnTensorDescriptor_t c_desc, const void *cx,
                                          void *cy, size_t weights, const void *space, size_t work, void *workspace,
                                          size_t reserve, void *kept)
{
        LOCK;
        FAIL_RUN;
        const bool training = mode == CUDNN_FWD_MODE_TRAINING;
        layer l(*of(r, __func__), 1, 1);
        cudnnStatus_t s = check(__func__, h, r, lengths, x_desc, y_desc, h_desc, &l);
        if (s == CUDNN_STATUS_SUCCESS)
                s = check_spaces(__func__, l, weights, space, work, workspace, reserve, kept, training);
        if (s != CUDNN_STATUS_SUCCESS)
                return s;
        NEED(!l.lstm || is_state(l, of(c_desc, __func__)));
        check_values(__func__, l, x, l.steps, r->inputs);
        check_values(__func__, l, y, l.steps, r->hidden);
        for (const void *state : {hx, (const void *)hy, l.lstm ? cx : nullptr, (const void *)(l.lstm ? cy : nullptr)})
                check_values(__func__, l, state, 0, r->hidden);
        places p = {};
        p.x = (const char *)x;
        p.to = (char *)y;
        p.h0 = (const char *)hx;
        p.h = (char *)hy;
        p.c0 = l.lstm ? (const char *)cx : nullptr;
        p.c = l.lstm ? (char *)cy : nullptr;
        p.space = (const char *)space;
        p.reserve = training ? (char *)kept : nullptr;
        queue(h, l, p, forward<double>, forward<float>, workspace, work);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData_v8(cudnnHandle_t h, cudnnRNNDescriptor_t r, const int32_t lengths[],
                                                  cudnnRNNDataDescriptor_t y_desc, const void *y, const void *dy,
                                                  cudnnRNNDataDescriptor_t x_desc, void *dx,
                                                  cudnnTensorDescriptor_t h_desc, const void *hx, const void *dhy,
                                                  void *dhx, cudnnTensorDescriptor_t c_desc, const void *cx,
                                                  const void *dcy, void *dcx, size_t weights, const void *space,
                                                  size_t work, void *workspace, size_t reserve, void *kept)
{
        LOCK;
        FAIL_RUN;
        layer l(*of(r, __func__), 1, 1);
        cudnnStatus_t s = check(__func__, h, r, lengths, x_desc, y_desc, h_desc, &l);
        if (s == CUDNN_STATUS_SUCCESS)
                s = check_spaces(__func__, l, weights, space, work, workspace, reserve, kept, true);
        if (s != CUDNN_STATUS_SUCCESS)
                return s;
        NEED(!l.lstm || is_state(l, of(c_desc, __func__)));
        check_values(__func__, l, dx, l.steps, r->inputs);
        for (const void *values : {y, dy})
                check_values(__func__, l, values, l.steps, r->hidden);
        if (!l.lstm)
                cx = dcy = dcx = nullptr;
        for (const void *state : {hx, dhy, (const void *)dhx, cx, dcy, (const void *)dcx})
                check_values(__func__, l, state, 0, r->hidden);
        places p = {};
        p.y = (const char *)y;
        p.dy = (const char *)dy;
        p.dx = (char *)dx;
        p.h0 = (const char *)hx;
        p.dh = (const char *)dhy;
        p.dh0 = (char *)dhx;
        p.c0 = (const char *)cx;
        p.dc = (const char *)dcy;
        p.dc0 = (char *)dcx;
        p.space = (const char *)space;
        p.reserve = (char *)kept;
        queue(h, l, p, derive<double>, derive<float>, workspace, work);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights_v8(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnWgradMode_t mode,
                                                     const int32_t lengths[], cudnnRNNDataDescriptor_t x_desc,
                                                     const void *x, cudnnTensorDescriptor_t h_desc, const void *hx,
                                                     cudnnRNNDataDescriptor_t y_desc, const void *y, size_t weights,
                                                     void *space, size_t work, void *workspace, size_t reserve,
                                                     void *kept)
{
        LOCK;
        FAIL_RUN;
        if (mode != CUDNN_WGRAD_MODE_ADD)
                return CUDNN_STATUS_NOT_SUPPORTED;
        layer l(*of(r, __func__), 1, 1);
        cudnnStatus_t s = check(__func__, h, r, lengths, x_desc, y_desc, h_desc, &l);
        if (s == CUDNN_STATUS_SUCCESS)
                s = check_spaces(__func__, l, weights, space, work, workspace, reserve, kept, true);
        if (s != CUDNN_STATUS_SUCCESS)
                return s;
        check_values(__func__, l, x, l.steps, r->inputs);
        check_values(__func__, l, y, l.steps, r->hidden);
        check_values(__func__, l, hx, 0, r->hidden);
        places p = {};
        p.x = (const char *)x;
        p.y = (const char *)y;
        p.h0 = (const char *)hx;
        p.dspace = (char *)space;
        p.reserve = (char *)kept;
        queue(h, l, p, derive_weights<double>, derive_weights<float>, workspace, work);
        return CUDNN_STATUS_SUCCESS;
}
} // extern "C"
