/* test_rounding.c - what every op gives in f16 and bf16 is its result in f32, rounded once.
 *
 * The reference is the same op on f32 copies of the inputs. Where sums are added up in another order, a result may lie
 * on the other side of a half: half a unit in the last place and what f32 explains.
 */
#include <float.h>
#include "rows.h"

#define SETS 8 /* of values for each small case */

typedef struct format {
        lg_dtype dtype;
        int digits, least; /* of the mantissa; the exponent of the smallest normal number */
        double most;
} format;
static const format formats[] = {{LG_F16, 11, -14, 65504}, {LG_BF16, 8, -126, 3.3895313892515355e38}};

/* ---- cases with more elements than those of gradients.def have ---- */

#define IMAGES S(2, 5, 9, 8)
#include "rounding.def"
static const row large = {.name = "large", .run = run_large, ANYWHERE};

/* ---- comparing ---- */

/* The distance of numbers of that format around x. */
static double unit(const format *f, double x)
{
        int e;
        frexp(x, &e);
        return ldexp(1, (e - 1 < f->least ? f->least : e - 1) - (f->digits - 1));
}

static int wrong; /* results, all of which are told */

static void compare(const format *f, const row *r, int k, bool gradient, const lg_tensor *narrow, const lg_tensor *wide,
                    const lg_tensor *rounded)
{
        int64_t n = lg_numel(narrow);
        double *v = calloc(3 * (size_t)n + 1, sizeof *v), *y = v, *w = v + n, *once = w + n, top = 0;
        assert_int_equal(lg_numel(wide), n);
        read_all(narrow, y, n);
        read_all(wide, w, n);
        read_all(rounded, once, n);
        for (int64_t i = 0; i < n; i++)
                top = isfinite(w[i]) ? fmax(top, fabs(w[i])) : top;
        for (int64_t i = 0; i < n; i++) {
                double limit = gradient ? 4 * unit(f, top) + 16 * unit(f, w[i])
                                        : (0.5 + 0x1p-8) * unit(f, w[i]) + 8 * FLT_EPSILON * top;
                if (y[i] != once[i] && !(isnan(y[i]) && isnan(once[i])) && !(fabs(y[i] - w[i]) <= limit)) {
                        print_error("%s, case %d, in %s, %s %lld of %lld: %.9g, not %.9g, which is %.9g in f32\n",
                                    r->name, k, lg_dtype_name(f->dtype), gradient ? "gradient" : "element",
                                    (long long)i, (long long)n, y[i], once[i], w[i]);
                        wrong++;
                        break;
                }
        }
        free(v);
}

/* The gradients of the results of both; those in 16 bits are sums of roundings. */
static void compare_gradients(lg_ctx *c, const format *f, const row *r, int k, const shapes *s, lg_tensor *const *x,
                              lg_tensor *const *wide, lg_tensor *y, lg_tensor *w)
{
        lg_tensor *g[MAX_INPUTS] = {NULL}, *h[MAX_INPUTS] = {NULL};
        lg_tensor *seed = lg_uniform(c, -1, 1, lg_shape_of(y), .dtype = f->dtype);
        lg_grad(LG_LIST(y), LG_LIST_OF(s->count, x), .grads = LG_LIST(seed), .result = g);
        lg_grad(LG_LIST(w), LG_LIST_OF(s->count, wide), .grads = LG_LIST(lg_cast(seed, LG_F32)), .result = h);
        assert_ok(c);
        for (int i = 0; i < s->count; i++)
                if (g[i] && h[i])
                        compare(f, r, k, true, g[i], h[i], lg_cast(h[i], f->dtype));
}

/* An input whose values have the digits of the format, in f32 or in it. */
static lg_tensor *input(lg_ctx *c, const row *r, int which, lg_shape shape, int64_t first, lg_dtype digits)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        double *v = calloc((size_t)n + 1, sizeof *v);
        for (int64_t i = 0; i < n; i++)
                v[i] = value(r, which, first + i);
        lg_tensor *t = lg_cast(lg_from(c, v, shape, .dtype = LG_F64), digits);
        free(v);
        return t;
}

static void check_case(lg_ctx *c, const format *f, const row *r, int k, const shapes *s, int set)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x[MAX_INPUTS], *wide[MAX_INPUTS];
        for (int i = 0; i < s->count; i++) {
                x[i] = lg_requires_grad(input(c, r, i, s->shape[i], 97 * set, f->dtype), true);
                wide[i] = lg_requires_grad(lg_cast(lg_detach(x[i]), LG_F32), true);
        }
        shapes again;
        probabilities = f->dtype;
        lg_seed(c, 1);
        lg_tensor *y = run_case(r, c, x, k, &again);
        lg_seed(c, 1);
        lg_tensor *w = run_case(r, c, wide, k, &again);
        assert_ok(c);
        compare(f, r, k, false, y, w, lg_cast(w, lg_dtype_of(y)));
        compare_gradients(c, f, r, k, s, x, wide, y, w);
        lg_scope_end(c, scope);
}

static void check_row(lg_ctx *c, const row *r, int sets)
{
        shapes s;
        int k = 0;
        for (run_case(r, c, NULL, 0, &s); s.count >= 0; run_case(r, c, NULL, ++k, &s))
                for (int f = 0; f < 2; f++)
                        for (int set = 0; set < sets; set++)
                                check_case(c, &formats[f], r, k, &s, set);
}

TEST_CASE(every_row_rounds_once)
{
        lg_ctx *c = open_ctx();
        for (int r = 0; r < ROWS; r++)
                check_row(c, &rows[r], SETS);
        lg_close(c);
        assert_int_equal(wrong, 0);
}

TEST_CASE(large_results_round_once)
{
        lg_ctx *c = open_ctx();
        check_row(c, &large, 1);
        lg_close(c);
        assert_int_equal(wrong, 0);
}
