/* remake.c - results of elementwise ops that the backward pass recomputes. The op after an activation saves the
 * activation's result, while the activation saves its own input, from which one kernel recomputes the result. A large
 * result that only derivatives still need is therefore freed until then. */
#include <string.h>
#include "graph/op.h"

#define LEAST_BYTES ((size_t)256 << 10) /* size in bytes from which recomputing is worthwhile */

typedef struct recipe {
        lg__recipe base;
        const lg__op *op;
        lg__layout in, out;
        _Alignas(16) char attributes[];
} recipe;

/* Returns whether op is an activation whose derivative saves the input but not the result. */
static bool keeps_its_input(const lg__op *op)
{
        return op->pointwise && op->vjp && op->operand_count == 1 && op->operands[0].saved_for &&
               !op->results[0].saved_for;
}

bool lg__remember(const lg__call *call)
{
        const lg__op *op = call->op;
        lg__storage *from = call->in[0]->storage, *s = call->out[0]->storage;
        const size_t bytes = sizeof(recipe) + op->attributes_bytes;
        if (s->bytes < LEAST_BYTES || !keeps_its_input(op))
                return true;
        recipe *r = lg__alloc_unset(call->ctx, bytes);
        if (!r)
                return false;
        r->base = (lg__recipe){lg__storage_ref(from), from->version, s->version, bytes};
        r->op = op;
        lg__layout_copy(&r->in, &call->in[0]->at);
        lg__layout_copy(&r->out, &call->out[0]->at);
        memcpy(r->attributes, call->attributes, op->attributes_bytes);
        s->recipe = &r->base;
        return true;
}

static lg_tensor *hold(lg_tensor *t, lg__storage *s, const lg__layout *at)
{
        memset(t, 0, offsetof(lg_tensor, at));
        t->live = LG__LIVE;
        t->owner = LG__OWNER_LIBRARY;
        t->ctx = s->ctx;
        t->storage = s;
        lg__layout_copy(&t->at, at);
        return t;
}

static bool follow(recipe *r, lg__storage *s)
{
        lg_tensor x, y, *in = hold(&x, r->base.from, &r->in);
        lg__call call = {.ctx = s->ctx, .op = r->op, .device = s->device, .in_count = 1, .in = &in, .out_count = 1};
        call.attributes = r->attributes;
        call.out[0] = hold(&y, s, &r->out);
        return r->op->forward(&call);
}

bool lg__remake(lg__storage *s, const char *name)
{
        recipe *r = (recipe *)s->recipe;
        if (s->data || !r)
                return true;
        if (r->base.from->version != r->base.from_version)
                return lg__fail(s->ctx, LG_ERR_STATE,
                                "%s: %s saved x, a %s tensor of shape %s, from which its result is made again, and it "
                                "was changed in place since; change a copy (lg_copy), or after lg_backward",
                                name, r->op->name, lg_dtype_name(r->in.dtype), lg__shape_text(r->in.shape).s);
        return lg__storage_refill(s) && follow(r, s);
}
