/* test_slopes.c - derivatives where what they are made of overflows, underflows or cancels, and of infinite gradients.
 */
#include "test.h"

static const lg_dtype floats[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
static const double limits[] = {1e-12, 1e-5, 2e-3, 1.6e-2};

/* The derivative of that order of op at x. */
static double slope(lg_ctx *c, lg_tensor *(*op)(lg_tensor *x), double x, int order, lg_dtype dtype)
{
        lg_tensor *leaf = lg_scalar(c, x, .dtype = dtype, .requires_grad = true), *y = op(leaf), *r[1] = {y};
        for (int i = 0; i < order; i++)
                lg_grad(LG_LIST(r[0]), LG_LIST(leaf), .result = r, .create_graph = i + 1 < order);
        assert_ok(c);
        return lg_item(r[0]);
}

typedef struct at {
        const char *name;
        lg_tensor *(*op)(lg_tensor *x);
        double x;
        int order;
        double want;
} at;
#define AT(name, x, order, want)                                                                                       \
        {                                                                                                              \
#name, lg_##name, x, order, want                                                                       \
        }

static lg_tensor *lg_elu_of_2(lg_tensor *x)
{
        return lg_elu(x, 2);
}

static lg_tensor *lg_celu_of_2(lg_tensor *x)
{
        return lg_celu(x, 2);
}

static lg_tensor *lg_softplus_of_100(lg_tensor *x)
{
        return lg_softplus(x, 1, 100);
}

static const at all[] = {
        AT(softsign, 3e38, 2, 0),
        AT(softsign, -3e38, 2, 0),
        AT(atan, 3e38, 2, 0),
        AT(atan, -3e38, 2, 0),
        AT(atan, 0, 3, -2),
        AT(atan, 1, 2, -0.5),
        AT(atan, -1, 3, 0.5),
        AT(atan, INFINITY, 1, 0),
        AT(asinh, 1e20, 1, 1e-20),
        AT(asinh, -1e25, 1, 1e-25),
        AT(asinh, INFINITY, 1, 0),
        AT(asinh, -1, 2, 0.3535533905932738),
        AT(asinh, 1e10, 2, -1e-20),
        AT(asinh, 0, 3, -1),
        AT(asinh, 1, 3, 0.1767766952966369),
        AT(acosh, 1e20, 1, 1e-20),
        AT(acosh, 1e25, 1, 1e-25),
        AT(acosh, 1e10, 2, -1e-20),
        AT(expm1, -8, 1, 3.3546262790251185e-4),
        AT(expm1, -8, 2, 3.3546262790251185e-4),
        AT(tanhshrink, 0.05, 1, 0.0024958392284321292),
        AT(tanhshrink, 0.05, 2, 0.099667373771742757),
        AT(selu, 0, 1, 1.7580993408473766),
        AT(selu, 0, 2, 0),
        AT(elu_of_2, 0, 1, 2),
        AT(elu_of_2, 0, 2, 0),
        AT(celu_of_2, 0, 1, 1),
        AT(celu_of_2, 0, 2, 0),
        AT(softplus_of_100, 90, 1, 1),
        AT(square, 1e38, 1, 2e38),
        AT(asin, 1, 1, INFINITY),
        AT(asin, 1, 2, INFINITY),
        AT(asin, -1, 2, -INFINITY),
        AT(acos, 1, 2, -INFINITY),
        AT(acos, -1, 2, INFINITY),
        AT(acosh, 1, 1, INFINITY),
        AT(acosh, 1, 2, -INFINITY),
        AT(atanh, 1, 1, INFINITY),
        AT(atanh, 1, 2, INFINITY),
        AT(atanh, -1, 2, -INFINITY),
        AT(asin, 1e-10, 2, 1e-10),
        AT(acos, 1e-10, 2, -1e-10),
        AT(atanh, 1e-10, 2, 2e-10),
        AT(asin, 0.5, 2, 0.5 / 0.6495190528383290),
        AT(atanh, 0.75, 2, 1.5 / 0.19140625),
        AT(acosh, 2, 2, -2 / 5.196152422706632),
        AT(erf, 10000, 3, 0),
        AT(erf, -10000, 3, 0),
        AT(erfc, 10000, 3, 0),
        AT(gelu, 10000, 3, 0),
        AT(gelu, -10000, 3, 0),
};

TEST_CASE(slopes_of_one)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++)
                for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                        const at *a = &all[i];
                        double x = lg_item(lg_scalar(c, a->x, .dtype = floats[d]));
                        if (fabs(x - a->x) > limits[d] * fabs(a->x))
                                continue; /* f16 does not hold it */
                        double got = slope(c, a->op, a->x, a->order, floats[d]);
                        if (got != a->want && !(fabs(got - a->want) <= 4 * limits[d] * fabs(a->want) + 1e-30))
                                fail_msg("derivative %d of %s at %g in %s: %g, not %g", a->order, a->name, a->x,
                                         lg_dtype_name(floats[d]), got, a->want);
                }
        lg_close(c);
}

/* ---- infinite gradients: what has no part in the result gets none of them ---- */

static lg_tensor *at_least_one(lg_tensor *x)
{
        return lg_maximum_scalar(x, 1);
}

static lg_tensor *at_most_one(lg_tensor *x)
{
        return lg_minimum_scalar(x, 1);
}

static void check_upstream(lg_ctx *c, const char *name, lg_tensor *y, lg_tensor *x, lg_dtype dtype, double want)
{
        lg_tensor *inf = lg_full(c, LG_SHAPE_0D, INFINITY, .dtype = dtype), *r[1];
        for (int graph = 1; graph >= 0; graph--) {
                lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(inf), .result = r, .create_graph = graph);
                assert_ok(c);
                if (lg_item(r[0]) != want)
                        fail_msg("%s in %s, %s: an infinite gradient becomes %g, not %g", name, lg_dtype_name(dtype),
                                 graph ? "by ops" : "fused", lg_item(r[0]), want);
        }
}

static const struct {
        const char *name;
        lg_tensor *(*op)(lg_tensor *x);
        double x, want;
} ones[] = {
        {"sign", lg_sign, 2, 0},
        {"floor", lg_floor, 2.5, 0},
        {"ceil", lg_ceil, 2.5, 0},
        {"round", lg_round, 2.5, 0},
        {"trunc", lg_trunc, 2.5, 0},
        {"maximum_scalar", at_least_one, 0.5, 0},
        {"maximum_scalar", at_least_one, 2, INFINITY},
        {"minimum_scalar", at_most_one, 2, 0},
        {"minimum_scalar", at_most_one, 1, INFINITY},
};
static const struct {
        const char *name;
        lg_tensor *(*op)(lg_tensor *a, lg_tensor *b);
        double by_a, by_b;
} twos[] = {
        {"maximum", lg_maximum, 0, INFINITY},
        {"minimum", lg_minimum, INFINITY, 0},
        {"floor_divide", lg_floor_divide, 0, 0},
};

TEST_CASE(infinite_gradients)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
                        lg_tensor *x = lg_scalar(c, ones[i].x, .dtype = floats[d], .requires_grad = true);
                        check_upstream(c, ones[i].name, ones[i].op(x), x, floats[d], ones[i].want);
                }
                for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) {
                        lg_tensor *a = lg_scalar(c, 2, .dtype = floats[d], .requires_grad = true);
                        lg_tensor *b = lg_scalar(c, 3, .dtype = floats[d], .requires_grad = true);
                        check_upstream(c, twos[i].name, twos[i].op(a, b), a, floats[d], twos[i].by_a);
                        check_upstream(c, twos[i].name, twos[i].op(a, b), b, floats[d], twos[i].by_b);
                }
        }
        lg_close(c);
}

/* Squares of both numbers are 0, or infinite; where 1 / a is infinite, all derivatives are 0. */
TEST_CASE(angles_of_tiny_and_huge_points)
{
        const double points[][2] = {{1e-45, 0}, {0, 1e-45},   {3e38, 3e38},  {-3e38, 1},     {1, 3e38},
                                    {0, -1e20}, {1e20, 2e20}, {-2e25, 1e25}, {3e-30, 4e-30}, {-4e-30, 3e-30}};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 10; i++) {
                const double x = points[i][0], y = points[i][1], squares = i < 2 ? INFINITY : x * x + y * y;
                const double want[] = {y / squares, -x / squares};
                lg_tensor *a = lg_scalar(c, points[i][0], .requires_grad = true), *first[2], *second[2], *fused[2];
                lg_tensor *b = lg_scalar(c, points[i][1], .requires_grad = true);
                lg_grad(LG_LIST(lg_atan2(a, b)), LG_LIST(a, b), .result = first, .create_graph = true);
                lg_grad(LG_LIST(lg_atan2(a, b)), LG_LIST(a, b), .result = fused);
                for (int k = 0; k < 2; k++) {
                        assert_near(lg_item(fused[k]), want[k], 1e-6 * fabs(want[k]) + 1e-44);
                        assert_near(lg_item(first[k]), want[k], 1e-6 * fabs(want[k]) + 1e-44);
                        if (i > 7)
                                continue; /* the second derivatives are infinite */
                        lg_grad(LG_LIST(first[k]), LG_LIST(a, b), .result = second, .retain_graph = true);
                        assert_ok(c);
                        assert_near(lg_item(second[0]), 0, 1e-39);
                        assert_near(lg_item(second[1]), 0, 1e-39);
                }
        }
        lg_close(c);
}

/* The quotient in the derivative of fmod is constant where it is infinite or NaN, too. */
TEST_CASE(quotients_have_no_slope)
{
        const double points[][2] = {{3e38, 0.5}, {5, 0}, {5, NAN}, {5, 2}};
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 4; i++) {
                lg_tensor *a = lg_scalar(c, points[i][0], .requires_grad = true), *first[1], *second[2];
                lg_tensor *b = lg_scalar(c, points[i][1], .requires_grad = true);
                lg_tensor *w = lg_scalar(c, 1, .requires_grad = true);
                lg_grad(LG_LIST(lg_mul(w, lg_fmod(a, b))), LG_LIST(b), .result = first, .create_graph = true);
                lg_grad(LG_LIST(first[0]), LG_LIST(a, b), .result = second);
                assert_ok(c);
                for (int k = 0; k < 2; k++)
                        assert_near(second[k] ? lg_item(second[k]) : 0, 0, 0);
        }
        lg_close(c);
}
