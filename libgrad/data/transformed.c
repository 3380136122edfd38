/* transformed.c - the samples of a data set with what a transform makes of their first field. */
#include "transform.h"

typedef struct transformed {
        lg_dataset head;
        lg_dataset *base;
        lg_transform *t;
} transformed;

static void destroy(lg_dataset *d)
{
        transformed *of = (transformed *)d;
        lg__object_done(of->t);
        lg__object_done(of->base);
}

/* The first field of the base goes into the hand's scratch, what its own steps need behind it. */
static bool get(const lg_dataset *d, lg_sample *s)
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

static const lg__set_kind kind = {.get = get, .destroy = destroy, .bytes = sizeof(transformed)};

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
        d->own = base->own || t->own;
        d->stream = base->stream;
        d->classes = base->classes;
        if (!lg__data_nests(c, op, &d->depth, base->depth))
                return false;
        if (in->ragged)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is ragged; transforms take fields of one size", op, in->name);
        if (!t->kind->plan(t, c, in, out, &scratch))
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
            !lg__transform_check(d->object.ctx, t, "lg_dataset_transform"))
                return NULL;
        lg_dataset *made = lg__dataset_new(d->object.ctx, &kind, d->size);
        return lg__dataset_or_null(made, made && fill((transformed *)made, d, t));
}
