/* region.c - derivatives of views, added in place to the viewed region of the base's gradient.
 *
 * The derivative of y = view(x) is g at the elements of x that y reads, and 0 elsewhere. Stored as a tensor of x's
 * size, it would cost all of x for each view, which makes a loop over time steps quadratic. Therefore g is added to
 * the matching region of x's pending gradient. The op's shape rule, applied to that gradient as it was to x, gives the
 * region. Views of views are resolved to their base, unless the gradient of a view between them is read. If the
 * gradients of all parts of x are stored as the parts of one tensor already, that tensor is the gradient of x. First
 * order only: .create_graph uses the derivatives made of ops.
 */
#include <string.h>
#include "core/observer.h"
#include "pending.h"

enum { MOST_VIEWS = 8 };

/* Chain of views: views[0] is the node whose derivative runs, each next view is the input of the one before, and
 * `base` is the edge from the last view to the tensor that all of them view. */
typedef struct chain {
        const lg__node *views[MOST_VIEWS];
        int count;
        const lg__edge *base;
        lg__call call; /* shape rule of views[0]; its out_at are the regions */
} chain;

static bool is_passed(const call *k, const lg__edge *e)
{
        const lg__node *n = e->node;
        const pending *p = lg__pending_find(k, n);
        return n->op && n->op->flags & LG__ALIASES && !n->hooks && !n->retain && !k->watched &&
               !(p && (p->asked || p->grads[e->output]));
}

static void follow(const call *k, const lg__node *n, chain *ret)
{
        ret->count = 0;
        do {
                ret->views[ret->count++] = n;
                ret->base = &n->edges[0];
                n = n->edges[0].node;
        } while (ret->count < MOST_VIEWS && is_passed(k, ret->base));
}

/* Applies the shape rule of view n to x. Returns false if x cannot be viewed this way without a copy. */
static bool view(lg__call *call, const lg__node *n, lg_tensor *x)
{
        _Alignas(16) char attributes[LG__MAX_ATTRIBUTES];
        memcpy(attributes, n->attributes, n->op->attributes_bytes);
        call->ctx = n->ctx;
        call->op = n->op;
        call->in = &x;
        call->in_count = 1;
        call->attributes = attributes;
        call->out_count = n->op->result_count;
        lg__layout_copy(&call->out_at[0], &x->at);
        return n->op->infer(call);
}

static bool repeats(const lg__layout *at)
{
        for (int i = 0; i < at->shape.ndim; i++)
                if (at->strides[i] == 0 && at->shape.size[i] > 1)
                        return true;
        return false;
}

/* Finds the regions in a gradient with layout `at`. Returns false if there are none, because the op made a copy or
 * lg_expand() repeats elements, whose gradients must be summed. */
static bool find_regions(chain *ch, const lg__layout *at)
{
        lg_tensor x = {.live = LG__LIVE, .ctx = ch->views[0]->ctx};
        lg__layout_copy(&x.at, at);
        for (int i = ch->count - 1; i >= 0; i--) {
                if (!view(&ch->call, ch->views[i], &x))
                        return false;
                if (i > 0)
                        lg__layout_copy(&x.at, &ch->call.out_at[ch->views[i - 1]->edges[0].output]);
        }
        for (int i = 0; i < ch->call.out_count; i++)
                if (repeats(&ch->call.out_at[i]))
                        return false;
        return true;
}

/* Returns the gradient pending at edge e as a tensor that may be changed in place: a copy if its storage is shared, or
 * a new tensor (of zeros if `zeros`) if there is none. Returns NULL and sets an error on failure. */
static lg_tensor *own_sum(call *k, pending *p, const lg__edge *e, bool zeros)
{
        lg_tensor *was = p->grads[e->output];
        if (was && lg__grad_is_unseen(was))
                return was;
        lg_tensor *sum =
                lg__tensor_own(was ? lg__clone_values(was, e->device, e->dtype)
                                   : lg__tensor_empty(k->ctx, e->device, e->dtype, lg__shape_of(e->size, e->ndim)));
        if (!sum || (!was && zeros && !lg__fill_values(sum, 0, k->name)) || (!p->queued && !lg__heap_push(k, p))) {
                lg__tensor_release(sum);
                return NULL;
        }
        lg__tensor_release(was);
        return p->grads[e->output] = sum;
}

/* Adds the gradients to their regions of the sum or, unless `adds`, copies them there. Notifies observers. */
static bool add_to_regions(lg__vjp *v, const chain *ch, lg_tensor *sum, bool adds)
{
        lg_tensor region = *sum, whole = *sum;
        bool ok = true;
        if (v->out_count == 1)
                lg__layout_copy(&whole.at, &ch->call.out_at[0]);
        v->sums[0] = adds ? &whole : NULL;
        LG__NOTIFY(v->ctx, fused_begin, v);
        for (int i = 0; i < v->out_count && ok; i++) {
                lg__layout_copy(&region.at, &ch->call.out_at[i]);
                if (v->grad[i])
                        ok = adds ? lg__pointwise_run(LG_PW_add, &region,
                                                      (lg_tensor *[LG_PW_INPUTS]){&region, v->grad[i]}, 0, 0,
                                                      v->op->name)
                                  : lg__copy_values(&region, v->grad[i], v->op->name);
        }
        v->grad_in[0] = &whole;
        LG__NOTIFY(v->ctx, fused_end, v, ok);
        v->grad_in[0] = NULL;
        return ok;
}

/* Returns the base's gradient if the gradients of all views are its regions already, parts of one storage; NULL if they
 * are not. `at` is the layout of that gradient. */
static lg_tensor *joined(const lg__vjp *v, const chain *ch, const lg__layout *at)
{
        const lg_tensor *first = v->grad[0];
        lg__layout whole;
        lg__layout_copy(&whole, at);
        whole.offset = first ? first->at.offset - ch->call.out_at[0].offset : -1;
        for (int i = 0; i < v->out_count; i++) {
                const lg_tensor *g = v->grad[i];
                const lg__layout *region = &ch->call.out_at[i];
                if (!g || g->storage != first->storage || g->at.dtype != at->dtype ||
                    !lg__layout_same(&g->at, region) || g->at.offset - region->offset != whole.offset)
                        return NULL;
        }
        return whole.offset < 0 || !lg_device_equal(first->storage->device->id, ch->base->device)
                       ? NULL
                       : lg__tensor_own(lg__tensor_new(v->ctx, first->storage, &whole));
}

bool lg__derive_view(call *k, lg__vjp *v, bool *ret_ok)
{
        chain ch; /* not zeroed, because most layouts are unused */
        lg__layout at;
        follow(k, v->node, &ch);
        pending *p = lg__pending_get(k, ch.base->node);
        lg_tensor *was = p ? p->grads[ch.base->output] : NULL;
        *ret_ok = false;
        if (!p)
                return true;
        if (was && lg__grad_is_unseen(was)) {
                lg__layout_copy(&at, &was->at);
        } else {
                at.dtype = ch.base->dtype;
                at.shape = lg__shape_of(ch.base->size, ch.base->ndim);
                lg__layout_contiguous(&at);
        }
        int64_t covered = 0;
        if (!find_regions(&ch, &at))
                return false;
        for (int i = 0; i < v->out_count; i++) {
                covered += v->grad[i] ? lg__layout_numel(&ch.call.out_at[i]) : 0;
                if (was && v->grad[i] && !lg__gradients_meet(was, v->grad[i], k->name))
                        return true;
        }
        const bool all = covered == lg__layout_numel(&at);
        if (!was && all && v->out_count == 1) /* the view's own derivative then passes g on without a copy */
                return false;
        lg_tensor *sum = !was && all ? joined(v, &ch, &at) : NULL;
        if (sum) {
                *ret_ok = lg__arrive(k, ch.base->node, ch.base->output, sum);
                return true;
        }
        sum = own_sum(k, p, ch.base, !all);
        *ret_ok = sum && add_to_regions(v, &ch, sum, was != NULL);
        return true;
}
