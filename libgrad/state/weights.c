/* weights.c - lg_weights: lists the contents of a file of weights and reads single tensors, without a module. */
#include "load.h"

struct lg_weights {
        lg__object object;
        lg__weights *file;
};

static void destroy(lg__object *o)
{
        lg__weights_close(((lg_weights *)o)->file);
}

static const lg__type type = {.destroy = destroy};

lg_weights *lg_weights_open(lg_ctx *c, const char *path)
{
        lg__weights *file = lg__weights_open(c, "lg_weights_open", path);
        lg_weights *w = file ? lg__object_new(c, &type, sizeof *w) : NULL;
        if (!w) {
                lg__weights_close(file);
                return NULL;
        }
        file->op = "lg_weights_read";
        w->file = file;
        return w;
}

void lg_weights_close(lg_weights *w)
{
        lg__object_destroy(w);
}

bool lg_weights_at_with(const lg_weights *w, int64_t i, lg_weight *ret, size_t size)
{
        if (!w || i < 0 || i >= w->file->count)
                return false;
        const lg__weight *e = &w->file->entries[i];
        if (!ret)
                return lg__fail(w->object.ctx, LG_ERR_ARGUMENT, "lg_weights_at: ret is NULL");
        const lg_weight all = {e->name, e->dtype_name, e->dtype, e->shape, e->end - e->begin};
        lg__give(ret, size, &all, sizeof all);
        return true;
}

lg_tensor *lg_weights_read(lg_weights *w, const char *name)
{
        lg_ctx *c = w ? w->object.ctx : NULL;
        if (!lg__ok(c))
                return NULL;
        if (!name)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_weights_read: the name is NULL");
        const lg__weight *e = lg__weights_find(w->file, name);
        if (!e) {
                lg__near near = {.name = name};
                for (int64_t i = 0; i < w->file->count; i++)
                        lg__near_offer(&near, w->file->entries[i].name);
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_weights_read: %s has no tensor \"%.200s\"%s", w->file->path,
                                name, lg__near_words(&near));
        }
        if (e->dtype == LG_DTYPE_NONE && !lg__weights_read(w->file, e, NULL)) /* sets the error for the dtype */
                return NULL;
        return lg__weight_tensor(w->file, e, e->dtype, lg_default_device(c));
}

bool lg_weights_metadata(const lg_weights *w, int64_t i, const char **ret_key, const char **ret_value)
{
        if (!w || i < 0 || i >= w->file->meta_count)
                return false;
        if (!ret_key || !ret_value)
                return lg__fail(w->object.ctx, LG_ERR_ARGUMENT, "lg_weights_metadata: %s is NULL",
                                ret_key ? "ret_value" : "ret_key");
        *ret_key = w->file->metas[i].key;
        *ret_value = w->file->metas[i].value;
        return true;
}
