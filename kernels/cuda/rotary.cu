/* rotary.cu - rotates pairs of elements in rows by tables of cosines and sines: rotary position embedding. */
#include "shape.h"

/* A thread rotates one pair, or copies one element after the pairs. */
template <typename H> static __global__ void rotary_loop(lg_walk<2> w, lg_rotary_args a, int64_t n)
{
        const int64_t pairs = a.dims / 2, each = a.width - pairs;
        for (int64_t e = LG_FIRST; e < n; e += LG_STEP) {
                const int64_t row = e / each, i = e % each, to = row * a.width;
                int64_t at[2];
                lg_places(w, row, at);
                if (i >= pairs) {
                        lg_store<H>(a.y, a.dtype, to + i + pairs, lg_load<H>(a.x, a.dtype, at[0] + i + pairs));
                        continue;
                }
                const int64_t first = a.interleaved ? 2 * i : i, second = a.interleaved ? 2 * i + 1 : i + pairs;
                const H p = lg_load<H>(a.x, a.dtype, at[0] + first), q = lg_load<H>(a.x, a.dtype, at[0] + second);
                const H cos = ((const H *)a.cos)[at[1] + i], sin = ((const H *)a.sin)[at[1] + i];
                const H turn = a.back ? -sin : sin;
                lg_store<H>(a.y, a.dtype, to + first, p * cos - q * turn);
                lg_store<H>(a.y, a.dtype, to + second, q * cos + p * turn);
        }
}

extern "C" bool lg_cuda_rotary(lg_queue *q, const lg_rotary_args *a)
{
        const int64_t n = lg_count(a->ndim, a->shape) * (a->width - a->dims / 2);
        if (n == 0)
                return true;
        const lg_walk<2> w = lg_walk_of(a->ndim, a->shape, {a->x_strides, a->table_strides}, false);
        return LG_WITH_FLOAT(a->dtype, lg_launch(q, "rotary", rotary_loop<H>, lg_blocks(q, n), w, *a, n));
}
