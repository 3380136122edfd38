/* tape.c - the kernel calls of a step as a list that can be run again: adding calls and dials. */
#include <string.h>
#include "tape.h"

/* Whether the arguments of a kernel begin with a count and an array of lg_update in host memory. */
static const bool passes[LG__KERNEL_POINTWISE + 1] = {
#define UPDATE(name, ...) [LG__KERNEL_##name] = true,
#include "../../kernels/updates.def"
        [LG__KERNEL_norms] = true, [LG__KERNEL_scale] = true, [LG__KERNEL_unscale] = true};

int64_t lg__bytes_put(lg_ctx *c, lg__bytes *to, const void *data, size_t bytes)
{
        const int64_t at = to->used, end = at + (int64_t)(bytes + 15) / 16 * 16;
        while (to->room < end) {
                const int64_t room = to->room ? 2 * to->room : 1024;
                char *more = lg__alloc(c, (size_t)room);
                if (!more)
                        return -1;
                if (to->used)
                        memcpy(more, to->p, (size_t)to->used);
                lg__free(c, to->p, (size_t)to->room);
                to->p = more;
                to->room = room;
        }
        if (bytes)
                memcpy(to->p + at, data, bytes);
        to->used = end;
        return at;
}

static bool append(lg__tape *t, lg__tape_call call)
{
        if (!lg__grow(t->ctx, &t->calls, t->count, &t->room, sizeof *t->calls) ||
            (t->arena && !lg__grow(t->ctx, &t->notes, t->count, &t->note_room, sizeof *t->notes)))
                return false;
        if (t->arena)
                t->notes[t->count] = (lg__tape_note){0};
        t->calls[t->count++] = call;
        return true;
}

bool lg__tape_add(lg__device *d, const char *op, int kernel, const void *args, size_t bytes)
{
        lg__tape *t = d->cache.ctx->tape;
        if (d != t->device)
                t->refused = "it computes on several devices";
        lg__tape_call call = {.op = op, .kernel = kernel, .bytes = (int64_t)bytes, .updates = -1};
        call.args = lg__bytes_put(t->ctx, &t->data, args, bytes);
        if (call.args >= 0 && kernel < LG__KERNEL_POINTWISE && passes[kernel]) {
                const lg_pass *pass = args;
                call.updates =
                        lg__bytes_put(t->ctx, &t->data, pass->updates, (size_t)pass->count * sizeof *pass->updates);
                if (call.updates < 0)
                        return false;
        }
        if (call.args < 0 || !append(t, call))
                return false;
        t->timing = t->arena && d->api->time_mark && d->api->time_mark(d->queue, &t->notes[t->count - 1].from);
        return true;
}

void lg__tape_describe(lg__tape *t, lg_dtype dtype, lg_shape shape, int64_t bytes)
{
        for (; t->arena && t->described < t->count; t->described++) {
                lg__tape_note *n = &t->notes[t->described];
                n->dtype = dtype;
                n->shape = shape;
                n->bytes = bytes;
        }
}

/* Takes memory that calls of the tape do not use for anything else: of the device's cache, not the arena's. Returns
 * NULL with an error. */
static void *keep(lg__tape *t, size_t bytes)
{
        lg__block *block = lg__cache_get(&t->device->cache, bytes);
        if (!block)
                return NULL;
        block->next = t->kept;
        t->kept = block;
        return block->p;
}

/* Stands for values of the host, which two tapes of the same step have alike. */
static void compare(void *owner, const void *data, size_t bytes)
{
        (void)owner;
        (void)data;
        (void)bytes;
}

bool lg__tape_upload(lg__device *d, const char *op, void *to, const void *from, size_t bytes)
{
        lg__tape *t = d->cache.ctx->tape;
        lg_copy_args a = {.ndim = 1, .shape = {(int64_t)bytes}, .out_dtype = LG_U8, .in_dtype = LG_U8, .out = to};
        const int64_t at = lg__bytes_put(t->ctx, &t->data, from, bytes);
        a.out_strides[0] = a.in_strides[0] = 1;
        if (at < 0 ||
            !append(t, (lg__tape_call){.op = op, .fn = compare, .args = at, .bytes = (int64_t)bytes, .updates = -1}))
                return false;
        if (t->arena) {
                void *kept = keep(t, bytes);
                if (!kept || !d->api->upload(d->queue, kept, from, bytes))
                        return false;
                a.in = kept;
        }
        return lg__tape_add(d, op, LG__KERNEL_copy, &a, sizeof a);
}

void lg__tape_host(lg_ctx *c, lg__host_fn *fn, void *owner, const void *data, size_t bytes)
{
        lg__tape *t = c->tape;
        const int64_t at = t ? lg__bytes_put(t->ctx, &t->data, data, bytes) : -1;
        if (at >= 0)
                append(t,
                       (lg__tape_call){.fn = fn, .owner = owner, .args = at, .bytes = (int64_t)bytes, .updates = -1});
}

bool lg__tape_link(lg__device *d, const char *op, lg_link *link, const lg_link_args *a, uint64_t *ticket)
{
        lg__tape *t = d->cache.ctx->tape;
        const int64_t at = t ? lg__bytes_put(t->ctx, &t->data, a, sizeof *a) : 0;
        if (at < 0 ||
            (t && !append(t, (lg__tape_call){.op = op, .link = link, .args = at, .bytes = sizeof *a, .updates = -1})))
                return false;
        const bool ok = d->api->links->run(d->queue, link, a, ticket);
        if (t) {
                t->calls[t->count - 1].ticket = *ticket;
                t->refused = d != t->device ? "it computes on several devices" : t->refused;
        }
        return lg__kernel_done(d, op, ok);
}

bool lg__tape_wait(lg__device *d, const char *op, lg_link *link, uint64_t ticket)
{
        lg__tape *t = d->cache.ctx->tape;
        if (!lg__kernel_done(d, op, d->api->links->wait(d->queue, link, ticket)))
                return false;
        int64_t i = t ? t->count - 1 : 0;
        while (t && i >= 0 && !(t->calls[i].link == link && t->calls[i].bytes && t->calls[i].ticket == ticket))
                i--;
        if (i < 0)
                t->refused = "it waits for an exchange that began before it";
        return !t || append(t, (lg__tape_call){.op = op, .link = link, .ticket = (uint64_t)i, .updates = -1});
}

static void change(void *owner, const void *data, size_t bytes)
{
        (void)data;
        (void)bytes;
        ((lg__storage *)owner)->version++;
}

void lg__storage_changed(lg__storage *s)
{
        s->version++;
        if (s->ctx->tape && s->run != s->ctx->run)
                lg__tape_host(s->ctx, change, lg__storage_ref(s), NULL, 0);
}

bool lg__tape_changes(const lg_ctx *c, const lg__storage *s)
{
        const lg__tape *t = c->tape;
        for (int64_t i = 0; t && i < t->count; i++)
                if (t->calls[i].fn == change && t->calls[i].owner == s)
                        return true;
        return false;
}

/* ---- dials ---- */

/* Adds a dial. Calls that are before it on the tape run after it is set. */
static lg_dial *add_dial(lg__tape *t, lg__dial_fn *refresh, void *owner, int64_t index)
{
        lg__tape_dial dial = {.refresh = refresh, .owner = owner, .index = index};
        double *to;
        if (!lg__grow(t->ctx, &t->dials, t->dial_count, &t->dial_room, sizeof *t->dials) ||
            !lg__grow(t->ctx, &t->values, t->dial_count, &t->value_room, sizeof *t->values) ||
            !(to = keep(t, sizeof t->values->value)))
                return NULL;
        for (int64_t i = 0; i < t->count; i++)
                dial.ahead += t->calls[i].fn && t->calls[i].owner == owner;
        t->dials[t->dial_count] = dial;
        t->values[t->dial_count] = (lg_dial){.to = to};
        return &t->values[t->dial_count++];
}

double *lg__dial(lg__device *d, const char *op, double *to, lg__dial_fn *refresh, void *owner, int64_t index)
{
        lg__tape *t = d->cache.ctx->tape;
        lg_dial own = {.to = to}, *dial = t && t->arena ? add_dial(t, refresh, owner, index) : &own;
        if (!dial)
                return NULL;
        refresh(owner, index, 0, dial->value);
        const lg_dials_args a = {1, dial};
        return lg__kernel_done(d, op, d->api->kernels->dials(d->queue, &a)) ? dial->to : NULL;
}

/* Writes by how much the seed and the position of the random generator differ from those at the beginning. */
static void refresh_random(void *owner, int64_t index, int64_t ahead, double *value)
{
        const lg__tape *t = owner;
        const lg_ctx *c = t->ctx;
        const uint64_t moved[2] = {c->random.seed + c->rank_seed - t->random.seed - t->rank_seed,
                                   c->random.counter - t->random.counter};
        (void)index;
        (void)ahead;
        memset(value, 0, LG_STEP_INPUTS * sizeof *value);
        if (c->replayed)
                memcpy(value, moved, sizeof moved);
}

const uint64_t *lg__tape_moved(lg_ctx *c)
{
        lg__tape *t = c->tape;
        if (!t || !t->arena)
                return NULL;
        for (int64_t i = 0; i < t->dial_count; i++)
                if (t->dials[i].refresh == refresh_random)
                        return (const uint64_t *)(const void *)t->values[i].to;
        return (const uint64_t *)(const void *)lg__dial(t->device, "random", NULL, refresh_random, t, 0);
}

/* ---- the end ---- */

lg__tape *lg__tape_pause(lg_ctx *c)
{
        lg__tape *t = c->tape;
        c->tape = NULL;
        if (t) {
                t->device->arena = NULL;
                t->run = c->run;
                c->run = 0;
        }
        return t;
}

void lg__tape_resume(lg__tape *t)
{
        if (!t)
                return;
        t->ctx->tape = t;
        t->ctx->run = t->run;
        t->device->arena = &t->memory->cache;
}

void lg__tape_free(lg__tape *t)
{
        if (!t->ctx)
                return;
        lg__tape_drop_graphs(t);
        for (int64_t i = 0; i < t->count; i++)
                if (t->calls[i].fn == change)
                        lg__storage_unref(t->calls[i].owner);
        for (int64_t i = 0; t->device->api->time_mark && t->notes && i < t->count; i++) {
                t->device->api->time_free(t->device->queue, t->notes[i].from);
                t->device->api->time_free(t->device->queue, t->notes[i].to);
        }
        lg__free(t->ctx, t->notes, (size_t)t->note_room * sizeof *t->notes);
        lg__free(t->ctx, t->calls, (size_t)t->room * sizeof *t->calls);
        lg__free(t->ctx, t->data.p, (size_t)t->data.room);
        lg__tape_drop_watches(t);
        lg__free(t->ctx, t->scratch, (size_t)t->scratch_room * sizeof *t->scratch);
        for (lg__block *block = t->kept, *after; block; block = after) {
                after = block->next;
                lg__cache_put(block);
        }
        lg__free(t->ctx, t->dials, (size_t)t->dial_room * sizeof *t->dials);
        lg__free(t->ctx, t->values, (size_t)t->value_room * sizeof *t->values);
        if (t->memory)
                lg__cache_leave(&t->memory->cache);
        *t = (lg__tape){.ctx = NULL};
}
