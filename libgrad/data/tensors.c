/* tensors.c - data sets of tensors whose rows belong together. */
#include <math.h>
#include "data.h"

typedef struct tensors {
        lg_dataset head;
        lg_tensor *tensor[LG_MAX_FIELDS]; /* owned handles, contiguous, on the CPU */
        lg__rows rows[LG_MAX_FIELDS];
} tensors;

static void destroy(lg_dataset *d)
{
        tensors *t = (tensors *)d;
        for (int f = 0; f < LG_MAX_FIELDS; f++)
                lg__tensor_release(t->tensor[f]);
}

static bool get(const lg_dataset *d, lg_sample *s)
{
        const tensors *t = (const tensors *)d;
        for (int f = 0; f < d->fields.count; f++)
                lg__rows_get(&t->rows[f], s->index, s->data[f]);
        return true;
}

static const lg__set_kind kind = {.get = get, .destroy = destroy, .bytes = sizeof(tensors)};

static bool rows_are_good(lg_ctx *c, const char *op, const lg_tensor *t, const char *name)
{
        if (!t)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL", op, name);
        if (!lg__in_context(c, t, op, name) || !lg__check(t, op, name))
                return false;
        if (t->storage->device->id.type != LG_DEVICE_CPU)
                return lg__fail(c, LG_ERR_DEVICE, "%s: %s is %s; a data set lies on the cpu: lg_to() it", op, name,
                                lg__tensor_text(t).s);
        if (t->at.shape.ndim < 1)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s; it needs a dimension of rows", op, name,
                                lg__tensor_text(t).s);
        return true;
}

static bool all_are_good(lg_ctx *c, const char *op, lg_list list, const lg_dataset_options *o)
{
        for (int64_t i = 0; i < list.count; i++) {
                const lg_tensor *t = list.items[i], *x = list.items[0];
                if (!rows_are_good(c, op, t, lg__field_names[i]))
                        return false;
                if (t->at.shape.size[0] != x->at.shape.size[0])
                        return lg__fail(c, LG_ERR_SHAPE, "%s: x has %lld rows but %s has %lld", op,
                                        (long long)x->at.shape.size[0], lg__field_names[i],
                                        (long long)t->at.shape.size[0]);
        }
        if (!isfinite(o->scale) || !isfinite(o->shift))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: scale is %g and shift is %g", op, o->scale, o->shift);
        const lg_tensor *x = list.items[0];
        if ((o->scale != 0 || o->shift != 0) && (x->at.dtype == LG_F16 || x->at.dtype == LG_BF16))
                return lg__fail(c, LG_ERR_DTYPE, "%s: x is %s; rows of 16-bit floats are not scaled: lg_cast() them",
                                op, lg__tensor_text(x).s);
        return true;
}

/* A handle of the data set's own over t's values, without the graph. */
static lg_tensor *handle(lg_tensor *t)
{
        lg_tensor *own = lg__layout_is_contiguous(&t->at) ? lg__tensor_new(t->ctx, t->storage, &t->at)
                                                          : lg__clone_values(t, lg_cpu(), t->at.dtype);
        return lg__tensor_own(own);
}

static bool fill(tensors *t, const char *op, lg_list list, const lg_dataset_options *o)
{
        lg_fields fields = {.count = (int)list.count};
        for (int f = 0; f < fields.count; f++) {
                bool convert = f == 0 && (o->scale != 0 || o->shift != 0);
                t->tensor[f] = handle(list.items[f]);
                if (!t->tensor[f])
                        return false;
                lg__rows_init(&t->rows[f], t->tensor[f], convert, lg__option(o->scale, 1), lg__option(o->shift, 0));
                lg_field *field = &fields.field[f];
                field->name = lg__field_names[f];
                field->dtype = t->rows[f].out_dtype;
                field->shape.ndim = list.items[f]->at.shape.ndim - 1;
                for (int i = 0; i < field->shape.ndim; i++)
                        field->shape.size[i] = list.items[f]->at.shape.size[i + 1];
        }
        return lg__fields_take(t->head.object.ctx, op, &t->head.fields, &fields);
}

static lg_dataset *make(lg_ctx *c, const char *op, lg_list list, const lg_dataset_options *options)
{
        lg_dataset_options o;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        if (!lg__list_ok(c, op, list.count, list.items))
                return NULL;
        if (list.count < 1 || list.count > LG_MAX_FIELDS)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld tensors; 1 to %d make a data set", op,
                                (long long)list.count, LG_MAX_FIELDS);
        if (!all_are_good(c, op, list, &o))
                return NULL;
        lg_dataset *d = lg__dataset_new(c, &kind, list.items[0]->at.shape.size[0]);
        return lg__dataset_made(d, d && fill((tensors *)d, op, list, &o));
}

lg_dataset *lg_dataset_tensors_with(lg_ctx *c, lg_tensor *x, lg_tensor *y, const lg_dataset_options *options)
{
        return make(c, "lg_dataset_tensors", LG_LIST(x, y), options);
}

lg_dataset *lg_dataset_list_with(lg_ctx *c, lg_list tensors, const lg_dataset_options *options)
{
        return make(c, "lg_dataset_list", tensors, options);
}
