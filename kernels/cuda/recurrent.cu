/* recurrent.cu - recurrent layers: TANH, RELU, LSTM, GRU. One product computes the inputs' part of all gates; each step
 * is a product with the state and a kernel for the cell. */
#include "recurrent.h"
#include "dnn.h"

/* A step, at time t, from states `from` to states `to` (batch, state). */
template <typename T> struct step {
        int64_t t;
        const T *of_input, *of_state; /* parts of the gates, (batch, gates, hidden) */
        const T *from;
        T *to, *hidden; /* with a projection, `hidden` gets o tanh(c) instead of `to` */
};

static __global__ void check_lengths(lg_recurrent_args a, lg_device_error *error)
{
        for (int64_t b = LG_FIRST; b < a.batch; b += LG_STEP)
                if (a.lengths[b] < 0 || a.lengths[b] > a.steps)
                        lg_note(error, a.origin, a.lengths[b], a.steps + 1);
}

/* Returns h of unit k of sample b after an LSTM's step, and keeps c, cells and gates. */
template <typename T>
static __device__ inline T lstm_cell(const lg_recurrent_args &a, const step<T> &s, int64_t b, int64_t k)
{
        const int64_t H = a.hidden, row = s.t * a.batch + b;
        const T *x = s.of_input + b * 4 * H + k, *h = s.of_state + b * 4 * H + k;
        T *c = (T *)a.c + b * H + k;
        const T i = lgm_sigmoid(x[0] + h[0]), f = lgm_sigmoid(x[H] + h[H]);
        const T g = lgm_tanh(x[2 * H] + h[2 * H]), o = lgm_sigmoid(x[3 * H] + h[3 * H]), sum = f * *c + i * g;
        *c = sum;
        if (a.gates) {
                T *gates = (T *)a.gates + row * 4 * H + k;
                gates[0] = i;
                gates[H] = f;
                gates[2 * H] = g;
                gates[3 * H] = o;
                ((T *)a.cells)[row * H + k] = sum;
        }
        return o * lgm_tanh(sum);
}

template <typename T>
static __device__ inline T gru_cell(const lg_recurrent_args &a, const step<T> &s, int64_t b, int64_t k)
{
        const int64_t H = a.hidden;
        const T *x = s.of_input + b * 3 * H + k, *h = s.of_state + b * 3 * H + k;
        const T r = lgm_sigmoid(x[0] + h[0]), z = lgm_sigmoid(x[H] + h[H]), part = h[2 * H];
        const T n = lgm_tanh(x[2 * H] + r * part);
        if (a.gates) {
                T *gates = (T *)a.gates + (s.t * a.batch + b) * 4 * H + k;
                gates[0] = r;
                gates[H] = z;
                gates[2 * H] = n;
                gates[3 * H] = part;
        }
        return n + z * (s.from[b * H + k] - n);
}

/* Stores the zeros that a sample has after its end. */
template <typename T> static __device__ inline void put_zeros(const lg_recurrent_args &a, int64_t row, int64_t k)
{
        for (int64_t g = 0; a.gates && g < 4; g++)
                ((T *)a.gates)[(row * 4 + g) * a.hidden + k] = 0;
        if (a.cells)
                ((T *)a.cells)[row * a.hidden + k] = 0;
}

/* Applies the cell. Without a projection also ends the step, as end_steps() does. */
template <typename T> static __global__ void cells(lg_recurrent_args a, step<T> s)
{
        const int64_t H = a.hidden;
        for (int64_t e = LG_FIRST; e < a.batch * H; e += LG_STEP) {
                const int64_t b = e / H, k = e % H;
                const bool lasts = s.t < lg_recurrent_length(a, b);
                T h = 0;
                if (!lasts)
                        put_zeros<T>(a, s.t * a.batch + b, k);
                if (lasts && a.kind == LG_RECURRENT_LSTM) {
                        h = lstm_cell(a, s, b, k);
                } else if (lasts && a.kind == LG_RECURRENT_GRU) {
                        h = gru_cell(a, s, b, k);
                } else if (lasts) {
                        const T sum = s.of_input[e] + s.of_state[e];
                        h = a.kind == LG_RECURRENT_TANH ? lgm_tanh(sum) : sum <= 0 ? (T)0 : sum;
                }
                if (a.w_hr) {
                        s.hidden[e] = h;
                } else {
                        s.to[e] = lasts ? h : s.from[e];
                        ((T *)a.y)[s.t * a.batch * H + e] = h;
                }
        }
}

/* Keeps the states of samples that have ended, and stores y: 0 for these. */
template <typename T> static __global__ void end_steps(lg_recurrent_args a, step<T> s)
{
        const int64_t state = lg_recurrent_state(a), n = a.batch * state;
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const bool lasts = s.t < lg_recurrent_length(a, e / state);
                ((T *)a.y)[s.t * n + e] = lasts ? s.to[e] : (T)0;
                s.to[e] = lasts ? s.to[e] : s.from[e];
        }
}

template <typename T> static bool run_step(lg_queue *q, const lg_recurrent_args *a, const step<T> &s)
{
        const int64_t down = lg_recurrent_gates(a) * a->hidden, state = lg_recurrent_state(*a);
        lg_recurrent_product p = {s.from, a->w_hh, a->b_hh, (void *)s.of_state, a->batch, down, state,
                                  false,  true,    false};
        if (!lg_recurrent_multiply(q, a->dtype, p) ||
            !lg_launch(q, "recurrent", cells<T>, lg_blocks(q, a->batch * a->hidden), *a, s))
                return false;
        if (!a->w_hr)
                return true;
        p = {s.hidden, a->w_hr, NULL, s.to, a->batch, state, a->hidden, false, true, false};
        return lg_recurrent_multiply(q, a->dtype, p) &&
               lg_launch(q, "recurrent (end)", end_steps<T>, lg_blocks(q, a->batch * state), *a, s);
}

template <typename T> static bool recurrent(lg_queue *q, const lg_recurrent_args *a)
{
        const int64_t state = lg_recurrent_state(*a), down = lg_recurrent_gates(a) * a->hidden, n = a->batch * state;
        const int64_t inner = a->batch * a->hidden, all = a->steps * a->batch;
        T *sums = (T *)q->workspace(q, (size_t)((all + a->batch) * down + 2 * n + inner) * sizeof *sums);
        if (!sums)
                return false;
        T *states[] = {sums + (all + a->batch) * down, sums + (all + a->batch) * down + n};
        T *first = a->steps ? states[0] : (T *)a->h;
        const lg_recurrent_product p = {a->x, a->w_ih, a->b_ih, sums, all, down, a->inputs, false, true, false};
        if ((a->lengths &&
             !lg_launch(q, "recurrent (lengths)", check_lengths, lg_blocks(q, a->batch), *a, lg_cuda(q)->error)) ||
            !lg_launch(q, "recurrent (h0)", lg_recurrent_set<T>, lg_blocks(q, n), n, first, (const T *)a->h0) ||
            (a->kind == LG_RECURRENT_LSTM && !lg_launch(q, "recurrent (c0)", lg_recurrent_set<T>, lg_blocks(q, inner),
                                                        inner, (T *)a->c, (const T *)a->c0)) ||
            !lg_recurrent_multiply(q, a->dtype, p))
                return false;
        for (int64_t i = 0; i < a->steps; i++) {
                const int64_t t = lg_recurrent_time(a, i);
                T *to = i + 1 == a->steps ? (T *)a->h : states[~i & 1];
                const step<T> s = {t, sums + t * a->batch * down, sums + all * down, states[i & 1], to, states[1] + n};
                if (!run_step(q, a, s))
                        return false;
        }
        return true;
}

bool lg_recurrent_run(lg_queue *q, const lg_recurrent_args *a)
{
        lg_recurrent_args own = *a;
        own.gates = a->reserve ? NULL : a->gates;
        return a->dtype == LG_F64 ? recurrent<double>(q, &own) : recurrent<float>(q, &own);
}

extern "C" bool lg_cuda_recurrent(lg_queue *q, const lg_recurrent_args *a)
{
        if (a->dtype != LG_F32 && a->dtype != LG_F64)
                return lg_queue_fail(q, LG_BROKEN, "recurrent: no kernel for dtype %d", (int)a->dtype);
        if (a->batch == 0)
                return true;
        const lg_dnn_answer answer = lg_dnn_recurrent(q, a);
        return answer == LG_DNN_REFUSED ? lg_recurrent_run(q, a) : answer == LG_DNN_DONE;
}

extern "C" int64_t lg_cuda_recurrent_reserve(lg_queue *q, const lg_recurrent_args *a)
{
        lg_on_device here(q->index);
        return here.error == cudaSuccess ? lg_dnn_recurrent_reserve(q, a) : 0;
}
