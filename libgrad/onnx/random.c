/* random.c - ONNX's operators that draw random numbers, from the context's generator: "seed" does not count. */
#include "import.h"

/* Returns the dtype that attribute "dtype" names, or `otherwise`; LG_DTYPE_NONE with an error. */
static lg_dtype dtype_of(const lg__onnx_call *c, lg_dtype otherwise)
{
        const int64_t to = lg__onnx_int(c, "dtype", 0);
        const lg_dtype dtype = to ? lg__onnx_dtype(to) : otherwise;
        if (!dtype)
                lg__onnx_fail(c, LG_ERR_DTYPE, "libgrad lacks the dtype %s", lg__onnx_type_name(to));
        return dtype;
}

static lg_tensor *uniform(const lg__onnx_call *c, lg_shape shape, lg_dtype otherwise, lg_device device)
{
        const double low = lg__onnx_float(c, "low", 0), high = lg__onnx_float(c, "high", 1);
        const lg_dtype dtype = dtype_of(c, otherwise);
        return dtype ? lg_uniform(c->ctx, low, high, shape, .dtype = dtype, .device = device) : NULL;
}

static lg_tensor *normal(const lg__onnx_call *c, lg_shape shape, lg_dtype otherwise, lg_device device)
{
        const double mean = lg__onnx_float(c, "mean", 0), std = lg__onnx_float(c, "scale", 1);
        const lg_dtype dtype = dtype_of(c, otherwise);
        return dtype ? lg_normal(c->ctx, mean, std, shape, .dtype = dtype, .device = device) : NULL;
}

static bool take_shape(const lg__onnx_call *c, lg_shape *ret)
{
        lg__onnx_ints sizes;
        if (!lg__onnx_ints_of(c, "shape", &sizes))
                return false;
        if (sizes.count < 0 || sizes.count > LG_MAX_DIMS)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "shape is missing or has too many dimensions");
        ret->ndim = (int)sizes.count;
        for (int i = 0; i < ret->ndim; i++)
                ret->size[i] = sizes.v[i];
        return true;
}

LG__ONNX(RandomUniform)
{
        lg_shape shape;
        return take_shape(c, &shape) ? uniform(c, shape, LG_F32, lg_cpu()) : NULL;
}

LG__ONNX(RandomNormal)
{
        lg_shape shape;
        return take_shape(c, &shape) ? normal(c, shape, LG_F32, lg_cpu()) : NULL;
}

LG__ONNX(RandomUniformLike)
{
        const lg_tensor *x = c->in[0];
        return uniform(c, x->at.shape, x->at.dtype, x->storage->device->id);
}

LG__ONNX(RandomNormalLike)
{
        const lg_tensor *x = c->in[0];
        return normal(c, x->at.shape, x->at.dtype, x->storage->device->id);
}

LG__ONNX(Bernoulli)
{
        const lg_dtype dtype = dtype_of(c, c->in[0]->at.dtype);
        lg_tensor *y = dtype ? lg_bernoulli(c->in[0]) : NULL;
        return y && y->at.dtype != dtype ? lg_cast(y, dtype) : y;
}

/* The operand has logarithms of the weights. */
LG__ONNX(Multinomial)
{
        const lg_dtype dtype = dtype_of(c, LG_I32);
        lg_tensor *weights = dtype ? lg_softmax(c->in[0], -1) : NULL;
        lg_tensor *y = weights ? lg_multinomial(weights, lg__onnx_int(c, "sample_size", 1), .replacement = true) : NULL;
        return y && dtype != LG_I64 ? lg_cast(y, dtype) : y;
}
