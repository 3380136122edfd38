/* pointwise.h - the kernel behind every line of pointwise.def, for float, double and int64_t, in which all dtypes are
 * computed. */
#ifndef LG_CUDA_POINTWISE_H
#define LG_CUDA_POINTWISE_H

#include "scalar.h"
#include "shape.h"

/* The operands of a pointwise kernel; operand 0 of the walk is the output. dtypes is LG_BOOL for a condition. */
typedef struct lg_operands {
        void *out;
        const void *in[LG_PW_INPUTS];
        lg_dtype out_dtype, dtypes[LG_PW_INPUTS];
        bool accumulate;
} lg_operands;

#define LG_NEIGHBOURS(I) (16 / (int)sizeof(I)) /* elements of a 16-byte pack, which a thread processes at once */

/* Load and store element i of a dtype that is bool or has compute type H; lg_load() and lg_store() take any dtype. */
template <typename H> static __device__ inline H lg_load_own(const void *p, lg_dtype t, int64_t i)
{
        if (t == LG_BOOL)
                return (H)(((const uint8_t *)p)[i] != 0);
        if constexpr (std::is_same<H, double>::value)
                return ((const double *)p)[i];
        else if constexpr (std::is_same<H, float>::value)
                return t == LG_F16    ? __half2float(((const __half *)p)[i])
                       : t == LG_BF16 ? __bfloat162float(((const __nv_bfloat16 *)p)[i])
                                      : ((const float *)p)[i];
        else
                return t == LG_I64   ? ((const int64_t *)p)[i]
                       : t == LG_I32 ? (H)((const int32_t *)p)[i]
                                     : (H)((const uint8_t *)p)[i];
}

template <typename H> static __device__ inline void lg_store_own(void *p, lg_dtype t, int64_t i, H x)
{
        if (t == LG_BOOL)
                ((uint8_t *)p)[i] = x != 0;
        else if constexpr (std::is_same<H, double>::value)
                ((double *)p)[i] = x;
        else if constexpr (std::is_same<H, float>::value) {
                if (t == LG_F16)
                        ((__half *)p)[i] = __float2half(x);
                else if (t == LG_BF16)
                        ((__nv_bfloat16 *)p)[i] = __float2bfloat16(x);
                else
                        ((float *)p)[i] = x;
        } else if (t == LG_I64)
                ((int64_t *)p)[i] = x;
        else if (t == LG_I32)
                ((int32_t *)p)[i] = (int32_t)(uint32_t)(uint64_t)x;
        else
                ((uint8_t *)p)[i] = (uint8_t)(uint64_t)x;
}

/* Adds V previous values of the output, from element i on, to y. */
template <typename H, int V> static __device__ inline void lg_add_old(const void *p, lg_dtype t, int64_t i, H y[V])
{
        H old[V];
        if (V > 1)
                lg_load_pack<H, V>(p, t, i, old);
        else
                old[0] = lg_load_own<H>(p, t, i);
        LG_UNROLL
        for (int j = 0; j < V; j++)
                y[j] += old[j];
}

/* Computes y = formula(inputs) for V elements from e on. V > 1 needs lg_packs() for all operands. */
template <typename I, typename H, int V, H (*formula)(H, H, H, H, H, H)>
static __device__ inline void lg_pointwise_some(const lg_walk<LG_PW_INPUTS + 1> &w, const lg_operands &a, int64_t e,
                                                H p0, H p1)
{
        int64_t at[LG_PW_INPUTS + 1];
        I v[LG_PW_INPUTS][V] = {};
        H y[V];
        lg_places(w, e, at);
        LG_UNROLL
        for (int k = 0; k < LG_PW_INPUTS; k++) {
                if (!a.in[k])
                        continue;
                if (V > 1 && w.strides[k + 1][w.ndim - 1] != 0)
                        lg_load_pack<I, V>(a.in[k], a.dtypes[k], at[k + 1], v[k]);
                else {
                        v[k][0] = lg_load_own<I>(a.in[k], a.dtypes[k], at[k + 1]);
                        LG_UNROLL
                        for (int j = 1; j < V; j++)
                                v[k][j] = v[k][0];
                }
        }
        LG_UNROLL
        for (int j = 0; j < V; j++)
                y[j] = formula((H)v[0][j], (H)v[1][j], (H)v[2][j], (H)v[3][j], p0, p1);
        if (a.accumulate)
                lg_add_old<H, V>(a.out, a.out_dtype, at[0], y);
        if (V > 1)
                lg_store_pack<H, V>(a.out, a.out_dtype, at[0], y);
        else
                lg_store_own<H>(a.out, a.out_dtype, at[0], y[0]);
}

/* Computes the first `packed` of n elements in whole packs, the others one at a time. */
template <typename I, typename H, H (*formula)(H, H, H, H, H, H)>
static __global__ void lg_pointwise_loop(lg_walk<LG_PW_INPUTS + 1> w, lg_operands a, int64_t packed, int64_t n, H p0,
                                         H p1)
{
        constexpr int V = LG_NEIGHBOURS(I);
        for (int64_t e = LG_FIRST * V; e < packed; e += LG_STEP * V)
                lg_pointwise_some<I, H, V, formula>(w, a, e, p0, p1);
        for (int64_t e = packed + LG_FIRST; e < n; e += LG_STEP)
                lg_pointwise_some<I, H, 1, formula>(w, a, e, p0, p1);
}

/* The arguments of a launch. They are computed by a function for each type, not for each formula, which halves the host
 * compiler's time. */
typedef struct lg_pointwise_plan {
        lg_walk<LG_PW_INPUTS + 1> walk;
        lg_operands operands;
        int64_t n, packed, blocks;
} lg_pointwise_plan;

/* Fills *ret. `condition` is the input slot that holds bools, or -1. No size is 0. */
template <typename I, typename H>
static __attribute__((noinline)) void lg_pointwise_prepare(lg_queue *q, const lg_pointwise_args *a, int condition,
                                                           bool compare, lg_pointwise_plan *ret)
{
        lg_operands o = {
                a->out, {a->in[0], a->in[1], a->in[2], a->in[3]}, compare ? LG_BOOL : a->dtype, {}, a->accumulate};
        const int64_t *strides[LG_PW_INPUTS + 1] = {a->out_strides};
        for (int k = 0; k < LG_PW_INPUTS; k++) {
                o.dtypes[k] = k == condition ? LG_BOOL : a->dtype;
                strides[k + 1] = a->in[k] ? a->in_strides[k] : NULL;
        }
        const lg_walk<LG_PW_INPUTS + 1> w = lg_walk_of(a->ndim, a->shape, strides, true);
        bool packs = lg_packs<H>(w, 0, o.out, o.out_dtype) && w.strides[0][w.ndim - 1] == 1;
        for (int k = 0; k < LG_PW_INPUTS; k++)
                packs = packs && lg_packs<I>(w, k + 1, o.in[k], o.dtypes[k]);
        const int at_once = packs ? LG_NEIGHBOURS(I) : 1;
        const int64_t n = lg_count(a->ndim, a->shape);
        *ret = {w, o, n, packs ? n - n % at_once : 0, lg_pack_blocks(q, n, at_once)};
}

/* Launches the kernel of a formula, with inputs loaded as I and converted to H. */
template <typename I, typename H, H (*formula)(H, H, H, H, H, H)>
static bool lg_pointwise(lg_queue *q, const char *name, const lg_pointwise_args *a, int condition, bool compare, H p0,
                         H p1)
{
        lg_pointwise_plan p;
        if (lg_count(a->ndim, a->shape) == 0)
                return true;
        lg_pointwise_prepare<I, H>(q, a, condition, compare, &p);
        return lg_launch(q, name, lg_pointwise_loop<I, H, formula>, p.blocks, p.walk, p.operands, p.packed, p.n, p0,
                         p1);
}

/* The parameters of a formula: of forward functions, of TERNARY, of derivatives, of derivatives of TERNARY. */
#define IN(v) [[maybe_unused]] T v
#define SLOTS_INPUTS IN(A), IN(B), T, T
#define SLOTS_CHOICE IN(C), IN(A), IN(B), T
#define SLOTS_SLOPE IN(G), IN(A), IN(B), IN(Y)
#define SLOTS_CHOICE_SLOPE IN(G), IN(C), T, T
#define X A

/* Defines a formula as a device function of its slots and of the numbers P0 and P1. */
#define FORMULA(name, slots, value)                                                                                    \
        template <typename T> static __device__ T f_##name(SLOTS_##slots, IN(P0), IN(P1))                              \
        {                                                                                                              \
                return (T)(value);                                                                                     \
        }

/* Define the kernel of a formula, lg_cuda_<name>: for float dtypes, for any, or for integers. */
#define FLOATS(name, condition, compare)                                                                               \
        if (a->dtype == LG_F64)                                                                                        \
                return lg_pointwise<double, double, f_##name<double>>(q, #name, a, condition, compare, a->p0, a->p1);  \
        if (lg_is_float(a->dtype))                                                                                     \
                return lg_pointwise<float, float, f_##name<float>>(q, #name, a, condition, compare, (float)a->p0,      \
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
                return lg_pointwise<int64_t, int64_t, f_##name<int64_t>>(q, #name, a, condition, compare,              \
                                                                         lg_to_i64(a->p0), lg_to_i64(a->p1));          \
        }
#define KERNEL_NUMBER KERNEL_ANY
#define KERNEL_INTEGER(name, condition, compare)                                                                       \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pointwise_args *a)                                        \
        {                                                                                                              \
                return lg_pointwise<int64_t, int64_t, f_##name<int64_t>>(q, #name, a, condition, compare,              \
                                                                         lg_to_i64(a->p0), lg_to_i64(a->p1));          \
        }

#endif
