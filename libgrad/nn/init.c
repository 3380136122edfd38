/* init.c - initial values of parameters (lg_init_...) and lg_freeze(). */
#include <math.h>
#include "nn.h"

/* State of one lg_init_ call: the scope of the new values, and the random state and grad mode before the call. */
typedef struct fill {
        lg_ctx *c;
        lg_scope scope;
        lg_random_state random;
        bool recording;
} fill;

/* Checks t, opens the scope and turns recording off. */
static bool begin(fill *f, const char *op, const lg_tensor *t)
{
        if (!lg__check(t, op, "t"))
                return false;
        *f = (fill){.c = t->ctx, .random = t->ctx->random};
        if (!lg__dtype_float(t->at.dtype))
                return lg__fail(f->c, LG_ERR_DTYPE, "%s: t is %s, not of a float dtype", op, lg__tensor_text(t).s);
        f->scope = lg_scope_begin(f->c);
        if (!f->scope.id)
                return false;
        f->recording = lg_set_grad_mode(f->c, false);
        return true;
}

/* Copies `values` (NULL: drawing failed) to t, and ends the scope. After a failure restores the random state. */
static bool end(fill *f, lg_tensor *t, lg_tensor *values)
{
        bool ok = values && lg_copy_(t, values);
        lg_set_grad_mode(f->c, f->recording);
        lg_scope_end(f->c, f->scope);
        if (!ok)
                f->c->random = f->random;
        return ok;
}

/* Draw random tensors of t's shape, dtype and device. */
static lg_tensor *uniform(const lg_tensor *t, double low, double high)
{
        return lg_uniform(t->ctx, low, high, t->at.shape, .dtype = t->at.dtype, .device = t->storage->device->id);
}

static lg_tensor *normal(const lg_tensor *t, double mean, double std)
{
        return lg_normal(t->ctx, mean, std, t->at.shape, .dtype = t->at.dtype, .device = t->storage->device->id);
}

bool lg_init_constant(lg_tensor *t, double value)
{
        fill f;
        return begin(&f, "lg_init_constant", t) &&
               end(&f, t, lg_scalar(f.c, value, .dtype = t->at.dtype, .device = t->storage->device->id));
}

bool lg_init_uniform(lg_tensor *t, double low, double high)
{
        fill f;
        return begin(&f, "lg_init_uniform", t) && end(&f, t, uniform(t, low, high));
}

bool lg_init_normal(lg_tensor *t, double mean, double std)
{
        fill f;
        return begin(&f, "lg_init_normal", t) && end(&f, t, normal(t, mean, std));
}

/* ---- truncated normal ---- */

/* Redraws values outside [low, high] 64 times and clamps what is then still outside: a negligible share, because the
 * interval holds values within 2 std of the mean. No value is read by the host, which therefore waits for no device. */
bool lg_init_trunc_normal(lg_tensor *t, double mean, double std, double low, double high)
{
        enum { rounds = 64 };
        fill f;
        if (!begin(&f, "lg_init_trunc_normal", t))
                return false;
        bool good = std > 0 && low < high && low <= mean + 2 * std && high >= mean - 2 * std;
        lg_tensor *x = good ? normal(t, mean, std) : NULL;
        if (!good)
                lg__fail(f.c, LG_ERR_ARGUMENT,
                         "lg_init_trunc_normal: [%g, %g] must hold values within 2 std of the mean, %g +- %g", low,
                         high, mean, std);
        for (int i = 0; i < rounds && x; i++) {
                lg_tensor *inside = lg_mul(lg_ge_scalar(x, low), lg_le_scalar(x, high));
                lg_tensor *again = normal(t, mean, std), *was = x;
                x = lg_where(inside, was, again);
                lg__tensor_release(inside);
                lg__tensor_release(again);
                lg__tensor_release(was);
        }
        return end(&f, t, x ? lg_clamp(x, low, high) : NULL);
}

/* ---- Xavier and Kaiming, by fan-in and fan-out ---- */

/* Copies the options (`size` bytes) to ret and computes the fan-in and fan-out of t. Returns false with an error if t
 * has fewer than two dimensions. */
static bool take_fans(const char *op, const lg_tensor *t, const void *options, void *ret, size_t size, double *ret_in,
                      double *ret_out)
{
        if (!lg__take(lg__ctx_of(t), op, options, ret, size) || !lg__check(t, op, "t"))
                return false;
        lg_shape s = t->at.shape;
        double spaces = 1;
        if (s.ndim < 2)
                return lg__fail(t->ctx, LG_ERR_SHAPE, "%s: t is %s; fans are of two dimensions or more", op,
                                lg__tensor_text(t).s);
        for (int i = 2; i < s.ndim; i++)
                spaces *= (double)s.size[i];
        *ret_in = (double)s.size[1] * spaces;
        *ret_out = (double)s.size[0] * spaces;
        return true;
}

static bool of_variance(lg_tensor *t, double variance, bool normally)
{
        if (!isfinite(variance)) /* the fan is 0, so t is empty */
                variance = 0;
        return normally ? lg_init_normal(t, 0, sqrt(variance))
                        : lg_init_uniform(t, -sqrt(3 * variance), sqrt(3 * variance));
}

static bool xavier(const char *op, lg_tensor *t, const lg_init_xavier_options *options, bool normally)
{
        lg_init_xavier_options o;
        double in, out;
        if (!take_fans(op, t, options, &o, sizeof o, &in, &out))
                return false;
        const double gain = lg__option(o.gain, 1);
        return of_variance(t, 2 * gain * gain / (in + out), normally);
}

bool lg_init_xavier_uniform_with(lg_tensor *t, const lg_init_xavier_options *options)
{
        return xavier("lg_init_xavier_uniform", t, options, false);
}

bool lg_init_xavier_normal_with(lg_tensor *t, const lg_init_xavier_options *options)
{
        return xavier("lg_init_xavier_normal", t, options, true);
}

static bool kaiming(const char *op, lg_tensor *t, const lg_init_kaiming_options *options, bool normally)
{
        lg_init_kaiming_options o;
        double in, out;
        if (!take_fans(op, t, options, &o, sizeof o, &in, &out))
                return false;
        const double slope = lg__option(o.slope, 0), gain = lg__option(o.gain, sqrt(2 / (1 + slope * slope)));
        return of_variance(t, gain * gain / (o.fan_out ? out : in), normally);
}

bool lg_init_kaiming_uniform_with(lg_tensor *t, const lg_init_kaiming_options *options)
{
        return kaiming("lg_init_kaiming_uniform", t, options, false);
}

bool lg_init_kaiming_normal_with(lg_tensor *t, const lg_init_kaiming_options *options)
{
        return kaiming("lg_init_kaiming_normal", t, options, true);
}

/* ---- orthogonal ---- */

/* Makes the rows of a, a normal random matrix with rows <= columns, orthonormal by the Gram-Schmidt process with each
 * projection done twice, which suffices (Giraud et al. 2005). The triangular factor has a positive diagonal, so the
 * result is uniformly distributed over matrices with orthonormal rows. */
static bool orthonormal_rows(lg_tensor *a, int64_t rows)
{
        for (int64_t i = 0; i < rows; i++) {
                lg_scope scope = lg_scope_begin(a->ctx);
                lg_tensor *v = lg_slice(a, 0, i, i + 1), *before = lg_slice(a, 0, 0, i);
                bool ok = scope.id != 0;
                for (int twice = 0; twice < 2 && ok && i > 0; twice++)
                        ok = lg_sub_(v, lg_matmul(lg_matmul(v, lg_transpose(before, 0, 1)), before));
                ok = ok && lg_div_(v, lg_sqrt(lg_sum(lg_square(v))));
                lg_scope_end(a->ctx, scope);
                if (!ok)
                        return false;
        }
        return true;
}

bool lg_init_orthogonal_with(lg_tensor *t, const lg_init_orthogonal_options *options)
{
        const char *op = "lg_init_orthogonal";
        lg_init_orthogonal_options o;
        double in, out;
        fill f;
        if (!take_fans(op, t, options, &o, sizeof o, &in, &out) || !begin(&f, op, t))
                return false;
        const double gain = lg__option(o.gain, 1);
        int64_t rows = t->at.shape.size[0], columns = rows ? lg__shape_numel(t->at.shape) / rows : 0;
        bool wide = rows <= columns;
        lg_shape s = wide ? LG_SHAPE(rows, columns) : LG_SHAPE(columns, rows);
        lg_tensor *a = lg_normal(f.c, 0, 1, s, .dtype = LG_F64, .device = t->storage->device->id);
        bool ok = a && (!columns || orthonormal_rows(a, wide ? rows : columns));
        lg_tensor *q = !ok ? NULL : lg_mul_scalar(wide ? a : lg_transpose(a, 0, 1), gain);
        return end(&f, t, q ? lg_reshape(q, t->at.shape) : NULL);
}

bool lg_freeze(lg_module *m, bool on)
{
        lg_ctx *c = lg_module_ctx(m);
        if (!lg__ok(c) || !lg__object_lasts(&m->object, "lg_freeze"))
                return false;
        lg_list p = lg_parameters(m);
        for (int64_t i = 0; i < p.count; i++)
                if (!lg_set_requires_grad(p.items[i], !on))
                        return false;
        return !c->error;
}
