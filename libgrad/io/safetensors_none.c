/* safetensors_none.c - where libgrad is built without cJSON, no weights are read or written. */
#include "safetensors.h"

static void *refuse(lg_ctx *c, const char *op)
{
        return lg__fail(c, LG_ERR_STATE, "%s: " LG__BUILT_WITHOUT("cJSON", "libcjson-dev"), op);
}

lg__weights *lg__weights_open(lg_ctx *c, const char *op, const char *path)
{
        (void)path;
        return refuse(c, op);
}

void lg__weights_close(lg__weights *w)
{
        (void)w;
}

const lg__weight *lg__weights_find(const lg__weights *w, const char *name)
{
        (void)w, (void)name;
        return NULL;
}

const char *lg__weights_meta(const lg__weights *w, const char *key)
{
        (void)w, (void)key;
        return NULL;
}

bool lg__weights_read_part(lg__weights *w, const lg__weight *e, int64_t at, void *to, int64_t bytes)
{
        (void)e, (void)at, (void)to, (void)bytes;
        return refuse(w->ctx, w->op);
}

bool lg__weights_save(lg_ctx *c, const char *op, const char *path, const lg__weight_out *entries, int64_t count,
                      const lg__meta *meta, int64_t metas)
{
        (void)path, (void)entries, (void)count, (void)meta, (void)metas;
        return refuse(c, op);
}
