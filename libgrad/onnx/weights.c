/* weights.c - lg_weights: lists the tensors of a safetensors or ONNX file and reads single ones, without a module. */
#include <stdio.h>
#include <stdlib.h>
#include "io/source.h"
#include "model.h"
#include "state/load.h"

/* An open file: of safetensors, or `bytes` with the messages of ONNX. */
struct lg_weights {
        lg__object object;
        lg__weights *file; /* NULL: an ONNX file */
        lg__whole bytes;
        lg__onnx_model model;
        const lg__onnx_tensor **by_name; /* the model's initialisers, sorted by name */
        int64_t meta_count;
        const lg__meta *metas;
};

static void destroy(lg__object *o)
{
        lg_weights *w = (lg_weights *)o;
        lg__weights_close(w->file);
        lg__onnx_model_free(&w->model);
        lg__free(o->ctx, w->bytes.data, (size_t)w->bytes.room);
}

static const lg__type type = {.destroy = destroy};

/* ---- facts about an ONNX file ---- */

static void *room_for(lg__onnx_model *m, int64_t count, size_t bytes)
{
        return lg__arena_get(m->ctx, &m->arena, count, bytes);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp((*(const lg__onnx_tensor *const *)a)->name, (*(const lg__onnx_tensor *const *)b)->name);
}

static bool sort_names(lg_weights *w)
{
        const int64_t n = w->model.initializer_count;
        w->by_name = room_for(&w->model, n, sizeof *w->by_name);
        for (int64_t i = 0; w->by_name && i < n; i++)
                w->by_name[i] = &w->model.initializers[i];
        if (w->by_name)
                qsort(w->by_name, (size_t)n, sizeof *w->by_name, compare_names);
        return w->by_name != NULL;
}

/* Returns the initialiser of that name, or NULL if there is none. */
static const lg__onnx_tensor *find(const lg_weights *w, const char *name)
{
        const lg__onnx_tensor wanted = {.name = name}, *key = &wanted;
        const lg__onnx_tensor **at =
                bsearch(&key, w->by_name, (size_t)w->model.initializer_count, sizeof *w->by_name, compare_names);
        return at ? *at : NULL;
}

static const char *copied(lg__onnx_model *m, const char *text)
{
        char *s = room_for(m, (int64_t)strlen(text) + 1, 1);
        return s ? memcpy(s, text, strlen(text)) : NULL;
}

/* Adds an entry whose key is two words, or one if `name` is empty. Returns false with an error. */
static bool add_meta(lg_weights *w, lg__meta *metas, const char *kind, const char *name, const char *value)
{
        const size_t room = strlen(kind) + strlen(name) + 2;
        char *key = room_for(&w->model, (int64_t)room, 1);
        if (!key)
                return false;
        snprintf(key, room, "%s%s%s", kind, *name ? " " : "", name);
        metas[w->meta_count] = (lg__meta){key, copied(&w->model, value)};
        return metas[w->meta_count++].value != NULL;
}

/* Describes an input or output: its dtype and its shape, in which a dimension without a number has its name or "?". */
static bool add_info(lg_weights *w, lg__meta *metas, const char *kind, const lg__onnx_info *info)
{
        char text[800];
        int n = snprintf(text, sizeof text, "%s%s", info->type ? lg__onnx_type_name(info->type) : "no tensor",
                         info->shape.ndim < 0 ? "" : " (");
        for (int i = 0; i < info->shape.ndim; i++) {
                const char *before = i ? ", " : "";
                const size_t left = sizeof text - (size_t)n;
                if (info->shape.size[i] >= 0)
                        n += snprintf(text + n, left, "%s%lld", before, (long long)info->shape.size[i]);
                else
                        n += snprintf(text + n, left, "%s%.64s", before, info->dims[i] ? info->dims[i] : "?");
        }
        snprintf(text + n, sizeof text - (size_t)n, info->shape.ndim < 0 ? "" : ")");
        return add_meta(w, metas, kind, info->name, text);
}

/* Lists inputs, opset, outputs and producer. Inputs that are initialisers, as in old files, are left out. */
static bool add_metas(lg_weights *w)
{
        lg__onnx_model *m = &w->model;
        char text[200];
        lg__meta *metas = room_for(m, m->input_count + m->output_count + 2, sizeof *metas);
        bool good = metas != NULL;
        w->metas = metas;
        for (int64_t i = 0; good && i < m->input_count; i++)
                good = find(w, m->inputs[i].name) || add_info(w, metas, "input", &m->inputs[i]);
        snprintf(text, sizeof text, "%lld", (long long)m->opset);
        good = good && add_meta(w, metas, "opset", "", text);
        for (int64_t i = 0; good && i < m->output_count; i++)
                good = add_info(w, metas, "output", &m->outputs[i]);
        snprintf(text, sizeof text, "%s %s", m->producer ? m->producer : "",
                 m->producer_version ? m->producer_version : "");
        return good && (!m->producer || add_meta(w, metas, "producer", "", text));
}

/* ---- opening ---- */

static bool open_onnx(lg_weights *w, const char *path)
{
        lg__onnx_model *m = &w->model;
        *m = (lg__onnx_model){.ctx = w->object.ctx, .op = "lg_weights_open", .path = path};
        if (!lg__whole_read(m->ctx, m->op, path, &w->bytes) ||
            !lg__onnx_parse(m, (lg__span){w->bytes.data, w->bytes.bytes}) || !sort_names(w) || !add_metas(w))
                return false;
        m->path = copied(m, path);
        return m->path != NULL;
}

static bool open_safetensors(lg_weights *w, const char *path)
{
        w->file = lg__weights_open(w->object.ctx, "lg_weights_open", path);
        if (!w->file)
                return false;
        w->file->op = "lg_weights_read";
        w->metas = w->file->metas;
        w->meta_count = w->file->meta_count;
        return true;
}

lg_weights *lg_weights_open(lg_ctx *c, const char *path)
{
        const size_t length = path ? strlen(path) : 0;
        const bool onnx = length > 5 && !strcmp(path + length - 5, ".onnx");
        lg_weights *w = lg__ok(c) ? lg__object_new(c, &type, sizeof *w) : NULL;
        if (!w || (onnx ? open_onnx(w, path) : open_safetensors(w, path)))
                return w;
        return lg__object_destroy(w);
}

void lg_weights_close(lg_weights *w)
{
        lg__object_destroy(w);
}

/* ---- tensors and texts ---- */

/* Describes tensor number i. Returns false if there is none. */
static bool weight_at(const lg_weights *w, int64_t i, lg_weight *ret)
{
        if (!w || i < 0 || i >= (w->file ? w->file->count : w->model.initializer_count))
                return false;
        if (w->file) {
                const lg__weight *e = &w->file->entries[i];
                *ret = (lg_weight){e->name, e->dtype_name, e->dtype, e->shape, e->end - e->begin};
        } else {
                const lg__onnx_tensor *t = &w->model.initializers[i];
                const lg_dtype dtype = lg__onnx_dtype(t->type);
                const int64_t bytes = dtype ? lg__shape_numel(t->shape) * (int64_t)lg_dtype_size(dtype) : 0;
                *ret = (lg_weight){t->name, dtype ? lg__weight_dtype_name(dtype) : lg__onnx_type_name(t->type), dtype,
                                   t->shape, bytes};
        }
        return true;
}

bool lg_weights_at_with(const lg_weights *w, int64_t i, lg_weight *ret, size_t size)
{
        lg_weight all;
        if (!weight_at(w, i, &all))
                return false;
        if (!ret)
                return lg__fail(w->object.ctx, LG_ERR_ARGUMENT, "lg_weights_at: ret is NULL");
        lg__give(ret, size, &all, sizeof all);
        return true;
}

static lg_tensor *read_safetensors(lg_weights *w, const lg__weight *e)
{
        if (e->dtype == LG_DTYPE_NONE && !lg__weights_read(w->file, e, NULL)) /* sets the error for the dtype */
                return NULL;
        return lg__weight_tensor(w->file, e, e->dtype, lg_default_device(w->object.ctx));
}

static lg_tensor *read_onnx(lg_weights *w, const lg__onnx_tensor *e)
{
        lg_ctx *c = w->object.ctx;
        w->model.op = "lg_weights_read";
        lg_tensor *host = lg__onnx_tensor_of(&w->model, e), *t = lg_to(host, lg_default_device(c));
        if (t != host)
                lg_free(host);
        return t;
}

lg_tensor *lg_weights_read(lg_weights *w, const char *name)
{
        lg_ctx *c = w ? w->object.ctx : NULL;
        if (!lg__ok(c) || !lg__unrecorded(c, "lg_weights_read"))
                return NULL;
        if (!name)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_weights_read: the name is NULL");
        const lg__weight *e = w->file ? lg__weights_find(w->file, name) : NULL;
        const lg__onnx_tensor *t = w->file ? NULL : find(w, name);
        if (e || t)
                return e ? read_safetensors(w, e) : read_onnx(w, t);
        lg__near near = {.name = name};
        lg_weight other;
        for (int64_t i = 0; weight_at(w, i, &other); i++)
                lg__near_offer(&near, other.name);
        return lg__fail(c, LG_ERR_ARGUMENT, "lg_weights_read: %s has no tensor \"%.200s\"%s",
                        w->file ? w->file->path : w->model.path, name, lg__near_words(&near));
}

bool lg_weights_metadata(const lg_weights *w, int64_t i, const char **ret_key, const char **ret_value)
{
        if (!w || i < 0 || i >= w->meta_count)
                return false;
        if (!ret_key || !ret_value)
                return lg__fail(w->object.ctx, LG_ERR_ARGUMENT, "lg_weights_metadata: %s is NULL",
                                ret_key ? "ret_value" : "ret_key");
        *ret_key = w->metas[i].key;
        *ret_value = w->metas[i].value;
        return true;
}
