/* batch_norm.c - batch norm over the columns of a matrix with residual and ReLU, its derivative, running statistics.
 *
 * The matrix is split into tiles by its shape alone, each tile sums its columns, and the tiles' results are combined in
 * order: no result depends on the number of threads. A tile sums differences from its first row. The cancellation in
 * sum(d^2) - sum(d)^2 / n is then bounded by the number of rows, and f64 has digits to spare for it. With few channels,
 * several rows are treated as one line, so that the loops over a line are long enough. */
#include "cpu.h"
#include "scalar.h"

#define COLUMNS 512 /* maximum columns of a tile */
#define NARROW 64   /* minimum elements of a line; shorter rows are joined */
#define CHUNKS 64   /* maximum number of row chunks (tiles in a column) */
#define LINES 4     /* number of constants per element of a line, see batch_norm.inc */

typedef struct plan {
        int64_t rows, channels;
        int64_t fold, width;   /* matrix rows per line; elements per line */
        int64_t blocks;        /* tiles next to each other in a row of tiles */
        int64_t chunk, chunks; /* matrix rows per tile; tiles in a column of tiles */
} plan;

/* Part of the matrix: `lines` lines of `cols` elements with the stride `step`, then a shorter line of `tail` elements,
 * from element `at` of the matrix on. `chunk` and `column`: position of the tile; `rows`: its matrix rows. */
typedef struct tile {
        int64_t at, lines, cols, step, tail;
        int64_t chunk, column, rows;
} tile;

/* Sums of a tile's columns. The arrays are slightly longer than a page: with the same page offset, stores to one array
 * would delay loads of the next. */
typedef struct sums {
        double shift[COLUMNS + 8];  /* input: the value subtracted from x in each column */
        double first[COLUMNS + 8];  /* result: sum of d = x - shift, or with g the sum of g */
        double second[COLUMNS + 8]; /* result: sum of d^2, or with g the sum of g d */
} sums;

static plan plan_of(int64_t rows, int64_t channels)
{
        plan p = {.rows = rows, .channels = channels, .fold = channels < NARROW ? lg_ceil_div(NARROW, channels) : 1};
        p.width = p.fold * channels;
        p.blocks = lg_ceil_div(p.width, COLUMNS);
        p.chunk = lg_most(lg_most(NARROW, lg_ceil_div(16384, channels)), lg_ceil_div(rows, CHUNKS));
        p.chunk = lg_ceil_div(p.chunk, p.fold) * p.fold;
        p.chunks = lg_ceil_div(rows, p.chunk);
        return p;
}

static tile tile_of(const plan *p, int64_t i)
{
        tile t = {.chunk = i / p->blocks, .column = i % p->blocks * COLUMNS};
        int64_t row = t.chunk * p->chunk;
        t.rows = lg_least(p->chunk, p->rows - row);
        t.at = row * p->channels + t.column;
        t.lines = t.rows / p->fold;
        t.step = p->width;
        t.cols = lg_least(COLUMNS, p->width - t.column);
        t.tail = t.rows % p->fold * p->channels;
        return t;
}

/* Adds the sums of all rows of a line to those of the first, which gives the sums of the channels. */
static void unfold(const plan *p, sums *s)
{
        for (int64_t i = p->channels; p->fold > 1 && i < p->width; i++) {
                s->first[i % p->channels] += s->first[i];
                s->second[i % p->channels] += s->second[i];
        }
}

/* Returns a tile's place in `cells`, which has two values per channel for each chunk: `second` selects which. */
static double *cell_of(const plan *p, double *cells, const tile *t, bool second)
{
        return cells + (t->chunk * 2 + second) * p->channels + t->column;
}

/* Types and macros for each dtype: the stored element, its value, and the element nearest to a value. */
typedef float element_f32;
typedef double element_f64;
typedef uint16_t element_f16, element_bf16;
#define value_f32(e) (e)
#define value_f64(e) (e)
#define value_f16 lg_f32_of_f16
#define value_bf16 lg_f32_of_bf16
#define nearest_f32(v) (v)
#define nearest_f64(v) (v)
#define nearest_f16 lg_f16_of_f32
#define nearest_bf16 lg_bf16_of_f32
#define LG_AND_HALVES
#define LG_BOTH "batch_norm.inc"
#include "both.inc"

/* Calls the instance of `name` for dtype t, such as name_f32. */
#define OF(t, name, ...)                                                                                               \
        ((t) == LG_F32    ? name##_f32(__VA_ARGS__)                                                                    \
         : (t) == LG_F64  ? name##_f64(__VA_ARGS__)                                                                    \
         : (t) == LG_BF16 ? name##_bf16(__VA_ARGS__)                                                                   \
                          : name##_f16(__VA_ARGS__))

/* One call of batch_norm (a) or batch_norm_vjp (v). */
typedef struct job {
        plan p;
        const lg_batch_norm_args *a;
        const lg_batch_norm_vjp_args *v;
        lg_dtype dtype;
        double *cells;
        void *lines;
} job;

static bool workspaces(lg_queue *q, job *j)
{
        j->cells = q->workspace(q, (size_t)(2 * (j->p.chunks + 1) * j->p.channels) * sizeof *j->cells);
        j->lines = q->workspace(q, (size_t)(LINES * j->p.width) * sizeof(double));
        return j->cells && j->lines;
}

/* Returns the number of tiles, which are of about equal size; *ret_grain is the number that is worth a thread. */
static int64_t tiles_of(const plan *p, int64_t *ret_grain)
{
        int64_t tiles = p->chunks * p->blocks;
        *ret_grain = lg_grain(p->rows * p->channels / lg_most(tiles, 1));
        return tiles;
}

/* ---- the batch's statistics ---- */

static void statistics_of_tile(const job *j, int64_t i)
{
        const plan *p = &j->p;
        const tile t = tile_of(p, i);
        sums s;
        OF(j->dtype, add_tile, p, &t, j->a->x, NULL, NULL, &s);
        unfold(p, &s);
        double *mean = cell_of(p, j->cells, &t, false), *squares = cell_of(p, j->cells, &t, true), n = (double)t.rows;
        for (int64_t c = 0; c < lg_least(t.cols, p->channels); c++) {
                mean[c] = s.shift[c] + s.first[c] / n;
                squares[c] = s.second[c] - s.first[c] * s.first[c] / n;
        }
}

LG_EACH(add_up_tiles, statistics_of_tile)

static void normalise_tile(const job *j, int64_t i)
{
        const tile t = tile_of(&j->p, i);
        OF(j->dtype, normalise_tile, &j->p, &t, j->lines, j->a->x, j->a->z, j->a->relu, j->a->y);
}
LG_EACH(normalise_tiles, normalise_tile)

/* Combines the means and squared deviations of all chunks into mean and var (Chan, Golub and LeVeque, 1979). */
static void join_statistics(const plan *p, const double *cells, double *mean, double *var)
{
        int64_t n = 0;
        for (int64_t c = 0; c < p->channels; c++)
                mean[c] = var[c] = 0;
        for (int64_t j = 0; j < p->chunks; j++) {
                int64_t more = lg_least(p->chunk, p->rows - j * p->chunk);
                const double *m = cells + 2 * j * p->channels, *s = m + p->channels;
                double of_new = (double)more / (double)(n + more);
                for (int64_t c = 0; c < p->channels; c++) {
                        double d = m[c] - mean[c];
                        mean[c] += d * of_new;
                        var[c] += s[c] + (n > 0 ? d * d * of_new * (double)n : 0); /* no mean yet if n is 0 */
                }
                n += more;
        }
        for (int64_t c = 0; c < p->channels; c++)
                var[c] = (var[c] > 0 ? var[c] : var[c] * 0) / (double)n;
}

/* Returns element i of a running statistic. */
static double running_value(const lg_running_stat *r, int64_t i)
{
        double value;
        lg_load[LG_COMPUTE_F64][r->dtype](1, &value, lg_byte_at(r->at, i * r->stride * (int64_t)lg_bytes_of(r->dtype)));
        return value;
}

/* Updates a running statistic: r += momentum * (factor * v - r). */
static void move_running(const lg_running_stat *r, int64_t n, const double *v, double momentum, double factor)
{
        for (int64_t i = 0; r->at && i < n; i++) {
                double value = running_value(r, i);
                value += momentum * (factor * v[i] - value);
                lg_store[LG_COMPUTE_F64][r->dtype](1, (char *)r->at + i * r->stride * (int64_t)lg_bytes_of(r->dtype),
                                                   &value);
        }
}

/* Sets mean and var: in training to the batch's, which also update the running ones; else to the running ones. */
static void find_statistics(lg_queue *q, const job *j)
{
        const lg_batch_norm_args *a = j->a;
        int64_t grain, tiles = tiles_of(&j->p, &grain);
        for (int64_t c = 0; !a->trains && c < a->channels; c++) {
                a->mean[c] = running_value(&a->running_mean, c);
                a->var[c] = running_value(&a->running_var, c);
        }
        if (!a->trains)
                return;
        lg_parallel(q, tiles, grain, add_up_tiles, j);
        join_statistics(&j->p, j->cells, a->mean, a->var);
        if (a->rows == 0)
                return;
        double n = (double)a->rows;
        move_running(&a->running_mean, a->channels, a->mean, a->momentum, 1);
        move_running(&a->running_var, a->channels, a->var, a->momentum, n / (n - 1));
}

bool LG_CPU(batch_norm)(lg_queue *q, const lg_batch_norm_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "batch_norm: no kernel for dtype %d", (int)a->dtype);
        if (a->channels == 0)
                return true;
        job j = {.p = plan_of(a->rows, a->channels), .a = a, .dtype = a->dtype};
        int64_t grain, tiles = tiles_of(&j.p, &grain);
        if (!workspaces(q, &j))
                return false;
        find_statistics(q, &j);
        OF(a->dtype, plan_lines, &j.p, a, j.lines);
        lg_parallel(q, tiles, grain, normalise_tiles, &j);
        return true;
}

/* ---- the derivative ---- */

static void sums_of_tile(const job *j, int64_t i)
{
        const plan *p = &j->p;
        const tile t = tile_of(p, i);
        sums s;
        for (int64_t c = 0; c < t.cols; c++)
                s.shift[c] = j->v->mean[(t.column + c) % p->channels];
        OF(j->dtype, add_tile, p, &t, j->v->x, j->v->g, j->v->y, &s);
        unfold(p, &s);
        size_t bytes = (size_t)lg_least(t.cols, p->channels) * sizeof(double);
        memcpy(cell_of(p, j->cells, &t, false), s.first, bytes);
        memcpy(cell_of(p, j->cells, &t, true), s.second, bytes);
}

LG_EACH(add_up_gradients, sums_of_tile)

static void derive_tile(const job *j, int64_t i)
{
        const lg_batch_norm_vjp_args *v = j->v;
        const tile t = tile_of(&j->p, i);
        OF(j->dtype, derive_tile, &j->p, &t, j->lines, v->trains, v->x, v->g, v->y, v->dx, v->dz);
}
LG_EACH(derive_tiles, derive_tile)

/* Adds the sums of all chunks to the first chunk's cells. */
static void join_sums(const plan *p, double *cells)
{
        for (int64_t c = 0; p->chunks == 0 && c < 2 * p->channels; c++)
                cells[c] = 0;
        for (int64_t j = 1; j < p->chunks; j++) {
                for (int64_t c = 0; c < 2 * p->channels; c++)
                        cells[c] += cells[2 * j * p->channels + c];
        }
}

bool LG_CPU(batch_norm_vjp)(lg_queue *q, const lg_batch_norm_vjp_args *v)
{
        if (!lg_is_float(v->dtype))
                return lg_queue_fail(q, LG_BROKEN, "batch_norm_vjp: no kernel for dtype %d", (int)v->dtype);
        if (v->channels == 0)
                return true;
        job j = {.p = plan_of(v->rows, v->channels), .v = v, .dtype = v->dtype};
        int64_t grain, tiles = tiles_of(&j.p, &grain);
        if (!workspaces(q, &j))
                return false;
        lg_parallel(q, tiles, grain, add_up_gradients, &j);
        join_sums(&j.p, j.cells);
        OF(v->dtype, plan_vjp, &j.p, v, j.cells, j.lines);
        if (v->dx || v->dz)
                lg_parallel(q, tiles, grain, derive_tiles, &j);
        return true;
}
