/* transform.c - transforms in general, chains of them, functions of the program as transforms, transformed data sets.
 */
#include <string.h>
#include "transform.h"

static void destroy_transform(lg__object *o)
{
        lg_transform *t = (lg_transform *)o;
        if (t->kind->destroy)
                t->kind->destroy(t);
}

static const lg__type type = {.destroy = destroy_transform};

lg_transform *lg__transform_new(lg_ctx *c, const lg__transform_kind *kind)
{
        lg_transform *t = lg__object_new(c, &type, kind->bytes);
        if (!t)
                return NULL;
        t->kind = kind;
        t->random = kind->random;
        return t;
}

void lg_transform_free(lg_transform *t)
{
        lg__object_free(t);
}

static bool check_transform(lg_ctx *c, const lg_transform *t, const char *op)
{
        if (!t || t->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the transform is %s", op, t ? "of another context" : "NULL");
        return lg__object_lasts(&t->object, op);
}

/* ---- numeric options ---- */

bool lg__number_within(lg_ctx *c, const char *op, const char *name, double value, double low, double high)
{
        return (value >= low && value <= high) ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is %g; it must be from %g to %g", op, name, value, low, high);
}

lg_transform *lg__transform_of_options(lg_ctx *c, const lg__transform_kind *kind, const void *options)
{
        lg_transform *t = lg__transform_new(c, kind);
        char *o = t ? (char *)(t + 1) : NULL;
        bool ok = t && lg__take(c, kind->op, options, o, kind->bytes - sizeof *t);
        double previous = 0;
        for (const lg__number *n = kind->numbers; ok && n->name; n++) {
                double *value = (double *)(void *)(o + n->offset);
                *value = lg__option(*value, n->otherwise);
                ok = lg__number_within(c, kind->op, n->name, *value, n->above_previous ? previous : n->low, n->high);
                previous = *value;
        }
        return ok ? t : lg__object_destroy(t);
}

/* ---- images ---- */

lg_transform *lg__transform_of_size(lg_ctx *c, const lg__transform_kind *kind, int64_t height, int64_t width)
{
        const int64_t most = 1 << 24;
        if (!lg__ok(c))
                return NULL;
        if (height < 1 || width < 1 || height > most || width > most)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: height is %lld and width %lld; each must be from 1 to %lld",
                                kind->op, (long long)height, (long long)width, (long long)most);
        lg__resizing *t = (lg__resizing *)lg__transform_new(c, kind);
        if (!t)
                return NULL;
        t->height = height;
        t->width = width;
        return &t->head;
}

bool lg__infer_resized(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const lg__resizing *r = (const lg__resizing *)t;
        (void)in, (void)ret_scratch;
        ret->shape.size[ret->shape.ndim - 2] = r->height;
        ret->shape.size[ret->shape.ndim - 1] = r->width;
        return lg__shape_valid(c, t->kind->op, ret->shape);
}

static bool is_image(lg_ctx *c, const char *op, const lg_field *f)
{
        if (f->dtype != LG_U8 && f->dtype != LG_F32 && f->dtype != LG_F64)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %s is %s %s; images are u8, f32 or f64", op, f->name,
                                lg_dtype_name(f->dtype), lg__shape_text(f->shape).s);
        if (f->ragged || f->shape.ndim < 2 || f->shape.ndim > 3)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s%s; an image is (C, H, W) or (H, W)", op, f->name,
                                lg_dtype_name(f->dtype), lg__shape_text(f->shape).s, f->ragged ? " at most" : "");
        return true;
}

bool lg__transform_infer(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const lg__transform_kind *kind = t->kind;
        if (kind->images && !is_image(c, kind->op, in))
                return false;
        if (kind->value &&
            !lg__dtype_holds(c, kind->op, in->dtype, *(const double *)(const void *)((const char *)t + kind->value)))
                return false;
        return !kind->infer || kind->infer(t, c, in, ret, ret_scratch);
}

void lg__pixels_fill(void *to, lg_dtype dtype, double value, int64_t n)
{
        LG__WITH_PIXEL(dtype, float, {
                for (int64_t i = 0; i < n; i++)
                        ((pixel *)to)[i] = (pixel)value;
        });
}

/* ---- chains of transforms ---- */

typedef struct chain {
        lg_transform head;
        lg_transform **parts;
        int64_t count;
} chain;

static size_t parts_bytes(int64_t count)
{
        return (size_t)count * sizeof(lg_transform *) + 1;
}

static void destroy_chain(lg_transform *t)
{
        chain *a = (chain *)t;
        for (int64_t i = 0; i < a->count; i++)
                lg__object_done(a->parts[i]);
        lg__free(t->object.ctx, a->parts, parts_bytes(a->count));
}

/* One part of a chain: its fields, and byte ranges in the chain's scratch memory for its input, output and own scratch
 * (work). The input of the first part and the output of the last part are not in scratch memory. */
typedef struct stage {
        lg_field in, out;
        size_t from, from_end, to, to_end;
        size_t work, work_end;
} stage;

/* Moves the stage on to part i. Its output is placed before its input in the scratch memory if it fits there, else
 * after. Returns false if part i rejects its input or the ranges are too large. c may be NULL. */
static bool advance(const chain *a, lg_ctx *c, int64_t i, stage *s)
{
        const lg_transform *t = a->parts[i];
        size_t work = 0, bytes = 0;
        s->in = s->out;
        s->from = s->to;
        s->from_end = s->to_end;
        if (!lg__transform_infer(t, c, &s->in, &s->out, &work))
                return false;
        if (i < a->count - 1)
                bytes = lg__aligned(lg__field_bytes(&s->out) + 1);
        s->to = bytes <= s->from ? 0 : s->from_end;
        s->to_end = s->to + bytes; /* cannot overflow: both terms are below PTRDIFF_MAX */
        s->work = s->to_end > s->from_end ? s->to_end : s->from_end;
        if (!__builtin_add_overflow(s->work, work, &s->work_end) && s->work_end <= PTRDIFF_MAX)
                return true;
        return lg__fail(c, LG_ERR_MEMORY, "%s: what part %lld makes of %s, and those before it, fits into no memory",
                        a->head.kind->op, (long long)i, s->in.name);
}

static bool infer_chain(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const chain *a = (const chain *)t;
        stage s = {.out = *in};
        for (int64_t i = 0; i < a->count; i++) {
                if (!advance(a, c, i, &s))
                        return false;
                *ret_scratch = s.work_end > *ret_scratch ? s.work_end : *ret_scratch;
        }
        *ret = s.out;
        return true;
}

/* Runs the parts in order, inferring each stage again without a context: inference that succeeded once cannot fail. */
static bool run_chain(const lg_transform *t, const lg__step *step)
{
        const chain *a = (const chain *)t;
        char *scratch = step->scratch;
        stage s = {.out = *step->in};
        lg__step part = *step;
        part.in = &s.in;
        part.out = &s.out;
        if (!a->count && lg__field_bytes(step->in))
                memcpy(step->to, step->from, lg__field_bytes(step->in));
        for (int64_t i = 0; i < a->count; i++) {
                if (!advance(a, NULL, i, &s))
                        return lg_sample_fail(step->sample, "lg_transforms: part %lld cannot be run", (long long)i);
                part.from = i ? scratch + s.from : step->from;
                part.to = i == a->count - 1 ? step->to : scratch + s.to;
                part.scratch = scratch ? scratch + s.work : NULL;
                if (!a->parts[i]->kind->run(a->parts[i], &part))
                        return false;
        }
        return true;
}

static const lg__transform_kind chain_kind = {
        .op = "lg_transforms",
        .infer = infer_chain,
        .run = run_chain,
        .destroy = destroy_chain,
        .bytes = sizeof(chain),
};

lg_transform *lg_transforms_list(lg_ctx *c, lg_transform *const *parts)
{
        int64_t count = 0;
        int depth = 0;
        if (!lg__ok(c))
                return NULL;
        for (; parts && parts[count] != LG_END; count++) {
                if (!check_transform(c, parts[count], chain_kind.op) ||
                    !lg__data_nests(c, chain_kind.op, &depth, parts[count]->depth))
                        return NULL;
        }
        chain *a = (chain *)lg__transform_new(c, &chain_kind);
        if (!a)
                return NULL;
        a->parts = lg__alloc(c, parts_bytes(count));
        if (!a->parts)
                return lg__object_destroy(a);
        a->head.depth = depth;
        for (; a->count < count; a->count++) {
                lg_transform *part = lg__object_use(parts[a->count]);
                a->parts[a->count] = part;
                a->head.random = a->head.random || part->random;
                a->head.calls_user_code = a->head.calls_user_code || part->calls_user_code;
        }
        return &a->head;
}

/* ---- functions of the program ---- */

typedef struct own {
        lg_transform head;
        lg_transform_fn *fn;
        void *user;
        void (*release)(void *user);
        lg_shape shape;
        lg_dtype dtype;
} own;

static void destroy_own(lg_transform *t)
{
        own *o = (own *)t;
        lg__release(t->object.ctx, o->release, o->user);
}

static bool infer_own(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const own *o = (const own *)t;
        (void)c, (void)in, (void)ret_scratch;
        ret->shape = o->shape.ndim ? o->shape : ret->shape;
        ret->dtype = o->dtype ? o->dtype : ret->dtype;
        return true;
}

static bool run_own(const lg_transform *t, const lg__step *s)
{
        const own *o = (const own *)t;
        const lg_transform_call call = {s->in, s->out, s->from, s->to, s->rng, s->sample};
        return (o->fn(&call, o->user) && !((const lg__sampler *)s->sample)->code) ||
               lg_sample_fail(s->sample, "lg_transform_new: its function gives false for sample %lld",
                              (long long)s->sample->index);
}

static const lg__transform_kind own_kind = {
        .op = "lg_transform_new",
        .infer = infer_own,
        .run = run_own,
        .destroy = destroy_own,
        .bytes = sizeof(own),
};

static bool own_is_good(lg_ctx *c, lg_transform_fn *fn, const lg_transform_options *o)
{
        if (!fn)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the function is NULL", own_kind.op);
        if (o->dtype && !lg_dtype_size(o->dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: dtype is %d, which is none", own_kind.op, (int)o->dtype);
        return lg__shape_valid(c, own_kind.op, o->shape);
}

lg_transform *lg_transform_new_with(lg_ctx *c, lg_transform_fn *fn, void *user, const lg_transform_options *options)
{
        lg_transform_options o;
        lg__take_without(options, &o, sizeof o); /* .release is called even on failure */
        bool ok = lg__take(c, own_kind.op, options, &o, sizeof o) && own_is_good(c, fn, &o);
        own *t = ok ? (own *)lg__transform_new(c, &own_kind) : NULL;
        if (!t) {
                lg__release(c, o.release, user);
                return NULL;
        }
        t->fn = fn;
        t->user = user;
        t->release = o.release;
        t->shape = o.shape;
        t->dtype = o.dtype;
        t->head.random = o.random;
        t->head.calls_user_code = true;
        return &t->head;
}

/* ---- transformed data sets ---- */

typedef struct transformed {
        lg_dataset head;
        lg_dataset *base;
        lg_transform *t;
} transformed;

static void destroy_transformed(lg_dataset *d)
{
        transformed *of = (transformed *)d;
        lg__object_done(of->t);
        lg__object_done(of->base);
}

/* Makes the base's sample with its first field in scratch memory, and runs the transform from there to s->data[0]. */
static bool get_transformed(const lg_dataset *d, lg_sample *s)
{
        const transformed *of = (const transformed *)d;
        const lg_field *in = &of->base->fields.field[0];
        lg__sampler *sampler = (lg__sampler *)s;
        const size_t used = sampler->scratch_used;
        void *to = s->data[0], *from = sampler->scratch + used;
        s->data[0] = from;
        sampler->scratch_used = used + lg__aligned(lg__field_bytes(in) + 1);
        bool ok = of->base->kind->get(of->base, s);
        const lg__step step = {in, &d->fields.field[0], from, to, s->rng, sampler->scratch + sampler->scratch_used, s};
        s->data[0] = to;
        if (ok && lg__field_bytes(step.out))
                ok = of->t->kind->run(of->t, &step);
        sampler->scratch_used = used;
        return ok;
}

static const lg__set_kind transformed_kind = {
        .get = get_transformed, .destroy = destroy_transformed, .bytes = sizeof(transformed)};

static bool fill(transformed *made, lg_dataset *base, lg_transform *t)
{
        static const char op[] = "lg_dataset_transform";
        lg_ctx *c = base->object.ctx;
        lg_dataset *d = &made->head;
        lg_fields fields = base->fields;
        lg_field *in = &base->fields.field[0], *out = &fields.field[0];
        size_t scratch = 0;
        made->base = lg__object_use(base);
        made->t = lg__object_use(t);
        d->random = base->random || t->random;
        d->calls_user_code = base->calls_user_code || t->calls_user_code;
        d->stream = base->stream;
        d->classes = base->classes;
        if (!lg__data_nests(c, op, &d->depth, base->depth))
                return false;
        if (in->ragged)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is ragged; transforms take fields of one size", op, in->name);
        if (!lg__transform_infer(t, c, in, out, &scratch))
                return false;
        scratch = lg__aligned(scratch + 1) > base->scratch_bytes ? lg__aligned(scratch + 1) : base->scratch_bytes;
        if (__builtin_add_overflow(lg__aligned(lg__field_bytes(in) + 1), scratch, &d->scratch_bytes) ||
            d->scratch_bytes > PTRDIFF_MAX)
                return lg__fail(c, LG_ERR_MEMORY, "%s: %s, with what its data sets make it of, fits into no memory", op,
                                in->name);
        return lg__fields_take(c, op, &d->fields, &fields);
}

lg_dataset *lg_dataset_transform(lg_dataset *d, lg_transform *t)
{
        if (!lg__dataset_check(NULL, d, "lg_dataset_transform") ||
            !check_transform(d->object.ctx, t, "lg_dataset_transform"))
                return NULL;
        lg_dataset *made = lg__dataset_new(d->object.ctx, &transformed_kind, d->size);
        return made && fill((transformed *)made, d, t) ? made : lg__object_destroy(made);
}
