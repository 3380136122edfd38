/* parametrize.c - parameters that are computed from others: lg_parametrize(), weight norm, spectral norm,
 * orthogonal matrices.
 *
 * The module keeps the part of the name, as a computed one (LG__COMPUTED), so that its forward finds it at its place.
 * Its child "parametrizations" has a child of the name with the originals and the modules that forward.c runs on them.
 */
#include <limits.h>
#include <string.h>
#include "graph/op.h"
#include "nn.h"

static lg__part *parameter_of(lg_module *m, const char *op, const char *name)
{
        lg_ctx *c = lg_module_ctx(m);
        if (!lg__ok(c) || !lg__object_lasts(&m->object, op) || !lg__module_is_whole(m, op))
                return NULL;
        lg__part *p = name ? lg__module_part(m, name, strlen(name), LG__PARAMETER | LG__COMPUTED) : NULL;
        if (!p)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s has no parameter \"%s\"", op, m->type, name ? name : "");
        return m->running || m->held ? lg__fail(c, LG_ERR_STATE, "%s: the %s is running", op, m->type) : p;
}

/* Returns m's child of that name, made with that type if it is missing. */
static lg_module *child_of(lg_module *m, const char *name, const char *type, const char *op)
{
        lg__part *p = lg__module_part(m, name, strlen(name), LG__CHILD);
        if (p)
                return p->child;
        lg_module *child = lg__module_new(m->object.ctx, type, NULL);
        if (!child || lg__module_attach(m, name, child, op))
                return child;
        lg__object_destroy(child);
        return NULL;
}

/* Returns a list of f alone, with an empty part for the original and, unless NULL, the parameter g. */
static lg_module *list_with(const char *original, lg_tensor *g, lg_module *f, const char *op)
{
        lg_module *list = lg__module_new(f->object.ctx, "ParametrizationList", NULL);
        if (!list)
                return NULL;
        const bool ok = lg__module_add_computed(list, original) &&
                        (!g || lg_module_add_parameter(list, "original0", g)) && lg__module_attach(list, "0", f, op);
        return ok ? list : lg__module_give_up(list);
}

/* Lets f compute part p of m from what p was. Returns false with an error; else m owns f. */
static bool parametrize(lg_module *m, lg__part *p, const char *original, lg_tensor *g, lg_module *f, const char *op)
{
        char number[24];
        lg_module *list = lg__parametrizations_of(m, p->name);
        if (list) {
                snprintf(number, sizeof number, "%d", lg_child_count(list));
                return lg__module_attach(list, number, f, op);
        }
        list = list_with(original, g, f, op);
        lg_module *all = list ? child_of(m, "parametrizations", "ModuleDict", op) : NULL;
        if (!all || !lg__module_attach(all, p->name, list, op))
                return list && lg__module_give_up(list);
        list->convolves = m->convolves;
        list->parts->kind = LG__PARAMETER;
        list->parts->tensor = p->tensor;
        p->kind = LG__COMPUTED;
        p->tensor = NULL;
        m->epilogues &= ~(unsigned)LG__EPILOGUE_NORM; /* it reads the part before the forward */
        return true;
}

/* Returns the value that m's forward would read as its part p, in the open scope; NULL with an error. */
static lg_tensor *value_of(lg_module *m, lg__part *p)
{
        lg_tensor *t = p->kind == LG__PARAMETER || !lg__compute_parts(m) ? p->tensor : lg_detach(p->tensor);
        lg__forget_parts(m);
        return t;
}

/* Returns whether f gives a tensor like the value of part p. */
static bool keeps_shape(lg_module *m, lg__part *p, lg_module *f)
{
        lg_ctx *c = m->object.ctx;
        lg_tensor *t = value_of(m, p), *y = t ? lg_forward(f, t) : NULL;
        if (!y)
                return false;
        if (!lg__shape_equal(y->at.shape, t->at.shape))
                return lg__fail(c, LG_ERR_SHAPE, "lg_parametrize: \"%s\" is %s, but %s makes it %s", p->name,
                                lg__tensor_text(t).s, f->type, lg__tensor_text(y).s);
        return y->at.dtype == t->at.dtype ||
               lg__fail(c, LG_ERR_DTYPE, "lg_parametrize: \"%s\" is %s, but %s makes it %s", p->name,
                        lg__tensor_text(t).s, f->type, lg__tensor_text(y).s);
}

bool lg_parametrize(lg_module *m, const char *name, lg_module *f)
{
        lg__part *p = parameter_of(m, "lg_parametrize", name);
        lg_ctx *c = lg_module_ctx(m);
        if (!p)
                return false;
        if (!f)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_parametrize: the module is NULL");
        lg_scope scope = lg_scope_begin(c);
        bool ok = false;
        lg_no_grad(c) ok = scope.id && keeps_shape(m, p, f);
        lg_scope_end(c, scope);
        return ok && parametrize(m, p, "original", NULL, f, "lg_parametrize");
}

bool lg_remove_parametrizations(lg_module *m, const char *name)
{
        const char *op = "lg_remove_parametrizations";
        lg__part *p = parameter_of(m, op, name);
        lg_ctx *c = lg_module_ctx(m);
        if (!p || !lg__unrecorded(c, op))
                return false;
        if (p->kind == LG__PARAMETER)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: \"%s\" of %s has no parametrizations", op, name, m->type);
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = NULL;
        lg_no_grad(c) t = scope.id ? value_of(m, p) : NULL;
        t = t ? lg__clone_values(t, t->storage->device->id, t->at.dtype) : NULL;
        t = t && m->convolves ? lg__laid_for_device(t) : t;
        if (t && lg__leaf_node(t)) {
                p->tensor = lg__tensor_own(t);
                p->kind = LG__PARAMETER;
                lg__part *all = lg__module_part(m, "parametrizations", strlen("parametrizations"), LG__CHILD);
                lg__part *list = lg__module_part(all->child, name, strlen(name), LG__CHILD);
                lg__module_remove(all->child, list);
                if (!all->child->parts)
                        lg__module_remove(m, all);
        }
        lg_scope_end(c, scope);
        return t && p->kind == LG__PARAMETER;
}

/* Returns the dimension that an option gives of m's parameter p, which has no parametrizations; -1 with an error. */
static int dim_of(const lg_module *m, const lg__part *p, int64_t dim, const char *op)
{
        lg_ctx *c = m->object.ctx;
        if (p->kind == LG__PARAMETER)
                return lg__dim(c, op, dim < INT_MIN || dim > INT_MAX ? INT_MAX : (int)dim, p->tensor->at.shape.ndim);
        lg__fail(c, LG_ERR_STATE, "%s: \"%s\" of %s has parametrizations already", op, p->name, m->type);
        return -1;
}

/* ---- weight norm ---- */

#define WHOLE (-1)

/* Returns the 2-norm of v over the dimensions other than dim, or over all if dim is WHOLE, which removes them. */
static lg_tensor *lengths(lg_tensor *v, int dim)
{
        lg_dims dims = {.count = 0};
        for (int i = 0; i < v->at.shape.ndim; i++)
                if (i != dim)
                        dims.dim[dims.count++] = i;
        if (dim != WHOLE && !dims.count) /* each element is a direction */
                return lg_abs(v);
        return dim == WHOLE ? lg_norm(v) : lg_norm(v, .dims = dims, .keep_dim = true);
}

static lg_tensor *forward_weight_norm(lg_module *m, lg_list inputs, void *user)
{
        const int *dim = user;
        lg_tensor *v = inputs.items[0], *g = inputs.items[1];
        (void)m;
        return lg_mul(v, lg_div(g, lengths(v, *dim)));
}

bool lg_weight_norm_with(lg_module *m, const char *name, const lg_weight_norm_options *options)
{
        const char *op = "lg_weight_norm";
        lg_weight_norm_options o;
        lg_ctx *c = lg_module_ctx(m);
        lg__part *p = lg__take(c, op, options, &o, sizeof o) ? parameter_of(m, op, name) : NULL;
        int dim = p ? dim_of(m, p, o.dim, op) : -1;
        if (dim < 0)
                return false;
        dim = o.whole ? WHOLE : dim;
        lg_module *f = lg__module_with(c, "WeightNorm", forward_weight_norm, &dim, sizeof dim);
        lg_scope scope = f ? lg_scope_begin(c) : (lg_scope){0};
        lg_tensor *g = NULL;
        lg_no_grad(c) g = scope.id ? lengths(p->tensor, dim) : NULL;
        const bool ok = g && parametrize(m, p, "original1", g, f, op);
        lg_scope_end(c, scope);
        return ok || lg__object_destroy(f);
}

/* ---- spectral norm ---- */

typedef struct power {
        int dim;
        int64_t iterations;
        double eps;
} power;

/* Returns w as a matrix whose rows are its dimension dim. */
static lg_tensor *matrix_of(lg_tensor *w, int dim)
{
        const lg_shape s = w->at.shape;
        lg_dims order = {.count = s.ndim, .dim = {dim}};
        for (int i = 0, k = 1; i < s.ndim; i++)
                if (i != dim)
                        order.dim[k++] = i;
        return lg_flatten(lg_permute(w, order), .start_dim = 1);
}

/* Improves the buffers u and v by steps of the power method, and returns what they then hold. */
static bool iterate(lg_tensor *w, const power *q, int64_t steps, lg_tensor **u, lg_tensor **v)
{
        lg_tensor *a = lg_detach(w), *newer_u = *u, *newer_v = *v;
        const double eps = q->eps > 0 ? q->eps : LG_ZERO;
        for (int64_t i = 0; i < steps; i++) {
                newer_u = lg_normalize(lg_matmul(a, newer_v), 0, .eps = eps);
                newer_v = lg_normalize(lg_matmul(lg_transpose(a, 0, 1), newer_u), 0, .eps = eps);
        }
        if (steps && (!lg_copy_(*u, newer_u) || !lg_copy_(*v, newer_v)))
                return false;
        *u = newer_u;
        *v = newer_v;
        return newer_v != NULL;
}

static lg_tensor *forward_spectral_norm(lg_module *m, lg_list inputs, void *user)
{
        const power *q = user;
        lg_tensor *w = inputs.items[0];
        if (w->at.shape.ndim == 1)
                return lg_normalize(w, 0, .eps = q->eps > 0 ? q->eps : LG_ZERO);
        lg_tensor *u = lg__module_tensor(m, "_u"), *v = lg__module_tensor(m, "_v"), *a = matrix_of(w, q->dim);
        bool ok = a != NULL;
        lg_no_grad(m->object.ctx) ok = ok && iterate(a, q, m->training ? q->iterations : 0, &u, &v);
        return ok ? lg_div(w, lg_matmul(u, lg_matmul(a, v))) : NULL;
}

/* Adds the buffers of f, random vectors that 15 steps improve. */
static bool add_vectors(lg_module *f, lg_tensor *w, const power *q)
{
        const lg_dtype dtype = w->at.dtype;
        const lg_device device = w->storage->device->id;
        lg_tensor *a = matrix_of(w, q->dim), *t[2];
        const double eps = q->eps > 0 ? q->eps : LG_ZERO;
        for (int i = 0; i < 2; i++) {
                const int64_t size = a ? a->at.shape.size[i] : 0;
                t[i] = lg_normal(f->object.ctx, 0, 1, LG_SHAPE(size), .dtype = dtype, .device = device);
                t[i] = lg_module_add_buffer(f, i ? "_v" : "_u", lg_normalize(t[i], 0, .eps = eps));
        }
        return t[0] && t[1] && iterate(a, q, 15, &t[0], &t[1]);
}

bool lg_spectral_norm_with(lg_module *m, const char *name, const lg_spectral_norm_options *options)
{
        const char *op = "lg_spectral_norm";
        lg_spectral_norm_options o;
        lg_ctx *c = lg_module_ctx(m);
        lg__part *p = lg__take(c, op, options, &o, sizeof o) ? parameter_of(m, op, name) : NULL;
        const bool transposed = p && !strncmp(m->type, "ConvTranspose", strlen("ConvTranspose"));
        power q = {.dim = p ? dim_of(m, p, lg__whole_option(o.dim, transposed), op) : -1,
                   .iterations = lg__whole_option(o.iterations, 1),
                   .eps = lg__option(o.eps, 1e-12)};
        if (q.dim < 0)
                return false;
        if (q.iterations < 1 || !(q.eps >= 0))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld iterations and eps %g; at least 1 and 0", op,
                                (long long)q.iterations, q.eps);
        const lg_random_state state = c->random;
        lg_module *f = lg__module_with(c, "SpectralNorm", forward_spectral_norm, &q, sizeof q);
        lg_scope scope = f ? lg_scope_begin(c) : (lg_scope){0};
        bool ok = scope.id;
        lg_no_grad(c) ok = ok && (p->tensor->at.shape.ndim == 1 || add_vectors(f, p->tensor, &q));
        ok = ok && parametrize(m, p, "original", NULL, f, op);
        lg_scope_end(c, scope);
        if (!ok)
                c->random = state;
        return ok || lg__object_destroy(f);
}

/* ---- orthogonal matrices ---- */

/* Returns the last dimension but `from_end` of t. */
static int64_t side(const lg_tensor *t, int from_end)
{
        return t->at.shape.size[t->at.shape.ndim - 1 - from_end];
}

/* Returns the identity (rows, columns) like t. */
static lg_tensor *identity(const lg_tensor *t, int64_t rows, int64_t columns)
{
        return lg_eye(t->ctx, rows, columns, .dtype = t->at.dtype, .device = t->storage->device->id);
}

/* Returns the first columns of the orthogonal matrix that the map makes of a skew-symmetric one, x - x^T for x padded
 * with zeros. x is tall and lower triangular. */
static lg_tensor *of_skew(lg_tensor *x, bool cayley)
{
        const int64_t n = side(x, 1), k = side(x, 0);
        lg_tensor *square = lg_pad(x, LG_INTS(0, n - k)), *skew = lg_sub(square, lg_transpose(square, -1, -2));
        if (!skew)
                return NULL;
        lg_tensor *one = identity(x, n, n), *half = lg_mul_scalar(skew, 0.5);
        lg_tensor *q = cayley ? lg_solve(lg_sub(one, half), lg_add(one, half)) : lg_matrix_exp(skew);
        return lg_slice(q, -1, 0, k);
}

/* Returns the first columns of the product of the reflectors whose vectors are the columns of x below its diagonal,
 * multiplied by its diagonal, whole numbers: the identity minus v s^-1 v^T, where s is the upper triangle of v^T v with
 * half its diagonal. */
static lg_tensor *of_reflectors(lg_tensor *x)
{
        const int64_t n = side(x, 1), k = side(x, 0);
        lg_tensor *one = identity(x, n, k), *v = lg_add(lg_tril(x, .diagonal = -1), one);
        lg_tensor *vt = v ? lg_transpose(v, -1, -2) : NULL, *products = lg_matmul(vt, v);
        lg_tensor *s =
                lg_add(lg_triu(products, .diagonal = 1), lg_mul_scalar(lg_mul(products, identity(x, k, k)), 0.5));
        lg_tensor *q = lg_sub(one, lg_matmul(v, lg_triangular_solve(s, lg_slice(vt, -1, 0, k), .upper = true)));
        return lg_mul(q, lg_unsqueeze(lg_trunc(lg_detach(lg_diagonal(x, .dim1 = -2, .dim2 = -1))), -2));
}

static lg_tensor *forward_orthogonal(lg_module *m, lg_list inputs, void *user)
{
        lg_orthogonal_map map = *(const lg_orthogonal_map *)user;
        lg_tensor *x = inputs.items[0], *base = lg__module_tensor(m, "base");
        const bool wide = side(x, 1) < side(x, 0);
        if (map == LG_ORTHOGONAL_AUTO)
                map = side(x, 1) == side(x, 0) ? LG_ORTHOGONAL_MATRIX_EXP : LG_ORTHOGONAL_HOUSEHOLDER;
        x = lg_tril(wide ? lg_transpose(x, -1, -2) : x);
        lg_tensor *q = !x                                 ? NULL
                       : map == LG_ORTHOGONAL_HOUSEHOLDER ? of_reflectors(x)
                                                          : of_skew(x, map == LG_ORTHOGONAL_CAYLEY);
        q = lg_matmul(base, q);
        return wide ? lg_transpose(q, -1, -2) : q;
}

/* Returns a square orthogonal matrix: its first columns are those of w, or of its transpose if w is wide, made
 * orthonormal by a QR factorisation with a positive diagonal; the others are random. */
static lg_tensor *base_of(lg_tensor *w)
{
        lg_tensor *tall = side(w, 1) < side(w, 0) ? lg_transpose(w, -1, -2) : w, *q, *r;
        lg_shape rest = tall ? tall->at.shape : w->at.shape;
        rest.size[rest.ndim - 1] = tall ? side(tall, 1) - side(tall, 0) : 0;
        lg_tensor *random = lg_normal(w->ctx, 0, 1, rest, .dtype = w->at.dtype, .device = w->storage->device->id);
        if (!lg_qr(lg_cat(LG_LIST(lg_detach(tall), random), -1), &q, &r))
                return NULL;
        return lg_mul(q, lg_unsqueeze(lg_sign(lg_diagonal(r, .dim1 = -2, .dim2 = -1)), -2));
}

bool lg_orthogonal_with(lg_module *m, const char *name, const lg_orthogonal_options *options)
{
        const char *op = "lg_orthogonal";
        lg_orthogonal_options o;
        lg_ctx *c = lg_module_ctx(m);
        lg__part *p = lg__take(c, op, options, &o, sizeof o) ? parameter_of(m, op, name) : NULL;
        if (!p || dim_of(m, p, 0, op) < 0)
                return false;
        if (o.map < LG_ORTHOGONAL_AUTO || o.map > LG_ORTHOGONAL_HOUSEHOLDER)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: there is no map %d", op, (int)o.map);
        lg_tensor *w = p->tensor;
        if (w->at.shape.ndim < 2)
                return lg__fail(c, LG_ERR_SHAPE, "%s: \"%s\" is %s; it has two dimensions at least", op, name,
                                lg__tensor_text(w).s);
        const lg_random_state state = c->random;
        lg_module *f = lg__module_with(c, "Orthogonal", forward_orthogonal, &o.map, sizeof o.map);
        lg_scope scope = f ? lg_scope_begin(c) : (lg_scope){0};
        bool ok = false;
        lg_no_grad(c)
        {
                lg_tensor *base = scope.id ? base_of(w) : NULL;
                lg_tensor *start = base ? lg_neg(identity(w, side(w, 1), side(w, 0))) : NULL;
                ok = start && lg_module_add_buffer(f, "base", base) && parametrize(m, p, "original", NULL, f, op);
                f = ok ? NULL : f;
                ok = ok && lg_copy_(w, start);
        }
        lg_scope_end(c, scope);
        if (!ok)
                c->random = state;
        return ok || (f && lg__object_destroy(f));
}
