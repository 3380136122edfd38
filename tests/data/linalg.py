"""linalg.py - writes linalg.txt: factorisations, systems of equations and determinants, as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/linalg.py > tests/data/linalg.txt
"""
import torch
from golden import show, tensor

L = torch.linalg


def near(x):
    """x with a diagonal that makes it regular."""
    return x + 3 * torch.eye(*x.shape[-2:], dtype=x.dtype)


def positive(x):
    return x @ x.mT + torch.eye(x.shape[-2], dtype=x.dtype)


def factors(x):
    x = near(x)
    p, l, u = L.lu(x)
    k = min(x.shape[-2:])
    square = torch.tril(l, -1)
    wide = torch.zeros_like(x)
    wide = torch.cat([square, wide[..., k:]], -1) if x.shape[-1] > k else square
    tall = torch.cat([u, torch.zeros_like(x)[..., k:, :]], -2) if x.shape[-2] > k else u
    return wide + tall


M, B, Q = tensor(4, 4), tensor(2, 3, 3), tensor(2, 2, 5, 5)
show("cholesky", lambda x: L.cholesky(positive(x)), M)
show("cholesky_batch", lambda x: L.cholesky(positive(x)), tensor(2, 3, 5))
show("cholesky_upper", lambda x: L.cholesky(positive(x), upper=True), B)
show("cholesky_solve", lambda x: torch.cholesky_solve(tensor(4, 2, phase=0.5), L.cholesky(positive(x))), M)
show("cholesky_solve_b", lambda x: torch.cholesky_solve(x, L.cholesky(positive(tensor(3, 3))).mT, upper=True), tensor(2, 3, 2))
show("solve", lambda x: L.solve(near(x), tensor(4, 3, phase=0.5)), M)
show("solve_vector", lambda x: L.solve(near(x), tensor(4, phase=0.5)), M)
show("solve_vectors", lambda x: L.solve(near(x), tensor(2, 3, phase=0.5)), B)
show("solve_batch", lambda x: L.solve(near(x), tensor(2, 3, 1, phase=0.5)), B)
show("solve_broadcast", lambda x: L.solve(near(x), tensor(3, 2, phase=0.5)), B)
show("solve_broadcast_a", lambda x: L.solve(near(x), tensor(2, 1, 5, 2, phase=0.5)), tensor(2, 5, 5))
show("solve_b", lambda x: L.solve(near(tensor(3, 3, phase=0.5)), x), tensor(2, 3, 2))
show("solve_b_vector", lambda x: L.solve(near(tensor(3, 3, phase=0.5)), x), tensor(3))
show("triangular", lambda x: L.solve_triangular(near(x), tensor(4, 3, phase=0.5), upper=False), M)
show("triangular_upper", lambda x: L.solve_triangular(near(x), tensor(4, 3, phase=0.5), upper=True), M)
show("triangular_unit", lambda x: L.solve_triangular(x, tensor(3, 2, phase=0.5), upper=False, unitriangular=True), B)
show("triangular_transposed", lambda x: L.solve_triangular(near(x).mT, tensor(3, 2, phase=0.5), upper=True), B)
show("triangular_upper_transposed", lambda x: L.solve_triangular(near(x).mT, tensor(3, 2, phase=0.5), upper=False), B)
show("triangular_right", lambda x: L.solve_triangular(near(x), tensor(2, 3, phase=0.5), upper=True, left=False), B)
show("triangular_b", lambda x: L.solve_triangular(near(tensor(2, 1, 3, 3)), x, upper=False), tensor(2, 3, 2))
show("lu", factors, M)
show("lu_batch", factors, Q)
show("lu_wide", factors, tensor(2, 3, 5))
show("lu_tall", factors, tensor(2, 5, 3))
show("lu_l", lambda x: L.lu(near(x))[1], tensor(5, 3))
show("lu_u", lambda x: L.lu(near(x))[2], tensor(3, 5))
show("lu_solve", lambda x: L.lu_solve(*L.lu_factor(near(x)), tensor(3, 2, phase=0.5)), B)
show("lu_solve_transposed", lambda x: L.lu_solve(*L.lu_factor(near(x)), tensor(3, 2, phase=0.5), adjoint=True), B)
show("inverse", lambda x: L.inv(near(x)), M)
show("inverse_batch", lambda x: L.inv(near(x)), Q)
show("inverse_1", lambda x: L.inv(near(x)), tensor(3, 1, 1))
show("det", lambda x: L.det(near(x)), M)
show("det_batch", lambda x: L.det(near(x)), Q)
show("det_0", lambda x: L.det(x), tensor(3, 0, 0))
show("slogdet", lambda x: torch.stack(tuple(L.slogdet(near(x)))), Q)
show("logdet", lambda x: torch.logdet(near(x)), tensor(2, 2, 3, 3))
