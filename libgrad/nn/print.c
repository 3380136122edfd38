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
                (long long)lg_parameter_numel(root));
}

/* Returns zeros with the dtype and device of root's first parameter; without one, f32 on the default device. */
static lg_tensor *zeros(lg_module *root, lg_shape shape)
{
        lg_list parameters = lg_parameters(root);
        lg_dtype dtype = LG_F32;
        lg_device device = root->object.ctx->default_device;
        if (parameters.count) {
                dtype = parameters.items[0]->at.dtype;
                device = parameters.items[0]->storage->device->id;
        }
        return lg_zeros(root->object.ctx, shape, .dtype = dtype, .device = device);
}

bool lg__module_try(lg_module *root, const lg_module_print_options *o)
{
        lg_ctx *c = root->object.ctx;
        lg_random_state random = c->random;
        lg_tensor *inputs[LG__MAX_INPUTS + 2] = {NULL};
        int64_t count = o->inputs.count;
        lg_scope scope = lg__scope_begin(c);
        root->running++;
        for (int64_t i = 0; i < count && i <= LG__MAX_INPUTS; i++)
                inputs[i] = o->inputs.items[i];
        if (count < 1)
                inputs[0] = scope.id ? zeros(root, o->input) : NULL;
        inputs[count < 1 ? 1 : count <= LG__MAX_INPUTS ? count : LG__MAX_INPUTS + 1] = LG_END;
        bool ok = scope.id && (count > 0 || inputs[0]) && lg_forward_list(root, inputs);
        lg_scope_end(c, scope);
        root->running--;
        c->random = random;
        return ok;
}

/* Runs root in evaluation mode, without recording, so that every module stores the shape of its result. If that fails,
 * copies the message to `why`, for the last line of the table, and clears the error. */
static void find_shapes(lg_module *root, const lg_module_print_options *o, char why[LG__MESSAGE])
{
        lg_ctx *c = root->object.ctx;
        if (!lg_synchronize(c)) /* errors found after this come from the forward */
                return;
        bool recording = lg_set_grad_mode(c, false);
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                if (m->printing++ == 0)
                        m->was_training = m->training;
                m->training = false;
        }
        if (!lg__module_try(root, o) || !lg_synchronize(c)) {
                memcpy(why, c->message, LG__MESSAGE);
                lg__forget_error(c);
        }
        for (lg_module *m = root; m; m = lg__module_next(m, root))
                if (m->printing && --m->printing == 0) /* `printing` is 0 in modules that the forward has added */
                        m->training = m->was_training;
        lg_set_grad_mode(c, recording);
}

bool lg_module_print_with(FILE *f, lg_module *m, const lg_module_print_options *options)
{
        lg_module_print_options o;
        lg_ctx *c = lg_module_ctx(m);
        if (!c || !lg__object_lasts(&m->object, "lg_module_print"))
                return false;
        if (!f)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_module_print: the file is NULL");
        if (!lg__take_without(options, &o, sizeof o))
                return lg__take(c, "lg_module_print", options, &o, sizeof o);
        if (!lg__list_ok(c, "lg_module_print", o.inputs.count, o.inputs.items))
                return false;
        char why[LG__MESSAGE] = "";
        table t = {f, 5, 4, 6};
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                inner->has_shape = false;
        if (!c->error && (o.input.ndim || o.inputs.count))
                find_shapes(m, &o, why);
        measure(&t, m);
        print(&t, m);
        if (*why)
                fprintf(f, "the forward failed: %s\n", why);
        return lg__written(c, f, "lg_module_print");
}
