/* recompute.c - lg_recompute(): a module whose activations are recomputed in the backward instead of kept (Chen et al.
 * 2016, "Training deep nets with sublinear memory cost"; PyTorch's torch.utils.checkpoint).
 *
 * The forward runs unrecorded, as one op of the inputs and the module's parameters. The derivative runs the module
 * again, recorded, with the random state and the autocast region of the first run, on detached leaves, so that hooks
 * see a gradient once. If the derivative is itself recorded (create_graph), it runs on copies that are connected to the
 * graph.
 */
#include "graph/op.h"
#include "nn.h"

/* State that a node stores to run the module again. */
typedef struct rerun {
        lg__weak module;
        lg__stretch span;      /* the part of the module that runs */
        int64_t before, count; /* number of parameters before the span, and in the span */
        lg_random_state random;
        lg_dtype region;
        uint64_t modes; /* hash of the training modes of the modules that run */
        int64_t inputs; /* number of inputs: operands of the op before the parameters */
        bool calling;   /* lg_recompute() has not returned, and frees this record if no node stores the record */
} rerun;

typedef struct recompute_attributes {
        rerun *rerun;
        const lg_tensor *made; /* the result of the forward; valid while lg__apply() runs */
} recompute_attributes;

static uint64_t hash_modes(uint64_t hash, const lg_module *m)
{
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                hash = (hash + 1 + inner->training) * 0x9e3779b97f4a7c15u;
        return hash;
}

/* Returns a hash of the training modes of the modules that run. */
static uint64_t modes_of(const lg_module *m, lg__stretch span)
{
        uint64_t hash = 0;
        int64_t i = 0;
        if (!span.count)
                return hash_modes(hash, m);
        for (const lg__part *p = m->parts; p && i < span.first + span.count; p = p->next, i++)
                hash = i < span.first ? hash : hash_modes(hash, p->child);
        return hash;
}

static void end(lg_ctx *c, rerun *r)
{
        lg__weak_set(&r->module, NULL);
        lg__free(c, r, sizeof *r);
}

static void release(lg_ctx *c, const void *attributes)
{
        rerun *r = ((const recompute_attributes *)attributes)->rerun;
        if (!r->calling)
                end(c, r);
}

static bool infer(lg__call *call)
{
        const recompute_attributes *a = call->attributes;
        call->out_at[0] = (lg__layout){.dtype = a->made->at.dtype, .shape = a->made->at.shape};
        lg__keep_layout(&call->out_at[0], &a->made->at);
        return true;
}

static bool forward(lg__call *call)
{
        const recompute_attributes *a = call->attributes;
        return lg__copy_values(call->out[0], a->made, "lg_recompute");
}

/* ---- the derivative ---- */

/* Arrays of a derivative: the inputs (then LG_END) and parameters that the module runs on; the tensors among these that
 * need a gradient, and their gradients. */
typedef struct again {
        lg_tensor **inputs, **params, **by, **grads;
        int64_t count; /* number of elements of `by` and of `grads` */
} again;

static bool take_inputs(const lg__vjp *v, int64_t inputs, again *a)
{
        const bool higher = v->ctx->recording;
        for (int i = 0; i < v->in_count; i++) {
                lg_tensor *t = v->in[i];
                if (v->needs[i])
                        t = higher ? lg_copy(t, lg_device_of(t)) : lg_set_requires_grad(lg_detach(t), true);
                if (!t)
                        return false;
                if (v->needs[i])
                        a->by[a->count++] = t;
                *(i < inputs ? &a->inputs[i] : &a->params[i - inputs]) = t;
        }
        a->inputs[inputs] = LG_END;
        return true;
}

/* Runs the span with `params` as its parameters, and with the module's own parameters outside it. */
static lg_tensor *forward_span(lg_module *m, const rerun *r, lg_list params, lg_tensor *const *inputs)
{
        lg_ctx *c = m->object.ctx;
        const lg_list all = lg_parameters(m);
        if (r->before + r->count > all.count || params.count != r->count)
                return lg__fail(c, LG_ERR_STATE, "lg_recompute: the parameters of the %s are no longer those it ran on",
                                m->type);
        const size_t bytes = (size_t)all.count * sizeof(lg_tensor *) + 1;
        lg_tensor **items = lg__alloc(c, bytes), *y = NULL;
        for (int64_t i = 0; items && i < all.count; i++) {
                const bool ours = i >= r->before && i < r->before + r->count;
                items[i] = ours ? params.items[i - r->before] : all.items[i];
        }
        if (items)
                y = lg__forward_params_span(m, r->span, (lg_list){all.count, items}, inputs);
        lg__free(c, items, bytes);
        return y;
}

static lg_tensor *run_again(lg_module *m, const rerun *r, const lg__rerun *own, lg_list params,
                            lg_tensor *const *inputs)
{
        lg_ctx *c = m->object.ctx;
        const lg__rerun *outer = c->rerun;
        const lg_random_state random = c->random;
        const lg_dtype region = c->autocast;
        const bool recording = lg_set_grad_mode(c, true);
        c->random = r->random;
        c->autocast = r->region;
        c->recomputing++;
        c->rerun = own;
        lg_tensor *y = r->span.count ? forward_span(m, r, params, inputs) : lg_forward_params_list(m, params, inputs);
        c->rerun = outer;
        c->recomputing--;
        c->autocast = region;
        if (region == LG_DTYPE_NONE)
                lg__drop_casts(c);
        c->random = random;
        lg_set_grad_mode(c, recording);
        return y;
}

/* Returns a handle of y's value that is in the innermost scope and has no other user: y, or a new one if y is an input,
 * has hooks, or belongs elsewhere. */
static lg_tensor *own_handle(const lg_ctx *c, lg_tensor *y, const again *a)
{
        bool seen = y->owner != LG__OWNER_SCOPE || y->scope != c->scope || y->node->hooks;
        for (int64_t i = 0; i < a->count; i++)
                seen |= y == a->by[i];
        if (seen && (y = lg__alias_of(y)))
                lg__tensor_disown(y);
        return y;
}

/* Computes the gradients of y by a->by, given v->grad[0], into a->grads. Recomputed activations and the incoming
 * gradient are freed as soon as nothing reads them. */
static bool derive_by(lg__vjp *v, lg_tensor *y, const again *a)
{
        lg_tensor *grad = lg__alias_of(v->grad[0]);
        if (!grad)
                return false;
        lg__tensor_disown(grad);
        lg__tensor_hold(&v->grad[0], NULL);
        y = own_handle(v->ctx, y, a);
        return y && lg__spend_grad(y, grad, (lg_list){a->count, a->by}, v->ctx->recording, a->grads);
}

static bool derive(lg__vjp *v, lg_module *m, const rerun *r, again *a)
{
        const lg__rerun own = {
                .since = v->ctx->sequence, .given = a->inputs, .count = v->in_count + 1, .name = m->type};
        if (!take_inputs(v, r->inputs, a))
                return false;
        lg_tensor *y = run_again(m, r, &own, (lg_list){v->in_count - r->inputs, a->params}, a->inputs);
        if (!y)
                return false;
        if (!lg__shape_equal(y->at.shape, v->grad[0]->at.shape))
                return lg__fail(v->ctx, LG_ERR_STATE, "lg_recompute: the forward of %s gave %s, and the first time %s",
                                m->type, lg__tensor_text(y).s, lg__tensor_text(v->grad[0]).s);
        if (!lg_requires_grad(y))
                return true;
        if (!derive_by(v, y, a))
                return false;
        for (int i = 0, k = 0; i < v->in_count; i++)
                if (v->needs[i])
                        v->grad_in[i] = a->grads[k++];
        return lg__ok(v->ctx);
}

static bool vjp(lg__vjp *v)
{
        lg_ctx *c = v->ctx;
        const rerun *r = ((const recompute_attributes *)v->attributes)->rerun;
        lg_module *m = (lg_module *)r->module.object;
        if (!m)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_recompute: the module was freed; the backward runs it again, so free it later");
        if (modes_of(m, r->span) != r->modes)
                return lg__fail(c, LG_ERR_STATE,
                                "lg_recompute: the training mode of the %s, or of a module in it, is not that of the "
                                "forward; the backward runs it again, so call lg_train() later",
                                m->type);
        const size_t n = (size_t)v->in_count, bytes = (3 * n + 1) * sizeof(lg_tensor *);
        lg_tensor **items = lg__alloc(c, bytes);
        if (!items)
                return false;
        again a = {.inputs = items, .params = items + r->inputs + 1, .by = items + n + 1, .grads = items + 2 * n + 1};
        const bool ok = derive(v, m, r, &a);
        lg__free(c, items, bytes);
        return ok;
}

static const lg__op recompute = {.name = "lg_recompute",
                                 LG__OPERANDS({"an input", .variadic = true, .saved_for = LG__BY(0)}),
                                 LG__RESULTS({"y"}),
                                 .flags = LG__ACROSS | LG__HANDLES,
                                 .attributes_bytes = sizeof(recompute_attributes),
                                 .infer = infer,
                                 .forward = forward,
                                 .vjp = vjp,
                                 .release = release};

/* ---- lg_recompute ---- */

/* Returns an array of the `count` inputs and then the parameters, which the caller frees; NULL: no memory. */
static lg_tensor **join(lg_ctx *c, lg_tensor *const *inputs, int64_t count, lg_list params)
{
        lg_tensor **all = lg__alloc(c, (size_t)(count + params.count) * sizeof *all);
        for (int64_t i = 0; all && i < count + params.count; i++)
                all[i] = i < count ? inputs[i] : params.items[i - count];
        return all;
}

static lg_list parameters_of(lg_module *m, rerun *r)
{
        lg_list all = lg_parameters(m);
        if (!r->span.count)
                return all;
        int64_t i = 0;
        for (const lg__part *p = m->parts; p && i < r->span.first + r->span.count; p = p->next, i++)
                *(i < r->span.first ? &r->before : &r->count) += lg_parameters(p->child).count;
        return (lg_list){r->count, all.items + r->before};
}

static lg_tensor *apply(lg_ctx *c, lg_module *m, rerun *r, lg_tensor *const *inputs)
{
        const bool recording = lg_set_grad_mode(c, false);
        const lg_tensor *made = lg__forward_span(m, r->span, inputs);
        lg_set_grad_mode(c, recording);
        if (!made)
                return NULL;
        while (inputs[r->inputs] != LG_END)
                r->inputs++;
        const lg_list params = parameters_of(m, r);
        lg_tensor **all = join(c, inputs, r->inputs, params), *y = NULL;
        if (all)
                y = lg__apply(&recompute, all, (int)(r->inputs + params.count), &(recompute_attributes){r, made}, NULL);
        lg__free(c, all, (size_t)(r->inputs + params.count) * sizeof *all);
        return y;
}

lg_tensor *lg__recompute_span(lg_module *m, lg__stretch span, lg_tensor *const *inputs)
{
        lg_ctx *c = m->object.ctx;
        lg_scope scope = lg__scope_begin(c);
        rerun *r = scope.id ? lg__alloc(c, sizeof *r) : NULL;
        lg_tensor *y = NULL;
        if (r) {
                *r = (rerun){.span = span, .random = c->random, .region = c->autocast, .calling = true};
                r->modes = modes_of(m, span);
                lg__weak_set(&r->module, &m->object);
                y = lg_escape(apply(c, m, r, inputs));
                r->calling = false;
                if (!y || !y->node)
                        end(c, r);
        }
        lg_scope_end(c, scope);
        return y;
}

lg_tensor *lg_recompute_list(lg_module *m, lg_tensor *const *inputs)
{
        lg_ctx *c = lg_module_ctx(m);
        if (!lg__ok(c) || !c->recording || !inputs || inputs[0] == LG_END)
                return lg_forward_list(m, inputs); /* without recording, runs m as usual; otherwise sets the error */
        return lg__recompute_span(m, (lg__stretch){0, 0}, inputs);
}
