"""factorizations.py - writes factorizations.txt: orthogonal factors, eigenvalues, singular values and what is made of
them, as PyTorch computes them in f64. Signs that are arbitrary are made those of R's diagonal, or vectors are squared.

Run with a Python that has torch: python3 tests/data/factorizations.py > tests/data/factorizations.txt
"""
import torch
from golden import show, tensor

LA = torch.linalg


def apart(x):
    """A matrix of full rank, whose singular values are apart."""
    return (x * 0.5).exp()


def regular(x):
    """A matrix whose inverse or pseudo-inverse f32 computes well."""
    return apart(x) + 3 * torch.eye(*x.shape[-2:], dtype=torch.float64)


def flat(*parts):
    return torch.cat([p.reshape(-1) for p in parts])


def qr(x, mode="reduced"):
    q, r = LA.qr(apart(x), mode)
    s = r.detach().diagonal(dim1=-2, dim2=-1).sign()
    k = s.shape[-1]
    return flat(q[..., :k] * s.unsqueeze(-2), r[..., :k, :] * s.unsqueeze(-1))


def cond(a, order):
    """PyTorch's cond of other orders than 2 fails in the backward pass."""
    if abs(order) == 2:
        return LA.cond(a, order)
    return LA.matrix_norm(a, order) * LA.matrix_norm(LA.inv(a), order)


def symmetric(x):
    a = apart(x)
    return a + a.mT


def eigh(x):
    w, v = LA.eigh(symmetric(x))
    return flat(w, v * v)


def svd(x):
    u, s, vt = LA.svd(apart(x), full_matrices=False)
    return flat(u * u, s, vt * vt, u @ vt)


SQUARE, TALL, WIDE, BATCH = tensor(4, 4), tensor(5, 3), tensor(3, 5), tensor(2, 1, 4, 3)

for name, x in ("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("batch", BATCH):
    show("qr_" + name, qr, x)
    show("svd_" + name, svd, x)
    show("svdvals_" + name, lambda x: LA.svdvals(apart(x)), x)
    show("pinv_" + name, lambda x: LA.pinv(regular(x)), x)
show("qr_complete", lambda x: qr(x, "complete"), WIDE)
for name, x in ("square", SQUARE), ("batch", tensor(2, 3, 3)):
    show("eigh_" + name, eigh, x)
    show("eigvalsh_" + name, lambda x: LA.eigvalsh(symmetric(x)), x)
    show("pinv_hermitian_" + name, lambda x: LA.pinv(regular(x) + regular(x).mT, hermitian=True), x)
show("pinv_rank_2", lambda x: LA.pinv(x, rtol=1e-8), tensor(4, 5))
show("lstsq_tall", lambda x: LA.lstsq(regular(x), tensor(5, 2, phase=0.7)).solution, TALL)
show("lstsq_wide", lambda x: LA.lstsq(regular(x), tensor(3, 2, phase=0.7)).solution, WIDE)
show("lstsq_right", lambda x: LA.lstsq(regular(TALL), x).solution, tensor(5, 2, phase=0.7))
show("lstsq_rank_2", lambda x: LA.pinv(x, rtol=1e-8) @ tensor(4, 2, phase=0.7), tensor(4, 5))
for name, order in ("fro", "fro"), ("nuc", "nuc"), ("1", 1), ("2", 2), ("inf", float("inf")), ("_1", -1), ("_2", -2), ("_inf", -float("inf")):
    show("norm_" + name, lambda x: LA.matrix_norm(apart(x), order), BATCH)
    if name != "fro" and name != "nuc":
        show("cond_" + name, lambda x: cond(apart(x), order), tensor(2, 3, 3))
show("exp_small", lambda x: LA.matrix_exp(x * 0.1), SQUARE)
show("exp_large", lambda x: LA.matrix_exp(x * torch.tensor([0.3, 4.0], dtype=torch.float64).reshape(2, 1, 1)), tensor(2, 3, 3))
show("power_5", lambda x: LA.matrix_power(x * 0.5, 5), SQUARE)
show("power__2", lambda x: LA.matrix_power(apart(x), -2), SQUARE)
