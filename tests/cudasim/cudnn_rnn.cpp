/* cudnn_rnn.cpp - cuDNN's recurrent layers, of one layer in one direction: descriptors and checks, which answer as
 * cuDNN 9.19 does; cudnn_rnn_run.cpp has the loops.
 *
 * The weights lie in another order than cuDNN's, with a gap.
 */
#include "cudnn_calls.h"
#include "cudnn_rnn.h"
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
namespace
{
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

void queue(const cudnnContext *h, const layer &l, const places &p, void (*run)(const layer &, const places &),
           void *work, size_t bytes)
{
        enqueue(h->stream, [=] {
                memset(work, 0x5a, bytes);
                run(l, p);
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
        queue(h, l, p, run_forward, workspace, work);
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
        queue(h, l, p, run_derive, workspace, work);
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
        queue(h, l, p, run_derive_weights, workspace, work);
        return CUDNN_STATUS_SUCCESS;
}
} // extern "C"
