/* buckets.c - tensors of a module one behind the other in buckets, which go from rank to rank as one message.
 *
 * A bucket has gradients of one dtype and device, 64 at most: a bit for each says whether any rank has it. A gradient
 * that lies in one piece and fills a bucket alone goes as it is, without a copy.
 */
#include <string.h>
#include "nn/parallel.h"

#define FIRST_BYTES ((int64_t)1 << 20)   /* of the first bucket: what backward makes first sets off early */
#define GREAT_BYTES ((int64_t)512 << 10) /* of a gradient that goes alone */
#define MOST 64

/* ---- the plan ---- */

typedef struct gathering {
        lg__plan *plan; /* NULL: they are counted */
        lg__part_kind kind;
        int64_t count;
} gathering;

static bool gather(const char *path, lg__part *part, void *user)
{
        gathering *g = user;
        (void)path;
        if (part->kind != g->kind)
                return true;
        if (g->plan)
                g->plan->tensors[g->count] = part->tensor;
        g->count++;
        return true;
}

static bool each_of(lg_module *m, lg__part_kind kind, lg__plan *plan, int64_t *count)
{
        char path[LG__PATH];
        gathering g = {plan, kind, *count};
        const bool ok = lg__module_visit(m, path, gather, &g);
        *count = g.count;
        return ok;
}

static lg__plan *new_plan(lg__parallel *p)
{
        int64_t params = 0, count = 0;
        if (!each_of(p->module, LG__PARAMETER, NULL, &params))
                return NULL;
        count = params;
        if (!p->keep_buffers && !each_of(p->module, LG__BUFFER, NULL, &count))
                return NULL;
        const size_t n = (size_t)count;
        const size_t bytes = sizeof(lg__plan) + n * (sizeof(lg__bucket) + sizeof(lg_tensor *) + 3 * sizeof(int64_t));
        lg__plan *plan = lg__alloc(p->module->object.ctx, bytes);
        if (!plan)
                return NULL;
        *plan = (lg__plan){.bytes = bytes, .params = params, .count = count};
        plan->bucket = (lg__bucket *)(plan + 1);
        plan->tensors = (lg_tensor **)(plan->bucket + n);
        plan->order = (int64_t *)(plan->tensors + n);
        plan->arrival = plan->order + n;
        plan->bucket_of = plan->arrival + n;
        count = 0;
        each_of(p->module, LG__PARAMETER, plan, &count);
        if (!p->keep_buffers)
                each_of(p->module, LG__BUFFER, plan, &count);
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
        const size_t length = strlen(path), from = length < LG__JOINT_NAME ? 0 : length - (LG__JOINT_NAME - 1);
        memcpy(n->name, path + from, length - from + 1);
        return false;
}

/* Numbers at the front of plan->arrival that go together. */
typedef struct collected {
        lg__parallel *p;
        lg__plan *plan;
        int64_t count, elements;
        int64_t placed; /* in plan->order */
} collected;

/* The next bucket has these. */
static void place(collected *k, const int64_t *numbers, int64_t count, int64_t elements)
{
        char path[LG__PATH];
        lg__plan *plan = k->plan;
        const lg_tensor *t = plan->tensors[numbers[0]];
        lg__bucket *b = &plan->bucket[plan->buckets];
        *b = (lg__bucket){.first = k->placed, .count = count, .elements = elements};
        b->device = t->storage->device;
        b->dtype = t->at.dtype;
        b->buffers = numbers[0] >= plan->params;
        lg__module_visit(k->p->module, path, take_name, &(naming){t, b->name});
        for (int64_t i = 0; i < count; i++) {
                plan->order[k->placed++] = numbers[i];
                plan->bucket_of[numbers[i]] = plan->buckets;
        }
        plan->gradients += !b->buffers;
        plan->buckets++;
}

static void close_bucket(collected *k)
{
        if (k->count)
                place(k, k->plan->arrival, k->count, k->elements);
        k->count = k->elements = 0;
}

/* Great gradients go alone, as soon as they are there; small ones wait for others. */
void lg__parallel_cut(lg__parallel *p, lg__plan *plan)
{
        collected k = {.p = p, .plan = plan};
        plan->buckets = plan->gradients = 0;
        const int64_t all = plan->ordered + plan->count - plan->params;
        memcpy(plan->arrival, plan->order, (size_t)all * sizeof *plan->order);
        for (int64_t i = 0; i < all; i++) {
                const int64_t number = plan->arrival[i]; /* behind those collected */
                const lg_tensor *t = plan->tensors[number], *first = plan->tensors[plan->arrival[0]];
                const int64_t size = (int64_t)lg__dtype_bytes(t->at.dtype), elements = lg__layout_numel(&t->at);
                const bool is_buffer = number >= plan->params;
                const bool alike = first->at.dtype == t->at.dtype && first->storage->device == t->storage->device &&
                                   (plan->arrival[0] >= plan->params) == is_buffer;
                const int64_t most = plan->buckets || FIRST_BYTES > p->bucket_bytes ? p->bucket_bytes : FIRST_BYTES;
                if (elements * size >= GREAT_BYTES && !is_buffer) {
                        place(&k, &number, 1, elements);
                        continue;
                }
                if (k.count && (!alike || k.count == MOST || (k.elements + elements) * size > most))
                        close_bucket(&k);
                plan->arrival[k.count++] = number;
                k.elements += elements;
        }
        close_bucket(&k);
}

/* Backward meets the last parameters first. */
static void first_order(lg__plan *plan)
{
        for (int64_t i = plan->params - 1; i >= 0; i--) {
                plan->bucket_of[i] = -1;
                if (needs_gradient(plan->tensors[i]))
                        plan->order[plan->ordered++] = i;
        }
        for (int64_t i = plan->params; i < plan->count; i++)
                plan->order[plan->ordered + i - plan->params] = i;
}

/* The parts have not been moved, frozen, cast or exchanged. */
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
        first_order(now);
        lg__parallel_cut(p, now);
        return now;
}

void lg__plan_reset(lg__plan *plan)
{
        plan->arrived = plan->next = 0;
        for (int64_t i = 0; i < plan->buckets; i++) {
                lg__bucket *b = &plan->bucket[i];
                b->begun = false;
                b->waiting = b->buffers ? 0 : b->count;
        }
}

/* ---- a bucket on its way ---- */

/* What member i of a bucket brings: a kept gradient or a buffer; NULL: nothing. */
static lg_tensor *value_of(const lg__plan *plan, const lg__bucket *b, int64_t i)
{
        lg_tensor *t = plan->tensors[plan->order[b->first + i]];
        return b->buffers ? t : t->node && t->node->grads ? t->node->grads[t->output] : NULL;
}

/* The part of the bucket that is of t's shape, `at` elements from its beginning; of the innermost scope. */
static lg_tensor *part_of(const lg__bucket *b, int64_t at, const lg_tensor *t)
{
        lg__layout layout = {.dtype = b->dtype, .shape = t->at.shape};
        lg__layout_contiguous(&layout);
        layout.offset = b->flat->at.offset + at;
        return lg__tensor_new(t->ctx, b->flat->storage, &layout);
}

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

/* From device to device: what is weighted is multiplied first, and what has the weight 0 is not looked at. */
static bool begin_link(lg_group *g, lg__bucket *b)
{
        const char *op = "lg_backward";
        lg__joint j = b->errand.joint;
        bool ok = true;
        if (j.what == LG__ALL_REDUCE && b->errand.weighted) {
                const double share = b->errand.share;
                j.reduction = LG__RANKS_SUM;
                ok = share == 0 ? lg__fill_values(b->flat, 0, op)
                                : lg__pointwise_run(LG_PW_mul_scalar, b->flat, (lg_tensor *[LG_PW_INPUTS]){b->flat},
                                                    share, 0, op);
        }
        void *data = lg__data(b->flat);
        return ok && lg__group_link(g, op, &j, data, data, &b->mark);
}

/* Through the host. */
static bool begin_host(lg_group *g, lg__bucket *b)
{
        if (b->device->id.type != LG_DEVICE_CPU &&
            !(b->host = lg__tensor_own(lg__clone_values(b->flat, lg_cpu(), b->dtype))))
                return false;
        b->errand.in = b->errand.out = lg__data(b->host ? b->host : b->flat);
        lg__group_begin(g, &b->errand);
        return true;
}

bool lg__bucket_begin(lg__parallel *p, lg_group *g, lg__bucket *b)
{
        const lg__plan *plan = p->plan;
        lg_tensor *alone = b->count == 1 ? value_of(plan, b, 0) : NULL;
        uint64_t present = 0;
        if (alone && lg__layout_is_contiguous(&alone->at)) {
                b->flat = lg__tensor_own(lg__tensor_new(alone->ctx, alone->storage, &alone->at));
                present = 1;
                if (!b->flat)
                        return false;
        } else if (!pack(plan, b, &present)) {
                return false;
        }
        lg__joint j = {.what = b->buffers ? LG__BROADCAST : LG__ALL_REDUCE, .dtype = b->dtype, .bits = present};
        j.shape = LG_SHAPE(b->elements);
        memcpy(j.name, b->name, sizeof j.name);
        if (!b->buffers) {
                j.reduction = LG__RANKS_MEAN;
                j.weighted = p->weight != 1;
                j.weight = p->weight;
        }
        b->errand = (lg__errand){.joint = j};
        if (!lg__group_agree(g, "lg_backward", b->device, &b->errand))
                return false;
        b->linked = b->errand.linked;
        return b->begun = b->linked ? begin_link(g, b) : begin_host(g, b);
}

/* A member of the bucket has that value now. */
static bool put(const lg__plan *plan, lg__bucket *b, int64_t i, const lg_tensor *value)
{
        lg_tensor *t = plan->tensors[plan->order[b->first + i]], *to = value_of(plan, b, i);
        if (!to) {
                lg_tensor *first = lg__tensor_own(lg__clone_values(value, b->device->id, b->dtype));
                return first && t->node && lg__node_accumulate(t->node, t->output, first, false);
        }
        to->storage->version++;
        return to->storage == b->flat->storage || lg__copy_values(to, value, "lg_backward");
}

static bool unpack(const lg__plan *plan, lg__bucket *b)
{
        bool ok = !b->host || lg__copy_values(b->flat, b->host, "lg_backward");
        for (int64_t i = 0, at = 0; ok && i < b->count; i++) {
                const lg_tensor *t = plan->tensors[plan->order[b->first + i]];
                if (b->buffers || (b->errand.bits >> i & 1)) {
                        const lg_tensor *part = part_of(b, at, t);
                        ok = part && put(plan, b, i, part);
                }
                at += lg__layout_numel(&t->at);
        }
        return ok;
}

bool lg__bucket_end(lg__parallel *p, lg_group *g, lg__bucket *b, bool ok)
{
        if (b->begun)
                ok = (b->linked ? lg__group_linked(g, "lg_backward", b->mark)
                                : lg__group_end(g, "lg_backward", &b->errand)) &&
                     ok;
        ok = ok && (!b->begun || (b->buffers && lg_group_rank(g) == 0) || unpack(p->plan, b));
        lg__tensor_release(b->host);
        lg__tensor_release(b->flat);
        b->host = b->flat = NULL;
        b->begun = false;
        return ok;
}
