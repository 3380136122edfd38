/* recurrent_vjp.cu - the derivative of recurrent layers. Each step, from the last to the first, is a kernel for the
 * cell, which gives the gradients of the gates, and a product that gives those of the state before. The gradients of
 * inputs, weights and biases are products and sums over all steps. */
#include "recurrent.h"
#include "dnn.h"

/* Gradients in scratch memory. */
template <typename T> struct scratch {
        T *of_input, *of_state; /* of the gates (steps, batch, gates, hidden); the same memory except for the GRU */
        T *dh, *dc, *dm;        /* (batch, state), (batch, hidden); dm: of o tanh(c), with a projection */
        T *dp;                  /* with a projection: of h (steps, batch, projection), without the samples that ended */
};

/* With a projection: moves the gradients of h at time t to dp. */
template <typename T> static __global__ void begin_steps(lg_recurrent_vjp_args v, scratch<T> s, int64_t t)
{
        const lg_recurrent_args &a = v.layer;
        const int64_t state = lg_recurrent_state(a), n = a.batch * state;
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const bool lasts = t < lg_recurrent_length(a, e / state);
                const T dy = v.dy ? ((const T *)v.dy)[t * n + e] : (T)0;
                s.dp[t * n + e] = lasts ? s.dh[e] + dy : (T)0;
                s.dh[e] = lasts ? (T)0 : s.dh[e];
        }
}

template <typename T>
static __device__ inline void lstm_back(const lg_recurrent_vjp_args &v, const scratch<T> &s, int64_t t, int64_t b,
                                        int64_t k, bool lasts, T dm)
{
        const lg_recurrent_args &a = v.layer;
        const int64_t H = a.hidden, row = t * a.batch + b;
        T *dg = s.of_input + row * 4 * H + k, *dc = s.dc + b * H + k;
        if (!lasts) {
                dg[0] = dg[H] = dg[2 * H] = dg[3 * H] = 0;
                return;
        }
        const T *gates = (const T *)a.gates + row * 4 * H + k;
        const T i = gates[0], f = gates[H], g = gates[2 * H], o = gates[3 * H];
        const T y = lgm_tanh(((const T *)a.cells)[row * H + k]), d = *dc + dm * o * (1 - y * y);
        dg[0] = d * g * i * (1 - i);
        dg[H] = d * lg_recurrent_before<T>(a, a.cells, a.c0, H, t, b, k) * f * (1 - f);
        dg[2 * H] = d * i * (1 - g * g);
        dg[3 * H] = dm * y * o * (1 - o);
        *dc = d * f;
}

/* Returns the part of the gradient that reaches the state before directly. */
template <typename T>
static __device__ inline T gru_back(const lg_recurrent_vjp_args &v, const scratch<T> &s, int64_t t, int64_t b,
                                    int64_t k, bool lasts, T d)
{
        const lg_recurrent_args &a = v.layer;
        const int64_t H = a.hidden, row = t * a.batch + b;
        T *di = s.of_input + row * 3 * H + k, *ds = s.of_state + row * 3 * H + k;
        if (!lasts) {
                di[0] = di[H] = di[2 * H] = ds[0] = ds[H] = ds[2 * H] = 0;
                return d;
        }
        const T *gates = (const T *)a.gates + row * 4 * H + k;
        const T r = gates[0], z = gates[H], n = gates[2 * H], dn = d * (1 - z) * (1 - n * n);
        di[0] = ds[0] = dn * gates[3 * H] * r * (1 - r);
        di[H] = ds[H] = d * (lg_recurrent_before<T>(a, a.y, a.h0, H, t, b, k) - n) * z * (1 - z);
        di[2 * H] = dn;
        ds[2 * H] = dn * r;
        return d * z;
}

template <typename T> static __global__ void cells_back(lg_recurrent_vjp_args v, scratch<T> s, int64_t t)
{
        const lg_recurrent_args &a = v.layer;
        const int64_t H = a.hidden, n = a.batch * H;
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const int64_t b = e / H, k = e % H;
                const bool lasts = t < lg_recurrent_length(a, b);
                const T dy = lasts && v.dy && !a.w_hr ? ((const T *)v.dy)[t * n + e] : (T)0;
                const T d = a.w_hr ? s.dm[e] : s.dh[e] + dy;
                T before = lasts ? (T)0 : d;
                if (a.kind == LG_RECURRENT_LSTM) {
                        lstm_back(v, s, t, b, k, lasts, d);
                } else if (a.kind == LG_RECURRENT_GRU) {
                        before = gru_back(v, s, t, b, k, lasts, d);
                } else {
                        const T y = ((const T *)a.y)[t * n + e];
                        const T slope = a.kind == LG_RECURRENT_TANH ? 1 - y * y : y > 0 ? (T)1 : (T)0;
                        s.of_input[t * n + e] = lasts ? (slope == 0 ? (T)0 : d * slope) : (T)0;
                }
                if (!a.w_hr)
                        s.dh[e] = before;
        }
}

/* Writes the factors of a weight's gradient, (steps, batch, n), 0 for samples that have ended: `kind` 0: x, 1: the
 * state before, 2: o tanh(c). */
template <typename T> static __global__ void factors(lg_recurrent_args a, int kind, int64_t n, T *to)
{
        for (int64_t e = LG_FIRST; e < a.steps * a.batch * n; e += LG_STEP) {
                const int64_t k = e % n, row = e / n, b = row % a.batch, t = row / a.batch;
                T value = 0;
                if (t < lg_recurrent_length(a, b))
                        value = kind == 0   ? ((const T *)a.x)[e]
                                : kind == 1 ? lg_recurrent_before<T>(a, a.y, a.h0, n, t, b, k)
                                            : ((const T *)a.gates)[(4 * row + 3) * n + k] *
                                                      lgm_tanh(((const T *)a.cells)[e]);
                to[e] = value;
        }
}

template <typename T> static bool run_step(lg_queue *q, const lg_recurrent_vjp_args *v, const scratch<T> &s, int64_t i)
{
        const lg_recurrent_args *a = &v->layer;
        const int64_t t = lg_recurrent_time(a, i), state = lg_recurrent_state(*a), n = a->batch * state;
        const int64_t down = lg_recurrent_gates(a) * a->hidden;
        if (a->w_hr) {
                const lg_recurrent_product p = {s.dp + t * n, a->w_hr, NULL,  s.dm,  a->batch,
                                                a->hidden,    state,   false, false, false};
                if (!lg_launch(q, "recurrent_vjp (begin)", begin_steps<T>, lg_blocks(q, n), *v, s, t) ||
                    !lg_recurrent_multiply(q, a->dtype, p))
                        return false;
        }
        if (!lg_launch(q, "recurrent_vjp", cells_back<T>, lg_blocks(q, a->batch * a->hidden), *v, s, t))
                return false;
        const lg_recurrent_product p = {
                s.of_state + t * a->batch * down, a->w_hh, NULL, s.dh, a->batch, state, down, false, false, true};
        return (i == 0 && !v->dh0) || lg_recurrent_multiply(q, a->dtype, p);
}

/* Computes dw = gates^T factors, unless dw is NULL. `rows`: of dw; `n`: of its columns. */
template <typename T>
static bool derive_weight(lg_queue *q, const lg_recurrent_args *a, const T *gates, int kind, int64_t rows, int64_t n,
                          void *dw)
{
        const int64_t all = a->steps * a->batch;
        if (!dw)
                return true;
        const void *with = a->x;
        if (kind || a->lengths) {
                T *made = (T *)q->workspace(q, (size_t)(all * n + 1) * sizeof *made);
                if (!made || (all * n > 0 && !lg_launch(q, "recurrent_vjp (factors)", factors<T>, lg_blocks(q, all * n),
                                                        *a, kind, n, made)))
                        return false;
                with = made;
        }
        return lg_recurrent_multiply(q, a->dtype, {gates, with, NULL, dw, rows, n, all, true, false, false});
}

static bool sum_rows(lg_queue *q, const lg_recurrent_args *a, const void *gates, int64_t columns, void *sums)
{
        lg_reduce_args r = {};
        r.kind = LG_REDUCE_SUM;
        r.dtype = a->dtype;
        r.kept_ndim = r.reduced_ndim = 1;
        r.kept[0] = r.reduced_strides[0] = columns;
        r.kept_strides[0] = 1;
        r.reduced[0] = a->steps * a->batch;
        r.in = gates;
        r.out = sums;
        return !sums || lg_cuda_reduce(q, &r);
}

template <typename T> static bool derive(lg_queue *q, const lg_recurrent_vjp_args *v)
{
        const lg_recurrent_args *a = &v->layer;
        const int64_t state = lg_recurrent_state(*a), down = lg_recurrent_gates(a) * a->hidden, n = a->batch * state;
        const int64_t inner = a->batch * a->hidden, all = a->steps * a->batch;
        const bool gru = a->kind == LG_RECURRENT_GRU;
        const int64_t gates = all * down, projected = a->w_hr ? all * state : 0;
        T *p = (T *)q->workspace(q, (size_t)((gru ? 2 : 1) * gates + n + 2 * inner + projected + 1) * sizeof *p);
        if (!p)
                return false;
        T *dh = p + (gru ? 2 : 1) * gates, *dc = dh + n, *dm = dc + inner;
        scratch<T> s = {p, gru ? p + gates : p, dh, dc, dm, dm + inner};
        s.dh = v->dh0 ? (T *)v->dh0 : s.dh;
        s.dc = v->dc0 ? (T *)v->dc0 : s.dc;
        if (a->batch &&
            (!lg_launch(q, "recurrent_vjp (dh)", lg_recurrent_set<T>, lg_blocks(q, n), n, s.dh, (const T *)v->dh) ||
             !lg_launch(q, "recurrent_vjp (dc)", lg_recurrent_set<T>, lg_blocks(q, inner), inner, s.dc,
                        (const T *)v->dc)))
                return false;
        for (int64_t i = a->steps - 1; i >= 0 && a->batch; i--)
                if (!run_step(q, v, s, i))
                        return false;
        if (v->dx &&
            !lg_recurrent_multiply(q, a->dtype,
                                   {s.of_input, a->w_ih, NULL, v->dx, all, a->inputs, down, false, false, false}))
                return false;
        return derive_weight(q, a, s.of_input, 0, down, a->inputs, v->dw_ih) &&
               derive_weight(q, a, s.of_state, 1, down, state, v->dw_hh) &&
               derive_weight(q, a, s.dp, 2, state, a->hidden, v->dw_hr) && sum_rows(q, a, s.of_input, down, v->db_ih) &&
               sum_rows(q, a, s.of_state, down, v->db_hh);
}

/* Computes the gates and cells in scratch memory, where cuDNN was to derive a layer and does not. */
static bool compute_gates(lg_queue *q, lg_recurrent_args *a)
{
        const int64_t inner = a->batch * a->hidden, all = a->steps * inner;
        const size_t size = lg_bytes_of(a->dtype);
        char *p = (char *)q->workspace(q, (size_t)(6 * all + 2 * inner) * size);
        if (!p)
                return false;
        lg_recurrent_args again = *a;
        again.reserve = 0;
        again.gates = a->gates = p;
        again.cells = a->cells = p + (size_t)(4 * all) * size;
        again.y = p + (size_t)(5 * all) * size;
        again.h = p + (size_t)(6 * all) * size;
        again.c = p + (size_t)(6 * all + inner) * size;
        return lg_recurrent_run(q, &again);
}

extern "C" bool lg_cuda_recurrent_vjp(lg_queue *q, const lg_recurrent_vjp_args *v)
{
        if (v->layer.dtype != LG_F32 && v->layer.dtype != LG_F64)
                return lg_queue_fail(q, LG_BROKEN, "recurrent_vjp: no kernel for dtype %d", (int)v->layer.dtype);
        lg_recurrent_vjp_args own = *v;
        if (v->layer.reserve) {
                const lg_dnn_answer answer = lg_dnn_recurrent_vjp(q, v);
                if (answer != LG_DNN_REFUSED || !compute_gates(q, &own.layer))
                        return answer == LG_DNN_DONE;
        }
        return v->layer.dtype == LG_F64 ? derive<double>(q, &own) : derive<float>(q, &own);
}
