/* ema.c - an exponential moving average of a module's parameters. */
#include "core/tape.h"
#include "state/entries.h"
#include "graph/op.h"
#include "optim.h"

/* A tensor of the module and its average. */
typedef struct entry {
        lg_tensor *live, *average; /* the module's tensor; its average, which is owned */
        uint64_t serial;           /* of live, to detect that live was freed and its record reused */
        bool is_buffer;
} entry;

struct lg_ema {
        lg__object object;
        double decay;
        int64_t updates, count, room;
        entry *entries;
        bool swapped;
};

static void destroy(lg__object *o)
{
        lg_ema *e = (lg_ema *)o;
        for (int64_t i = 0; i < e->count; i++)
                lg__tensor_release(e->entries[i].average);
        lg__free(o->ctx, e->entries, (size_t)e->room * sizeof *e->entries);
}

static bool visit(lg__object *o, lg__state_entries *list)
{
        lg_ema *e = (lg_ema *)o;
        bool ok = lg__state_add_whole(list, "updates", &e->updates, LG__COUNT_MOST) &&
                  lg__state_add_bool(list, "swapped", &e->swapped);
        size_t was = lg__state_entries_enter(list, "average");
        for (int64_t i = 0; i < e->count && ok; i++) {
                const entry *at = &e->entries[i];
                const char *name = at->live->serial == at->serial ? lg__state_entries_name(list, at->live) : NULL;
                char number[24];
                snprintf(number, sizeof number, "%lld", (long long)i);
                ok = lg__state_add_tensor(list, name ? name : number, &e->entries[i].average, 0);
        }
        lg__state_entries_leave(list, was);
        return ok;
}

static const lg__type type = {.destroy = destroy, .visit = visit};

static void take_one(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        lg_ema *e = user;
        (void)path;
        if (!lg__grow(e->object.ctx, &e->entries, e->count, &e->room, sizeof *e->entries))
                return;
        lg_tensor *copy = lg__clone_values(t, t->storage->device->id, t->at.dtype);
        if (copy)
                e->entries[e->count++] = (entry){
                        .live = t, .average = lg__tensor_own(copy), .serial = t->serial, .is_buffer = is_buffer};
}

lg_ema *lg_ema_new(lg_module *m, double decay)
{
        lg_ctx *c = lg_module_ctx(m);
        decay = lg__option(decay, 0);
        if (!lg__ok(c) || !lg__object_lasts((const lg__object *)m, "lg_ema_new"))
                return NULL;
        if (!(decay >= 0 && decay <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_ema_new: decay is %g, not in [0, 1]", decay);
        lg_ema *e = lg__object_new(c, &type, sizeof *e);
        if (!e)
                return NULL;
        e->decay = decay;
        return lg_each_tensor(m, take_one, e) && !c->error ? e : lg__object_destroy(e);
}

void lg_ema_free(lg_ema *e)
{
        if (e && lg__may_end(e->object.ctx, "lg_ema_free"))
                lg__object_destroy(e);
}

static bool ready(const lg_ema *e, const char *op)
{
        if (!e || e->object.ctx->error || !lg__object_lasts(&e->object, op))
                return false;
        for (int64_t i = 0; i < e->count; i++)
                if (e->entries[i].live->live != LG__LIVE || e->entries[i].live->serial != e->entries[i].serial)
                        return lg__fail(e->object.ctx, LG_ERR_STATE, "%s: the module was freed", op);
        return true;
}

/* Moves the average to the device of its tensor, if the tensor was moved. */
static bool update_average(entry *n)
{
        lg_device device = n->live->storage->device->id;
        if (lg_device_equal(n->average->storage->device->id, device))
                return true;
        lg_tensor *moved = lg__clone_values(n->average, device, n->average->at.dtype);
        if (!moved)
                return false;
        lg__tensor_hold(&n->average, moved);
        return true;
}

static bool update(lg_ema *e, entry *n)
{
        if (!update_average(n))
                return false;
        if (n->is_buffer || e->updates == 0)
                return lg__copy_values(n->average, n->live, "lg_ema_update");
        lg_tensor *live = lg_detach(n->live), *kept = lg_mul_scalar(n->average, e->decay);
        lg_tensor *sum = lg_add(kept, lg_mul_scalar(live, 1 - e->decay));
        return sum && lg__copy_values(n->average, sum, "lg_ema_update");
}

static void count_update(void *owner, const void *data, size_t bytes)
{
        (void)data;
        (void)bytes;
        ((lg_ema *)owner)->updates++;
}

/* Returns whether the averages are where they were, data, and whether it is still so that the update is the first,
 * which copies. */
static bool stands(void *owner, const void *data, size_t bytes)
{
        const lg_ema *e = owner;
        const void *const *memory = data;
        const bool later = *memory++ != NULL;
        bool same = later == (e->updates > 0) && bytes == (size_t)(e->count + 1) * sizeof *memory;
        for (int64_t i = 0; i < e->count && same; i++)
                same = e->swapped || lg__data(e->entries[i].average) == memory[i]; /* swapped ones come back */
        return same;
}

/* Lets runs of a tape count the update. Returns false with an error. */
static bool note_update(lg_ema *e)
{
        lg_ctx *c = e->object.ctx;
        const size_t bytes = (size_t)(e->count + 1) * sizeof(void *);
        const void **memory = c->tape ? lg__alloc(c, bytes) : NULL;
        if (!memory)
                return !c->tape;
        memory[0] = e->updates ? e : NULL;
        for (int64_t i = 0; i < e->count; i++)
                memory[i + 1] = lg__data(e->entries[i].average);
        lg__tape_check(c, &e->object, stands, memory, bytes, NULL);
        lg__tape_watch(c, &e->object, &e->swapped, sizeof e->swapped);
        lg__tape_host(c, count_update, e, NULL, 0);
        lg__free(c, memory, bytes);
        return !c->error;
}

bool lg_ema_update(lg_ema *e)
{
        if (!ready(e, "lg_ema_update"))
                return false;
        lg_ctx *c = e->object.ctx;
        if (e->swapped)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_ema_update: the averages are in the module; lg_ema_swap() them back");
        bool ok = true, recording = lg_set_grad_mode(c, false);
        for (int64_t i = 0; i < e->count && ok; i++) {
                lg_scope scope = lg_scope_begin(c);
                ok = scope.id && update(e, &e->entries[i]);
                lg_scope_end(c, scope);
        }
        lg_set_grad_mode(c, recording);
        if (!ok || !note_update(e))
                return false;
        count_update(e, NULL, 0);
        return true;
}

bool lg_ema_swap(lg_ema *e)
{
        if (!ready(e, "lg_ema_swap") || !lg__unrecorded(e->object.ctx, "lg_ema_swap"))
                return false;
        for (int64_t i = 0; i < e->count; i++)
                if (!update_average(&e->entries[i]))
                        return false;
        for (int64_t i = 0; i < e->count; i++) {
                lg_tensor *a = e->entries[i].live, *b = e->entries[i].average;
                lg__storage *s = a->storage;
                lg__layout at = a->at;
                a->storage = b->storage;
                a->at = b->at;
                b->storage = s;
                b->at = at;
        }
        e->swapped = !e->swapped;
        return true;
}
