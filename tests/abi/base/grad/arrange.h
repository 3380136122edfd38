/* arrange.h - arranging elements: diagonals, grids, combinations, repetitions, and other forms of views.
 *
 * Unless their comments say otherwise, these functions take tensors of every dtype, the result has x's dtype and
 * device, and gradients of any order flow to x. Where functions store tensors in an array `ret` of the caller, it has
 * room for `room` tensors, and they return the number that they stored; on failure they return 0 and leave ret as it
 * was.
 */
#ifndef LG_ARRANGE_H
#define LG_ARRANGE_H

#include "grad/base.h"

LG_BEGIN

/* ---- diagonals ----
 *
 * The diagonal of offset 0 is the main one; those of positive offsets are above it, those of negative ones below.
 */

/* Options of lg_diag() and lg_diagflat(). */
typedef struct lg_diag_options {
        LG_OPTIONS_HEAD
        int64_t offset LG_DEFAULT; /* which diagonal; default 0 */
} lg_diag_options;
/* Returns the diagonal of a matrix as a vector, or a square matrix with a vector as its diagonal and zeros elsewhere; a
 * copy (PyTorch's diag). lg_diagflat() does the latter with all elements of x.
 * Examples: lg_diag(x, .offset = -1), lg_diagflat(x) */
#define lg_diag(...) LG_CALL1(lg_diag_with, lg_diag_options, lg_diag_takes_x, V, __VA_ARGS__)
#define lg_diagflat(...) LG_CALL1(lg_diagflat_with, lg_diag_options, lg_diagflat_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_diag_with(lg_tensor *x, const lg_diag_options *options);
LG_API LG_NEW lg_tensor *lg_diagflat_with(lg_tensor *x, const lg_diag_options *options);

typedef struct lg_diagonal_options {
        LG_OPTIONS_HEAD
        int64_t offset LG_DEFAULT; /* which diagonal; default 0 */
        int64_t dim1 LG_DEFAULT;   /* rows of the matrices; default 0; negative: from the end */
        int64_t dim2 LG_DEFAULT;   /* columns of the matrices; default 1; LG_ZERO_INT for 0 */
} lg_diagonal_options;
/* Returns the diagonals of the matrices in two dimensions of x, which are removed, as the last dimension: a view.
 * Example: lg_diagonal(x, .dim1 = -2, .dim2 = -1) */
#define lg_diagonal(...) LG_CALL1(lg_diagonal_with, lg_diagonal_options, lg_diagonal_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_diagonal_with(lg_tensor *x, const lg_diagonal_options *options);

typedef struct lg_diag_embed_options {
        LG_OPTIONS_HEAD
        int64_t offset LG_DEFAULT; /* which diagonal; default 0 */
        int64_t dim1 LG_DEFAULT;   /* rows of the matrices in the result; default -2; LG_ZERO_INT for 0 */
        int64_t dim2 LG_DEFAULT;   /* columns of the matrices in the result; default -1; LG_ZERO_INT for 0 */
} lg_diag_embed_options;
/* Returns square matrices in dimensions .dim1 and .dim2 of the result, which have the last dimension of x as their
 * diagonals and zeros elsewhere.
 * Example: lg_diag_embed(x, .offset = 1) */
#define lg_diag_embed(...) LG_CALL1(lg_diag_embed_with, lg_diag_embed_options, lg_diag_embed_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_diag_embed_with(lg_tensor *x, const lg_diag_embed_options *options);

/* Computes the sum of the main diagonal of a matrix; integers and bool give i64. */
LG_API LG_NEW lg_tensor *lg_trace(lg_tensor *x);

/* Returns a matrix with these matrices along its diagonal and zeros elsewhere. A vector counts as one row and a 0-d
 * tensor as one element; dtypes and lists are as for lg_cat().
 * Example: lg_block_diag(LG_LIST(x, y)) */
LG_API LG_NEW lg_tensor *lg_block_diag(lg_list_in list);

/* ---- indices of triangles ---- */

/* Options of lg_tril_indices() and lg_triu_indices(). */
typedef struct lg_triangle_indices_options {
        LG_OPTIONS_HEAD
        int64_t offset LG_DEFAULT;   /* which diagonal ends the triangle; default 0 */
        lg_device device LG_DEFAULT; /* default: the context's default device */
} lg_triangle_indices_options;
/* Returns the rows and columns of the elements on and below (tril), or on and above (triu), a diagonal of a matrix of
 * this size, row by row: i64 (2, n). Waits for the device as lg_masked_select() does.
 * Examples: lg_tril_indices(c, 3, 3, .offset = -1), lg_triu_indices(c, 3, 4) */
#define lg_tril_indices(...)                                                                                           \
        LG_CALL3(lg_tril_indices_with, lg_triangle_indices_options, lg_tril_indices_takes_c_rows_columns, V, I, I,     \
                 __VA_ARGS__)
#define lg_triu_indices(...)                                                                                           \
        LG_CALL3(lg_triu_indices_with, lg_triangle_indices_options, lg_triu_indices_takes_c_rows_columns, V, I, I,     \
                 __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_tril_indices_with(lg_ctx *c, int64_t rows, int64_t columns,
                                              const lg_triangle_indices_options *options);
LG_API LG_NEW lg_tensor *lg_triu_indices_with(lg_ctx *c, int64_t rows, int64_t columns,
                                              const lg_triangle_indices_options *options);

/* ---- grids, combinations, ranges ---- */

typedef struct lg_meshgrid_options {
        LG_OPTIONS_HEAD
        bool xy LG_DEFAULT; /* dimension 0 is that of the second tensor, as in NumPy; default false, "ij" */
} lg_meshgrid_options;
/* Expands vectors to a grid: stores for each a view whose dimension i is that of vector i, and which repeats the vector
 * along the others. The vectors have one dtype; a 0-d tensor counts as one element. A list of NULLs gives 0.
 * Example: lg_meshgrid(LG_LIST(x, y), grid, 2, .xy = true) */
#define lg_meshgrid(...)                                                                                               \
        LG_CALL3(lg_meshgrid_with, lg_meshgrid_options, lg_meshgrid_takes_list_ret_room, V, V, I, __VA_ARGS__)
LG_API int64_t lg_meshgrid_with(lg_list_in list, lg_tensor **ret, int64_t room, const lg_meshgrid_options *options);

/* Expands tensors to the shape to which all of them broadcast, and stores the views. A list of NULLs gives 0. */
LG_API int64_t lg_broadcast_tensors(lg_list_in list, lg_tensor **ret, int64_t room);

/* Returns all combinations of an element of each vector as rows, the last vector varying fastest: (n, vectors), or for
 * one vector a view of it. Dtypes and lists are as for lg_cat(). */
LG_API LG_NEW lg_tensor *lg_cartesian_prod(lg_list_in list);

typedef struct lg_combinations_options {
        LG_OPTIONS_HEAD
        bool with_replacement LG_DEFAULT; /* an element may be taken several times; default false */
} lg_combinations_options;
/* Returns the combinations of r elements of a vector as rows, in lexicographic order of their indices: (n, r).
 * Example: lg_combinations(x, 2, .with_replacement = true) */
#define lg_combinations(...)                                                                                           \
        LG_CALL2(lg_combinations_with, lg_combinations_options, lg_combinations_takes_x_r, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_combinations_with(lg_tensor *x, int64_t r, const lg_combinations_options *options);

typedef struct lg_logspace_options {
        LG_OPTIONS_HEAD
        double base LG_DEFAULT;        /* default 10 */
        lg_dtype dtype LG_DEFAULT;     /* a float dtype; default LG_F32 */
        lg_device device LG_DEFAULT;   /* default: the context's default device */
        bool requires_grad LG_DEFAULT; /* gives the result a gradient; default false */
} lg_logspace_options;
/* Returns base^start ... base^stop: the powers of the numbers that lg_linspace() gives, computed in f64 and rounded.
 * Example: lg_logspace(c, -3, 0, 4, .base = 2) */
#define lg_logspace(...)                                                                                               \
        LG_CALL4(lg_logspace_with, lg_logspace_options, lg_logspace_takes_c_start_stop_count, V, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_logspace_with(lg_ctx *c, double start, double stop, int64_t count,
                                          const lg_logspace_options *options);

/* ---- repetitions ---- */

/* Repeats each slice of x along dim a number of times: a b gives a a b b for 2 (PyTorch's repeat_interleave). A 0-d
 * tensor counts as one element. lg_flatten(x) gives PyTorch's default. */
LG_API LG_NEW lg_tensor *lg_repeat_interleave(lg_tensor *x, int64_t times, int dim);

/* Repeats slice i of x along dim counts[i] times; counts is i64, with an element for each slice or one for all. Waits
 * for the device, because the counts give the size of the result. */
LG_API LG_NEW lg_tensor *lg_repeat_interleave_by(lg_tensor *x, lg_tensor *counts, int dim);

/* Repeats x as lg_repeat() does; times may have fewer dimensions than x, and those in front are then not repeated.
 * Example: lg_tile(x, LG_SHAPE(2)) */
LG_API LG_NEW lg_tensor *lg_tile(lg_tensor *x, lg_shape times);

/* ---- moving dimensions and choosing ranges ---- */

/* Moves dimension from.dim[i] to to.dim[i] for each i; the other dimensions keep their order. The result is a view.
 * Example: lg_movedim(x, LG_DIMS(0, 1), LG_DIMS(-1, 0)) */
LG_API LG_NEW lg_tensor *lg_movedim(lg_tensor *x, lg_dims from, lg_dims to);

/* Rotates x by k times 90 degrees in the plane of two dimensions, from the first towards the second; negative k rotate
 * back. The result is a view. PyTorch's default is lg_rot90(x, 1, LG_DIMS(0, 1)). */
LG_API LG_NEW lg_tensor *lg_rot90(lg_tensor *x, int64_t k, lg_dims dims);

/* Reverses the columns (fliplr) or the rows (flipud) of x, its dimension 1 or 0. The result is a view. */
LG_API LG_NEW lg_tensor *lg_fliplr(lg_tensor *x);
LG_API LG_NEW lg_tensor *lg_flipud(lg_tensor *x);

/* Returns the view of x whose dimension dim has the indices start ... start + length - 1, which must exist. A negative
 * start counts from the end. */
LG_API LG_NEW lg_tensor *lg_narrow(lg_tensor *x, int dim, int64_t start, int64_t length);

/* Replaces dimension dim by dimensions of these sizes, one of which may be -1. The result is a view where strides can
 * express it, which is always so for contiguous x.
 * Example: lg_unflatten(x, 1, LG_SHAPE(4, -1)) */
LG_API LG_NEW lg_tensor *lg_unflatten(lg_tensor *x, int dim, lg_shape sizes);

/* Returns x as a view with at least that many dimensions: those that are missing have size 1 and come in front, except
 * that lg_atleast_3d() of two dimensions appends one and of one dimension adds one on each side. */
LG_API LG_NEW lg_tensor *lg_atleast_1d(lg_tensor *x);
LG_API LG_NEW lg_tensor *lg_atleast_2d(lg_tensor *x);
LG_API LG_NEW lg_tensor *lg_atleast_3d(lg_tensor *x);

LG_END_C
#endif
