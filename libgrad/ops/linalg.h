/* linalg.h - what the ops of linear algebra share: checks of matrices, batches, temporary tensors. Private to ops/. */
#ifndef LG_OPS_LINALG_H
#define LG_OPS_LINALG_H

#include "graph/op.h"

/* Checks that operand i of an application is (..., rows, columns) of f32 or f64, with rows = columns if `square`. Sets
 * an error if not. */
bool lg__takes_matrices(const lg__call *call, int i, bool square);

/* Returns the shape of t without its last `last` dimensions. */
static inline lg_shape lg__batch_of(const lg_tensor *t, int last)
{
        lg_shape s = t->at.shape;
        s.ndim -= last;
        return s;
}

/* Returns the batch s followed by matrices (rows, columns). */
static inline lg_shape lg__matrices_of(lg_shape s, int64_t rows, int64_t columns)
{
        s.size[s.ndim++] = rows;
        s.size[s.ndim++] = columns;
        return s;
}

/* Returns the batch s followed by lines of n elements. */
static inline lg_shape lg__lines_of(lg_shape s, int64_t n)
{
        s.size[s.ndim++] = n;
        return s;
}

/* Returns the size of dimension -1 - from_end of t. */
static inline int64_t lg__side_of(const lg_tensor *t, int from_end)
{
        return t->at.shape.size[t->at.shape.ndim - 1 - from_end];
}

/* Returns t expanded to the batch of `shape`, contiguous and unrecorded: t itself if it has that batch. Its last `last`
 * dimensions stay. */
lg_tensor *lg__in_batch(lg_tensor *t, lg_shape batch, int last);

/* Returns the transpose of matrices, a view. */
static inline lg_tensor *lg__transposed(lg_tensor *x)
{
        return x ? lg_transpose(x, -2, -1) : NULL;
}

/* Solves op(a) x = b for triangular a, with a gradient. */
lg_tensor *lg__triangular(lg_tensor *a, lg_tensor *b, bool upper, bool transposed, bool unit);

/* Solves op(a) x = b by the factors of a, with a gradient by a and b; a pivot of 0 is no error. */
lg_tensor *lg__solve_system(lg_tensor *a, lg_tensor *b, lg_tensor *lu, lg_tensor *permutation, bool transposed);

/* Moves row i of matrices x to row permutation[i]. x may be NULL. */
lg_tensor *lg__unpermuted(lg_tensor *x, lg_tensor *permutation);

/* Returns identity matrices like a, unrecorded. */
lg_tensor *lg__identity_like(const lg_tensor *a);

/* Returns which of the magnitudes s along the last dimension, of input 0, count: those above .atol and above .rtol
 * times the greatest. Sets an error if these make no sense (pinv.c). */
lg_tensor *lg__above(const lg__call *call, lg_tensor *s, const lg_pinv_options *o);

/* Returns whether a derivative by a may be needed. */
static inline bool lg__is_recorded(const lg_tensor *a)
{
        return lg_requires_grad(a) && lg_grad_mode(lg_ctx_of(a));
}

/* Stores results in *ret[i], and releases those whose ret[i] is NULL. */
static inline void lg__give_results(int count, lg_tensor *const *out, lg_tensor **const *ret)
{
        for (int i = 0; i < count; i++)
                if (ret[i])
                        *ret[i] = out[i];
                else
                        lg__tensor_release(out[i]);
}

#endif
