/* test_layers.cpp - the simulated cuDNN answers wrong descriptions of recurrent layers as the real one does, and
 * catches calls out of order. */
#include "sim.h"
#include "caught.h"
#include <cudnn.h>
#include <functional>
#include <vector>

enum { STEPS = 3, BATCH = 2, IN = 4, HIDDEN = 5 };

static char *device_bytes(size_t n)
{
        void *p = nullptr;
        assert_int_equal(cudaMalloc(&p, n), cudaSuccess);
        cudaMemsetAsync(p, 0, n, nullptr);
        return (char *)p;
}

/* An LSTM that can be run, with whatever a test changes. */
struct small_layer {
        cudnnHandle_t handle;
        cudnnRNNDescriptor_t rnn;
        cudnnRNNDataDescriptor_t x, y;
        cudnnTensorDescriptor_t state;
        size_t weights = 0, work = 0, reserve = 0;
        char *values, *space, *workspace, *kept;
        std::function<void()> destroy; /* what was made, whatever a test puts in its place */

        small_layer()
        {
                const int shape[] = {1, BATCH, HIDDEN}, strides[] = {BATCH * HIDDEN, HIDDEN, 1};
                cudnnCreate(&handle);
                cudnnCreateRNNDescriptor(&rnn);
                cudnnCreateRNNDataDescriptor(&x);
                cudnnCreateRNNDataDescriptor(&y);
                cudnnCreateTensorDescriptor(&state);
                assert_int_equal(set(CUDNN_LSTM, CUDNN_DATA_FLOAT, HIDDEN), CUDNN_STATUS_SUCCESS);
                assert_int_equal(sequences(x, IN, {STEPS, STEPS}), CUDNN_STATUS_SUCCESS);
                assert_int_equal(sequences(y, HIDDEN, {STEPS, STEPS}), CUDNN_STATUS_SUCCESS);
                cudnnSetTensorNdDescriptor(state, CUDNN_DATA_FLOAT, 3, shape, strides);
                cudnnGetRNNWeightSpaceSize(handle, rnn, &weights);
                cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x, &work, &reserve);
                values = device_bytes(STEPS * BATCH * HIDDEN * sizeof(float));
                space = device_bytes(weights);
                workspace = device_bytes(work);
                kept = device_bytes(reserve);
                destroy = [h = handle, r = rnn, of_x = x, of_y = y, s = state,
                           memory = std::vector<char *>{values, space, workspace, kept}] {
                        cudaDeviceSynchronize();
                        cudnnDestroyTensorDescriptor(s);
                        cudnnDestroyRNNDataDescriptor(of_y);
                        cudnnDestroyRNNDataDescriptor(of_x);
                        cudnnDestroyRNNDescriptor(r);
                        cudnnDestroy(h);
                        for (char *bytes : memory)
                                cudaFree(bytes);
                };
        }
        ~small_layer()
        {
                destroy();
        }
        cudnnStatus_t set(cudnnRNNMode_t mode, cudnnDataType_t precision, int projection)
        {
                return cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, mode, CUDNN_RNN_DOUBLE_BIAS,
                                                CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, precision,
                                                CUDNN_FMA_MATH, IN, HIDDEN, projection, 1, nullptr, 0);
        }
        static cudnnStatus_t sequences(cudnnRNNDataDescriptor_t of, int size, const std::vector<int> &lengths)
        {
                return cudnnSetRNNDataDescriptor(of, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, STEPS,
                                                 (int)lengths.size(), size, lengths.data(), nullptr);
        }
        cudnnStatus_t forward() const
        {
                return cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, nullptr, x, values, y, values, state,
                                       nullptr, nullptr, state, nullptr, nullptr, weights, space, work, workspace,
                                       reserve, kept);
        }
        cudnnStatus_t derive() const
        {
                return cudnnRNNBackwardData_v8(handle, rnn, nullptr, y, values, values, x, values, state, nullptr,
                                               nullptr, nullptr, state, nullptr, nullptr, nullptr, weights, space, work,
                                               workspace, reserve, kept);
        }
        cudnnStatus_t derive_weights(cudnnWgradMode_t mode = CUDNN_WGRAD_MODE_ADD) const
        {
                return cudnnRNNBackwardWeights_v8(handle, rnn, mode, nullptr, x, values, state, nullptr, y, values,
                                                  weights, space, work, workspace, reserve, kept);
        }
};

static void wrong_descriptions_are_refused(void **)
{
        small_layer l;
        assert_int_equal(l.set(CUDNN_LSTM, CUDNN_DATA_DOUBLE, HIDDEN), CUDNN_STATUS_NOT_SUPPORTED);
        assert_int_equal(l.set(CUDNN_GRU, CUDNN_DATA_FLOAT, HIDDEN - 1), CUDNN_STATUS_NOT_SUPPORTED);
        assert_int_equal(l.set(CUDNN_LSTM, CUDNN_DATA_FLOAT, 0), CUDNN_STATUS_BAD_PARAM);
        const std::vector<int> wrong[] = {{1, STEPS}, {STEPS, 0}, {STEPS + 1, 1}, {STEPS, -1}, {STEPS - 1, 1}, {}};
        for (const std::vector<int> &lengths : wrong)
                assert_int_equal(small_layer::sequences(l.x, IN, lengths), CUDNN_STATUS_BAD_PARAM);
        assert_int_equal(l.forward(), CUDNN_STATUS_SUCCESS);
        assert_int_equal(l.derive(), CUDNN_STATUS_SUCCESS);
        assert_int_equal(l.derive_weights(), CUDNN_STATUS_SUCCESS);
        assert_int_equal(l.derive_weights(CUDNN_WGRAD_MODE_SET), CUDNN_STATUS_NOT_SUPPORTED);
        for (int i = 0; i < 6; i++) {
                small_layer bad;
                bad.weights -= i == 0;
                bad.work -= i == 1;
                bad.reserve -= i == 2;
                bad.kept = i == 3 ? nullptr : bad.kept;
                bad.y = i == 4 ? bad.x : bad.y;
                bad.state = i == 5 ? nullptr : bad.state;
                assert_int_equal(bad.forward(), CUDNN_STATUS_BAD_PARAM);
                assert_int_equal(bad.derive(), CUDNN_STATUS_BAD_PARAM);
                assert_int_equal(bad.derive_weights(), CUDNN_STATUS_BAD_PARAM);
        }
        assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
}

static void wrong_calls_are_caught(void **)
{
        caught(
                [] { /* no derivative of the data before */
                     small_layer l;
                     l.forward();
                     l.derive_weights();
                     cudaDeviceSynchronize();
                },
                "a reserve space that the call before it has not filled");
        caught(
                [] { /* a second derivative by the same reserve space */
                     small_layer l;
                     l.forward();
                     l.derive();
                     l.derive();
                     cudaDeviceSynchronize();
                },
                "a reserve space that the call before it has not filled");
        caught(
                [] { /* a reserve space that is too small for its size */
                     small_layer l;
                     l.kept = device_bytes(l.reserve / 2);
                     l.forward();
                },
                "reach beyond their allocation");
        caught(
                [] {
                        small_layer l;
                        small_layer::sequences(l.x, IN, {STEPS, 1});
                        l.forward();
                },
                "different lengths are not simulated");
        caught(
                [] {
                        small_layer l;
                        cudnnDestroyRNNDescriptor(l.rnn);
                        l.forward();
                },
                "one that was destroyed");
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(wrong_descriptions_are_refused),
                cmocka_unit_test(wrong_calls_are_caught),
        };
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
