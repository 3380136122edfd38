/* test_dist.c - distributions: densities, entropies, moments and divergences with their gradients against PyTorch's
 * numbers (data/dist.txt); samples against distribution functions (Kolmogorov and Smirnov, chi-square), rsample,
 * errors. */
#include <math.h>
#include "golden.h"

/* ---- PyTorch's numbers ---- */

/* Returns log_prob, entropy, mean, variance and divergence in a row, as `what` says: dist.py's everything(). */
static lg_tensor *everything(lg_dist d, lg_dist q, lg_tensor *value, const char *what)
{
        lg_tensor *parts[5];
        int n = 0;
        for (; what[n]; n++) {
                lg_tensor *y = what[n] == 'l'   ? lg_dist_log_prob(d, value)
                               : what[n] == 'e' ? lg_dist_entropy(d)
                               : what[n] == 'm' ? lg_dist_mean(d)
                               : what[n] == 'v' ? lg_dist_variance(d)
                                                : lg_dist_kl(d, q);
                parts[n] = lg_flatten(y);
        }
        return lg_cat(LG_LIST_OF(n, parts), 0);
}

static lg_tensor *counts(lg_tensor *x)
{
        return lg_cast(lg_from(lg_ctx_of(x), ((double[]){0, 1, 2, 3, 0, 5, 2, 1, 4, 0, 1, 2}), LG_SHAPE(3, 4)),
                       lg_dtype_of(x));
}

static lg_tensor *per_sum(lg_tensor *x)
{
        return lg_div(x, lg_sum(x, .dims = LG_DIMS(-1), .keep_dim = true));
}

#define PLUS(x, s) lg_add_scalar(lg_square(x), s)
#define Y golden_like(x, LG_SHAPE(3, 4), 0.7)
#define F lg_detach(x) /* X of dist.py */
#define P PLUS(F, 0.5)
#define B lg_sigmoid(Y)
#define SOFTER lg_add_scalar(lg_mul_scalar(lg_sigmoid(x), 0.9), 0.05)
#define COUNTS counts(x)
#define CLASSES lg_cast(lg_minimum_scalar(lg_select(COUNTS, 1, 1), 3), LG_I64)
#define HITS lg_cast(lg_gt_scalar(COUNTS, 1), lg_dtype_of(x))
#define ALL "lemvk"
#define NO_PAIR ((lg_dist){0})
#define W golden_like(x, LG_SHAPE(4, 4), 0.3)
#define ONE lg_eye(lg_ctx_of(x), 4, 4, .dtype = lg_dtype_of(x))
#define V lg_dist_multivariate_normal(Y, .covariance = lg_add(lg_matmul(W, lg_transpose(W, 0, 1)), ONE))
#define ROWS(ROW)                                                                                                      \
        ROW(normal, everything(lg_dist_normal(x, PLUS(x, 0.5)), lg_dist_normal(Y, P), Y, ALL), 3, 4)                   \
        ROW(uniform,                                                                                                   \
            everything(lg_dist_uniform(x, lg_add(x, P)), lg_dist_uniform(lg_add_scalar(F, -3), lg_add_scalar(F, 7)),   \
                       lg_add_scalar(F, 0.25), ALL),                                                                   \
            3, 4)                                                                                                      \
        ROW(laplace, everything(lg_dist_laplace(x, PLUS(x, 0.5)), lg_dist_laplace(Y, P), Y, ALL), 3, 4)                \
        ROW(cauchy, everything(lg_dist_cauchy(x, PLUS(x, 0.5)), lg_dist_cauchy(Y, P), Y, "lek"), 3, 4)                 \
        ROW(gumbel, everything(lg_dist_gumbel(x, PLUS(x, 1)), lg_dist_gumbel(Y, PLUS(F, 1.5)), Y, ALL), 3, 4)          \
        ROW(student_t, everything(lg_dist_student_t(PLUS(x, 2.5), x, PLUS(x, 0.5)), NO_PAIR, Y, "lemv"), 3, 4)         \
        ROW(exponential, everything(lg_dist_exponential(PLUS(x, 0.5)), lg_dist_exponential(P), P, ALL), 3, 4)          \
        ROW(gamma, everything(lg_dist_gamma(PLUS(x, 0.5), PLUS(x, 0.7)), lg_dist_gamma(P, PLUS(Y, 0.1)), P, ALL), 3,   \
            4)                                                                                                         \
        ROW(chi2, everything(lg_dist_chi2(PLUS(x, 0.5)), lg_dist_gamma(P, PLUS(Y, 0.1)), P, ALL), 3, 4)                \
        ROW(beta, everything(lg_dist_beta(PLUS(x, 0.5), PLUS(x, 0.7)), lg_dist_beta(P, PLUS(Y, 0.1)), B, ALL), 3, 4)   \
        ROW(log_normal,                                                                                                \
            everything(lg_dist_log_normal(x, lg_div_scalar(PLUS(x, 0.5), 4)), lg_dist_log_normal(Y, P), P, ALL), 3, 4) \
        ROW(half_normal, everything(lg_dist_half_normal(PLUS(x, 0.5)), lg_dist_half_normal(P), P, ALL), 3, 4)          \
        ROW(dirichlet, everything(lg_dist_dirichlet(PLUS(x, 0.5)), lg_dist_dirichlet(P), per_sum(B), ALL), 3, 4)       \
        ROW(diagonal_normal,                                                                                           \
            everything(lg_dist_diagonal_normal(x, PLUS(x, 0.5)), lg_dist_diagonal_normal(Y, P), Y, ALL), 3, 4)         \
        ROW(multivariate,                                                                                              \
            everything(lg_dist_multivariate_normal(                                                                    \
                               x, .covariance = lg_add(lg_mul(lg_unsqueeze(x, -1), lg_unsqueeze(x, -2)), ONE)),        \
                       V, Y, ALL),                                                                                     \
            3, 4)                                                                                                      \
        ROW(multivariate_precision,                                                                                    \
            everything(lg_dist_multivariate_normal(Y, .precision = lg_add(lg_matmul(lg_transpose(x, 0, 1), x), ONE)),  \
                       V, Y, ALL),                                                                                     \
            3, 4)                                                                                                      \
        ROW(multivariate_scale_tril,                                                                                   \
            everything(lg_dist_multivariate_normal(x, .scale_tril = lg_add(lg_tril(W), lg_mul_scalar(ONE, 3))), V, Y,  \
                       ALL),                                                                                           \
            3, 4)                                                                                                      \
        ROW(poisson, everything(lg_dist_poisson(PLUS(x, 0.5)), lg_dist_poisson(P), COUNTS, "lmvk"), 3, 4)              \
        ROW(bernoulli, everything(lg_dist_bernoulli(.logits = x), lg_dist_bernoulli(.logits = Y), HITS, ALL), 3, 4)    \
        ROW(bernoulli_probs, everything(lg_dist_bernoulli(.probs = SOFTER), lg_dist_bernoulli(.probs = B), HITS, ALL), \
            3, 4)                                                                                                      \
        ROW(geometric, everything(lg_dist_geometric(.logits = x), lg_dist_geometric(.logits = Y), COUNTS, ALL), 3, 4)  \
        ROW(geometric_probs,                                                                                           \
            everything(lg_dist_geometric(.probs = SOFTER), lg_dist_geometric(.probs = B), COUNTS, ALL), 3, 4)          \
        ROW(binomial, everything(lg_dist_binomial(7, .logits = x), lg_dist_binomial(7, .logits = Y), COUNTS, ALL), 3,  \
            4)                                                                                                         \
        ROW(binomial_probs,                                                                                            \
            everything(lg_dist_binomial(7, .probs = SOFTER), lg_dist_binomial(7, .probs = B), COUNTS, ALL), 3, 4)      \
        ROW(categorical,                                                                                               \
            everything(lg_dist_categorical(.logits = x), lg_dist_categorical(.logits = Y), CLASSES, "lek"), 3, 4)      \
        ROW(categorical_probs,                                                                                         \
            everything(lg_dist_categorical(.probs = PLUS(x, 0.1)), lg_dist_categorical(.probs = P), CLASSES, "lek"),   \
            3, 4)                                                                                                      \
        ROW(multinomial, everything(lg_dist_multinomial(6, .logits = x), NO_PAIR, COUNTS, "lemv"), 3, 4)               \
        ROW(multinomial_probs, everything(lg_dist_multinomial(6, .probs = PLUS(x, 0.1)), NO_PAIR, COUNTS, "lemv"), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "dist.txt", golden_input, ROWS);

/* ---- samples ---- */

#define N 20000
static double drawn[N];

static int by_value(const void *a, const void *b)
{
        const double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* Fails if the samples do not follow the distribution function at a level of 0.001 (Kolmogorov and Smirnov). */
static void check_samples(lg_dist d, double (*cdf)(double x))
{
        const lg_tensor *y = lg_dist_sample(d, LG_SHAPE(N));
        double gap = 0;
        read_all(y, drawn, N);
        qsort(drawn, N, sizeof *drawn, by_value);
        for (int i = 0; i < N; i++) {
                const double p = cdf(drawn[i]);
                gap = fmax(gap, fmax(p - (double)i / N, (double)(i + 1) / N - p));
        }
        if (!(gap * sqrt(N) < 1.95))
                fail_msg("the samples are %g away from the distribution function", gap);
}

static double cdf_normal(double x)
{
        return 0.5 * erfc(-(x - 1) / 2 / sqrt(2));
}
static double cdf_uniform(double x)
{
        return (x - 1) / 2;
}
static double cdf_laplace(double x)
{
        return x < 1 ? 0.5 * exp((x - 1) / 2) : 1 - 0.5 * exp(-(x - 1) / 2);
}
static double cdf_cauchy(double x)
{
        return 0.5 + atan((x - 1) / 2) / acos(-1);
}
static double cdf_gumbel(double x)
{
        return exp(-exp(-(x - 1) / 2));
}
static double cdf_exponential(double x)
{
        return 1 - exp(-2 * x);
}
static double cdf_log_normal(double x)
{
        return cdf_normal(log(x));
}
static double cdf_half_normal(double x)
{
        return erf(x / 2 / sqrt(2));
}
/* Of shape 3 and rate 2; of shape 0.5 and rate 2. */
static double cdf_gamma3(double x)
{
        return 1 - exp(-2 * x) * (1 + 2 * x + 2 * x * x);
}
static double cdf_gamma_half(double x)
{
        return erf(sqrt(2 * x));
}
static double cdf_beta(double x) /* shapes 2 and 3 */
{
        return x * x * (6 - 8 * x + 3 * x * x);
}
static double cdf_student(double x) /* 2 degrees, location 1, scale 2 */
{
        const double t = (x - 1) / 2;
        return 0.5 + t / (2 * sqrt(2 + t * t));
}

TEST_CASE(samples_of_real_numbers)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 5);
        const lg_dtype dtypes[] = {LG_F64, LG_F32};
        for (int i = 0; i < 2; i++) {
                lg_tensor *one = lg_scalar(c, 1, .dtype = dtypes[i]), *two = lg_scalar(c, 2, .dtype = dtypes[i]),
                          *three = lg_scalar(c, 3, .dtype = dtypes[i]), *half = lg_scalar(c, 0.5, .dtype = dtypes[i]);
                check_samples(lg_dist_normal(one, two), cdf_normal);
                check_samples(lg_dist_uniform(one, three), cdf_uniform);
                check_samples(lg_dist_laplace(one, two), cdf_laplace);
                check_samples(lg_dist_cauchy(one, two), cdf_cauchy);
                check_samples(lg_dist_gumbel(one, two), cdf_gumbel);
                check_samples(lg_dist_exponential(two), cdf_exponential);
                check_samples(lg_dist_log_normal(one, two), cdf_log_normal);
                check_samples(lg_dist_half_normal(two), cdf_half_normal);
                check_samples(lg_dist_gamma(three, two), cdf_gamma3);
                check_samples(lg_dist_gamma(half, two), cdf_gamma_half);
                check_samples(lg_dist_beta(two, three), cdf_beta);
                check_samples(lg_dist_student_t(two, one, two), cdf_student);
        }
        assert_ok(c);
        lg_close(c);
}

/* Fails if the counts of 0, 1, ..., 11 and of more do not fit e^log_prob at a level of 0.001 (chi-square of Pearson, of
 * the numbers that are expected at least 5 times; the limits are those of 0 to 12 degrees of freedom). */
static void check_counts(lg_dist d)
{
        enum { MOST = 12 };
        static const double limits[] = {1e-9,  10.83, 13.82, 16.27, 18.47, 20.52, 22.46,
                                        24.32, 26.12, 27.88, 29.59, 31.26, 32.91};
        const lg_tensor *y = lg_dist_sample(d, LG_SHAPE(N));
        double p[MOST], count[MOST + 1] = {0}, rest = 1, others = 0, sum = 0;
        int degrees = -1;
        lg_ctx *c = lg_ctx_of(y);
        read_all(lg_exp(lg_dist_log_prob(d, lg_arange(c, 0, MOST, 1, .dtype = LG_F64))), p, MOST);
        read_all(y, drawn, N);
        for (int i = 0; i < N; i++) {
                assert_true(drawn[i] >= 0 && drawn[i] == floor(drawn[i]));
                count[drawn[i] < MOST ? (int)drawn[i] : MOST]++;
        }
        others = count[MOST];
        for (int k = 0; k < MOST; k++) {
                if (!(p[k] * N >= 5)) {
                        others += count[k];
                        continue;
                }
                sum += pow(count[k] - p[k] * N, 2) / (p[k] * N);
                rest -= p[k];
                degrees++;
        }
        if (rest * N >= 5) {
                sum += pow(others - rest * N, 2) / (rest * N);
                degrees++;
        }
        assert_true(degrees > 0 && degrees <= MOST);
        if (!(sum < limits[degrees]))
                fail_msg("kind %d: chi-square is %g with %d degrees of freedom", d.kind, sum, degrees);
}

TEST_CASE(samples_of_whole_numbers)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 6);
        lg_tensor *p = lg_scalar(c, 0.3, .dtype = LG_F64);
        lg_tensor *hits = lg_dist_sample(lg_dist_bernoulli(.probs = p), LG_SHAPE(N));
        assert_true(fabs(lg_item(lg_mean(hits)) - 0.3) < 3.3 * sqrt(0.21 / N));
        check_counts(lg_dist_geometric(.probs = p));
        check_counts(lg_dist_geometric(.logits = p));
        check_counts(lg_dist_binomial(10, .probs = p));
        check_counts(lg_dist_binomial(1, .probs = p));
        check_counts(lg_dist_binomial(25, .probs = p));
        check_counts(lg_dist_poisson(p));
        check_counts(lg_dist_poisson(lg_scalar(c, 4.5, .dtype = LG_F64)));
        check_counts(lg_dist_poisson(lg_scalar(c, 10.5, .dtype = LG_F64)));
        assert_ok(c);
        lg_close(c);
}

/* The distribution function of a large Poisson number, by the normal distribution, and moments of classes and vectors.
 */
TEST_CASE(samples_of_vectors_and_classes)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 7);
        lg_tensor *w = lg_from(c, ((double[]){1, 2, 3, 4, 0, 1}), LG_SHAPE(2, 3));
        lg_tensor *y = lg_dist_sample(lg_dist_categorical(.probs = w), LG_SHAPE(N));
        assert_int_equal(lg_dtype_of(y), LG_I64);
        assert_shape(y, LG_SHAPE(N, 2));
        assert_list(lg_mean(lg_cast(lg_one_hot(y, 3), LG_F64), .dims = LG_DIMS(0)), 0.02, 1. / 6, 1. / 3, 0.5, 0.8, 0,
                    0.2);
        y = lg_dist_sample(lg_dist_multinomial(5, .probs = w), LG_SHAPE(N));
        assert_shape(y, LG_SHAPE(N, 2, 3));
        assert_list(lg_amax(lg_abs(lg_add_scalar(lg_sum(y, .dims = LG_DIMS(2)), -5))), 0, 0);
        assert_list(lg_mean(y, .dims = LG_DIMS(0)), 0.05, 5. / 6, 5. / 3, 2.5, 4, 0, 1);
        assert_list(lg_var(y, .dims = LG_DIMS(0)), 0.05, 25. / 36, 10. / 9, 1.25, 0.8, 0, 0.8);
        w = lg_from(c, ((double[]){0.5, 2, 1.5}), LG_SHAPE(3));
        lg_dist d = lg_dist_dirichlet(w);
        y = lg_dist_sample(d, LG_SHAPE(N / 2, 2));
        assert_shape(y, LG_SHAPE(N / 2, 2, 3));
        assert_list(lg_mean(y, .dims = LG_DIMS(0, 1)), 0.01, 0.125, 0.5, 0.375);
        assert_list(lg_var(y, .dims = LG_DIMS(0, 1)), 0.002, 0.125 * 0.875 / 5, 0.05, 0.375 * 0.625 / 5);
        d = lg_dist_diagonal_normal(w, w);
        assert_shape(lg_dist_sample(d, LG_SHAPE(4)), LG_SHAPE(4, 3));
        assert_shape(lg_dist_log_prob(d, lg_dist_sample(d, LG_SHAPE(4))), LG_SHAPE(4));
        y = lg_poisson(lg_full(c, LG_SHAPE(N), 400, .dtype = LG_F64));
        assert_float_equal(lg_item(lg_mean(y)), 400, 0.5);
        assert_float_equal(lg_item(lg_var(y)), 400, 16);
        assert_shape(lg_dist_sample(lg_dist_poisson(w), LG_SHAPE(0)), LG_SHAPE(0, 3));
        assert_shape(lg_dist_sample(lg_dist_multinomial(5, .probs = w), LG_SHAPE(0)), LG_SHAPE(0, 3));
        assert_shape(lg_dist_sample(lg_dist_binomial(5, .probs = w), LG_SHAPE(2, 0)), LG_SHAPE(2, 0, 3));
        assert_ok(c);
        lg_close(c);
}

/* ---- gradients of samples ---- */

/* The derivative of the mean of samples is the derivative of the mean. */
static void check_slope(lg_dist d, lg_tensor *parameter, double slope, double limit)
{
        lg_tensor *y = lg_dist_rsample(d, LG_SHAPE(N)), *mean = lg_mean(y, .dims = LG_DIMS(0));
        lg_tensor *g = lg_grad(LG_LIST(mean), LG_LIST(parameter));
        assert_float_equal(lg_item(g), slope, limit);
}

TEST_CASE(rsample)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 8);
        for (int i = 0; i < 3; i++) {
                const double a = (const double[]){0.4, 3, 40}[i];
                lg_tensor *p = lg_set_requires_grad(lg_scalar(c, a, .dtype = LG_F64), true),
                          *two = lg_scalar(c, 2, .dtype = LG_F64);
                check_slope(lg_dist_gamma(p, two), p, 0.5, 0.02);
                check_slope(lg_dist_gamma(two, p), p, -2 / (a * a), 0.05 * 2 / (a * a));
                check_slope(lg_dist_beta(p, two), p, 2 / pow(a + 2, 2), 0.02 * 2 / pow(a + 2, 2) + 0.002);
                check_slope(lg_dist_normal(two, p), p, 0, 0.03);
                check_slope(lg_dist_exponential(p), p, -1 / (a * a), 0.05 / (a * a));
                check_slope(lg_dist_laplace(p, two), p, 1, 1e-12);
                assert_null(lg_dist_rsample(lg_dist_poisson(p), LG_SHAPE(2)));
                assert_error(c, LG_ERR_ARGUMENT, "lg_dist_rsample: samples of lg_dist_poisson() have no gradient");
                assert_false(lg_requires_grad(lg_dist_sample(lg_dist_normal(p, p), LG_SHAPE(2))));
        }
        /* a greater shape makes every gamma variate greater */
        lg_tensor *h = lg_set_requires_grad(lg_full(c, LG_SHAPE(5), 0.5, .dtype = LG_F64), true);
        lg_tensor *x = lg_standard_gamma(h), *g = lg_grad(LG_LIST(lg_sum(x)), LG_LIST(h));
        assert_true(x && g && lg_item(lg_all(lg_gt_scalar(g, 0))) == 1);
        lg_tensor *twice = lg_grad(LG_LIST(lg_sum(lg_square(lg_standard_gamma(h)))), LG_LIST(h), .create_graph = true);
        assert_ok(c);
        assert_null(lg_grad(LG_LIST(lg_sum(twice)), LG_LIST(h)));
        assert_error(c, LG_ERR_STATE, "standard_gamma: samples have no second derivative by the shape parameter");
        lg_close(c);
}

TEST_CASE(gumbel_softmax)
{
        lg_ctx *c = open_ctx();
        lg_seed(c, 9);
        lg_tensor *x = lg_log(lg_from(c, ((double[]){1, 2, 5}), LG_SHAPE(3))), *many = lg_expand(x, LG_SHAPE(N, 3));
        lg_tensor *y = lg_gumbel_softmax(many, -1, .hard = true);
        assert_list(lg_mean(y, .dims = LG_DIMS(0)), 0.015, 0.125, 0.25, 0.625);
        assert_list(lg_amax(y), 0, 1);
        lg_tensor *w = lg_set_requires_grad(lg_copy(many, LG_NO_DEVICE), true);
        y = lg_gumbel_softmax(w, 1, .tau = 0.5);
        assert_list(lg_amax(lg_abs(lg_add_scalar(lg_sum(y, .dims = LG_DIMS(1)), -1))), 1e-12, 0);
        lg_tensor *g = lg_grad(LG_LIST(lg_gumbel_softmax(w, -1, .hard = true)), LG_LIST(w), .grads = LG_LIST(y));
        assert_true(g && lg_item(lg_amax(lg_abs(g))) > 0.01);
        assert_null(lg_gumbel_softmax(x, -1, .tau = -1));
        assert_error(c, LG_ERR_ARGUMENT, "gumbel_softmax: tau is -1");
        assert_null(lg_gumbel_softmax(x, 1));
        assert_error(c, LG_ERR_ARGUMENT, "gumbel_softmax");
        lg_close(c);
}

/* ---- errors ---- */

TEST_CASE(multivariate_samples)
{
        lg_ctx *c = open_ctx();
        lg_tensor *l = lg_from(c, ((double[]){2, 0, 0, -1, 1, 0, 0.5, 3, 0.5}), LG_SHAPE(3, 3), .dtype = LG_F64);
        lg_tensor *loc = lg_from(c, ((double[]){1, -2, 3, 0, 0, 5}), LG_SHAPE(2, 3), .dtype = LG_F64);
        lg_tensor *both = lg_set_requires_grad(lg_detach(lg_stack(LG_LIST(l, lg_mul_scalar(l, 2)), 0)), true);
        lg_tensor *covariance = lg_matmul(l, lg_transpose(l, 0, 1));
        for (int batched = 0; batched < 2; batched++) {
                lg_dist d = lg_dist_multivariate_normal(loc, .scale_tril = batched ? both : l);
                lg_tensor *x = lg_dist_rsample(d, LG_SHAPE(20000));
                assert_shape(x, LG_SHAPE(20000, 2, 3));
                lg_tensor *mean = lg_mean(x, .dims = LG_DIMS(0), .keep_dim = true), *z = lg_sub(x, mean);
                assert_true(lg_allclose(mean, loc, .atol = 0.15, .rtol = LG_ZERO));
                for (int i = 0; i < 2; i++) {
                        lg_tensor *rows = lg_select(z, 1, i), *seen = lg_matmul(lg_transpose(rows, 0, 1), rows);
                        lg_tensor *want = lg_mul_scalar(covariance, batched && i ? 4 : 1);
                        assert_true(lg_allclose(lg_div_scalar(seen, 20000), want, .atol = 0.8, .rtol = LG_ZERO));
                }
                assert_int_equal(lg_requires_grad(x), batched);
                assert_int_equal(lg_numel(lg_dist_sample(d, LG_SHAPE(0))), 0);
        }
        assert_ok(c);
        assert_int_equal(lg_dist_multivariate_normal(loc).kind, 0);
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_multivariate_normal: give exactly one of");
        assert_int_equal(lg_dist_multivariate_normal(loc, .covariance = l, .precision = l).kind, 0);
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_multivariate_normal: give exactly one of");
        assert_int_equal(lg_dist_multivariate_normal(loc, .covariance = loc).kind, 0);
        assert_error(c, LG_ERR_SHAPE, "lg_dist_multivariate_normal: loc is");
        assert_int_equal(lg_dist_multivariate_normal(lg_zeros(c, LG_SHAPE_0D), .covariance = l).kind, 0);
        assert_error(c, LG_ERR_SHAPE, "lg_dist_multivariate_normal");
        lg_dist bad = lg_dist_multivariate_normal(loc, .covariance = lg_neg(lg_eye(c, 3, 3)));
        (void)bad;
        lg_synchronize(c);
        assert_error(c, LG_ERR_ARGUMENT, "cholesky: matrix 0 of the batch is not positive definite");
        assert_null(lg_dist_kl(lg_dist_multivariate_normal(loc, .scale_tril = l),
                               lg_dist_multivariate_normal(lg_zeros(c, LG_SHAPE(2)), .scale_tril = lg_eye(c, 2, 2))));
        assert_error(c, LG_ERR_SHAPE, "lg_dist_kl: p has vectors of 3 numbers, and q of 2");
        lg_close(c);
}

TEST_CASE(same_seed_same_samples)
{
        lg_ctx *c = open_ctx();
        lg_tensor *p = lg_from(c, ((double[]){0.2, 3, 70}), LG_SHAPE(3)), *first = NULL;
        for (int i = 0; i < 2; i++) {
                lg_seed(c, 3);
                lg_tensor *y = lg_cat(
                        LG_LIST(lg_standard_gamma(p), lg_poisson(p), lg_dist_sample(lg_dist_beta(p, p), LG_SHAPE_0D)),
                        0);
                assert_true(!first || lg_equal(first, y));
                first = y;
        }
        assert_list(lg_isnan(lg_standard_gamma(lg_neg(p))), 0, 1, 1, 1);
        assert_list(lg_isnan(lg_poisson(lg_neg(p))), 0, 1, 1, 1);
        assert_list(lg_poisson(lg_zeros_like(p)), 0, 0, 0, 0);
        assert_int_equal(lg_dtype_of(lg_poisson(lg_cast(p, LG_F16))), LG_F16);
        assert_int_equal(lg_dtype_of(lg_dist_mean(lg_dist_poisson(lg_cast(p, LG_BF16)))), LG_F32);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refusals)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3)), *four = lg_ones(c, LG_SHAPE(4)), *whole = lg_arange(c, 0, 3, 1);
        lg_dist d = lg_dist_normal(x, four);
        assert_int_equal(d.kind, 0);
        assert_error(c, LG_ERR_SHAPE, "lg_dist_normal");
        assert_null(lg_dist_sample(d, LG_SHAPE(2)));
        assert_null(lg_dist_log_prob(d, x));
        assert_null(lg_dist_entropy(d));
        assert_null(lg_dist_kl(d, lg_dist_normal(x, x)));
        assert_ok(c);
        assert_int_equal(lg_dist_gamma(x, NULL).kind, 0);
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_gamma: rate is NULL");
        assert_int_equal(lg_dist_beta(whole, x).kind, 0);
        assert_error(c, LG_ERR_DTYPE, "lg_dist_beta: concentration1 is");
        assert_int_equal(lg_dist_bernoulli(.logits = x, .probs = x).kind, 0);
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_bernoulli: .logits and .probs are given");
        assert_int_equal(lg_dist_bernoulli().kind, 0);
        assert_int_equal(lg_dist_binomial(0, .probs = x).kind, 0);
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_binomial: total_count is 0");
        assert_int_equal(lg_dist_dirichlet(lg_scalar(c, 1)).kind, 0);
        assert_error(c, LG_ERR_SHAPE, "lg_dist_dirichlet: concentration is");
        assert_int_equal(lg_dist_categorical(.logits = lg_scalar(c, 1)).kind, 0);
        assert_error(c, LG_ERR_SHAPE, "lg_dist_categorical: logits is");
        assert_null(lg_dist_entropy(lg_dist_poisson(x)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_entropy: there is no formula of the entropy of lg_dist_poisson()");
        assert_null(lg_dist_kl(lg_dist_normal(x, x), lg_dist_gamma(x, x)));
        assert_error(c, LG_ERR_ARGUMENT,
                     "lg_dist_kl: there is no formula for p, lg_dist_normal(), and q, lg_dist_gamma()");
        assert_null(lg_dist_kl(lg_dist_binomial(2, .probs = x), lg_dist_binomial(3, .probs = x)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_kl: total_count is 2 in p and 3 in q");
        assert_null(lg_dist_sample(lg_dist_normal(x, x), LG_SHAPE(-1)));
        assert_error(c, LG_ERR_SHAPE, "lg_dist_sample");
        assert_null(lg_dist_sample(lg_dist_normal(x, x), LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1)));
        assert_error(c, LG_ERR_SHAPE, "lg_dist_sample: a sample has 9 dimensions");
        assert_null(lg_dist_log_prob(lg_dist_normal(x, x), NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dist_log_prob: x is NULL");
        lg_close(c);
}
