/* gather.c - gather and scatter: picks elements by index along a dimension, or changes the elements at an index. */
#include <math.h>
#include "cpu.h"

#define CHUNK 4096
#define LEAST_PIECE 16 /* minimum elements of a row for one task, so that tasks write different cache lines */

/* Arguments of a loop over n elements: pointers advance by their *_step; index * scale is added on the indexed side. */
#define RUN_ARGUMENTS                                                                                                  \
        int64_t n, void *to_, int64_t to_step, const void *from_, int64_t from_step, const int64_t *index,             \
                int64_t index_step, int64_t scale
typedef void (*run_fn)(RUN_ARGUMENTS);

#define PICK(bits)                                                                                                     \
        static void pick_##bits(RUN_ARGUMENTS)                                                                         \
        {                                                                                                              \
                uint##bits##_t *to = to_;                                                                              \
                const uint##bits##_t *from = from_;                                                                    \
                if (index_step == 0 && to_step == 1 && from_step == 1)                                                 \
                        memcpy(to, from + *index * scale, (size_t)n * sizeof *to);                                     \
                else                                                                                                   \
                        for (int64_t i = 0; i < n; i++)                                                                \
                                to[i * to_step] = from[i * from_step + index[i * index_step] * scale];                 \
        }
PICK(8)
PICK(16)
PICK(32)
PICK(64)

#define SAME(x) (x)
#define ADD(suffix, sum_type, type, widen)                                                                             \
        static void add_##suffix(RUN_ARGUMENTS)                                                                        \
        {                                                                                                              \
                sum_type *to = to_;                                                                                    \
                const type *from = from_;                                                                              \
                if (index_step == 0 && to_step == 1 && from_step == 1) {                                               \
                        to += *index * scale;                                                                          \
                        LG_SIMD                                                                                        \
                        for (int64_t i = 0; i < n; i++)                                                                \
                                to[i] = (sum_type)(to[i] + widen(from[i]));                                            \
                        return;                                                                                        \
                }                                                                                                      \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        sum_type *at = to + i * to_step + index[i * index_step] * scale;                               \
                        *at = (sum_type)(*at + widen(from[i * from_step]));                                            \
                }                                                                                                      \
        }
ADD(f32, float, float, SAME)
ADD(f64, double, double, SAME)
ADD(f16, float, uint16_t, lg_f32_of_f16)
ADD(bf16, float, uint16_t, lg_f32_of_bf16)
ADD(i64, int64_t, int64_t, SAME)
ADD(i32, int32_t, int32_t, SAME)
ADD(u8, uint8_t, uint8_t, SAME)

#define PUT(bits)                                                                                                      \
        static void put_##bits(RUN_ARGUMENTS)                                                                          \
        {                                                                                                              \
                uint##bits##_t *to = to_;                                                                              \
                const uint##bits##_t *from = from_;                                                                    \
                if (index_step == 0 && to_step == 1 && from_step == 1)                                                 \
                        memcpy(to + *index * scale, from, (size_t)n * sizeof *to);                                     \
                else                                                                                                   \
                        for (int64_t i = 0; i < n; i++)                                                                \
                                to[i * to_step + index[i * index_step] * scale] = from[i * from_step];                 \
        }
PUT(8)
PUT(16)
PUT(32)
PUT(64)

#define NEVER(x) false
#define EXTREME(name, type, widen, is_nan, beats)                                                                      \
        static void name(RUN_ARGUMENTS)                                                                                \
        {                                                                                                              \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        type *at = (type *)to_ + i * to_step + index[i * index_step] * scale;                          \
                        const type v = ((const type *)from_)[i * from_step];                                           \
                        if (!is_nan(widen(*at)) && (is_nan(widen(v)) || widen(v) beats widen(*at)))                    \
                                *at = v;                                                                               \
                }                                                                                                      \
        }
#define EXTREMES(suffix, type, widen, is_nan)                                                                          \
        EXTREME(max_##suffix, type, widen, is_nan, >)                                                                  \
        EXTREME(min_##suffix, type, widen, is_nan, <)
EXTREMES(f32, float, SAME, isnan)
EXTREMES(f64, double, SAME, isnan)
EXTREMES(f16, uint16_t, lg_f32_of_f16, isnan)
EXTREMES(bf16, uint16_t, lg_f32_of_bf16, isnan)
EXTREMES(i64, int64_t, SAME, NEVER)
EXTREMES(i32, int32_t, SAME, NEVER)
EXTREMES(u8, uint8_t, SAME, NEVER)

/* The loops of scatter by dtype; NULL where a mode does not take the dtype. */
#define OF_DTYPES(mode)                                                                                                \
        {                                                                                                              \
                [LG_F32] = mode##_f32, [LG_F64] = mode##_f64, [LG_F16] = mode##_f16, [LG_BF16] = mode##_bf16,          \
                [LG_I64] = mode##_i64, [LG_I32] = mode##_i32, [LG_U8] = mode##_u8                                      \
        }
static run_fn scatter_run(lg_put_mode mode, lg_dtype dtype)
{
        static const run_fn sums[LG_DTYPE_COUNT] = OF_DTYPES(add), most[LG_DTYPE_COUNT] = OF_DTYPES(max),
                            least[LG_DTYPE_COUNT] = OF_DTYPES(min);
        const size_t size = lg_bytes_of(dtype);
        if (mode == LG_PUT_SUM)
                return sums[dtype];
        if (mode == LG_PUT_SET)
                return size == 8 ? put_64 : size == 4 ? put_32 : size == 2 ? put_16 : put_8;
        dtype = dtype == LG_BOOL ? LG_U8 : dtype;
        return mode == LG_PUT_MAX ? most[dtype] : least[dtype];
}

enum { TO, FROM, INDEX };

/* Arguments of a call. `lines` walks all dimensions but the indexed one (n elements); `row`: size of its innermost. */
typedef struct job {
        lg_walk lines;
        int64_t n, row, rest;       /* sizes; `lines` has rest * row elements */
        int64_t along[3];           /* strides along the indexed dimension; 0 on the indexed side */
        int64_t across[3];          /* strides along the innermost dimension of `lines` */
        int64_t scale;              /* stride of the indexed dimension on the indexed side */
        int64_t n_piece, row_piece; /* elements of one task in each of the two dimensions */
        bool inner_along;           /* the inner loop runs along the indexed dimension, not the row */
        int64_t to_size, from_size;
        run_fn run;
        char *to;
        const char *from;
        const int64_t *index;
} job;

static int64_t distance(int64_t step)
{
        return step < 0 ? -step : step;
}

static void job_init(job *j, const lg_gather_args *a, bool scatter)
{
        const int64_t *strides[3] = {a->to_strides, a->from_strides, a->index_strides};
        int64_t shape[LG_MAX_DIMS];
        *j = (job){.n = a->ndim ? a->shape[a->dim] : 1, .to_size = (int64_t)lg_bytes_of(a->dtype)};
        j->from_size = j->to_size;
        for (int d = 0; d < a->ndim; d++)
                shape[d] = d == a->dim ? 1 : a->shape[d];
        lg_walk_init(&j->lines, a->ndim, shape, 3, strides, true);
        int inner = j->lines.ndim - 1;
        j->row = j->lines.shape[inner];
        j->rest = j->row ? j->lines.count / j->row : 0;
        for (int i = 0; i < 3; i++) {
                j->along[i] = a->ndim ? strides[i][a->dim] : 0;
                j->across[i] = j->lines.strides[i][inner];
        }
        int values = scatter ? FROM : TO;
        j->scale = j->along[scatter ? TO : FROM];
        j->along[scatter ? TO : FROM] = 0;
        j->inner_along = j->row == 1 || (j->n > 1 && distance(j->along[values]) < distance(j->across[values]));
}

/* Returns how many of n indices precede the first one outside [0, limit); n if all are valid. */
static int64_t good_ones(int64_t n, const int64_t *index, int64_t limit)
{
        int bad = 0;
        int64_t i = 0;
        for (int64_t k = 0; k < n; k++) /* no early exit, so that the loop is vectorised */
                bad |= (uint64_t)index[k] >= (uint64_t)limit;
        if (!bad)
                return n;
        while (index[i] >= 0 && index[i] < limit)
                i++;
        return i;
}

/* Job that checks all indices, in chunks. */
typedef struct check {
        const lg_gather_args *a;
        lg_walk walk;
        int64_t *good; /* for each chunk: its valid indices before the first bad one */
} check;

static void check_chunk(const check *k, int64_t c)
{
        const lg_walk *w = &k->walk;
        const bool dense = lg_walk_contiguous(w, 0);
        int64_t some[CHUNK], n = lg_least(CHUNK, w->count - c * CHUNK);
        if (!dense)
                lg_walk_gather(w, 0, sizeof *some, some, k->a->index, c * CHUNK, n);
        k->good[c] = good_ones(n, dense ? k->a->index + c * CHUNK : some, k->a->limit);
}
LG_EACH(check_chunks, check_chunk)

/* Checks all indices and records the first bad one, in memory order. Index dimensions of stride 0 are checked once. */
static bool in_range(lg_queue *q, const lg_gather_args *a, bool *ret_ok)
{
        check k = {.a = a};
        lg_walk *w = &k.walk;
        int64_t shape[LG_MAX_DIMS], at[LG_MAX_DIMS];
        for (int d = 0; d < a->ndim; d++)
                shape[d] = a->index_strides[d] ? a->shape[d] : 1;
        lg_walk_init(w, a->ndim, shape, 1, (const int64_t *[]){a->index_strides}, true);
        int64_t chunks = lg_ceil_div(w->count, CHUNK);
        if (!(k.good = q->workspace(q, (size_t)chunks * sizeof *k.good)))
                return false;
        lg_parallel(q, chunks, lg_grain(CHUNK), check_chunks, &k);
        *ret_ok = true;
        for (int64_t c = 0; c < chunks && *ret_ok; c++) {
                if (k.good[c] == lg_least(CHUNK, w->count - c * CHUNK))
                        continue;
                *ret_ok = false;
                if (q->error.code == LG_DEVICE_OK)
                        q->error = (lg_device_error){.code = a->origin,
                                                     .value = a->index[lg_walk_seek(w, 0, c * CHUNK + k.good[c], at)],
                                                     .limit = a->limit};
        }
        return true;
}

static void run_task(const job *j, int64_t task)
{
        int64_t at[LG_MAX_DIMS], rows = lg_ceil_div(j->row, j->row_piece), ns = lg_ceil_div(j->n, j->n_piece);
        int64_t row = task % rows * j->row_piece, n = task / rows % ns * j->n_piece, offset[3];
        for (int i = 0; i < 3; i++)
                offset[i] = lg_walk_seek(&j->lines, i, task / rows / ns * j->row, at) + row * j->across[i] +
                            n * j->along[i];
        int64_t count[2] = {lg_least(j->row_piece, j->row - row), lg_least(j->n_piece, j->n - n)};
        const int64_t *in = j->inner_along ? j->along : j->across, *out = j->inner_along ? j->across : j->along;
        char *to = j->to + offset[TO] * j->to_size;
        const char *from = j->from + offset[FROM] * j->from_size;
        const int64_t *index = j->index + offset[INDEX];
        for (int64_t i = 0; i < count[!j->inner_along]; i++)
                j->run(count[j->inner_along], to + i * out[TO] * j->to_size, in[TO],
                       from + i * out[FROM] * j->from_size, in[FROM], index + i * out[INDEX], in[INDEX], j->scale);
}
LG_EACH(run_some, run_task)

static void run_tasks(lg_queue *q, job *j, void *to, const lg_gather_args *a)
{
        int64_t tasks = j->rest * lg_ceil_div(j->row, j->row_piece) * lg_ceil_div(j->n, j->n_piece);
        j->to = to;
        j->from = a->from;
        j->index = a->index;
        lg_parallel(q, tasks, lg_grain(j->lines.count * j->n / tasks), run_some, j);
}

bool LG_CPU(gather)(lg_queue *q, const lg_gather_args *a)
{
        job j;
        bool ok;
        job_init(&j, a, false);
        if (j.lines.count * j.n == 0)
                return true;
        if (!in_range(q, a, &ok))
                return false;
        if (!ok) {
                memset(a->to, 0, (size_t)(a->to_count * j.to_size));
                return true;
        }
        j.run = j.to_size == 8 ? pick_64 : j.to_size == 4 ? pick_32 : j.to_size == 2 ? pick_16 : pick_8;
        int64_t inner = lg_least(j.inner_along ? j.n : j.row, CHUNK), outer = CHUNK / inner;
        j.row_piece = j.inner_along ? outer : inner;
        j.n_piece = j.inner_along ? inner : outer;
        run_tasks(q, &j, a->to, a);
        return true;
}

/* Tasks have whole lines of the indexed dimension: no two change the same element, and each has a fixed order. */
bool LG_CPU(scatter)(lg_queue *q, const lg_gather_args *a)
{
        job j;
        bool ok;
        job_init(&j, a, true);
        j.run = scatter_run(a->mode, a->dtype);
        if (!j.run)
                return lg_queue_fail(q, LG_BROKEN, "scatter: no kernel for dtype %d", (int)a->dtype);
        if (j.lines.count * j.n == 0)
                return true;
        if (!in_range(q, a, &ok))
                return false;
        if (!ok)
                return true;
        bool half = a->mode == LG_PUT_SUM && lg_is_half(a->dtype);
        void *to = half ? lg_widen(q, a->dtype, a->to_count, a->to) : a->to;
        if (!to)
                return false;
        if (half)
                j.to_size = sizeof(float);
        int64_t pieces = j.rest >= q->threads ? 1 : lg_most(1, q->threads), least = j.inner_along ? 1 : LEAST_PIECE;
        j.row_piece = lg_least(j.row, lg_ceil_div(lg_ceil_div(j.row, pieces), least) * least);
        j.n_piece = j.n;
        run_tasks(q, &j, to, a);
        if (half)
                lg_narrow(q, a->dtype, a->to_count, a->to, to);
        return true;
}
