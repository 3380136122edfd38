/* module.c - the module record: creation, adding children, parameters and buffers, training mode, destruction. */
#include <string.h>
#include "core/tape.h"
#include "nn.h"
#include "state/entries.h"

#define NAME_MAX_LENGTH 63

/* ---- creation and destruction ---- */

void lg__module_seen(lg_module *m)
{
        lg__tape_watch(m->object.ctx, &m->object, &m->changes, sizeof m->changes);
        lg__tape_watch(m->object.ctx, &m->object, &m->training, sizeof m->training);
}

static void forget_list(lg_module *m)
{
        lg_ctx *c = m->object.ctx;
        m->changes++;
        while (m->listings) {
                lg__listing *l = m->listings;
                m->listings = l->next;
                lg__free(c, l->items, (size_t)l->count * sizeof *l->items);
                lg__strfree(c, l->pattern);
                lg__free(c, l, sizeof *l);
        }
}

void lg__module_remove(lg_module *m, lg__part *p)
{
        lg__part **at = &m->parts;
        while (*at != p)
                at = &(*at)->next;
        *at = p->next;
        if (!p->next)
                m->end = at;
        for (lg_module *outer = m; outer; outer = outer->parent)
                forget_list(outer);
        lg__tensor_release(p->tensor);
        if (p->child)
                lg__object_destroy(p->child);
        lg__strfree(m->object.ctx, p->name);
        lg__free(m->object.ctx, p, sizeof *p);
}

static void destroy(lg__object *o)
{
        lg_module *m = (lg_module *)o;
        if (m->parallel)
                m->parallel->free(m->parallel);
        while (m->parts)
                lg__module_remove(m, m->parts);
        forget_list(m); /* after the parts, in which release functions may call lg_parameters() */
        lg__release(o->ctx, m->release, m->user);
        lg__free(o->ctx, m->config, m->config_bytes);
        lg__strfree(o->ctx, m->type);
}

static bool has_its_own(const lg_module *m, const char *op)
{
        return !m->replaced ||
               lg__fail(m->object.ctx, LG_ERR_STATE,
                        "%s: lg_forward_params runs the %s; call it when that has returned", op, m->type);
}

static bool visit(lg__object *o, lg__state_entries *list)
{
        lg_module *m = (lg_module *)o;
        const unsigned buffers = m->counts_batches ? LG__ENTRY_WIDE : 0, weights = m->convolves ? LG__ENTRY_KERNEL : 0;
        bool ok = has_its_own(m, list->op);
        for (lg__part *p = m->parts; p && ok; p = p->next)
                ok = p->kind == LG__COMPUTED ? ok
                     : p->child              ? lg__state_add_object(list, p->name, &p->child->object)
                                             : lg__state_add_tensor(list, p->name, &p->tensor,
                                                       p->kind == LG__BUFFER ? buffers : weights);
        return ok && (!m->counts_batches || lg__state_add_count(list, "num_batches_tracked", &m->batches));
}

static const lg__type type_of_modules = {.destroy = destroy, .visit = visit};

lg_module *lg__module_new(lg_ctx *c, const char *type, lg_forward_fn *forward)
{
        lg_module *m = lg__object_new(c, &type_of_modules, sizeof *m);
        if (!m)
                return NULL;
        m->type = lg__strdup(c, type);
        m->forward = forward;
        m->training = true;
        m->levels = 1;
        m->end = &m->parts;
        return m->type ? m : lg__object_destroy(m);
}

lg_module *lg__module_give_up(lg_module *m)
{
        for (lg__part *p = m->parts; p; p = p->next) {
                if (!p->child)
                        continue;
                p->child->parent = NULL;
                p->child->part = NULL;
                lg__link_add(&m->object.ctx->objects, &p->child->object.link);
                p->child = NULL;
        }
        return lg__object_destroy(m);
}

lg_module *lg_nn_module_with(lg_ctx *c, const char *type, const lg_module_options *options)
{
        lg_module_options o;
        lg_module *m = NULL;
        const bool known = lg__take_without(options, &o, sizeof o);
        if (lg__ok(c) && (!type || !*type))
                lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_module: the type's name is %s", type ? "empty" : "NULL");
        else if (lg__ok(c) && known && o.forward && o.forward_all)
                lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_module: %s has both .forward and .forward_all; give one", type);
        else if (lg__take(c, "lg_nn_module", options, &o, sizeof o))
                m = lg__module_new(c, type, o.forward);
        if (m) {
                m->forward_all = o.forward_all;
                m->user = o.user;
                m->release = o.release;
                m->clone = o.clone;
        } else {
                lg__release(c, o.release, o.user);
        }
        return m;
}

void lg__module_hold(lg_module *m)
{
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                inner->held = 1 + inner->training;
}

void lg__module_unhold(lg_module *m)
{
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m)) {
                inner->training = inner->held ? inner->held > 1 : inner->training;
                inner->held = 0;
        }
}

/* Returns whether a forward or a visit of m or of a module in it has not returned. */
static bool is_running(const lg_module *m)
{
        const lg_ctx *c = m->object.ctx;
        bool running = false;
        for (const lg_module *inner = c->frame || c->user_calls || c->watchers ? m : NULL; inner;
             inner = lg__module_next(inner, m))
                running = running || inner->running || inner->held;
        return running;
}

bool lg__module_is_whole(const lg_module *m, const char *op)
{
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                if (!has_its_own(inner, op))
                        return false;
        return true;
}

void lg_module_free(lg_module *m)
{
        if (m && m->parent)
                lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                         "lg_module_free: the %s belongs to a %s as \"%s\" and is freed with it", m->type,
                         m->parent->type, m->part->name);
        else if (m && is_running(m))
                lg__fail(m->object.ctx, LG_ERR_STATE,
                         "lg_module_free: the %s or a module in it is running; free it when the call has returned",
                         m->type);
        else if (m && lg__may_end(m->object.ctx, "lg_module_free"))
                lg__object_destroy(m);
}

/* ---- parts ---- */

lg__part *lg__module_part(const lg_module *m, const char *name, size_t length, int kinds)
{
        for (lg__part *p = m->parts; p; p = p->next) {
                if ((p->kind & kinds) && strlen(p->name) == length && !memcmp(p->name, name, length))
                        return p;
        }
        return NULL;
}

static bool name_is_good(const lg_module *m, const char *name, const char *op)
{
        lg_ctx *c = m->object.ctx;
        if (!lg__object_lasts(&m->object, op))
                return false;
        if (!name || !*name)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the name is %s", op, name ? "empty" : "NULL");
        if (strchr(name, '.') || strlen(name) > NAME_MAX_LENGTH)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the name \"%.80s\" %s", op, name,
                                strchr(name, '.') ? "has a dot in it" : "is longer than 63 bytes");
        if (lg__module_part(m, name, strlen(name), LG__PARAMETER | LG__BUFFER | LG__CHILD | LG__COMPUTED))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: this %s has \"%s\" already", op, m->type, name);
        return true;
}

/* Appends a part to m, and frees the cached parameter lists of m and of the modules around it. NULL: no memory. */
static lg__part *add_part(lg_module *m, lg__part_kind kind, const char *name)
{
        lg_ctx *c = m->object.ctx;
        lg__part *p = lg__alloc(c, sizeof *p);
        if (!p)
                return NULL;
        p->kind = kind;
        p->name = lg__strdup(c, name);
        if (!p->name) {
                lg__free(c, p, sizeof *p);
                return NULL;
        }
        *m->end = p;
        m->end = &p->next;
        for (lg_module *outer = m; outer; outer = outer->parent)
                forget_list(outer);
        return p;
}

lg__part *lg__module_add_computed(lg_module *m, const char *name)
{
        return add_part(m, LG__COMPUTED, name);
}

lg_module *lg__parametrizations_of(const lg_module *m, const char *name)
{
        const lg__part *all = lg__module_part(m, "parametrizations", strlen("parametrizations"), LG__CHILD);
        const lg__part *p = all ? lg__module_part(all->child, name, strlen(name), LG__CHILD) : NULL;
        return p ? p->child : NULL;
}

/* Checks that `child` can become a child of m under that name. */
static bool child_is_good(const lg_module *m, const char *name, const lg_module *child, const char *op)
{
        lg_ctx *c = m->object.ctx;
        name = name ? name : "";
        if (!child)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the child \"%s\" is NULL", op, name);
        if (child->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the child \"%s\" is of another context", op, name);
        if (!lg__object_lasts(&child->object, op))
                return false;
        if (child->parent)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the child \"%s\" (%s) belongs to a %s already, as \"%s\"", op,
                                name, child->type, child->parent->type, child->part->name);
        if (child->copied)
                return lg__fail(c, LG_ERR_STATE, "%s: the child \"%s\" (%s) is a copy that its .clone is making", op,
                                name, child->type);
        int levels = child->levels;
        for (const lg_module *outer = m; outer; outer = outer->parent, levels++) {
                if (outer == child)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: the %s \"%s\" would be inside itself", op, child->type,
                                        name);
        }
        return levels <= LG_MAX_MODULE_DEPTH ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: with the child \"%s\" (%s), modules nest more than %d levels deep", op,
                        name, child->type, LG_MAX_MODULE_DEPTH);
}

/* Makes `child` the child of m in part p. The levels of modules around it follow; those of a module that was replaced
 * may have been more. */
static void set_child(lg_module *m, lg__part *p, lg_module *child)
{
        p->child = child;
        child->parent = m;
        child->part = p;
        lg__link_remove(&child->object.link);
        for (lg_module *outer = m; outer; outer = outer->parent) {
                outer->levels = 1;
                for (const lg__part *q = outer->parts; q; q = q->next)
                        if (q->child && q->child->levels >= outer->levels)
                                outer->levels = q->child->levels + 1;
        }
}

bool lg__module_attach(lg_module *m, const char *name, lg_module *child, const char *op)
{
        lg__part *p =
                child_is_good(m, name, child, op) && name_is_good(m, name, op) ? add_part(m, LG__CHILD, name) : NULL;
        if (p)
                set_child(m, p, child);
        return p;
}

bool lg__module_exchange(lg__part *p, lg_module *child, const char *op)
{
        lg_module *old = p->child, *m = old->parent, *root = m;
        if (!child_is_good(m, p->name, child, op) || !lg__module_is_whole(m, op) || !lg__may_end(m->object.ctx, op))
                return false;
        while (root->parent)
                root = root->parent;
        if (is_running(root))
                return lg__fail(m->object.ctx, LG_ERR_STATE, "%s: the %s around \"%s\" or a module in it is running",
                                op, root->type, p->name);
        for (lg_module *outer = m; outer; outer = outer->parent)
                forget_list(outer);
        old->parent = NULL;
        old->part = NULL;
        set_child(m, p, child);
        lg__object_destroy(old);
        return true;
}

lg_module *lg_module_add(lg_module *m, const char *name, lg_module *child)
{
        if (!m || m->object.ctx->error)
                return NULL;
        return lg__module_attach(m, name, child, "lg_module_add") ? child : NULL;
}

/* Returns whether m can take over t, a leaf that fills its own storage and has no module, or sets an error. */
static bool tensor_is_good(const lg_module *m, const char *name, const lg_tensor *t, const char *op)
{
        lg_ctx *c = m->object.ctx;
        if (!t)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the tensor \"%s\" is NULL", op, name);
        if (t->ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the tensor \"%s\" is of another context", op, name);
        if (!lg__check(t, op, name))
                return false;
        if (t->owner == LG__OWNER_LIBRARY)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the tensor \"%s\" belongs to a module already", op, name);
        if (t->node && t->node->op)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: \"%s\" is a result in the graph; give a leaf: lg_copy() it "
                                "under lg_no_grad",
                                op, name);
        const bool whole = lg__layout_is_contiguous(&t->at) || (m->convolves && lg__lies_last(t));
        if (!whole || (size_t)lg__shape_numel(t->at.shape) * lg__dtype_bytes(t->at.dtype) != t->storage->bytes)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: \"%s\" is a view of other values; lg_copy() it", op, name);
        return true;
}

static lg_tensor *take(lg_module *m, const char *name, lg_tensor *t, lg__part_kind kind, const char *op)
{
        lg_ctx *c = m ? m->object.ctx : NULL;
        if (!lg__ok(c) || !name_is_good(m, name, op) || !tensor_is_good(m, name, t, op))
                return NULL;
        if (kind == LG__PARAMETER && !lg__dtype_float(t->at.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: \"%s\" is %s; parameters are floats", op, name,
                                lg__tensor_text(t).s);
        if (kind == LG__BUFFER && t->node)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: \"%s\" requires grad; a buffer does not", op, name);
        if (kind == LG__PARAMETER && !lg__leaf_node(t))
                return NULL;
        lg__part *p = add_part(m, kind, name);
        if (!p)
                return NULL;
        return p->tensor = lg__tensor_own(t);
}

lg_tensor *lg_module_add_parameter(lg_module *m, const char *name, lg_tensor *t)
{
        return take(m, name, t, LG__PARAMETER, "lg_module_add_parameter");
}

lg_tensor *lg_module_add_buffer(lg_module *m, const char *name, lg_tensor *t)
{
        return take(m, name, t, LG__BUFFER, "lg_module_add_buffer");
}

/* ---- properties ---- */

void lg_train(lg_module *m, bool on)
{
        if (!m || m->object.ctx->error)
                return;
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                inner->training = on;
}

bool lg_is_training(const lg_module *m)
{
        if (m)
                lg__module_seen((lg_module *)(uintptr_t)m);
        return m && m->training;
}

const char *lg_module_type(const lg_module *m)
{
        return m ? m->type : NULL;
}

lg_ctx *lg_module_ctx(const lg_module *m)
{
        return m ? m->object.ctx : NULL;
}
