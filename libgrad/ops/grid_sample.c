/* grid_sample.c - reads images and volumes at given points; grids of affine maps.
 *
 * A point becomes taps: an index among the elements of a plane and a weight for each. The op `sample` adds up the taps,
 * y[c][p] = sum over t of weight[t][p] x[c][index[t][p]]. It is linear in x and in the weights, and so are its two
 * derivatives, which are ops of their own: dx[c][index[t][p]] += weight[t][p] g[c][p], and dweight[t][p] = sum over c
 * of g[c][p] x[c][index[t][p]]. Indices and weights are computed by other ops, through which the grid gets its
 * gradient.
 */
#include "graph/op.h"

#define SIDES 3

/* ---- sample: x (N, C, S), weight and index (N, T, P), y (N, C, P); an index outside of x does not count ---- */

#define SAMPLE_FIELDS(FIELD) FIELD(i64, size, 0)
LG__ATTRIBUTES(sample, SAMPLE_FIELDS)

static bool infer_sample(lg__call *call)
{
        const lg_shape *x = &call->in[0]->at.shape, *index = &call->in[2]->at.shape;
        lg__layout *y = &call->out_at[0];
        y->shape = LG_SHAPE(x->size[0], x->size[1], index->size[2]);
        if (call->op == LG__OP(sample_x_grad))
                y->shape.size[2] = ((const sample_attributes *)call->attributes)->size;
        if (call->op == LG__OP(sample_weight_grad)) {
                y->shape = *index;
                y->dtype = y->dtype == LG_F64 ? LG_F64 : LG_F32;
        }
        return lg__shape_valid(call->ctx, "grid_sample", y->shape);
}

static bool forward_sample(lg__call *call)
{
        const bool x_grad = call->op == LG__OP(sample_x_grad), weight_grad = call->op == LG__OP(sample_weight_grad);
        const lg_tensor *index = call->in[2], *out = call->out[0];
        const lg_tensor *x = x_grad ? out : call->in[0], *y = x_grad ? call->in[0] : weight_grad ? call->in[1] : out;
        const lg_sample_args k = {.kind = x_grad        ? LG_SAMPLE_X_GRAD
                                          : weight_grad ? LG_SAMPLE_WEIGHT_GRAD
                                                        : LG_SAMPLE,
                                  .dtype = x->at.dtype,
                                  .n = x->at.shape.size[0],
                                  .channels = x->at.shape.size[1],
                                  .size = x->at.shape.size[2],
                                  .points = index->at.shape.size[2],
                                  .taps = index->at.shape.size[1],
                                  .index = lg__data(index),
                                  .x = lg__data(x),
                                  .weight = lg__data(weight_grad ? out : call->in[1]),
                                  .y = lg__data(y)};
        return lg__shape_numel(out->at.shape) == 0 || LG__RUN(call->device, "grid_sample", sample, &k);
}

static lg_tensor *sampled(const lg__op *op, lg_tensor *a, lg_tensor *b, lg_tensor *index, int64_t size)
{
        return lg__apply(op, (lg_tensor *[]){a, b, index}, 3, &(sample_attributes){size}, NULL);
}

/* Each op is linear in two of x, the weights and y; its derivatives are the other ops. */
static bool vjp_sample(lg__vjp *v)
{
        lg_tensor *g = v->grad[0], *a = v->in[0], *b = v->in[1], *index = v->in[2];
        const lg__op *first = v->op == LG__OP(sample) ? LG__OP(sample_x_grad) : LG__OP(sample);
        const int64_t size = lg__input_shape(v, 0).size[2];
        if (v->op == LG__OP(sample_weight_grad)) {
                v->grad_in[0] = v->needs[0] ? sampled(LG__OP(sample_x_grad), b, g, index, size) : NULL;
                v->grad_in[1] = v->needs[1] ? sampled(LG__OP(sample), a, g, index, size) : NULL;
        } else {
                v->grad_in[0] = v->needs[0] ? sampled(first, g, b, index, size) : NULL;
                if (v->needs[1])
                        v->grad_in[1] = v->op == LG__OP(sample)
                                                ? sampled(LG__OP(sample_weight_grad), a, g, index, size)
                                                : sampled(LG__OP(sample_weight_grad), g, a, index, size);
        }
        return (!v->needs[0] || v->grad_in[0]) && (!v->needs[1] || v->grad_in[1]);
}

#define INDEX "index", LG__ANY, LG__ROW_MAJOR, .saved_for = LG__BY(0) | LG__BY(1)
#define SAMPLE(of, first, second, takes, ...)                                                                          \
        LG__DEFINE(of, __VA_ARGS__,                                                                                    \
                   LG__OPERANDS({first, LG__FLOAT, LG__ROW_MAJOR, .saved_for = LG__BY(1)},                             \
                                {second, takes, LG__ROW_MAJOR, .saved_for = LG__BY(0)}, {INDEX}),                      \
                   LG__RESULTS({"y"}), LG__HAS(sample), .infer = infer_sample, .forward = forward_sample,              \
                   .vjp = vjp_sample)
SAMPLE(sample, "x", "weight", LG__WEIGHT, .flags = 0)
SAMPLE(sample_x_grad, "g", "weight", LG__WEIGHT, .flags = LG__UNORDERED)
SAMPLE(sample_weight_grad, "x", "g", LG__FLOAT, .flags = 0)

/* ---- grid_sample ---- */

/* Taps along one side, for all points: coordinates and weights (N, T, P); the weights are NULL if they are all 1. */
typedef struct taps {
        lg_tensor *place, *weight;
} taps;

/* Returns coordinates x moved into a side of n elements by reflection, if asked for, and clamping, with the derivatives
 * of PyTorch's: 0 where a coordinate is clamped. */
static lg_tensor *inside(lg_tensor *x, int64_t n, const lg_grid_sample_options *o)
{
        const double low = o->align_corners ? 0 : -0.5, span = (double)n - (o->align_corners ? 1 : 0);
        if (o->padding_mode == LG_GRID_REFLECTION && span > 0) {
                lg_tensor *from = lg_abs(lg_sub_scalar(x, low));
                lg_tensor *turns = lg_floor(lg_div_scalar(lg_detach(from), 2 * span));
                from = lg_sub(from, lg_mul_scalar(turns, 2 * span));
                x = lg_rsub_scalar(lg_abs(lg_sub_scalar(from, span)), span + low);
        }
        return o->padding_mode == LG_GRID_ZEROS ? x : lg_hardtanh(x, 0, (double)(n - 1));
}

/* Returns the weights (N, 4, P) of cubic convolution at a fraction t (N, 1, P), as in lg_interpolate(). */
static lg_tensor *cubic_weights(lg_tensor *t)
{
        const double a = -0.75;
        lg_tensor *w[4];
        for (int i = 0; i < 4; i++) {
                lg_tensor *x = i == 0   ? lg_add_scalar(t, 1)
                               : i == 1 ? t
                               : i == 2 ? lg_rsub_scalar(t, 1)
                                        : lg_rsub_scalar(t, 2);
                if (i == 1 || i == 2) /* ((a + 2) x - (a + 3)) x^2 + 1 */
                        w[i] = lg_add_scalar(lg_mul(lg_sub_scalar(lg_mul_scalar(x, a + 2), a + 3), lg_square(x)), 1);
                else /* ((a x - 5 a) x + 8 a) x - 4 a */
                        w[i] = lg_sub_scalar(
                                lg_mul(lg_add_scalar(lg_mul(lg_sub_scalar(lg_mul_scalar(x, a), 5 * a), x), 8 * a), x),
                                4 * a);
        }
        return lg_cat(LG_LIST_OF(4, w), 1);
}

/* Computes the taps along a side of n elements, for coordinates x (N, 1, P) from -1 to 1. */
static taps taps_of(lg_tensor *x, int64_t n, const lg_grid_sample_options *o)
{
        const double half = (double)(o->align_corners ? n - 1 : n) / 2;
        x = lg_mul_scalar(lg_add_scalar(x, 1), half);
        x = o->align_corners ? x : lg_sub_scalar(x, 0.5);
        if (o->mode == LG_GRID_NEAREST)
                return (taps){lg_round(lg_detach(inside(x, n, o))), NULL};
        const bool cubic = o->mode == LG_GRID_BICUBIC;
        x = cubic ? x : inside(x, n, o);
        lg_tensor *floor = lg_floor(lg_detach(x)), *t = lg_sub(x, floor), *near[4];
        const int count = cubic ? 4 : 2;
        for (int i = 0; i < count; i++)
                near[i] = lg_add_scalar(floor, cubic ? i - 1 : i);
        lg_tensor *place = lg_cat(LG_LIST_OF(count, near), 1);
        if (cubic)
                return (taps){inside(place, n, o), cubic_weights(t)};
        return (taps){place, lg_cat(LG_LIST(lg_rsub_scalar(t, 1), t), 1)};
}

/* Returns a * b for all pairs of taps, first those of a: (N, T, P) and (N, U, P) give (N, T U, P). */
static lg_tensor *pairs(lg_tensor *(*op)(lg_tensor *, lg_tensor *), lg_tensor *a, lg_tensor *b)
{
        if (!a || !b)
                return NULL;
        const int64_t *n = a->at.shape.size, *m = b->at.shape.size;
        lg_tensor *y = op(lg_unsqueeze(a, 2), lg_unsqueeze(b, 1));
        return lg_reshape(y, LG_SHAPE(n[0], n[1] * m[1], n[2]));
}

/* Computes the indices (N, T, P) of dtype i32 and the weights of all taps of a grid (N, P, sides). */
static bool all_taps(lg_tensor *grid, const int64_t *size, int sides, const lg_grid_sample_options *o,
                     lg_tensor **ret_index, lg_tensor **ret_weight)
{
        lg_tensor *index = NULL, *valid = NULL, *weight = NULL;
        for (int i = 0; i < sides; i++) {
                taps t = taps_of(lg_unsqueeze(lg_select(grid, -1, sides - 1 - i), 1), size[i], o);
                lg_tensor *near = lg_clamp(t.place, -1, (double)size[i]); /* so that indices are in range of i64 */
                lg_tensor *place = lg_cast(near, LG_I64), *edge = lg_clamp(place, 0, (double)(size[i] - 1));
                lg_tensor *is_in = lg_eq(place, edge);
                index = i ? pairs(lg_add, lg_mul_scalar(index, (double)size[i]), edge) : edge;
                valid = i ? pairs(lg_logical_and, valid, is_in) : is_in;
                weight = i && t.weight ? pairs(lg_mul, weight, t.weight) : t.weight;
        }
        *ret_index = lg_cast(lg_masked_fill(index, lg_logical_not(valid), -1), LG_I32);
        *ret_weight =
                o->mode == LG_GRID_NEAREST && *ret_index ? lg_ones_like(*ret_index, .dtype = grid->at.dtype) : weight;
        return *ret_index && *ret_weight;
}

static bool grid_fits(const lg__call *call, const lg_grid_sample_options *o)
{
        const lg_tensor *x = call->in[0], *grid = call->in[1];
        const lg_shape *s = &x->at.shape, *p = &grid->at.shape;
        int64_t elements = 1;
        bool ok = (s->ndim == 4 || s->ndim == 5) && p->ndim == s->ndim && p->size[0] == s->size[0] &&
                  p->size[p->ndim - 1] == s->ndim - 2;
        if ((unsigned)o->mode > LG_GRID_BICUBIC || (unsigned)o->padding_mode > LG_GRID_REFLECTION)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT,
                                "grid_sample: mode %d, padding_mode %d; they are LG_GRID_BILINEAR to LG_GRID_BICUBIC "
                                "and LG_GRID_ZEROS to LG_GRID_REFLECTION",
                                (int)o->mode, (int)o->padding_mode);
        if (!ok)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "grid_sample: x is %s and grid is %s; they are (N, C, H, W) and (N, H2, W2, 2), or (N, "
                                "C, D, H, W) and (N, D2, H2, W2, 3)",
                                lg__tensor_text(x).s, lg__tensor_text(grid).s);
        if (o->mode == LG_GRID_BICUBIC && s->ndim == 5)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "grid_sample: x is %s; LG_GRID_BICUBIC takes (N, C, H, W)",
                                lg__tensor_text(x).s);
        for (int i = 2; i < s->ndim; i++)
                if (s->size[i] < 1 || __builtin_mul_overflow(elements, s->size[i], &elements) || elements > INT32_MAX)
                        return lg__fail(call->ctx, LG_ERR_SHAPE,
                                        "grid_sample: x is %s; its sides are above 0, with fewer than 2^31 elements in "
                                        "all",
                                        lg__tensor_text(x).s);
        return true;
}

static lg_tensor *compose_grid_sample(const lg__call *call)
{
        lg_grid_sample_options o;
        lg_tensor *x = call->in[0], *grid = call->in[1], *index, *weight;
        if (!lg__take(call->ctx, "grid_sample", call->attributes, &o, sizeof o) || !grid_fits(call, &o))
                return NULL;
        const lg_shape *s = &x->at.shape, *p = &grid->at.shape;
        const int sides = s->ndim - 2;
        lg_shape out = *s;
        int64_t points = 1, size = 1;
        for (int i = 0; i < sides; i++) {
                out.size[2 + i] = p->size[1 + i];
                points *= p->size[1 + i];
                size *= s->size[2 + i];
        }
        if (!lg__shape_valid(call->ctx, "grid_sample", out))
                return NULL;
        grid = lg_reshape(lg__widened(grid), LG_SHAPE(s->size[0], points, sides));
        if (!grid || !all_taps(grid, s->size + 2, sides, &o, &index, &weight))
                return NULL;
        lg_tensor *flat = lg_reshape(x, LG_SHAPE(s->size[0], s->size[1], size));
        return lg_reshape(sampled(LG__OP(sample), flat, weight, index, 0), out);
}

static bool form(lg__form *f, const lg__call *call)
{
        static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {"zeros", "border",
                                                                                                "reflection"};
        lg_grid_sample_options o;
        lg__take_without(call->attributes, &o, sizeof o);
        lg__form_add(f, "GridSample(x, grid, mode='%s', padding_mode='%s', align_corners=%d)", modes[o.mode],
                     paddings[o.padding_mode], o.align_corners);
        return true;
}

LG__DEFINE(grid_sample, .compose = compose_grid_sample, .form = form, .autocast = LG__WIDEST,
           LG__OPERANDS({"x", LG__FLOAT}, {"grid", LG__FLOAT}))

lg_tensor *lg_grid_sample_with(lg_tensor *x, lg_tensor *grid, const lg_grid_sample_options *options)
{
        return LG__APPLY(grid_sample, options, x, grid);
}

/* ---- affine_grid ---- */

typedef struct affine {
        lg_shape size;
        const lg_affine_grid_options *options;
} affine;

/* Returns coordinates of n elements from -1 to 1, of theta's dtype, in a shape that is 1 but in dimension dim. */
static lg_tensor *coordinates(const lg_tensor *theta, int64_t n, int dim, int ndim, bool align_corners)
{
        const double end = n == 1 ? 0 : align_corners ? 1 : (double)(n - 1) / (double)n;
        lg_shape shape = {.ndim = ndim};
        for (int i = 0; i < ndim; i++)
                shape.size[i] = i == dim ? n : 1;
        return lg_reshape(
                lg_linspace(theta->ctx, -end, end, n, .dtype = theta->at.dtype, .device = theta->storage->device->id),
                shape);
}

static lg_tensor *compose_affine_grid(const lg__call *call)
{
        const affine *a = call->attributes;
        lg_affine_grid_options o;
        const lg_tensor *given = call->in[0];
        const lg_shape *t = &given->at.shape, *size = &a->size;
        if (!lg__take(call->ctx, "affine_grid", a->options, &o, sizeof o) ||
            !lg__shape_valid(call->ctx, "affine_grid", *size))
                return NULL;
        const int sides = size->ndim - 2;
        bool ok = (sides == 2 || sides == SIDES) && t->ndim == 3 && t->size[0] == size->size[0] &&
                  t->size[1] == sides && t->size[2] == sides + 1;
        for (int i = 0; i < sides && ok; i++)
                ok = size->size[2 + i] > 0;
        if (!ok)
                return lg__fail(call->ctx, LG_ERR_SHAPE,
                                "affine_grid: theta is %s and size %s; they are (N, 2, 3) and (N, C, H, W), or (N, 3, "
                                "4) and (N, C, D, H, W), with sides above 0",
                                lg__tensor_text(given).s, lg__shape_text(*size).s);
        lg_tensor *theta = lg__widened(call->in[0]), *sum = NULL;
        lg_shape column = {.ndim = sides + 2};
        column.size[0] = t->size[0];
        for (int i = 1; i <= sides; i++)
                column.size[i] = 1;
        column.size[sides + 1] = sides;
        for (int i = sides; i >= 0 && theta; i--) {
                lg_tensor *c = lg_reshape(lg_select(theta, 2, i), column);
                const int dim = sides - i; /* of x, the first coordinate, the last */
                if (i < sides)
                        c = lg_mul(c, coordinates(theta, size->size[1 + dim], dim, sides + 2, o.align_corners));
                sum = sum ? lg_add(sum, c) : c;
        }
        return sum ? lg_cast(sum, given->at.dtype) : NULL;
}

LG__COMPOSITE(affine_grid, {"theta", LG__FLOAT})

lg_tensor *lg_affine_grid_with(lg_tensor *theta, lg_shape size, const lg_affine_grid_options *options)
{
        return LG__APPLY(affine_grid, (&(affine){size, options}), theta);
}
