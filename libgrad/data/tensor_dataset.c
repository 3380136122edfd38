/* tensor_dataset.c - data sets whose samples are the rows (index i of dimension 0) of tensors. */
#include <math.h>
#include <string.h>
#include "data.h"

/* A field whose samples are rows of a tensor, converted to x * scale + shift if `convert` is set. */
typedef struct rows {
        lg_tensor *tensor; /* owned by the data set; contiguous, on the CPU */
        int64_t width;     /* number of elements in a row */
        bool convert;
        double scale, shift;
        float of_byte[256]; /* converted value of each u8 or bool element */
} rows;

typedef struct tensors {
        lg_dataset head;
        rows rows[LG_MAX_FIELDS];
} tensors;

static void destroy(lg_dataset *d)
{
        tensors *t = (tensors *)d;
        for (int f = 0; f < LG_MAX_FIELDS; f++)
                lg__tensor_release(t->rows[f].tensor);
}

#define CONVERT(from, to)                                                                                              \
        do {                                                                                                           \
                const from *in = row;                                                                                  \
                to *y = out;                                                                                           \
                for (int64_t k = 0; k < n; k++)                                                                        \
                        y[k] = (to)((double)in[k] * r->scale + r->shift);                                              \
        } while (0)

static void convert_row(const rows *r, const void *row, void *out)
{
        int64_t n = r->width;
        switch (r->tensor->at.dtype) {
        case LG_U8:
        case LG_BOOL: {
                const uint8_t *in = row;
                float *y = out;
                for (int64_t k = 0; k < n; k++)
                        y[k] = r->of_byte[in[k]];
                break;
        }
        case LG_F64:
                CONVERT(double, double);
                break;
        case LG_I64:
                CONVERT(int64_t, float);
                break;
        case LG_I32:
                CONVERT(int32_t, float);
                break;
        default:
                CONVERT(float, float);
        }
}

static bool get(const lg_dataset *d, lg_sample *s)
{
        for (int f = 0; f < d->fields.count; f++) {
                const rows *r = &((const tensors *)d)->rows[f];
                const size_t bytes = (size_t)r->width * lg__dtype_bytes(r->tensor->at.dtype);
                const char *row = bytes ? (const char *)lg__data(r->tensor) + (size_t)s->index * bytes : NULL;
                if (bytes && r->convert)
                        convert_row(r, row, s->data[f]);
                else if (bytes)
                        memcpy(s->data[f], row, bytes);
        }
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

/* Returns t's values without its graph, contiguous, owned by the data set; shares t's memory if t is contiguous. */
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
                rows *r = &t->rows[f];
                r->tensor = handle(list.items[f]);
                if (!r->tensor)
                        return false;
                r->convert = f == 0 && (o->scale != 0 || o->shift != 0);
                r->scale = lg__option(o->scale, 1);
                r->shift = lg__option(o->shift, 0);
                for (int i = 0; i < 256; i++)
                        r->of_byte[i] = (float)(i * r->scale + r->shift);
                const lg__layout *at = &r->tensor->at;
                lg_field *field = &fields.field[f];
                field->name = lg__field_names[f];
                field->dtype = !r->convert || at->dtype == LG_F64 ? at->dtype : LG_F32;
                field->shape.ndim = at->shape.ndim - 1;
                memcpy(field->shape.size, at->shape.size + 1, (size_t)field->shape.ndim * sizeof *at->shape.size);
                r->width = lg__shape_numel(field->shape);
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
        return d && fill((tensors *)d, op, list, &o) ? d : lg__object_destroy(d);
}

lg_dataset *lg_dataset_tensors_with(lg_ctx *c, lg_tensor *x, lg_tensor *y, const lg_dataset_options *options)
{
        return make(c, "lg_dataset_tensors", LG_LIST(x, y), options);
}

lg_dataset *lg_dataset_list_with(lg_ctx *c, lg_list tensors, const lg_dataset_options *options)
{
        return make(c, "lg_dataset_list", tensors, options);
}
