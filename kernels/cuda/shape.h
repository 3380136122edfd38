/* shape.h - how elementwise kernels iterate: dimensions merged where all operands allow it, packs of neighbouring
 * elements, and division by sizes as multiplication. */
#ifndef LG_CUDA_SHAPE_H
#define LG_CUDA_SHAPE_H

#include "rows.h"

/* Division of numbers below 2^31 by a fixed number, as a multiplication and a shift. */
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

/* Replaces *n by the quotient and returns the remainder. */
static __device__ inline unsigned lg_split(unsigned *n, lg_divisor d)
{
        unsigned was = *n;
        *n = d.by == 1 ? was : __umulhi(was, d.factor) >> d.shift;
        return was - *n * d.by;
}

#ifndef LG_NARROW
#define LG_NARROW ((int64_t)1 << 31) /* shapes with fewer elements are indexed in 32 bits */
#endif

/* A walk over K operands of a common shape, in which the last dimension varies fastest; has at least one dimension. */
template <int K> struct lg_walk {
        int ndim;
        bool wide; /* too many elements for 32-bit indices */
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

/* Returns the walk over a shape whose sizes are not 0. The `strides` of an absent operand are NULL. If `sort`, the
 * order of elements does not matter and dimensions are sorted by the strides of operand 0. */
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

/* Sets at[k] to the offset of element i in operand k. */
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

#define LG_PACKED 8 /* elements of a pack, which a thread processes at once */

/* Returns whether packs of dtype t, computed in H, are moved by accesses wider than an element: bools, dtypes that are
 * stored as H, and shorter floats. */
template <typename H> static inline bool lg_moves_packs(lg_dtype t)
{
        return t == LG_BOOL || (std::is_same<H, float>::value    ? lg_is_float(t) && t != LG_F64
                                : std::is_same<H, double>::value ? t == LG_F64
                                                                 : t == LG_I64);
}

/* Returns whether operand k can be accessed in packs: every pack is contiguous and aligned, or one element (stride 0).
 * If there are several dimensions, the last one must consist of whole packs. */
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

/* Loads V neighbours from element i on, as H. V > 1 requires lg_moves_packs() and an address aligned to 16 bytes, for
 * bools to 8. */
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

/* Loads the first `live` of V neighbours, 0 for the others; if the stride `along` is 0, one element V times. */
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

/* Returns the number of blocks for n elements, v per thread. */
static inline int64_t lg_pack_blocks(lg_queue *q, int64_t n, int v)
{
        return n ? (int64_t)lg_blocks(q, (n + v - 1) / v) : 0;
}

/* Evaluates an expression with V, the elements that a thread processes at once: LG_PACKED if `packed`, else 1. */
#define LG_WITH_PACKS(packed, ...)                                                                                     \
        ((packed) ? [&] { constexpr int V = LG_PACKED; return __VA_ARGS__; }()                                         \
                  : [&] { constexpr int V = 1; return __VA_ARGS__; }())

#endif
