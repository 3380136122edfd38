/* recordings.c - the recordings of a recorder: which one fits a run, new ones and the end of old ones. */
#include <string.h>
#include "graph/op.h"
#include "nn/nn.h"
#include "recorder.h"

modes lg__modes_of(const lg_ctx *c)
{
        return (modes){c->threads,       c->autocast, c->default_device, c->recording,
                       c->deterministic, c->tf32,     c->conv_tf32,      c->watchers};
}

bool lg__same_modes(modes a, modes b)
{
        return a.threads == b.threads && a.autocast == b.autocast && lg_device_equal(a.device, b.device) &&
               a.grad == b.grad && a.deterministic == b.deterministic && a.tf32 == b.tf32 &&
               a.conv_tf32 == b.conv_tf32 && a.watchers == b.watchers;
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
        if (k->input_count != (int)in.count || !lg__same_modes(lg__modes_of(r->object.ctx), k->modes))
                return false;
        for (int i = 0; i < k->input_count; i++) {
                const lg_tensor *t = in.items[i];
                if (!same_layout(&k->given[i], dense_layout(t)) || t->storage->device != k->device)
                        return false;
        }
        for (int64_t i = 0; i < k->outer_count && k->runs; i++) {
                const outer *o = &k->outers[i];
                if (lg__outer_lives(o) ? o->tensor->storage != o->storage || o->tensor->node != o->node : o->firm)
                        return false;
        }
        if (k->runs == 1)
                return lg__graded(r, k->known) == k->graded;
        for (int64_t i = 0; i < k->leaf_count; i++)
                if (!lg__leaf_is_same(k, &k->leaves[i]))
                        return false;
        return lg__tape_valid(k->runs == 2 ? &k->noted : &k->tape);
}

recording *lg__recording_find(const lg_recorder *r, lg_list in)
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
                if (lg__outer_lives(o) ? o->node && o->tensor->node != o->node : o->firm)
                        return false;
                if (lg__outer_lives(o) && o->tensor->storage != o->storage &&
                    o->storage->refs <= holders(r, o->storage))
                        return false;
        }
        return lg__tape_lasts(k->runs < 3 ? &k->noted : &k->tape);
}

void lg__recording_forget(lg_recorder *r, recording *k)
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
        lg__forget_leaves(c, k);
        lg__tensor_release(k->result);
        lg__tape_free(&k->noted);
        lg__tape_free(&k->tape);
        lg__free(c, k->ops, (size_t)k->room * sizeof *k->ops);
        lg__free(c, k->attributes.p, (size_t)k->attributes.room);
        lg__free(c, k->outers, (size_t)k->outer_room * sizeof *k->outers);
        lg__free(c, k, sizeof *k);
}

recording *lg__recording_begin(lg_recorder *r, lg_list in)
{
        lg_ctx *c = r->object.ctx;
        recording *k = lg__alloc(c, sizeof *k), *oldest;
        int64_t count = 0;
        if (!k)
                return NULL;
        for (recording *other = r->recordings, *next; other; other = next) {
                next = other->next;
                if (!lasts(r, other))
                        lg__recording_forget(r, other);
        }
        oldest = r->recordings;
        for (recording *other = r->recordings; other; other = other->next, count++)
                if (other->used < oldest->used)
                        oldest = other;
        if (count >= r->o.max_recordings)
                lg__recording_forget(r, oldest);
        k->input_count = (int)in.count;
        k->device = in.items[0]->storage->device;
        k->modes = lg__modes_of(c);
        k->known = r->leaf_count;
        k->graded = lg__graded(r, k->known);
        for (int i = 0; i < k->input_count; i++)
                k->given[i] = dense_layout(in.items[i]);
        k->next = r->recordings;
        r->recordings = k;
        return k;
}
