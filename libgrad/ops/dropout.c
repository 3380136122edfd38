/* dropout.c - drops elements or channels at random: y = x m, where m is 0 or 1 / (1 - p); dx = g m. Alpha dropout is
 * made of the same m.
 *
 * The mask m is not stored: its random numbers are drawn again from the seed and offset in the attributes.
 */
#include <math.h>
#include <string.h>
#include "core/tape.h"
#include "dropout.h"

#define DROPOUT_FIELDS(FIELD) FIELD(f64, p, 0) FIELD(u64, seed, 0) FIELD(u64, offset, 0)
LG__ATTRIBUTES(dropout, DROPOUT_FIELDS)

static bool infer(lg__call *call)
{
        lg__keep_layout(&call->out_at[0], &call->in[0]->at);
        return true;
}

static bool forward(lg__call *call)
{
        const dropout_attributes *a = call->attributes;
        const lg_tensor *x = call->in[0], *y = call->out[0];
        lg_dropout_args k = {.ndim = x->at.shape.ndim,
                             .dtype = x->at.dtype,
                             .x = lg__data(x),
                             .y = lg__data(y),
                             .p = a->p,
                             .seed = a->seed,
                             .offset = a->offset};
        memcpy(k.shape, x->at.shape.size, sizeof k.shape);
        memcpy(k.x_strides, x->at.strides, sizeof k.x_strides);
        memcpy(k.y_strides, y->at.strides, sizeof k.y_strides);
        if (lg__shape_numel(x->at.shape) == 0)
                return true;
        k.moved = lg__tape_moved(call->ctx);
        return LG__RUN(call->device, "dropout", dropout, &k);
}

static bool vjp(lg__vjp *v)
{
        return (v->grad_in[0] = lg__apply1(v->op, v->grad[0], v->attributes)) != NULL;
}

LG__DEFINE(dropout, LG__OPERANDS({"x", LG__FLOAT}), LG__RESULTS({"y"}), LG__HAS(dropout), .infer = infer,
           .forward = forward, .vjp = vjp)

lg_tensor *lg__dropout(lg_tensor *x, double p, uint64_t seed, uint64_t offset)
{
        return lg__apply1(LG__OP(dropout), x, &(dropout_attributes){p, seed, offset});
}

/* ---- public functions ---- */

typedef struct request {
        double p;
        const lg_dropout_options *options;
} request;

/* Returns ones of x's shape or, by channel, of shape (N, C, 1, ...), in f64 if x is f64, else in f32. */
static lg_tensor *ones_of(const lg_tensor *x, bool by_channel)
{
        lg_shape s = x->at.shape;
        for (int i = 2; by_channel && i < s.ndim; i++)
                s.size[i] = 1;
        return lg_ones(x->ctx, s, .dtype = x->at.dtype == LG_F64 ? LG_F64 : LG_F32, .device = x->storage->device->id);
}

#define SELU_LIMIT 1.7580993408473766 /* the product of SELU's scale and alpha: SELU(x) is above its negative */

/* Returns x, dropped to SELU's limit, scaled and shifted so that mean 0 and variance 1 stay (Klambauer et al., 2017).
 */
static lg_tensor *alpha_dropped(lg_tensor *x, lg_tensor *m, double p)
{
        const double a = 1 / sqrt((SELU_LIMIT * SELU_LIMIT * p + 1) * (1 - p)), full = SELU_LIMIT * a * (1 - p);
        lg_tensor *shift = lg_sub_scalar(lg_mul_scalar(m, full), full);
        return lg_add(lg_mul(lg__widened(x), lg_mul_scalar(m, a * (1 - p))), shift);
}

/* Uses one block of the random generator for every four numbers; advances the generator only if the call succeeds. */
static lg_tensor *compose(const lg__call *call)
{
        const request *r = call->attributes;
        const char *op = call->op->name;
        const bool alpha = call->op == LG__OP(alpha_dropout) || call->op == LG__OP(feature_alpha_dropout);
        const bool by_channel = call->op == LG__OP(feature_dropout) || call->op == LG__OP(feature_alpha_dropout);
        lg_random_state *random = &call->ctx->random;
        lg_tensor *x = call->in[0];
        lg_dropout_options o;
        if (!lg__take(call->ctx, op, r->options, &o, sizeof o))
                return NULL;
        if (!(r->p >= 0 && r->p <= 1))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: p is %g, not in [0, 1]", op, r->p);
        if (by_channel && x->at.shape.ndim < 2)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it is (N, C, ...)", op, lg__tensor_text(x).s);
        if (!o.training || r->p == 0)
                return x;
        if (alpha && r->p == 1)
                return lg_mul_scalar(x, 0);
        lg_tensor *from = by_channel || alpha ? ones_of(x, by_channel) : x;
        lg_tensor *y = from ? lg__dropout(from, r->p, random->seed + call->ctx->rank_seed, random->counter) : NULL;
        if (by_channel || alpha)
                y = lg_cast(alpha ? alpha_dropped(x, y, r->p) : lg_mul(x, y), x->at.dtype);
        if (y)
                random->counter += (uint64_t)(lg__shape_numel(from->at.shape) + 3) / 4;
        return y;
}

static const lg__op composite = {.name = "dropout", .compose = compose, LG__OPERANDS({"x", LG__FLOAT})};

lg_tensor *lg_dropout_with(lg_tensor *x, double p, const lg_dropout_options *options)
{
        return lg__apply1(&composite, x, &(request){p, options});
}

#define DROPOUT(of)                                                                                                    \
        LG__DEFINE(of, .compose = compose, LG__OPERANDS({"x", LG__FLOAT}))                                             \
        lg_tensor *lg_##of##_with(lg_tensor *x, double p, const lg_dropout_options *options)                           \
        {                                                                                                              \
                return LG__APPLY(of, (&(request){p, options}), x);                                                     \
        }
DROPOUT(feature_dropout)
DROPOUT(alpha_dropout)
DROPOUT(feature_alpha_dropout)
