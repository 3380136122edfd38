/* dist.h - probability distributions: samples, logarithms of densities, entropies, divergences.
 *
 * A distribution is a value, a struct with the tensors of its parameters, and there is nothing to free. Its parameters
 * are tensors of the scope; through them gradients flow from all functions below, except from lg_dist_sample().
 *
 *     lg_dist d = lg_dist_normal(mean, lg_exp(log_std));
 *     lg_tensor *action = lg_dist_sample(d, LG_SHAPE_0D);
 *     lg_tensor *loss = lg_neg(lg_mean(lg_mul(lg_dist_log_prob(d, action), advantage)));
 *
 * Parameters have float dtypes and broadcast to one shape, the batch; 16-bit floats are computed as f32. An element of
 * a batch is a number, except that the last dimension of the parameters of a Dirichlet, multinomial, diagonal or
 * multivariate normal distribution makes one vector. Parameters outside their range give NaN or infinite results.
 * Definitions and names are those of torch.distributions.
 *
 * If a parameter is NULL or does not fit, the error is set and the distribution's kind is 0: all functions of it return
 * NULL.
 */
#ifndef LG_DIST_H
#define LG_DIST_H

#include "grad/base.h"

LG_BEGIN

/* A distribution: made by the functions below; the members are private. */
typedef struct lg_dist {
        int kind;
        lg_tensor *p[3];
} lg_dist;

/* ---- of real numbers ---- */

LG_API lg_dist lg_dist_normal(lg_tensor *loc, lg_tensor *scale);  /* mean and standard deviation */
LG_API lg_dist lg_dist_uniform(lg_tensor *low, lg_tensor *high);  /* on [low, high) */
LG_API lg_dist lg_dist_laplace(lg_tensor *loc, lg_tensor *scale); /* density e^(-|x - loc| / scale) / (2 scale) */
LG_API lg_dist lg_dist_cauchy(lg_tensor *loc,
                              lg_tensor *scale); /* density 1 / (pi scale (1 + ((x - loc) / scale)^2)) */
LG_API lg_dist lg_dist_gumbel(lg_tensor *loc, lg_tensor *scale); /* loc - scale log(e) for an exponential number e */
LG_API lg_dist lg_dist_student_t(lg_tensor *df, lg_tensor *loc, lg_tensor *scale); /* loc + scale t, of df degrees */

/* ---- of positive numbers ---- */

LG_API lg_dist lg_dist_exponential(lg_tensor *rate);                               /* density rate e^(-rate x) */
LG_API lg_dist lg_dist_gamma(lg_tensor *concentration, lg_tensor *rate);           /* mean concentration / rate */
LG_API lg_dist lg_dist_chi2(lg_tensor *df);                                        /* lg_dist_gamma(df / 2, 1 / 2) */
LG_API lg_dist lg_dist_beta(lg_tensor *concentration1, lg_tensor *concentration0); /* on (0, 1) */
LG_API lg_dist lg_dist_log_normal(lg_tensor *loc, lg_tensor *scale);               /* e^x for a normal x */
LG_API lg_dist lg_dist_half_normal(lg_tensor *scale);                              /* |x| for a normal x of mean 0 */

/* ---- of vectors, along the last dimension ---- */

LG_API lg_dist lg_dist_dirichlet(lg_tensor *concentration); /* positive numbers whose sum is 1 */
/* Independent normal numbers: torch's Independent(Normal(loc, scale), 1). Parameters have one dimension or more. */
LG_API lg_dist lg_dist_diagonal_normal(lg_tensor *loc, lg_tensor *scale);

typedef struct lg_multivariate_normal_options {
        LG_OPTIONS_HEAD
        lg_tensor *covariance LG_DEFAULT; /* (..., n, n), symmetric and positive definite */
        lg_tensor *precision LG_DEFAULT;  /* the inverse of the covariance instead */
        lg_tensor *scale_tril LG_DEFAULT; /* the factor l of the covariance l l^T instead; its lower triangle is read */
} lg_multivariate_normal_options;
/* Makes a normal distribution of vectors of n numbers with mean loc (..., n) and exactly one of the matrices. Batches
 * broadcast. A matrix that is not positive definite is an error, as in lg_cholesky().
 * Example: lg_dist_multivariate_normal(x, .covariance = y) */
#define lg_dist_multivariate_normal(...)                                                                               \
        LG_CALL1(lg_dist_multivariate_normal_with, lg_multivariate_normal_options,                                     \
                 lg_dist_multivariate_normal_takes_loc, V, __VA_ARGS__)
LG_API lg_dist lg_dist_multivariate_normal_with(lg_tensor *loc, const lg_multivariate_normal_options *options);

/* ---- of whole numbers ---- */

LG_API lg_dist lg_dist_poisson(lg_tensor *rate); /* density rate^x e^-rate / x! */

/* The parameter of distributions of events, exactly one of both. */
typedef struct lg_logits_options {
        LG_OPTIONS_HEAD
        lg_tensor *logits
                LG_DEFAULT; /* log(p / (1 - p)), or logarithms of weights of classes, along the last dimension */
        lg_tensor *probs LG_DEFAULT; /* p, or weights of classes, which are divided by their sum */
} lg_logits_options;
/* Makes a distribution of 0 and 1, where p is the probability of 1.
 * Example: lg_dist_bernoulli(.logits = x) */
#define lg_dist_bernoulli(...) LG_CALL0(lg_dist_bernoulli_with, lg_logits_options, __VA_ARGS__)
LG_API lg_dist lg_dist_bernoulli_with(const lg_logits_options *options);

/* Makes a distribution of the number of failures before the first success, whose probability is p.
 * Example: lg_dist_geometric(.probs = x) */
#define lg_dist_geometric(...) LG_CALL0(lg_dist_geometric_with, lg_logits_options, __VA_ARGS__)
LG_API lg_dist lg_dist_geometric_with(const lg_logits_options *options);

/* Makes a distribution of class indices, i64, of logits or probs (..., classes). Its mean is NaN.
 * Example: lg_dist_categorical(.logits = x) */
#define lg_dist_categorical(...) LG_CALL0(lg_dist_categorical_with, lg_logits_options, __VA_ARGS__)
LG_API lg_dist lg_dist_categorical_with(const lg_logits_options *options);

/* Makes a distribution of the number of successes of total_count trials, 1 or more, of probability p each.
 * Example: lg_dist_binomial(10, .probs = x) */
#define lg_dist_binomial(...)                                                                                          \
        LG_CALL1(lg_dist_binomial_with, lg_logits_options, lg_dist_binomial_takes_total_count, I, __VA_ARGS__)
LG_API lg_dist lg_dist_binomial_with(int64_t total_count, const lg_logits_options *options);

/* Makes a distribution of how often each class is drawn in total_count draws, 1 or more: vectors of classes numbers.
 * Example: lg_dist_multinomial(10, .logits = x) */
#define lg_dist_multinomial(...)                                                                                       \
        LG_CALL1(lg_dist_multinomial_with, lg_logits_options, lg_dist_multinomial_takes_total_count, I, __VA_ARGS__)
LG_API lg_dist lg_dist_multinomial_with(int64_t total_count, const lg_logits_options *options);

/* ---- functions of a distribution ---- */

/* Draws samples of shape (shape..., batch...), or (shape..., batch..., n) for vectors of n numbers, with the context's
 * random generator; lg_dist_sample() has no gradient. lg_dist_rsample() has one by the parameters, and fails with
 * LG_ERR_ARGUMENT for whole numbers. Gradients of gamma, beta, chi2, Dirichlet and Student's t variates by their shapes
 * are of first order. Shape LG_SHAPE_0D draws one sample of each element.
 * Example: lg_dist_sample(lg_dist_normal(a, b), LG_SHAPE(16)) */
LG_API LG_NEW lg_tensor *lg_dist_sample(lg_dist d, lg_shape shape);
LG_API LG_NEW lg_tensor *lg_dist_rsample(lg_dist d, lg_shape shape);

/* Computes the logarithm of the density, or of the probability, at x, whose shape broadcasts with that of a sample. */
LG_API LG_NEW lg_tensor *lg_dist_log_prob(lg_dist d, lg_tensor *x);

/* Compute, for each element of the batch, the entropy in nats, the mean and the variance. There is no entropy of the
 * Poisson distribution. */
LG_API LG_NEW lg_tensor *lg_dist_entropy(lg_dist d);
LG_API LG_NEW lg_tensor *lg_dist_mean(lg_dist d);
LG_API LG_NEW lg_tensor *lg_dist_variance(lg_dist d);

/* Computes the Kullback-Leibler divergence KL(p || q), the mean of log(p(x) / q(x)) over x drawn from p, of two
 * distributions of the same kind; binomial ones have the same total_count. Fails for multinomial and Student's t
 * distributions. */
LG_API LG_NEW lg_tensor *lg_dist_kl(lg_dist p, lg_dist q);

/* ---- random numbers with the parameters in a tensor ----
 *
 * The result has the shape and the dtype of x, a float dtype, and depends only on the seed, not on the layout.
 */

/* Draws gamma variates of the shapes in x and of rate 1; NaN where a shape is below 0. The gradient by the shape is of
 * first order (PyTorch's _standard_gamma); a second derivative is LG_ERR_STATE. */
LG_API LG_NEW lg_tensor *lg_standard_gamma(lg_tensor *x);

/* Draws Poisson variates of the rates in x, without a gradient; NaN where a rate is below 0. */
LG_API LG_NEW lg_tensor *lg_poisson(lg_tensor *x);

typedef struct lg_gumbel_softmax_options {
        LG_OPTIONS_HEAD
        double tau LG_DEFAULT; /* temperature, above 0; default 1 */
        bool hard LG_DEFAULT;  /* gives one-hot vectors with the gradient of the soft ones; default false */
} lg_gumbel_softmax_options;
/* Computes softmax((x + g) / tau) along dim for random numbers g of the Gumbel distribution: a differentiable draw of a
 * class (Jang et al. 2016; PyTorch's F.gumbel_softmax, where dim is -1 by default).
 * Example: lg_gumbel_softmax(x, -1, .tau = 0.5, .hard = true) */
#define lg_gumbel_softmax(...)                                                                                         \
        LG_CALL2(lg_gumbel_softmax_with, lg_gumbel_softmax_options, lg_gumbel_softmax_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_gumbel_softmax_with(lg_tensor *x, int dim, const lg_gumbel_softmax_options *options);

LG_END_C
#endif
