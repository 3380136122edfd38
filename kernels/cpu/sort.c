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

/* A step of merging: runs of `width` records from `a`, by pairs, to `spare`. */
typedef struct step {
        int64_t n, width;
        record *a, *spare;
} step;

static void sort_runs(const void *user, int64_t first, int64_t end, int thread)
{
        const step *s = user;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                insertion_sort(lg_least(RUN, s->n - i * RUN), s->a + i * RUN);
}

static void merge_runs(const void *user, int64_t first, int64_t end, int thread)
{
        const step *s = user;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                int64_t at = i * 2 * s->width;
                merge(s->a + at, s->width, lg_least(2 * s->width, s->n - at), s->spare + at);
        }
}

/* n records in order, in `a` or in `spare`. */
static record *merge_sort(lg_queue *q, int64_t n, record *a, record *spare)
{
        if (n <= RUN) {
                insertion_sort(n, a);
                return a;
        }
        lg_parallel(q, lg_ceil_div(n, RUN), lg_grain(8 * RUN), sort_runs, &(step){n, RUN, a, spare});
        for (int64_t width = RUN; width < n; width *= 2) {
                lg_parallel(q, lg_ceil_div(n, 2 * width), lg_grain(16 * width), merge_runs,
                            &(step){n, width, a, spare});
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
        int64_t room;    /* records of one line that are at hand at once */
        record *scratch; /* for each thread */
        lg_queue *q;
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

static void sort_line(const job *j, int64_t line, record *scratch)
{
        const lg_sort_args *a = j->a;
        int64_t size = (int64_t)lg_bytes_of(a->dtype), out = line_start(line, a->k, a->inner);
        const char *x = (const char *)a->x + line_start(line, a->n, a->inner) * size;
        if (j->room < a->n)
                select_line(a, x, scratch);
        else
                keys_of[a->dtype](0, a->n, a->inner, x, -(int64_t)a->descending, scratch);
        const record *sorted = merge_sort(j->q, j->room, scratch, scratch + j->room);
        for (int64_t i = 0; i < a->k; i++)
                a->indices[out + i * a->inner] = sorted[i].at;
        pick_line[size](a->k, a->inner, x, a->indices + out, (char *)a->values + out * size);
}

static void sort_lines(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        for (int64_t i = first; i < end; i++)
                sort_line(j, i, j->scratch + thread * 2 * j->room);
}

/* Few lines are sorted one after the other by all threads, many by one thread each. */
bool LG_CPU(sort)(lg_queue *q, const lg_sort_args *a)
{
        int64_t lines = a->outer * a->inner;
        job j = {.a = a, .q = q, .room = a->k < a->n / 4 ? a->k : a->n};
        if (lines == 0 || a->k == 0)
                return true;
        if (a->k > a->n || !keys_of[a->dtype])
                return lg_queue_fail(q, LG_BROKEN, "sort: no kernel for %lld of %lld of dtype %d", (long long)a->k,
                                     (long long)a->n, (int)a->dtype);
        const int64_t grain = lines < q->threads ? lines : lg_grain(8 * a->n);
        const int64_t threads = lines < 2 * grain ? 1 : q->threads;
        j.scratch = q->workspace(q, (size_t)(threads * 2 * j.room) * sizeof *j.scratch);
        if (!j.scratch)
                return false;
        lg_parallel(q, lines, grain, sort_lines, &j);
        return true;
}

/* The lines of `in` elements of x against those of `out` of y. */
typedef struct pairs {
        const lg_pick_args *a;
        const line_fn *lines;
        int64_t in, out;
} pairs;

static void run_pairs(const void *user, int64_t first, int64_t end, int thread)
{
        const pairs *p = user;
        const lg_pick_args *a = p->a;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        (void)thread;
        for (int64_t i = first; i < end; i++)
                p->lines[size](a->k, a->inner, lg_byte_at(a->x, line_start(i, p->in, a->inner) * size),
                               a->indices ? a->indices + line_start(i, a->k, a->inner) : NULL,
                               lg_byte_at(a->y, line_start(i, p->out, a->inner) * size));
}

static void each_line(lg_queue *q, const lg_pick_args *a, const line_fn *lines, int64_t in, int64_t out)
{
        lg_parallel(q, a->outer * a->inner, lg_grain(a->k), run_pairs, &(pairs){a, lines, in, out});
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
