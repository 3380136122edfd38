/* recorder.c - lg_recorder_run(): a step that is recorded as a list of kernel calls and run again from the list.
 *
 * The first run of a step is an ordinary one. The ops of the second are noted; those of the third are compared with
 * them and put on a tape. Further runs copy their inputs and run the tape. */
#include <string.h>
#include "core/observer.h"
#include "graph/op.h"
#include "nn/nn.h"
#include "recorder.h"

/* ---- runs ---- */

static bool keeps_none_of(lg_ctx *c, const lg__link *list, const lg_tensor *result)
{
        for (const lg__link *l = list->next; l != list; l = l->next) {
                const lg_tensor *t = (const lg_tensor *)(const void *)l;
                if (t != result && t->storage->run == c->run && t->owner != LG__OWNER_LIBRARY)
                        return lg__fail(c, LG_ERR_STATE,
                                        LG__RUN_OP
                                        ": the function keeps a tensor that it has made, %s; a recorded step gives its "
                                        "result only, so return what the program needs",
                                        lg__tensor_text(t).s);
        }
        return true;
}

/* Returns whether no tensor of the run but the result is left to the program: runs of a tape would change its values,
 * but make no new ones. Sets an error if not. */
static bool keeps_nothing(lg_ctx *c, const lg_tensor *result)
{
        bool ok = keeps_none_of(c, &c->owned, result);
        for (const lg__scope *s = c->scope; s && ok; s = s->parent)
                ok = keeps_none_of(c, &s->tensors, result);
        return ok;
}

/* Returns a number made of how often inputs were changed in place. */
static uint64_t versions_of(lg_list in)
{
        uint64_t h = 0;
        for (int64_t i = 0; i < in.count; i++)
                h = lg__mix(h, in.items[i]->live == LG__LIVE ? in.items[i]->storage->version : 0);
        return h;
}

/* Runs the function in a scope. Returns its result, detached, in the scope around; NULL: none, or an error. */
static lg_tensor *call(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        const char *unread = c->unread;
        const modes were = lg__modes_of(c);
        const lg__scope *outer = c->scope;
        const uint64_t versions = versions_of(in);
        uint32_t mine = 0;
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return NULL;
        if (c->run)
                c->unread = LG__RUN_OP;
        lg_tensor *y = r->fn(c, in, r->o.user);
        c->unread = unread;
        if (y && (!lg__in_context(c, y, LG__RUN_OP, "the result") || !lg__check(y, LG__RUN_OP, "the result")))
                y = NULL;
        lg__scope_leave(c, scope, outer, &y, y != NULL, &mine);
        if (!lg__same_modes(lg__modes_of(c), were))
                lg__fail(c, LG_ERR_STATE,
                         LG__RUN_OP
                         ": the function sets the mode of gradients, autocast, determinism, threads or TF32, or the "
                         "default device, and does not restore it");
        if (versions_of(in) != versions)
                lg__fail(c, LG_ERR_STATE, LG__RUN_OP ": the function changes an input in place; let it change a copy");
        lg_tensor *result = y && !c->error ? lg_detach(y) : NULL;
        if (mine)
                lg__tensor_release(y);
        return !c->error && (!c->run || keeps_nothing(c, result)) ? result : NULL;
}

/* Returns a copy of a result, which it frees, so that the result shares memory with nothing. */
static lg_tensor *copied(lg_tensor *y)
{
        lg_tensor *copy = y ? lg__clone_values(y, y->storage->device->id, y->at.dtype) : NULL;
        lg__tensor_release(y);
        return copy;
}

/* Copies the inputs to the tensors that the function and the tape read, which it makes at first. */
static bool copy_inputs(recording *k, lg_list in)
{
        bool ok = true;
        for (int i = 0; i < k->input_count && ok; i++) {
                const lg_tensor *t = in.items[i];
                lg_tensor *made = k->in[i] ? NULL : lg__tensor_laid(t->ctx, k->device->id, &k->given[i]);
                k->in[i] = k->in[i] ? k->in[i] : made ? lg__tensor_own(made) : NULL;
                ok = k->in[i] && lg__copy_values(k->in[i], t, LG__RUN_OP);
        }
        return ok;
}

/* Runs the function on handles of its own for the copies, so that they are alike in all runs. */
static lg_tensor *run_observed(lg_recorder *r, recording *k)
{
        lg_ctx *c = r->object.ctx;
        const lg_list in = {k->input_count, k->in};
        lg_tensor *own[LG__RECORDED_INPUTS], *y = NULL;
        bool ok = true;
        for (int i = 0; i < k->input_count; i++) {
                own[i] = lg__tensor_new(c, in.items[i]->storage, &in.items[i]->at);
                ok = ok && own[i];
        }
        lg__observe(c, &r->observer);
        if (ok)
                y = call(r, (lg_list){in.count, own});
        lg__unobserve(c, &r->observer);
        for (int i = 0; i < k->input_count; i++)
                lg__tensor_release(own[i]);
        return y;
}

/* Compares the kernel calls of the last run with the recorded ones. Returns false with an error. */
static bool is_same(lg_recorder *r, recording *k, uint64_t outcome)
{
        const char *other = lg__tape_difference(&k->noted, &k->tape);
        if (k->at < k->count)
                other = k->ops[k->at].op->name;
        lg__tape_free(&k->noted);
        if (!other && outcome != k->outcome)
                return lg__log_differs(r, "the end", "which tensor is the result, or which parameters have gradients");
        return !other || lg__log_differs(r, other, "what it computes with");
}

static void begin_run(lg_recorder *r, recording *k)
{
        lg_ctx *c = r->object.ctx;
        r->running = k;
        r->since = c->sequence;
        c->run = ++c->runs;
        c->run_storages = 0;
        k->at = 0;
}

static void end_run(lg_recorder *r)
{
        lg__drop_casts(r->object.ctx);
        r->object.ctx->run = 0;
        r->running = NULL;
}

/* The first, second or third run. */
static lg_tensor *observed(lg_recorder *r, recording *k, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        lg__tape *tape = k->runs == 0 ? NULL : k->runs == 1 ? &k->noted : &k->tape;
        if (!copy_inputs(k, in))
                return NULL;
        if (k->runs && !lg__list_leaves(r, k))
                return NULL;
        lg__note_gradients_before(k);
        lg__drop_casts(c);
        if (k->runs == 2) /* the memory of the runs before is not needed beside the tape's */
                lg__cache_empty(&k->device->cache);
        begin_run(r, k);
        lg_tensor *y = NULL;
        if (!tape || lg__tape_begin(tape, c, k->device, k->runs == 2 ? &k->noted : NULL))
                y = run_observed(r, k);
        if (tape)
                lg__tape_end(tape);
        const uint64_t outcome = c->error ? 0 : lg__log_outcome(r, k, y);
        if (k->runs == 1)
                k->outcome = outcome;
        end_run(r);
        if (c->error || k->runs < 2)
                return c->error ? NULL : copied(y);
        lg__note_gradients_after(k);
        lg__cache_empty(&k->device->cache); /* of the gradients before */
        k->result = y ? lg__tensor_own(lg_detach(y)) : NULL;
        if (k->tape.refused)
                return lg__fail(c, LG_ERR_STATE, LG__RUN_OP ": the function cannot be recorded: %s", k->tape.refused);
        return is_same(r, k, outcome) ? copied(y) : NULL;
}

/* All memory is allocated before the tape runs, so that a run that fails for want of it has changed nothing. */
static lg_tensor *replay(recording *k, lg_list in)
{
        lg_tensor *y = k->result ? lg__tensor_like(k->result) : NULL;
        bool ok = (y || !k->result) && lg__prepare_gradients(k) && lg__tape_prepare(&k->tape);
        ok = ok && copy_inputs(k, in) && lg__copy_gradients(k) && lg__tape_run(&k->tape) && lg__set_gradients(k) &&
             (!y || lg__copy_values(y, k->result, LG__RUN_OP));
        return lg__created(y, ok, false);
}

/* An ordinary run that is compared with the recorded one. */
static lg_tensor *verified(lg_recorder *r, recording *k, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        if (!copy_inputs(k, in))
                return NULL;
        lg__drop_casts(c);
        begin_run(r, k);
        lg_tensor *y = lg__tape_begin(&k->noted, c, k->device, NULL) ? run_observed(r, k) : NULL;
        lg__tape_end(&k->noted);
        const uint64_t outcome = c->error ? 0 : lg__log_outcome(r, k, y);
        end_run(r);
        return !c->error && is_same(r, k, outcome) ? copied(y) : NULL;
}

static bool inputs_are_good(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        if (!lg__list_ok(c, LG__RUN_OP, in.count, in.items))
                return false;
        if (in.count < 1 || in.count > LG__RECORDED_INPUTS)
                return lg__fail(c, LG_ERR_ARGUMENT, LG__RUN_OP ": %lld inputs; 1 to %d are possible",
                                (long long)in.count, LG__RECORDED_INPUTS);
        for (int64_t i = 0; i < in.count; i++) {
                const lg_tensor *t = in.items[i];
                if (!t)
                        return lg__fail(c, LG_ERR_ARGUMENT, LG__RUN_OP ": input %lld is NULL", (long long)i);
                if (!lg__in_context(c, t, LG__RUN_OP, "an input") || !lg__check(t, LG__RUN_OP, "an input"))
                        return false;
                if (t->storage->device != in.items[0]->storage->device)
                        return lg__fail(c, LG_ERR_DEVICE, LG__RUN_OP ": input 0 is on %s but input %lld is on %s",
                                        lg_device_name(in.items[0]->storage->device->id), (long long)i,
                                        lg_device_name(t->storage->device->id));
                if (t->node)
                        return lg__fail(c, LG_ERR_STATE,
                                        LG__RUN_OP
                                        ": input %lld requires grad; gradients do not leave a recorded step, so give "
                                        "lg_detach() of it",
                                        (long long)i);
        }
        return true;
}

static lg_tensor *run(lg_recorder *r, lg_list in)
{
        const lg_ctx *c = r->object.ctx;
        if (r->o.eager || c->observers) /* traces and profilers see the ops */
                return copied(call(r, in));
        recording *k = lg__recording_find(r, in);
        if (!k && !(k = lg__recording_begin(r, in)))
                return NULL;
        k->used = ++r->runs;
        const int64_t every = r->o.verify_every;
        const bool verifies = every > 0 && k->runs >= 3 && (k->runs - 3) % every == every - 1;
        lg_tensor *y = k->runs < 3 ? observed(r, k, in) : verifies ? verified(r, k, in) : replay(k, in);
        r->replays += k->runs >= 3 && !verifies && !c->error;
        if (c->error && k->runs < 3)
                lg__recording_forget(r, k);
        else
                k->runs++;
        return y;
}

lg_tensor *lg_recorder_run_list(lg_recorder *r, lg_tensor *const *inputs)
{
        lg_list in = {0, (lg_tensor **)(uintptr_t)inputs};
        while (inputs && inputs[in.count] != LG_END)
                in.count++;
        lg_ctx *c = r ? r->object.ctx : NULL;
        if (!lg__enter(c) || !lg__object_lasts(&r->object, LG__RUN_OP) || !inputs_are_good(r, in) ||
            !lg__unrecorded(c, LG__RUN_OP))
                return NULL;
        lg__object_use(r); /* the function may free it */
        const uint64_t versions = versions_of(in);
        lg_tensor *y = run(r, in);
        if (!c->error && versions_of(in) != versions)
                lg__fail(c, LG_ERR_STATE,
                         LG__RUN_OP ": the step changes the memory of an input, such as a parameter's; give a copy");
        y = c->error ? lg__created(y, false, false) : y;
        lg__object_done(r);
        return y;
}

/* ---- the recorder ---- */

static void destroy(lg__object *o)
{
        lg_recorder *r = (lg_recorder *)o;
        while (r->recordings)
                lg__recording_forget(r, r->recordings);
        lg__free(o->ctx, r->leaves, (size_t)r->leaf_room * sizeof *r->leaves);
}

static const lg__type type = {.destroy = destroy};

lg_recorder *lg_recorder_new_with(lg_ctx *c, lg_function *fn, const lg_recorder_options *options)
{
        lg_recorder_options o;
        if (!lg__take(c, "lg_recorder_new", options, &o, sizeof o))
                return NULL;
        if (!fn)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_recorder_new: fn is NULL");
        if (o.max_recordings < 0 || o.verify_every < 0)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_recorder_new: .max_recordings and .verify_every are not negative");
        lg_recorder *r = lg__object_new(c, &type, sizeof *r);
        if (!r)
                return NULL;
        r->fn = fn;
        r->o = o;
        r->o.max_recordings = o.max_recordings ? o.max_recordings : 8;
        r->observer = lg__log_observer();
        return r;
}

int64_t lg_recorder_replays(const lg_recorder *r)
{
        return r ? r->replays : 0;
}

void lg_recorder_free(lg_recorder *r)
{
        lg__object_free(r);
}
