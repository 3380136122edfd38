/* triangular.c - triangular systems of equations.
 *
 * Right sides are copied to panels of columns, in which a block of rows is a product with the rows before it, and then
 * a small system in registers. Upper systems are solved from the last row on, with negative strides. */
#include "linalg.h"

#define PAGE 4096 /* bytes; rows at this distance share few sets of the L1 cache */
#define GROUP 8   /* panels that are solved together, so that each row of a is copied once for all */

typedef struct job {
        const lg_triangular_args *a;
        int64_t groups, copy, room; /* groups of panels of a matrix; bytes of a group, and with a copy of some rows */
        char *scratch;
} job;

/* Some columns of the right side of one matrix. */
typedef struct columns {
        int64_t n, k, cols; /* rows, columns in memory, columns of this part */
        bool back;          /* solved from the last row to the first */
} columns;

#define LG_DTYPE (sizeof(LG_T) == sizeof(double) ? LG_F64 : LG_F32)
#define LG_BOTH "triangular.inc"
#include "both.inc"

void lg_solve_panels(lg_dtype t, const lg_panel_system *s)
{
        if (t == LG_F64)
                solve_panels_f64(s);
        else
                solve_panels_f32(s);
}

void lg_transpose_f32_to(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row, int64_t rows, int64_t cols)
{
        transpose_to_f32(from, from_row, to, to_row, rows, cols);
}

void lg_transpose_f64_to(const double *from, ptrdiff_t from_row, double *to, ptrdiff_t to_row, int64_t rows,
                         int64_t cols)
{
        transpose_to_f64(from, from_row, to, to_row, rows, cols);
}

static void solve_items(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        char *scratch = j->scratch + thread * j->room;
        for (int64_t i = first; i < end; i++)
                if (j->a->dtype == LG_F64)
                        solve_columns_f64(j, i, scratch);
                else
                        solve_columns_f32(j, i, scratch);
}

bool LG_CPU(triangular)(lg_queue *q, const lg_triangular_args *a)
{
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), width = LG_VECTOR * LG_BLOCK_VECTORS / lg_most(size, 1);
        const int64_t panels = width ? lg_ceil_div(a->k, width) : 0;
        job j = {.a = a, .groups = lg_ceil_div(panels, GROUP)};
        if (a->dtype != LG_F32 && a->dtype != LG_F64)
                return lg_queue_fail(q, LG_BROKEN, "triangular: no kernel for dtype %d", (int)a->dtype);
        if (a->count == 0 || a->n == 0 || a->k == 0)
                return true;
        j.copy = a->n * lg_least(panels, GROUP) * width * size;
        j.room = j.copy + (a->n * size % PAGE ? 0 : LG_BLOCK_ROWS * (a->n + 16) * size);
        const int64_t items = a->count * j.groups;
        if (!(j.scratch = q->workspace(q, (size_t)(lg_least(q->threads, items) * j.room))))
                return false;
        lg_parallel(q, items, lg_grain(a->n * (a->n / 2 + 16) * lg_least(a->k, GROUP * width) / 16), solve_items, &j);
        return true;
}
