/* transform_chain.c - transforms one after the other, and a function of the program as a transform. */
#include <string.h>
#include "transform.h"

typedef struct chain {
        lg_transform head;
        lg_transform **parts;
        int64_t count;
} chain;

static size_t parts_bytes(int64_t count)
{
        return (size_t)count * sizeof(lg_transform *) + 1;
}

static void chain_destroy(lg_transform *t)
{
        chain *a = (chain *)t;
        for (int64_t i = 0; i < a->count; i++)
                lg__object_done(a->parts[i]);
        lg__free(t->object.ctx, a->parts, parts_bytes(a->count));
}

/* A part and where in the scratch it reads, writes and works. What the first one reads and the last one writes is
 * elsewhere. */
typedef struct stage {
        lg_field in, out;
        size_t from, from_end, to, to_end;
        size_t work, work_end;
} stage;

/* From one part to the next: its result takes the place before what it reads, if it fits there. */
static bool advance(const chain *a, lg_ctx *c, int64_t i, stage *s)
{
        const lg_transform *t = a->parts[i];
        size_t work = 0, bytes = 0;
        s->in = s->out;
        s->from = s->to;
        s->from_end = s->to_end;
        if (!t->kind->plan(t, c, &s->in, &s->out, &work))
                return false;
        if (i < a->count - 1)
                bytes = lg__aligned(lg__field_bytes(&s->out) + 1);
        s->to = bytes <= s->from ? 0 : s->from_end;
        s->to_end = s->to + bytes; /* both are below PTRDIFF_MAX */
        s->work = s->to_end > s->from_end ? s->to_end : s->from_end;
        if (!__builtin_add_overflow(s->work, work, &s->work_end) && s->work_end <= PTRDIFF_MAX)
                return true;
        return lg__fail(c, LG_ERR_MEMORY, "%s: what part %lld makes of %s, and those before it, fits into no memory",
                        a->head.kind->op, (long long)i, s->in.name);
}

static bool chain_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
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

/* A plan that worked once works each time, without the context. */
static bool chain_run(const lg_transform *t, const lg__step *step)
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
        .plan = chain_plan,
        .run = chain_run,
        .destroy = chain_destroy,
        .bytes = sizeof(chain),
};

lg_transform *lg_transforms_list(lg_ctx *c, lg_transform *const *parts)
{
        int64_t count = 0;
        int depth = 0;
        if (!lg__ok(c))
                return NULL;
        for (; parts && parts[count] != LG_END; count++) {
                if (!lg__transform_check(c, parts[count], chain_kind.op) ||
                    !lg__data_nests(c, chain_kind.op, &depth, parts[count]->depth))
                        return NULL;
        }
        chain *a = (chain *)lg__transform_new(c, &chain_kind, &(chain){.count = 0});
        if (!a)
                return NULL;
        a->parts = lg__alloc(c, parts_bytes(count));
        if (!a->parts) {
                lg__object_destroy(&a->head.object);
                return NULL;
        }
        a->head.depth = depth;
        for (; a->count < count; a->count++) {
                lg_transform *part = lg__object_use(parts[a->count]);
                a->parts[a->count] = part;
                a->head.random = a->head.random || part->random;
                a->head.own = a->head.own || part->own;
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

static void own_destroy(lg_transform *t)
{
        own *o = (own *)t;
        lg__release(t->object.ctx, o->release, o->user);
}

static bool own_plan(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const own *o = (const own *)t;
        (void)c, (void)in, (void)ret_scratch;
        ret->shape = o->shape.ndim ? o->shape : ret->shape;
        ret->dtype = o->dtype ? o->dtype : ret->dtype;
        return true;
}

static bool own_run(const lg_transform *t, const lg__step *s)
{
        const own *o = (const own *)t;
        const lg_transform_call call = {s->in, s->out, s->from, s->to, s->rng, s->sample};
        return (o->fn(&call, o->user) && !((const lg__sampler *)s->sample)->code) ||
               lg_sample_fail(s->sample, "lg_transform_new: its function gives false for sample %lld",
                              (long long)s->sample->index);
}

static const lg__transform_kind own_kind = {
        .op = "lg_transform_new",
        .plan = own_plan,
        .run = own_run,
        .destroy = own_destroy,
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
        lg__take_without(options, &o, sizeof o); /* .release is called in any case */
        bool ok = lg__take(c, own_kind.op, options, &o, sizeof o) && own_is_good(c, fn, &o);
        const own like = {.fn = fn, .user = user, .release = o.release, .shape = o.shape, .dtype = o.dtype};
        lg_transform *t = ok ? lg__transform_new(c, &own_kind, &like) : NULL;
        if (!t) {
                lg__release(c, o.release, user);
                return NULL;
        }
        t->random = o.random;
        t->own = true;
        return t;
}
