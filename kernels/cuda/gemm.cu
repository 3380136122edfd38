/* gemm.cu - matrix products: by cuBLASLt, or where it has no algorithm, as for integers, by a kernel with tiles in
 * shared memory. */
#include "blas.h"
#include "rows.h"

#define TILE 16
#define MOST_BATCHES 65535 /* most matrices in one call of cuBLASLt */

template <typename H> static __device__ inline H relu_of(H x)
{
        return x <= 0 ? (H)0 : x;
}

/* ---- products by an own kernel ---- */

template <typename H> static __device__ inline H add_product(H sum, H a, H b)
{
        return sum + a * b;
}
static __device__ inline int64_t add_product(int64_t sum, int64_t a, int64_t b)
{
        return (int64_t)((uint64_t)sum + (uint64_t)a * (uint64_t)b);
}

/* Computes C, a tile of TILE x TILE elements per block, with the tiles of A and B in shared memory. */
template <typename H> static __global__ void gemm_loop(lg_gemm_args g, int64_t batches, int64_t across, int64_t down)
{
        LG_SHARED(H, a, TILE * TILE);
        LG_SHARED(H, b, TILE * TILE);
        const int row = (int)threadIdx.x / TILE, column = (int)threadIdx.x % TILE;
        for (int64_t block = blockIdx.x; block < batches * across * down; block += gridDim.x) {
                int64_t batch = block / (across * down), at_a = batch * g.a_batch[0], at_b = batch * g.b_batch[0];
                int64_t i = block / across % down * TILE + row, j = block % across * TILE + column;
                H sum = 0;
                for (int64_t k = 0; k < g.k; k += TILE) {
                        __syncthreads();
                        a[row * TILE + column] =
                                i < g.m && k + column < g.k
                                        ? lg_load<H>(g.a, g.dtype, at_a + i * g.a_row + (k + column) * g.a_col)
                                        : (H)0;
                        b[row * TILE + column] =
                                k + row < g.k && j < g.n
                                        ? lg_load<H>(g.b, g.dtype, at_b + (k + row) * g.b_row + j * g.b_col)
                                        : (H)0;
                        __syncthreads();
                        for (int l = 0; l < TILE; l++)
                                sum = add_product(sum, a[row * TILE + l], b[l * TILE + column]);
                }
                if (i < g.m && j < g.n) {
                        int64_t at = batch * g.c_batch[0] + i * g.ldc + j;
                        sum = add_product(sum, g.beta ? lg_load<H>(g.c, g.dtype, at) : (H)0, (H)1);
                        sum = add_product(sum, g.bias ? lg_load<H>(g.bias, g.dtype, j) : (H)0, (H)1);
                        lg_store<H>(g.c, g.dtype, at, g.relu ? relu_of(sum) : sum);
                }
        }
}

static int64_t batches_of(const lg_gemm_args *g)
{
        return g->batch_ndim ? g->batch[0] : 1;
}

static bool own_product(lg_queue *q, const lg_gemm_args *g)
{
        int64_t batches = batches_of(g), across = (g->n + TILE - 1) / TILE, down = (g->m + TILE - 1) / TILE;
        int64_t blocks = batches * across * down;
        return LG_WITH_COMPUTE(g->dtype, lg_launch(q, "gemm", gemm_loop<H>, blocks < 65536 ? blocks : 65536, *g,
                                                   batches, across, down));
}

/* ---- bias and ReLU after the product ---- */

/* Computes C = relu(C + bias), where C is read as zeros unless `keep`. A row is shared by 1 << shift threads. */
template <typename H> static __global__ void finish_rows(lg_gemm_args g, int64_t rows, int shift, bool keep)
{
        const int lanes = 1 << shift, column = (int)threadIdx.x & (lanes - 1);
        const int64_t step = (int64_t)gridDim.x * (LG_THREADS >> shift);
        int64_t row = (int64_t)blockIdx.x * (LG_THREADS >> shift) + (threadIdx.x >> shift);
        for (; row < rows; row += step) {
                int64_t at = row / g.m * g.c_batch[0] + row % g.m * g.ldc;
                for (int64_t j = column; j < g.n; j += lanes) {
                        H v = keep ? lg_load<H>(g.c, g.dtype, at + j) : (H)0;
                        v = add_product(v, g.bias ? lg_load<H>(g.bias, g.dtype, j) : (H)0, (H)1);
                        lg_store<H>(g.c, g.dtype, at + j, g.relu ? relu_of(v) : v);
                }
        }
}

static __device__ inline __half relu_of(__half x)
{
        return __half2float(x) <= 0 ? __float2half(0) : x;
}
static __device__ inline __nv_bfloat16 relu_of(__nv_bfloat16 x)
{
        return __bfloat162float(x) <= 0 ? __float2bfloat16(0) : x;
}

template <typename T> struct alignas(16) pack {
        T v[16 / sizeof(T)];
};

template <typename T> static __global__ void relu_all(T *c, int64_t n)
{
        const int each = 16 / sizeof(T);
        const int64_t packs = n / each;
        for (int64_t i = LG_FIRST; i < packs; i += LG_STEP) {
                pack<T> p = ((pack<T> *)c)[i];
                for (int e = 0; e < each; e++)
                        p.v[e] = relu_of(p.v[e]);
                ((pack<T> *)c)[i] = p;
        }
        for (int64_t i = packs * each + LG_FIRST; i < n; i += LG_STEP)
                c[i] = relu_of(c[i]);
}

template <typename T> static bool relu_dense(lg_queue *q, const lg_gemm_args *g, int64_t n)
{
        return lg_launch(q, "gemm (relu)", relu_all<T>, lg_blocks(q, n / (16 / (int64_t)sizeof(T))), (T *)g->c, n);
}

static bool is_dense(const lg_gemm_args *g)
{
        return (g->ldc == g->n || g->m == 1) && (batches_of(g) == 1 || g->c_batch[0] == g->m * g->n) &&
               (uintptr_t)g->c % 16 == 0;
}

/* Computes C = relu((keep ? C : 0) + bias), without the bias unless `bias` and without ReLU unless g->relu. */
static bool finish(lg_queue *q, const lg_gemm_args *g, bool bias, bool keep)
{
        int64_t rows = batches_of(g) * g->m, n = rows * g->n;
        if (keep && !bias && !g->relu)
                return true;
        if (keep && !bias && is_dense(g))
                return LG_WITH_STORED(g->dtype, relu_dense<T>(q, g, n));
        lg_gemm_args left = *g;
        left.bias = bias ? g->bias : NULL;
        int shift = 0;
        while (shift < 8 && (int64_t)1 << shift < g->n)
                shift++;
        unsigned blocks = lg_blocks(q, rows << shift);
        return LG_WITH_COMPUTE(g->dtype, lg_launch(q, "gemm (bias)", finish_rows<H>, blocks, left, rows, shift, keep));
}

/* ---- the batch ---- */

/* Computes products with at most one batch dimension, by cuBLASLt if possible. */
static bool product(lg_queue *q, const lg_gemm_args *g)
{
        const bool bias = g->bias != NULL;
        if (g->k == 0)
                return finish(q, g, bias, g->beta != 0);
        /* The library is given no alignment of the bias, and may read it 16 bytes at a time. */
        bool missing = bias && (uintptr_t)g->bias % 16 != 0;
        lg_blas_answer answer = lg_cuda_blas(q, g, bias && !missing);
        if (answer == LG_BLAS_NOTHING && bias && !missing) {
                missing = true;
                answer = lg_cuda_blas(q, g, false);
        }
        if (answer == LG_BLAS_DONE)
                return finish(q, g, missing, true);
        return answer == LG_BLAS_NOTHING && own_product(q, g);
}

/* Returns how many products with one batch dimension, the longest, make up the batch. */
static int64_t parts_of(const lg_gemm_args *g)
{
        int64_t longest = 1;
        for (int d = 0; d < g->batch_ndim; d++)
                longest = g->batch[d] > longest ? g->batch[d] : longest;
        return lg_count(g->batch_ndim, g->batch) / longest;
}

/* Drops batch dimensions of size 1 and merges neighbours if all operands allow it. */
static void coalesce(lg_gemm_args *g)
{
        int n = 0;
        for (int d = 0; d < g->batch_ndim; d++) {
                const int64_t size = g->batch[d], a = g->a_batch[d], b = g->b_batch[d], c = g->c_batch[d];
                if (size == 1)
                        continue;
                bool joins = n > 0 && g->a_batch[n - 1] == a * size && g->b_batch[n - 1] == b * size &&
                             g->c_batch[n - 1] == c * size;
                int at = joins ? n - 1 : n++;
                g->batch[at] = joins ? g->batch[at] * size : size;
                g->a_batch[at] = a;
                g->b_batch[at] = b;
                g->c_batch[at] = c;
        }
        g->batch_ndim = n;
}

/* ---- batches whose matrices have no common distance, such as the heads of packed queries, keys and values ---- */

/* Returns whether the matrices of an operand have a common distance over all batch dimensions. */
static bool joins(const lg_gemm_args *g, const int64_t *distances)
{
        for (int d = 0; d + 1 < g->batch_ndim; d++)
                if (distances[d] != distances[d + 1] * g->batch[d + 1])
                        return false;
        return true;
}

/* Copies the `rows` x `cols` matrices of an operand one behind the other into scratch memory, each in its own order. */
static bool pack_matrices(lg_queue *q, const lg_gemm_args *g, int64_t rows, int64_t cols, const void **matrices,
                          int64_t *row, int64_t *col, int64_t *distances)
{
        const int n = g->batch_ndim;
        const bool by_row = *col <= *row;
        lg_copy_args copy = {};
        copy.ndim = n + 2;
        copy.in_dtype = copy.out_dtype = g->dtype;
        copy.in = *matrices;
        memcpy(copy.shape, g->batch, (size_t)n * sizeof *copy.shape);
        memcpy(copy.in_strides, distances, (size_t)n * sizeof *distances);
        copy.shape[n] = rows;
        copy.shape[n + 1] = cols;
        copy.in_strides[n] = *row;
        copy.in_strides[n + 1] = *col;
        copy.out_strides[n] = *row = by_row ? cols : 1;
        copy.out_strides[n + 1] = *col = by_row ? 1 : rows;
        for (int d = n - 1; d >= 0; d--)
                copy.out_strides[d] = distances[d] = d == n - 1 ? rows * cols : distances[d + 1] * g->batch[d + 1];
        copy.out = q->workspace(q, (size_t)(lg_count(copy.ndim, copy.shape)) * lg_bytes_of(g->dtype));
        *matrices = copy.out;
        return copy.out && lg_cuda_copy(q, &copy);
}

/* Copies the operands whose matrices have no common distance, if that takes fewer calls than a product for each part of
 * the batch and repeats no matrix. Returns false if a copy failed. */
static bool join_batch(lg_queue *q, lg_gemm_args *g)
{
        const bool a = joins(g, g->a_batch), b = joins(g, g->b_batch);
        bool repeats = false;
        for (int d = 0; d < g->batch_ndim; d++)
                repeats = repeats || (!a && g->a_batch[d] == 0) || (!b && g->b_batch[d] == 0);
        if (!joins(g, g->c_batch) || repeats || g->k == 0 || parts_of(g) <= 1 + !a + !b)
                return true;
        const bool good = (a || pack_matrices(q, g, g->m, g->k, &g->a, &g->a_row, &g->a_col, g->a_batch)) &&
                          (b || pack_matrices(q, g, g->k, g->n, &g->b, &g->b_row, &g->b_col, g->b_batch));
        coalesce(g);
        return good;
}

/* Computes all products at once by a list of their matrices, if the library can. */
static lg_blas_answer listed_products(lg_queue *q, const lg_gemm_args *g)
{
        enum { CALLS = 2 }; /* a kernel makes the list */
        const bool fits = lg_count(g->batch_ndim, g->batch) <= MOST_BATCHES && g->k && !g->bias && !g->relu;
        return fits && parts_of(g) > CALLS ? lg_cuda_blas(q, g, false) : LG_BLAS_NOTHING;
}

/* ---- parts of the batch: products with one batch dimension ---- */

static void swap_dimensions(lg_gemm_args *g, int d, int e)
{
        for (int64_t *list : {g->batch, g->a_batch, g->b_batch, g->c_batch}) {
                int64_t was = list[d];
                list[d] = list[e];
                list[e] = was;
        }
}

static void put_longest_first(lg_gemm_args *g)
{
        int longest = 0;
        for (int d = 0; d < g->batch_ndim; d++)
                longest = g->batch[d] > g->batch[longest] ? d : longest;
        if (longest)
                swap_dimensions(g, 0, longest);
}

/* Returns the products at index i of all batch dimensions but the first, and at [first, first + count) of the first. */
static lg_gemm_args part_of(const lg_gemm_args *g, int64_t i, int64_t first, int64_t count)
{
        lg_gemm_args part = *g;
        const int64_t size = (int64_t)lg_bytes_of(g->dtype);
        int64_t a = 0, b = 0, c = 0;
        for (int d = g->batch_ndim - 1; d >= 0; d--) {
                int64_t at = d ? i % g->batch[d] : first;
                i = d ? i / g->batch[d] : 0;
                a += at * g->a_batch[d];
                b += at * g->b_batch[d];
                c += at * g->c_batch[d];
        }
        if (g->k) {
                part.a = (const char *)g->a + a * size;
                part.b = (const char *)g->b + b * size;
        }
        part.c = (char *)g->c + c * size;
        part.batch[0] = count;
        part.batch_ndim = count > 1;
        return part;
}

extern "C" bool lg_cuda_gemm(lg_queue *q, const lg_gemm_args *given)
{
        lg_gemm_args g = *given;
        if (g.dtype == LG_BOOL || (g.relu && !lg_is_float(g.dtype)))
                return lg_queue_fail(q, LG_BROKEN, "gemm: no kernel for dtype %d", (int)g.dtype);
        int64_t batches = lg_count(g.batch_ndim, g.batch);
        if (batches == 0 || g.m == 0 || g.n == 0)
                return true;
        coalesce(&g);
        const lg_blas_answer answer = listed_products(q, &g);
        if (answer != LG_BLAS_NOTHING)
                return answer == LG_BLAS_DONE;
        if (!join_batch(q, &g))
                return false;
        put_longest_first(&g);
        int64_t inner = batches_of(&g);
        for (int64_t i = 0; i < batches / inner; i++)
                for (int64_t first = 0; first < inner; first += MOST_BATCHES) {
                        int64_t rest = inner - first;
                        lg_gemm_args part = part_of(&g, i, first, rest < MOST_BATCHES ? rest : MOST_BATCHES);
                        if (!product(q, &part))
                                return false;
                }
        return true;
}
