/* loader.c - goes through a data set in batches, each in a scope of its own. */
#include <string.h>
#include "../../kernels/philox.h"
#include "../state/roster.h"
#include "data.h"

/* A batch on its way to a device that copies on its own. */
typedef struct flight {
        int64_t index; /* the batch; -1: none */
        lg__storage *x, *y;
        uint64_t mark;
} flight;

struct lg_loader {
        lg__object object;
        lg_tensor *x_data, *y_data; /* owned handles: the data set may go before the loader */
        lg__rows x, y;
        lg__job job;
        lg__device *device;
        lg__team *team; /* NULL: batches are made where they are used */
        int64_t *order; /* NULL: not shuffled */
        uint64_t seed;
        int64_t epoch, position; /* the batch that comes next */
        bool running;            /* between the first batch of an epoch and its end */
        bool resumed;            /* what a checkpoint stopped is to go on: the next restart leaves it */
        uint64_t scope;          /* of the last step; 0: none */
        bool ending;             /* that scope, or the loader itself, just now */
        flight flights[2];       /* batch b in flights[b % 2] */
        uint64_t last_mark;      /* of the batch that was handed out last; 0: none */
};

/* ---- scopes --------------------------------------------------------------------------------------------------------
 */

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

/* Ends the last step, unless a scope around it ended it before. Steps of loaders that were begun in it are not inside
 * it in the sense of lg_scope_end: each loader ends its own. False, with an error and nothing done, if a call that was
 * begun in the step has not returned. */
static bool end_step(lg_loader *l, const char *op)
{
        lg_ctx *c = l->object.ctx;
        bool others = false, fenced = false;
        if (l->ending)
                return lg__fail(c, LG_ERR_STATE,
                                "%s: this loader is ending its step; call it outside release functions", op);
        lg__scope *s = l->scope ? c->scope : NULL;
        for (; s && s->id != l->scope; s = s->parent) {
                others = others || is_step_of_a_loader(c, s->id);
                fenced = fenced || s->fence;
        }
        if (s && fenced)
                return lg__fail(
                        c, LG_ERR_STATE,
                        "%s: a call that began inside this loader's step has not returned; call it outside hooks "
                        "and own functions, or take a loader of their own",
                        op);
        l->scope = 0;
        l->ending = true;
        if (s && others)
                lg__scope_remove(c, s);
        else if (s)
                lg_scope_end(c, (lg_scope){s->id});
        l->ending = false;
        return true;
}

/* ---- batches that fly ahead -----------------------------------------------------------------------------------------
 */

/* True if batches are copied ahead, from pinned memory. */
static bool flies(const lg_loader *l)
{
        return l->team && l->device->api->fetch;
}

/* Ends the copies that are under way: afterwards nothing reads the team's buffers. */
static void land(lg_loader *l)
{
        lg__device *d = l->device;
        for (int i = 0; flies(l) && i < 2; i++) {
                flight *f = &l->flights[i];
                if (f->mark)
                        d->api->follow(d->queue, f->mark); /* memory is freed in the order of the queue */
                if (f->mark > l->last_mark)
                        l->last_mark = f->mark;
                lg__storage_unref(f->x);
                lg__storage_unref(f->y);
                *f = (flight){.index = -1};
        }
        if (l->last_mark)
                lg__kernel_done(d, "lg_loader_next", d->api->passed(d->queue, l->last_mark, true));
        l->last_mark = 0;
}

static lg__layout batch_layout(const lg__rows *r, int64_t n)
{
        lg__layout at = {.dtype = r->out_dtype, .shape = r->shape};
        at.shape.size[0] = n;
        lg__layout_contiguous(&at);
        return at;
}

static bool fetch(lg_loader *l, flight *f, lg__storage **s, const lg__rows *r, int64_t n, const void *from)
{
        lg__device *d = l->device;
        size_t bytes = lg__batch_bytes(r, n);
        *s = lg__storage_new(d, bytes);
        return *s && (!bytes ||
                      lg__kernel_done(d, "lg_loader_next", d->api->fetch(d->queue, (*s)->data, from, bytes, &f->mark)));
}

/* Batch b is under way afterwards. */
static bool start_flight(lg_loader *l, int64_t b)
{
        flight *f = &l->flights[b % 2];
        int64_t n = lg__job_rows(&l->job, b);
        const void *x, *y;
        if (f->index == b)
                return true;
        lg__team_wait(l->team, b, &x, &y);
        if (fetch(l, f, &f->x, &l->x, n, x) && fetch(l, f, &f->y, &l->y, n, y)) {
                f->index = b;
                return true;
        }
        land(l); /* the other one, too: it is made again */
        return false;
}

static lg_tensor *arrive(lg_loader *l, lg__storage **s, const lg__rows *r, int64_t n)
{
        lg__layout at = batch_layout(r, n);
        lg_tensor *t = lg__tensor_new(l->object.ctx, *s, &at);
        lg__storage_unref(*s);
        *s = NULL;
        return t;
}

/* Takes batch b off its flight and starts the next one, if that can be done without waiting for a thread. */
static bool take_flight(lg_loader *l, int64_t b, lg_batch *ret)
{
        lg__device *d = l->device;
        flight *f = &l->flights[b % 2];
        int64_t n = lg__job_rows(&l->job, b);
        if (l->last_mark && !lg__kernel_done(d, "lg_loader_next", d->api->passed(d->queue, l->last_mark, true)))
                return false;
        l->last_mark = 0;
        if (b > 0)
                lg__team_done(l->team, b - 1);
        if (!start_flight(l, b) ||
            (b + 1 < l->job.batches && lg__team_ready(l->team, b + 1) && !start_flight(l, b + 1)) ||
            (f->mark && !lg__kernel_done(d, "lg_loader_next", d->api->follow(d->queue, f->mark))))
                return false;
        l->last_mark = f->mark;
        f->index = -1;
        f->mark = 0;
        ret->x = arrive(l, &f->x, &l->x, n);
        ret->y = arrive(l, &f->y, &l->y, n);
        return ret->x && ret->y;
}

/* ---- life ----------------------------------------------------------------------------------------------------------
 */

static void destroy(lg__object *o)
{
        lg_loader *l = (lg_loader *)o;
        l->ending = true;
        land(l);
        lg__team_free(o->ctx, l->team);
        lg__tensor_release(l->x_data);
        lg__tensor_release(l->y_data);
        lg__free(o->ctx, l->order, (size_t)l->job.rows * sizeof *l->order);
        lg__free(o->ctx, l, sizeof *l);
}

/* Where the epoch stands: batches that were handed out, not those that are made ahead. */
static bool visit(lg__object *o, lg__roster *r)
{
        lg_loader *l = (lg_loader *)o;
        return lg__hold_i64(r, "rows", &l->job.rows, LG__HELD_FIXED) &&
               lg__hold_i64(r, "batch_size", &l->job.batch, LG__HELD_FIXED) && lg__hold_u64(r, "seed", &l->seed) &&
               lg__hold_i64(r, "epoch", &l->epoch, 0) && lg__hold_i64(r, "position", &l->position, 0) &&
               lg__hold_bool(r, "running", &l->running);
}

static bool restored(lg__object *o);
static const lg__type type = {.destroy = destroy, .visit = visit, .restored = restored};

static lg_tensor *another_handle(const lg_tensor *t)
{
        return lg__tensor_own(lg__tensor_new(t->ctx, t->storage, &t->at));
}

/* The parts of a loader that take memory. */
static bool fill(lg_loader *l, const lg_dataset *d, int64_t batch_size, const lg_loader_options *o)
{
        lg_ctx *c = l->object.ctx;
        l->x_data = another_handle(d->x);
        l->y_data = l->x_data ? another_handle(d->y) : NULL;
        if (!l->y_data)
                return false;
        lg__rows_init(&l->x, d->x, d->convert, d->scale, d->shift);
        lg__rows_init(&l->y, d->y, false, 1, 0);
        int64_t rows = lg_dataset_size(d), full = rows / batch_size;
        l->job = (lg__job){&l->x, &l->y, NULL, rows, batch_size, full};
        if (!o->drop_last && rows % batch_size)
                l->job.batches++;
        if (o->shuffle && rows) {
                l->order = lg__alloc(c, (size_t)rows * sizeof *l->order);
                if (!l->order)
                        return false;
                l->job.order = l->order;
        }
        /* Without workers one is still needed where the host cannot write: its buffer is the way there. */
        if (o->workers || l->device->id.type != LG_DEVICE_CPU)
                l->team = lg__team_new(c, &l->job, o->workers, l->device);
        return l->team || (!o->workers && l->device->id.type == LG_DEVICE_CPU);
}

static uint64_t draw_seed(lg_ctx *c)
{
        lg_philox_words b = lg_philox_block(c->random.seed, c->random.counter++);
        return (uint64_t)b.w[0] << 32 | b.w[1];
}

lg_loader *lg_loader_open_with(lg_ctx *c, lg_dataset *data, int64_t batch_size, const lg_loader_options *options)
{
        lg_loader_options o;
        if (!lg__take(c, "lg_loader_open", options, &o, sizeof o))
                return NULL;
        if (!data || data->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: the data set is %s",
                                data ? "of another context" : "NULL");
        if (!lg__object_lasts(&data->object, "lg_loader_open"))
                return NULL;
        if (batch_size < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: the batch size is %lld; it must be 1 or more",
                                (long long)batch_size);
        if (o.drop_last && lg_dataset_size(data) < batch_size)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_loader_open: .drop_last leaves no batch: there are %lld rows, and the batch size "
                                "is %lld",
                                (long long)lg_dataset_size(data), (long long)batch_size);
        lg__device *d = lg__device_get(c, o.device);
        lg_loader *l = d ? lg__alloc(c, sizeof *l) : NULL;
        if (!l)
                return NULL;
        l->device = d;
        l->flights[0].index = l->flights[1].index = -1;
        lg__object_register(c, &l->object, &type);
        if (!fill(l, data, batch_size, &o)) {
                lg__object_destroy(&l->object);
                return NULL;
        }
        l->seed = o.seed || !o.shuffle ? o.seed : draw_seed(c);
        return l;
}

void lg_loader_free(lg_loader *l)
{
        if (l && end_step(l, "lg_loader_free"))
                lg__object_destroy(&l->object);
}

int64_t lg_loader_batches(const lg_loader *l)
{
        return l ? l->job.batches : 0;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------
 */

/* The order of an epoch is lg_permutation's at the place of the loader's own random stream that is the epoch's. */
static bool draw_order(lg_loader *l)
{
        lg_ctx *c = l->object.ctx;
        lg_random_state was = c->random;
        int64_t n = l->job.rows;
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        c->random = (lg_random_state){l->seed, (uint64_t)l->epoch * ((uint64_t)n / 2 + 1)};
        lg_tensor *t = lg_permutation(c, n, .device = lg_cpu());
        if (t)
                memcpy(l->order, lg__data(t), (size_t)n * sizeof *l->order);
        c->random = was;
        lg_scope_end(c, scope);
        return t != NULL;
}

static bool begin_epoch(lg_loader *l, int64_t position)
{
        if (l->order && !draw_order(l))
                return false;
        l->position = position;
        l->running = true;
        if (l->team)
                lg__team_start(l->team, position);
        return true;
}

static void end_epoch(lg_loader *l)
{
        land(l);
        if (l->team)
                lg__team_rest(l->team);
        l->running = false;
        l->epoch++;
}

static lg_tensor *empty_batch(const lg_loader *l, const lg__rows *r, int64_t n)
{
        return lg__tensor_empty(l->object.ctx, l->device->id, r->out_dtype, batch_layout(r, n).shape);
}

static bool upload(const lg_loader *l, lg_tensor *t, const void *from)
{
        size_t bytes = (size_t)lg__shape_numel(t->at.shape) * lg__dtype_bytes(t->at.dtype);
        lg__device *d = l->device;
        return !bytes || lg__kernel_done(d, "lg_loader_next", d->api->upload(d->queue, lg__data(t), from, bytes));
}

static bool make_batch(lg_loader *l, lg_batch *b)
{
        int64_t n = lg__job_rows(&l->job, l->position), first = l->position * l->job.batch;
        if (flies(l))
                return take_flight(l, l->position, b);
        b->x = empty_batch(l, &l->x, n);
        b->y = b->x ? empty_batch(l, &l->y, n) : NULL;
        if (!b->y)
                return false;
        if (!l->team) {
                lg__rows_gather(&l->x, l->order, first, n, lg__data(b->x));
                lg__rows_gather(&l->y, l->order, first, n, lg__data(b->y));
                return true;
        }
        const void *x, *y;
        lg__team_wait(l->team, l->position, &x, &y);
        if (!upload(l, b->x, x) || !upload(l, b->y, y))
                return false;
        lg__team_done(l->team, l->position);
        return true;
}

bool lg_loader_next_with(lg_loader *l, lg_batch *ret, size_t size)
{
        lg_ctx *c = l ? l->object.ctx : NULL;
        if (!lg__ok(c))
                return false;
        if (!ret)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_next: the batch is NULL");
        if (!end_step(l, "lg_loader_next") || (!l->running && !begin_epoch(l, 0)))
                return false;
        if (l->position == l->job.batches) {
                end_epoch(l);
                return false;
        }
        lg_batch b = {.index = l->position, .count = l->job.batches, .loader = l};
        lg_scope scope = lg_scope_begin(c);
        if (!scope.id)
                return false;
        if (!make_batch(l, &b)) {
                lg_scope_end(c, scope);
                return false;
        }
        l->scope = scope.id;
        l->position++;
        lg__give(ret, size, &b, sizeof b);
        return true;
}

lg_loader *lg_loader_restart(lg_loader *l)
{
        if (!l || l->object.ctx->error || !end_step(l, "lg_loader_restart"))
                return l;
        if (l->running && !l->resumed)
                end_epoch(l);
        l->resumed = false;
        return l;
}

/* The epoch goes on at its place: what was made ahead was of another one. */
static bool restored(lg__object *o)
{
        lg_loader *l = (lg_loader *)o;
        bool running = l->running;
        int64_t position = l->position;
        if (!end_step(l, "lg_checkpoint_load"))
                return false;
        land(l);
        if (l->team)
                lg__team_rest(l->team);
        l->running = false;
        l->resumed = running;
        return !running || begin_epoch(l, position);
}
