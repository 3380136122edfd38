/* scope.c - scopes, which own the results of ops. Each tensor belongs to a scope, the caller or the library. */
#include "tensor/tensor.h"

static lg_scope open_scope(lg_ctx *c, lg__scope *s)
{
        s->parent = c->scope;
        s->id = ++c->scope_ids;
        lg__link_init(&s->tensors);
        c->scope = s;
        return (lg_scope){s->id};
}

lg_scope lg_scope_begin(lg_ctx *c)
{
        lg__scope *s = lg__ok(c) ? lg__alloc(c, sizeof *s) : NULL;
        return s ? open_scope(c, s) : (lg_scope){0};
}

lg_scope lg__scope_enter(lg_ctx *c, lg__scope *s)
{
        s->fence = s->borrowed = true;
        return open_scope(c, s);
}

lg_scope lg__scope_begin(lg_ctx *c)
{
        lg_scope scope = lg_scope_begin(c);
        if (scope.id)
                c->scope->fence = true;
        return scope;
}

void lg__scope_remove(lg_ctx *c, lg__scope *s)
{
        lg__scope **at = &c->scope;
        while (*at != s)
                at = &(*at)->parent;
        *at = s->parent;  /* unlink first, because release functions may end scopes */
        s->parent = NULL; /* nothing may escape to a parent that has ended */
        while (s->tensors.prev != &s->tensors)
                lg__tensor_release((lg_tensor *)s->tensors.prev);
        if (!s->borrowed)
                lg__free(c, s, sizeof *s);
}

void lg__scopes_finish(lg_ctx *c)
{
        while (c->scope)
                lg__scope_remove(c, c->scope);
}

/* Returns the scope if it is open, else NULL. Sets *ret_fenced if a scope inside it is a fence. */
static const lg__scope *find(const lg_ctx *c, lg_scope scope, bool *ret_fenced)
{
        const lg__scope *s = c->scope;
        *ret_fenced = false;
        for (; s && s->id != scope.id; s = s->parent)
                *ret_fenced = *ret_fenced || s->fence;
        return s;
}

bool lg_scope_end(lg_ctx *c, lg_scope scope)
{
        bool fenced = false;
        const lg__scope *s = c ? find(c, scope, &fenced) : NULL;
        if (!s || !s->parent) /* only lg_close() ends the outermost scope, which lg_open() began */
                return lg__fail(c, LG_ERR_STATE, "lg_scope_end: that scope is not open: %s",
                                scope.id ? "it ended with one outside it, or is of another context"
                                         : "its lg_scope_begin failed");
        if (fenced)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_scope_end: a call that began inside that scope has not returned; end it outside "
                                "hooks and own functions");
        while (c->scope && c->scope->id >= scope.id) /* inner scopes have greater ids */
                lg__scope_remove(c, c->scope);
        lg__exports_collect(c, false);
        return true;
}

static bool in_scope(const lg__scope *s, const lg_tensor *t)
{
        for (; s; s = s->parent) {
                if (s == t->scope)
                        return true;
        }
        return false;
}

bool lg__scope_leave(lg_ctx *c, lg_scope scope, const lg__scope *outer, lg_tensor *const *results, int64_t count,
                     uint32_t *ret_new)
{
        uint32_t mine = 0;
        for (int64_t i = 0; i < count; i++) {
                lg_tensor *t = results[i];
                if (t->owner != LG__OWNER_SCOPE || in_scope(outer, t))
                        continue;
                mine |= 1u << i;
                lg__tensor_own(t);
        }
        bool ended = lg_scope_end(c, scope);
        for (int64_t i = 0; i < count; i++)
                if (mine & 1u << i)
                        lg__tensor_disown(results[i]);
        *ret_new = mine;
        return ended && !c->error;
}

lg_tensor *lg_escape(lg_tensor *t)
{
        if (!t || t->live != LG__LIVE)
                return lg__check(t, "lg_escape", "x") ? t : NULL;
        if (t->owner == LG__OWNER_SCOPE && t->scope->parent) {
                lg__link_remove(&t->link);
                t->scope = t->scope->parent;
                lg__link_add(&t->scope->tensors, &t->link);
        }
        return t;
}

static void own_as(lg_tensor *t, lg__owner owner)
{
        lg__link_remove(&t->link);
        t->scope = NULL;
        t->owner = (uint8_t)owner;
        lg__link_add(&t->ctx->owned, &t->link);
}

lg_tensor *lg_keep(lg_tensor *t)
{
        if (!t || t->live != LG__LIVE)
                return lg__check(t, "lg_keep", "x") ? t : NULL;
        if (t->owner == LG__OWNER_SCOPE)
                own_as(t, LG__OWNER_CALLER);
        return t;
}

void lg_free(lg_tensor *t)
{
        if (!t || t->live != LG__LIVE || t->owner == LG__OWNER_LIBRARY || !lg__may_end(t->ctx, "lg_free"))
                return;
        lg_ctx *c = t->ctx;
        lg__tensor_release(t);
        lg__exports_collect(c, true);
}

lg_tensor *lg__tensor_own(lg_tensor *t)
{
        if (t)
                own_as(t, LG__OWNER_LIBRARY);
        return t;
}

#define MANY 10000 /* tensors in the outermost scope: more than a program creates before its loop */

void lg__scope_outermost(lg_ctx *c)
{
        if (++c->outermost_count < MANY || c->outermost_reported || !c->message_fn)
                return;
        c->outermost_reported = true;
        lg__message(c, "10,000 tensors were made in the outermost scope, which frees none of them before lg_close(): "
                       "put the body of the loop between lg_scope_begin() and lg_scope_end(), or use lg_each_batch()");
}

void lg__tensor_disown(lg_tensor *t)
{
        lg__link_remove(&t->link);
        t->owner = LG__OWNER_SCOPE;
        t->scope = t->ctx->scope;
        lg__link_add(&t->scope->tensors, &t->link);
}

int64_t lg_live_tensors(const lg_ctx *c)
{
        return c ? c->live_count : 0;
}
