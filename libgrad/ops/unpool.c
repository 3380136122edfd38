/* unpool.c - max_unpool1d, 2d and 3d: values at the indices that max pooling stored, zeros elsewhere. Made of scatter.
 */
#include "gather.h"
#include "images.h"

/* Union of the options of all three functions. */
typedef struct unpool_options {
        int64_t stride, padding, size;
        lg_triple kernels, strides, paddings, sizes;
} unpool_options;

typedef struct arguments {
        int64_t kernel;
        const void *options;
        bool (*read)(const lg__call *call, const void *options, unpool_options *ret);
        int spaces; /* number of spatial dimensions */
} arguments;

/* Replaces size, that of a side of x, by that of the result, which is PyTorch's or nearer to it than a stride. */
static bool unpooled(const lg__call *call, const unpool_options *o, int d, int64_t *size)
{
        const arguments *p = call->attributes;
        const int64_t kernel = lg__side_of(p->spaces, d, o->kernels, p->kernel);
        const int64_t stride =
                o->stride || o->strides.given ? lg__side_of(p->spaces, d, o->strides, o->stride) : kernel;
        const int64_t padding = lg__side_of(p->spaces, d, o->paddings, lg__whole_option(o->padding, 0));
        const int64_t given = lg__side_of(p->spaces, d, o->sizes, o->size);
        int64_t usual;
        if (kernel < 1 || stride < 1 || padding < 0 || kernel > INT32_MAX || stride > INT32_MAX || padding > INT32_MAX)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "%s: kernel %lld, stride %lld, padding %lld; the padding must be 0 or more, the others "
                                "above 0, and all below 2^31",
                                call->op->name, (long long)kernel, (long long)stride, (long long)padding);
        if (__builtin_mul_overflow(*size - 1, stride, &usual) || usual > INT64_MAX / 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; the result would be too large", call->op->name,
                                lg__tensor_text(call->in[0]).s);
        usual += kernel - 2 * padding;
        if (given && (given <= usual - stride || given >= usual + stride))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: size %lld; it is from %lld to %lld", call->op->name,
                                (long long)given, (long long)(usual - stride + 1), (long long)(usual + stride - 1));
        *size = given ? given : usual;
        return *size > 0 || lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; a side of the result would be %lld",
                                     call->op->name, lg__tensor_text(call->in[0]).s, (long long)*size);
}

static lg_tensor *compose(const lg__call *call)
{
        const arguments *p = call->attributes;
        lg_tensor *x = call->in[0], *index = call->in[1];
        lg_shape s = x->at.shape;
        const int most = p->spaces + 2, outer = s.ndim - p->spaces;
        unpool_options o;
        int64_t n, pixels, unused;
        if ((s.ndim != most && s.ndim != most - 1) || !lg__shape_equal(s, index->at.shape))
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s and indices are %s; both are of one shape, %s",
                                call->op->name, lg__tensor_text(x).s, lg__tensor_text(index).s,
                                lg__images_text(p->spaces));
        if (!p->read(call, p->options, &o) || !lg__has_pixels(call, s.ndim < most ? lg_unsqueeze(x, 0) : x))
                return NULL;
        lg__split(s, outer, &n, &pixels, &unused);
        pixels *= unused;
        for (int d = 0; d < p->spaces; d++)
                if (!unpooled(call, &o, d, &s.size[outer + d]))
                        return NULL;
        if (!lg__shape_valid(call->ctx, call->op->name, s))
                return NULL;
        const lg_shape lines = LG_SHAPE(n, pixels);
        int64_t size = 1;
        for (int d = 0; d < p->spaces; d++)
                size *= s.size[outer + d];
        lg_tensor *zeros = lg_expand(lg__constant(x, 0), LG_SHAPE(n, size));
        return lg_reshape(lg__scatter(zeros, 1, lg_reshape(index, lines), lg_reshape(x, lines), LG__ORIGIN_MAX_UNPOOL),
                          s);
}

#define AS_IT_IS(triple) triple
#define SIDES(as) .kernels = as(o.kernels), .strides = as(o.strides), .paddings = as(o.paddings), .sizes = as(o.sizes)
#define UNPOOL(of, dims, ...)                                                                                          \
        LG__DEFINE(of, .compose = compose, LG__OPERANDS({"x", LG__FLOAT}, {"indices", LG__INDEX}))                     \
        static bool read_##of(const lg__call *call, const void *options, unpool_options *ret)                          \
        {                                                                                                              \
                lg_##of##_options o;                                                                                   \
                if (!lg__take(call->ctx, #of, options, &o, sizeof o))                                                  \
                        return false;                                                                                  \
                *ret = (unpool_options){.stride = o.stride, .padding = o.padding, __VA_ARGS__};                        \
                return true;                                                                                           \
        }                                                                                                              \
        lg_tensor *lg_##of##_with(lg_tensor *x, lg_tensor *indices, int64_t kernel, const lg_##of##_options *options)  \
        {                                                                                                              \
                return LG__APPLY(of, (&(arguments){kernel, options, read_##of, dims}), x, indices);                    \
        }
UNPOOL(max_unpool1d, 1, .size = o.size)
UNPOOL(max_unpool2d, 2, SIDES(lg__deepened))
UNPOOL(max_unpool3d, 3, SIDES(AS_IT_IS))
