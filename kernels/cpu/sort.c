/* sort.c - sorts lines or selects their first k elements; picks by index, and its derivative.
 *
 * Every dtype is mapped to an i64 key with the same order, stored with its index, both in one integer if they fit. A
 * key with its index is unique, so any algorithm and any number of threads give the same stable order. Few elements of
 * many are selected with a heap, then sorted by merging. */
#include "cpu.h"

#define RUN 16 /* elements of a run that insertion sort sorts */
#define CHUNK 512

/* ---- keys ---- */

/* Returns a key that orders floats, given as bits, like signed magnitudes; `inf` is the magnitude of infinity. All NaNs
 * get the same key, the greatest. */
static inline int64_t float_key(uint64_t bits, uint64_t sign, int64_t inf)
{
        int64_t magnitude = (int64_t)(bits & ~sign);
        return magnitude > inf ? (int64_t)(sign - 1) : bits & sign ? -magnitude : magnitude;
}

/* Makes the keys of n elements with the stride `step`; flip = -1 reverses the order. */
#define KEYS(suffix, type, expression)                                                                                 \
        static void keys_##suffix(int64_t n, int64_t step, const void *line, int64_t flip, int64_t *ret)               \
        {                                                                                                              \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        type v;                                                                                        \
                        memcpy(&v, (const type *)line + i * step, sizeof v);                                           \
                        ret[i] = (expression) ^ flip;                                                                  \
                }                                                                                                      \
        }
KEYS(f32, uint32_t, float_key(v, UINT64_C(1) << 31, 0x7f800000))
KEYS(f64, uint64_t, float_key(v, UINT64_C(1) << 63, 0x7ff0000000000000))
KEYS(f16, uint16_t, float_key(v, UINT64_C(1) << 15, 0x7c00))
KEYS(bf16, uint16_t, float_key(v, UINT64_C(1) << 15, 0x7f80))
KEYS(i64, int64_t, v)
KEYS(i32, int32_t, (int64_t)v)
KEYS(u8, uint8_t, (int64_t)v)

typedef void (*keys_fn)(int64_t, int64_t, const void *, int64_t, int64_t *);
static const keys_fn keys_of[LG_DTYPE_COUNT] = {NULL,     keys_f32, keys_f64, keys_f16, keys_bf16,
                                                keys_i64, keys_i32, keys_u8,  keys_u8};

/* ---- lines ---- */

/* Picks or places k elements of one line; elements have the stride `step`. */
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
/* Functions for one line, indexed by the size of an element in bytes. */
static const line_fn pick_line[9] = {[1] = pick_8, [2] = pick_16, [4] = pick_32, [8] = pick_64};
static const line_fn place_line[9] = {[1] = place_8, [2] = place_16, [4] = place_32, [8] = place_64};

/* Returns the offset in elements of line number `line` of an (outer, n, inner) tensor. */
static inline int64_t line_start(int64_t line, int64_t n, int64_t inner)
{
        return line / inner * n * inner + line % inner;
}

typedef struct job {
        const lg_sort_args *a;
        int64_t room;  /* records per line in memory at once: k if selected with a heap, else n */
        bool borrows;  /* the line's indices serve as second buffer; else scratch has two */
        void *scratch; /* records of each thread */
        lg_queue *q;
} job;

typedef struct record {
        int64_t key, at;
} record;
#define LG_RECORD record
#define LG_OF(name) name##_wide
#define MAKE(key, at) ((record){key, at})
#define AT(r) ((r).at)
#define BEFORE(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).at < (b).at))
#include "sort.inc"

/* Records of a 32-bit key and a 32-bit index in one integer. */
#define LG_RECORD uint64_t
#define LG_OF(name) name##_packed
#define MAKE(key, at) (((uint64_t)(key) + (UINT64_C(1) << 31)) << 32 | (uint64_t)(at))
#define AT(r) ((int64_t)((r)&UINT32_MAX))
#define BEFORE(a, b) ((a) < (b))
#include "sort.inc"

/* Sorts few lines one after the other with all threads, many lines with one thread each. */
bool LG_CPU(sort)(lg_queue *q, const lg_sort_args *a)
{
        const bool packed = lg_bytes_of(a->dtype) <= 4 && a->n <= UINT32_MAX;
        int64_t lines = a->outer * a->inner;
        job j = {.a = a, .q = q, .room = a->k < a->n / 4 ? a->k : a->n};
        if (lines == 0 || a->k == 0)
                return true;
        if (a->k > a->n || !keys_of[a->dtype])
                return lg_queue_fail(q, LG_BROKEN, "sort: no kernel for %lld of %lld of dtype %d", (long long)a->k,
                                     (long long)a->n, (int)a->dtype);
        const int64_t grain = lines < q->threads ? lines : lg_grain(8 * a->n);
        const int64_t threads = lines < 2 * grain ? 1 : q->threads;
        j.borrows = packed && a->inner == 1 && j.room == a->k;
        j.scratch = q->workspace(q, (size_t)(threads * (j.borrows ? 1 : 2) * j.room) *
                                            (packed ? sizeof(uint64_t) : sizeof(record)));
        if (!j.scratch)
                return false;
        lg_parallel(q, lines, grain, packed ? sort_lines_packed : sort_lines_wide, &j);
        return true;
}

/* Job of pick and pick_grad: lines of `in` elements of x and of `out` elements of y. */
typedef struct pairs {
        const lg_pick_args *a;
        const line_fn *lines;
        int64_t in, out;
} pairs;

static void run_pair(const pairs *p, int64_t i)
{
        const lg_pick_args *a = p->a;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        p->lines[size](a->k, a->inner, lg_byte_at(a->x, line_start(i, p->in, a->inner) * size),
                       a->indices ? a->indices + line_start(i, a->k, a->inner) : NULL,
                       lg_byte_at(a->y, line_start(i, p->out, a->inner) * size));
}
LG_EACH(run_pairs, run_pair)

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
