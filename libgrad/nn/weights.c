/* weights.c - lg_save(), lg_load(), lg_copy_state(): the weights of one module, in files and copied. */
#include "nn.h"
#include "state/load.h"

/* Lists the tensors and numbers of m in `list`. Returns false with an error; the caller ends `list` in either case. */
static bool entries_of(lg__state_entries *list, lg_module *m, const char *op)
{
        lg_ctx *c = lg_module_ctx(m);
        lg__state_entries_begin(list, c, op);
        return lg__ok(c) && lg__object_lasts(&m->object, op) && lg__state_add_object(list, "", &m->object);
}

bool lg_save(lg_module *m, const char *path)
{
        lg__state_entries list;
        bool ok = entries_of(&list, m, "lg_save");
        ok = ok && lg__state_save(&list, path);
        if (list.c)
                lg__state_entries_end(&list);
        return ok;
}

bool lg_load_with(lg_module *m, const char *path, const lg_load_options *options)
{
        lg__state_entries list;
        lg_load_options o;
        bool ok = entries_of(&list, m, "lg_load") && lg__take(list.c, "lg_load", options, &o, sizeof o);
        ok = ok && lg__state_load(&list, path, &o);
        if (list.c)
                lg__state_entries_end(&list);
        return ok;
}

/* ---- copying to another module ---- */

static bool fits(const lg__state_entries *to, const lg__state_entry *a, const lg__state_entry *b)
{
        if (!b)
                return lg__fail(to->c, LG_ERR_ARGUMENT, "lg_copy_state: \"%.200s\" is in `to`, but not in `from`",
                                a->name);
        if (a->kind != b->kind)
                return lg__fail(to->c, LG_ERR_ARGUMENT,
                                "lg_copy_state: \"%.200s\" is a tensor in `%s`, but the count of a batch norm in `%s`",
                                a->name, a->kind == LG__ENTRY_TENSOR ? "to" : "from",
                                a->kind == LG__ENTRY_TENSOR ? "from" : "to");
        return lg__shape_equal(a->like.shape, b->like.shape) ||
               lg__fail(to->c, LG_ERR_SHAPE, "lg_copy_state: \"%.200s\" is %s in `to` and %s in `from`", a->name,
                        lg__shape_text(a->like.shape).s, lg__shape_text(b->like.shape).s);
}

static bool copy_all(lg__state_entries *to, lg__state_entries *from)
{
        lg__staged *staged = lg__alloc(to->c, (size_t)to->count * sizeof *staged + 1);
        bool ok = staged != NULL;
        lg__state_entries_sort(to);
        lg__state_entries_sort(from);
        if (ok && from->count > to->count)
                ok = lg__fail(to->c, LG_ERR_ARGUMENT, "lg_copy_state: `from` has %lld tensors, `to` has %lld",
                              (long long)from->count, (long long)to->count);
        for (int64_t i = 0; i < to->count && ok; i++) {
                lg__state_entry *a = &to->items[i], *b = lg__state_entries_find(from, a->name);
                ok = fits(to, a, b);
                staged[i] = (lg__staged){.to = a};
                if (ok && a->kind == LG__ENTRY_COUNT)
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
        lg__state_entries a, b;
        lg_ctx *c = lg_module_ctx(to);
        if (!lg__ok(c) || !lg__unrecorded(c, "lg_copy_state"))
                return false;
        if (!from || from->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_copy_state: `from` is %s",
                                from ? "of another context" : "NULL");
        lg_scope scope = lg__scope_begin(c);
        bool ok = entries_of(&a, to, "lg_copy_state");
        ok = entries_of(&b, from, "lg_copy_state") && ok && scope.id && copy_all(&a, &b);
        lg__state_entries_end(&a);
        lg__state_entries_end(&b);
        lg_scope_end(c, scope);
        return ok;
}
