/* dropout.cu - dropout: sets elements to 0 at random and scales the others. */
#include "shape.h"
#include "../philox.h"

/* Applies dropout. Element i (row-major) takes word i % 4 of random block i / 4, so the walk w must be row-major, with
 * unsorted dimensions. */
template <typename H, int V>
static __global__ void dropout_loop(lg_walk<2> w, lg_dropout_args a, int64_t n, uint32_t limit, H scale)
{
        const int last = w.ndim - 1;
        const uint64_t seed = lg_philox_moved(a.seed, a.moved, 0), offset = lg_philox_moved(a.offset, a.moved, 1);
        for (int64_t e = LG_FIRST * V; e < n; e += LG_STEP * V) {
                int64_t at[2];
                H v[V];
                lg_philox_words words = {};
                const int live = V == 1 || n - e >= V ? V : (int)(n - e);
                lg_places(w, e, at);
                lg_load_some<H, V>(a.x, a.dtype, at[1], w.strides[1][last], live, v);
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        if (j % 4 == 0)
                                words = lg_philox_block(seed, offset + (uint64_t)((e + j) / 4));
                        v[j] = words.w[(e + j) % 4] >> 8 >= limit ? v[j] * scale : (H)0;
                }
                lg_store_some<H, V>(a.y, a.dtype, at[0], live, v);
        }
}

template <typename H>
static bool dropout(lg_queue *q, const lg_dropout_args *a, const lg_walk<2> &w, int64_t n, uint32_t limit, double scale)
{
        const bool packed =
                w.strides[0][w.ndim - 1] == 1 && lg_packs<H>(w, 0, a->y, a->dtype) && lg_packs<H>(w, 1, a->x, a->dtype);
        return LG_WITH_PACKS(packed, lg_launch(q, "dropout", dropout_loop<H, V>, lg_pack_blocks(q, n, V), w, *a, n,
                                               limit, (H)scale));
}

extern "C" bool lg_cuda_dropout(lg_queue *q, const lg_dropout_args *a)
{
        const int64_t n = lg_count(a->ndim, a->shape);
        const uint32_t limit = (uint32_t)ceil(a->p * 16777216);
        const double scale = a->p < 1 ? 1 / (1 - a->p) : 0;
        if (n == 0)
                return true;
        const lg_walk<2> w = lg_walk_of(a->ndim, a->shape, {a->y_strides, a->x_strides}, false);
        return LG_WITH_FLOAT(a->dtype, dropout<H>(q, a, w, n, limit, scale));
}
