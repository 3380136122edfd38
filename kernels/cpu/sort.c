/* sort.c - lines put in order, their first k elements; picking by index and putting back.
 *
 * Every dtype becomes an i64 key of the same order, kept with its index. Keys and indices together are never equal, so
 * whatever sorts them gives the one stable order, with any number of threads. Few elements of many are kept in a heap,
 * then sorted by merging.
 */
#include "cpu.h"

#define RUN 16 /* elements that insertion sorts */
#define CHUNK 512

typedef struct record {
        int64_t key, at;
} record;

static inline bool before(const record *a, const record *b)
{
        return a->key < b->key || (a->key == b->key && a->at < b->at);
}

/* ---- keys ---- */

/* Sign and magnitude as a number; `inf` is the magnitude of infinity, above which lie the NaNs. */
static inline int64_t float_key(uint64_t bits, uint64_t sign, int64_t inf)
{
        int64_t magnitude = (int64_t)(bits & ~sign);
        return magnitude > inf ? INT64_MAX : bits & sign ? -magnitude : magnitude;
}

/* Records of elements first ... first + n - 1 of a line whose elements lie `step` apart; flip -1 turns the order. */
#define KEYS(suffix, type, expression)                                                                                 \
        static void keys_##suffix(int64_t first, int64_t n, int64_t step, const void *line, int64_t flip, record *ret) \
        {                                                                                                              \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        type v;                                                                                        \
                        memcpy(&v, (const type *)line + (first + i) * step, sizeof v);                                 \
                        ret[i].key = (expression) ^ flip;                                                              \
                        ret[i].at = first + i;                                                                         \
                }                                                                                                      \
        }
KEYS(f32, uint32_t, float_key(v, UINT64_C(1) << 31, 0x7f800000))
KEYS(f64, uint64_t, float_key(v, UINT64_C(1) << 63, 0x7ff0000000000000))
KEYS(f16, uint16_t, float_key(v, UINT64_C(1) << 15, 0x7c00))
KEYS(bf16, uint16_t, float_key(v, UINT64_C(1) << 15, 0x7f80))
KEYS(i64, int64_t, v)
KEYS(i32, int32_t, (int64_t)v)
KEYS(u8, uint8_t, (int64_t)v)

typedef void (*keys_fn)(int64_t, int64_t, int64_t, const void *, int64_t, record *);
static const keys_fn keys_of[LG_DTYPE_COUNT] = {NULL,     keys_f32, keys_f64, keys_f16, keys_bf16,
                                                keys_i64, keys_i32, keys_u8,  keys_u8};

/* ---- order ---- */

static void insertion_sort(int64_t n, record *a)
{
        for (int64_t i = 1; i < n; i++) {
                record r = a[i];
                int64_t j = i;
                for (; j > 0 && before(&r, &a[j - 1]); j--)
                        a[j] = a[j - 1];
                a[j] = r;
        }
}

static void merge(const record *a, int64_t middle, int64_t n, record *to)
{
        int64_t i = 0, j = middle, k = 0;
        if (middle >= n || before(&a[middle - 1], &a[middle])) {
                memcpy(to, a, (size_t)n * sizeof *a);
                return;
        }
        while (i < middle && j < n) {
                bool right = before(&a[j], &a[i]);
                to[k++] = a[right ? j : i];
                j += right;
                i += !right;
        }
        memcpy(to + k, a + i, (size_t)(middle - i) * sizeof *a);
        memcpy(to + k + middle - i, a + j, (size_t)(n - j) * sizeof *a);
}

/* n records in order, in `a` or in `spare`; with all threads, or in a part of a loop that has them. */
static record *merge_sort(lg_queue *q, bool parallel, int64_t n, record *a, record *spare)
{
        if (n <= RUN) {
                insertion_sort(n, a);
                return a;
        }
        LG_PARALLEL_FOR(q, parallel)
        for (int64_t i = 0; i < lg_ceil_div(n, RUN); i++)
                insertion_sort(lg_least(RUN, n - i * RUN), a + i * RUN);
        for (int64_t width = RUN; width < n; width *= 2) {
                LG_PARALLEL_FOR(q, parallel)
                for (int64_t i = 0; i < lg_ceil_div(n, 2 * width); i++) {
                        int64_t at = i * 2 * width;
                        merge(a + at, width, lg_least(2 * width, n - at), spare + at);
                }
                record *sorted = spare;
                spare = a;
                a = sorted;
        }
        return a;
}

/* The record at i sinks below those that come after it: the last one of all is heap[0]. */
static void sink(record *heap, int64_t n, int64_t i)
{
        record r = heap[i];
        for (int64_t child; (child = 2 * i + 1) < n; i = child) {
                child += child + 1 < n && before(&heap[child], &heap[child + 1]);
                if (!before(&r, &heap[child]))
                        break;
                heap[i] = heap[child];
        }
        heap[i] = r;
}

/* ---- lines ---- */

/* One line of each operand: elements lie `step` apart. */
#define LINES(bits)                                                                                                    \
        static void pick_##bits(int64_t k, int64_t step, const void *x, const int64_t *index, void *y)                 \
        {                                                                                                              \
                const uint##bits##_t *from = x;                                                                        \
                uint##bits##_t *to = y;                                                                                \
                for (int64_t j = 0; j < k; j++)                                                                        \
                        to[j * step] = from[index[j * step] * step];                                                   \
        }                                                                                                              \
        static void place_##bits(int64_t k, int64_t step, const void *x, const int64_t *index, void *y)                \
        {                                                                                                              \
                const uint##bits##_t *from = x;                                                                        \
                uint##bits##_t *to = y;                                                                                \
                for (int64_t j = 0; j < k; j++)                                                                        \
                        to[index[j * step] * step] = from[j * step];                                                   \
        }
LINES(8)
LINES(16)
LINES(32)
LINES(64)

typedef void (*line_fn)(int64_t, int64_t, const void *, const int64_t *, void *);
/* By the size of an element. */
static const line_fn pick_line[9] = {[1] = pick_8, [2] = pick_16, [4] = pick_32, [8] = pick_64};
static const line_fn place_line[9] = {[1] = place_8, [2] = place_16, [4] = place_32, [8] = place_64};

/* Where line `line` of an (outer, n, inner) tensor begins, in elements. */
static inline int64_t line_start(int64_t line, int64_t n, int64_t inner)
{
        return line / inner * n * inner + line % inner;
}

typedef struct job {
        const lg_sort_args *a;
        int64_t room; /* records of one line that are at hand at once */
        record *scratch;
} job;

/* The first k of a line, in no order. */
static void select_line(const lg_sort_args *a, const void *line, record *heap)
{
        record some[CHUNK];
        keys_fn keys = keys_of[a->dtype];
        int64_t flip = -(int64_t)a->descending;
        keys(0, a->k, a->inner, line, flip, heap);
        for (int64_t i = a->k / 2; i-- > 0;)
                sink(heap, a->k, i);
        for (int64_t first = a->k; first < a->n; first += CHUNK) {
                int64_t n = lg_least(CHUNK, a->n - first);
                keys(first, n, a->inner, line, flip, some);
                for (int64_t i = 0; i < n; i++) {
                        if (before(&some[i], &heap[0])) {
                                heap[0] = some[i];
                                sink(heap, a->k, 0);
                        }
                }
        }
}

static void sort_line(lg_queue *q, const job *j, int64_t line, record *scratch, bool parallel)
{
        const lg_sort_args *a = j->a;
        int64_t size = (int64_t)lg_bytes_of(a->dtype), out = line_start(line, a->k, a->inner);
        const char *x = (const char *)a->x + line_start(line, a->n, a->inner) * size;
        if (j->room < a->n)
                select_line(a, x, scratch);
        else
                keys_of[a->dtype](0, a->n, a->inner, x, -(int64_t)a->descending, scratch);
        const record *sorted = merge_sort(q, parallel, j->room, scratch, scratch + j->room);
        for (int64_t i = 0; i < a->k; i++)
                a->indices[out + i * a->inner] = sorted[i].at;
        pick_line[size](a->k, a->inner, x, a->indices + out, (char *)a->values + out * size);
}

bool LG_CPU(sort)(lg_queue *q, const lg_sort_args *a)
{
        int64_t lines = a->outer * a->inner;
        job j = {.a = a, .room = a->k < a->n / 4 ? a->k : a->n};
        if (lines == 0 || a->k == 0)
                return true;
        if (a->k > a->n || !keys_of[a->dtype])
                return lg_queue_fail(q, LG_BROKEN, "sort: no kernel for %lld of %lld of dtype %d", (long long)a->k,
                                     (long long)a->n, (int)a->dtype);
        bool parallel = lines * a->n >= LG_PARALLEL_MIN / 8, together = lines < q->threads;
        int64_t lanes = together || !parallel ? 1 : q->threads;
        j.scratch = q->workspace(q, (size_t)(lanes * 2 * j.room) * sizeof *j.scratch);
        if (!j.scratch)
                return false;
        if (together) {
                for (int64_t i = 0; i < lines; i++)
                        sort_line(q, &j, i, j.scratch, parallel);
                return true;
        }
        LG_PARALLEL_FOR(q, parallel)
        for (int64_t lane = 0; lane < lanes; lane++)
                for (int64_t i = lines * lane / lanes; i < lines * (lane + 1) / lanes; i++)
                        sort_line(q, &j, i, j.scratch + lane * 2 * j.room, false);
        return true;
}

/* The lines of `in` elements of x against those of `out` of y. */
static void each_line(lg_queue *q, const lg_pick_args *a, const line_fn *lines, int64_t in, int64_t out)
{
        int64_t size = (int64_t)lg_bytes_of(a->dtype), count = a->outer * a->inner;
        line_fn run = lines[size];
        LG_PARALLEL_FOR(q, count * a->k >= LG_PARALLEL_MIN)
        for (int64_t i = 0; i < count; i++)
                run(a->k, a->inner, lg_byte_at(a->x, line_start(i, in, a->inner) * size),
                    a->indices ? a->indices + line_start(i, a->k, a->inner) : NULL,
                    lg_byte_at(a->y, line_start(i, out, a->inner) * size));
}

bool LG_CPU(pick)(lg_queue *q, const lg_pick_args *a)
{
        each_line(q, a, pick_line, a->n, a->k);
        return true;
}

bool LG_CPU(pick_grad)(lg_queue *q, const lg_pick_args *a)
{
        memset(a->y, 0, (size_t)(a->outer * a->n * a->inner) * lg_bytes_of(a->dtype));
        each_line(q, a, place_line, a->k, a->n);
        return true;
}
