/* kinds.c - the functions of each kind of distribution: those of kinds.def, and those with longer formulas. */
#include "dist_kinds.h"
#include "words.h"

/* ---- random numbers of a shape, in the dtype of the parameter ---- */

static lg_tensor *uniforms(const lg_tensor *like, lg_shape s)
{
        return lg_uniform(like->ctx, 0, 1, s, .dtype = LG_F64, .device = like->storage->device->id);
}

static lg_tensor *exponentials(const lg_tensor *like, lg_shape s)
{
        lg_tensor *u = uniforms(like, s);
        return u ? lg_cast(lg_maximum_scalar(lg_neg(lg_log1p(lg_neg(u))), 0x1p-54), like->at.dtype) : NULL;
}

/* Differences of two exponential numbers. */
static lg_tensor *laplaces(const lg_tensor *like, lg_shape s)
{
        lg_tensor *a = exponentials(like, s), *b = exponentials(like, s);
        return lg_sub(a, b);
}

#define A a
static lg_tensor *dirichlet(lg_tensor *a)
{
        lg_tensor *y = lg_standard_gamma(a);
        return DIV(y, LINE_TOTAL(y));
}

static lg_tensor *beta(lg_tensor *a, lg_tensor *b)
{
        lg_tensor *x = lg_standard_gamma(a), *y = lg_standard_gamma(b);
        return DIV(x, ADD(x, y));
}

/* z sqrt(df / chi2) for a normal number z and a chi2 number of df degrees, twice a gamma number of shape df / 2. */
static lg_tensor *student_t(lg_tensor *a)
{
        lg_tensor *z = lg_normal_like(a, 0, 1), *half = MUL(K(0.5), a), *g = z ? lg_standard_gamma(half) : NULL;
        return g ? MUL(z, lg_sqrt(DIV(half, g))) : NULL;
}

/* ---- longer formulas ---- */

static lg_tensor *student_t_log_prob(lg_tensor *a, lg_tensor *y, lg_tensor *scale)
{
        lg_tensor *half = MUL(K(0.5), a), *more = lg_add_scalar(half, 0.5);
        lg_tensor *z = ADD(ADD(LOG(scale), MUL(K(0.5), LOG(MUL(K(LG_PI), a)))), SUB(LGAMMA(half), LGAMMA(more)));
        return NEG(ADD(MUL(more, LOG1P(DIV(SQUARE(y), a))), z));
}

static lg_tensor *student_t_entropy(lg_tensor *a, lg_tensor *scale)
{
        lg_tensor *half = MUL(K(0.5), a), *more = lg_add_scalar(half, 0.5);
        lg_tensor *slope = MUL(more, SUB(DIGAMMA(more), DIGAMMA(half)));
        return ADD(ADD(LOG(scale), slope), ADD(MUL(K(0.5), LOG(a)), LOG_BETA(K(0.5), half)));
}

static lg_tensor *beta_entropy(lg_tensor *a, lg_tensor *b)
{
        lg_tensor *both = ADD(a, b);
        lg_tensor *parts = ADD(MUL(SUB(a, K(1)), DIGAMMA(a)), MUL(SUB(b, K(1)), DIGAMMA(b)));
        return ADD(SUB(LOG_BETA(a, b), parts), MUL(SUB(both, K(2)), DIGAMMA(both)));
}

static lg_tensor *dirichlet_entropy(lg_tensor *a)
{
        lg_tensor *all = TOTAL(a), *count = K((double)a->at.shape.size[a->at.shape.ndim - 1]);
        lg_tensor *log_beta = SUB(TOTAL(LGAMMA(a)), LGAMMA(all));
        return SUB(SUB(log_beta, MUL(SUB(count, all), DIGAMMA(all))), TOTAL(MUL(SUB(a, K(1)), DIGAMMA(a))));
}

static lg_tensor *dirichlet_variance(lg_tensor *a)
{
        lg_tensor *all = LINE_TOTAL(a), *mean = DIV(a, all);
        return DIV(MUL(mean, ONE_MINUS(mean)), ONE_PLUS(all));
}

/* Probability of x successes in n trials with logits a: n! / (x! (n - x)!) p^x (1 - p)^(n - x). */
static lg_tensor *binomial_log_prob(lg_tensor *a, double n, lg_tensor *x)
{
        lg_tensor *choices = SUB(LGAMMA(K(n + 1)), ADD(LGAMMA(ONE_PLUS(x)), LGAMMA(SUB(K(n + 1), x))));
        return ADD(choices, ADD(MUL(x, a), MUL(K(n), LOG_SIGMOID(NEG(a)))));
}

/* Returns first, first + 1, ..., n along a new last dimension of a. */
static lg_tensor *counts_to(const lg_tensor *a, double first, double n)
{
        return lg_arange(a->ctx, first, n + 1, 1, .dtype = a->at.dtype, .device = a->storage->device->id);
}

static lg_tensor *binomial_entropy(lg_tensor *a, double n)
{
        lg_tensor *x = counts_to(a, 0, n), *p = x ? binomial_log_prob(lg_unsqueeze(a, -1), n, x) : NULL;
        return p ? NEG(TOTAL(MUL(EXP(p), p))) : NULL;
}

/* Adds the mean of log(x!) for the count x of each class, which has a binomial distribution. */
static lg_tensor *multinomial_entropy(lg_tensor *a, lg_tensor *probs, double n)
{
        lg_tensor *logits = lg_unsqueeze(SUB(a, LOG1P(NEG(probs))), -1), *x = logits ? counts_to(a, 1, n) : NULL;
        lg_tensor *p = x ? EXP(binomial_log_prob(logits, n, x)) : NULL;
        lg_tensor *one = p ? SUB(MUL(K(-n), TOTAL(MUL(a, probs))), LGAMMA(K(n + 1))) : NULL;
        return one ? ADD(one, TOTAL(TOTAL(MUL(p, LGAMMA(ONE_PLUS(x)))))) : NULL;
}

static lg_tensor *multinomial_log_prob(lg_tensor *a, lg_tensor *x)
{
        lg_tensor *never = lg_logical_and(EQ(x, K(0)), EQ(a, K(-INFINITY)));
        lg_tensor *terms = SUB(MUL(SELECT(never, K(0), a), x), LGAMMA(ONE_PLUS(x)));
        return ADD(LGAMMA(ONE_PLUS(TOTAL(x))), TOTAL(terms));
}

static lg_tensor *categorical_log_prob(lg_tensor *a, lg_tensor *x)
{
        lg_tensor *index = lg_unsqueeze(lg_cast(x, LG_I64), -1);
        lg_shape s, line = a->at.shape;
        if (!index)
                return NULL;
        line.size[line.ndim - 1] = 1;
        if (!lg__broadcast(a->ctx, "lg_dist_log_prob", index->at.shape, line, &s))
                return NULL;
        index = lg_expand(index, s);
        s.size[s.ndim - 1] = a->at.shape.size[a->at.shape.ndim - 1];
        return lg_squeeze(lg_gather(lg_expand(a, s), -1, index), LG_DIMS(-1));
}
#undef A

/* ---- draws of classes ---- */

/* Draws n classes for each row of probs (..., classes): (rows, n). */
static lg_tensor *draw_classes(const lg_dist *d, int64_t n)
{
        lg_tensor *probs = d->p[1];
        const int64_t classes = probs->at.shape.size[probs->at.shape.ndim - 1];
        const int64_t rows = classes ? lg__shape_numel(probs->at.shape) / classes : 0;
        return lg_multinomial(lg_reshape(probs, LG_SHAPE(rows, classes)), n, .replacement = true);
}

/* Returns the product of the sizes of s before its last `batch` ones. */
static int64_t draws_of(lg_shape s, int batch)
{
        s.ndim -= batch;
        return lg__shape_numel(s);
}

static lg_tensor *draw_categorical(const lg_dist *d, lg_shape s)
{
        const int64_t n = draws_of(s, d->p[1]->at.shape.ndim - 1);
        return lg_reshape(lg_transpose(draw_classes(d, n), 0, 1), s);
}

/* Counts the classes of `trials` draws for each vector. */
static lg_tensor *draw_multinomial(const lg_dist *d, lg_shape s)
{
        const int64_t trials = lg_numel(d->p[2]), n = draws_of(s, d->p[1]->at.shape.ndim);
        int64_t all;
        if (__builtin_mul_overflow(n, trials, &all))
                return lg__fail(d->p[1]->ctx, LG_ERR_SHAPE, "lg_dist_sample: %lld times %lld draws are too many",
                                (long long)n, (long long)trials);
        lg_tensor *drawn = draw_classes(d, all);
        if (!drawn || lg__shape_numel(s) == 0)
                return drawn ? lg_zeros(drawn->ctx, s, .dtype = d->p[1]->at.dtype, .device = lg_device_of(drawn))
                             : NULL;
        const int64_t rows = drawn->at.shape.size[0];
        lg_tensor *index = lg_permute(lg_reshape(drawn, LG_SHAPE(rows, n, trials)), LG_DIMS(1, 0, 2));
        lg_tensor *none = lg_zeros(drawn->ctx, LG_SHAPE(n, rows, s.size[s.ndim - 1]), .dtype = d->p[1]->at.dtype,
                                   .device = lg_device_of(drawn));
        lg_tensor *ones = none ? lg_expand(lg__constant(none, 1), LG_SHAPE(n, rows, trials)) : NULL;
        return ones ? lg_reshape(lg_scatter_add(none, 2, index, ones), s) : NULL;
}

/* Draws the number of n uniform numbers that are below p, in about log2(n) rounds (Devroye, 1986): the number of rank i
 * of n, about the middle one, has a beta distribution. Either it is below p, and so are the i least, and those above it
 * remain; or those below it remain. */
static lg_tensor *draw_binomial(const lg_dist *d, lg_shape s)
{
        lg_tensor *p = lg_cast(lg_expand(d->p[1], s), LG_F64), *k = p ? lg_zeros_like(p) : NULL;
        lg_tensor *n =
                k ? lg_full(k->ctx, s, (double)lg_numel(d->p[2]), .dtype = LG_F64, .device = lg_device_of(k)) : NULL;
        for (int64_t most = lg_numel(d->p[2]); most > 0 && n; most /= 2) {
                lg_tensor *rank = lg_floor(lg_mul_scalar(lg_add_scalar(n, 1), 0.5)), *above = lg_sub(n, rank);
                lg_tensor *middle = rank ? beta(lg_maximum_scalar(rank, 1), lg_add_scalar(above, 1)) : NULL;
                lg_tensor *hit = middle ? lg_le(middle, p) : NULL;
                lg_tensor *part =
                        lg_where(hit, lg_div(lg_sub(p, middle), lg_rsub_scalar(middle, 1)), lg_div(p, middle));
                k = lg_where(hit, lg_add(k, rank), k);
                n = lg_where(hit, above, lg_maximum_scalar(lg_sub_scalar(rank, 1), 0));
                p = part;
        }
        return n ? lg_cast(k, d->p[1]->at.dtype) : NULL;
}

/* ---- the table ---- */

#define A d->p[0]
#define B d->p[1]
#define C d->p[2]
#define X x
#define TRIALS ((double)lg_numel(d->p[2]))
#define NORMALS lg_normal(A->ctx, 0, 1, s, .dtype = A->at.dtype, .device = A->storage->device->id)
#define UNIFORMS lg_uniform(A->ctx, 0, 1, s, .dtype = A->at.dtype, .device = A->storage->device->id)
#define EXPONENTIALS exponentials(A, s)
#define LAPLACES laplaces(A, s)
#define DRAW(f, a) f(lg_expand(a, s))
#define DRAW2(f, a, b) f(lg_expand(a, s), lg_expand(b, s))
#define DEFINE(name, value)                                                                                            \
        static lg_tensor *name(const lg_dist *d)                                                                       \
        {                                                                                                              \
                (void)d;                                                                                               \
                return value;                                                                                          \
        }
#define NONE NULL
#define KIND(name, vectors, draws, sample, log_prob, entropy, mean, variance)                                          \
        static lg_tensor *sample_##name(const lg_dist *d, lg_shape s)                                                  \
        {                                                                                                              \
                return sample;                                                                                         \
        }                                                                                                              \
        static lg_tensor *log_prob_##name(const lg_dist *d, lg_tensor *x)                                              \
        {                                                                                                              \
                return log_prob;                                                                                       \
        }                                                                                                              \
        DEFINE(entropy_##name, entropy)                                                                                \
        DEFINE(mean_##name, mean)                                                                                      \
        DEFINE(variance_##name, variance)
#include "kinds.def"

#define SAMPLE false
#define RSAMPLE true
#define KIND(name, vectors, draws, ...)                                                                                \
        [LG__DIST_##name] = {#name,           vectors,        draws,       sample_##name,                              \
                             log_prob_##name, entropy_##name, mean_##name, variance_##name},
const lg__dist_kind lg__dist_kinds[LG__DIST_COUNT] = {
#include "kinds.def"
};
