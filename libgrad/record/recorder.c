/* recorder.c - lg_recorder_run(): a step that is recorded as a list of kernel calls and run again from the list.
 *
 * The first run of a step is an ordinary one. The ops of the second are noted; those of the third are compared with
 * them and put on a tape. Further runs copy their inputs and run the tape. */
#include <string.h>
#include "core/observer.h"
#include "graph/op.h"
#include "nn/nn.h"
#include "recorder.h"

#define OP "lg_recorder_run"

/* ---- the log ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
        return (h ^ v) * UINT64_C(0x9E3779B97F4A7C15) ^ (h >> 29);
}

static bool note_outer(recording *k, lg_ctx *c, lg_tensor *t, bool firm, const char *name)
{
        for (int64_t i = 0; i < k->outer_count; i++)
                if (k->outers[i].tensor == t)
                        return true;
        if (!lg__grow(c, &k->outers, k->outer_count, &k->outer_room, sizeof *k->outers))
                return false;
        if (t->node && t->node->hooks)
                return lg__fail(c, LG_ERR_STATE,
                                OP ": a tensor that %s uses has a hook (lg_hook), which a recorded step cannot call",
                                name);
        k->outers[k->outer_count++] = (outer){t, t->serial, lg__storage_ref(t->storage), t->node, firm, false};
        return true;
}

/* Returns a number of an operand: which storage of the run, or which earlier tensor, and its layout. */
static uint64_t operand(lg_recorder *r, const lg__op *op, lg_tensor *t)
{
        lg_ctx *c = r->object.ctx;
        if (!t)
                return 1;
        uint64_t h = mix((uint64_t)t->at.dtype * 31 + (uint64_t)t->at.shape.ndim, (uint64_t)t->at.offset);
        for (int i = 0; i < t->at.shape.ndim; i++)
                h = mix(mix(h, (uint64_t)t->at.shape.size[i]), (uint64_t)t->at.strides[i]);
        if (t->storage->run == c->run)
                return mix(h, t->storage->number);
        if (t->serial > r->since || !t->serial) /* 0: a handle on the stack */
                return h;
        const bool firm = t->owner != LG__OWNER_LIBRARY || t->node;
        note_outer(r->running, c, t, firm, op->name);
        return firm ? mix(h, (uintptr_t)t) : h;
}

static int64_t keep(recording *k, lg_ctx *c, const void *data, size_t bytes)
{
        const int64_t at = k->bytes_used, end = at + (int64_t)(bytes + 15) / 16 * 16;
        while (k->bytes_room < end) {
                const int64_t room = k->bytes_room ? 2 * k->bytes_room : 1024;
                char *more = lg__alloc(c, (size_t)room);
                if (!more)
                        return -1;
                if (k->bytes_used)
                        memcpy(more, k->bytes, (size_t)k->bytes_used);
                lg__free(c, k->bytes, (size_t)k->bytes_room);
                k->bytes = more;
                k->bytes_room = room;
        }
        if (bytes)
                memcpy(k->bytes + at, data, bytes);
        k->bytes_used = end;
        return at;
}

/* Returns whether two values of a field are the same. Sizes and dims beyond the count are unset. Fields of u64 place
 * random numbers and do not count. */
static bool same_value(const lg__field *f, const void *a, const void *b, size_t bytes)
{
        if (f->type == LG__FIELD_shape)
                return lg__shape_equal(*(const lg_shape *)a, *(const lg_shape *)b);
        if (f->type == LG__FIELD_dims) {
                const lg_dims *x = a, *y = b;
                return x->count == y->count &&
                       (x->count < 1 || !memcmp(x->dim, y->dim, (size_t)x->count * sizeof *x->dim));
        }
        return f->type == LG__FIELD_u64 || !memcmp(a, b, bytes);
}

/* Returns the field in which two sets of attributes differ, or NULL. */
static const lg__field *difference(const lg__op *op, const void *a, const void *b)
{
        const lg__field *next = op->fields;
        size_t at = 0;
        for (const void *p; (p = lg__next_field(a, &next, &at));) {
                const lg__field *f = next - 1;
                const size_t from = (size_t)((const char *)p - (const char *)a);
                if (!same_value(f, p, (const char *)b + from, at - from))
                        return f;
        }
        return NULL;
}

static bool differs(lg_recorder *r, const char *name, const char *what)
{
        return lg__fail(r->object.ctx, LG_ERR_STATE,
                        OP ": %s differs between two runs of the function in %s; what changes from step to step is "
                           "given as an input, or set by an optimiser's rates",
                        name, what);
}

static void note(lg_recorder *r, const lg__op *op, const void *attributes, uint64_t operands)
{
        recording *k = r->running;
        lg_ctx *c = r->object.ctx;
        if (k->runs == 0)
                return;
        if (k->runs == 1) {
                const int64_t at = keep(k, c, attributes, op->attributes_bytes);
                if (at >= 0 && lg__grow(c, &k->ops, k->count, &k->room, sizeof *k->ops))
                        k->ops[k->count++] = (noted){op, at, operands};
                return;
        }
        if (k->at >= k->count || k->ops[k->at].op != op) {
                differs(r, op->name, "which ops it applies");
                return;
        }
        const noted *n = &k->ops[k->at++];
        const lg__field *f = difference(op, attributes, k->bytes + n->attributes);
        if (f)
                differs(r, op->name, f->name);
        else if (n->operands != operands)
                differs(r, op->name, "its operands");
}

static lg_recorder *recorder_of(lg__observer *o)
{
        return (lg_recorder *)((char *)o - offsetof(lg_recorder, observer));
}

static int64_t bytes_of(lg_tensor *const *t, int count)
{
        int64_t sum = 0;
        for (int i = 0; i < count; i++)
                sum += t[i] ? lg__shape_numel(t[i]->at.shape) * (int64_t)lg__dtype_bytes(t[i]->at.dtype) : 0;
        return sum;
}

/* Tells the tape, if there is one, what the last op computed from so many bytes. */
static void describe(lg__tape *tape, lg_tensor *const *out, int count, int64_t bytes)
{
        int i = 0;
        while (i < count && !out[i])
                i++;
        if (tape && i < count)
                lg__tape_describe(tape, out[i]->at.dtype, out[i]->at.shape, bytes + bytes_of(out, count));
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        lg_recorder *r = recorder_of(o);
        uint64_t h = 0;
        if (!ok || call->op->compose || !call->ctx->run) /* run 0: a tape is paused */
                return;
        describe(call->ctx->tape, call->out, call->out_count, bytes_of(call->in, call->in_count));
        for (int i = 0; i < call->in_count; i++)
                h = mix(h, operand(r, call->op, call->in[i]));
        for (int i = 0; i < call->out_count; i++)
                h = mix(h, operand(r, call->op, call->out[i]));
        note(r, call->op, call->attributes, h);
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        lg_recorder *r = recorder_of(o);
        uint64_t h = 0;
        if (!ok)
                return;
        describe(v->ctx->tape, v->grad_in, v->in_count, bytes_of(v->in, v->in_count));
        for (int i = 0; i < v->in_count; i++)
                h = mix(mix(h, operand(r, v->op, v->in[i])), operand(r, v->op, v->grad_in[i]));
        note(r, v->op, v->attributes, h);
}

static bool has_gradient(const lg_tensor *t)
{
        return t->node && t->node->grads && t->node->grads[0];
}

/* Returns whether the tensor is not freed. */
static bool lives(const outer *o)
{
        return o->tensor->live == LG__LIVE && o->tensor->serial == o->serial;
}

static void leaf_used(lg__observer *o, lg_tensor *t, bool read)
{
        lg_recorder *r = recorder_of(o);
        recording *k = r->running;
        if (!t->serial || t->serial > r->since || !note_outer(k, r->object.ctx, t, true, "the function"))
                return;
        if (read && has_gradient(t) && t->node->grads[0]->storage->run != r->object.ctx->run)
                for (int64_t i = 0; i < k->outer_count; i++)
                        k->outers[i].read = k->outers[i].read || k->outers[i].tensor == t;
}

static void enter(lg__observer *o, const lg__frame *f)
{
        (void)o;
        if (f->module)
                lg__module_seen(f->module);
}

/* ---- recordings ---- */

static modes modes_of(const lg_ctx *c)
{
        return (modes){c->threads,       c->autocast, c->default_device, c->recording,
                       c->deterministic, c->tf32,     c->conv_tf32,      c->watchers};
}

static bool same_modes(modes a, modes b)
{
        return a.threads == b.threads && a.autocast == b.autocast && lg_device_equal(a.device, b.device) &&
               a.grad == b.grad && a.deterministic == b.deterministic && a.tf32 == b.tf32 &&
               a.conv_tf32 == b.conv_tf32 && a.watchers == b.watchers;
}

/* Returns a number made of which of the recorder's first `count` leaves have a gradient. */
static uint64_t graded(const lg_recorder *r, int64_t count)
{
        uint64_t h = 0;
        for (int64_t i = 0; i < count; i++) {
                const outer *o = &r->leaves[i];
                h = mix(h, lives(o) && has_gradient(o->tensor));
        }
        return h;
}

/* Returns whether the leaf is as it was before the recorded run. */
static bool leaf_is_same(const recording *k, const leaf *l)
{
        const lg_tensor *t = k->outers[l->outer].tensor;
        return t->node == l->node && !t->node->hooks && has_gradient(t) == l->had;
}

/* Returns the layout of the copies of an input: its own, if dense, else row-major. */
static lg__layout dense_layout(const lg_tensor *t)
{
        lg__layout at = {.dtype = t->at.dtype, .shape = t->at.shape};
        lg__layout_contiguous(&at);
        lg__keep_layout(&at, &t->at);
        return at;
}

static bool same_layout(const lg__layout *a, lg__layout b)
{
        bool same = a->dtype == b.dtype && lg__same_shape(a, &b);
        for (int i = 0; same && i < b.shape.ndim; i++)
                same = b.shape.size[i] <= 1 || a->strides[i] == b.strides[i];
        return same;
}

/* Returns whether a run with these inputs may go on with the recording. */
static bool fits(const lg_recorder *r, const recording *k, lg_list in)
{
        if (k->input_count != (int)in.count || !same_modes(modes_of(r->object.ctx), k->modes))
                return false;
        for (int i = 0; i < k->input_count; i++) {
                const lg_tensor *t = in.items[i];
                if (!same_layout(&k->given[i], dense_layout(t)) || t->storage->device != k->device)
                        return false;
        }
        for (int64_t i = 0; i < k->outer_count && k->runs; i++) {
                const outer *o = &k->outers[i];
                if (lives(o) ? o->tensor->storage != o->storage || o->tensor->node != o->node : o->firm)
                        return false;
        }
        if (k->runs == 1)
                return graded(r, k->known) == k->graded;
        for (int64_t i = 0; i < k->leaf_count; i++)
                if (!leaf_is_same(k, &k->leaves[i]))
                        return false;
        return lg__tape_valid(k->runs == 2 ? &k->noted : &k->tape);
}

static recording *find(const lg_recorder *r, lg_list in)
{
        recording *best = NULL;
        for (recording *k = r->recordings; k; k = k->next)
                if (fits(r, k, in) && (!best || k->runs > best->runs))
                        best = k;
        return best;
}

/* Returns how many references to a storage recordings have as to that of a tensor. */
static int64_t holders(const lg_recorder *r, const lg__storage *s)
{
        int64_t n = 0;
        for (const recording *k = r->recordings; k; k = k->next)
                for (int64_t i = 0; i < k->outer_count; i++)
                        n += k->outers[i].storage == s;
        return n;
}

/* Returns false if no further run can use the recording: what it depends on was freed or replaced. The storage of a
 * tensor may come back, as those that lg_ema_swap() swaps do, unless only recordings have it. */
static bool lasts(const lg_recorder *r, const recording *k)
{
        for (int64_t i = 0; i < k->outer_count && k->runs; i++) {
                const outer *o = &k->outers[i];
                if (lives(o) ? o->node && o->tensor->node != o->node : o->firm)
                        return false;
                if (lives(o) && o->tensor->storage != o->storage && o->storage->refs <= holders(r, o->storage))
                        return false;
        }
        return lg__tape_lasts(k->runs < 3 ? &k->noted : &k->tape);
}

static void forget_leaves(lg_ctx *c, recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                lg__tensor_release(k->leaves[i].before);
                lg__tensor_release(k->leaves[i].grad);
                lg__tensor_release(k->leaves[i].next);
                lg__node_unref(k->leaves[i].node);
        }
        lg__free(c, k->leaves, (size_t)k->leaf_room * sizeof *k->leaves);
        k->leaves = NULL;
        k->leaf_count = k->leaf_room = 0;
}

static void forget(lg_recorder *r, recording *k)
{
        lg_ctx *c = r->object.ctx;
        for (recording **at = &r->recordings; *at; at = &(*at)->next)
                if (*at == k) {
                        *at = k->next;
                        break;
                }
        for (int i = 0; i < LG__RECORDED_INPUTS; i++)
                lg__tensor_release(k->in[i]);
        for (int64_t i = 0; i < k->outer_count; i++)
                lg__storage_unref(k->outers[i].storage);
        forget_leaves(c, k);
        lg__tensor_release(k->result);
        lg__tape_free(&k->noted);
        lg__tape_free(&k->tape);
        lg__free(c, k->ops, (size_t)k->room * sizeof *k->ops);
        lg__free(c, k->bytes, (size_t)k->bytes_room);
        lg__free(c, k->outers, (size_t)k->outer_room * sizeof *k->outers);
        lg__free(c, k, sizeof *k);
}

/* Begins a recording, in place of those that are of no more use, or of the one that was not used for the longest time
 * if there are too many. */
static recording *begin(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        recording *k = lg__alloc(c, sizeof *k), *oldest;
        int64_t count = 0;
        if (!k)
                return NULL;
        for (recording *other = r->recordings, *next; other; other = next) {
                next = other->next;
                if (!lasts(r, other))
                        forget(r, other);
        }
        oldest = r->recordings;
        for (recording *other = r->recordings; other; other = other->next, count++)
                if (other->used < oldest->used)
                        oldest = other;
        if (count >= r->o.max_recordings)
                forget(r, oldest);
        k->input_count = (int)in.count;
        k->device = in.items[0]->storage->device;
        k->modes = modes_of(c);
        k->known = r->leaf_count;
        k->graded = graded(r, k->known);
        for (int i = 0; i < k->input_count; i++)
                k->given[i] = dense_layout(in.items[i]);
        k->next = r->recordings;
        r->recordings = k;
        return k;
}

/* ---- runs ---- */

static bool keeps_none_of(lg_ctx *c, const lg__link *list, const lg_tensor *result)
{
        for (const lg__link *l = list->next; l != list; l = l->next) {
                const lg_tensor *t = (const lg_tensor *)(const void *)l;
                if (t != result && t->storage->run == c->run && t->owner != LG__OWNER_LIBRARY)
                        return lg__fail(c, LG_ERR_STATE,
                                        OP
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
                h = mix(h, in.items[i]->live == LG__LIVE ? in.items[i]->storage->version : 0);
        return h;
}

/* Runs the function in a scope. Returns its result, detached, in the scope around; NULL: none, or an error. */
static lg_tensor *call(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        const char *unread = c->unread;
        const modes were = modes_of(c);
        const lg__scope *outer = c->scope;
        const uint64_t versions = versions_of(in);
        uint32_t mine = 0;
        lg_scope scope = lg__scope_begin(c);
        if (!scope.id)
                return NULL;
        if (c->run)
                c->unread = OP;
        lg_tensor *y = r->fn(c, in, r->o.user);
        c->unread = unread;
        if (y && (!lg__in_context(c, y, OP, "the result") || !lg__check(y, OP, "the result")))
                y = NULL;
        lg__scope_leave(c, scope, outer, &y, y != NULL, &mine);
        if (!same_modes(modes_of(c), were))
                lg__fail(c, LG_ERR_STATE,
                         OP ": the function sets the mode of gradients, autocast, determinism, threads or TF32, or the "
                            "default device, and does not restore it");
        if (versions_of(in) != versions)
                lg__fail(c, LG_ERR_STATE, OP ": the function changes an input in place; let it change a copy");
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
                ok = k->in[i] && lg__copy_values(k->in[i], t, OP);
        }
        return ok;
}

/* Adds a leaf to those of all recordings. */
static bool know_leaf(lg_recorder *r, const outer *o)
{
        for (int64_t i = 0; i < r->leaf_count; i++)
                if (r->leaves[i].tensor == o->tensor && r->leaves[i].serial == o->serial)
                        return true;
        if (!lg__grow(r->object.ctx, &r->leaves, r->leaf_count, &r->leaf_room, sizeof *r->leaves))
                return false;
        r->leaves[r->leaf_count++] = *o;
        return true;
}

static lg__node *leaf_of(const outer *o)
{
        return lives(o) ? o->tensor->node : NULL;
}

/* Lists the leaves that the runs before used. */
static bool list_leaves(lg_recorder *r, recording *k)
{
        lg_ctx *c = r->object.ctx;
        int64_t n = 0;
        forget_leaves(c, k);
        for (int64_t i = 0; i < k->outer_count; i++)
                n += leaf_of(&k->outers[i]) != NULL;
        k->leaves = lg__alloc(c, (size_t)n * sizeof *k->leaves);
        if (!k->leaves)
                return false;
        k->leaf_room = n;
        for (int64_t i = 0; i < k->outer_count; i++) {
                lg__node *node = leaf_of(&k->outers[i]);
                if (!node)
                        continue;
                if (!know_leaf(r, &k->outers[i]))
                        return false;
                lg__node_ref(node);
                k->leaves[k->leaf_count++] = (leaf){.outer = i, .node = node};
        }
        return true;
}

static void note_gradients_before(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                const lg_tensor *t = k->outers[l->outer].tensor;
                l->had = has_gradient(t);
                lg__tensor_release(l->before);
                l->before = l->had ? lg__alias_of(t->node->grads[0]) : NULL;
        }
}

static void note_gradients_after(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                const outer *o = &k->outers[l->outer];
                l->grad = has_gradient(o->tensor) ? lg__alias_of(o->tensor->node->grads[0]) : NULL;
                const bool kept = l->before && l->grad && l->before->storage == l->grad->storage;
                if (kept || o->read)
                        continue;
                lg__tensor_release(l->before);
                l->before = NULL;
        }
}

static bool has_other_gradient(const leaf *l)
{
        const lg_tensor *now = l->node->grads ? l->node->grads[0] : NULL;
        return (now ? now->storage : NULL) != (l->grad ? l->grad->storage : NULL);
}

/* Makes what set_gradients() needs. */
static bool prepare_gradients(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                if (!l->next && l->grad && has_other_gradient(l) && !(l->next = lg__alias_of(l->grad)))
                        return false;
        }
        return true;
}

/* Copies gradients that the tape reads, but that other runs have made, to where it expects them. */
static bool copy_gradients(const recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                const leaf *l = &k->leaves[i];
                const lg_tensor *now = l->before ? l->node->grads[0] : NULL;
                if (now && now->storage != l->before->storage && !lg__copy_values(l->before, now, OP))
                        return false;
        }
        return true;
}

/* Makes the gradients that the tape computes those of their leaves. */
static bool set_gradients(recording *k)
{
        for (int64_t i = 0; i < k->leaf_count; i++) {
                leaf *l = &k->leaves[i];
                if (!has_other_gradient(l))
                        continue;
                lg_tensor *next = l->next;
                l->next = NULL;
                if (!next)
                        lg__node_clear_grad(l->node, 0);
                else if (!lg__node_set_grad(l->node, 0, next))
                        return false;
        }
        return true;
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

/* Returns a number made of which tensor the result is, and of which leaves have a gradient after the run. */
static uint64_t outcome_of(lg_recorder *r, const recording *k, lg_tensor *result)
{
        uint64_t h = operand(r, NULL, result);
        if (result && result->storage->run != r->object.ctx->run) /* an input, or not of the run */
                h = mix(h, (uintptr_t)result->storage);
        for (int64_t i = 0; i < k->outer_count; i++)
                if (leaf_of(&k->outers[i]) && has_gradient(k->outers[i].tensor))
                        h = mix(h, (uint64_t)i);
        return h;
}

/* Compares the kernel calls of the last run with the recorded ones. Returns false with an error. */
static bool is_same(lg_recorder *r, recording *k, uint64_t outcome)
{
        const char *other = lg__tape_difference(&k->noted, &k->tape);
        if (k->at < k->count)
                other = k->ops[k->at].op->name;
        lg__tape_free(&k->noted);
        if (!other && outcome != k->outcome)
                return differs(r, "the end", "which tensor is the result, or which parameters have gradients");
        return !other || differs(r, other, "what it computes with");
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
        if (k->runs && !list_leaves(r, k))
                return NULL;
        note_gradients_before(k);
        lg__drop_casts(c);
        if (k->runs == 2) /* the memory of the runs before is not needed beside the tape's */
                lg__cache_empty(&k->device->cache);
        begin_run(r, k);
        lg_tensor *y = NULL;
        if (!tape || lg__tape_begin(tape, c, k->device, k->runs == 2 ? &k->noted : NULL))
                y = run_observed(r, k);
        if (tape)
                lg__tape_end(tape);
        const uint64_t outcome = c->error ? 0 : outcome_of(r, k, y);
        if (k->runs == 1)
                k->outcome = outcome;
        end_run(r);
        if (c->error || k->runs < 2)
                return c->error ? NULL : copied(y);
        note_gradients_after(k);
        lg__cache_empty(&k->device->cache); /* of the gradients before */
        k->result = y ? lg__tensor_own(lg_detach(y)) : NULL;
        if (k->tape.refused)
                return lg__fail(c, LG_ERR_STATE, OP ": the function cannot be recorded: %s", k->tape.refused);
        return is_same(r, k, outcome) ? copied(y) : NULL;
}

/* All memory is allocated before the tape runs, so that a run that fails for want of it has changed nothing. */
static lg_tensor *replay(recording *k, lg_list in)
{
        lg_tensor *y = k->result ? lg__tensor_like(k->result) : NULL;
        bool ok = (y || !k->result) && prepare_gradients(k) && lg__tape_prepare(&k->tape);
        ok = ok && copy_inputs(k, in) && copy_gradients(k) && lg__tape_run(&k->tape) && set_gradients(k) &&
             (!y || lg__copy_values(y, k->result, OP));
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
        const uint64_t outcome = c->error ? 0 : outcome_of(r, k, y);
        end_run(r);
        return !c->error && is_same(r, k, outcome) ? copied(y) : NULL;
}

static bool inputs_are_good(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        if (!lg__list_ok(c, OP, in.count, in.items))
                return false;
        if (in.count < 1 || in.count > LG__RECORDED_INPUTS)
                return lg__fail(c, LG_ERR_ARGUMENT, OP ": %lld inputs; 1 to %d are possible", (long long)in.count,
                                LG__RECORDED_INPUTS);
        for (int64_t i = 0; i < in.count; i++) {
                const lg_tensor *t = in.items[i];
                if (!t)
                        return lg__fail(c, LG_ERR_ARGUMENT, OP ": input %lld is NULL", (long long)i);
                if (!lg__in_context(c, t, OP, "an input") || !lg__check(t, OP, "an input"))
                        return false;
                if (t->storage->device != in.items[0]->storage->device)
                        return lg__fail(c, LG_ERR_DEVICE, OP ": input 0 is on %s but input %lld is on %s",
                                        lg_device_name(in.items[0]->storage->device->id), (long long)i,
                                        lg_device_name(t->storage->device->id));
                if (t->node)
                        return lg__fail(c, LG_ERR_STATE,
                                        OP
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
        recording *k = find(r, in);
        if (!k && !(k = begin(r, in)))
                return NULL;
        k->used = ++r->runs;
        const int64_t every = r->o.verify_every;
        const bool verifies = every > 0 && k->runs >= 3 && (k->runs - 3) % every == every - 1;
        lg_tensor *y = k->runs < 3 ? observed(r, k, in) : verifies ? verified(r, k, in) : replay(k, in);
        r->replays += k->runs >= 3 && !verifies && !c->error;
        if (c->error && k->runs < 3)
                forget(r, k);
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
        if (!lg__enter(c) || !lg__object_lasts(&r->object, OP) || !inputs_are_good(r, in) || !lg__unrecorded(c, OP))
                return NULL;
        lg__object_use(r); /* the function may free it */
        const uint64_t versions = versions_of(in);
        lg_tensor *y = run(r, in);
        if (!c->error && versions_of(in) != versions)
                lg__fail(c, LG_ERR_STATE,
                         OP ": the step changes the memory of an input, such as a parameter's; give a copy");
        y = c->error ? lg__created(y, false, false) : y;
        lg__object_done(r);
        return y;
}

/* ---- the recorder ---- */

static void destroy(lg__object *o)
{
        lg_recorder *r = (lg_recorder *)o;
        while (r->recordings)
                forget(r, r->recordings);
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
        r->observer = (lg__observer){.op_end = op_end, .fused_end = fused_end, .enter = enter, .leaf = leaf_used};
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
