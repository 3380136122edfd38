/* sort.cu - sorting: tiles of lines are sorted by counting, then merged pairwise, a block per stretch of the result.
 *
 * A record is a key, which is an integer with the order of the element, and the element's index. If only the first k
 * elements are wanted, only the first k records of each run are computed.
 */
#include "rows.h"

#define STRETCH 1024 /* records of a merged run that one block computes */

template <typename K> struct record {
        K key, at;
};

/* Returns an integer with the order of v: NaN is the greatest, -0 equals 0. */
static __device__ inline int64_t key_of(double v, int64_t)
{
        union {
                double d;
                int64_t i;
        } u;
        u.d = v == 0 ? 0.0 : v;
        return v != v ? INT64_MAX : u.i < 0 ? (int64_t)(INT64_MIN - (uint64_t)u.i) : u.i;
}
static __device__ inline int32_t key_of(float v, int32_t)
{
        const int32_t i = __float_as_int(v == 0 ? 0.0f : v);
        return v != v ? INT32_MAX : i < 0 ? (int32_t)((uint32_t)INT32_MIN - (uint32_t)i) : i;
}

template <typename K> static __device__ inline K key_at(const lg_sort_args &a, int64_t at)
{
        K key;
        if (!lg_is_float(a.dtype))
                key = (K)lg_load<int64_t>(a.x, a.dtype, at);
        else if (sizeof(K) == 8)
                key = (K)key_of(lg_load<double>(a.x, a.dtype, at), (int64_t)0);
        else
                key = (K)key_of(lg_load<float>(a.x, a.dtype, at), (int32_t)0);
        return a.descending ? ~key : key;
}

/* Returns the offset of element i of a line of `length` elements. */
static __device__ inline int64_t place_of(int64_t line, int64_t i, int64_t length, int64_t inner)
{
        return inner == 1 ? line * length + i : (line / inner * length + i) * inner + line % inner;
}

/* Writes element `at` of the line, and that index, to place j of the result. */
static __device__ inline void emit(const lg_sort_args &a, int64_t line, int64_t j, int64_t at)
{
        const int64_t from = place_of(line, at, a.n, a.inner), to = place_of(line, j, a.k, a.inner);
        a.indices[to] = at;
        switch (a.dtype) {
        case LG_F64:
        case LG_I64:
                ((int64_t *)a.values)[to] = ((const int64_t *)a.x)[from];
                return;
        case LG_F32:
        case LG_I32:
                ((int32_t *)a.values)[to] = ((const int32_t *)a.x)[from];
                return;
        case LG_F16:
        case LG_BF16:
                ((int16_t *)a.values)[to] = ((const int16_t *)a.x)[from];
                return;
        default:
                ((int8_t *)a.values)[to] = ((const int8_t *)a.x)[from];
        }
}

/* The division of lines into blocks of LG_THREADS elements: several lines per block, or several blocks per line. */
typedef struct tiling {
        int64_t lines, blocks;
        int per_block; /* lines per block; 0: a line has several tiles */
        int64_t tiles; /* tiles per line */
} tiling;

static tiling tiling_of(const lg_sort_args *a)
{
        tiling t = {a->outer * a->inner, 0, (int)(a->n <= LG_THREADS ? LG_THREADS / a->n : 0),
                    (a->n + LG_THREADS - 1) / LG_THREADS};
        t.blocks = t.per_block ? (t.lines + t.per_block - 1) / t.per_block : t.lines * t.tiles;
        return t;
}

/* Sorts tiles by counting the elements before each. Writes whole lines to the result, tiles of longer lines to `to`. */
template <typename K> static __global__ void sort_tiles(lg_sort_args a, tiling t, record<K> *to)
{
        LG_SHARED(K, keys, LG_THREADS);
        const int me = (int)threadIdx.x;
        for (int64_t b = blockIdx.x; b < t.blocks; b += gridDim.x) {
                const int n = t.per_block ? (int)a.n : LG_THREADS, first = me / n * n;
                const int64_t line = t.per_block ? b * t.per_block + me / n : b / t.tiles;
                const int64_t tile = t.per_block ? 0 : b % t.tiles * LG_THREADS, i = tile + me - first;
                const bool there = i < a.n && line < t.lines && (!t.per_block || me / n < t.per_block);
                const K key = there ? key_at<K>(a, place_of(line, i, a.n, a.inner)) : (K)0;
                __syncthreads();
                keys[me] = key;
                __syncthreads();
                if (!there)
                        continue;
                const int end = a.n - tile < n ? first + (int)(a.n - tile) : first + n;
                int rank = 0;
                for (int j = first; j < me; j++)
                        rank += keys[j] <= key;
                for (int j = me + 1; j < end; j++)
                        rank += keys[j] < key;
                if (rank >= a.k)
                        continue;
                if (t.per_block)
                        emit(a, line, rank, i);
                else
                        to[line * a.n + tile + rank] = record<K>{key, (K)i};
        }
}

/* Returns how many of the first d merged records are from the left run; of equal keys the left one precedes. */
template <typename K>
static __device__ inline int64_t split_of(const record<K> *left, int64_t n, const record<K> *right, int64_t m,
                                          int64_t d)
{
        int64_t low = d > m ? d - m : 0, high = d < n ? d : n;
        while (low < high) {
                const int64_t middle = (low + high) / 2;
                if (left[middle].key <= right[d - 1 - middle].key)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Returns how many of n sorted keys are less than `key`, or if `equals` less or equal. */
template <typename K> static __device__ inline int before(const K *keys, int n, K key, bool equals)
{
        int low = 0, high = n;
        while (low < high) {
                const int middle = (low + high) / 2;
                if (keys[middle] < key || (equals && keys[middle] == key))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* A round of merging: neighbouring runs of a line form pairs, whose merged run is divided into stretches. */
typedef struct merge {
        int64_t lines, n, run, k; /* run: records per run; k: only the first k of a run are used */
        int64_t pairs, stretches; /* pairs per line, stretches per pair */
} merge;

template <typename K> static __global__ void merge_runs(merge m, const record<K> *from, record<K> *to)
{
        LG_SHARED(K, keys, STRETCH);
        LG_SHARED(int64_t, splits, 2);
        for (int64_t b = blockIdx.x; b < m.lines * m.pairs * m.stretches; b += gridDim.x) {
                const int64_t pair = b / m.stretches, base = pair / m.pairs * m.n, start = pair % m.pairs * 2 * m.run;
                const int64_t rest = m.n - start, n = rest < m.run ? rest : m.run;
                const int64_t of_right = rest - n < m.run ? rest - n : m.run;
                const int64_t all = n + of_right < m.k ? n + of_right : m.k;
                const int64_t first = b % m.stretches * STRETCH, end = first + STRETCH < all ? first + STRETCH : all;
                const record<K> *left = from + base + start, *right = left + n;
                if (first >= end)
                        continue;
                __syncthreads();
                if (threadIdx.x < 2)
                        splits[threadIdx.x] = split_of(left, n, right, of_right, threadIdx.x ? end : first);
                __syncthreads();
                const int64_t i = splits[0], j = first - i;
                const int here = (int)(splits[1] - i), count = (int)(end - first);
                record<K> own[STRETCH / LG_THREADS];
                LG_UNROLL
                for (int s = 0; s < STRETCH / LG_THREADS; s++) {
                        const int e = s * LG_THREADS + (int)threadIdx.x;
                        if (e >= count)
                                break;
                        own[s] = e < here ? left[i + e] : right[j + e - here];
                        keys[e] = own[s].key;
                }
                __syncthreads();
                LG_UNROLL
                for (int s = 0; s < STRETCH / LG_THREADS; s++) {
                        const int e = s * LG_THREADS + (int)threadIdx.x;
                        if (e >= count)
                                break;
                        const int at = e < here ? e + before(keys + here, count - here, own[s].key, false)
                                                : e - here + before(keys, here, own[s].key, true);
                        to[base + start + first + at] = own[s];
                }
        }
}

template <typename K> static __global__ void take_loop(lg_sort_args a, const record<K> *r)
{
        for (int64_t e = LG_FIRST; e < a.outer * a.inner * a.k; e += LG_STEP) {
                const int64_t line = e / a.k, j = e % a.k;
                emit(a, line, j, r[line * a.n + j].at);
        }
}

template <typename K> static bool sort(lg_queue *q, const lg_sort_args *a)
{
        const tiling t = tiling_of(a);
        record<K> *r = NULL, *other = NULL;
        if (!t.per_block) {
                const size_t bytes = (size_t)(t.lines * a->n) * sizeof *r;
                r = (record<K> *)q->workspace(q, bytes);
                /* possible because take_loop() reads a record and writes its index to the same place */
                const bool borrows = sizeof *r == sizeof *a->indices && a->inner == 1 && a->k == a->n;
                other = (record<K> *)(borrows ? (void *)a->indices : q->workspace(q, bytes));
                if (!r || !other)
                        return false;
        }
        if (!lg_launch(q, "sort (tiles)", sort_tiles<K>, lg_few_blocks(q, t.blocks, 16), *a, t, r))
                return false;
        if (t.per_block)
                return true;
        for (int64_t run = LG_THREADS; run < a->n; run *= 2) {
                merge m = {t.lines, a->n, run, a->k, (a->n + 2 * run - 1) / (2 * run), 0};
                const int64_t most = 2 * run < a->k ? 2 * run : a->k;
                m.stretches = (most + STRETCH - 1) / STRETCH;
                if (!lg_launch(q, "sort (merge)", merge_runs<K>, lg_few_blocks(q, m.lines * m.pairs * m.stretches, 16),
                               m, (const record<K> *)r, other))
                        return false;
                record<K> *was = r;
                r = other;
                other = was;
        }
        return lg_launch(q, "sort (take)", take_loop<K>, lg_blocks(q, t.lines * a->k), *a, (const record<K> *)r);
}

extern "C" bool lg_cuda_sort(lg_queue *q, const lg_sort_args *a)
{
        if (a->outer * a->inner * a->n * a->k == 0)
                return true;
        const bool wide = a->dtype == LG_F64 || a->dtype == LG_I64 ||
                          a->n > INT32_MAX; /* keys and indices of a record have one type */
        return wide ? sort<int64_t>(q, a) : sort<int32_t>(q, a);
}
