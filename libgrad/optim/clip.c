/* clip.c - clipping of gradients: by their total norm, by value. */
#include "core/observer.h"
#include "core/tape.h"
#include "graph/op.h"
#include "optim.h"

/* Returns the context of the first parameter that is not NULL; NULL: none is. */
static lg_ctx *ctx_of(lg_list params)
{
        lg_ctx *c = NULL;
        for (int64_t i = 0; params.items && i < params.count && !c; i++)
                c = lg__ctx_of(params.items[i]);
        return c;
}

/* Lists the gradients of the parameters in *ret, an array for params.count pointers that the caller frees. */
static bool gradients(lg_ctx *c, const char *op, lg_list params, lg_tensor ***ret, int64_t *ret_count)
{
        int64_t n = 0;
        *ret_count = 0;
        if (!lg__ok(c))
                return false;
        lg_tensor **list = lg__alloc(c, (size_t)params.count * sizeof *list);
        for (int64_t i = 0; list && i < params.count; i++) {
                lg_tensor *p = params.items[i];
                if (!p)
                        lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is NULL", op, (long long)i);
                else if (p->ctx != c)
                        lg__fail(c, LG_ERR_ARGUMENT, "%s: parameter %lld is of another context", op, (long long)i);
                else if (lg__check(p, op, "a parameter") && lg_grad_of(p))
                        list[n++] = lg_grad_of(p);
                if (n > 1 && list[n - 1]->storage->device != list[0]->storage->device)
                        lg__fail(c, LG_ERR_DEVICE, "%s: one gradient is on %s and another on %s; clip them by device",
                                 op, lg_device_name(list[0]->storage->device->id),
                                 lg_device_name(list[n - 1]->storage->device->id));
        }
        if (!list || c->error) {
                lg__free(c, list, (size_t)params.count * sizeof *list);
                return false;
        }
        *ret = list;
        *ret_count = n;
        return true;
}

/* Sets g = f(g, other), unrecorded; f: pointwise kernel `id`. Elements that share memory are changed once. */
static bool change(int id, lg_tensor *g, lg_tensor *other, double p0, double p1, const char *op)
{
        if (other && other->at.dtype != g->at.dtype && !(other = lg_cast(other, g->at.dtype)))
                return false;
        lg_tensor *to = lg__layout_overlaps(&g->at) ? lg__clone_values(g, g->storage->device->id, g->at.dtype) : g;
        bool ok = to && (lg__shape_numel(g->at.shape) == 0 ||
                         lg__pointwise_run(id, to, (lg_tensor *[LG_PW_INPUTS]){to, other}, p0, p1, op));
        ok = ok && (to == g || lg__copy_values(g, to, op));
        if (to != g)
                lg__tensor_release(to);
        lg__storage_changed(g->storage);
        return ok;
}

/* Returns the p-norm of the gradients' p-norms, which is that of all elements. NULL: an error. */
static lg_tensor *norm_of_norms(lg_ctx *c, lg_tensor *const *grads, int64_t n, double p)
{
        size_t bytes = (size_t)n * sizeof(lg_tensor *);
        lg_tensor **norms = lg__alloc(c, bytes), *total = NULL;
        bool ok = norms != NULL;
        for (int64_t i = 0; i < n && ok; i++) {
                lg_tensor *norm = lg_norm(grads[i], .p = p);
                ok = norm && (norms[i] = lg_reshape(norm, LG_SHAPE(1)));
        }
        if (ok)
                total = lg_norm(lg_cat((lg_list){n, norms}, 0), .p = p);
        lg__free(c, norms, bytes);
        return total;
}

/* Returns whether g is a float tensor without gaps and overlaps, as kernels over many tensors require. */
static bool dense(const lg_tensor *g)
{
        return lg__dtype_float(g->at.dtype) && lg__layout_is_dense(&g->at);
}

/* Returns the p-norm of all gradients, 0-d: in f64 by one kernel if p is 2 and all are dense. NULL: an error. */
static lg_tensor *total_norm(lg_ctx *c, lg_tensor *const *grads, int64_t n, double p, lg_update *updates)
{
        bool plain = p == 2;
        for (int64_t i = 0; i < n && plain; i++)
                plain = dense(grads[i]);
        if (!plain)
                return norm_of_norms(c, grads, n, p);
        lg__device *d = grads[0]->storage->device;
        lg_tensor *sum = lg__tensor_empty(c, d->id, LG_F64, LG_SHAPE_0D);
        if (!sum)
                return NULL;
        for (int64_t i = 0; i < n; i++)
                updates[i] = lg__update_in_place(grads[i]);
        lg_norms_args a = {n, updates, lg__data(sum)};
        return LG__RUN(d, "lg_clip_grad_norm", norms, &a) ? lg_sqrt(sum) : NULL;
}

/* Multiplies all gradients by min(1, max_norm / (norm + 1e-6)): the dense ones by one kernel. */
static bool scale_all(lg_tensor *const *grads, int64_t n, lg_tensor *norm, double max_norm, lg_update *updates)
{
        const char *op = "lg_clip_grad_norm";
        lg_tensor *factor = lg_minimum_scalar(lg_rdiv_scalar(lg_add_scalar(norm, 1e-6), max_norm), 1);
        lg_tensor *wide = factor ? lg_cast(factor, LG_F64) : NULL;
        lg_scale_args a = {0, updates, wide ? lg__data(wide) : NULL};
        bool ok = wide != NULL;
        for (int64_t i = 0; i < n && ok; i++) {
                if (!dense(grads[i])) {
                        ok = change(LG_PW_mul, grads[i], factor, 0, 0, op);
                        continue;
                }
                updates[a.count++] = lg__update_in_place(grads[i]);
                lg__storage_changed(grads[i]->storage);
        }
        return ok && (a.count == 0 || LG__RUN(grads[0]->storage->device, op, scale, &a));
}

/* Returns whether the norm is finite; if not, sets an error. Waits for the device. */
static bool is_finite(lg_tensor *norm, const char *op)
{
        const double value = lg_item(norm);
        return !norm->ctx->error &&
               (isfinite(value) ||
                lg__fail(norm->ctx, LG_ERR_STATE, "%s: the norm of the gradients is %g; they are left as they are", op,
                         value));
}

bool lg_clip_grad_norm_with(lg_list_in params, double max_norm, const lg_clip_options *options)
{
        const char *op = "lg_clip_grad_norm";
        lg_ctx *c = ctx_of(params);
        lg_clip_options o;
        lg_tensor **grads = NULL, *total = NULL;
        int64_t n;
        if (!lg__take(c, op, options, &o, sizeof o) || !gradients(c, op, params, &grads, &n))
                return false;
        const double p = lg__option(o.p, 2);
        lg__frame span;
        lg__span_begin(c, &span, "clip_grad_norm", NULL, NULL);
        bool ok = true, recording = lg_set_grad_mode(c, false);
        lg_scope scope = lg_scope_begin(c);
        if (!(max_norm >= 0) || !(p > 0))
                ok = lg__fail(c, LG_ERR_ARGUMENT, "%s: max_norm %g must be 0 or more, p %g above 0", op, max_norm, p);
        size_t bytes = (size_t)n * sizeof(lg_update);
        lg_update *updates = ok && n ? lg__alloc(c, bytes) : NULL;
        if (updates) {
                ok = (total = total_norm(c, grads, n, p, updates)) != NULL &&
                     (!o.error_if_nonfinite || is_finite(total, op)) && scale_all(grads, n, total, max_norm, updates) &&
                     (total = lg_cast(total, grads[0]->at.dtype));
                lg__free(c, updates, bytes);
        } else if (ok) {
                ok = n == 0 && (total = lg_zeros(c, LG_SHAPE_0D)) != NULL;
        }
        if (ok && o.norm)
                *o.norm = lg_escape(total);
        lg__free(c, grads, (size_t)params.count * sizeof *grads);
        lg_scope_end(c, scope);
        lg_set_grad_mode(c, recording);
        lg__span_end(c, &span);
        return ok && !c->error;
}

bool lg_clip_grad_value(lg_list_in params, double value)
{
        const char *op = "lg_clip_grad_value";
        lg_ctx *c = ctx_of(params);
        lg_tensor **grads = NULL;
        int64_t n;
        if (!gradients(c, op, params, &grads, &n))
                return false;
        lg__frame span;
        lg__span_begin(c, &span, "clip_grad_value", NULL, NULL);
        bool ok = value >= 0;
        if (!ok)
                lg__fail(c, LG_ERR_ARGUMENT, "%s: value %g must be 0 or more", op, value);
        for (int64_t i = 0; i < n && ok; i++)
                ok = change(LG_PW_clamp, grads[i], NULL, -value, value, op);
        lg__free(c, grads, (size_t)params.count * sizeof *grads);
        lg__span_end(c, &span);
        return ok;
}
