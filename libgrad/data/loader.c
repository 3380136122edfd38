/* loader.c - goes through a data set in batches, each in a scope of its own. */
#include <string.h>
#include "group/group.h"
#include "state/roster.h"
#include "loader.h"

/* ---- scopes ---- */

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

/* False, with an error, if a call that was begun in the last step has not returned. */
static bool step_may_end(const lg_loader *l, const char *op)
{
        lg_ctx *c = l->object.ctx;
        bool fenced = false;
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

/* Ends the last step, unless a scope around it ended it before. Steps of loaders that were begun in it are not inside
 * it in the sense of lg_scope_end: each loader ends its own. */
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

/* ---- life ---- */

static size_t order_bytes(const lg_loader *l)
{
        return (size_t)l->job.rows * sizeof *l->order;
}

static void destroy(lg__object *o)
{
        lg_loader *l = (lg_loader *)o;
        l->ending = true;
        lg__loader_finish_copies(l);
        lg__worker_pool_free(o->ctx, l->pool);
        if (l->maker_begun)
                lg__maker_end(&l->maker, o->ctx, &l->job);
        if (l->order)
                lg__host_free(o->ctx, l->order, order_bytes(l));
        lg__draw_end(&l->draw, o->ctx);
        if (l->set && l->set->stream)
                lg__stream_give(l->set->stream);
        lg__object_done(l->set);
        lg__object_done(l->collate);
        lg__free(o->ctx, l, sizeof *l);
}

/* No thread works, and no copy is under way. */
static void rest(lg_loader *l)
{
        lg__loader_finish_copies(l);
        if (l->pool)
                lg__worker_pool_rest(l->pool);
        l->begun = false;
}

/* Where the epoch stands: batches that were handed out, not those that are made ahead. */
static bool visit(lg__object *o, lg__roster *r)
{
        lg_loader *l = (lg_loader *)o;
        const int64_t most = l->job.rows < 0 ? INT64_MAX / l->all_ranks : l->job.batches;
        return lg__hold_i64(r, "rows", &l->job.rows, LG__HELD_FIXED) &&
               lg__hold_i64(r, "batch_size", &l->all_ranks, LG__HELD_FIXED) && lg__hold_u64(r, "seed", &l->seed) &&
               lg__hold_whole(r, "epoch", &l->epoch, LG__HELD_MOST) &&
               lg__hold_whole(r, "position", &l->position, most) && lg__hold_bool(r, "running", &l->running);
}

static bool may_change(lg__object *o, const char *op)
{
        return step_may_end((lg_loader *)o, op);
}

/* The epoch goes on at its place, when the next batch is asked for, which ends the step: what was made ahead was of
 * another one. */
static void restored(lg__object *o)
{
        rest((lg_loader *)o);
}

static const lg__type type = {.destroy = destroy, .visit = visit, .may_change = may_change, .restored = restored};

/* Threads for .workers; -1, with an error: there is no such number of them. */
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

/* How many samples and batches an epoch has. */
static bool count_batches(lg_loader *l, int64_t batch_size, const lg_loader_options *o)
{
        lg_ctx *c = l->object.ctx;
        lg__job *j = &l->job;
        j->rows = l->draw.samples;
        j->batch = batch_size;
        j->rank = lg_group_rank(o->group);
        j->ranks = lg_group_size(o->group);
        l->all_ranks = batch_size * j->ranks;
        j->drop_last = o->drop_last;
        j->by_place = l->draw.weights && !l->draw.no_replacement;
        if (j->rows < 0) {
                j->batches = INT64_MAX;
                return j->ranks == 1 || lg__fail(c, LG_ERR_ARGUMENT,
                                                 "lg_loader_open: .group: a stream has no length to be shared; let "
                                                 "each rank open a stream of its own");
        }
        const int64_t left = j->rows % l->all_ranks;
        j->batches = j->rows / l->all_ranks;
        j->batches += !j->drop_last && left && (left >= j->ranks || !j->batches);
        if (j->rows && j->rows < j->ranks)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: there are %lld rows for %d ranks",
                                (long long)j->rows, j->ranks);
        if (j->drop_last && !j->batches)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_loader_open: .drop_last leaves no batch: there are %lld rows, and the batch size "
                                "is %lld%s",
                                (long long)j->rows, (long long)batch_size, j->ranks > 1 ? " for each rank" : "");
        return true;
}

/* All ranks draw by the seed of the first, and go through as many rows. */
static bool agree(lg_loader *l, lg_group *g)
{
        lg__joint j = {.what = LG__BROADCAST, .dtype = LG_I64, .shape = LG_SHAPE(1)};
        if (l->job.ranks == 1)
                return true;
        snprintf(j.name, sizeof j.name, "a loader of %lld rows, %lld in a batch", (long long)l->job.rows,
                 (long long)l->job.batch);
        return lg__group_run(g, "lg_loader_open", &j, &l->seed, &l->seed);
}

/* What makes the batches. */
static bool make_makers(lg_loader *l, int workers, int ahead)
{
        lg_ctx *c = l->object.ctx;
        /* Without workers a pool is still needed where samples are not written to where they stay. */
        if (workers || l->device->id.type != LG_DEVICE_CPU || l->job.rows < 0 || !lg__job_is_direct(&l->job))
                return (l->pool = lg__worker_pool_new(c, &l->job, workers, ahead, l->device)) != NULL;
        l->maker_begun = true;
        return lg__maker_begin(&l->maker, c, &l->job);
}

/* The parts of a loader that take memory. */
static bool fill(lg_loader *l, int64_t batch_size, const lg_loader_options *o, int workers)
{
        lg_ctx *c = l->object.ctx;
        l->job.set = l->set;
        l->job.collate = l->collate;
        if (!lg__draw_init(&l->draw, c, l->set->size, o) || !count_batches(l, batch_size, o) ||
            !lg__job_init(&l->job, c))
                return false;
        if ((l->draw.shuffle || l->draw.weights) && l->job.rows) {
                l->order = lg__host_alloc(c, order_bytes(l));
                if (!l->order)
                        return false;
                l->job.order = l->order;
        }
        return make_makers(l, workers, workers && o->prefetch ? o->prefetch : workers);
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

/* A record that can be destroyed. */
static lg_loader *begin(lg_ctx *c, lg_dataset *data, lg_collate *collate, lg_device device)
{
        lg__device *d = lg__device_get(c, device);
        lg_loader *l = d ? lg__alloc(c, sizeof *l) : NULL;
        if (!l)
                return NULL;
        l->device = d;
        l->prefetched[0].index = l->prefetched[1].index = -1;
        l->collate = lg__object_use(collate);
        if (!data->stream || lg__stream_take(data->stream))
                l->set = lg__object_use(data);
        lg__object_register(c, &l->object, &type);
        if (l->set)
                return l;
        lg__fail(c, LG_ERR_STATE, "lg_loader_open: another loader reads this stream; free it first");
        lg__object_destroy(&l->object);
        return NULL;
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
                const bool draws = l->order || data->random || l->collate;
                l->seed = o.seed || !draws ? o.seed : lg__draw_seed(c);
                if (agree(l, o.group))
                        return l;
        }
        lg__object_destroy(&l->object);
        return NULL;
}

void lg_loader_free(lg_loader *l)
{
        if (!l || !step_may_end(l, "lg_loader_free"))
                return;
        end_step(l);
        lg__object_destroy(&l->object);
}

int64_t lg_loader_batches(const lg_loader *l)
{
        return !l ? 0 : l->job.rows < 0 ? -1 : l->job.batches;
}

/* ---- steps ---- */

/* Before and after samples are made in this thread: code of the user's may do so, which must not end what is around it.
 */
static bool begin_making(lg_loader *l, lg_scope *ret)
{
        *ret = l->set->own || l->collate ? lg__scope_begin(l->object.ctx) : (lg_scope){0};
        l->making = lg__ok(l->object.ctx);
        l->object.ctx->guests += l->making;
        return l->making;
}

static void end_making(lg_loader *l, lg_scope scope)
{
        lg_ctx *c = l->object.ctx;
        uint32_t made;
        l->making = false;
        c->guests--;
        if (scope.id)
                lg__scope_leave(c, scope, c->scope, NULL, 0, &made);
}

void *lg__loader_failed(lg_loader *l, const lg__made *made)
{
        l->halted = true;
        return lg__fail(l->object.ctx, made->code, "lg_loader_next: %s", made->message);
}

const lg__made *lg__loader_wait(lg_loader *l, int64_t b)
{
        lg_scope scope;
        if (!begin_making(l, &scope))
                return NULL;
        const lg__made *made = lg__worker_pool_wait(l->pool, b);
        end_making(l, scope);
        return lg__ok(l->object.ctx) ? made : NULL;
}

/* Code of the user's, as what makes samples. */
static bool seek(lg_loader *l, int64_t sample)
{
        lg_scope scope;
        if (!begin_making(l, &scope))
                return false;
        bool ok = lg__stream_seek(l->set->stream, l->object.ctx, sample);
        end_making(l, scope);
        return ok && lg__ok(l->object.ctx);
}

static bool begin_epoch(lg_loader *l, int64_t position)
{
        lg_ctx *c = l->object.ctx;
        lg__job *j = &l->job;
        if (l->set->stream && !seek(l, position * j->batch))
                return false;
        if (l->order && !lg__draw_order(&l->draw, c, l->seed, l->epoch, l->order))
                return false;
        j->seed = l->seed;
        j->epoch = l->epoch;
        l->position = position;
        l->running = l->begun = true;
        l->halted = false;
        if (l->pool)
                lg__worker_pool_start(l->pool, position);
        return true;
}

static void end_epoch(lg_loader *l)
{
        rest(l);
        l->running = false;
        l->epoch++;
}

lg__layout lg__loader_layout(const lg_loader *l, int part, const lg__made *made)
{
        lg__layout at = {.dtype = l->job.part[part].dtype, .shape = lg__part_shape(&l->job, part, made)};
        lg__layout_contiguous(&at);
        return at;
}

void lg__loader_put(const lg_loader *l, lg_batch *b, int part, lg_tensor *t)
{
        const int of = l->job.lengths_of[part];
        if (of < 0)
                b->field[part] = t;
        else
                b->length[of] = t;
}

static lg_tensor *empty_part(const lg_loader *l, int part, const lg__made *made)
{
        lg__layout at = lg__loader_layout(l, part, made);
        return lg__tensor_empty(l->object.ctx, l->device->id, at.dtype, at.shape);
}

/* Samples are written to where they stay. */
static bool make_in_place(lg_loader *l, lg_batch *b)
{
        lg__made made = {.count = lg__job_places(&l->job, l->position).count};
        for (int p = 0; p < l->job.parts; p++) {
                lg_tensor *t = empty_part(l, p, &made);
                if (!t)
                        return false;
                lg__loader_put(l, b, p, t);
                made.data[p] = lg__data(t);
        }
        lg_scope scope;
        if (!begin_making(l, &scope))
                return false;
        lg__batch_make(&l->job, &l->maker, l->position, &made);
        end_making(l, scope);
        return lg__ok(l->object.ctx) && (!made.code || lg__loader_failed(l, &made));
}

static bool upload(const lg_loader *l, lg_tensor *t, const void *from)
{
        size_t bytes = (size_t)lg__shape_numel(t->at.shape) * lg__dtype_bytes(t->at.dtype);
        return !bytes || lg__upload(l->device, lg__data(t), from, bytes, "lg_loader_next");
}

/* ret_count: samples; 0: a stream has ended. */
static bool make_batch(lg_loader *l, lg_batch *b, int64_t *ret_count)
{
        *ret_count = lg__job_places(&l->job, l->position).count;
        if (lg__loader_prefetches(l))
                return lg__loader_take_prefetched(l, l->position, b, ret_count);
        if (!l->pool)
                return make_in_place(l, b);
        const lg__made *made = lg__loader_wait(l, l->position);
        if (made && made->code)
                made = lg__loader_failed(l, made);
        for (int p = 0; made && p < l->job.parts; p++) {
                lg_tensor *t = empty_part(l, p, made);
                if (!t || !upload(l, t, made->data[p]))
                        return false;
                lg__loader_put(l, b, p, t);
        }
        if (!made)
                return false;
        *ret_count = made->count;
        lg__worker_pool_done(l->pool, l->position);
        return true;
}

/* After a batch that failed, and in a child of fork(), the epoch goes on with it again; a stream, which has read on,
 * with another epoch. */
static bool go_on(lg_loader *l)
{
        l->halted |= l->pool && lg__worker_pool_lost(l->pool);
        if (l->halted)
                rest(l);
        if (l->halted && l->running && l->job.rows < 0)
                end_epoch(l);
        l->halted = false;
        return l->begun || begin_epoch(l, l->running ? l->position : 0);
}

/* The next batch in a scope of its own. False: an error, or, with *ret_end set, the end of the epoch. */
static bool step(lg_loader *l, lg_batch *b, bool *ret_end)
{
        lg_ctx *c = l->object.ctx;
        int64_t count = 0;
        *ret_end = l->position == l->job.batches;
        if (*ret_end)
                return false;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        bool ok = make_batch(l, b, &count);
        *ret_end = ok && !count;
        if (ok && count) {
                l->scope = scope.id;
                l->position++;
                return true;
        }
        lg_scope_end(c, scope);
        return false;
}

bool lg_loader_next_with(lg_loader *l, lg_batch *ret, size_t size)
{
        lg_ctx *c = l ? l->object.ctx : NULL;
        bool end = false;
        lg__groups_tell(c); /* if it has an error */
        if (!lg__ok(c))
                return false;
        if (!ret)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_next: the batch is NULL");
        if (!step_may_end(l, "lg_loader_next"))
                return false;
        end_step(l);
        if (!go_on(l))
                return false;
        lg_batch b = {.index = l->position,
                      .count = lg_loader_batches(l),
                      .loader = l,
                      .fields = l->job.out.count,
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
