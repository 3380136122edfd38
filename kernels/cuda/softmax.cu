/* softmax.cu - softmax and its derivative: a thread, warp or block per row, or `across` threads over other lines. */
#include "scores.h"

template <typename T, int TEAM, int E, int V> static __global__ void softmax_rows(lg_softmax_args a)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(H, shared, LG_TEAM_WORDS);
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.outer; row += LG_ROW_STEP(TEAM)) {
                lg_scores<T, TEAM, E, V> s;
                s.measure((const T *)a.x + row * a.n, a.n, shared);
                const H scale = 1 / s.sum, shift = (H)log(s.sum);
                s.each(a.n, [&](int64_t i, H *d) {
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                d[j] = a.log ? d[j] - shift : lg_exp(d[j]) * scale;
                        lg_write<T, V>((T *)a.y + row * a.n + i, d);
                });
        }
}

/* The threads of a block for lines with a stride of `inner`: `across` on neighbouring lines, `along` on each line. */
typedef struct lines {
        int across, along;
        int64_t count;
} lines;

static lines lines_of(int64_t outer, int64_t n, int64_t inner)
{
        int across = n <= 32 ? LG_THREADS : lg_across(inner, 32);
        return lines{across, LG_THREADS / across, outer * inner};
}

static int64_t line_blocks(lg_queue *q, const lines &l)
{
        return lg_few_blocks(q, (l.count + l.across - 1) / l.across, 32);
}

/* Returns the offset of the first element of line l. */
static __device__ inline int64_t line_start(int64_t l, int64_t n, int64_t inner)
{
        if (l <= UINT32_MAX && inner <= UINT32_MAX)
                return (int64_t)((uint32_t)l / (uint32_t)inner) * n * inner + (uint32_t)l % (uint32_t)inner;
        return l / inner * n * inner + l % inner;
}

template <typename T> static __global__ void softmax_lines(lg_softmax_args a, lines by)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(H, tops, LG_THREADS);
        LG_SHARED(H, sums, LG_THREADS);
        const int x = (int)threadIdx.x % by.across, y = (int)threadIdx.x / by.across;
        for (int64_t first = (int64_t)blockIdx.x * by.across; first < by.count;
             first += (int64_t)gridDim.x * by.across) {
                const bool there = first + x < by.count;
                const int64_t at = there ? line_start(first + x, a.n, a.inner) : 0;
                const T *from = (const T *)a.x + at;
                lg_running<H> r = {-INFINITY, 0};
                for (int64_t i = y; there && i < a.n; i += by.along) {
                        H v = lg_wide(from[i * a.inner]);
                        r.template take<1>(&v);
                }
                if (by.along > 1) {
                        __syncthreads();
                        tops[threadIdx.x] = r.top;
                        sums[threadIdx.x] = r.sum;
                        __syncthreads();
                        H top = -INFINITY, sum = 0;
                        for (int k = 0; k < by.along; k++)
                                top = lg_greater(top, tops[k * by.across + x]);
                        for (int k = 0; k < by.along; k++) {
                                lg_running<H> part = {tops[k * by.across + x], sums[k * by.across + x]};
                                sum += part.below(top);
                        }
                        r.top = top;
                        r.sum = sum;
                }
                const H scale = 1 / r.sum, shift = (H)log(r.sum);
                T *to = (T *)a.y + at;
                for (int64_t i = y; there && i < a.n; i += by.along) {
                        H d = lg_wide(from[i * a.inner]) - r.top;
                        lg_put(&to[i * a.inner], a.log ? d - shift : lg_exp(d) * scale);
                }
        }
}

extern "C" bool lg_cuda_softmax(lg_queue *q, const lg_softmax_args *a)
{
        lines by = lines_of(a->outer, a->n, a->inner);
        if (by.count == 0 || a->n == 0)
                return true;
        if (a->inner > 1)
                return LG_WITH_STORED(a->dtype, lg_launch(q, "softmax", softmax_lines<T>, line_blocks(q, by), *a, by));
        return LG_WITH_STORED(a->dtype, LG_LAUNCH_ROWS(q, "softmax", softmax_rows, a->outer, a->n,
                                                       lg_even(LG_PACK(T), a->n, a->x, a->y), *a));
}

/* ---- the derivative ---- */

template <typename H> static __device__ inline H part_of(bool log, H g, H y)
{
        return log ? g : g * y;
}

template <typename H> static __device__ inline H slope_of(bool log, H g, H y, H sum)
{
        return log ? g - lg_exp(y) * sum : y * (g - sum);
}

template <typename T, int TEAM, int E, int V> static __global__ void softmax_vjp_rows(lg_softmax_vjp_args a)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(H, shared, LG_TEAM_WORDS);
        for (int64_t row = LG_FIRST_ROW(TEAM); row < a.outer; row += LG_ROW_STEP(TEAM)) {
                const T *from_g = (const T *)a.g + row * a.n, *from_y = (const T *)a.y + row * a.n;
                T *to = (T *)a.dx + row * a.n;
                H g[E ? E : V], y[E ? E : V], sum = 0;
                lg_each<TEAM, E, V>(a.n, [&](int k, int64_t i) {
                        lg_read<T, V>(from_g + i, g + k);
                        lg_read<T, V>(from_y + i, y + k);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                sum += part_of(a.log, g[k + j], y[k + j]);
                });
                sum = lg_team_sum<TEAM>(sum, shared);
                lg_each<TEAM, E, V>(a.n, [&](int k, int64_t i) {
                        if (E == 0) {
                                lg_read<T, V>(from_g + i, g);
                                lg_read<T, V>(from_y + i, y);
                        }
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                g[k + j] = slope_of(a.log, g[k + j], y[k + j], sum);
                        lg_write<T, V>(to + i, g + k);
                });
        }
}

template <typename T> static __global__ void softmax_vjp_lines(lg_softmax_vjp_args a, lines by)
{
        typedef LG_COMPUTE(T) H;
        LG_SHARED(H, sums, LG_THREADS);
        const int x = (int)threadIdx.x % by.across, y = (int)threadIdx.x / by.across;
        for (int64_t first = (int64_t)blockIdx.x * by.across; first < by.count;
             first += (int64_t)gridDim.x * by.across) {
                const bool there = first + x < by.count;
                const int64_t at = there ? line_start(first + x, a.n, a.inner) : 0;
                const T *from_g = (const T *)a.g + at, *from_y = (const T *)a.y + at;
                H sum = 0;
                for (int64_t i = y; there && i < a.n; i += by.along)
                        sum += part_of<H>(a.log, lg_wide(from_g[i * a.inner]), lg_wide(from_y[i * a.inner]));
                if (by.along > 1) {
                        __syncthreads();
                        sums[threadIdx.x] = sum;
                        __syncthreads();
                        sum = 0;
                        for (int k = 0; k < by.along; k++)
                                sum += sums[k * by.across + x];
                }
                T *to = (T *)a.dx + at;
                for (int64_t i = y; there && i < a.n; i += by.along)
                        lg_put(&to[i * a.inner],
                               slope_of<H>(a.log, lg_wide(from_g[i * a.inner]), lg_wide(from_y[i * a.inner]), sum));
        }
}

extern "C" bool lg_cuda_softmax_vjp(lg_queue *q, const lg_softmax_vjp_args *a)
{
        lines by = lines_of(a->outer, a->n, a->inner);
        if (by.count == 0 || a->n == 0)
                return true;
        if (a->inner > 1)
                return LG_WITH_STORED(a->dtype,
                                      lg_launch(q, "softmax_vjp", softmax_vjp_lines<T>, line_blocks(q, by), *a, by));
        return LG_WITH_STORED(a->dtype, LG_LAUNCH_ROWS(q, "softmax_vjp", softmax_vjp_rows, a->outer, a->n,
                                                       lg_even(LG_PACK(T), a->n, a->y, a->g, a->dx), *a));
}
