/* callback_dataset.c - data sets and streams whose samples are made by a function of the program. */
#include "data.h"

#define STREAM INT64_MIN /* size that stands for a stream */

typedef struct own {
        lg_dataset head;
        lg_sample_fn *fn;
        void *user;
        void (*release)(void *user);
        bool (*seek)(void *user, int64_t sample);
        int64_t at; /* samples read from the stream so far; -1: unknown after a failed .seek */
        bool taken; /* the stream is reserved for a loader */
} own;

static void destroy(lg_dataset *d)
{
        own *o = (own *)d;
        lg__release(d->object.ctx, o->release, o->user);
}

/* Makes a sample. Sets a generic error if fn returned false without setting one; lg__sample_fail() keeps the first. */
static bool get(const lg_dataset *d, lg_sample *s)
{
        const own *o = (const own *)d;
        const lg__sampler *sampler = (const lg__sampler *)s;
        if (o->fn(s, o->user) && !sampler->code)
                return true;
        return lg__sample_fail(s, LG_ERR_IO, "sample %lld cannot be made: its function gives false",
                               (long long)s->index);
}

static bool next(const lg_dataset *d, lg_sample *s)
{
        own *o = (own *)d;
        const lg__sampler *sampler = (const lg__sampler *)s;
        s->index = o->at;
        const bool ok = o->fn(s, o->user) && !sampler->code;
        o->at += ok || sampler->code; /* a failed sample counts as read, the end of the stream does not */
        return ok;
}

static const lg__set_kind own_kind = {.get = get, .destroy = destroy, .bytes = sizeof(own)};
static const lg__set_kind stream_kind = {.get = next, .destroy = destroy, .bytes = sizeof(own)};

/* Makes a data set of `size` samples or, for STREAM, a stream. Calls the options' .release also if that fails. */
static lg_dataset *make(lg_ctx *c, const char *op, int64_t size, const lg_fields *fields, lg_sample_fn *fn, void *user,
                        const lg_source_options *options)
{
        const bool stream = size == STREAM;
        lg_source_options o;
        lg__take_without(options, &o, sizeof o);
        bool ok = lg__take(c, op, options, &o, sizeof o);
        if (ok && size < 0 && !stream)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "%s: the size is %lld; for a stream there is lg_dataset_stream()", op,
                              (long long)size);
        if (ok && o.seek && !stream)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "%s: .seek is for streams: lg_dataset_stream()", op);
        if (ok && !fn)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "%s: the function is NULL", op);
        lg_dataset *d = ok ? lg__dataset_new(c, stream ? &stream_kind : &own_kind, stream ? -1 : size) : NULL;
        if (!d) {
                lg__release(c, o.release, user);
                return NULL;
        }
        own *made = (own *)d;
        made->fn = fn;
        made->user = user;
        made->release = o.release;
        made->seek = o.seek;
        d->calls_user_code = true;
        d->stream = stream ? d : NULL;
        return lg__fields_take(c, op, &d->fields, fields) ? d : lg__object_destroy(d);
}

lg_dataset *lg_dataset_new_with(lg_ctx *c, int64_t size, lg_fields fields, lg_sample_fn *fn, void *user,
                                const lg_source_options *options)
{
        return make(c, "lg_dataset_new", size == STREAM ? -1 : size, &fields, fn, user, options);
}

lg_dataset *lg_dataset_stream_with(lg_ctx *c, lg_fields fields, lg_sample_fn *fn, void *user,
                                   const lg_source_options *options)
{
        return make(c, "lg_dataset_stream", STREAM, &fields, fn, user, options);
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
