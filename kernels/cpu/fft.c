/* fft.c - discrete Fourier transforms of f32 and f64.
 *
 * A vector holds one element of as many lines as it has lanes: a buffer of pairs of vectors is transformed by passes
 * of radix 8, 4, 2, 3, 5, 7, 11 or any odd number (fft.inc). Lines are copied to a buffer and back: by transposes if a
 * line's elements follow each other, else by columns. A prime factor above LG_FFT_ODD makes the length one for
 * Bluestein's algorithm. A transform of 2 m reals is one of m pairs and a step that separates their spectra.
 *
 * Long lines, and single ones, are split: n = n1 n2, with transforms of n1 elements for n2 columns, which are lanes,
 * factors e(j k / n), and transforms of n2 elements for n1 rows (Bailey's four steps). */
#include "fft.h"
#include "simd.h"

#define LG_FFT_ODD 100    /* above the largest radix */
#define LG_FFT_LINE 8192  /* longer lines are split */
#define LG_FFT_SINGLE 256 /* lines from this length on are split if there are few */
#define ACROSS 4          /* groups of lines of a long line that are copied together */
#define MOST_LANES (LG_VECTOR / 4)

/* How the elements of lines are stored: element j of line l begins at at[l] + j step, and its imaginary part follows
 * after `part`; 0: it has none. ROWS: elements follow each other, in lines `row` apart. COLUMNS: element j of the lines
 * follow each other; pairs: real and imaginary parts alternate. */
typedef enum lines_mode { LINES_APART, LINES_IN_ROWS, LINES_IN_COLUMNS } lines_mode;
typedef struct lines {
        lines_mode mode;
        bool pairs;
        int64_t count, step, part, row;
        int64_t at[MOST_LANES];
} lines;

typedef struct job {
        const lg_fft_args *a;
        const lg_fft_tables *tables;
        char *scratch;
        int64_t lanes, rows, groups, each; /* lanes of a vector; pairs of a buffer; groups, and those of one `outer` */
        size_t thread_bytes;
} job;

/* One long line. Element j of x begins at j x_step; `between` holds the result of the first half; `line`, a whole
 * spectrum; half_step is the step of the half spectrum of reals. */
typedef struct split_job {
        const lg_fft_args *a;
        const lg_fft_tables *tables;
        const void *x;
        void *y, *between, *line;
        int64_t x_step, x_part, y_step, y_part, half_step, rows;
        bool inverse;
        double scale;
        char *scratch;
        size_t thread_bytes;
} split_job;

/* Describes one side of the lines [first, first + count). size: elements of a line, a pair of reals counting as one. */
static void side_of(const job *j, int64_t first, int64_t count, bool complex, lines *ret)
{
        const lg_fft_args *a = j->a;
        const bool real_pairs = !complex && j->tables->real;
        const int64_t inner = a->inner, unit = complex ? 2 : 1;
        const int64_t size = complex ? (a->kind == LG_FFT_COMPLEX ? a->n : a->n / 2 + 1) : a->n;
        *ret = (lines){.count = count, .step = (real_pairs ? 2 : unit) * inner, .pairs = complex};
        ret->part = complex ? 1 : real_pairs ? inner : 0;
        for (int64_t l = 0; l < count; l++)
                ret->at[l] = ((first + l) / inner * size * inner + (first + l) % inner) * unit;
        ret->row = size * unit;
        ret->mode = inner == 1 ? LINES_IN_ROWS : inner >= j->lanes ? LINES_IN_COLUMNS : LINES_APART;
}

static void lines_of(const job *j, int64_t g, int64_t lanes, lines *ret_in, lines *ret_out)
{
        const lg_fft_args *a = j->a;
        const bool columns = a->inner >= lanes;
        const int64_t outer = columns ? g / j->each : 0, begin = (columns ? g % j->each : g) * lanes;
        const int64_t end = columns ? a->inner : a->outer * a->inner;
        const int64_t first = outer * a->inner + begin, count = lg_least(lanes, end - begin);
        side_of(j, first, count, a->kind != LG_FFT_REAL, ret_in);
        side_of(j, first, count, a->kind != LG_FFT_HALF, ret_out);
}

/* Completes the description of lines that are elements [first, first + count) of a long line with this step. */
static void split_lines(lines *w, int64_t first, int64_t step)
{
        w->pairs = true;
        w->mode = w->part == 1 && step == 2 ? LINES_IN_COLUMNS : LINES_APART;
        for (int64_t l = 0; l < w->count; l++)
                w->at[l] = (first + l) * step;
}

/* Names in the .inc files. */
#define VEC LG_OF(lg_vec)
#define LANES LG_OF(LG_LANES)
#define PAIR (2 * LANES)
#define CX LG_OF(complex)
#define GET LG_OF(get)
#define PUT LG_OF(put)
#define PLUS LG_OF(plus)
#define MINUS LG_OF(minus)
#define TIMES LG_OF(times)
#define SCALE LG_OF(times_real)
#define FMA LG_OF(lg_vec_fma)
#define ALL LG_OF(lg_vec_all)
#define LOAD LG_OF(lg_vec_load)
#define STORE LG_OF(lg_vec_store)
#define LOAD_SOME LG_OF(lg_vec_load_some)
#define STORE_SOME LG_OF(lg_vec_store_some)
#define TRANSPOSE LG_OF(lg_vec_transpose)

#define LG_BOTH "fft.inc"
#include "both.inc"
#define LG_BOTH "fft_lines.inc"
#include "both.inc"

double *lg_fft_vectors(const lg_fft_plan *p, double *x, double *y)
{
        return transform_f64(p, x, y, x, 0, 1);
}

static void run_groups(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        for (int64_t g = first; g < end; g++)
                (j->a->dtype == LG_F64 ? run_group_f64 : run_group_f32)(j, g,
                                                                        j->scratch + (size_t)thread * j->thread_bytes);
}

#define SPLIT_RANGE(name)                                                                                              \
        static void name##_range(const void *user, int64_t first, int64_t end, int thread)                             \
        {                                                                                                              \
                const split_job *s = user;                                                                             \
                void *scratch = s->scratch + (size_t)thread * s->thread_bytes;                                         \
                for (int64_t g = first; g < end; g++)                                                                  \
                        (s->a->dtype == LG_F64 ? name##_f64 : name##_f32)(s, g, scratch);                              \
        }
SPLIT_RANGE(long_first)
SPLIT_RANGE(long_second)
#define LINE_RANGE(name)                                                                                               \
        static void name##_range(const void *user, int64_t first, int64_t end, int thread)                             \
        {                                                                                                              \
                const split_job *s = user;                                                                             \
                (void)thread;                                                                                          \
                (s->a->dtype == LG_F64 ? name##_f64 : name##_f32)(s, first, end);                                      \
        }
LINE_RANGE(long_separate)
LINE_RANGE(long_combine)
LINE_RANGE(long_finish_odd)
LINE_RANGE(long_mirror_odd)

/* Transforms one long line of complex numbers, or of reals without an imaginary part. */
static void run_split(lg_queue *q, const split_job *s, int64_t lanes)
{
        const int64_t n1 = s->tables->plan[0].n, n2 = s->tables->plan[1].n;
        lg_parallel(q, lg_ceil_div(n2, lanes * ACROSS), lg_grain(4 * ACROSS * lanes * n1), long_first_range, s);
        lg_parallel(q, lg_ceil_div(n1, lanes * ACROSS), lg_grain(4 * ACROSS * lanes * n2), long_second_range, s);
}

/* Transforms one long line, whatever its kind. x, y: the line's address; `line`: a row for a whole spectrum. */
static void run_line(lg_queue *q, const lg_fft_args *a, split_job *s, int64_t lanes)
{
        const int64_t inner = a->inner, half = a->n / 2 + 1;
        const bool even = s->tables->real;
        const int64_t pairs = s->tables->n / 2 + 1, real_step = even ? 2 * inner : inner, real_part = even ? inner : 0;
        const int64_t grain = lg_grain(8);
        s->half_step = 2 * inner;
        s->x = a->x, s->x_step = 2 * inner, s->x_part = 1;
        s->y = a->y, s->y_step = 2 * inner, s->y_part = 1;
        s->inverse = a->kind == LG_FFT_HALF || (a->kind == LG_FFT_COMPLEX && a->inverse);
        s->scale = a->kind == LG_FFT_REAL && even ? 1 : a->scale;
        if (a->kind == LG_FFT_REAL) {
                s->x_step = real_step, s->x_part = real_part;
                if (!even)
                        s->y = s->line, s->y_step = 2;
                run_split(q, s, lanes);
                lg_parallel(q, even ? pairs : half, grain, even ? long_separate_range : long_finish_odd_range, s);
        } else if (a->kind == LG_FFT_HALF) {
                lg_parallel(q, even ? pairs : half, grain, even ? long_combine_range : long_mirror_odd_range, s);
                s->x = s->line, s->x_step = 2;
                s->y_step = real_step, s->y_part = real_part;
                run_split(q, s, lanes);
        } else {
                run_split(q, s, lanes);
        }
}

static bool run_lines(lg_queue *q, const lg_fft_args *a, const lg_fft_tables *t, int64_t lanes)
{
        const size_t size = lg_bytes_of(a->dtype);
        const int64_t n1 = t->plan[0].n, n2 = t->plan[1].n;
        const int64_t rows = lg_most(t->plan[0].length, t->plan[1].length) + 1;
        const int64_t complex_n = a->kind == LG_FFT_COMPLEX ? a->n : a->n / 2 + 1;
        const int64_t x_line = a->kind == LG_FFT_REAL ? a->n : 2 * complex_n;
        const int64_t y_line = a->kind == LG_FFT_HALF ? a->n : 2 * complex_n;
        split_job s = {.tables = t, .rows = rows};
        s.thread_bytes = (size_t)(rows * 2 * lanes * (ACROSS + 1)) * size;
        s.scratch = q->workspace(q, s.thread_bytes * (size_t)(lg_most(n1, n2) > ACROSS * lanes ? q->threads : 1));
        s.between = q->workspace(q, (size_t)(lg_ceil_div(n1, lanes) * lanes * 2 * n2) * size);
        s.line = a->kind == LG_FFT_COMPLEX ? NULL : q->workspace(q, (size_t)(2 * t->n) * size);
        if (!s.scratch || !s.between || (!s.line && a->kind != LG_FFT_COMPLEX))
                return false;
        for (int64_t i = 0; i < a->outer * a->inner; i++) {
                lg_fft_args one = *a;
                const int64_t outer = i / a->inner, at = i % a->inner;
                one.x = (const char *)a->x +
                        (size_t)(outer * x_line * a->inner + at * (a->kind == LG_FFT_REAL ? 1 : 2)) * size;
                one.y = (char *)a->y +
                        (size_t)(outer * y_line * a->inner + at * (a->kind == LG_FFT_HALF ? 1 : 2)) * size;
                s.a = &one;
                run_line(q, &one, &s, lanes);
        }
        return true;
}

bool LG_CPU(fft)(lg_queue *q, const lg_fft_args *a)
{
        const int64_t count = a->outer * a->inner;
        const bool real = a->kind != LG_FFT_COMPLEX && a->n % 2 == 0;
        const int64_t m = real ? a->n / 2 : a->n;
        const size_t size = lg_bytes_of(a->dtype);
        const int64_t lanes = LG_VECTOR / (int64_t)size;
        if (a->dtype != LG_F32 && a->dtype != LG_F64)
                return lg_queue_fail(q, LG_BROKEN, "fft: no kernel for dtype %d", (int)a->dtype);
        if (count == 0)
                return true;
        const bool split = m > LG_FFT_LINE || (m >= LG_FFT_SINGLE && 2 * count <= lanes);
        if (split && !lg_fft_is_smooth(a->n))
                return lg_fft_prime(q, a);
        const lg_fft_tables *t = lg_fft_tables_of(q, a->dtype, m, split, real);
        if (!t || t->split)
                return t && run_lines(q, a, t, lanes);
        job j = {.a = a, .tables = t, .lanes = lanes, .rows = t->plan[0].length + 1};
        j.each = lg_ceil_div(a->inner, lanes);
        j.groups = a->inner >= lanes ? a->outer * j.each : lg_ceil_div(count, lanes);
        j.thread_bytes = (size_t)(j.rows * 4 * lanes) * size;
        j.scratch = q->workspace(q, j.thread_bytes * (size_t)(j.groups > 1 ? q->threads : 1));
        if (!j.scratch)
                return false;
        lg_parallel(q, j.groups, lg_grain(4 * lanes * m), run_groups, &j);
        return true;
}
