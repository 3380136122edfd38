/* own.c - data sets and streams whose samples a function of the program makes. */
#include "data.h"

typedef struct own {
        lg_dataset head;
        lg_sample_fn *fn;
        void *user;
        void (*release)(void *user);
        bool (*seek)(void *user, int64_t sample);
        int64_t at; /* of a stream: samples that were read; -1: not known */
        bool taken; /* by a loader */
} own;

static void destroy(lg_dataset *d)
{
        own *o = (own *)d;
        lg__release(d->object.ctx, o->release, o->user);
}

/* What a function that says nothing has failed with is told by who called it. */
static bool get(const lg_dataset *d, lg_sample *s)
{
        const own *o = (const own *)d;
        const lg__hand *h = (const lg__hand *)s;
        if (o->fn(s, o->user) && !h->code)
                return true;
        return lg__sample_fail(s, LG_ERR_IO, "sample %lld cannot be made: its function gives false",
                               (long long)s->index);
}

static bool next(const lg_dataset *d, lg_sample *s)
{
        own *o = (own *)d;
        const lg__hand *h = (const lg__hand *)s;
        s->index = o->at;
        const bool ok = o->fn(s, o->user) && !h->code;
        o->at += ok || h->code; /* the end is no sample */
        return ok;
}

static const lg__set_kind own_kind = {.get = get, .destroy = destroy, .bytes = sizeof(own)};
static const lg__set_kind stream_kind = {.get = next, .destroy = destroy, .bytes = sizeof(own)};

static lg_dataset *make(lg_ctx *c, const char *op, const lg__set_kind *kind, int64_t size, const lg_fields *fields,
                        const own *from)
{
        lg_dataset *d = from->fn ? lg__dataset_new(c, kind, size) : NULL;
        own *o = (own *)d;
        if (!d) {
                if (!from->fn)
                        lg__fail(c, LG_ERR_ARGUMENT, "%s: the function is NULL", op);
                lg__release(c, from->release, from->user);
                return NULL;
        }
        o->fn = from->fn;
        o->user = from->user;
        o->release = from->release;
        o->seek = from->seek;
        d->own = true;
        d->stream = kind == &stream_kind ? d : NULL;
        return lg__dataset_made(d, lg__fields_take(c, op, &d->fields, fields));
}

lg_dataset *lg_dataset_new_with(lg_ctx *c, int64_t size, lg_fields fields, lg_sample_fn *fn, void *user,
                                const lg_source_options *options)
{
        lg_source_options o;
        lg__take_without(options, &o, sizeof o); /* .release is called in any case */
        bool ok = lg__take(c, "lg_dataset_new", options, &o, sizeof o);
        if (ok && size < 0)
                ok = lg__fail(c, LG_ERR_ARGUMENT,
                              "lg_dataset_new: the size is %lld; for a stream there is "
                              "lg_dataset_stream()",
                              (long long)size);
        if (ok && o.seek)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_new: .seek is for streams: lg_dataset_stream()");
        if (!ok) {
                lg__release(c, o.release, user);
                return NULL;
        }
        const own from = {.fn = fn, .user = user, .release = o.release};
        return make(c, "lg_dataset_new", &own_kind, size, &fields, &from);
}

lg_dataset *lg_dataset_stream_with(lg_ctx *c, lg_fields fields, lg_sample_fn *fn, void *user,
                                   const lg_source_options *options)
{
        lg_source_options o;
        lg__take_without(options, &o, sizeof o);
        bool ok = lg__take(c, "lg_dataset_stream", options, &o, sizeof o);
        if (!ok) {
                lg__release(c, o.release, user);
                return NULL;
        }
        const own from = {.fn = fn, .user = user, .release = o.release, .seek = o.seek};
        return make(c, "lg_dataset_stream", &stream_kind, -1, &fields, &from);
}

bool lg__stream_seek(lg_dataset *stream, lg_ctx *c, int64_t sample)
{
        own *o = (own *)stream;
        if (o->at == sample)
                return true;
        if (!o->seek)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_loader_next: the stream stands at sample %lld and is to go on at %lld, but it has "
                                "no .seek",
                                (long long)o->at, (long long)sample);
        bool ok = o->seek(o->user, sample);
        o->at = ok ? sample : -1;
        return ok || lg__fail(c, LG_ERR_STATE,
                              "lg_loader_next: the stream cannot go to sample %lld: its .seek gives "
                              "false",
                              (long long)sample);
}

bool lg__stream_take(lg_dataset *stream)
{
        own *o = (own *)stream;
        bool free = !o->taken;
        o->taken = true;
        return free;
}

void lg__stream_give(lg_dataset *stream)
{
        ((own *)stream)->taken = false;
}
