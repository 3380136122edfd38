/* test_rounding.c - what every op gives in f16 and bf16 is its result in f32, rounded once.
 *
 * The reference is the same op on f32 copies of the inputs. Where sums are added up in another order, a result may lie
 * on the other side of a half: half a unit in the last place and what f32 explains. A GPU may round the weights of an
 * attention, too.
 */
#include <float.h>
#include "calls.h"
#include "rows.h"

#define SETS 8 /* of values for each small case */

typedef struct format {
        lg_dtype dtype;
        int digits, least; /* of the mantissa; the exponent of the smallest normal number */
        double most;
} format;
static const format formats[] = {{LG_F16, 11, -14, 65504}, {LG_BF16, 8, -126, 3.3895313892515355e38}};

/* ---- comparing ---- */

/* A case of a row, or a large call. */
typedef struct subject {
        const char *name;
        const row *row;
        int k;
        const large_call *call;
        int count, gradients; /* inputs, of which the first have a gradient */
} subject;

static lg_tensor *run(const subject *u, lg_ctx *c, lg_tensor *const *x)
{
        shapes again;
        lg_seed(c, 1);
        return u->call ? u->call->run(c, x) : run_case(u->row, c, x, u->k, &again);
}

/* The distance of numbers of that format around x. */
static double unit(const format *f, double x)
{
        int e;
        frexp(x, &e);
        return ldexp(1, (e - 1 < f->least ? f->least : e - 1) - (f->digits - 1));
}

static int wrong; /* results, all of which are told */

static void compare(const format *f, const subject *u, bool gradient, const lg_tensor *narrow, const lg_tensor *wide,
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
        /* attention rounds weights, and recurrent layers by cuDNN round states to TF32 */
        const bool weighs = strncmp(u->name, "attention", strlen("attention")) == 0;
        const bool steps = strcmp(u->name, "recurrent") == 0 && lg_device_of(narrow).type == LG_DEVICE_CUDA;
        const double inside = weighs ? unit(f, top) : steps ? 4 * unit(f, top) : 0;
        for (int64_t i = 0; i < n; i++) {
                double limit = gradient ? 4 * unit(f, top) + 16 * unit(f, w[i])
                                        : (0.5 + 0x1p-8) * unit(f, w[i]) + 8 * FLT_EPSILON * top + inside;
                if (y[i] != once[i] && !(isnan(y[i]) && isnan(once[i])) && !(fabs(y[i] - w[i]) <= limit)) {
                        print_error("%s, case %d, in %s, %s %lld of %lld: %.9g, not %.9g, which is %.9g in f32\n",
                                    u->name, u->k, lg_dtype_name(f->dtype), gradient ? "gradient" : "element",
                                    (long long)i, (long long)n, y[i], once[i], w[i]);
                        wrong++;
                        break;
                }
        }
        free(v);
}

/* The gradients of the results of both; those in 16 bits are sums of roundings. */
static void compare_gradients(lg_ctx *c, const format *f, const subject *u, lg_tensor *const *x, lg_tensor *const *wide,
                              lg_tensor *y, lg_tensor *w)
{
        lg_tensor *g[MOST_OPERANDS] = {NULL}, *h[MOST_OPERANDS] = {NULL};
        lg_tensor *seed = lg_uniform(c, -1, 1, lg_shape_of(y), .dtype = f->dtype);
        lg_grad(LG_LIST(y), LG_LIST_OF(u->gradients, x), .grads = LG_LIST(seed), .result = g);
        lg_grad(LG_LIST(w), LG_LIST_OF(u->gradients, wide), .grads = LG_LIST(lg_cast(seed, LG_F32)), .result = h);
        assert_ok(c);
        for (int i = 0; i < u->gradients; i++)
                if (g[i] && h[i])
                        compare(f, u, true, g[i], h[i], lg_cast(h[i], f->dtype));
}

/* Compares the results of inputs in the format f with those of the same values in f32. */
static void compare_results(lg_ctx *c, const format *f, const subject *u, lg_tensor *const *x)
{
        lg_tensor *wide[MOST_OPERANDS];
        for (int i = 0; i < u->count; i++)
                wide[i] = lg_set_requires_grad(lg_cast(lg_detach(x[i]), LG_F32), lg_requires_grad(x[i]));
        lg_tensor *y = run(u, c, x);
        if (lg_error_code_of(c) == LG_ERR_DTYPE && strstr(lg_error(c), "f32 or f64")) {
                lg_clear_error(c); /* an op without 16-bit floats */
                return;
        }
        lg_tensor *w = run(u, c, wide);
        assert_ok(c);
        compare(f, u, false, y, w, lg_cast(w, lg_dtype_of(y)));
        if (lg_requires_grad(y))
                compare_gradients(c, f, u, x, wide, y, w);
}

/* ---- every row ---- */

/* An input of that format. */
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
        lg_tensor *x[MAX_INPUTS];
        for (int i = 0; i < s->count; i++)
                x[i] = lg_set_requires_grad(input(c, r, i, s->shape[i], 97 * set, f->dtype), true);
        probabilities = f->dtype;
        compare_results(c, f, &(subject){r->name, r, k, NULL, s->count, s->count}, x);
        lg_scope_end(c, scope);
}

static void check_row(lg_ctx *c, const row *r)
{
        shapes s;
        int k = 0;
        for (run_case(r, c, NULL, 0, &s); s.count >= 0; run_case(r, c, NULL, ++k, &s))
                for (int f = 0; f < 2; f++)
                        for (int set = 0; set < SETS; set++)
                                check_case(c, &formats[f], r, k, &s, set);
}

TEST_CASE(every_row_rounds_once)
{
        lg_ctx *c = open_ctx();
        for (int r = 0; r < ROWS; r++)
                check_row(c, &rows[r]);
        lg_close(c);
        assert_int_equal(wrong, 0);
}

/* ---- large calls ---- */

static lg_tensor *linear_relu(lg_ctx *c, lg_tensor *const *x)
{
        (void)c;
        return lg__linear_relu(x[0], x[1], x[2]);
}

/* LSTM: x, then both weights and both biases. */
static lg_tensor *recurrent(lg_ctx *c, lg_tensor *const *x)
{
        lg__recurrent_layer l = {.kind = LG_RECURRENT_LSTM, .w_ih = x[1], .w_hh = x[2], .b_ih = x[3], .b_hh = x[4]};
        lg_tensor *h = NULL, *cells = NULL;
        (void)c;
        return lg__recurrent(x[0], &l, &h, &cells);
}

/* Not in calls.def, which has what is public. */
static const large_call private_calls[] = {
        {.name = "linear_relu",
         .run = linear_relu,
         .input = {{{17, 100}, -1, 1, true}, {{9, 100}, -1, 1, true}, {{9}, -1, 1, true}}},
        {.name = "recurrent",
         .run = recurrent,
         .input = {{{6, 17, 30}, -1, 1, true},
                   {{160, 30}, -1, 1, true},
                   {{160, 40}, -1, 1, true},
                   {{160}, -1, 1, true},
                   {{160}, -1, 1, true}}}};

static void check_call(lg_ctx *c, const large_call *r)
{
        for (int f = 0; f < 2; f++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *x[MOST_OPERANDS];
                const subject u = {r->name, NULL, 0, r, operands_of(r), gradients_of(r)};
                for (int i = 0; i < u.count; i++)
                        x[i] = lg_set_requires_grad(
                                lg_to(draw_operand(c, r, i, formats[f].dtype), lg_default_device(c)),
                                r->input[i].gradient);
                compare_results(c, &formats[f], &u, x);
                lg_scope_end(c, scope);
        }
}

TEST_CASE(large_results_round_once)
{
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof large_calls / sizeof *large_calls; i++)
                check_call(c, &large_calls[i]);
        for (size_t i = 0; i < sizeof private_calls / sizeof *private_calls; i++)
                check_call(c, &private_calls[i]);
        lg_close(c);
        assert_int_equal(wrong, 0);
}

/* Private functions of ops/pointwise.h. */
lg_tensor *lg_gamma_draw(lg_tensor *shape, lg_tensor *uniform);
lg_tensor *lg_gamma_slope(lg_tensor *shape, lg_tensor *drawn);
lg_tensor *lg_poisson_draw(lg_tensor *rate, lg_tensor *uniform);

/* Draws compute in f64 where the library calls them; in f32, which their kernels have as well, they are numbers, too.
 */
TEST_CASE(draws_in_f32)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 2; d++) {
                const lg_dtype dtype = d ? LG_F64 : LG_F32;
                lg_tensor *x = lg_full(c, LG_SHAPE(5), 3.5, .dtype = dtype), *u = lg_full_like(x, 0.25);
                lg_tensor *drawn = lg_gamma_draw(x, u), *count = lg_poisson_draw(x, u),
                          *by_shape = lg_gamma_slope(x, drawn);
                assert_true(lg_dtype_of(drawn) == dtype && lg_dtype_of(count) == dtype);
                assert_true(lg_item(lg_amin(drawn)) > 0 && lg_item(lg_amax(drawn)) < 20);
                assert_true(lg_item(lg_amin(count)) >= 0 && lg_item(lg_amax(count)) < 30);
                assert_true(lg_item(lg_amin(by_shape)) > 0 && lg_item(lg_amax(by_shape)) < 10);
        }
        assert_ok(c);
        lg_close(c);
}
