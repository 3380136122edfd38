/* copy.cu - copies between layouts and dtypes. */
#include "shape.h"

template <typename H, int V> static __global__ void copy_loop(lg_walk<2> w, lg_copy_args a, int64_t n)
{
        const int last = w.ndim - 1;
        for (int64_t e = LG_FIRST * V; e < n; e += LG_STEP * V) {
                int64_t at[2];
                H v[V];
                const int live = V == 1 || n - e >= V ? V : (int)(n - e);
                lg_places(w, e, at);
                lg_load_some<H, V>(a.in, a.in_dtype, at[1], w.strides[1][last], live, v);
                lg_store_some<H, V>(a.out, a.out_dtype, at[0], live, v);
        }
}

/* ---- transposes: stride 1 is along one dimension in the input and along another one in the output ---- */

#define TILE 32

/* Transposes. The last dimension has stride 1 in the output, `other` has it in the input; those before are a batch. A
 * block moves TILE x TILE elements through shared memory, so that both sides are accessed contiguously. */
template <typename T>
static __global__ void transpose_loop(lg_walk<2> w, int other, const T *in, T *out, int64_t across, int64_t down,
                                      int64_t tiles)
{
        LG_SHARED(T, tile, TILE * (TILE + 1));
        const int last = w.ndim - 1, x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
        const int64_t columns = w.shape[last], rows = w.shape[other];
        for (int64_t b = blockIdx.x; b < tiles; b += gridDim.x) {
                const int64_t column = b % across * TILE, row = b / across % down * TILE;
                int64_t rest = b / across / down, from = 0, to = 0;
                for (int d = last - 1; d >= 0; d--)
                        if (d != other) {
                                const int64_t along = rest % w.shape[d];
                                rest /= w.shape[d];
                                to += along * w.strides[0][d];
                                from += along * w.strides[1][d];
                        }
                __syncthreads();
                for (int i = y; i < TILE; i += LG_THREADS / TILE)
                        if (row + x < rows && column + i < columns)
                                tile[i * (TILE + 1) + x] = in[from + (row + x) + (column + i) * w.strides[1][last]];
                __syncthreads();
                for (int i = y; i < TILE; i += LG_THREADS / TILE)
                        if (row + i < rows && column + x < columns)
                                out[to + (row + i) * w.strides[0][other] + (column + x)] = tile[x * (TILE + 1) + i];
        }
}

template <typename T> static bool transpose(lg_queue *q, const lg_walk<2> &w, int other, const lg_copy_args *a)
{
        const int64_t n = lg_count(w.ndim, w.shape), columns = w.shape[w.ndim - 1], rows = w.shape[other];
        const int64_t across = (columns + TILE - 1) / TILE, down = (rows + TILE - 1) / TILE;
        const int64_t tiles = across * down * (n / columns / rows);
        return lg_launch(q, "copy (transposed)", transpose_loop<T>, lg_few_blocks(q, tiles, 32), w, other,
                         (const T *)a->in, (T *)a->out, across, down, tiles);
}

/* Returns the dimension with stride 1 in the input if the copy is a transpose, else -1. */
static int transposed_by(const lg_walk<2> &w, const lg_copy_args *a)
{
        const int last = w.ndim - 1;
        if (a->in_dtype != a->out_dtype || w.strides[0][last] != 1 || w.strides[1][last] == 1 ||
            w.shape[last] < TILE / 2)
                return -1;
        for (int d = 0; d < last; d++)
                if (w.strides[1][d] == 1 && w.shape[d] >= TILE / 2)
                        return d;
        return -1;
}

/* Copies through H, a type that holds all values of the input's dtype. */
template <typename H> static bool copy(lg_queue *q, const lg_copy_args *a, const lg_walk<2> &w, int64_t n)
{
        const bool packed = w.strides[0][w.ndim - 1] == 1 && lg_packs<H>(w, 0, a->out, a->out_dtype) &&
                            lg_packs<H>(w, 1, a->in, a->in_dtype);
        return LG_WITH_PACKS(packed, lg_launch(q, "copy", copy_loop<H, V>, lg_pack_blocks(q, n, V), w, *a, n));
}

extern "C" bool lg_cuda_copy(lg_queue *q, const lg_copy_args *a)
{
        const int64_t n = lg_count(a->ndim, a->shape);
        if (n == 0)
                return true;
        const lg_walk<2> w = lg_walk_of(a->ndim, a->shape, {a->out_strides, a->in_strides}, true);
        const int other = transposed_by(w, a);
        const size_t size = lg_bytes_of(a->in_dtype);
        if (a->in_dtype == a->out_dtype && a->in_dtype != LG_BOOL && w.ndim == 1 && w.strides[0][0] == 1 &&
            w.strides[1][0] == 1)
                return lg_cuda_good(
                        q, "cudaMemcpyAsync (copy)",
                        cudaMemcpyAsync(a->out, a->in, (size_t)n * size, cudaMemcpyDeviceToDevice, lg_cuda(q)->stream));
        if (other >= 0)
                return size == 8   ? transpose<uint64_t>(q, w, other, a)
                       : size == 4 ? transpose<uint32_t>(q, w, other, a)
                       : size == 2 ? transpose<uint16_t>(q, w, other, a)
                                   : transpose<uint8_t>(q, w, other, a);
        return LG_WITH_COMPUTE(a->in_dtype, copy<H>(q, a, w, n));
}
