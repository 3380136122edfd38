/* dataset.c - data sets: pairs of tensors whose rows belong together. */
#include <math.h>
#include "data.h"

static void destroy(lg__object *o)
{
        lg_dataset *d = (lg_dataset *)o;
        lg__tensor_release(d->x);
        lg__tensor_release(d->y);
        lg__free(o->ctx, d, sizeof *d);
}

static const lg__type type = {.destroy = destroy};

static bool rows_are_good(lg_ctx *c, const lg_tensor *t, const char *name)
{
        if (!t)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_tensors: %s is NULL", name);
        if (!lg__in_context(c, t, "lg_dataset_tensors", name) || !lg__check(t, "lg_dataset_tensors", name))
                return false;
        if (t->storage->device->id.type != LG_DEVICE_CPU)
                return lg__fail(c, LG_ERR_DEVICE,
                                "lg_dataset_tensors: %s is %s; a data set lies on the cpu: lg_to() it", name,
                                lg__tensor_text(t).s);
        if (t->at.shape.ndim < 1)
                return lg__fail(c, LG_ERR_SHAPE, "lg_dataset_tensors: %s is %s; it needs a dimension of rows", name,
                                lg__tensor_text(t).s);
        return true;
}

static bool options_are_good(lg_ctx *c, const lg_tensor *x, const lg_tensor *y, const lg_dataset *d)
{
        if (x->at.shape.size[0] != y->at.shape.size[0])
                return lg__fail(c, LG_ERR_SHAPE, "lg_dataset_tensors: x has %lld rows but y has %lld",
                                (long long)x->at.shape.size[0], (long long)y->at.shape.size[0]);
        if (!isfinite(d->scale) || !isfinite(d->shift))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_tensors: scale is %g and shift is %g", d->scale,
                                d->shift);
        if (d->convert && (x->at.dtype == LG_F16 || x->at.dtype == LG_BF16))
                return lg__fail(c, LG_ERR_DTYPE,
                                "lg_dataset_tensors: x is %s; rows of 16-bit floats are not scaled: "
                                "lg_cast() them",
                                lg__tensor_text(x).s);
        return true;
}

/* A handle of the data set's own over t's values, without the graph. */
static lg_tensor *handle(lg_tensor *t)
{
        lg_tensor *own = lg__layout_is_contiguous(&t->at) ? lg__tensor_new(t->ctx, t->storage, &t->at)
                                                          : lg__clone_values(t, lg_cpu(), t->at.dtype);
        return lg__tensor_own(own);
}

lg_dataset *lg_dataset_tensors_with(lg_ctx *c, lg_tensor *x, lg_tensor *y, const lg_dataset_options *options)
{
        lg_dataset_options o;
        if (!lg__take(c, "lg_dataset_tensors", options, &o, sizeof o) || !rows_are_good(c, x, "x") ||
            !rows_are_good(c, y, "y"))
                return NULL;
        lg_dataset set = {.convert = o.scale != 0 || o.shift != 0,
                          .scale = lg__option(o.scale, 1),
                          .shift = lg__option(o.shift, 0)};
        if (!options_are_good(c, x, y, &set))
                return NULL;
        lg_dataset *d = lg__alloc(c, sizeof *d);
        if (!d)
                return NULL;
        *d = set;
        lg__object_register(c, &d->object, &type);
        d->x = handle(x);
        d->y = d->x ? handle(y) : NULL;
        if (d->y)
                return d;
        lg__object_destroy(&d->object);
        return NULL;
}

int64_t lg_dataset_size(const lg_dataset *d)
{
        return d ? d->x->at.shape.size[0] : 0;
}

void lg_dataset_free(lg_dataset *d)
{
        if (d)
                lg__object_destroy(&d->object);
}
