/* buckets.c - division of a module's gradients and buffers into buckets, and the collective of each bucket.
 *
 * A bucket has at most 64 tensors, of one dtype and device: a bit mask records for each whether any rank has a
 * gradient. If a bucket has one member and its gradient is contiguous, the gradient is exchanged in place, without a
 * copy.
 */
#include <string.h>
#include "core/tape.h"
#include "nn/parallel.h"

#define FIRST_BYTES ((int64_t)1 << 20)   /* bytes of the first bucket, at most: communication starts early */
#define GREAT_BYTES ((int64_t)512 << 10) /* a gradient of at least this size has a bucket of its own */
#define MOST 64

/* ---- the plan ---- */

/* State of a walk over a module's parts of these kinds: number of parameters [0] and buffers [1] found so far, and the
 * arrays that receive them (NULL: they are only counted). */
typedef struct gathering {
        int kinds;
        int64_t count[2];
        lg_tensor **to[2];
} gathering;

static bool gather_part(const char *path, lg__part *part, void *user)
{
        gathering *g = user;
        const bool is_buffer = part->kind == LG__BUFFER;
        (void)path;
        if (!(part->kind & g->kinds))
                return true;
        if (g->to[is_buffer])
                g->to[is_buffer][g->count[is_buffer]] = part->tensor;
        g->count[is_buffer]++;
        return true;
}

static lg__plan *new_plan(lg__parallel *p)
{
        char path[LG__PATH];
        gathering g = {.kinds = p->keep_buffers ? LG__PARAMETER : LG__PARAMETER | LG__BUFFER};
        if (!lg__module_visit(p->module, path, gather_part, &g))
                return NULL;
        const size_t n = (size_t)(g.count[0] + g.count[1]);
        const size_t bytes = sizeof(lg__plan) + n * (sizeof(lg__bucket) + sizeof(lg_tensor *) + 3 * sizeof(int64_t));
        lg__plan *plan = lg__alloc(p->module->object.ctx, bytes);
        if (!plan)
                return NULL;
        *plan = (lg__plan){.bytes = bytes, .params = g.count[0], .count = (int64_t)n};
        plan->bucket = (lg__bucket *)(plan + 1);
        plan->tensors = (lg_tensor **)(plan->bucket + n);
        plan->order = (int64_t *)(plan->tensors + n);
        plan->arrival = plan->order + n;
        plan->bucket_of = plan->arrival + n;
        g = (gathering){.kinds = g.kinds, .to = {plan->tensors, plan->tensors + plan->params}};
        lg__module_visit(p->module, path, gather_part, &g);
        return plan;
}

static bool needs_gradient(const lg_tensor *t)
{
        return t->node && !t->node->op;
}

typedef struct naming {
        const lg_tensor *t;
        char *name;
} naming;

static bool take_name(const char *path, lg__part *part, void *user)
{
        naming *n = user;
        if (part->tensor != n->t)
                return true;
        const size_t length = strlen(path),
                     from = length < LG__COLLECTIVE_NAME ? 0 : length - (LG__COLLECTIVE_NAME - 1);
        memcpy(n->name, path + from, length - from + 1);
        return false;
}

/* Appends a bucket of the tensors with these `count` numbers to the plan. */
static void add_bucket(lg__parallel *p, const int64_t *numbers, int64_t count)
{
        char path[LG__PATH];
        lg__plan *plan = p->plan;
        const lg_tensor *t = plan->tensors[numbers[0]];
        lg__bucket *b = &plan->bucket[plan->buckets];
        *b = (lg__bucket){.first = plan->buckets ? b[-1].first + b[-1].count : 0, .count = count};
        b->device = t->storage->device;
        b->dtype = t->at.dtype;
        b->buffers = numbers[0] >= plan->params;
        lg__module_visit(p->module, path, take_name, &(naming){t, b->name});
        for (int64_t i = 0; i < count; i++) {
                plan->order[b->first + i] = numbers[i];
                plan->bucket_of[numbers[i]] = plan->buckets;
                b->elements += lg__layout_numel(&plan->tensors[numbers[i]]->at);
        }
        plan->gradients += !b->buffers;
        plan->buckets++;
}

/* Gives each gradient of GREAT_BYTES or more its own bucket, whose exchange can start early; others share buckets. */
void lg__parallel_cut(lg__parallel *p)
{
        lg__plan *plan = p->plan;
        const int64_t all = plan->ordered + plan->count - plan->params;
        int64_t count = 0, bytes = 0; /* of the bucket being filled, from plan->arrival[0] on */
        plan->buckets = plan->gradients = 0;
        memcpy(plan->arrival, plan->order, (size_t)all * sizeof *plan->order);
        for (int64_t i = 0; i < all; i++) {
                const int64_t number = plan->arrival[i];
                const lg_tensor *t = plan->tensors[number], *first = plan->tensors[plan->arrival[0]];
                const int64_t more = lg__layout_numel(&t->at) * (int64_t)lg__dtype_bytes(t->at.dtype);
                const bool is_buffer = number >= plan->params;
                const bool alike = first->at.dtype == t->at.dtype && first->storage->device == t->storage->device &&
                                   (plan->arrival[0] >= plan->params) == is_buffer;
                const int64_t most = plan->buckets || FIRST_BYTES > p->bucket_bytes ? p->bucket_bytes : FIRST_BYTES;
                if (more >= GREAT_BYTES && !is_buffer) {
                        add_bucket(p, &number, 1);
                        continue;
                }
                if (count && (!alike || count == MOST || bytes + more > most)) {
                        add_bucket(p, plan->arrival, count);
                        count = bytes = 0;
                }
                plan->arrival[count++] = number;
                bytes += more;
        }
        if (count)
                add_bucket(p, plan->arrival, count);
}

/* Orders the parameters for the first backward, last ones first, as their gradients usually arrive in that order. */
static void guess_order(lg__plan *plan)
{
        for (int64_t i = plan->params - 1; i >= 0; i--) {
                plan->bucket_of[i] = -1;
                if (needs_gradient(plan->tensors[i]))
                        plan->order[plan->ordered++] = i;
        }
        for (int64_t i = plan->params; i < plan->count; i++)
                plan->order[plan->ordered + i - plan->params] = i;
}

/* Returns whether an old plan still matches the parameters (device, dtype, requires grad, identity). */
static bool fits(const lg__plan *plan, const lg__plan *now)
{
        bool same = plan && plan->count == now->count && plan->params == now->params;
        for (int64_t i = 0; same && i < plan->count; i++) {
                const lg_tensor *t = now->tensors[i];
                const lg__bucket *b = plan->bucket_of[i] < 0 ? NULL : &plan->bucket[plan->bucket_of[i]];
                same = plan->tensors[i] == t && (i >= plan->params || needs_gradient(t) == (b != NULL)) &&
                       (!b || (b->device == t->storage->device && b->dtype == t->at.dtype));
        }
        return same;
}

void lg__parallel_forget(lg__parallel *p)
{
        if (p->plan)
                lg__free(p->module->object.ctx, p->plan, p->plan->bytes);
        p->plan = NULL;
}

lg__plan *lg__parallel_plan(lg__parallel *p)
{
        lg__plan *now = new_plan(p);
        if (!now)
                return NULL;
        if (fits(p->plan, now)) {
                lg__free(p->module->object.ctx, now, now->bytes);
                return p->plan;
        }
        lg__parallel_forget(p);
        p->plan = now;
        p->plans++;
        guess_order(now);
        lg__parallel_cut(p);
        return now;
}

/* ---- the collective of a bucket ---- */

/* Returns the gradient or buffer that member i of a bucket contributes; NULL if the member has no gradient. */
static lg_tensor *value_of(const lg__plan *plan, const lg__bucket *b, int64_t i)
{
        lg_tensor *t = plan->tensors[plan->order[b->first + i]];
        return b->buffers ? t : t->node && t->node->grads ? t->node->grads[t->output] : NULL;
}

/* Returns a view of b->flat with t's shape that begins at element `at`, in the innermost scope. */
static lg_tensor *part_of(const lg__bucket *b, int64_t at, const lg_tensor *t)
{
        lg__layout layout = {.dtype = b->dtype, .shape = t->at.shape};
        lg__layout_contiguous(&layout);
        layout.offset = b->flat->at.offset + at;
        return lg__tensor_new(t->ctx, b->flat->storage, &layout);
}

/* Copies the members of b to a new b->flat, with zeros for missing gradients. Sets bit i of *present if member i has a
 * value. */
static bool pack(const lg__plan *plan, lg__bucket *b, uint64_t *present)
{
        lg_ctx *c = plan->tensors[0]->ctx;
        b->flat = lg__tensor_own(lg__tensor_empty(c, b->device->id, b->dtype, LG_SHAPE(b->elements)));
        bool ok = b->flat != NULL;
        for (int64_t i = 0, at = 0; ok && i < b->count; i++) {
                const lg_tensor *t = plan->tensors[plan->order[b->first + i]], *value = value_of(plan, b, i);
                lg_tensor *part = part_of(b, at, t);
                ok = part &&
                     (value ? lg__copy_values(part, value, "lg_backward") : lg__fill_values(part, 0, "lg_backward"));
                at += lg__layout_numel(&t->at);
                *present |= (uint64_t)(value != NULL) << i;
        }
        return ok;
}

bool lg__bucket_begin(lg__parallel *p, lg_group *g, lg__bucket *b)
{
        const lg_tensor *alone = b->count == 1 ? value_of(p->plan, b, 0) : NULL;
        lg__collective what = {.kind = LG__BROADCAST, .dtype = b->dtype, .shape = LG_SHAPE(b->elements)};
        memcpy(what.name, b->name, sizeof what.name);
        if (!b->buffers) {
                what.kind = LG__ALL_REDUCE;
                what.reduction = LG_REDUCE_OP_MEAN;
                what.weighted = p->weight != 1;
                what.weight = p->weight;
        }
        if (alone && lg__layout_is_contiguous(&alone->at)) {
                b->flat = lg__tensor_own(lg__tensor_new(alone->ctx, alone->storage, &alone->at));
                what.bits = 1;
                if (!b->flat)
                        return false;
        } else if (!pack(p->plan, b, &what.bits)) {
                return false;
        }
        b->request = (lg__request){.what = what, .in = b->flat, .out = b->flat};
        return b->begun = lg__request_begin(g, "lg_backward", &b->request, true);
}

/* Writes the averaged gradient or the buffer to member i, creating the gradient if there is none. */
static bool write_member(const lg__plan *plan, lg__bucket *b, int64_t i, const lg_tensor *value)
{
        lg_tensor *t = plan->tensors[plan->order[b->first + i]], *to = value_of(plan, b, i);
        if (!to) {
                lg_tensor *first = lg__tensor_own(lg__clone_values(value, b->device->id, b->dtype));
                return first && t->node && lg__node_accumulate(t->node, t->output, first, false);
        }
        lg__storage_changed(to->storage);
        return to->storage == b->flat->storage || lg__copy_values(to, value, "lg_backward");
}

static bool unpack(const lg__plan *plan, lg__bucket *b)
{
        bool ok = true;
        for (int64_t i = 0, at = 0; ok && i < b->count; i++) {
                const lg_tensor *t = plan->tensors[plan->order[b->first + i]];
                if (b->buffers || (b->request.bits >> i & 1)) {
                        const lg_tensor *part = part_of(b, at, t);
                        ok = part && write_member(plan, b, i, part);
                }
                at += lg__layout_numel(&t->at);
        }
        return ok;
}

bool lg__bucket_end(lg__parallel *p, lg_group *g, lg__bucket *b, bool ok)
{
        if (b->begun)
                ok = lg__request_end(g, "lg_backward", &b->request) && ok &&
                     ((b->buffers && g->rank == 0) || unpack(p->plan, b));
        lg__tensor_hold(&b->flat, NULL);
        b->begun = false;
        return ok;
}
