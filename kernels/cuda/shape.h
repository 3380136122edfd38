/* shape.h - how elementwise kernels walk: dimensions joined where all operands allow it, packs of neighbouring
 * elements, and division by sizes as multiplication. */
#ifndef LG_CUDA_SHAPE_H
#define LG_CUDA_SHAPE_H

#include "rows.h"

/* Division of numbers below 2^31 by one that does not change, as a product. */
typedef struct lg_divisor {
        unsigned by, factor, shift;
} lg_divisor;

static inline lg_divisor lg_divisor_of(int64_t by)
{
        lg_divisor d = {(unsigned)by, 0, 0};
        unsigned bits = 0;
        while (((int64_t)1 << bits) < by)
                bits++;
        if (by > 1) {
                d.factor = (unsigned)((((uint64_t)1 << (31 + bits)) + (uint64_t)by - 1) / (uint64_t)by);
                d.shift = bits - 1;
        }
        return d;
}

/* Leaves the quotient in *n and returns the remainder. */
static __device__ inline unsigned lg_split(unsigned *n, lg_divisor d)
{
        unsigned was = *n;
        *n = d.by == 1 ? was : __umulhi(was, d.factor) >> d.shift;
        return was - *n * d.by;
}

#ifndef LG_CUDASIM
#define LG_NARROW ((int64_t)1 << 31) /* fewer elements are counted in 32 bits */
#endif

/* K operands over a common shape, the last dimension fastest; at least one dimension. */
template <int K> struct lg_walk {
        int ndim;
        bool wide; /* too many elements for 32 bits */
        lg_divisor size[LG_MAX_DIMS];
        int64_t shape[LG_MAX_DIMS];
        int64_t strides[K][LG_MAX_DIMS];
};

template <int K> static inline void lg_walk_add(lg_walk<K> *w, int64_t size, const int64_t (&strides)[K])
{
        bool joins = w->ndim > 0;
        for (int k = 0; joins && k < K; k++)
                joins = w->strides[k][w->ndim - 1] == strides[k] * size;
        w->ndim += !joins;
        w->shape[w->ndim - 1] = joins ? w->shape[w->ndim - 1] * size : size;
        for (int k = 0; k < K; k++)
                w->strides[k][w->ndim - 1] = strides[k];
}

/* The walk over a shape whose sizes are not 0. `strides` of an operand that is not there are NULL. Where the order of
 * elements does not matter (sort), dimensions go by the strides of operand 0. */
template <int K>
static inline lg_walk<K> lg_walk_of(int ndim, const int64_t *shape, const int64_t *const (&strides)[K], bool sort)
{
        lg_walk<K> w = {};
        int order[LG_MAX_DIMS], dims = 0;
        for (int d = 0; d < ndim; d++) {
                if (shape[d] == 1)
                        continue;
                int at = dims++;
                for (; sort && at > 0 && llabs(strides[0][order[at - 1]]) < llabs(strides[0][d]); at--)
                        order[at] = order[at - 1];
                order[at] = d;
        }
        for (int i = 0; i < dims; i++) {
                int64_t one[K];
                for (int k = 0; k < K; k++)
                        one[k] = strides[k] ? strides[k][order[i]] : 0;
                lg_walk_add(&w, shape[order[i]], one);
        }
        if (w.ndim == 0) {
                w.ndim = 1;
                w.shape[0] = 1;
        }
        w.wide = lg_count(w.ndim, w.shape) >= LG_NARROW;
        for (int d = 0; d < w.ndim; d++)
                w.size[d] = lg_divisor_of(w.wide ? 1 : w.shape[d]);
        return w;
}

/* Where element i of each operand is. */
template <int K> static __device__ inline void lg_places(const lg_walk<K> &w, int64_t i, int64_t (&at)[K])
{
        int64_t rest = i;
        unsigned narrow = (unsigned)i;
        LG_UNROLL
        for (int k = 0; k < K; k++)
                at[k] = 0;
        for (int d = w.ndim - 1; d >= 0; d--) {
                int64_t along = rest;
                if (d > 0 && w.wide) {
                        along = rest % w.shape[d];
                        rest /= w.shape[d];
                } else if (d > 0) {
                        along = lg_split(&narrow, w.size[d]);
                        rest = narrow;
                }
                LG_UNROLL
                for (int k = 0; k < K; k++)
                        at[k] += along * w.strides[k][d];
        }
}

/* ---- packs ---- */

#define LG_PACKED 8 /* elements that a thread takes at once */

/* What a pack of, computed in H, moves by accesses of more than an element: bools, and dtypes that are stored as H or
 * shorter floats. */
template <typename H> static inline bool lg_moves_packs(lg_dtype t)
{
        return t == LG_BOOL || (std::is_same<H, float>::value    ? lg_is_float(t) && t != LG_F64
                                : std::is_same<H, double>::value ? t == LG_F64
                                                                 : t == LG_I64);
}

/* Whether an operand can be taken a pack at a time: its neighbours in memory or one element for all, every pack
 * aligned. Of more than one dimension the last one must hold whole packs. */
template <typename H, int K> static inline bool lg_packs(const lg_walk<K> &w, int k, const void *p, lg_dtype t)
{
        const int last = w.ndim - 1;
        const int64_t bytes = (int64_t)lg_bytes_of(t);
        if (w.ndim > 1 && w.shape[last] % LG_PACKED)
                return false;
        if (!p || w.strides[k][last] == 0)
                return true;
        if (w.strides[k][last] != 1 || (uintptr_t)p % 16 || !lg_moves_packs<H>(t))
                return false;
        for (int d = 0; d < last; d++)
                if (w.strides[k][d] * bytes % 16)
                        return false;
        return true;
}

/* V neighbours from element i on, as H; of V > 1 lg_moves_packs() holds and the first is aligned to 16 bytes, of bools
 * to 8. */
template <typename H, int V> static __device__ inline void lg_load_pack(const void *p, lg_dtype t, int64_t i, H *v)
{
        if constexpr (V == 1) {
                v[0] = lg_load<H>(p, t, i);
        } else if (t == LG_BOOL) {
                uint8_t raw[V];
                memcpy(raw, __builtin_assume_aligned((const uint8_t *)p + i, V), V);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        v[j] = (H)(raw[j] != 0);
        } else if constexpr (std::is_same<H, float>::value) {
                if (t == LG_F16)
                        lg_read<__half, V>((const __half *)p + i, v);
                else if (t == LG_BF16)
                        lg_read<__nv_bfloat16, V>((const __nv_bfloat16 *)p + i, v);
                else
                        lg_read<float, V>((const float *)p + i, v);
        } else
                lg_read<H, V>((const H *)p + i, v);
}

template <typename H, int V> static __device__ inline void lg_store_pack(void *p, lg_dtype t, int64_t i, const H *v)
{
        if constexpr (V == 1) {
                lg_store<H>(p, t, i, v[0]);
        } else if (t == LG_BOOL) {
                uint8_t raw[V];
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        raw[j] = v[j] != 0;
                memcpy(__builtin_assume_aligned((uint8_t *)p + i, V), raw, V);
        } else if constexpr (std::is_same<H, float>::value) {
                if (t == LG_F16)
                        lg_write<__half, V>((__half *)p + i, v);
                else if (t == LG_BF16)
                        lg_write<__nv_bfloat16, V>((__nv_bfloat16 *)p + i, v);
                else
                        lg_write<float, V>((float *)p + i, v);
        } else
                lg_write<H, V>((H *)p + i, v);
}

/* The first `live` of V neighbours, or one for all of them where `along` is 0. */
template <typename H, int V>
static __device__ inline void lg_load_some(const void *p, lg_dtype t, int64_t i, int64_t along, int live, H *v)
{
        if (V > 1 && along == 0) {
                const H one = lg_load<H>(p, t, i);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        v[j] = one;
        } else if (live == V)
                lg_load_pack<H, V>(p, t, i, v);
        else {
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        v[j] = j < live ? lg_load<H>(p, t, i + j) : (H)0;
        }
}

template <typename H, int V>
static __device__ inline void lg_store_some(void *p, lg_dtype t, int64_t i, int live, const H *v)
{
        if (live == V)
                lg_store_pack<H, V>(p, t, i, v);
        else {
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        if (j < live)
                                lg_store<H>(p, t, i + j, v[j]);
        }
}

/* Blocks for n elements, V a thread. */
static inline int64_t lg_pack_blocks(lg_queue *q, int64_t n, int v)
{
        return n ? (int64_t)lg_blocks(q, (n + v - 1) / v) : 0;
}

/* Calls f with V, the elements that a thread takes at once. */
#define LG_WITH_PACKS(packed, ...)                                                                                     \
        ((packed) ? [&] { constexpr int V = LG_PACKED; return __VA_ARGS__; }()                                         \
                  : [&] { constexpr int V = 1; return __VA_ARGS__; }())

#endif
