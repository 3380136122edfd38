/* recurrent.h - parts of a recurrent layer that the forward pass and its derivative share. */
#ifndef LG_CUDA_RECURRENT_H
#define LG_CUDA_RECURRENT_H

#include "scalar.h"

/* Number of gates in the weights, and of elements of a state h. */
static inline int64_t lg_recurrent_gates(const lg_recurrent_args *a)
{
        return a->kind == LG_RECURRENT_LSTM ? 4 : a->kind == LG_RECURRENT_GRU ? 3 : 1;
}
static __host__ __device__ inline int64_t lg_recurrent_state(const lg_recurrent_args &a)
{
        return a.projection ? a.projection : a.hidden;
}

/* Computes a layer by kernels of this library. A reserve stays empty. */
bool lg_recurrent_run(lg_queue *q, const lg_recurrent_args *a);

static inline int64_t lg_recurrent_time(const lg_recurrent_args *a, int64_t s)
{
        return a->reverse ? a->steps - 1 - s : s;
}

static __device__ inline int64_t lg_recurrent_length(const lg_recurrent_args &a, int64_t b)
{
        const int64_t n = a.lengths ? a.lengths[b] : a.steps;
        return n < 0 ? 0 : n > a.steps ? a.steps : n;
}

/* Returns element k of `states` (steps, batch, n) of sample b before time t, that of `initial` if t is the sample's
 * first, or 0 if that is NULL. */
template <typename T>
static __device__ inline T lg_recurrent_before(const lg_recurrent_args &a, const void *states, const void *initial,
                                               int64_t n, int64_t t, int64_t b, int64_t k)
{
        const int64_t first = a.reverse ? lg_recurrent_length(a, b) - 1 : 0;
        if (t == first)
                return initial ? ((const T *)initial)[b * n + k] : (T)0;
        return ((const T *)states)[((t + (a.reverse ? 1 : -1)) * a.batch + b) * n + k];
}

/* Copies n elements, or zeros if `from` is NULL. */
template <typename T> static __global__ void lg_recurrent_set(int64_t n, T *to, const T *from)
{
        for (int64_t i = LG_FIRST; i < n; i += LG_STEP)
                to[i] = from ? from[i] : (T)0;
}

/* Computes C = A B + bias, or C += A B if `adds`: A is (m, k) with rows of k elements, or (k, m) if `turned`; B is
 * (k, n), or (n, k) if `by_rows`. */
typedef struct lg_recurrent_product {
        const void *a, *b, *bias;
        void *c;
        int64_t m, n, k;
        bool turned, by_rows, adds;
} lg_recurrent_product;
static inline bool lg_recurrent_multiply(lg_queue *q, lg_dtype t, const lg_recurrent_product &p)
{
        lg_gemm_args g = {};
        g.dtype = t;
        g.m = p.m;
        g.n = p.n;
        g.k = p.k;
        g.a = p.a;
        g.b = p.b;
        g.c = p.c;
        g.a_row = p.turned ? 1 : p.k;
        g.a_col = p.turned ? p.m : 1;
        g.b_row = p.by_rows ? 1 : p.n;
        g.b_col = p.by_rows ? p.k : 1;
        g.ldc = p.n;
        g.beta = p.adds;
        g.bias = p.bias;
        return lg_cuda_gemm(q, &g);
}

#endif
