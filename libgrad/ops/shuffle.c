/* shuffle.c - pixel_shuffle, pixel_unshuffle and channel_shuffle: permutations of the elements of images. */
#include "graph/op.h"

/* Sets *ret to the shape of image x (..., C, H, W) as (N, C, H, W). Returns false and sets an error for fewer than 3
 * dimensions or a factor below 1. */
static bool as_images(const lg__call *call, int64_t factor, lg_shape *ret)
{
        const lg_shape s = call->in[0]->at.shape;
        if (s.ndim < 3)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it is (..., C, H, W)", call->op->name,
                                lg__tensor_text(call->in[0]).s);
        if (factor < 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: factor %lld is below 1", call->op->name,
                                (long long)factor);
        *ret = LG_SHAPE(1, s.size[s.ndim - 3], s.size[s.ndim - 2], s.size[s.ndim - 1]);
        for (int i = 0; i < s.ndim - 3; i++)
                ret->size[0] *= s.size[i];
        return true;
}

/* Returns x reshaped, permuted and reshaped to its own shape with the last three sizes replaced by those of `to`. */
static lg_tensor *permuted(const lg__call *call, lg_shape from, lg_dims order, const int64_t to[3])
{
        lg_tensor *x = call->in[0];
        lg_shape s = x->at.shape;
        for (int i = 0; i < 3; i++)
                s.size[s.ndim - 3 + i] = to[i];
        if (!lg__shape_valid(call->ctx, call->op->name, s))
                return NULL;
        return lg__made(lg_reshape(lg_permute(lg_reshape(x, from), order), s), x);
}

static lg_tensor *compose_pixel_shuffle(const lg__call *call)
{
        const int64_t r = *(const int64_t *)call->attributes;
        lg_shape s;
        int64_t to[3];
        if (!as_images(call, r, &s))
                return NULL;
        const int64_t *size = s.size;
        if (size[1] % r || size[1] / r % r)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "pixel_shuffle: x is %s; factor %lld squared must divide %lld",
                                lg__tensor_text(call->in[0]).s, (long long)r, (long long)size[1]);
        to[0] = size[1] / r / r;
        if (__builtin_mul_overflow(size[2], r, &to[1]) || __builtin_mul_overflow(size[3], r, &to[2]))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "pixel_shuffle: a side of the result would exceed 2^63");
        return permuted(call, LG_SHAPE(size[0], to[0], r, r, size[2], size[3]), LG_DIMS(0, 1, 4, 2, 5, 3), to);
}

static lg_tensor *compose_pixel_unshuffle(const lg__call *call)
{
        const int64_t r = *(const int64_t *)call->attributes;
        lg_shape s;
        int64_t to[3];
        if (!as_images(call, r, &s))
                return NULL;
        const int64_t *size = s.size;
        if (size[2] % r || size[3] % r)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "pixel_unshuffle: x is %s; factor %lld must divide both sides",
                                lg__tensor_text(call->in[0]).s, (long long)r);
        to[1] = size[2] / r;
        to[2] = size[3] / r;
        if (__builtin_mul_overflow(size[1], r, &to[0]) || __builtin_mul_overflow(to[0], r, &to[0]))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "pixel_unshuffle: the channels would exceed 2^63");
        return permuted(call, LG_SHAPE(size[0], size[1], to[1], r, to[2], r), LG_DIMS(0, 1, 3, 5, 2, 4), to);
}

static lg_tensor *compose_channel_shuffle(const lg__call *call)
{
        const int64_t groups = *(const int64_t *)call->attributes;
        lg_tensor *x = call->in[0];
        const lg_shape s = x->at.shape;
        int64_t n, channels, pixels;
        if (s.ndim < 3)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "channel_shuffle: x is %s; it is (N, C, ...)",
                                lg__tensor_text(x).s);
        lg__split(s, 1, &n, &channels, &pixels);
        if (groups < 1 || channels % groups)
                return lg__fail(call->ctx, groups < 1 ? LG_ERR_ARGUMENT : LG_ERR_SHAPE,
                                "channel_shuffle: %lld groups of %lld channels; a number of at least 1 that divides "
                                "them",
                                (long long)groups, (long long)channels);
        lg_tensor *y = lg_reshape(x, LG_SHAPE(n, groups, channels / groups, pixels));
        return lg__made(lg_reshape(lg_permute(y, LG_DIMS(0, 2, 1, 3)), s), x);
}

#define SHUFFLE(of)                                                                                                    \
        LG__COMPOSITE(of, {"x"})                                                                                       \
        lg_tensor *lg_##of(lg_tensor *x, int64_t factor)                                                               \
        {                                                                                                              \
                return LG__APPLY(of, &factor, x);                                                                      \
        }
SHUFFLE(pixel_shuffle)
SHUFFLE(pixel_unshuffle)
SHUFFLE(channel_shuffle)
