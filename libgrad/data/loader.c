/* loader.c - loaders, which go through a data set in batches, each in a scope of its own. */
#include <string.h>
#include "core/observer.h"
#include "group/group.h"
#include "state/entries.h"
#include "data.h"

struct lg_loader {
        lg__object object;
        lg__batch_plan plan; /* holds references to its data set and collate function */
        lg__device *device;
        lg__batch_ring *ring;
        lg__sample_order sample_order;
        int64_t *order; /* sample index at each position of the epoch; NULL: index is position */
        uint64_t seed;
        int64_t all_ranks;       /* samples in a full batch of all ranks together */
        int64_t epoch, position; /* number of the epoch; number of its next batch */
        bool running;            /* an epoch has begun and not ended */
        bool begun;              /* the ring has begun this epoch; false after a checkpoint was loaded */
        bool halted;             /* a batch has failed and must be made again */
        int64_t loops;           /* how many lg_each_batch() loops have begun */
        uint64_t scope;          /* id of the scope of the last step; 0: no scope */
        bool ending;             /* the loader or the scope of its last step is ending */
        bool making;             /* user code is making samples in this thread */
};

/* ---- scopes of steps ---- */

static void destroy(lg__object *o);
static const lg__type type;

static bool is_step_of_a_loader(lg_ctx *c, uint64_t scope)
{
        for (lg__link *link = c->objects.next; link != &c->objects; link = link->next) {
                lg__object *o = (lg__object *)link;
                if (o->type == &type && ((lg_loader *)o)->scope == scope)
                        return true;
        }
        return false;
}

/* Returns false and sets LG_ERR_STATE if the last step cannot end: the loader is ending its step or making a batch, or
 * a hook or user function called inside the step has not returned. */
static bool step_may_end(const lg_loader *l, const char *op)
{
        lg_ctx *c = l->object.ctx;
        bool fenced = false;
        if (!lg__unrecorded(c, op))
                return false;
        if (l->ending || l->making)
                return lg__fail(c, LG_ERR_STATE, "%s: this loader is %s; call it outside %s", op,
                                l->ending ? "ending its step" : "making a batch",
                                l->ending ? "release functions" : "functions that make samples");
        const lg__scope *s = l->scope ? c->scope : NULL;
        for (; s && s->id != l->scope; s = s->parent)
                fenced = fenced || s->fence;
        return !s || !fenced ||
               lg__fail(c, LG_ERR_STATE,
                        "%s: a call that began inside this loader's step has not returned; call it outside hooks "
                        "and own functions, or take a loader of their own",
                        op);
}

/* Ends the scope of the last step, unless the end of an outer scope has ended it. If steps of other loaders are open
 * inside, removes only this scope, so that their scopes stay open. */
static void end_step(lg_loader *l)
{
        lg_ctx *c = l->object.ctx;
        bool others = false;
        lg__scope *s = l->scope ? c->scope : NULL;
        for (; s && s->id != l->scope; s = s->parent)
                others = others || is_step_of_a_loader(c, s->id);
        l->scope = 0;
        l->ending = true;
        if (s && others)
                lg__scope_remove(c, s);
        else if (s)
                lg_scope_end(c, (lg_scope){s->id});
        l->ending = false;
}

/* ---- batches ---- */

/* Opens a scope, until end_making(), around user code that makes samples in this thread; that code cannot end outer
 * scopes. Returns false if the context has an error. */
static bool begin_making(lg_loader *l, lg_scope *ret)
{
        *ret = l->plan.set->calls_user_code || l->plan.collate ? lg__scope_begin(l->object.ctx) : (lg_scope){0};
        l->making = lg__ok(l->object.ctx);
        l->object.ctx->user_calls += l->making;
        return l->making;
}

static void end_making(lg_loader *l, lg_scope scope)
{
        lg_ctx *c = l->object.ctx;
        uint32_t made;
        l->making = false;
        c->user_calls--;
        if (scope.id)
                lg__scope_leave(c, scope, c->scope, NULL, 0, &made);
}

/* Waits for batch b or makes it. Returns its slot, which may hold an error of the batch, or NULL with an error. */
static lg__batch_slot *wait_for_batch(lg_loader *l, int64_t b)
{
        lg_scope scope;
        if (!begin_making(l, &scope))
                return NULL;
        lg__frame span;
        lg__span_begin(l->object.ctx, &span, lg__batch_ring_threads(l->ring) ? "wait" : "batch", "loader", NULL);
        lg__batch_slot *s = lg__batch_ring_wait(l->ring, b);
        lg__span_end(l->object.ctx, &span);
        end_making(l, scope);
        return lg__ok(l->object.ctx) ? s : NULL;
}

/* Starts the copy of batch b to the device ahead of time if the batch is ready. An error of the batch or the end of the
 * stream is reported when batch b is requested. */
static bool copy_ahead(lg_loader *l, int64_t b)
{
        if (!l->device->api->copy_async || b >= l->plan.batches || !lg__batch_ring_ready(l->ring, b))
                return true;
        lg__batch_slot *s = wait_for_batch(l, b);
        return s && (s->batch.code || !s->batch.count || lg__batch_ring_copy(l->ring, s));
}

/* Creates the tensors of *b from the device memory of slot s, which they then own. */
static bool hand_out(const lg_loader *l, lg__batch_slot *s, lg_batch *b)
{
        for (int p = 0; p < l->plan.parts; p++) {
                const int of = l->plan.lengths_of[p];
                lg__layout at = {.dtype = l->plan.part[p].dtype, .shape = lg__part_shape(&l->plan, p, &s->batch)};
                lg__layout_contiguous(&at);
                lg_tensor *t = lg__tensor_new(l->object.ctx, s->parts[p], &at);
                if (!t)
                        return false;
                *(of < 0 ? &b->field[p] : &b->length[of]) = t;
                lg__storage_unref(s->parts[p]);
                s->parts[p] = NULL;
        }
        s->copied = false;
        return true;
}

/* Makes the next batch. Returns its number of samples, 0 at the end of a stream, or -1 with an error. */
static int64_t make_batch(lg_loader *l, lg_batch *ret)
{
        lg__device *d = l->device;
        const int64_t b = l->position;
        lg__batch_slot *s = b == 0 || lg__batch_ring_release(l->ring, b - 1) ? wait_for_batch(l, b) : NULL;
        const int64_t count = s ? s->batch.count : -1; /* read now: a thread may overwrite the slot after its release */
        if (s && s->batch.code) {
                l->halted = true;
                s = lg__fail(l->object.ctx, s->batch.code, "lg_loader_next: %s", s->batch.message);
        } else if (!count) {
                return 0;
        }
        if (s && lg__batch_ring_copy(l->ring, s) && copy_ahead(l, b + 1) &&
            (!s->mark || lg__kernel_done(d, "lg_loader_next", d->api->stream_wait(d->queue, s->mark))) &&
            hand_out(l, s, ret) && (s->mark || lg__batch_ring_release(l->ring, b)))
                return count;
        lg__batch_ring_drop_copies(l->ring);
        return -1;
}

/* ---- creation and destruction ---- */

static size_t order_bytes(const lg_loader *l)
{
        return (size_t)l->plan.rows * sizeof *l->order;
}

static void destroy(lg__object *o)
{
        lg_loader *l = (lg_loader *)o;
        l->ending = true;
        lg__batch_ring_free(o->ctx, l->ring);
        if (l->order)
                lg__host_free(o->ctx, l->order, order_bytes(l));
        lg__sample_order_free(&l->sample_order, o->ctx);
        if (l->plan.set && l->plan.set->stream)
                lg__stream_give(l->plan.set->stream);
        lg__object_done(l->plan.set);
        lg__object_done(l->plan.collate);
}

/* Stops the worker threads from making batches and discards the batches made ahead. */
static void stop(lg_loader *l)
{
        lg__batch_ring_stop(l->ring);
        l->begun = false;
}

/* Lists the state for checkpoints. `position` counts batches returned to the program, not those made ahead. */
static bool visit(lg__object *o, lg__state_entries *list)
{
        lg_loader *l = (lg_loader *)o;
        const int64_t most = l->plan.rows < 0 ? INT64_MAX / l->all_ranks : l->plan.batches;
        return lg__state_add_i64(list, "rows", &l->plan.rows, LG__ENTRY_FIXED) &&
               lg__state_add_i64(list, "batch_size", &l->all_ranks, LG__ENTRY_FIXED) &&
               lg__state_add_u64(list, "seed", &l->seed) &&
               lg__state_add_whole(list, "epoch", &l->epoch, LG__COUNT_MOST) &&
               lg__state_add_whole(list, "position", &l->position, most) &&
               lg__state_add_bool(list, "running", &l->running);
}

static bool may_change(lg__object *o, const char *op)
{
        return step_may_end((lg_loader *)o, op);
}

/* Discards batches made ahead after a checkpoint was loaded; lg_loader_next() then continues the restored epoch. */
static void restored(lg__object *o)
{
        stop((lg_loader *)o);
}

static const lg__type type = {.destroy = destroy, .visit = visit, .may_change = may_change, .restored = restored};

/* Returns the thread count for the option .workers, or -1 with an error if the option is out of range. */
static int worker_count(lg_ctx *c, int given)
{
        const int half = lg__processors() / 2;
        if (given == LG_AUTO)
                return half < 1 ? 1 : half < LG__MAX_WORKERS ? half : LG__MAX_WORKERS;
        if (given >= 0 && given <= LG__MAX_WORKERS)
                return given;
        lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: %d workers; 0 to %d can be had, or LG_AUTO", given,
                 LG__MAX_WORKERS);
        return -1;
}

/* Sets the numbers of samples, ranks and batches. Fails with LG_ERR_ARGUMENT if a stream is shared, if there are fewer
 * samples than ranks, or if .drop_last leaves no batch. */
static bool count_batches(lg_loader *l, int64_t batch_size, const lg_loader_options *o)
{
        lg_ctx *c = l->object.ctx;
        lg__batch_plan *plan = &l->plan;
        plan->rows = l->sample_order.samples;
        plan->batch = batch_size;
        plan->rank = lg_group_rank(o->group);
        plan->ranks = lg_group_size(o->group);
        l->all_ranks = batch_size * plan->ranks;
        plan->drop_last = o->drop_last;
        plan->by_position = l->sample_order.weights && !l->sample_order.no_replacement;
        if (plan->rows < 0) {
                plan->batches = INT64_MAX;
                return plan->ranks == 1 || lg__fail(c, LG_ERR_ARGUMENT,
                                                    "lg_loader_open: .group: a stream has no length to be shared; let "
                                                    "each rank open a stream of its own");
        }
        const int64_t left = plan->rows % l->all_ranks;
        plan->batches = plan->rows / l->all_ranks;
        plan->batches += !plan->drop_last && left && (left >= plan->ranks || !plan->batches);
        if (plan->rows && plan->rows < plan->ranks)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: there are %lld rows for %d ranks",
                                (long long)plan->rows, plan->ranks);
        if (plan->drop_last && !plan->batches)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_loader_open: .drop_last leaves no batch: there are %lld rows, and the batch size "
                                "is %lld%s",
                                (long long)plan->rows, (long long)batch_size, plan->ranks > 1 ? " for each rank" : "");
        return true;
}

/* Replaces the seed by rank 0's. Fails if row counts or batch sizes, which are in the operation's name, differ. */
static bool agree(lg_loader *l, lg_group *g)
{
        lg__collective what = {.kind = LG__BROADCAST, .dtype = LG_I64, .shape = LG_SHAPE(1)};
        if (l->plan.ranks == 1)
                return true;
        snprintf(what.name, sizeof what.name, "a loader of %lld rows, %lld in a batch", (long long)l->plan.rows,
                 (long long)l->plan.batch);
        return lg__group_run(g, "lg_loader_open", &what, &l->seed, &l->seed);
}

/* Sets up the sample order, plan, memory and batch ring of a new loader. Returns false with an error. */
static bool fill(lg_loader *l, int64_t batch_size, const lg_loader_options *o, int workers)
{
        lg_ctx *c = l->object.ctx;
        if (!lg__sample_order_init(&l->sample_order, c, l->plan.set->size, o) || !count_batches(l, batch_size, o) ||
            !lg__batch_plan_init(&l->plan, c))
                return false;
        if ((l->sample_order.shuffle || l->sample_order.weights) && l->plan.rows) {
                l->order = lg__host_alloc(c, order_bytes(l));
                if (!l->order)
                        return false;
                l->plan.order = l->order;
        }
        l->ring = lg__batch_ring_new(c, &l->plan, workers, workers && o->prefetch ? o->prefetch : workers, l->device);
        return l->ring != NULL;
}

static bool options_are_good(lg_ctx *c, const lg_dataset *data, int64_t batch_size, const lg_loader_options *o)
{
        if (!lg__dataset_check(c, data, "lg_loader_open") ||
            (o->group && !lg__group_ready(c, o->group, "lg_loader_open")))
                return false;
        if (batch_size < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: the batch size is %lld; it must be 1 or more",
                                (long long)batch_size);
        if (o->prefetch < 0 || o->prefetch > LG__MAX_PREFETCH)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: .prefetch = %d; 0 to %d batches can be made ahead",
                                o->prefetch, LG__MAX_PREFETCH);
        if (o->collate && o->collate->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: .collate is of another context");
        return !o->collate || lg__object_lasts(&o->collate->object, "lg_loader_open");
}

/* Returns a loader that lg__object_destroy() can destroy, without a ring, or NULL with an error. Reserves a stream. */
static lg_loader *begin(lg_ctx *c, lg_dataset *data, lg_collate *collate, lg_device device)
{
        lg__device *d = lg__device_get(c, device);
        lg_loader *l = d ? lg__object_new(c, &type, sizeof *l) : NULL;
        if (!l)
                return NULL;
        l->device = d;
        l->plan.collate = lg__object_use(collate);
        if (!data->stream || lg__stream_take(data->stream))
                l->plan.set = lg__object_use(data);
        if (l->plan.set)
                return l;
        lg__fail(c, LG_ERR_STATE, "lg_loader_open: another loader reads this stream; free it first");
        return lg__object_destroy(l);
}

lg_loader *lg_loader_open_with(lg_ctx *c, lg_dataset *data, int64_t batch_size, const lg_loader_options *options)
{
        lg_loader_options o;
        if (!lg__take(c, "lg_loader_open", options, &o, sizeof o) || !options_are_good(c, data, batch_size, &o))
                return NULL;
        int workers = worker_count(c, o.workers);
        lg_loader *l = workers < 0 ? NULL : begin(c, data, o.collate, o.device);
        if (!l)
                return NULL;
        if (fill(l, batch_size, &o, workers)) {
                const bool draws = l->order || data->random || l->plan.collate;
                l->seed = o.seed || !draws ? o.seed : lg__next_seed(c);
                if (agree(l, o.group))
                        return l;
        }
        return lg__object_destroy(l);
}

void lg_loader_close(lg_loader *l)
{
        if (!l || !step_may_end(l, "lg_loader_close"))
                return;
        end_step(l);
        lg__object_destroy(l);
}

int64_t lg_loader_batches(const lg_loader *l)
{
        return !l ? 0 : l->plan.rows < 0 ? -1 : l->plan.batches;
}

/* ---- epochs ---- */

/* Calls the stream's .seek with the same protection as functions that make samples, since .seek is user code. */
static bool seek(lg_loader *l, int64_t sample)
{
        lg_scope scope;
        if (!begin_making(l, &scope))
                return false;
        bool ok = lg__stream_seek(l->plan.set->stream, l->object.ctx, sample);
        end_making(l, scope);
        return ok && lg__ok(l->object.ctx);
}

static bool begin_epoch(lg_loader *l, int64_t position)
{
        lg_ctx *c = l->object.ctx;
        lg__batch_plan *plan = &l->plan;
        if (l->plan.set->stream && !seek(l, position * plan->batch))
                return false;
        if (l->order && !lg__sample_order_draw(&l->sample_order, c, l->seed, l->epoch, l->order))
                return false;
        plan->seed = l->seed;
        plan->epoch = l->epoch;
        l->position = position;
        l->running = l->begun = true;
        l->halted = false;
        lg__batch_ring_start(l->ring, position);
        return true;
}

static void end_epoch(lg_loader *l)
{
        stop(l);
        l->running = false;
        l->epoch++;
}

/* Begins an epoch, or continues the current one. After a failed batch or in a child of fork(), that batch is made
 * again; a stream, which has already read on, begins a new epoch instead. */
static bool continue_epoch(lg_loader *l)
{
        l->halted |= lg__batch_ring_lost(l->ring);
        if (l->halted)
                stop(l);
        if (l->halted && l->running && l->plan.rows < 0)
                end_epoch(l);
        l->halted = false;
        return l->begun || begin_epoch(l, l->running ? l->position : 0);
}

/* Makes the next batch in a new scope. Returns false after an error or, with *ret_end set, at the end of the epoch. */
static bool step(lg_loader *l, lg_batch *b, bool *ret_end)
{
        lg_ctx *c = l->object.ctx;
        *ret_end = l->position == l->plan.batches;
        if (*ret_end)
                return false;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        const int64_t count = make_batch(l, b);
        *ret_end = !count;
        if (count > 0) {
                l->scope = scope.id;
                l->position++;
                return true;
        }
        lg_scope_end(c, scope);
        return false;
}

static bool next(lg_loader *l, lg_batch *ret, size_t size)
{
        bool end = false;
        end_step(l);
        if (!continue_epoch(l))
                return false;
        lg_batch b = {.index = l->position,
                      .count = lg_loader_batches(l),
                      .loader = l,
                      .fields = l->plan.out.count,
                      .loop = l->loops};
        bool ok = step(l, &b, &end);
        b.x = b.field[0];
        b.y = b.field[1];
        if (ok)
                lg__give(ret, size, &b, sizeof b);
        else if (end)
                end_epoch(l);
        return ok;
}

bool lg_loader_next_with(lg_loader *l, lg_batch *ret, size_t size)
{
        lg_ctx *c = l ? l->object.ctx : NULL;
        lg__frame span;
        if (!lg__enter(c))
                return false;
        if (!ret)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_next: the batch is NULL");
        if (!step_may_end(l, "lg_loader_next"))
                return false;
        lg__span_begin(c, &span, "loader", NULL, NULL);
        const bool ok = next(l, ret, size);
        lg__span_end(c, &span);
        return ok;
}

lg_loader *lg_loader_restart(lg_loader *l)
{
        if (!l || l->object.ctx->error || !step_may_end(l, "lg_loader_restart"))
                return l;
        end_step(l);
        if (l->begun)
                end_epoch(l);
        return l;
}

bool lg_each_batch_with(lg_batch *b, size_t size)
{
        lg_loader *l = b ? b->loader : NULL;
        if (l && b->loop && b->loop != l->loops)
                return lg__fail(l->object.ctx, LG_ERR_STATE,
                                "lg_each_batch: another lg_each_batch over this loader ran inside the loop; open a "
                                "second loader for the inner one");
        if (l && !b->loop) {
                lg_loader_restart(l);
                l->loops++;
        }
        return lg_loader_next_with(l, b, size);
}
