/* call.c - attributes and operands of a node, as the functions of operators read them. */
#include <math.h>
#include <stdio.h>
#include "import.h"

void *lg__onnx_fail(const lg__onnx_call *c, lg_error_code code, const char *format, ...)
{
        char why[LG__MESSAGE];
        va_list args;
        va_start(args, format);
        vsnprintf(why, sizeof why, format, args);
        va_end(args);
        return lg__fail(c->ctx, code, "%s%s%s: %s", c->node->op, *c->node->name ? " " : "",
                        *c->node->name ? lg__quoted(c->node->name).s : "", why);
}

/* ---- attributes ---- */

const lg__onnx_attribute *lg__onnx_attribute_of(const lg__onnx_call *c, const char *name)
{
        for (int64_t i = 0; i < c->node->attribute_count; i++)
                if (!strcmp(c->node->attributes[i].name, name))
                        return &c->node->attributes[i];
        return NULL;
}

int64_t lg__onnx_int(const lg__onnx_call *c, const char *name, int64_t otherwise)
{
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, name);
        return a && a->type == TYPE_INT ? a->i : otherwise;
}

double lg__onnx_float(const lg__onnx_call *c, const char *name, double otherwise)
{
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, name);
        return a && a->type == TYPE_FLOAT ? a->f : otherwise;
}

const char *lg__onnx_text(const lg__onnx_call *c, const char *name, const char *otherwise)
{
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, name);
        return a && a->type == TYPE_STRING ? a->s : otherwise;
}

bool lg__onnx_wants(const lg__onnx_call *c, int i)
{
        return i < c->node->out_count && *c->node->out[i];
}

/* ---- operands ---- */

static bool too_many(const lg__onnx_call *c, int64_t count)
{
        return count <= (int64_t)(sizeof((lg__onnx_ints *)0)->v / sizeof(int64_t)) ||
               lg__onnx_fail(c, LG_ERR_ARGUMENT, "%lld sizes are too many", (long long)count);
}

bool lg__onnx_ints_of(const lg__onnx_call *c, const char *name, lg__onnx_ints *ret)
{
        const lg__onnx_attribute *a = lg__onnx_attribute_of(c, name);
        ret->count = -1;
        if (!a || a->type != TYPE_INTS)
                return true;
        if (!too_many(c, a->count))
                return false;
        ret->count = a->count;
        if (a->count)
                memcpy(ret->v, a->ints, (size_t)a->count * sizeof *a->ints);
        return true;
}

bool lg__onnx_read(const lg__onnx_call *c, int i, void *to, lg_dtype dtype, size_t bytes)
{
        const char *unread = c->ctx->unread;
        if (i < 32 && c->known & 1u << i)
                c->ctx->unread = NULL;
        const bool ok = lg_read(c->in[i], to, dtype, bytes);
        c->ctx->unread = unread;
        return ok;
}

bool lg__onnx_ints_in(const lg__onnx_call *c, int i, lg__onnx_ints *ret)
{
        lg_tensor *t = lg__onnx_in(c, i);
        ret->count = -1;
        if (!t)
                return true;
        const int64_t n = lg__shape_numel(t->at.shape);
        if (t->at.shape.ndim > 1 || lg__dtype_float(t->at.dtype))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "operand %d is %s; it must be a list of whole numbers", i,
                                     lg__tensor_text(t).s);
        if (!too_many(c, n) || !lg__onnx_read(c, i, ret->v, LG_I64, (size_t)n * sizeof *ret->v))
                return false;
        ret->count = n;
        return true;
}

int lg__onnx_axis(const lg__onnx_call *c, int64_t axis, int ndim)
{
        if (axis >= -ndim && axis < ndim)
                return (int)(axis < 0 ? axis + ndim : axis);
        lg__onnx_fail(c, LG_ERR_ARGUMENT, "axis %lld of a tensor with %d dimensions", (long long)axis, ndim);
        return -1;
}

bool lg__onnx_axes(const lg__onnx_call *c, int i, const char *name, int ndim, lg_dims *ret)
{
        lg__onnx_ints axes;
        *ret = LG_ALL_DIMS;
        if (!(i >= 0 && lg__onnx_in(c, i) ? lg__onnx_ints_in(c, i, &axes) : lg__onnx_ints_of(c, name, &axes)))
                return false;
        if (axes.count > LG_MAX_DIMS)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "%lld axes are too many", (long long)axes.count);
        for (int64_t k = 0; k < axes.count; k++) {
                const int axis = lg__onnx_axis(c, axes.v[k], ndim);
                if (axis < 0)
                        return false;
                ret->dim[ret->count++] = axis;
        }
        return true;
}

double lg__onnx_number(const lg__onnx_call *c, int i, double otherwise)
{
        lg_tensor *t = lg__onnx_in(c, i);
        if (!t)
                return otherwise;
        if (lg__shape_numel(t->at.shape) != 1)
                lg__onnx_fail(c, LG_ERR_SHAPE, "operand %d is %s; it must be one number", i, lg__tensor_text(t).s);
        double v = otherwise;
        lg__onnx_read(c, i, &v, LG_F64, sizeof v);
        return v;
}

int32_t lg__onnx_whole(const lg__onnx_call *c, int i, int32_t otherwise)
{
        const double v = lg__onnx_number(c, i, otherwise);
        if (isnan(v))
                lg__onnx_fail(c, LG_ERR_ARGUMENT, "operand %d is NaN", i);
        return v > INT32_MIN ? v < INT32_MAX ? (int32_t)v : INT32_MAX : INT32_MIN;
}

bool lg__onnx_are_sizes(const lg__onnx_call *c, const lg__onnx_ints *ints)
{
        for (int64_t i = 0; i < ints->count; i++)
                if (ints->v[i] < 0 || ints->v[i] > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "%lld is no size", (long long)ints->v[i]);
        return true;
}
