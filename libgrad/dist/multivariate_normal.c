/* multivariate_normal.c - normal distributions of vectors, by the mean and the lower triangular factor of the
 * covariance, p[0] (..., n) and p[1] (..., n, n). */
#include "dist_kinds.h"
#include "words.h"

/* Solves l y = x for vectors x (..., n) and factors l, whose batches broadcast. */
static lg_tensor *whitened(lg_tensor *l, lg_tensor *x)
{
        if (!l || !x)
                return NULL;
        if (l->at.shape.ndim > 2)
                return lg_squeeze(lg_triangular_solve(l, lg_unsqueeze(x, -1)), LG_DIMS(-1));
        const lg_shape s = x->at.shape;
        const int64_t n = l->at.shape.size[0];
        lg_tensor *rows = lg_reshape(x, LG_SHAPE(n ? lg__shape_numel(s) / n : 0, n));
        rows = rows ? lg_triangular_solve(l, rows, .transposed = true, .right = true) : NULL;
        return rows ? lg_reshape(rows, s) : NULL;
}

static lg_tensor *half_log_det(lg_tensor *l)
{
        return TOTAL(LOG(lg_diagonal(l, .dim1 = -2, .dim2 = -1)));
}

/* Returns the sum of squares of whitened vectors. */
static lg_tensor *distance(lg_tensor *l, lg_tensor *x)
{
        lg_tensor *y = whitened(l, x);
        return y ? TOTAL(SQUARE(y)) : NULL;
}

lg_tensor *lg__multivariate_normal_sample(const lg_dist *d, lg_shape s)
{
        lg_tensor *loc = d->p[0], *l = d->p[1];
        lg_tensor *z = lg_normal(loc->ctx, 0, 1, s, .dtype = loc->at.dtype, .device = loc->storage->device->id);
        if (l->at.shape.ndim == 2)
                return lg_add(loc, lg_matmul(z, lg_transpose(l, 0, 1)));
        return lg_add(loc, lg_squeeze(lg_matmul(l, lg_unsqueeze(z, -1)), LG_DIMS(-1)));
}

lg_tensor *lg__multivariate_normal_log_prob(const lg_dist *d, lg_tensor *x)
{
        lg_tensor *far = distance(d->p[1], lg_sub(x, d->p[0]));
        const double n = (double)d->p[0]->at.shape.size[d->p[0]->at.shape.ndim - 1];
        return lg_neg(lg_add(lg_mul_scalar(lg_add_scalar(far, n * log(2 * LG_PI)), 0.5), half_log_det(d->p[1])));
}

lg_tensor *lg__multivariate_normal_entropy(const lg_dist *d)
{
        const double n = (double)d->p[0]->at.shape.size[d->p[0]->at.shape.ndim - 1];
        return lg_add_scalar(half_log_det(d->p[1]), n * LG_NORMAL_ENTROPY);
}

lg_tensor *lg__multivariate_normal_kl(const lg_dist *p, const lg_dist *q)
{
        lg_ctx *c = p->p[0]->ctx;
        lg_tensor *a = p->p[1], *b = q->p[1];
        const int64_t n = a->at.shape.size[a->at.shape.ndim - 1];
        if (n != b->at.shape.size[b->at.shape.ndim - 1])
                return lg__fail(c, LG_ERR_SHAPE, "lg_dist_kl: p has vectors of %lld numbers, and q of %lld",
                                (long long)n, (long long)b->at.shape.size[b->at.shape.ndim - 1]);
        lg_tensor *spread = TOTAL(TOTAL(SQUARE(lg_triangular_solve(b, a))));
        lg_tensor *far = distance(b, lg_sub(q->p[0], p->p[0]));
        lg_tensor *both = lg_mul_scalar(lg_sub_scalar(lg_add(spread, far), (double)n), 0.5);
        return lg_add(lg_sub(half_log_det(b), half_log_det(a)), both);
}
