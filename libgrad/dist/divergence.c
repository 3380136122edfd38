/* divergence.c - Kullback-Leibler divergences KL(p || q) of two distributions of one kind, by torch.distributions.kl.
 */
#include "dist_kinds.h"
#include "words.h"

/* Parameters of p and of q. */
#define A p->p[0]
#define B p->p[1]
#define C q->p[0]
#define D q->p[1]
#define PAIR const lg_dist *p, const lg_dist *q

static lg_tensor *kl_normal(PAIR)
{
        lg_tensor *ratio = SQUARE(DIV(B, D)), *gap = SQUARE(DIV(SUB(A, C), D));
        return MUL(K(0.5), SUB(ADD(ratio, gap), ADD(K(1), LOG(ratio))));
}

static lg_tensor *kl_diagonal_normal(PAIR)
{
        return TOTAL(kl_normal(p, q));
}

static lg_tensor *kl_uniform(PAIR)
{
        lg_tensor *inside = AND(LE(C, A), GE(D, B)), *y = LOG(DIV(SUB(D, C), SUB(B, A)));
        return SELECT(inside, y, K(INFINITY));
}

static lg_tensor *kl_laplace(PAIR)
{
        lg_tensor *ratio = DIV(B, D), *gap = ABS(SUB(A, C));
        return ADD(SUB(SUB(DIV(gap, D), LOG(ratio)), K(1)), MUL(ratio, EXP(NEG(DIV(gap, B)))));
}

static lg_tensor *kl_cauchy(PAIR)
{
        return LOG(DIV(ADD(SQUARE(ADD(B, D)), SQUARE(SUB(A, C))), MUL(K(4), MUL(B, D))));
}

static lg_tensor *kl_gumbel(PAIR)
{
        lg_tensor *ratio = DIV(B, D), *gap = DIV(SUB(C, A), D);
        lg_tensor *rest = EXP(ADD(gap, LGAMMA(ONE_PLUS(ratio))));
        return ADD(SUB(SUB(MUL(ratio, K(LG_EULER)), LOG(ratio)), gap), SUB(rest, K(1 + LG_EULER)));
}

static lg_tensor *kl_exponential(PAIR)
{
        lg_tensor *ratio = DIV(C, A);
        return SUB(SUB(ratio, LOG(ratio)), K(1));
}

static lg_tensor *kl_half_normal(PAIR)
{
        lg_tensor *ratio = SQUARE(DIV(A, C));
        return MUL(K(0.5), SUB(ratio, ADD(K(1), LOG(ratio))));
}

static lg_tensor *kl_gamma(PAIR)
{
        lg_tensor *rates = ADD(MUL(C, LOG(DIV(B, D))), SUB(LGAMMA(C), LGAMMA(A)));
        return ADD(ADD(rates, MUL(SUB(A, C), DIGAMMA(A))), MUL(SUB(D, B), DIV(A, B)));
}

static lg_tensor *kl_beta(PAIR)
{
        lg_tensor *both = ADD(A, B), *betas = SUB(LOG_BETA(C, D), LOG_BETA(A, B));
        lg_tensor *slopes = ADD(MUL(SUB(A, C), DIGAMMA(A)), MUL(SUB(B, D), DIGAMMA(B)));
        return ADD(ADD(betas, slopes), MUL(SUB(ADD(C, D), both), DIGAMMA(both)));
}

static lg_tensor *kl_dirichlet(PAIR)
{
        lg_tensor *all = LINE_TOTAL(A), *whole = SUB(LGAMMA(TOTAL(A)), LGAMMA(TOTAL(C)));
        lg_tensor *slopes = MUL(SUB(A, C), SUB(DIGAMMA(A), DIGAMMA(all)));
        return ADD(whole, TOTAL(ADD(SUB(LGAMMA(C), LGAMMA(A)), slopes)));
}

static lg_tensor *kl_poisson(PAIR)
{
        return SUB(SUB(XLOGY(A, A), XLOGY(A, C)), SUB(A, C));
}

/* Divergence of distributions with logits A, C and probabilities B, D. */
static lg_tensor *kl_bernoulli(PAIR)
{
        lg_tensor *yes = MUL(B, SUB(LOG_SIGMOID(A), LOG_SIGMOID(C)));
        lg_tensor *no = MUL(ONE_MINUS(B), SUB(LOG_SIGMOID(NEG(A)), LOG_SIGMOID(NEG(C))));
        return ADD(yes, no);
}

static lg_tensor *kl_geometric(PAIR)
{
        return DIV(kl_bernoulli(p, q), B);
}

static lg_tensor *kl_binomial(PAIR)
{
        const int64_t trials = lg_numel(p->p[2]);
        if (trials == lg_numel(q->p[2]))
                return MUL(K((double)trials), kl_bernoulli(p, q));
        return lg__fail(A->ctx, LG_ERR_ARGUMENT,
                        "lg_dist_kl: total_count is %lld in p and %lld in q; it must be the same", (long long)trials,
                        (long long)lg_numel(q->p[2]));
}

static lg_tensor *kl_categorical(PAIR)
{
        return TOTAL(SELECT(EQ(B, K(0)), K(0), MUL(B, SUB(A, C))));
}
#undef A

static lg_tensor *(*const divergences[LG__DIST_COUNT])(PAIR) = {
        [LG__DIST_normal] = kl_normal,
        [LG__DIST_uniform] = kl_uniform,
        [LG__DIST_laplace] = kl_laplace,
        [LG__DIST_cauchy] = kl_cauchy,
        [LG__DIST_gumbel] = kl_gumbel,
        [LG__DIST_exponential] = kl_exponential,
        [LG__DIST_gamma] = kl_gamma,
        [LG__DIST_beta] = kl_beta,
        [LG__DIST_log_normal] = kl_normal,
        [LG__DIST_half_normal] = kl_half_normal,
        [LG__DIST_dirichlet] = kl_dirichlet,
        [LG__DIST_diagonal_normal] = kl_diagonal_normal,
        [LG__DIST_multivariate_normal] = lg__multivariate_normal_kl,
        [LG__DIST_poisson] = kl_poisson,
        [LG__DIST_bernoulli] = kl_bernoulli,
        [LG__DIST_geometric] = kl_geometric,
        [LG__DIST_binomial] = kl_binomial,
        [LG__DIST_categorical] = kl_categorical,
};

lg_tensor *lg__dist_divergence(const lg_dist *p, const lg_dist *q)
{
        return divergences[p->kind] ? divergences[p->kind](p, q) : NULL;
}
