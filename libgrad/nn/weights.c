/* weights.c - lg_save(), lg_load(), lg_copy_state(): the weights of one module, in files and copied. */
#include "nn.h"
#include "state/load.h"

/* Lists the tensors and numbers of m in r. Returns false with an error; the caller ends r in either case. */
static bool roster_of(lg__roster *r, lg_module *m, const char *op)
{
        lg_ctx *c = lg_module_ctx(m);
        lg__roster_begin(r, c, op);
        return lg__ok(c) && lg__object_lasts(&m->object, op) && lg__roster_add(r, "", &m->object);
}

bool lg_save(lg_module *m, const char *path)
{
        lg__roster r;
        bool ok = roster_of(&r, m, "lg_save");
        ok = ok && lg__state_save(&r, path);
        if (r.c)
                lg__roster_end(&r);
        return ok;
}

bool lg_load_with(lg_module *m, const char *path, const lg_load_options *options)
{
        lg__roster r;
        lg_load_options o;
        bool ok = roster_of(&r, m, "lg_load") && lg__take(r.c, "lg_load", options, &o, sizeof o);
        ok = ok && lg__state_load(&r, path, &o);
        if (r.c)
                lg__roster_end(&r);
        return ok;
}

/* ---- copying to another module ---- */

static bool fits(const lg__roster *to, const lg__held *a, const lg__held *b)
{
        if (!b)
                return lg__fail(to->c, LG_ERR_ARGUMENT, "lg_copy_state: \"%.200s\" is in `to`, but not in `from`",
                                a->name);
        if (a->kind != b->kind)
                return lg__fail(to->c, LG_ERR_ARGUMENT,
                                "lg_copy_state: \"%.200s\" is a tensor in `%s`, but the count of a batch norm in `%s`",
                                a->name, a->kind == LG__HELD_TENSOR ? "to" : "from",
                                a->kind == LG__HELD_TENSOR ? "from" : "to");
        return lg__shape_equal(a->like.shape, b->like.shape) ||
               lg__fail(to->c, LG_ERR_SHAPE, "lg_copy_state: \"%.200s\" is %s in `to` and %s in `from`", a->name,
                        lg__shape_text(a->like.shape).s, lg__shape_text(b->like.shape).s);
}

static bool copy_all(lg__roster *to, lg__roster *from)
{
        lg__staged *staged = lg__alloc(to->c, (size_t)to->count * sizeof *staged + 1);
        bool ok = staged != NULL;
        lg__roster_sort(to);
        lg__roster_sort(from);
        if (ok && from->count > to->count)
                ok = lg__fail(to->c, LG_ERR_ARGUMENT, "lg_copy_state: `from` has %lld tensors, `to` has %lld",
                              (long long)from->count, (long long)to->count);
        for (int64_t i = 0; i < to->count && ok; i++) {
                lg__held *a = &to->items[i], *b = lg__roster_find(from, a->name);
                ok = fits(to, a, b);
                staged[i] = (lg__staged){.to = a};
                if (ok && a->kind == LG__HELD_COUNT)
                        staged[i].number.i64 = *(int64_t *)b->at;
                else
                        ok = ok &&
                             (staged[i].tensor = lg__clone_values(*(lg_tensor **)b->at, a->device, a->like.dtype));
        }
        ok = ok && lg__stage_commit(to, staged, to->count);
        lg__free(to->c, staged, (size_t)to->count * sizeof *staged + 1);
        return ok;
}

bool lg_copy_state(lg_module *to, lg_module *from)
{
        lg__roster a, b;
        lg_ctx *c = lg_module_ctx(to);
        if (!lg__ok(c))
                return false;
        if (!from || from->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_copy_state: `from` is %s",
                                from ? "of another context" : "NULL");
        lg_scope scope = lg__scope_begin(c);
        bool ok = roster_of(&a, to, "lg_copy_state");
        ok = roster_of(&b, from, "lg_copy_state") && ok && scope.id && copy_all(&a, &b);
        lg__roster_end(&a);
        lg__roster_end(&b);
        lg_scope_end(c, scope);
        return ok;
}
