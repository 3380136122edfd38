/* sequential.c - modules made of modules: Sequential, ModuleList, ModuleDict, Residual (a block with a shortcut); lists
 * and dictionaries of parameters. */
#include <string.h>
#include "nn.h"

/* ---- epilogues: operations that the module before them applies to its own result ---- */

static lg__epilogue_fn forward, forward_residual;

/* Returns whether part p is a convolution that can apply the batch norm after it (in evaluation mode, not recorded). */
static bool folds(const lg__part *p, const lg__part *end, const lg_tensor *x)
{
        const lg_module *m = p->child, *norm = p->next != end ? p->next->child : NULL;
        if (!norm || !m || !(m->epilogues & LG__EPILOGUE_NORM) || m->object.ctx->recording)
                return false;
        const lg_shape w = m->parts->tensor->at.shape;
        return x->at.shape.ndim == w.ndim && lg__norm_is_affine(norm, w.ndim, w.size[0]);
}

static const lg_module *last_child(const lg_module *m)
{
        const lg__part *p = m->parts;
        while (p && p->next)
                p = p->next;
        return p ? p->child : NULL;
}

static bool recomputes(const lg_module *m)
{
        return m->every > 0 && m->object.ctx->recording;
}

/* Returns whether m can apply the epilogues `with` together. A Residual ends with a sum and cannot apply a second one.
 */
static bool supports(const lg_module *m, unsigned with)
{
        if (!m)
                return false;
        if (m->forward_epilogue == forward)
                return !recomputes(m) && supports(last_child(m), with);
        if (m->forward_epilogue == forward_residual)
                return with == LG__EPILOGUE_RELU && supports(m->parts->child, LG__EPILOGUE_SUM | with);
        const bool relu_alone = m->epilogues & LG__RECORDS_RELU && m->object.ctx->recording;
        return ((relu_alone ? LG__EPILOGUE_RELU : m->epilogues) & with) == with;
}

/* ---- Sequential ---- */

/* Returns the epilogue that part p applies: the parts after p, before `end`, that can be fused into p or, if none are
 * left, `outer`. *ret_last is the part whose result p then makes. */
static lg__epilogue epilogue_of(const lg__part *p, const lg__part *end, const lg_tensor *x, lg__epilogue outer,
                                lg__part **ret_last)
{
        lg__epilogue e = {.norm = NULL};
        lg__part *last = (lg__part *)(uintptr_t)p;
        if (folds(p, end, x)) {
                last = p->next;
                e.norm = last->child;
        }
        const lg__part *next = last->next != end ? last->next : NULL;
        if (next && next->child && next->child->forward == lg__relu_forward && supports(p->child, LG__EPILOGUE_RELU)) {
                last = last->next;
                e.relu = true;
        } else if (!next) {
                e.plus = outer.plus;
                e.relu = outer.relu;
        }
        *ret_last = last;
        return e;
}

/* Stores the shape of y in the parts after p up to `last`, which p has applied itself, for lg_module_print(). */
static void note_shapes(const lg__part *p, const lg__part *last, const lg_tensor *y)
{
        while (p != last) {
                p = p->next;
                p->child->shape = y->at.shape;
                p->child->has_shape = true;
                p->child->kept_bytes = p->child->most_bytes = 0;
        }
}

/* Runs the parts from p to the one before `end` on `first`. Frees each activation that the graph does not need once the
 * next part has run. */
static lg_tensor *run(const lg_module *m, lg__part *p, const lg__part *end, lg_tensor *first, lg__epilogue outer)
{
        lg_ctx *c = m->object.ctx;
        lg_tensor *x = first;
        for (lg__part *last; p != end && x; p = last->next) {
                const lg__epilogue epilogue = epilogue_of(p, end, x, outer, &last);
                const bool alone = !epilogue.norm && !epilogue.plus && !epilogue.relu;
                lg_tensor *y = alone ? lg_forward(p->child, x) : lg__forward_with_epilogue(p->child, x, epilogue);
                if (y)
                        note_shapes(p, last, y);
                if (x != first && x != y && x->live == LG__LIVE && x->scope == c->scope)
                        lg__tensor_release(x);
                x = y;
        }
        return x;
}

static lg__part *part_at(const lg_module *m, int64_t index)
{
        lg__part *p = m->parts;
        while (p && index--)
                p = p->next;
        return p;
}

lg_tensor *lg__forward_span(lg_module *m, lg__stretch s, lg_tensor *const *inputs)
{
        if (!s.count)
                return lg_forward_list(m, inputs);
        return run(m, part_at(m, s.first), part_at(m, s.first + s.count), inputs[0], (lg__epilogue){.relu = false});
}

/* Returns the number of children in the recomputed group that begins with child `first`: m->every, and ReLUs after
 * them. */
static int64_t group_at(const lg_module *m, int64_t first)
{
        int64_t count = m->every;
        for (const lg__part *p = part_at(m, first + count); p && p->child && p->child->forward == lg__relu_forward;
             p = p->next)
                count++;
        return count;
}

/* Recomputes all groups but the last one, which keeps its activations, since the backward begins with it. */
static lg_tensor *run_groups(lg_module *m, lg_tensor *x)
{
        int64_t first = 0, count = lg_child_count(m);
        for (int64_t some; x && first + (some = group_at(m, first)) < count; first += some)
                x = lg__recompute_span(m, (lg__stretch){first, some}, (lg_tensor *[]){x, LG_END});
        return x ? run(m, part_at(m, first), NULL, x, (lg__epilogue){.relu = false}) : NULL;
}

static lg_tensor *forward(lg_module *m, lg_tensor *x, lg__epilogue outer)
{
        return recomputes(m) ? run_groups(m, x) : run(m, m->parts, NULL, x, outer);
}

bool lg_recompute_every(lg_module *m, int64_t n)
{
        lg_ctx *c = lg_module_ctx(m);
        if (!lg__ok(c))
                return false;
        if (m->forward_epilogue != forward)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_recompute_every: m is a %s; it takes a Sequential", m->type);
        if (n < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_recompute_every: n is %lld; it must be 0 or more",
                                (long long)n);
        m->every = n;
        m->changes++;
        return true;
}

/* The forwards of containers, which have none, and are known by them. */
#define NO_FORWARD(name, use)                                                                                          \
        static lg_tensor *name(lg_module *m, lg_list inputs, void *user)                                               \
        {                                                                                                              \
                (void)inputs, (void)user;                                                                              \
                return lg__fail(m->object.ctx, LG_ERR_STATE, "lg_forward: a %s has no forward of its own; " use,       \
                                m->type);                                                                              \
        }
NO_FORWARD(no_forward, "run its children: lg_child(list, i)")
NO_FORWARD(no_forward_of_dict, "run its children: lg_child_named(dict, name)")
NO_FORWARD(no_forward_of_numbered, "use its parameters: lg_parameter(list, name)")
NO_FORWARD(no_forward_of_named, "use its parameters: lg_parameter(dict, name)")

/* Adds the children up to LG_END to m, named "0", "1", ... If that fails, gives m up and returns NULL. */
static lg_module *take_all(lg_module *m, const char *op, lg_module *const *children)
{
        char name[24];
        bool ok = m != NULL;
        for (int i = 0; ok && children && children[i] != LG_END; i++) {
                snprintf(name, sizeof name, "%d", i);
                ok = lg__module_attach(m, name, children[i], op);
        }
        return ok ? m : m ? lg__module_give_up(m) : NULL;
}

lg_module *lg_nn_sequential_list(lg_ctx *c, lg_module *const *children)
{
        return take_all(lg__module_set_epilogues(lg__module_new(c, "Sequential", NULL), forward, 0), "lg_nn_sequential",
                        children);
}

lg_module *lg_nn_module_list_list(lg_ctx *c, lg_module *const *children)
{
        return take_all(lg__module_new(c, "ModuleList", no_forward), "lg_nn_module_list", children);
}

lg_module *lg_nn_module_dict(lg_ctx *c)
{
        return lg__module_new(c, "ModuleDict", no_forward_of_dict);
}

lg_module *lg_nn_parameter_dict(lg_ctx *c)
{
        return lg__module_new(c, "ParameterDict", no_forward_of_named);
}

lg_module *lg_nn_parameter_list_list(lg_ctx *c, lg_tensor *const *tensors)
{
        lg_module *m = lg__module_new(c, "ParameterList", no_forward_of_numbered);
        for (int i = 0; m && tensors && tensors[i] != LG_END; i++)
                if (!lg_module_append_parameter(m, tensors[i]))
                        return lg__object_destroy(m);
        return m;
}

lg_tensor *lg_module_append_parameter(lg_module *m, lg_tensor *t)
{
        if (!m || m->object.ctx->error || (t && !lg__check(t, "lg_module_append_parameter", "t")))
                return NULL;
        if (m->forward != no_forward_of_numbered)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                "lg_module_append_parameter: a %s has no numbered parameters; "
                                "lg_module_add_parameter() takes a name",
                                m->type);
        char name[24];
        snprintf(name, sizeof name, "%lld", (long long)lg_parameters(m).count);
        return lg_module_add_parameter(m, name, t);
}

lg_module *lg_module_append(lg_module *m, lg_module *child)
{
        if (!m || m->object.ctx->error || !lg__unrecorded(m->object.ctx, "lg_module_append"))
                return NULL;
        if (m->forward_epilogue != forward && m->forward != no_forward)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                "lg_module_append: a %s has no numbered children; lg_module_add() takes a name",
                                m->type);
        char name[24];
        snprintf(name, sizeof name, "%d", lg_child_count(m));
        return lg__module_attach(m, name, child, "lg_module_append") ? child : NULL;
}

/* ---- Residual ---- */

/* Runs the shortcut first, so that the block can add its result as an epilogue. */
static lg_tensor *forward_residual(lg_module *m, lg_tensor *x, lg__epilogue epilogue)
{
        lg_module *block = m->parts->child, *shortcut = m->parts->next ? m->parts->next->child : NULL;
        lg_tensor *s = shortcut ? lg_forward(shortcut, x) : x;
        if (!s)
                return NULL;
        if (supports(block, LG__EPILOGUE_SUM))
                return lg__forward_with_epilogue(block, x, (lg__epilogue){.plus = s, .relu = epilogue.relu});
        lg_tensor *y = lg_forward(block, x);
        return y ? lg_add(y, s) : NULL;
}

lg_module *lg_nn_residual_with(lg_ctx *c, lg_module *block, const lg_residual_options *options)
{
        lg_residual_options o;
        lg_module *m = lg__take(c, "lg_nn_residual", options, &o, sizeof o)
                               ? lg__module_set_epilogues(lg__module_new(c, "Residual", NULL), forward_residual, 0)
                               : NULL;
        if (!m)
                return NULL;
        bool ok = lg__module_attach(m, "block", block, "lg_nn_residual") &&
                  (!o.shortcut || lg__module_attach(m, "shortcut", o.shortcut, "lg_nn_residual"));
        return ok ? m : lg__module_give_up(m);
}
