/* print.c - a table of a module's layers: name, type, output shape, parameters. */
#include <string.h>
#include "nn.h"

typedef struct table {
        FILE *f;
        int name, type, shape; /* widths of the columns */
} table;

static int64_t own_parameters(const lg_module *m)
{
        int64_t elements = 0;
        for (const lg__part *p = m->parts; p; p = p->next)
                elements += p->kind == LG__PARAMETER ? lg__shape_numel(p->tensor->at.shape) : 0;
        return elements;
}

bool lg__module_has_line(const lg_module *m)
{
        return lg_child_count(m) == 0 || own_parameters(m);
}

static lg__text shape_text(const lg_module *m)
{
        return m->has_shape ? lg__shape_text(m->shape) : (lg__text){"-"};
}

static int wider(int width, const char *s)
{
        return (int)strlen(s) > width ? (int)strlen(s) : width;
}

static void measure(table *t, lg_module *root)
{
        char path[LG__PATH];
        t->type = wider(t->type, root->type);
        t->shape = wider(t->shape, shape_text(root).s);
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                if (!lg__module_has_line(m))
                        continue;
                t->name = wider(t->name, lg__module_path_in(root, m, path));
                t->type = wider(t->type, m->type);
                t->shape = wider(t->shape, shape_text(m).s);
        }
}

static void print(const table *t, lg_module *root)
{
        char path[LG__PATH];
        fprintf(t->f, "%-*s  %-*s  %-*s  %12s\n", t->name, "name", t->type, "type", t->shape, "output", "parameters");
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                if (lg__module_has_line(m))
                        fprintf(t->f, "%-*s  %-*s  %-*s  %12lld\n", t->name, lg__module_path_in(root, m, path), t->type,
                                m->type, t->shape, shape_text(m).s, (long long)own_parameters(m));
        }
        fprintf(t->f, "%-*s  %-*s  %-*s  %12lld\n", t->name, "total", t->type, root->type, t->shape, shape_text(root).s,
                (long long)lg_parameter_count(root));
}

bool lg__module_try(lg_module *root, lg_shape input)
{
        lg_ctx *c = root->object.ctx;
        lg_list parameters = lg_parameters(root);
        lg_random_state random = c->random;
        lg_scope scope = lg__scope_begin(c);
        lg_shaped o = {.shape = input};
        if (parameters.count) {
                o.dtype = parameters.items[0]->at.dtype;
                o.device = parameters.items[0]->storage->device->id;
        }
        lg_tensor *x = scope.id ? lg_full_(c, 0, o) : NULL;
        root->running++;
        bool ok = x && lg_forward(root, x);
        if (scope.id)
                lg_scope_end(c, scope);
        root->running--;
        c->random = random;
        return ok;
}

/* In evaluation mode and unrecorded, so that every module knows the shape of its result. */
static bool find_shapes(lg_module *root, lg_shape input)
{
        lg_ctx *c = root->object.ctx;
        bool recording = lg_grad_mode(c, false);
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                if (m->printing++ == 0)
                        m->was_training = m->training;
                m->training = false;
        }
        bool ok = lg__module_try(root, input);
        for (lg_module *m = root; m; m = lg__module_next(m, root))
                if (m->printing && --m->printing == 0) /* the forward may have added some */
                        m->training = m->was_training;
        lg_grad_mode(c, recording);
        return ok;
}

bool lg_module_print(FILE *f, lg_module *m, lg_shape input)
{
        if (!m || !f)
                return m ? lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_module_print: the file is NULL") : NULL;
        table t = {f, 5, 4, 6};
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                inner->has_shape = false;
        bool ok = !input.ndim || (!m->object.ctx->error && find_shapes(m, input));
        measure(&t, m);
        print(&t, m);
        return lg__written(m->object.ctx, f, "lg_module_print") && ok;
}
