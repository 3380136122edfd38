/* whole.c - reads a file into memory that grows with what gzip makes of it. */
#include "whole.h"
#include <string.h>
#include "source.h"

#define LEAST 4096

static bool no_room(const lg__source *s)
{
        return lg__fail(s->ctx, LG_ERR_MEMORY, "%s: no memory to read %s", s->who, s->path);
}

static bool grow(const lg__source *s, lg__whole *w)
{
        if (w->room > SIZE_MAX / 4)
                return no_room(s);
        size_t room = 2 * w->room;
        char *data = lg__alloc(s->ctx, room);
        if (!data)
                return false;
        memcpy(data, w->data, w->bytes);
        lg__free(s->ctx, w->data, w->room);
        w->data = data;
        w->room = room;
        return true;
}

/* The memory has one byte more than the file, which shows that the file has ended, and then is zero. */
static bool read_all(const lg__source *s, lg__whole *w)
{
        if (s->file_bytes > PTRDIFF_MAX / 8)
                return no_room(s);
        w->room = s->plain ? (size_t)s->file_bytes + 1 : 4 * (size_t)s->file_bytes + LEAST;
        w->data = lg__alloc(s->ctx, w->room);
        while (w->data) {
                size_t got;
                if (!lg__source_some(s, w->data + w->bytes, w->room - w->bytes, &got))
                        return false;
                w->bytes += got;
                if (w->bytes < w->room) {
                        w->data[w->bytes] = '\0';
                        return true;
                }
                if (!grow(s, w))
                        return false;
        }
        return false;
}

bool lg__whole_read(lg_ctx *c, const char *who, const char *path, lg__whole *ret)
{
        lg__source s = {.ctx = c, .who = who, .path = path};
        lg__whole w = {0};
        if (!lg__ok(c))
                return false;
        if (!path)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the path is NULL", who);
        if (!lg__source_open(&s))
                return false;
        bool ok = read_all(&s, &w);
        lg__source_close(&s);
        if (ok)
                *ret = w;
        else
                lg__whole_free(c, &w);
        return ok;
}

void lg__whole_free(lg_ctx *c, lg__whole *w)
{
        lg__free(c, w->data, w->room);
        *w = (lg__whole){0};
}
