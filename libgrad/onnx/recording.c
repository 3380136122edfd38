/* recording.c - records the ops that a module applies, by an observer. */
#include "recording.h"
#include <stdio.h>

/* ---- values by their memory ---- */

static bool is_at(const lg__onnx_place *p, const lg_tensor *t)
{
        return p->storage == t->storage && p->version == t->storage->version && p->at.offset == t->at.offset &&
               p->at.dtype == t->at.dtype && lg__layout_same(&p->at, &t->at);
}

/* Returns the value of t, or -1. */
static int64_t value_at(const lg__onnx_recording *r, const lg_tensor *t)
{
        for (int64_t i = r->place_count; i-- > 0;)
                if (is_at(&r->places[i], t))
                        return r->places[i].value;
        return -1;
}

/* Notes that t has this value. Its memory is kept, so that no other tensor gets the same. */
static bool place(lg__onnx_recording *r, const lg_tensor *t, int64_t value)
{
        if (!lg__grow(r->ctx, &r->places, r->place_count, &r->place_room, sizeof *r->places))
                return false;
        lg__onnx_place *p = &r->places[r->place_count++];
        *p = (lg__onnx_place){.storage = lg__storage_ref(t->storage), .version = t->storage->version, .value = value};
        lg__layout_copy(&p->at, &t->at);
        return true;
}

/* Adds a value for t. Returns its number, or -1 with an error. */
static int64_t add_value(lg__onnx_recording *r, const lg_tensor *t, int64_t input)
{
        if (!lg__grow(r->ctx, &r->values, r->value_count, &r->value_room, sizeof *r->values) ||
            !place(r, t, r->value_count))
                return -1;
        r->values[r->value_count] =
                (lg__onnx_value){.user = r->op_count, .input = input, .dtype = t->at.dtype, .shape = t->at.shape};
        return r->value_count++;
}

/* Adds a value that no op computed. The handle is made outside of the scopes of modules. */
static int64_t add_constant(lg__onnx_recording *r, const lg_tensor *t)
{
        const int64_t value = add_value(r, t, -1);
        lg_tensor *kept = value < 0 ? NULL : lg__tensor_own(lg__tensor_new(r->ctx, t->storage, &t->at));
        if (!kept)
                return -1;
        r->values[value].tensor = kept;
        return value;
}

/* ---- ops ---- */

static lg__onnx_recording *recording_of(lg__observer *o)
{
        return (lg__onnx_recording *)((char *)o - offsetof(lg__onnx_recording, observer));
}

static const char *kept(lg__onnx_recording *r, const char *s)
{
        const size_t bytes = strlen(s) + 1;
        char *copy = lg__arena_get(r->ctx, &r->arena, 1, bytes);
        return copy ? memcpy(copy, s, bytes) : NULL;
}

static const char *where_now(lg__onnx_recording *r)
{
        char path[LG__PATH];
        const lg__frame *f = r->ctx->frame;
        while (f && !f->module)
                f = f->outer;
        const char *text = f ? lg__module_path_in(r->root, f->module, path) : "-";
        return kept(r, text);
}

/* Notes that an op has no form, once for each name. */
static bool note_missing(lg__onnx_recording *r, const lg__op *op, const char *where)
{
        char text[160];
        const size_t used = strlen(r->missing);
        snprintf(text, sizeof text, "%s%s (in \"%s\")", used ? ", " : "", op->name,
                 *where == '-' ? r->root->type : where);
        char name[80];
        snprintf(name, sizeof name, "%s (in", op->name);
        if (!strstr(r->missing, name) && used + strlen(text) < sizeof r->missing)
                memcpy(r->missing + used, text, strlen(text) + 1);
        return true;
}

/* Sets the numbers of the inputs' values. */
static bool take_inputs(lg__onnx_recording *r, const lg__call *call, lg__onnx_applied *a)
{
        a->in_count = call->in_count;
        a->in = lg__arena_get(r->ctx, &r->arena, call->in_count + 1, sizeof *a->in);
        for (int i = 0; a->in && i < call->in_count; i++) {
                a->in[i] = call->in[i] ? value_at(r, call->in[i]) : -1;
                if (call->in[i] && a->in[i] < 0 && (a->in[i] = add_constant(r, call->in[i])) < 0)
                        return false;
        }
        return a->in != NULL;
}

static bool take_outputs(lg__onnx_recording *r, const lg__call *call, lg__onnx_applied *a)
{
        a->out_count = call->out_count;
        for (int i = 0; i < call->out_count; i++)
                if ((a->out[i] = add_value(r, call->out[i], -1)) < 0)
                        return false;
        return true;
}

static bool record(lg__onnx_recording *r, const lg__call *call)
{
        lg__form form;
        lg__onnx_applied a = {.op = call->op};
        const bool has = lg__form_of(&form, call);
        if (!(a.where = where_now(r)))
                return false;
        if (!has)
                return note_missing(r, call->op, a.where);
        if (!(a.form = kept(r, form.s)) || !take_inputs(r, call, &a) || !take_outputs(r, call, &a) ||
            !lg__grow(r->ctx, &r->ops, r->op_count, &r->op_room, sizeof *r->ops))
                return false;
        r->ops[r->op_count++] = a;
        return true;
}

static bool composite_has_form(const lg__call *call)
{
        return call->op->compose && (call->op->onnx || call->op->form);
}

static void op_begin(lg__observer *o, const lg__call *call)
{
        recording_of(o)->inside += composite_has_form(call);
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        lg__onnx_recording *r = recording_of(o);
        r->inside -= composite_has_form(call);
        if (ok && !r->inside && (!call->op->compose || composite_has_form(call)))
                record(r, call);
}

/* ---- a run ---- */

/* Finds the values of the results. One that no op computed is a constant. */
static bool take_results(lg__onnx_recording *r)
{
        for (int64_t i = 0; i < r->outputs.count; i++) {
                const lg_tensor *t = r->outputs.items[i];
                int64_t value = value_at(r, t);
                if (value < 0 && (value = add_constant(r, t)) < 0)
                        return false;
                r->output_values[i] = value;
        }
        return true;
}

/* Runs m in evaluation mode, recorded, so that convolutions and batch norms stay apart. */
static bool run(lg__onnx_recording *r, lg_module *m, lg_list inputs)
{
        lg_ctx *c = r->ctx;
        lg_tensor *list[LG__MAX_INPUTS + 1];
        memcpy(list, inputs.items, (size_t)inputs.count * sizeof *list);
        list[inputs.count] = LG_END;
        const bool recording = c->recording;
        const char *unread = c->unread;
        c->recording = true;
        c->unread = "lg_onnx_save";
        lg__observe(c, &r->observer);
        const bool ok = lg_forward_all_list(m, &r->outputs, sizeof r->outputs, list);
        lg__unobserve(c, &r->observer);
        c->recording = recording;
        c->unread = unread;
        return ok;
}

bool lg__onnx_record(lg__onnx_recording *r, lg_module *m, lg_list inputs)
{
        r->observer = (lg__observer){.op_begin = op_begin, .op_end = op_end};
        for (int64_t i = 0; i < inputs.count; i++)
                if (add_value(r, inputs.items[i], i) < 0)
                        return false;
        if (!run(r, m, inputs) || r->ctx->error)
                return false;
        if (*r->missing)
                return lg__fail(r->ctx, LG_ERR_STATE, "lg_onnx_save: these ops have no form in ONNX: %s", r->missing);
        return take_results(r);
}

void lg__onnx_recording_free(lg__onnx_recording *r)
{
        lg_ctx *c = r->ctx;
        for (int64_t i = 0; i < r->value_count; i++)
                lg__tensor_release(r->values[i].tensor);
        for (int64_t i = 0; i < r->place_count; i++)
                lg__storage_unref(r->places[i].storage);
        lg__free(c, r->ops, (size_t)r->op_room * sizeof *r->ops);
        lg__free(c, r->values, (size_t)r->value_room * sizeof *r->values);
        lg__free(c, r->places, (size_t)r->place_room * sizeof *r->places);
        lg__arena_free(c, &r->arena);
}
