/* transform.c - what all transforms have in common: uses, an end, images. */
#include <string.h>
#include "transform.h"

static void destroy(lg__object *o)
{
        lg_transform *t = (lg_transform *)o;
        if (t->kind->destroy)
                t->kind->destroy(t);
        lg__free(o->ctx, t, t->kind->bytes);
}

static const lg__type type = {.destroy = destroy};

lg_transform *lg__transform_new(lg_ctx *c, const lg__transform_kind *kind, const void *like)
{
        lg_transform *t = lg__ok(c) ? lg__alloc(c, kind->bytes) : NULL;
        if (!t)
                return NULL;
        memcpy(t + 1, (const lg_transform *)like + 1, kind->bytes - sizeof *t);
        t->kind = kind;
        t->random = kind->random;
        lg__object_register(c, &t->object, &type);
        return t;
}

void lg_transform_free(lg_transform *t)
{
        lg__object_free(t);
}

bool lg__transform_check(lg_ctx *c, const lg_transform *t, const char *op)
{
        if (!t || t->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the transform is %s", op, t ? "of another context" : "NULL");
        return lg__object_lasts(&t->object, op);
}

bool lg__number_within(lg_ctx *c, const char *op, const char *name, double value, double low, double high)
{
        return (value >= low && value <= high) ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is %g; it must be from %g to %g", op, name, value, low, high);
}

/* ---- images ---- */

bool lg__image_size(lg_ctx *c, const char *op, int64_t height, int64_t width)
{
        const int64_t most = 1 << 24;
        return (height >= 1 && width >= 1 && height <= most && width <= most) ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: height is %lld and width %lld; each must be from 1 to %lld", op,
                        (long long)height, (long long)width, (long long)most);
}

bool lg__image_field(lg_ctx *c, const char *op, const lg_field *f, lg__image *ret)
{
        if (f->dtype != LG_U8 && f->dtype != LG_F32 && f->dtype != LG_F64)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %s is %s %s; images are u8, f32 or f64", op, f->name,
                                lg_dtype_name(f->dtype), lg__shape_text(f->shape).s);
        if (f->ragged || f->shape.ndim < 2 || f->shape.ndim > 3)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s%s; an image is (C, H, W) or (H, W)", op, f->name,
                                lg_dtype_name(f->dtype), lg__shape_text(f->shape).s, f->ragged ? " at most" : "");
        *ret = lg__image_of(f);
        return true;
}

bool lg__image_resized(lg_ctx *c, const char *op, int64_t height, int64_t width, lg_field *f)
{
        f->shape.size[f->shape.ndim - 2] = height;
        f->shape.size[f->shape.ndim - 1] = width;
        return lg__shape_valid(c, op, f->shape);
}

void lg__pixels_fill(void *to, lg_dtype dtype, double value, int64_t n)
{
        if (dtype == LG_U8) {
                for (int64_t i = 0; i < n; i++)
                        ((uint8_t *)to)[i] = (uint8_t)value;
        } else if (dtype == LG_F32) {
                for (int64_t i = 0; i < n; i++)
                        ((float *)to)[i] = (float)value;
        } else {
                for (int64_t i = 0; i < n; i++)
                        ((double *)to)[i] = value;
        }
}
