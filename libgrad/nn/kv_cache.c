/* kv_cache.c - caches of the keys and values that attentions have computed for past positions. */
#include "attention.h"

/* Keys and values that the cache has for one attention module; module is NULL after that module was freed. */
typedef struct entry {
        lg__weak module;
        lg_tensor *k, *v; /* (batch, kv_heads, capacity, elements), owned; NULL until the attention runs */
        int64_t length;
} entry;

struct lg_kv_cache {
        lg__object object;
        int64_t batch, capacity, count;
        lg_dtype dtype; /* 0: that of the keys */
        entry *entries;
};

static void destroy(lg__object *o)
{
        lg_kv_cache *k = (lg_kv_cache *)o;
        for (int64_t i = 0; i < k->count; i++) {
                lg__weak_set(&k->entries[i].module, NULL);
                lg__tensor_release(k->entries[i].k);
                lg__tensor_release(k->entries[i].v);
        }
        lg__free(o->ctx, k->entries, (size_t)k->count * sizeof *k->entries);
}

static const lg__type type = {.destroy = destroy};

lg_kv_cache *lg_kv_cache_new_with(lg_module *m, int64_t batch, int64_t capacity, const lg_kv_cache_options *options)
{
        static const char op[] = "lg_kv_cache_new";
        lg_ctx *c = lg_module_ctx(m);
        lg_kv_cache_options o;
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__object_lasts(&m->object, op))
                return NULL;
        if (batch < 1 || capacity < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: batch is %lld and capacity %lld; both must be 1 or more", op,
                                (long long)batch, (long long)capacity);
        if (o.dtype && !lg__dtype_float(o.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: dtype %s; keys and values are floats", op,
                                lg_dtype_name(o.dtype));
        int64_t count = 0;
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                count += lg__is_attention(inner);
        if (!count)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the %s contains no MultiheadAttention", op, m->type);
        lg_kv_cache *k = lg__object_new(c, &type, sizeof *k);
        if (!k)
                return NULL;
        k->entries = lg__alloc(c, (size_t)count * sizeof *k->entries);
        if (!k->entries)
                return lg__object_destroy(k);
        k->batch = batch;
        k->capacity = capacity;
        k->dtype = o.dtype;
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                if (lg__is_attention(inner))
                        lg__weak_set(&k->entries[k->count++].module, &inner->object);
        return k;
}

void lg_kv_cache_free(lg_kv_cache *k)
{
        if (k && lg__may_end(k->object.ctx, "lg_kv_cache_free"))
                lg__object_destroy(k);
}

int64_t lg_kv_cache_length(const lg_kv_cache *k)
{
        for (int64_t i = 0; k && i < k->count; i++)
                if (k->entries[i].length)
                        return k->entries[i].length;
        return 0;
}

bool lg_kv_cache_reset(lg_kv_cache *k)
{
        if (!k || !lg__ok(k->object.ctx) || !lg__unrecorded(k->object.ctx, "lg_kv_cache_reset"))
                return false;
        for (int64_t i = 0; i < k->count; i++)
                k->entries[i].length = 0;
        return true;
}

static entry *entry_of(const lg_kv_cache *k, const lg_module *m)
{
        for (int64_t i = 0; i < k->count; i++)
                if (k->entries[i].module.object == &m->object)
                        return &k->entries[i];
        return NULL;
}

bool lg__kv_cache_holds(const lg_kv_cache *k, const lg_module *m)
{
        const entry *e = entry_of(k, m);
        return e && e->length;
}

/* Replaces *held by a selection of its samples. */
static bool select_samples(lg_tensor *held, int64_t length, lg_tensor *index)
{
        lg_tensor *filled = lg_slice(held, 2, 0, length);
        return filled && lg_copy_(filled, lg_index_select(filled, 0, index));
}

bool lg_kv_cache_select(lg_kv_cache *k, lg_tensor *index)
{
        static const char op[] = "lg_kv_cache_select";
        lg_ctx *c = k ? k->object.ctx : NULL;
        if (lg__ok(c) && !index)
                lg__fail(c, LG_ERR_ARGUMENT, "%s: index is NULL", op);
        if (!lg__ok(c) || !lg__unrecorded(c, op) || !lg__in_context(c, index, op, "index") ||
            !lg__check(index, op, "index"))
                return false;
        if (!lg__shape_equal(index->at.shape, LG_SHAPE(k->batch)))
                return lg__fail(c, LG_ERR_SHAPE, "%s: index is %s; it has a sample for each of %lld", op,
                                lg__tensor_text(index).s, (long long)k->batch);
        lg_scope scope = lg__scope_begin(c);
        const bool recording = lg_set_grad_mode(c, false);
        bool ok = scope.id != 0;
        for (int64_t i = 0; i < k->count && ok; i++) {
                const entry *e = &k->entries[i];
                ok = !e->length || (select_samples(e->k, e->length, index) && select_samples(e->v, e->length, index));
        }
        lg_set_grad_mode(c, recording);
        lg_scope_end(c, scope);
        return ok && lg__ok(c);
}

/* Makes the memory for entries like x (batch, kv_heads, S, elements). */
static lg_tensor *make_room(const lg_kv_cache *k, const lg_tensor *x)
{
        lg_shape s = x->at.shape;
        s.size[2] = k->capacity;
        lg_tensor *t =
                lg_zeros(x->ctx, s, .dtype = k->dtype ? k->dtype : x->at.dtype, .device = x->storage->device->id);
        return t ? lg__tensor_own(t) : NULL;
}

static bool append(const lg_kv_cache *k, entry *e, lg_tensor *keys, lg_tensor *values)
{
        lg_ctx *c = k->object.ctx;
        const int64_t *n = keys->at.shape.size, end = e->length + n[2];
        if (n[0] != k->batch)
                return lg__fail(c, LG_ERR_SHAPE, "lg_run_attention: the batch has %lld samples, but the cache %lld",
                                (long long)n[0], (long long)k->batch);
        if (end > k->capacity)
                return lg__fail(
                        c, LG_ERR_STATE,
                        "lg_run_attention: the cache is full: it holds %lld of %lld positions, and %lld more do "
                        "not fit",
                        (long long)e->length, (long long)k->capacity, (long long)n[2]);
        if ((!e->k && !(e->k = make_room(k, keys))) || (!e->v && !(e->v = make_room(k, values))) ||
            !lg_copy_(lg_slice(e->k, 2, e->length, end), keys) || !lg_copy_(lg_slice(e->v, 2, e->length, end), values))
                return false;
        e->length = end;
        return true;
}

bool lg__kv_cache_extend(lg_kv_cache *k, const lg_module *m, lg_tensor *heads[3], int64_t *ret_past)
{
        lg_ctx *c = m->object.ctx;
        entry *e = entry_of(k, m);
        if (!e)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_run_attention: the cache was made for a module that does not "
                                "contain this attention");
        if (c->recording)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_run_attention: a cache changes in place, which gradients cannot "
                                "follow; use it under lg_no_grad()");
        if (!lg__unrecorded(c, "lg_run_attention with a cache"))
                return false;
        *ret_past = e->length;
        if (heads[1] && !append(k, e, heads[1], heads[2]))
                return false;
        if (!e->k)
                return lg__fail(c, LG_ERR_STATE, "lg_run_attention: k and v are NULL, but the cache holds none either");
        heads[1] = lg_cast(lg_slice(e->k, 2, 0, e->length), heads[0]->at.dtype);
        heads[2] = lg_cast(lg_slice(e->v, 2, 0, e->length), heads[0]->at.dtype);
        return heads[1] && heads[2];
}
