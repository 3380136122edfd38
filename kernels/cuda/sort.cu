/* sort.cu - lines put in order: merge sort, runs of growing length, a thread for each pair of runs. */
#include "cuda.h"

typedef struct record {
        int64_t key, at;
} record;

/* A number of the same order as the element: NaN the greatest, -0 as 0. */
static __device__ inline int64_t key_of(const void *x, lg_dtype t, int64_t i)
{
        if (!lg_is_float(t))
                return lg_load<int64_t>(x, t, i);
        double v = lg_load<double>(x, t, i);
        if (v != v)
                return INT64_MAX;
        union {
                double d;
                int64_t i;
        } u;
        u.d = v == 0 ? 0.0 : v;
        return u.i < 0 ? (int64_t)(INT64_MIN - (uint64_t)u.i) : u.i;
}

static __global__ void keys_loop(lg_sort_args a, record *r)
{
        for (int64_t e = LG_FIRST; e < a.outer * a.inner * a.n; e += LG_STEP) {
                int64_t l = e / a.n, i = e % a.n,
                        key = key_of(a.x, a.dtype, (l / a.inner * a.n + i) * a.inner + l % a.inner);
                r[e] = record{a.descending ? ~key : key, i};
        }
}

/* Merges neighbouring runs of `run` records of each line. */
static __global__ void merge_loop(int64_t lines, int64_t n, int64_t run, const record *from, record *to)
{
        int64_t pairs = (n + 2 * run - 1) / (2 * run);
        for (int64_t e = LG_FIRST; e < lines * pairs; e += LG_STEP) {
                int64_t base = e / pairs * n, i = e % pairs * 2 * run, middle = i + run < n ? i + run : n;
                int64_t end = middle + run < n ? middle + run : n, j = middle;
                for (int64_t k = i; k < end; k++) {
                        bool left = j == end || (i < middle && from[base + i].key <= from[base + j].key);
                        to[base + k] = from[base + (left ? i++ : j++)];
                }
        }
}

static __global__ void take_loop(lg_sort_args a, const record *r)
{
        for (int64_t e = LG_FIRST; e < a.outer * a.inner * a.k; e += LG_STEP) {
                int64_t l = e / a.k, j = e % a.k, at = r[l * a.n + j].at, o = l / a.inner, i = l % a.inner;
                int64_t from = (o * a.n + at) * a.inner + i, to = (o * a.k + j) * a.inner + i;
                a.indices[to] = at;
                if (a.dtype == LG_F64)
                        lg_store<double>(a.values, a.dtype, to, lg_load<double>(a.x, a.dtype, from));
                else if (lg_is_float(a.dtype))
                        lg_store<float>(a.values, a.dtype, to, lg_load<float>(a.x, a.dtype, from));
                else
                        lg_store<int64_t>(a.values, a.dtype, to, lg_load<int64_t>(a.x, a.dtype, from));
        }
}

extern "C" bool lg_cuda_sort(lg_queue *q, const lg_sort_args *a)
{
        int64_t lines = a->outer * a->inner, n = lines * a->n, out = lines * a->k;
        if (n == 0 || out == 0)
                return true;
        record *r = (record *)q->workspace(q, (size_t)n * sizeof *r),
               *other = (record *)q->workspace(q, (size_t)n * sizeof *r);
        if (!r || !other || !lg_launch(q, "sort (keys)", keys_loop, lg_blocks(q, n), *a, r))
                return false;
        for (int64_t run = 1; run < a->n; run *= 2) {
                int64_t pairs = lines * ((a->n + 2 * run - 1) / (2 * run));
                if (!lg_launch(q, "sort (merge)", merge_loop, lg_blocks(q, pairs), lines, a->n, run, (const record *)r,
                               other))
                        return false;
                record *was = r;
                r = other;
                other = was;
        }
        return lg_launch(q, "sort (take)", take_loop, lg_blocks(q, out), *a, (const record *)r);
}
