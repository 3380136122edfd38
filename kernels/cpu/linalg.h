/* linalg.h - parts that the factorisations share: panels of columns, triangular systems on them, transposes. */
#ifndef LG_CPU_LINALG_H
#define LG_CPU_LINALG_H

#include "block.h"

/* Columns of a panel, whose rows are contiguous: those of a block of sums. */
#define LG_PANEL_f32 (LG_BLOCK_VECTORS * LG_LANES_f32)
#define LG_PANEL_f64 (LG_BLOCK_VECTORS * LG_LANES_f64)

/* Lower triangular system e x = b with e(i, j) = a[i * a_row + j * a_col], for `cols` columns in panels of n rows
 * behind each other: hold b at first and -x at the end. The diagonal counts as 1 if `unit`. Columns up to a whole
 * vector must be initialised. copy: room for LG_BLOCK_ROWS * (n + 16) elements, or NULL. */
typedef struct lg_panel_system {
        const void *a;
        ptrdiff_t a_row, a_col;
        int64_t n, cols;
        bool unit;
        void *panels, *copy;
} lg_panel_system;
#define lg_solve_panels LG_CPU(solve_panels)
void lg_solve_panels(lg_dtype t, const lg_panel_system *s);

/* Transposes (rows, cols): to[c * to_row + r] = from[r * from_row + c]. */
#define lg_transpose_f32_to LG_CPU(transpose_f32_to)
void lg_transpose_f32_to(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row, int64_t rows,
                         int64_t cols);
#define lg_transpose_f64_to LG_CPU(transpose_f64_to)
void lg_transpose_f64_to(const double *from, ptrdiff_t from_row, double *to, ptrdiff_t to_row, int64_t rows,
                         int64_t cols);

/* Records the first matrix whose entry in failed[count], the row that failed from 1 or 0, is not 0. */
static inline void lg_note_failed(lg_queue *q, int origin, int64_t count, const int64_t *failed)
{
        int64_t i = 0;
        while (i < count && !failed[i])
                i++;
        if (i < count && q->error.code == LG_DEVICE_OK)
                q->error = (lg_device_error){.code = origin, .value = i, .limit = failed[i]};
}

#endif
