/* sync_norm.c - batch norm whose statistics are those of the batches of all ranks.
 *
 * Each rank sends its count, mean and sum of squared deviations of every channel; all merge them in the order of ranks
 * (Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances"). All
 * steps are recorded ops, so gradients flow through them and through the exchange.
 */
#include "group/group.h"
#include "nn/nn.h"

/* Sums x over all dimensions but dimension 1 and keeps them, with size 1. */
static lg_tensor *sum_of_channels(lg_tensor *x, int ndim)
{
        lg_dims dims = LG_DIMS(0);
        for (int i = 2; i < ndim; i++)
                dims.dim[dims.count++] = i;
        return lg_sum(x, .dims = dims, .keep_dim = true);
}

/* Returns this rank's statistics, (1, 2 C + 1): mean and sum of squared deviations of each channel, and the number of
 * elements in a channel. */
static lg_tensor *own_statistics(lg_tensor *x, int64_t channels, int64_t count)
{
        const int ndim = x->at.shape.ndim;
        lg_tensor *mean = lg_mul_scalar(sum_of_channels(x, ndim), 1.0 / (double)(count ? count : 1));
        lg_tensor *squares = sum_of_channels(lg_square(lg_sub(x, mean)), ndim);
        lg_tensor *n =
                lg_full(x->ctx, LG_SHAPE(1, 1), (double)count, .dtype = x->at.dtype, .device = x->storage->device->id);
        const lg_shape row = LG_SHAPE(1, channels);
        return lg_cat(LG_LIST(lg_reshape(mean, row), lg_reshape(squares, row), n), 1);
}

typedef struct statistics {
        lg_tensor *mean, *var; /* shape (C); var: sum of squared deviations over the count */
        lg_tensor *count;      /* number of elements in a channel, over all ranks; shape (1) */
} statistics;

static bool merge(lg_tensor *all, int64_t channels, statistics *s)
{
        lg_tensor *n = lg_slice(all, 1, 2 * channels, 2 * channels + 1), *means = lg_slice(all, 1, 0, channels);
        s->count = lg_sum(lg_detach(n), .dims = LG_DIMS(0));
        lg_tensor *share = lg_div(lg_detach(n), lg_maximum_scalar(s->count, 1));
        s->mean = lg_sum(lg_mul(means, share), .dims = LG_DIMS(0));
        lg_tensor *between = lg_mul(lg_square(lg_sub(means, s->mean)), share);
        lg_tensor *within = lg_div(lg_slice(all, 1, channels, 2 * channels), lg_maximum_scalar(s->count, 1));
        return (s->var = lg_sum(lg_add(within, between), .dims = LG_DIMS(0))) != NULL;
}

/* Updates the running statistics: running += momentum (batch - running), with the unbiased variance of the batch. */
static bool update(const statistics *s, lg_tensor *mean, lg_tensor *var, double momentum)
{
        lg_ctx *c = s->mean->ctx;
        const bool was = lg_set_grad_mode(c, false);
        lg_tensor *n = s->count, *unbiased = lg_mul(s->var, lg_div(n, lg_maximum_scalar(lg_add_scalar(n, -1), 1)));
        const bool ok = lg_copy_(mean, lg_lerp_scalar(mean, lg_cast(s->mean, mean->at.dtype), momentum)) &&
                        lg_copy_(var, lg_lerp_scalar(var, lg_cast(unbiased, var->at.dtype), momentum));
        lg_set_grad_mode(c, was);
        return ok;
}

lg_tensor *lg__sync_batch_norm(lg_tensor *x, uint64_t group, lg_tensor *w, lg_tensor *b, lg_batch_norm_options o)
{
        lg_ctx *c = x->ctx;
        const lg_dtype dtype = x->at.dtype, wide = dtype == LG_F64 ? LG_F64 : LG_F32;
        const int64_t channels = x->at.shape.size[1];
        const int64_t count = channels ? lg__shape_numel(x->at.shape) / channels : 0;
        lg_group *g = lg__group_find(c, group, "lg_sync_batch_norm");
        lg_tensor *v = g ? lg_cast(x, wide) : NULL;
        lg_tensor *own = v ? own_statistics(v, channels, count) : NULL;
        lg_tensor *all = own ? lg_all_gather(own, g) : NULL;
        statistics s;
        if (!all || !merge(all, channels, &s))
                return NULL;
        if (o.running_mean && !c->recomputing &&
            !update(&s, o.running_mean, o.running_var, lg__option(o.momentum, 0.1)))
                return NULL;
        lg_shape across = x->at.shape;
        for (int i = 0; i < across.ndim; i++)
                across.size[i] = i == 1 ? channels : 1;
        lg_tensor *scale = lg_rsqrt(lg_add_scalar(s.var, lg__option(o.eps, 1e-5)));
        scale = w ? lg_mul(scale, lg_cast(w, wide)) : scale;
        lg_tensor *y = lg_mul(lg_sub(v, lg_reshape(s.mean, across)), lg_reshape(scale, across));
        y = b ? lg_add(y, lg_reshape(lg_cast(b, wide), across)) : y;
        y = o.residual ? lg_add(y, lg_cast(o.residual, wide)) : y;
        return lg_cast(o.relu ? lg_relu(y) : y, dtype);
}
