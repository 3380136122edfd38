/* local_response_norm.c - divides each element by a power of a sum of squares over neighbouring channels. Made of
 * other ops; 16-bit floats are computed in f32. */
#include "graph/op.h"

typedef struct arguments {
        int64_t size;
        const lg_local_response_norm_options *options;
} arguments;

static lg_tensor *compose_local_response_norm(const lg__call *call)
{
        const arguments *p = call->attributes;
        const int64_t size = p->size;
        lg_tensor *x = call->in[0], *wide;
        lg_local_response_norm_options o;
        int64_t n, channels, pixels;
        if (!lg__take(call->ctx, "local_response_norm", p->options, &o, sizeof o))
                return NULL;
        if (x->at.shape.ndim < 3)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "local_response_norm: x is %s; it is (N, C, ...)",
                                lg__tensor_text(x).s);
        if (size < 1 || size > INT32_MAX)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "local_response_norm: size %lld; it is above 0 and below 2^31", (long long)size);
        if (lg__shape_numel(x->at.shape) == 0)
                return lg_copy(x, LG_NO_DEVICE);
        lg__split(x->at.shape, 1, &n, &channels, &pixels);
        wide = lg__widened(x);
        /* Images of one column, whose rows are the channels of x and whose channels are its pixels. */
        lg_tensor *y = lg_permute(lg_reshape(lg_square(wide), LG_SHAPE(n, channels, pixels, 1)), LG_DIMS(0, 2, 1, 3));
        y = lg_avg_pool2d(y, 0, .kernels = LG_PAIR(size, 1), .stride = 1, .paddings = LG_PAIR(size / 2, 0));
        y = lg_permute(lg_slice(y, 2, 0, channels), LG_DIMS(0, 2, 1, 3));
        y = lg_add_scalar(lg_mul_scalar(lg_reshape(y, x->at.shape), lg__option(o.alpha, 1e-4)), lg__option(o.k, 1));
        return lg_cast(lg_div(wide, lg_pow_scalar(y, lg__option(o.beta, 0.75))), x->at.dtype);
}

LG__DEFINE(local_response_norm, .autocast = LG__F32, .compose = compose_local_response_norm,
           LG__OPERANDS({"x", LG__FLOAT}))

lg_tensor *lg_local_response_norm_with(lg_tensor *x, int64_t size, const lg_local_response_norm_options *options)
{
        return LG__APPLY(local_response_norm, (&(arguments){size, options}), x);
}
