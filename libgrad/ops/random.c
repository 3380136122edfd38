/* random.c - new tensors of random numbers.
 *
 * Each call uses as many blocks of the context's random generator as its elements need. The generator's counter is
 * advanced only if the call succeeds.
 */
#include <float.h>
#include <math.h>
#include "../kernels/philox.h"
#include "core/tape.h"
#include "graph/op.h"

static lg_tensor *random_tensor(lg_ctx *c, const char *op, lg_random_kind kind, double a, double b, lg_shape shape,
                                const lg_create_options *o)
{
        if (o->dtype && lg_dtype_size(o->dtype) && !lg__dtype_float(o->dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: dtype %s; random tensors are floats", op,
                                lg_dtype_name(o->dtype));
        if (!isfinite(a) || !isfinite(b))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the parameters %g and %g are not finite", op, a, b);
        lg_tensor *t = lg__create(c, op, shape, o);
        if (!t)
                return NULL;
        int64_t n = lg__shape_numel(shape), each = t->at.dtype == LG_F64 ? 2 : 4;
        lg_random_args r = {n,   t->at.dtype, lg__data(t), kind, a, b, c->random.seed + c->rank_seed, c->random.counter,
                            NULL};
        r.moved = n ? lg__tape_moved(c) : NULL;
        t = lg__created(t, n == 0 || LG__RUN(t->storage->device, op, random, &r), o->requires_grad);
        if (t)
                c->random.counter += (uint64_t)((n + each - 1) / each);
        return t;
}

static lg_tensor *uniform(lg_ctx *c, const char *op, double low, double high, lg_shape shape,
                          const lg_create_options *o)
{
        if (low > high)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: low is %g, above high, %g", op, low, high);
        lg_dtype d = o->dtype ? o->dtype : LG_F32;
        double most = d == LG_F64 ? DBL_MAX : d == LG_F16 ? 65504 : d == LG_BF16 ? 0xFFp120 : (double)FLT_MAX;
        if (isfinite(low) && isfinite(high) && !(fmax(-low, high) <= most && high - low <= DBL_MAX))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: low %g and high %g are too far apart for %s", op, low, high,
                                lg_dtype_name(d));
        return random_tensor(c, op, LG_RANDOM_UNIFORM, low, high, shape, o);
}

static lg_tensor *normal(lg_ctx *c, const char *op, double mean, double std, lg_shape shape, const lg_create_options *o)
{
        if (std < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: std is %g, below 0", op, std);
        return random_tensor(c, op, LG_RANDOM_NORMAL, mean, std, shape, o);
}

lg_tensor *lg_uniform_with(lg_ctx *c, double low, double high, lg_shape shape, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take(c, "lg_uniform", options, &o, sizeof o) ? uniform(c, "lg_uniform", low, high, shape, &o) : NULL;
}

lg_tensor *lg_normal_with(lg_ctx *c, double mean, double std, lg_shape shape, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take(c, "lg_normal", options, &o, sizeof o) ? normal(c, "lg_normal", mean, std, shape, &o) : NULL;
}

lg_tensor *lg_uniform_like_with(lg_tensor *x, double low, double high, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take_like(x, "lg_uniform_like", options, &o)
                       ? uniform(x->ctx, "lg_uniform_like", low, high, x->at.shape, &o)
                       : NULL;
}

lg_tensor *lg_normal_like_with(lg_tensor *x, double mean, double std, const lg_create_options *options)
{
        lg_create_options o;
        return lg__take_like(x, "lg_normal_like", options, &o)
                       ? normal(x->ctx, "lg_normal_like", mean, std, x->at.shape, &o)
                       : NULL;
}

/* ---- integers ---- */

/* Checks that the dtype holds all integers from low to last, up to rounding of floats; sets an error if not. */
static bool holds(lg_ctx *c, lg_dtype dtype, int64_t low, int64_t last)
{
        const int64_t least = dtype == LG_F16 ? -65504 : 0, most = dtype == LG_F16 ? 65504 : 1;
        if (dtype == LG_I32 || dtype == LG_U8)
                return lg__dtype_holds(c, "lg_randint", dtype, (double)low) &&
                       lg__dtype_holds(c, "lg_randint", dtype, (double)last);
        if ((dtype != LG_F16 && dtype != LG_BOOL) || (low >= least && last <= most))
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "lg_randint: %lld ... %lld are out of the range of %s, %lld to %lld",
                        (long long)low, (long long)last, lg_dtype_name(dtype), (long long)least, (long long)most);
}

/* Returns a 0-d i64 tensor; lg_full() takes a double, which cannot represent every i64. */
static lg_tensor *whole_scalar(lg_ctx *c, lg_device device, int64_t value)
{
        lg_tensor *t = lg__tensor_empty(c, device, LG_I64, LG_SHAPE_0D);
        if (!t)
                return NULL;
        lg_fill_args a = {.dtype = LG_I64, .out = lg__data(t), .integer = value};
        return LG__RUN(t->storage->device, "lg_randint", fill, &a) ? t : NULL;
}

/* Returns low plus uniform random numbers in [0, count), truncated to integers. count is at most 2^53, so that
 * rounding never gives count itself. */
static lg_tensor *whole_numbers(lg_ctx *c, int64_t low, int64_t count, lg_shape shape, const lg_create_options *o)
{
        lg_create_options wide = {.dtype = LG_F64, .device = o->device};
        lg_tensor *u = random_tensor(c, "lg_randint", LG_RANDOM_UNIFORM, 0, (double)count, shape, &wide);
        lg_tensor *y = u ? lg_cast(u, LG_I64) : NULL;
        return y ? lg_cast(low ? lg_add(y, whole_scalar(c, o->device, low)) : y, o->dtype) : NULL;
}

lg_tensor *lg_randint_with(lg_ctx *c, int64_t low, int64_t high, lg_shape shape, const lg_create_options *options)
{
        lg_create_options o;
        int64_t count;
        if (!lg__take(c, "lg_randint", options, &o, sizeof o))
                return NULL;
        if (low >= high)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_randint: low is %lld, not below high, %lld", (long long)low,
                                (long long)high);
        if (__builtin_sub_overflow(high, low, &count) || count > (int64_t)1 << 53)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_randint: from %lld to %lld are more than 2^53 numbers",
                                (long long)low, (long long)high);
        o.dtype = o.dtype ? o.dtype : LG_I64;
        if (!lg__may_create(c, "lg_randint", shape, &o) || !holds(c, o.dtype, low, high - 1))
                return NULL;
        lg_random_state was = c->random;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = lg_escape(whole_numbers(c, low, count, shape, &o));
        lg_scope_end(c, scope);
        t = t ? lg__created(t, true, o.requires_grad) : NULL;
        if (!t)
                c->random = was;
        return t;
}

/* ---- permutations ---- */

/* Fills `order` with a Fisher-Yates shuffle on the host, which uses a block of the generator for every two elements. */
static void shuffle(int64_t *order, int64_t n, lg_random_state state)
{
        for (int64_t i = 0; i < n; i++)
                order[i] = i;
        for (int64_t i = n - 1; i > 0; i--) {
                lg_philox_words b = lg_philox_block(state.seed, state.counter + (uint64_t)i / 2);
                uint64_t r = (uint64_t)b.w[i % 2 * 2] << 32 | b.w[i % 2 * 2 + 1];
                int64_t j = (int64_t)(r % (uint64_t)(i + 1));
                int64_t swap = order[i];
                order[i] = order[j];
                order[j] = swap;
        }
}

lg_tensor *lg_permutation_with(lg_ctx *c, int64_t n, const lg_create_options *options)
{
        lg_create_options o;
        if (!lg__take(c, "lg_permutation", options, &o, sizeof o) || !lg__unrecorded(c, "lg_permutation"))
                return NULL;
        if (n < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_permutation: n is %lld, below 0", (long long)n);
        if (n > INT32_MAX)
                return lg__fail(c, LG_ERR_SHAPE, "lg_permutation: n is %lld; at most 2^31 - 1 are possible",
                                (long long)n);
        if (o.dtype && o.dtype != LG_I64)
                return lg__fail(c, LG_ERR_DTYPE, "lg_permutation: dtype %s; it is i64", lg_dtype_name(o.dtype));
        size_t bytes = (size_t)n * sizeof(int64_t);
        int64_t *order = lg__alloc(c, bytes + 1);
        if (!order)
                return NULL;
        shuffle(order, n, c->random);
        lg_tensor *t = lg_from_with(c, order, LG_I64, LG_SHAPE(n), &o);
        lg__free(c, order, bytes + 1);
        if (t)
                c->random.counter += (uint64_t)(n + 1) / 2;
        return t;
}
