/* reduce.c - sums, means, extremes, norms and variances over any dimensions.
 *
 * The input is split into tasks by its shape alone, each task fills cells, and the cells of one result are combined in
 * order: no result depends on the number of threads. The input is read by rows, if the reduced elements of a result are
 * contiguous (or must be gathered), or by columns, if neighbouring results are. */
#include <float.h>
#include <math.h>
#include "cpu.h"

#define CHUNK 1024
#define GROUP 65536 /* maximum reduced elements of one result per task */
#define COLUMNS 256
#define FEW_TASKS 16

typedef enum mode { MODE_SUM, MODE_MAX, MODE_MIN, MODE_ARGMAX, MODE_ARGMIN, MODE_DIFFERENCES, MODE_SQUARES } mode;

static inline bool is_least(mode m)
{
        return m == MODE_MIN || m == MODE_ARGMIN;
}

static inline bool is_index(mode m)
{
        return m == MODE_ARGMAX || m == MODE_ARGMIN;
}

/* Accumulator type for each compute type. */
typedef double acc_f32, acc_f64;
typedef int64_t acc_i64;

typedef struct cell {
        union {
                double sum_f32, sum_f64;
                int64_t sum_i64;
        };
        int64_t at;
} cell;

typedef struct columns {
        union {
                double sum_f32[COLUMNS], sum_f64[COLUMNS];
                int64_t sum_i64[COLUMNS];
        };
        int64_t at[COLUMNS];
} columns;

#define is_nan_f32(x) ((x) != (x))
#define is_nan_f64(x) ((x) != (x))
#define is_nan_i64(x) false
/* Tests whether x is the finite number of greatest magnitude, with either sign. */
#define is_last_f32(x) (fabsf(x) == FLT_MAX)
#define is_last_f64(x) (fabs(x) == DBL_MAX)
#define is_last_i64(x) false
#define LG_AND_INTEGERS
#define LG_BOTH "reduce.inc"
#include "both.inc"

typedef void (*add_chunk_fn)(mode, int64_t, int64_t, const void *, double, cell *);
typedef void (*add_row_fn)(mode, int64_t, bool, int64_t, const void *, const double *, columns *);
typedef void (*join_fn)(mode, cell *, const cell *);
static const add_chunk_fn add_chunk[] = {add_chunk_f32, add_chunk_f64, add_chunk_i64};
static const add_row_fn add_row[] = {add_row_f32, add_row_f64, add_row_i64};
static const join_fn join[] = {join_f32, join_f64, join_i64};

typedef struct job {
        const lg_reduce_args *a;
        lg_walk kept, reduced;
        lg_compute compute;
        size_t size;
        mode mode;
        bool by_columns, native, dense;
        int64_t block;      /* maximum results per task */
        int64_t row_blocks; /* by columns: tasks per innermost kept row */
        int64_t groups;     /* tasks that share the same results, each with other elements */
        bool groups_first;  /* tasks of one group follow each other, as in memory: rows were written by row */
        int64_t group;      /* maximum reduced elements per task */
        double *mean;       /* VAR, STD: mean of each result after the first pass; before, its first element */
        bool to_mean;       /* the first pass of VAR and STD is running */
        cell *cells;        /* [group][result], if there are several groups */
} job;

static const void *to_compute(const job *j, int64_t n, void *compute, const void *raw)
{
        if (j->native)
                return raw;
        lg_load[j->compute][j->a->dtype](n, compute, raw);
        return compute;
}

/* Reduces elements [first, end) of result k to *ret. */
static void reduce_row(const job *j, int64_t k, int64_t first, int64_t end, cell *ret)
{
        LG_ALIGN64 char raw[CHUNK * 8], compute[CHUNK * 8];
        int64_t at[LG_MAX_DIMS];
        const char *base = lg_byte_at(j->a->in, lg_walk_seek(&j->kept, 0, k, at) * (int64_t)j->size);
        double mean = j->mean ? j->mean[k] : 0;
        *ret = (cell){.at = 0};
        for (int64_t r = first; r < end; r += CHUNK) {
                int64_t n = lg_least(CHUNK, end - r);
                const void *from = raw;
                if (j->dense)
                        from = base + r * (int64_t)j->size;
                else
                        lg_walk_gather(&j->reduced, 0, j->size, raw, base, r, n);
                /* Positions count from the group's start, since the chunk at position 0 initialises the extreme. */
                add_chunk[j->compute](j->mode, r - first, n, to_compute(j, n, compute, from), mean, ret);
        }
        ret->at += first;
}

/* Returns how many rows of n contiguous results can be added as one longer row, as they are adjacent in memory. */
static int64_t rows_in_one(const job *j, int64_t n)
{
        const bool joined = j->reduced.ndim == 1 && j->reduced.strides[0][0] == n;
        return j->mode == MODE_SUM && joined ? COLUMNS / n : 1;
}

/* Reduces rows [first, end) of the reduced elements, for n neighbouring results from number k on. */
static void reduce_columns(const job *j, int64_t k, int64_t n, int64_t first, int64_t end, cell *ret)
{
        LG_ALIGN64 char compute[COLUMNS * 8];
        LG_ALIGN64 columns sums;
        int64_t at[LG_MAX_DIMS];
        const int64_t most = rows_in_one(j, n);
        const char *base = lg_byte_at(j->a->in, lg_walk_seek(&j->kept, 0, k, at) * (int64_t)j->size);
        static const double zeros[COLUMNS];
        const double *mean = j->mean ? j->mean + k : zeros;
        memset(&sums, 0, sizeof sums);
        for (int64_t r = first, rows; r < end; r += rows) {
                rows = lg_least(most, end - r);
                const char *raw = base + lg_walk_seek(&j->reduced, 0, r, at) * (int64_t)j->size;
                const void *row = to_compute(j, n * rows, compute, raw);
                add_row[j->compute](j->mode, r, r == first, n * rows, row, mean, &sums);
        }
        for (int64_t c = 0; c < n; c++) {
                ret[c].sum_i64 = sums.sum_i64[c]; /* copies the bits, whichever member of the union is in use */
                ret[c].at = sums.at[c];
                for (int64_t i = 1; i < most; i++)
                        join[j->compute](j->mode, &ret[c], &(cell){.sum_i64 = sums.sum_i64[i * n + c]});
        }
}

/* Returns the final value of MEAN, NORM, VAR or STD, before rounding, from the sum. */
static double finish(const lg_reduce_args *a, double sum, double count)
{
        const double left = count - a->correction;
        switch (a->kind) {
        case LG_REDUCE_MEAN:
                return sum / count;
        case LG_REDUCE_NORM:
                return sqrt(sum);
        case LG_REDUCE_VAR:
                return sum / (left > 0 ? left : 0);
        default: /* LG_REDUCE_STD */
                return sqrt(sum / (left > 0 ? left : 0));
        }
}

/* Writes n finished results from number k on; in the first pass of VAR and STD, updates the means. */
static void emit(const job *j, int64_t k, int64_t n, const cell *from)
{
        LG_ALIGN64 double real[COLUMNS];
        LG_ALIGN64 int64_t integer[COLUMNS];
        const lg_reduce_args *a = j->a;
        const double count = (double)j->reduced.count;
        if (j->to_mean) {
                for (int64_t i = 0; i < n; i++)
                        j->mean[k + i] += from[i].sum_f64 / count;
                return;
        }
        for (int64_t i = 0; i < n; i++) {
                integer[i] = is_index(j->mode) ? from[i].at : from[i].sum_i64;
                real[i] = from[i].sum_f64;
        }
        for (int64_t i = 0; i < n && a->kind >= LG_REDUCE_VAR; i++)
                real[i] = finish(a, real[i], count);
        bool integral = j->compute == LG_COMPUTE_I64 || is_index(j->mode);
        lg_dtype t = is_index(j->mode) || (integral && j->mode == MODE_SUM) ? LG_I64 : a->dtype;
        lg_compute compute = integral ? LG_COMPUTE_I64 : LG_COMPUTE_F64;
        lg_store[compute][t](n, (char *)a->out + k * (int64_t)lg_bytes_of(t),
                             integral ? (void *)integer : (void *)real);
}

static void run_task(const job *j, int64_t task)
{
        cell cells[COLUMNS];
        int64_t g = j->groups_first ? task / j->row_blocks : task % j->groups;
        int64_t b = j->groups_first ? task % j->row_blocks : task / j->groups, count = j->kept.count;
        int64_t first = g * j->group, end = lg_least(first + j->group, j->reduced.count);
        int64_t k = b * j->block, n = lg_least(j->block, count - k);
        if (j->by_columns) {
                int64_t row = j->kept.shape[j->kept.ndim - 1], start = b % j->row_blocks * j->block;
                k = b / j->row_blocks * row + start;
                n = lg_least(j->block, row - start);
                reduce_columns(j, k, n, first, end, cells);
        } else {
                for (int64_t i = 0; i < n; i++)
                        reduce_row(j, k + i, first, end, &cells[i]);
        }
        if (j->groups == 1)
                emit(j, k, n, cells);
        else
                memcpy(j->cells + g * count + k, cells, (size_t)n * sizeof *cells);
}
LG_EACH(run_tasks, run_task)

static void join_groups(const job *j)
{
        cell cells[COLUMNS];
        for (int64_t k = 0; k < j->kept.count; k += COLUMNS) {
                int64_t n = lg_least(COLUMNS, j->kept.count - k);
                memcpy(cells, j->cells + k, (size_t)n * sizeof *cells);
                for (int64_t g = 1; g < j->groups; g++) {
                        for (int64_t i = 0; i < n; i++)
                                join[j->compute](j->mode, &cells[i], j->cells + g * j->kept.count + k + i);
                }
                emit(j, k, n, cells);
        }
}

static void plan(job *j)
{
        int64_t r = j->reduced.count, row = j->kept.shape[j->kept.ndim - 1];
        bool side_by_side = j->kept.strides[0][j->kept.ndim - 1] == 1 && row >= 4;
        j->dense = j->reduced.ndim == 1 && (j->reduced.strides[0][0] == 1 || r <= 1);
        j->by_columns = side_by_side && j->reduced.strides[0][j->reduced.ndim - 1] != 1;
        if (j->by_columns) {
                j->block = COLUMNS;
                j->row_blocks = lg_ceil_div(row, COLUMNS);
                int64_t tasks = j->kept.count / row * j->row_blocks;
                bool few = tasks < FEW_TASKS && r * j->kept.count >= lg__parallel_min;
                j->group = few ? lg_most(128, lg_ceil_div(r, FEW_TASKS)) : lg_most(r, 1);
        } else {
                j->block = lg_least(COLUMNS, lg_most(1, 8192 / lg_most(r, 1)));
                j->row_blocks = 1;
                j->group = GROUP;
        }
        j->groups = lg_most(1, lg_ceil_div(r, j->group));
        j->groups_first = j->by_columns && j->kept.count == row;
}

static bool run_pass(lg_queue *q, job *j)
{
        int64_t tasks = j->groups * lg_ceil_div(j->kept.count, j->block);
        if (j->by_columns)
                tasks = j->groups * j->row_blocks * (j->kept.count / j->kept.shape[j->kept.ndim - 1]);
        if (j->groups > 1 && !j->cells) {
                j->cells = q->workspace(q, (size_t)(j->groups * j->kept.count) * sizeof *j->cells);
                if (!j->cells)
                        return false;
        }
        lg_parallel(q, tasks, lg_grain(j->kept.count * j->reduced.count / tasks), run_tasks, j);
        if (j->groups > 1)
                join_groups(j);
        return true;
}

/* Sets each mean to the first element, to which the first pass adds the mean difference: exact if all are equal. */
static void first_elements(const job *j)
{
        int64_t at[LG_MAX_DIMS];
        for (int64_t k = 0; k < j->kept.count; k++) {
                const char *x = lg_byte_at(j->a->in, lg_walk_seek(&j->kept, 0, k, at) * (int64_t)j->size);
                j->mean[k] = 0;
                if (j->reduced.count > 0)
                        lg_load[LG_COMPUTE_F64][j->a->dtype](1, &j->mean[k], x);
        }
}

bool LG_CPU(reduce)(lg_queue *q, const lg_reduce_args *a)
{
        static const mode modes[] = {
                [LG_REDUCE_SUM] = MODE_SUM,       [LG_REDUCE_MAX] = MODE_MAX,       [LG_REDUCE_MIN] = MODE_MIN,
                [LG_REDUCE_ARGMAX] = MODE_ARGMAX, [LG_REDUCE_ARGMIN] = MODE_ARGMIN, [LG_REDUCE_VAR] = MODE_DIFFERENCES,
                [LG_REDUCE_MEAN] = MODE_SUM,      [LG_REDUCE_NORM] = MODE_SQUARES,  [LG_REDUCE_STD] = MODE_DIFFERENCES};
        job j = {.a = a, .compute = lg_compute_of(a->dtype), .size = lg_bytes_of(a->dtype), .mode = modes[a->kind]};
        lg_walk_init(&j.kept, a->kept_ndim, a->kept, 1, (const int64_t *[]){a->kept_strides}, false);
        lg_walk_init(&j.reduced, a->reduced_ndim, a->reduced, 1, (const int64_t *[]){a->reduced_strides},
                     a->kind != LG_REDUCE_ARGMAX && a->kind != LG_REDUCE_ARGMIN);
        j.native = a->dtype == lg_dtype_of_compute(j.compute);
        if (j.kept.count == 0)
                return true;
        if (j.reduced.count == 0 && (is_index(j.mode) || j.mode == MODE_MAX || j.mode == MODE_MIN))
                return lg_queue_fail(q, LG_BROKEN, "reduce: no elements");
        if (j.compute == LG_COMPUTE_I64 && a->kind >= LG_REDUCE_VAR)
                return lg_queue_fail(q, LG_BROKEN, "reduce: no kind %d of dtype %d", (int)a->kind, (int)a->dtype);
        plan(&j);
        if (j.mode != MODE_DIFFERENCES)
                return run_pass(q, &j);
        j.mean = q->workspace(q, (size_t)j.kept.count * sizeof *j.mean);
        if (!j.mean)
                return false;
        first_elements(&j);
        j.to_mean = true;
        if (!run_pass(q, &j))
                return false;
        j.to_mean = false;
        j.mode = MODE_SQUARES;
        return run_pass(q, &j);
}
