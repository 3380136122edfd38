/* functional.c - lg_forward_params(): runs a module with given tensors as its parameters (torch.func.functional_call).
 *
 * During the forward the given tensors replace the parameters in the module's parts and in the lists that
 * lg_parameters() has returned, so recorded ops refer to the given tensors.
 */
#include "nn.h"

/* A part and the tensor to exchange with the part's: the given one or, after the first exchange, the part's own. */
typedef struct loan {
        lg__part *part;
        lg_tensor *tensor;
} loan;

typedef struct loans {
        lg_ctx *c;
        lg_list given;
        loan *items; /* an array of given.count elements */
        int64_t count;
} loans;

static bool fits(lg_ctx *c, const char *path, const lg_tensor *own, const lg_tensor *given)
{
        if (!given)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_forward_params: the tensor for \"%s\" is NULL", path);
        if (!lg__in_context(c, given, "lg_forward_params", path) || !lg__check(given, "lg_forward_params", path))
                return false;
        if (!lg__dtype_float(given->at.dtype))
                return lg__fail(c, LG_ERR_DTYPE,
                                "lg_forward_params: the tensor for \"%s\" is %s; parameters are floats", path,
                                lg__tensor_text(given).s);
        if (!lg__shape_equal(given->at.shape, own->at.shape))
                return lg__fail(c, LG_ERR_SHAPE,
                                "lg_forward_params: the tensor for \"%s\" is %s, but that parameter is %s", path,
                                lg__tensor_text(given).s, lg__tensor_text(own).s);
        return given->storage->device == own->storage->device ||
               lg__fail(c, LG_ERR_DEVICE, "lg_forward_params: the tensor for \"%s\" is %s, but that parameter is %s",
                        path, lg__tensor_text(given).s, lg__tensor_text(own).s);
}

static bool take_part(const char *path, lg__part *p, void *user)
{
        loans *l = user;
        if (p->kind != LG__PARAMETER)
                return true;
        if (l->count < l->given.count) {
                lg_tensor *t = l->given.items[l->count];
                if (!fits(l->c, path, p->tensor, t))
                        return false;
                l->items[l->count] = (loan){p, t};
        }
        l->count++;
        return true;
}

/* Exchanges the tensors of the parts with those in l, updates the parameter lists of m, its ancestors and its
 * descendants, and adds `replaced` to the member of that name of m and its descendants. */
static void exchange(lg_module *m, loans *l, int replaced)
{
        for (int64_t i = 0; i < l->count; i++) {
                lg_tensor *t = l->items[i].part->tensor;
                l->items[i].part->tensor = l->items[i].tensor;
                l->items[i].tensor = t;
        }
        for (lg_module *outer = m->parent; outer; outer = outer->parent)
                lg__module_relist(outer);
        for (lg_module *inner = m; inner; inner = lg__module_next(inner, m)) {
                lg__module_relist(inner);
                inner->replaced += replaced;
        }
}

lg_tensor *lg__forward_params_span(lg_module *m, lg__stretch s, lg_list params, lg_tensor *const *inputs)
{
        char path[LG__PATH];
        lg_ctx *c = lg_module_ctx(m);
        if (!m)
                return lg_forward_list(m, inputs); /* sets the error that m is NULL */
        if (!lg__ok(c))
                return NULL;
        loans l = {.c = c, .given = {params.items ? params.count : 0, params.items}};
        size_t bytes = (size_t)(l.given.count > 0 ? l.given.count : 0) * sizeof *l.items + 1;
        l.items = lg__alloc(c, bytes);
        bool ok = l.items && lg__module_visit(m, path, take_part, &l);
        if (ok && l.count != l.given.count)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "lg_forward_params: %lld tensors for the %lld parameters of a %s",
                              (long long)l.given.count, (long long)l.count, m->type);
        lg_tensor *y = NULL;
        if (ok) {
                m->running++; /* keeps release functions called in the forward from freeing m */
                exchange(m, &l, 1);
                y = lg__forward_span(m, s, inputs);
                exchange(m, &l, -1);
                m->running--;
        }
        lg__free(c, l.items, bytes);
        return y;
}

lg_tensor *lg_forward_params_list(lg_module *m, lg_list params, lg_tensor *const *inputs)
{
        return lg__forward_params_span(m, (lg__stretch){0, 0}, params, inputs);
}
