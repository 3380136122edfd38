/* products.h - products and distances of tensors: Einstein summation, tensordot, outer, kron, cross, cdist and others.
 *
 * Products of matrices and vectors (PyTorch's mm, mv, bmm and dot) are lg_matmul(). Unless a comment says otherwise,
 * dtypes are promoted, gradients of any order flow to all operands, and integers are exact.
 *
 *     lg_tensor *scores = lg_einsum("bhid,bhjd->bhij", LG_LIST(x, y));
 */
#ifndef LG_PRODUCTS_H
#define LG_PRODUCTS_H

#include "grad/base.h"

LG_BEGIN

/* ---- Einstein summation ---- */

/* Computes a product of tensors, summed over labels, as PyTorch's einsum does. The equation has a term for each
 * operand, separated by commas, and after "->" the term of the result. A term has a letter for each dimension, and
 * "..." stands for any number of dimensions, which broadcast. Letters that the result lacks are summed over; a letter
 * that is twice in a term takes the diagonal; a size of 1 broadcasts. Without "->" the result has the dimensions of the
 * ellipsis and then the letters that are used once, in alphabetical order with capitals first. Several operands are
 * multiplied pair by pair in an order that keeps intermediate results small, each pair by one matrix product, without a
 * copy where strides allow. The result may be a view of a single operand. A bad equation is LG_ERR_ARGUMENT with the
 * position.
 * Example: lg_einsum("bhid,bhjd->bhij", LG_LIST(x, y)) */
LG_API LG_NEW lg_tensor *lg_einsum(const char *equation, lg_list_in operands);

/* ---- products ---- */

typedef struct lg_tensordot_options {
        LG_OPTIONS_HEAD
        int64_t count LG_DEFAULT; /* the last dimensions of a meet as many first ones of b; default 2; LG_ZERO_INT: 0 */
        lg_dims dims_a LG_DEFAULT; /* dimensions of a instead, in the order in which they meet those of .dims_b */
        lg_dims dims_b LG_DEFAULT; /* dimensions of b, as many as .dims_a */
} lg_tensordot_options;
/* Computes the product of a and b, summed over pairs of dimensions. The result has the other dimensions of a, then
 * those of b. The sizes of a pair are equal, or one of them is 1.
 * Example: lg_tensordot(x, y, .dims_a = LG_DIMS(0, 2), .dims_b = LG_DIMS(1, 0)) */
#define lg_tensordot(...) LG_CALL2(lg_tensordot_with, lg_tensordot_options, lg_tensordot_takes_a_b, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_tensordot_with(lg_tensor *a, lg_tensor *b, const lg_tensordot_options *options);

/* Computes y[i][j] = a[i] b[j] of vectors a (n) and b (m): (n, m). */
LG_API LG_NEW lg_tensor *lg_outer(lg_tensor *a, lg_tensor *b);

/* Computes the Kronecker product: blocks a[i][j] b. The operands have at most 4 dimensions each; the one with fewer
 * gets dimensions of size 1 in front. */
LG_API LG_NEW lg_tensor *lg_kron(lg_tensor *a, lg_tensor *b);

/* Computes the cross product of vectors of 3 elements along dimension dim; other dimensions broadcast. The default of
 * PyTorch's linalg.cross is -1. */
LG_API LG_NEW lg_tensor *lg_cross(lg_tensor *a, lg_tensor *b, int dim);

/* Options of lg_addmm(), lg_addmv() and lg_baddbmm(). */
typedef struct lg_addmm_options {
        LG_OPTIONS_HEAD
        double beta LG_DEFAULT;  /* factor of x; default 1; LG_ZERO: x is not used, not even its NaN */
        double alpha LG_DEFAULT; /* factor of the product; default 1; LG_ZERO for 0 */
} lg_addmm_options;
/* Computes beta x + alpha a b for matrices a and b (addmm), a matrix a and a vector b (addmv), or batches of matrices
 * with equal first dimensions (baddbmm). x broadcasts to the product. For integers, beta and alpha are whole.
 * Examples: lg_addmm(b, x, w, .alpha = 0.5), lg_addmv(b, w, x), lg_baddbmm(b, x, w, .beta = LG_ZERO) */
#define lg_addmm(...) LG_CALL3(lg_addmm_with, lg_addmm_options, lg_addmm_takes_x_a_b, V, V, V, __VA_ARGS__)
#define lg_addmv(...) LG_CALL3(lg_addmv_with, lg_addmm_options, lg_addmv_takes_x_a_b, V, V, V, __VA_ARGS__)
#define lg_baddbmm(...) LG_CALL3(lg_baddbmm_with, lg_addmm_options, lg_baddbmm_takes_x_a_b, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_addmm_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_addmm_options *options);
LG_API LG_NEW lg_tensor *lg_addmv_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_addmm_options *options);
LG_API LG_NEW lg_tensor *lg_baddbmm_with(lg_tensor *x, lg_tensor *a, lg_tensor *b, const lg_addmm_options *options);

/* Computes y[..., o] = sum of x1[..., i] w[o, i, j] x2[..., j] over i and j, plus b[o] (PyTorch's F.bilinear): x1 (...,
 * in1), x2 (..., in2), w (out, in1, in2), b (out) or NULL, of float dtypes. */
LG_API LG_NEW lg_tensor *lg_bilinear(lg_tensor *x1, lg_tensor *x2, lg_tensor *w, lg_tensor *b);

/* ---- distances ----
 *
 * A distance is the norm of order p of a difference, as lg_norm() computes it: tensors have float dtypes, and where the
 * distance is 0, its gradient is 0.
 */

/* Options of lg_distance(), lg_cdist() and lg_pdist(). */
typedef struct lg_distance_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT; /* the order, at least 0, or LG_INFINITY; default 2; LG_ZERO: 0 */
} lg_distance_options;
/* Computes the distance of two tensors, which broadcast, as a 0-d tensor.
 * Example: lg_distance(x, y, .p = 1) */
#define lg_distance(...) LG_CALL2(lg_distance_with, lg_distance_options, lg_distance_takes_a_b, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_distance_with(lg_tensor *a, lg_tensor *b, const lg_distance_options *options);

/* Computes the distances of all rows of a (..., P, M) from all rows of b (..., R, M): (..., P, R). The dimensions
 * before broadcast. Where p is 2 and P or R is above 25, distances come from a matrix product, which is fast and takes
 * little memory, but loses digits of distances much smaller than the rows, as PyTorch's default does. Otherwise memory
 * is taken for all P R M differences.
 * Example: lg_cdist(x, y, .p = LG_INFINITY) */
#define lg_cdist(...) LG_CALL2(lg_cdist_with, lg_distance_options, lg_cdist_takes_a_b, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cdist_with(lg_tensor *a, lg_tensor *b, const lg_distance_options *options);

/* Computes the distances of the pairs of rows i < j of x (N, M), in the order (0, 1), (0, 2), ...: (N (N - 1) / 2).
 * Example: lg_pdist(x) */
#define lg_pdist(...) LG_CALL1(lg_pdist_with, lg_distance_options, lg_pdist_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_pdist_with(lg_tensor *x, const lg_distance_options *options);

LG_END_C
#endif
