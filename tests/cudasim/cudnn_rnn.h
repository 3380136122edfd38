/* cudnn_rnn.h - what the parts of the simulated cuDNN's recurrent layers share. */
#ifndef SIM_CUDNN_RNN_H
#define SIM_CUDNN_RNN_H

#include "sim.h"
#include <cudnn.h>

struct cudnnRNNStruct {
        cudnnRNNMode_t mode;
        cudnnRNNBiasMode_t bias;
        cudnnDataType_t type;
        cudnnMathType_t math;
        int inputs = 0, hidden;
};

namespace cudasim::dnn
{
/* Bytes between two parts of the weights, and before the reserve space's values. */
constexpr size_t gap = 256, head = 256;

inline size_t bytes_of(cudnnDataType_t t)
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

/* Where operands are. h0, c0 and the gradients dh, dc of the last states, and h, c, dh0, dc0, may be NULL. */
struct places {
        const char *x, *y, *dy, *h0, *c0, *dh, *dc, *space;
        char *to, *h, *c, *dx, *dh0, *dc0, *dspace, *reserve;
};

/* Run what the three functions compute. The derivatives die unless the reserve space was filled before. */
void run_forward(const layer &l, const places &p);
void run_derive(const layer &l, const places &p);
void run_derive_weights(const layer &l, const places &p);
} // namespace cudasim::dnn

#endif
