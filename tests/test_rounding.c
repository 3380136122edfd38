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
CASES(large,
      CASE(lg_sum(X(0)),
           S(40, 60)) CASE(lg_sum(X(0), .dims = LG_DIMS(0)),
                           S(300, 7)) CASE(lg_mean(X(0), .dims = LG_DIMS(1)),
                                           S(7, 300)) CASE(lg_var(X(0), .dims = LG_DIMS(1)),
                                                           S(7, 300)) CASE(lg_std(X(0), .dims = LG_DIMS(0)), S(300, 7))
              CASE(lg_norm(X(0), 2, .dims = LG_DIMS(1)), S(7, 300)) CASE(lg_norm(X(0), 1), S(700)) CASE(
                      lg_norm(X(0), 3),
                      S(
                              700)) CASE(lg_prod(X(0), .dims = LG_DIMS(1)),
                                         S(7, 19)) CASE(lg_logsumexp(X(0), .dims = LG_DIMS(1)), S(7, 300))
                      CASE(lg_softmax(X(0), 1), S(7, 300)) CASE(lg_log_softmax(X(0), 0), S(300, 7)) CASE(
                              lg_cumsum(X(0), 1),
                              S(3, 300)) CASE(lg_cumprod(X(0), 1), S(7, 19))
                              CASE(lg_matmul(X(0), X(1)), S(17, 300), S(300, 19)) CASE(
                                      lg_linear(X(0), X(1), X(2)),
                                      S(17, 100),
                                      S(9, 100),
                                      S(9)) CASE(lg__linear_relu(X(0), X(1), X(2)), S(17, 100), S(9, 100), S(9))
                                      CASE(lg_layer_norm(X(0), 1, X(1), X(2)), S(7, 300), S(300),
                                           S(300)) CASE(lg_layer_norm(X(0), 1, X(1), X(2)), S(3, 12), S(12),
                                                        S(12)) CASE(lg_rms_norm(X(0), 1, X(1), .eps = 0.01), S(7, 300),
                                                                    S(300))
                                              CASE(lg_group_norm(X(0), 1, X(1), X(2)), IMAGES, S(5), S(5)) CASE(
                                                      lg_instance_norm(X(0), X(1), X(2)),
                                                      IMAGES,
                                                      S(5),
                                                      S(5)) CASE(lg_batch_norm(X(0), X(1), X(2), .training = true),
                                                                 IMAGES,
                                                                 S(5), S(5))
                                                      CASE(
                                                              lg_batch_norm(X(0), X(1), X(2),
                                                                            .running_mean =
                                                                                    lg_full(c, 0.2, S(5)),
                                                                            .running_var =
                                                                                    lg_full(c, 1.7, S(5))),
                                                              IMAGES,
                                                              S(5), S(5)) CASE(lg_batch_norm(X(0), X(1),
                                                                                             X(2), .training = true),
                                                                               S(300, 7), S(7),
                                                                               S(7)) CASE(lg_normalize(X(0), 1),
                                                                                          S(7, 300))
                                                              CASE(lg_conv2d(X(0), X(1), X(2), .padding = 1), IMAGES,
                                                                   S(6, 5, 3, 3),
                                                                   S(6)) CASE(lg_conv2d(X(0), X(1), X(2)), IMAGES,
                                                                              S(6, 5, 1, 1), S(6))
                                                                      CASE(lg_conv2d(X(0), X(1), X(2), .groups = 5),
                                                                           IMAGES,
                                                                           S(5, 1, 3, 3),
                                                                           S(5)) CASE(lg_conv_transpose2d(X(0), X(1),
                                                                                                          X(2),
                                                                                                          .stride = 2),
                                                                                      IMAGES,
                                                                                      S(5, 4, 3, 3),
                                                                                      S(
                                                                                              4)) CASE(lg_conv1d(X(0), X(1), X(2)), S(2, 5, 30), S(4, 5, 3), S(4)) CASE(lg_avg_pool2d(X(0), 5), IMAGES) CASE(lg_adaptive_avg_pool2d(X(0), 3), IMAGES) CASE(lg_scatter_add(X(0),
                                                                                                                                                                                                                                                                          0, lg_zeros(c, S(200, 3), .dtype = LG_I64), X(1)),
                                                                                                                                                                                                                                                           S(2,
                                                                                                                                                                                                                                                             3),
                                                                                                                                                                                                                                                           S(
                                                                                                                                                                                                                                                                   200, 3)) CASE(lg_index_add(X(0), 0, lg_zeros(c, S(200), .dtype = LG_I64), X(1)), S(2, 3), S(200, 3)) CASE(lg_cross_entropy(X(0),
                                                                                                                                                                                                                                                                                                                                                                                              lg_zeros(
                                                                                                                                                                                                                                                                                                                                                                                                      c,
                                                                                                                                                                                                                                                                                                                                                                                                      S(90),
                                                                                                                                                                                                                                                                                                                                                                                                      .dtype =
                                                                                                                                                                                                                                                                                                                                                                                                              LG_I64)),
                                                                                                                                                                                                                                                                                                                                                                             S(
                                                                                                                                                                                                                                                                                                                                                                                     90, 12)) CASE(lg_cross_entropy(X(0), lg_zeros(c, S(90), .dtype = LG_I64),
                                                                                                                                                                                                                                                                                                                                                                                                                    .weight = X(1), .label_smoothing = 0.1),
                                                                                                                                                                                                                                                                                                                                                                                                   S(90, 12), S(12)) CASE(lg_cross_entropy(X(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                           lg_zeros(c, S(90), .dtype = LG_I64), .weight = X(1), .reduction = LG_NONE),
                                                                                                                                                                                                                                                                                                                                                                                                                          S(90, 12), S(12)) CASE(lg_nll(X(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                                        lg_zeros(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                c,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                S(90),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                .dtype =
                                                                                                                                                                                                                                                                                                                                                                                                                                                                        LG_I64)),
                                                                                                                                                                                                                                                                                                                                                                                                                                                 S(90, 12)) CASE(lg_mse(X(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                        X(1)),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                 S(900), S(900)) CASE(lg_l1(X(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            X(1)),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      S(900),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      S(900)) CASE(lg_huber(X(0), X(1)), S(900), S(900)) CASE(lg_smooth_l1(X(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           X(1),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           .beta = 0.3),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              S(900), S(900)) CASE(lg_bce(P(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          P(1)),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   S(900), S(900)) CASE(lg_bce_with_logits(X(0), P(1), .pos_weight = X(2)), S(30, 30), S(30, 30),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        S(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                30)) CASE(lg_kl_div(X(0),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    P(1)),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          S(900),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                          S(900))
                                                                              CASE(lg_kl_div(
                                                                                           X(0), X(1),
                                                                                           .log_target = true),
                                                                                   S(900),
                                                                                   S(900)) CASE(lg_mse(X(0), X(1),
                                                                                                       .reduction = LG_NONE),
                                                                                                S(900),
                                                                                                S(900)) CASE(lg_huber(X(0), X(1), .reduction = LG_NONE),
                                                                                                             S(900),
                                                                                                             S(900))
                                                                                      CASE(lg_smooth_l1(
                                                                                                   X(0), X(1),
                                                                                                   .reduction = LG_NONE,
                                                                                                   .beta = 0.3),
                                                                                           S(900),
                                                                                           S(900)) CASE(lg_bce(P(0),
                                                                                                               P(1),
                                                                                                               .reduction = LG_NONE),
                                                                                                        S(900),
                                                                                                        S(900)) CASE(lg_bce_with_logits(X(0),
                                                                                                                                        P(1),
                                                                                                                                        .reduction = LG_NONE,
                                                                                                                                        .pos_weight =
                                                                                                                                                X(2)),
                                                                                                                     S(30, 30),
                                                                                                                     S(30, 30),
                                                                                                                     S(30))
                                                                                              CASE(lg_kl_div(
                                                                                                           X(0), P(1),
                                                                                                           .reduction =
                                                                                                                   LG_NONE),
                                                                                                   S(900),
                                                                                                   S(900)) CASE(lg_lerp(X(0),
                                                                                                                        X(1),
                                                                                                                        P(2)),
                                                                                                                S(900),
                                                                                                                S(900),
                                                                                                                S(900))
                                                                                                      CASE(lg_lerp_scalar(
                                                                                                                   X(0),
                                                                                                                   X(1),
                                                                                                                   0.3),
                                                                                                           S(900),
                                                                                                           S(900)) CASE(lg_lerp_scalar(X(0),
                                                                                                                                       X(1), 0.8),
                                                                                                                        S(900),
                                                                                                                        S(900))
                                                                                                              CASE(lg_feature_dropout(
                                                                                                                           X(0),
                                                                                                                           0.4),
                                                                                                                   IMAGES)
                                                                                                                      CASE(lg_dropout(
                                                                                                                                   X(0),
                                                                                                                                   0.4),
                                                                                                                           S(900)))
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

static void every_row_rounds_once(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        for (int r = 0; r < ROWS; r++)
                check_row(c, &rows[r], SETS);
        lg_close(c);
        assert_int_equal(wrong, 0);
}

static void large_results_round_once(void **state)
{
        (void)state;
        lg_ctx *c = open_ctx();
        check_row(c, &large, 1);
        lg_close(c);
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_rounds_once),
                                           cmocka_unit_test(large_results_round_once)};
        return cmocka_run_group_tests(tests, NULL, NULL);
}
