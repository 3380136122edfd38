/* gather.h - gathering and scattering with the origin of errors as an argument, and indices. Private to libgrad/ops/.
 */
#ifndef LG_OPS_GATHER_H
#define LG_OPS_GATHER_H

#include "graph/op.h"

/* Variants of the public functions; an index out of range is reported as an error of the function `origin`. */
lg_tensor *lg__gather(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);
lg_tensor *lg__scatter_add(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin);
lg_tensor *lg__index_select(lg_tensor *x, int dim, lg_tensor *index, lg__origin origin);
lg_tensor *lg__scatter(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, lg__origin origin);
/* Writes src to the rows of x that the index (n) names, in place and unrecorded; x may be changed so. */
bool lg__scatter_rows(lg_tensor *x, lg_tensor *index, lg_tensor *src, lg__origin origin);
/* Scales the rows of weight (rows, features) that the index (n) names and that are longer down to the norm max_norm, in
 * place and unrecorded. Returns false and sets an error if the options or weight do not fit. */
bool lg__limit_rows(lg_tensor *weight, lg_tensor *index, double max_norm, double norm_type, const char *op);
/* Returns x with each element replaced by the maximum or minimum of itself and those that the index sends to it. */
lg_tensor *lg__scatter_extreme(lg_tensor *x, int dim, lg_tensor *index, lg_tensor *src, bool max, lg__origin origin);
/* Checks that src, unless it is NULL, and the index fit x as lg_scatter() demands, and src's dtype, not bool if
 * `numeric`. Returns the dimension as lg__line_dim() does, or -1 with an error that begins with `op`. */
int lg__scatter_dim(const char *op, const lg_tensor *x, int dim, const lg_tensor *index, const lg_tensor *src,
                    bool numeric);
/* Returns a 1-d index expanded to the shape of the slices of x along *dim that it selects, and sets *dim to its value
 * from 0 on. src, if given, must have that shape. Returns NULL and sets an error that begins with `op`. */
lg_tensor *lg__expanded_index(const char *op, const lg_tensor *x, int *dim, lg_tensor *index, const lg_tensor *src);
/* Returns the index with n added to the elements from -n to -1. */
lg_tensor *lg__wrapped(lg_tensor *index, int64_t n);
/* Returns t without its elements beyond this shape, which is nowhere larger. */
lg_tensor *lg__cut(lg_tensor *t, lg_shape shape);
/* Returns x as one dimension; NULL for NULL. */
lg_tensor *lg__flat(lg_tensor *x);
/* Returns the numbers 0 ... n - 1 on the device of `like`. */
lg_tensor *lg__numbers(const lg_tensor *like, int64_t n);
/* Returns the coordinates (n, ndim) of the n elements of x that are not 0. Waits for the device. */
lg_tensor *lg__places_of(lg_tensor *x);
/* Sets *ret to the row of weight, (rows, ...), that the option padding_idx means. Returns false and sets an error if it
 * is given and there is no such row. */
bool lg__padding_row(const lg_tensor *weight, const char *op, int64_t padding_idx, int64_t *ret);

#endif
