/* data_parallel.c - training of a module on all ranks of a group, each with its share of a batch (Li et al. 2020,
 * "PyTorch distributed: experiences on accelerating data parallel training").
 *
 * A watcher observes each backward: once all gradients of a bucket are complete, the bucket's all-reduce is started.
 * Buckets are started in their order in the plan, which is the same on all ranks. The end of the backward
 * waits for all.
 */
#include <math.h>
#include "core/tape.h"
#include "nn/parallel.h"

static lg__parallel *of_watcher(lg__watcher *w)
{
        return (lg__parallel *)w; /* lg__parallel begins with its watcher */
}

static lg_group *group_of(const lg__parallel *p)
{
        lg_group *g = (lg_group *)p->group.object;
        return g ? g
                 : lg__fail(p->module->object.ctx, LG_ERR_STATE, "lg_backward: the group of the %s was freed",
                            p->module->type);
}

/* ---- during a backward ---- */

/* Lets a recorded step be used while gradients are exchanged in the same way. Also called before the function of a step
 * changes the mode, so that it is the mode before the step that counts. */
static void watch_settings(lg__parallel *p)
{
        lg__object *o = &p->module->object;
        lg__tape_watch(o->ctx, o, &p->silent, sizeof p->silent);
        lg__tape_watch(o->ctx, o, &p->weight, sizeof p->weight);
        lg__tape_watch(o->ctx, o, &p->plans, sizeof p->plans);
}

static lg_list watched_tensors(lg__watcher *w)
{
        lg__parallel *p = of_watcher(w);
        const lg__plan *plan = p->silent ? NULL : p->watcher.call ? p->plan : lg__parallel_plan(p);
        watch_settings(p);
        return plan ? (lg_list){plan->params, plan->tensors} : (lg_list){0, NULL};
}

static bool begin_backward(lg__watcher *w)
{
        lg__parallel *p = of_watcher(w);
        lg__plan *plan = p->plan;
        p->module->running++;
        plan->arrived = plan->next = 0;
        for (lg__bucket *b = plan->bucket; b < plan->bucket + plan->buckets; b++)
                b->waiting = b->buffers ? 0 : b->count;
        return group_of(p) != NULL;
}

/* Starts the exchange of complete buckets below number `until`, in order, up to the first that is not complete. */
static bool begin_buckets(lg__parallel *p, int64_t until)
{
        lg__plan *plan = p->plan;
        lg_group *g = group_of(p);
        while (g && plan->next < until && plan->bucket[plan->next].waiting == 0)
                if (!lg__bucket_begin(p, g, &plan->bucket[plan->next++]))
                        return false;
        return g != NULL;
}

static bool complete_gradient(lg__watcher *w, int64_t number)
{
        lg__parallel *p = of_watcher(w);
        lg__plan *plan = p->plan;
        plan->arrival[plan->arrived++] = number;
        plan->bucket[plan->bucket_of[number]].waiting--;
        return begin_buckets(p, plan->gradients);
}

/* Rebuilds the buckets, for later backwards, in the order in which gradients arrived on rank 0. */
static bool adopt_order(lg__parallel *p, lg_group *g)
{
        lg__plan *plan = p->plan;
        lg__collective what = {.kind = LG__BROADCAST, .dtype = LG_I64, .name = "the order of gradients"};
        what.shape = LG_SHAPE(plan->ordered);
        if (!lg__group_run(g, "lg_backward", &what, plan->arrival, plan->arrival))
                return false;
        for (int64_t i = 0; i < plan->ordered; i++)
                plan->order[i] = plan->arrival[i];
        lg__parallel_cut(p);
        p->plans++;
        return plan->order_known = true;
}

static bool end_backward(lg__watcher *w, bool ok)
{
        lg__parallel *p = of_watcher(w);
        lg__plan *plan = p->plan;
        ok = ok && begin_buckets(p, plan->buckets);
        lg_group *g = (lg_group *)p->group.object;
        for (int64_t i = 0; i < plan->buckets; i++)
                ok = lg__bucket_end(p, g, &plan->bucket[i], ok) && ok;
        ok = ok && (plan->order_known || adopt_order(p, g));
        p->module->running--;
        if (!ok)
                lg__report_error(p->module->object.ctx);
        return ok;
}

/* ---- construction and destruction ---- */

static void free_parallel(lg__watcher *w)
{
        lg__parallel *p = of_watcher(w);
        lg_module *m = p->module;
        m->parallel = NULL;
        lg__watcher_remove(m->object.ctx, w);
        lg__weak_set(&p->group, NULL);
        lg__parallel_forget(p);
        lg__free(m->object.ctx, p, sizeof *p);
}

/* Copies the values of a parameter or buffer from rank 0 to all other ranks. */
static bool broadcast_part(const char *path, lg__part *part, void *user)
{
        lg_group *g = user;
        lg_tensor *t = part->tensor;
        lg__collective what = {.kind = LG__BROADCAST, .dtype = t->at.dtype, .shape = t->at.shape};
        snprintf(what.name, sizeof what.name, "%s", path);
        lg_ctx *c = t->ctx;
        lg_scope scope = lg__scope_begin(c);
        lg_tensor *values = scope.id ? lg__clone_values(t, lg_cpu(), t->at.dtype) : NULL;
        const bool ok = values && lg__group_run(g, "lg_data_parallel", &what, lg__data(values), lg__data(values)) &&
                        (lg_group_rank(g) == 0 || lg__copy_values(t, values, "lg_data_parallel"));
        t->storage->version += scope.id && lg_group_rank(g) != 0;
        lg_scope_end(c, scope);
        return ok;
}

static bool is_taken(const lg_module *m)
{
        for (const lg_module *outer = m->parent; outer; outer = outer->parent)
                if (outer->parallel)
                        return true;
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                if (inner->parallel)
                        return true;
        return false;
}

static lg__parallel *new_parallel(lg_module *m, lg_group *g, const lg_data_parallel_options *o)
{
        lg__parallel *p = lg__alloc(m->object.ctx, sizeof *p);
        if (!p)
                return NULL;
        *p = (lg__parallel){.module = m, .weight = 1, .bucket_bytes = o->bucket_bytes, .keep_buffers = o->keep_buffers};
        p->watcher.name = "lg_data_parallel";
        p->watcher.tensors = watched_tensors;
        p->watcher.begin = begin_backward;
        p->watcher.complete = complete_gradient;
        p->watcher.end = end_backward;
        p->watcher.free = free_parallel;
        lg__weak_set(&p->group, &g->object);
        return p;
}

bool lg_data_parallel_with(lg_module *m, lg_group *g, const lg_data_parallel_options *options)
{
        const char *op = "lg_data_parallel";
        lg_ctx *c = lg_module_ctx(m);
        lg_data_parallel_options o;
        if (!m || !lg__take(c, op, options, &o, sizeof o) || !lg__object_lasts(&m->object, op) ||
            !lg__group_ready(c, g, op) || !lg__unrecorded(c, op) || !lg__module_is_whole(m, op))
                return false;
        o.bucket_bytes = o.bucket_bytes ? o.bucket_bytes : (int64_t)25 << 20;
        if (o.bucket_bytes < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .bucket_bytes is %lld, below 0", op,
                                (long long)o.bucket_bytes);
        if (is_taken(m))
                return lg__fail(c, LG_ERR_STATE, "%s: the %s, or a module around it or in it, is data-parallel already",
                                op, m->type);
        char path[LG__PATH];
        lg__parallel *p = new_parallel(m, g, &o);
        if (!p)
                return false;
        m->parallel = &p->watcher;
        m->changes++;
        if (lg_group_size(g) == 1)
                return true;
        const lg__collective last = {.kind = LG__BARRIER, .name = "the end of the parameters"};
        if (lg__module_visit(m, path, broadcast_part, g) && lg__group_run(g, op, &last, NULL, NULL)) {
                lg__watcher_add(c, &p->watcher);
                return true;
        }
        free_parallel(m->parallel);
        lg__report_error(c);
        return false;
}

/* ---- settings ---- */

static lg__parallel *parallel_of(lg_module *m, const char *op)
{
        if (!m || !lg__ok(m->object.ctx))
                return NULL;
        return m->parallel ? of_watcher(m->parallel)
                           : lg__fail(m->object.ctx, LG_ERR_STATE, "%s: the %s is not data-parallel", op, m->type);
}

bool lg_set_sync_mode(lg_module *m, bool on)
{
        lg__parallel *p = m && m->parallel ? of_watcher(m->parallel) : parallel_of(m, "lg_set_sync_mode");
        const bool was = p && !p->silent;
        if (p && p->watcher.call)
                lg__fail(m->object.ctx, LG_ERR_STATE, "lg_set_sync_mode: a backward of the %s has not returned",
                         m->type);
        else if (p) {
                watch_settings(p);
                p->silent = !on;
        }
        return was;
}

bool lg_sync_mode(const lg_module *m)
{
        return m && m->parallel && !of_watcher(m->parallel)->silent;
}

bool lg_set_data_parallel_weight(lg_module *m, double weight)
{
        lg__parallel *p = parallel_of(m, "lg_set_data_parallel_weight");
        if (p && !(isfinite(weight) && weight >= 0))
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_set_data_parallel_weight: the weight is %g; %s",
                                weight, "it is finite and not below 0");
        for (const lg_module *inner = p ? m : NULL; inner; inner = lg__module_next(inner, m))
                if (weight != 1 && lg__norm_is_shared(inner))
                        return lg__fail(m->object.ctx, LG_ERR_STATE,
                                        "lg_set_data_parallel_weight: the %s is synchronised over ranks, so that the "
                                        "losses of all meet in its derivative; multiply this rank's loss by its weight "
                                        "over the mean of all weights",
                                        inner->type);
        if (p)
                p->weight = weight;
        return p != NULL;
}
