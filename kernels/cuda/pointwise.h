/* pointwise.h - the kernel behind every line of pointwise.def, for float, double and int64_t, from which all dtypes are
 * served. */
#ifndef LG_CUDA_POINTWISE_H
#define LG_CUDA_POINTWISE_H

#include "scalar.h"
#include "shape.h"

/* Operand 0 of the walk is the output. A derivative's condition is a bool among its inputs. */
typedef struct lg_operands {
        void *out;
        const void *in[LG_PW_INPUTS];
        lg_dtype out_dtype, dtypes[LG_PW_INPUTS];
} lg_operands;

template <typename H, int V, H (*formula)(H, H, H, H, H, H)>
static __global__ void lg_pointwise_loop(lg_walk<LG_PW_INPUTS + 1> w, lg_operands a, int64_t n, H p0, H p1)
{
        const int last = w.ndim - 1;
        for (int64_t e = LG_FIRST * V; e < n; e += LG_STEP * V) {
                int64_t at[LG_PW_INPUTS + 1];
                H v[LG_PW_INPUTS][V] = {}, y[V];
                const int live = V == 1 || n - e >= V ? V : (int)(n - e);
                lg_places(w, e, at);
                LG_UNROLL
                for (int k = 0; k < LG_PW_INPUTS; k++)
                        if (a.in[k])
                                lg_load_some<H, V>(a.in[k], a.dtypes[k], at[k + 1], w.strides[k + 1][last], live, v[k]);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        y[j] = formula(v[0][j], v[1][j], v[2][j], v[3][j], p0, p1);
                lg_store_some<H, V>(a.out, a.out_dtype, at[0], live, y);
        }
}

/* `condition`: the slot that holds bools, or -1. */
template <typename H, H (*formula)(H, H, H, H, H, H)>
static bool lg_pointwise(lg_queue *q, const char *name, const lg_pointwise_args *a, int condition, bool compare, H p0,
                         H p1)
{
        const int64_t n = lg_count(a->ndim, a->shape);
        if (n == 0)
                return true;
        lg_operands o = {a->out, {a->in[0], a->in[1], a->in[2], a->in[3]}, compare ? LG_BOOL : a->dtype, {}};
        const int64_t *strides[LG_PW_INPUTS + 1] = {a->out_strides};
        for (int k = 0; k < LG_PW_INPUTS; k++) {
                o.dtypes[k] = k == condition ? LG_BOOL : a->dtype;
                strides[k + 1] = a->in[k] ? a->in_strides[k] : NULL;
        }
        const lg_walk<LG_PW_INPUTS + 1> w = lg_walk_of(a->ndim, a->shape, strides, true);
        bool packed = lg_packs<H>(w, 0, o.out, o.out_dtype) && w.strides[0][w.ndim - 1] == 1;
        for (int k = 0; k < LG_PW_INPUTS; k++)
                packed = packed && lg_packs<H>(w, k + 1, o.in[k], o.dtypes[k]);
        return LG_WITH_PACKS(
                packed, lg_launch(q, name, lg_pointwise_loop<H, V, formula>, lg_pack_blocks(q, n, V), w, o, n, p0, p1));
}

/* A formula as a function of what is in the slots. */
#define FORMULA(name, value)                                                                                           \
        template <typename T> static __device__ T f_##name(T v0, T v1, T v2, T v3, T P0, T P1)                         \
        {                                                                                                              \
                (void)v0, (void)v1, (void)v2, (void)v3, (void)P0, (void)P1;                                            \
                return (T)(value);                                                                                     \
        }

/* The function of the table behind a formula, of float dtypes or of any. */
#define FLOATS(name, condition, compare)                                                                               \
        if (a->dtype == LG_F64)                                                                                        \
                return lg_pointwise<double, f_##name<double>>(q, #name, a, condition, compare, a->p0, a->p1);          \
        if (lg_is_float(a->dtype))                                                                                     \
                return lg_pointwise<float, f_##name<float>>(q, #name, a, condition, compare, (float)a->p0,             \
                                                            (float)a->p1);
#define KERNEL_FLOAT(name, condition, compare)                                                                         \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, condition, compare)                                                                       \
                return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", #name, (int)a->dtype);                \
        }
#define KERNEL_ANY(name, condition, compare)                                                                           \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                FLOATS(name, condition, compare)                                                                       \
                return lg_pointwise<int64_t, f_##name<int64_t>>(q, #name, a, condition, compare, lg_to_i64(a->p0),     \
                                                                lg_to_i64(a->p1));                                     \
        }

#endif
