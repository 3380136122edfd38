/* lora.c - low-rank adapters of Linear modules: y = x W^T + b + scale (dropout(x) A^T) B^T.
 *
 * The module stays in its place and keeps its parts. Its forward is another one, with the options as its config, and
 * it has the children lora_A and lora_B, Linear modules without bias.
 */
#include "lora.h"
#include <math.h>
#include <string.h>

static lg_module *adapter(const lg_module *m, int which)
{
        lg__part *p = lg__module_part(m, which ? "lora_B" : "lora_A", strlen("lora_A"), LG__CHILD);
        return p ? p->child : NULL;
}

static double scale_of(const lg__lora *o)
{
        return o->alpha / (o->use_rslora ? sqrt((double)o->rank) : (double)o->rank);
}

static lg_tensor *forward_lora(lg_module *m, lg_list inputs, void *user)
{
        const lg__lora *o = user;
        lg_tensor *x = lg__module_input(m, inputs);
        lg_tensor *y = x ? lg_linear(x, m->parts->tensor, lg__module_tensor(m, "bias")) : NULL;
        if (!y)
                return NULL;
        const lg_dtype dtype = lg__lora_weight(m, 0)->at.dtype;
        lg_tensor *h = x->at.dtype == dtype || m->object.ctx->autocast ? x : lg_cast(x, dtype);
        if (o->dropout > 0)
                h = lg_dropout(h, o->dropout, .training = m->training);
        h = lg_mul_scalar(lg_forward(adapter(m, 0), h), scale_of(o));
        h = lg_forward(adapter(m, 1), h);
        return h ? lg_add(y, h->at.dtype == y->at.dtype ? h : lg_cast(h, y->at.dtype)) : NULL;
}

lg__lora *lg__lora_of(const lg_module *m)
{
        return m->forward == forward_lora ? m->config : NULL;
}

lg_tensor *lg__lora_weight(const lg_module *m, int which)
{
        return adapter(m, which)->parts->tensor;
}

lg_module *lg__lora_next(lg_module *root, lg_module *at)
{
        lg_module *m = at ? lg__module_next(at, root) : root;
        while (m && !lg__lora_of(m) &&
               (m->forward_epilogue != lg__linear_forward || (m->parent && lg__lora_of(m->parent))))
                m = lg__module_next(m, root);
        return m;
}

const char *lg__lora_path(const lg_module *root, const lg_module *m, char text[LG__PATH])
{
        return m == root ? "" : lg__module_path_in(root, m, text);
}

const char *lg__lora_names(lg_module *root, char text[256])
{
        char path[LG__PATH];
        int used = 0;
        for (lg_module *m = lg__lora_next(root, NULL); m; m = lg__lora_next(root, m)) {
                const char *name = lg__lora_path(root, m, path);
                if (used + strlen(name) > 220) {
                        strcpy(text + used, ", ...");
                        break;
                }
                used += sprintf(text + used, "%s\"%s\"", used ? ", " : "; Linear modules are ", name);
        }
        return used ? text : "; there are no Linear modules";
}

/* ---- adding and removing ---- */

/* Returns whether the parts of m may change; if not, sets an error. */
static bool is_idle(const lg_module *root, const lg_module *m, const char *op)
{
        char path[LG__PATH];
        const lg_module *a = adapter(m, 0), *b = adapter(m, 1);
        return (!root->running && !m->running && !m->held && !(a && a->running) && !(b && b->running)) ||
               lg__fail(m->object.ctx, LG_ERR_STATE, "%s: \"%s\" is running", op, lg__lora_path(root, m, path));
}

bool lg__lora_fits(const lg_module *root, lg_module *m, const char *op)
{
        lg_ctx *c = m->object.ctx;
        char path[LG__PATH];
        const char *name = lg__lora_path(root, m, path);
        if (lg__lora_of(m))
                return lg__fail(c, LG_ERR_STATE, "%s: \"%s\" has an adapter already", op, name);
        if (m->parts->kind != LG__PARAMETER)
                return lg__fail(c, LG_ERR_STATE, "%s: the weight of \"%s\" has parametrizations", op, name);
        if (adapter(m, 0) || adapter(m, 1))
                return lg__fail(c, LG_ERR_STATE, "%s: \"%s\" has a child lora_A or lora_B that is not an adapter", op,
                                name);
        return is_idle(root, m, op);
}

/* Frees the adapter of m, or what there is of it, and makes m a plain Linear module. */
static void remove_adapter(lg_module *m)
{
        for (int i = 0; i < 2; i++)
                if (adapter(m, i))
                        lg__module_remove(m, adapter(m, i)->part);
        if (lg__lora_of(m)) {
                lg__free(m->object.ctx, m->config, m->config_bytes);
                m->config = m->user = NULL;
                m->config_bytes = 0;
                m->forward = NULL;
                lg__module_set_epilogues(m, lg__linear_forward, LG__EPILOGUE_RELU);
        }
}

/* Adds the children of an adapter, whose B is zero. Returns false with an error. */
static bool add_children(lg_module *m, int64_t rank, const char *op)
{
        const lg_tensor *w = m->parts->tensor;
        const lg_dtype dtype = w->at.dtype == LG_F64 ? LG_F64 : LG_F32;
        for (int i = 0; i < 2; i++) {
                lg_module *child =
                        lg_nn_linear(m->object.ctx, i ? rank : w->at.shape.size[1], i ? w->at.shape.size[0] : rank,
                                     .no_bias = true, .dtype = dtype, .device = w->storage->device->id);
                if (!child || (i && !lg_init_constant(child->parts->tensor, 0)) ||
                    !lg__module_attach(m, i ? "lora_B" : "lora_A", child, op)) {
                        lg__object_destroy(child);
                        return false;
                }
                child->training = m->training;
        }
        return true;
}

bool lg__lora_add(lg_module *m, const lg__lora *options, const char *op)
{
        lg_ctx *c = m->object.ctx;
        lg__lora *config = lg__alloc(c, sizeof *config);
        if (!config)
                return false;
        if (!add_children(m, options->rank, op)) {
                remove_adapter(m);
                lg__free(c, config, sizeof *config);
                return false;
        }
        *config = *options;
        config->is_new = true;
        m->config = m->user = config;
        m->config_bytes = sizeof *config;
        m->forward = forward_lora;
        lg__module_set_epilogues(m, NULL, 0);
        return true;
}

bool lg__lora_end(lg_module *root, bool ok)
{
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                lg__lora *o = lg__lora_of(m);
                if (o && o->is_new && !ok)
                        remove_adapter(m);
                else if (o)
                        o->is_new = false;
        }
        for (lg_module *m = root; ok && m; m = lg__module_next(m, root))
                for (lg__part *p = m->parts; ok && p; p = p->next)
                        if (p->kind == LG__PARAMETER && !(m->parent && lg__lora_of(m->parent)))
                                ok = lg_set_requires_grad(p->tensor, false);
        return ok;
}

static bool options_are_good(lg_ctx *c, int64_t rank, const lg_lora_options *o)
{
        if (rank < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_lora: the rank is %lld; it is 1 or more", (long long)rank);
        if (!isfinite(o->alpha))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_lora: .alpha is %g", o->alpha);
        return (o->dropout >= 0 && o->dropout < 1) ||
               lg__fail(c, LG_ERR_ARGUMENT, "lg_lora: .dropout is %g; it is in [0, 1)", o->dropout);
}

/* Sets the error for a pattern that no Linear module matches. */
static bool fail_unmatched(lg_module *root, const char *pattern)
{
        char path[LG__PATH], names[256];
        const lg_module *other = root;
        while (other && (other == root || !lg__path_matches(pattern, lg__lora_path(root, other, path))))
                other = lg__module_next(other, root);
        if (other)
                return lg__fail(root->object.ctx, LG_ERR_ARGUMENT,
                                "lg_lora: \"%.100s\" matches \"%.200s\", a %s, but no Linear module%s", pattern, path,
                                other->type, lg__lora_names(root, names));
        return lg__fail(root->object.ctx, LG_ERR_ARGUMENT, "lg_lora: \"%.100s\" matches no Linear module%s", pattern,
                        lg__lora_names(root, names));
}

int64_t lg_lora_with(lg_module *m, const char *pattern, int64_t rank, const lg_lora_options *options)
{
        const char *op = "lg_lora";
        char path[LG__PATH];
        lg_lora_options o;
        lg_ctx *c = lg_module_ctx(m);
        if (!lg__take(c, op, options, &o, sizeof o) || !lg__object_lasts(&m->object, op) || !lg__module_is_whole(m, op))
                return 0;
        o.alpha = lg__option(o.alpha, 8);
        o.dropout = lg__option(o.dropout, 0);
        if (!options_are_good(c, rank, &o) ||
            (!pattern && !lg__fail(c, LG_ERR_ARGUMENT, "%s: the pattern is NULL", op)))
                return 0;
        const lg__lora made = {.rank = rank, .alpha = o.alpha, .dropout = o.dropout, .use_rslora = o.use_rslora};
        const lg_random_state state = c->random;
        int64_t count = 0;
        bool ok = true;
        for (lg_module *at = lg__lora_next(m, NULL); ok && at; at = lg__lora_next(m, at))
                if (lg__path_matches(pattern, lg__lora_path(m, at, path))) {
                        ok = lg__lora_fits(m, at, op) && lg__lora_add(at, &made, op);
                        count++;
                }
        ok = lg__lora_end(m, ok && (count || fail_unmatched(m, pattern)));
        if (!ok)
                c->random = state;
        return ok ? count : 0;
}

/* ---- merging ---- */

/* Adds the adapter to the weight, which is rounded once. Returns false with an error. */
static bool merge(lg_module *m)
{
        lg_ctx *c = m->object.ctx;
        lg_tensor *w = m->parts->tensor, *a = lg__lora_weight(m, 0), *b = lg__lora_weight(m, 1);
        lg_scope scope = lg_scope_begin(c);
        bool ok = scope.id;
        lg_no_grad(c) lg_autocast(c, LG_F32)
        {
                lg_tensor *delta = ok ? lg_mul_scalar(lg_matmul(b, a), scale_of(lg__lora_of(m))) : NULL;
                ok = delta && lg_copy_(w, lg_add(lg_cast(w, delta->at.dtype), delta));
        }
        lg_scope_end(c, scope);
        return ok;
}

bool lg_lora_merge(lg_module *m)
{
        const char *op = "lg_lora_merge";
        lg_ctx *c = lg_module_ctx(m);
        char names[256], path[LG__PATH];
        int count = 0;
        if (!lg__ok(c) || !lg__object_lasts(&m->object, op) || !lg__module_is_whole(m, op) || !lg__may_end(c, op) ||
            !lg__unrecorded(c, op))
                return false;
        for (lg_module *at = lg__lora_next(m, NULL); at; at = lg__lora_next(m, at)) {
                if (!lg__lora_of(at))
                        continue;
                if (at->parts->kind != LG__PARAMETER)
                        return lg__fail(c, LG_ERR_STATE, "%s: the weight of \"%s\" has parametrizations", op,
                                        lg__lora_path(m, at, path));
                if (!is_idle(m, at, op))
                        return false;
                count++;
        }
        if (!count)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: no module has an adapter%s", op, lg__lora_names(m, names));
        for (lg_module *at = lg__lora_next(m, NULL); at; at = lg__lora_next(m, at))
                if (lg__lora_of(at)) {
                        if (!merge(at))
                                return false;
                        remove_adapter(at);
                }
        return true;
}
