/* save.c - lg_onnx_save(): runs a module with inputs of several sizes and writes what it computes to an ONNX file. */
#include <stdio.h>
#include "grad/ops.h"
#include "save.h"
#include "state/entries.h"

#define OP "lg_onnx_save"

/* ---- inputs ---- */

static bool check(const lg__onnx_job *j)
{
        lg_ctx *c = j->ctx;
        if (j->inputs.count < 1 || j->inputs.count > LG__MAX_INPUTS || !j->inputs.items)
                return lg__fail(c, LG_ERR_ARGUMENT, OP ": %lld inputs; 1 to %d are possible",
                                (long long)j->inputs.count, LG__MAX_INPUTS);
        for (int64_t i = 0; i < j->inputs.count; i++) {
                if (!j->inputs.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, OP ": input %lld is NULL", (long long)i);
                if (!lg__in_context(c, j->inputs.items[i], OP, "an input") ||
                    !lg__check(j->inputs.items[i], OP, "an input"))
                        return false;
        }
        if (!lg__list_ok(c, OP, j->options.symbolic.count, j->options.symbolic.items) ||
            !lg__list_ok(c, OP, j->options.inputs.count, j->options.inputs.items) ||
            !lg__list_ok(c, OP, j->options.outputs.count, j->options.outputs.items))
                return false;
        return j->options.opset == 0 || (j->options.opset >= 13 && j->options.opset <= LG__ONNX_OPSET) ||
               lg__fail(c, LG_ERR_ARGUMENT, OP ": opset %d; 13 to %d are possible", j->options.opset, LG__ONNX_OPSET);
}

/* Adds dimension d of input i, unless an input before has the same size there. */
static bool add_symbol(lg__onnx_job *j, int i, int d)
{
        const lg_shape s = j->inputs.items[i]->at.shape;
        lg__onnx_symbols *all = &j->symbols;
        int same = 0;
        for (int k = 0; k < all->count; k++) {
                const lg__onnx_symbol *old = &all->at[k];
                same += old->dim == d;
                if (old->dim == d && j->inputs.items[old->input]->at.shape.size[d] == s.size[d])
                        return true;
        }
        if (s.size[d] < 1)
                return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": input %d is %s: the symbolic dimension %d is empty", i,
                                lg__tensor_text(j->inputs.items[i]).s, d);
        if (all->count == LG__ONNX_SYMBOLS)
                return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": more than %d different symbolic sizes",
                                LG__ONNX_SYMBOLS);
        lg__onnx_symbol *new = &all->at[all->count++];
        *new = (lg__onnx_symbol){.input = i, .dim = d, .size = s.size[d] < 2 ? 2 : s.size[d]};
        new->other = 2 * new->size + 1; /* odd, so that halves that are rounded differ from halves */
        char more[12] = "";
        if (same)
                snprintf(more, sizeof more, "_%d", same);
        if (d)
                snprintf(new->name, sizeof new->name, "size_%d%s", d, more);
        else
                snprintf(new->name, sizeof new->name, "batch%s", more);
        return true;
}

static bool find_symbols(lg__onnx_job *j)
{
        static const int64_t first = 0;
        lg_ints dims = j->options.symbolic;
        if (!dims.count)
                dims = (lg_ints){1, &first};
        if (j->options.fixed)
                return !j->options.symbolic.count ||
                       lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": .fixed and .symbolic exclude each other");
        for (int64_t k = 0; k < dims.count; k++) {
                bool found = false;
                if (dims.items[k] < 0 || dims.items[k] >= LG_MAX_DIMS)
                        return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": symbolic dimension %lld is not in [0, %d)",
                                        (long long)dims.items[k], LG_MAX_DIMS);
                for (int i = 0; i < j->inputs.count; i++) {
                        if (dims.items[k] >= j->inputs.items[i]->at.shape.ndim)
                                continue;
                        found = true;
                        if (!add_symbol(j, i, (int)dims.items[k]))
                                return false;
                }
                if (!found && j->options.symbolic.count)
                        return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": no input has the symbolic dimension %lld",
                                        (long long)dims.items[k]);
        }
        return true;
}

/* Returns the symbol of dimension d of input i, or -1. */
static int symbol_of(const lg__onnx_job *j, int64_t i, int d)
{
        for (int k = 0; k < j->symbols.count; k++) {
                const lg__onnx_symbol *s = &j->symbols.at[k];
                if (s->dim == d && d < j->inputs.items[i]->at.shape.ndim &&
                    j->inputs.items[s->input]->at.shape.size[d] == j->inputs.items[i]->at.shape.size[d])
                        return k;
        }
        return -1;
}

/* Returns x with `size` elements in dimension d, which are repeated. */
static lg_tensor *resized(lg_tensor *x, int d, int64_t size)
{
        const int64_t n = x->at.shape.size[d];
        lg_tensor *index = lg_remainder_scalar(
                lg_arange(x->ctx, 0, (double)size, 1, .dtype = LG_I64, .device = x->storage->device->id), (double)n);
        return size == n ? x : lg_index_select(x, d, index);
}

/* Returns input i of recording k: of other sizes and, after the first recording, of other values. */
static lg_tensor *input_of(const lg__onnx_job *j, int64_t i, int k)
{
        lg_tensor *x = lg_detach(j->inputs.items[i]);
        for (int d = 0; x && d < x->at.shape.ndim; d++) {
                const int s = symbol_of(j, i, d);
                if (s >= 0)
                        x = resized(x, d, s == k - 1 ? j->symbols.at[s].other : j->symbols.at[s].size);
        }
        if (!k || !x)
                return x;
        return lg__dtype_float(x->at.dtype)                  ? lg_mul_scalar(x, 0.75)
               : x->at.shape.ndim && x->at.shape.size[0] > 1 ? lg_roll(x, 1, 0)
                                                             : x;
}

/* ---- runs ---- */

/* Sets which modules are in training mode, or notes it. `modes` has room for all. */
static void keep_modes(lg_module *m, bool *modes, bool restore)
{
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m), modes++) {
                if (restore)
                        inner->training = *modes;
                else
                        *modes = inner->training;
        }
}

static bool record_once(lg__onnx_job *j, int k)
{
        lg_ctx *c = j->ctx;
        lg_tensor *inputs[LG__MAX_INPUTS];
        const bool recording = c->recording;
        c->recording = false;
        for (int64_t i = 0; i < j->inputs.count; i++)
                inputs[i] = input_of(j, i, k);
        c->recording = recording;
        j->records[k] = (lg__onnx_recording){.ctx = c, .root = j->m};
        if (c->error || lg__onnx_record(&j->records[k], j->m, (lg_list){j->inputs.count, inputs}))
                return !c->error;
        const size_t used = strlen(c->message);
        if (k && j->symbols.count)
                snprintf(c->message + used, sizeof c->message - used,
                         " (" OP
                         " changed the symbolic dimension %d from %lld to %lld; .symbolic names others, .fixed = "
                         "true fixes all)",
                         j->symbols.at[k - 1].dim, (long long)j->symbols.at[k - 1].size,
                         (long long)j->symbols.at[k - 1].other);
        return false;
}

static bool record_all(lg__onnx_job *j)
{
        lg_ctx *c = j->ctx;
        size_t modules = 0;
        for (const lg_module *inner = j->m; inner; inner = lg__module_next(inner, j->m))
                modules++;
        bool *modes = lg__arena_get(c, &j->arena, (int64_t)modules, sizeof *modes);
        const lg_random_state random = c->random;
        if (!modes)
                return false;
        keep_modes(j->m, modes, false);
        lg_train(j->m, false);
        bool good = true;
        for (int k = 0; k < j->count && good; k++)
                good = record_once(j, k);
        keep_modes(j->m, modes, true);
        c->random = random;
        return good;
}

/* ---- names ---- */

/* Sets `to` to the names that the caller gave, or to `otherwise`, with numbers if there are several. */
static bool set_names(lg__onnx_job *j, lg_names given, const char *otherwise, int64_t count, const char **to)
{
        if (given.count && given.count != count)
                return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": %lld names of %ss were given; there are %lld %ss",
                                (long long)given.count, otherwise, (long long)count, otherwise);
        for (int64_t i = 0; i < count; i++) {
                char *text = lg__arena_get(j->ctx, &j->arena, 32, 1);
                if (!text)
                        return false;
                snprintf(text, 32, count > 1 ? "%s_%lld" : "%s", otherwise, (long long)i);
                to[i] = given.count ? given.items[i] : text;
                size_t at = 0;
                for (int n = 1; to[i] && to[i][at] && n; at += (size_t)n)
                        n = lg__utf8_length((lg__span){to[i] + at, strlen(to[i] + at)});
                if (to[i] && to[i][at])
                        return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": the name of %s %lld is not UTF-8", otherwise,
                                        (long long)i);
                if (!to[i] || !*to[i])
                        return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": the name of %s %lld is %s", otherwise,
                                        (long long)i, to[i] ? "empty" : "NULL");
        }
        return true;
}

/* Names the values that are parameters and buffers of the module as its state does. */
static void name_parameters(lg__onnx_recording *r, const lg__state_entries *list)
{
        for (int64_t k = 0; k < r->value_count; k++) {
                lg__onnx_value *v = &r->values[k];
                for (int64_t i = 0; v->tensor && i < list->count; i++) {
                        const lg__state_entry *e = &list->items[i];
                        const lg_tensor *t = e->kind == LG__ENTRY_TENSOR ? *(lg_tensor **)e->at : NULL;
                        if (t && t->storage == v->tensor->storage && t->at.offset == v->tensor->at.offset &&
                            t->at.dtype == v->tensor->at.dtype && lg__layout_same(&t->at, &v->tensor->at))
                                v->name = e->name;
                }
        }
}

static bool names_differ(const lg__onnx_job *j, const lg__state_entries *list)
{
        const int64_t count = j->inputs.count + j->records[0].outputs.count;
        for (int64_t i = 0; i < count; i++) {
                for (int64_t k = 0; k < i; k++)
                        if (!strcmp(j->names[i], j->names[k]))
                                return lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": two inputs or outputs are called %s",
                                                lg__quoted(j->names[i]).s);
                for (int64_t k = 0; k < list->count; k++)
                        if (!strcmp(j->names[i], list->items[k].name))
                                return lg__fail(j->ctx, LG_ERR_ARGUMENT,
                                                OP ": %s is the name of a parameter or buffer; .inputs and .outputs "
                                                   "give others",
                                                lg__quoted(j->names[i]).s);
        }
        return true;
}

static bool name_all(lg__onnx_job *j, const lg__state_entries *list)
{
        lg__onnx_recording *r = &j->records[0];
        j->names = lg__arena_get(j->ctx, &j->arena, j->inputs.count + LG_MAX_OUTPUTS, sizeof *j->names);
        if (!j->names || !set_names(j, j->options.inputs, "input", j->inputs.count, j->names) ||
            !set_names(j, j->options.outputs, "output", r->outputs.count, j->names + j->inputs.count) ||
            !names_differ(j, list))
                return false;
        for (int64_t i = 0; i < j->inputs.count; i++)
                r->values[i].name = j->names[i];
        name_parameters(r, list);
        return true;
}

/* ---- saving ---- */

static bool opset_is_enough(const lg__onnx_job *j)
{
        const lg__onnx_emitter *e = &j->emitter;
        return !j->options.opset || j->options.opset >= e->opset ||
               lg__fail(j->ctx, LG_ERR_ARGUMENT, OP ": opset %d: %s needs opset %d", j->options.opset, e->newest,
                        e->opset);
}

static bool save(lg__onnx_job *j, const char *path)
{
        lg__state_entries list;
        lg__onnx_recording *all[LG__ONNX_SYMBOLS + 1];
        if (!find_symbols(j))
                return false;
        j->count = j->symbols.count ? j->symbols.count + 1 : 2;
        for (int k = 0; k < j->count; k++)
                all[k] = &j->records[k];
        if (!record_all(j) || !lg__onnx_merge(all, j->count, &j->symbols))
                return false;
        lg__state_entries_begin(&list, j->ctx, OP);
        bool good = lg__state_add_object(&list, "", &j->m->object) && name_all(j, &list);
        j->emitter.symbols = &j->symbols;
        j->emitter.outputs = good ? j->names + j->inputs.count : NULL;
        good = good && lg__onnx_emit(&j->emitter) && opset_is_enough(j) && lg__onnx_write(j, path);
        lg__state_entries_end(&list);
        return good;
}

bool lg_onnx_save_with(lg_module *m, const char *path, lg_list_in inputs, const lg_onnx_save_options *options)
{
        lg_ctx *c = m ? m->object.ctx : inputs.count > 0 && inputs.items ? lg__ctx_of(inputs.items[0]) : NULL;
        lg_onnx_save_options o;
        if (!lg__take(c, OP, options, &o, sizeof o) || !lg__unrecorded(c, OP))
                return false;
        if (!m || !path)
                return lg__fail(c, LG_ERR_ARGUMENT, OP ": %s is NULL", m ? "path" : "m");
        lg__onnx_job *j = lg__object_lasts(&m->object, OP) ? lg__alloc(c, sizeof *j) : NULL;
        if (!j)
                return false;
        *j = (lg__onnx_job){.ctx = c, .m = m, .inputs = inputs, .options = o};
        j->emitter = (lg__onnx_emitter){.ctx = c, .recording = &j->records[0]};
        const lg_scope scope = lg__scope_begin(c);
        const bool good = check(j) && save(j, path);
        lg_scope_end(c, scope);
        lg__onnx_emitter_free(&j->emitter);
        for (int k = 0; k < j->count; k++)
                if (j->records[k].ctx)
                        lg__onnx_recording_free(&j->records[k]);
        lg__arena_free(c, &j->arena);
        lg__free(c, j, sizeof *j);
        return good;
}
