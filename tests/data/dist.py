"""dist.py - writes dist.txt: what torch.distributions makes of fixed values, in f64.

Run with a Python that has torch: python3 tests/data/dist.py > tests/data/dist.txt
"""
import torch
import torch.distributions as D
from golden import Digamma, show, tensor

X = tensor(3, 4)
Y = tensor(3, 4, phase=0.7)
P = X * X + 0.5
COUNTS = torch.tensor([0, 1, 2, 3, 0, 5, 2, 1, 4, 0, 1, 2], dtype=torch.float64).reshape(3, 4)


def flat(*parts):
    return torch.cat([p.reshape(-1) for p in parts])


def everything(d, q, value, what="lemvk"):
    """log_prob, entropy, mean, variance, KL(d || q), in a row."""
    return flat(*[{"l": lambda: d.log_prob(value), "e": d.entropy, "m": lambda: d.mean, "v": lambda: d.variance,
                   "k": lambda: D.kl_divergence(d, q)}[part]() for part in what])


def plus(x, s):
    return x * x + s


def softer(x):
    return torch.sigmoid(x) * 0.9 + 0.05


torch.digamma = torch.Tensor.digamma = lambda x: Digamma.apply(x)
D.Distribution.set_default_validate_args(False)
B = torch.sigmoid(Y)
show("normal", lambda x: everything(D.Normal(x, plus(x, 0.5)), D.Normal(Y, P), Y), X)
show("uniform", lambda x: everything(D.Uniform(x, x + P), D.Uniform(X - 3, X + 7), X + 0.25), X)
show("laplace", lambda x: everything(D.Laplace(x, plus(x, 0.5)), D.Laplace(Y, P), Y), X)
show("cauchy", lambda x: everything(D.Cauchy(x, plus(x, 0.5)), D.Cauchy(Y, P), Y, "lek"), X)
show("gumbel", lambda x: everything(D.Gumbel(x, plus(x, 1)), D.Gumbel(Y, P + 1), Y), X)
show("student_t", lambda x: everything(D.StudentT(plus(x, 2.5), x, plus(x, 0.5)), None, Y, "lemv"), X)
show("exponential", lambda x: everything(D.Exponential(plus(x, 0.5)), D.Exponential(P), P), X)
show("gamma", lambda x: everything(D.Gamma(plus(x, 0.5), plus(x, 0.7)), D.Gamma(P, Y * Y + 0.1), P), X)
show("chi2", lambda x: everything(D.Chi2(plus(x, 0.5)), D.Gamma(P, Y * Y + 0.1), P), X)
show("beta", lambda x: everything(D.Beta(plus(x, 0.5), plus(x, 0.7)), D.Beta(P, Y * Y + 0.1), B), X)
show("log_normal", lambda x: everything(D.LogNormal(x, plus(x, 0.5) / 4), D.LogNormal(Y, P), P), X)
show("half_normal", lambda x: everything(D.HalfNormal(plus(x, 0.5)), D.HalfNormal(P), P), X)
show("dirichlet", lambda x: everything(D.Dirichlet(plus(x, 0.5)), D.Dirichlet(P), B / B.sum(-1, keepdim=True)), X)
show("diagonal_normal", lambda x: everything(D.Independent(D.Normal(x, plus(x, 0.5)), 1), D.Independent(D.Normal(Y, P), 1), Y), X)
W, ONE = tensor(4, 4, phase=0.3), torch.eye(4, dtype=torch.float64)
V = D.MultivariateNormal(Y, W @ W.mT + ONE)
show("multivariate", lambda x: everything(D.MultivariateNormal(x, x.unsqueeze(-1) * x.unsqueeze(-2) + ONE), V, Y), X)
show("multivariate_precision", lambda x: everything(D.MultivariateNormal(Y, precision_matrix=x.mT @ x + ONE), V, Y), X)
show("multivariate_scale_tril", lambda x: everything(D.MultivariateNormal(x, scale_tril=W.tril() + 3 * ONE), V, Y), X)
show("poisson", lambda x: everything(D.Poisson(plus(x, 0.5)), D.Poisson(P), COUNTS, "lmvk"), X)
show("bernoulli", lambda x: everything(D.Bernoulli(logits=x), D.Bernoulli(logits=Y), (COUNTS > 1).double()), X)
show("bernoulli_probs", lambda x: everything(D.Bernoulli(softer(x)), D.Bernoulli(B), (COUNTS > 1).double()), X)
show("geometric", lambda x: everything(D.Geometric(logits=x), D.Geometric(logits=Y), COUNTS), X)
show("geometric_probs", lambda x: everything(D.Geometric(softer(x)), D.Geometric(B), COUNTS), X)
show("binomial", lambda x: everything(D.Binomial(7, logits=x), D.Binomial(7, logits=Y), COUNTS), X)
show("binomial_probs", lambda x: everything(D.Binomial(7, softer(x)), D.Binomial(7, B), COUNTS), X)
show("categorical", lambda x: everything(D.Categorical(logits=x), D.Categorical(logits=Y), COUNTS[:, 1].clamp(max=3), "lek"), X)
show("categorical_probs", lambda x: everything(D.Categorical(plus(x, 0.1)), D.Categorical(P), COUNTS[:, 1].clamp(max=3), "lek"), X)
show("multinomial", lambda x: everything(D.Multinomial(6, logits=x), None, COUNTS, "lemv"), X)
show("multinomial_probs", lambda x: everything(D.Multinomial(6, plus(x, 0.1)), None, COUNTS, "lemv"), X)
