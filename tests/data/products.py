"""products.py - writes products.txt: Einstein summation, products and distances, as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/products.py > tests/data/products.txt
"""
import math

import torch
import torch.nn.functional as F
from golden import show, tensor

M = tensor(3, 4)
B = tensor(2, 3, 4)
Q = tensor(2, 2, 3, 4)
V = tensor(5)


def einsum(name, equation, x, *others):
    show("einsum_" + name, lambda t: torch.einsum(equation, *[t if o is None else o for o in others or (None,)]), x)


einsum("product", "ij,jk->ik", M, None, tensor(4, 2, phase=0.5))
einsum("implicit", "ij,jk", M, None, tensor(4, 2, phase=0.5))
einsum("turned", "ij,jk->ki", M, None, tensor(4, 2, phase=0.5))
einsum("scores", "bhid,bhjd->bhij", Q, None, tensor(2, 2, 5, 4, phase=0.5))
einsum("values", "bhij,bjhd->bihd", Q, None, tensor(2, 4, 2, 3, phase=0.5))
einsum("itself", "ij,kj->ik", M, None, None)
einsum("transposed", "ji", M)
einsum("sum", "ij->j", M)
einsum("sum_all", "ij->", M)
einsum("sum_first", "ij,kl->ik", M, None, tensor(2, 3, phase=0.5))
einsum("diagonal", "iji->ij", tensor(3, 2, 3))
einsum("trace", "bii->b", tensor(2, 3, 3))
einsum("trace_of_product", "ij,ji->", M, None, tensor(4, 3, phase=0.5))
einsum("outer", "i,j->ij", V, None, tensor(3, phase=0.5))
einsum("outer_turned", "i,j->ji", V, None, tensor(3, phase=0.5))
einsum("dot", "i,i->", V, None, tensor(5, phase=0.5))
einsum("dots", "bij,bij->b", B, None, tensor(2, 3, 4, phase=0.5))
einsum("elementwise", "ij,ij->ij", M, None, tensor(3, 4, phase=0.5))
einsum("elementwise_turned", "ij,ji->ji", M, None, tensor(4, 3, phase=0.5))
einsum("number", ",ij->ij", tensor(), None, M)
einsum("ellipsis", "...ij,...jk->...ik", Q, None, tensor(4, 2, phase=0.5))
einsum("ellipses", "...ij,...jk", Q, None, tensor(2, 1, 4, 2, phase=0.5))
einsum("ellipsis_end", "i...,i...->...i", M, None, tensor(3, 1, phase=0.5))
einsum("ellipsis_summed", "...i->i", B)
einsum("broadcast", "ij,ij->i", M, None, tensor(3, 1, phase=0.5))
einsum("broadcast_summed", "ij,jk->ik", tensor(3, 1), None, tensor(4, 2, phase=0.5))
einsum("three", "ij,jk,kl->il", M, None, tensor(4, 2, phase=0.5), tensor(2, 5, phase=0.9))
einsum("bilinear", "bi,oij,bj->bo", tensor(2, 3), None, tensor(2, 3, 4, phase=0.5), tensor(2, 4, phase=0.9))
einsum("four", "ab,bc,cd,da->ac", M, None, tensor(4, 2, phase=0.5), tensor(2, 5, phase=0.7), tensor(5, 3, phase=0.9))
einsum("factors", "ij,i,j->ij", M, None, tensor(3, phase=0.5), tensor(4, phase=0.9))
einsum("tucker", "abc,ai,bj,ck->ijk", B, None, tensor(2, 3, phase=0.5), tensor(3, 2, phase=0.7), tensor(4, 2, phase=0.9))
einsum("spaces", " i j , j k -> i k ", M, None, tensor(4, 2, phase=0.5))
einsum("empty", "ij,jk->ik", tensor(3, 0), None, tensor(0, 2))
einsum("capitals", "aB,Ba", M, None, tensor(4, 3, phase=0.5))
show("tensordot", lambda x: torch.tensordot(x, tensor(3, 4, 2, phase=0.5)), B)
show("tensordot_1", lambda x: torch.tensordot(x, tensor(4, 2, phase=0.5), dims=1), B)
show("tensordot_0", lambda x: torch.tensordot(x, tensor(2, phase=0.5), dims=0), M)
show("tensordot_dims", lambda x: torch.tensordot(x, tensor(4, 2, 5, phase=0.5), dims=([2, 0], [0, 1])), B)
show("outer", lambda x: torch.outer(x, tensor(3, phase=0.5)), V)
show("kron", lambda x: torch.kron(x, tensor(2, 3, phase=0.5)), M)
show("kron_vector", lambda x: torch.kron(tensor(2, 2, phase=0.5), x), V)
show("cross", lambda x: torch.linalg.cross(x, tensor(3, 4, phase=0.5), dim=0), M)
show("cross_broadcast", lambda x: torch.linalg.cross(x, tensor(1, 3, phase=0.5)), tensor(4, 3))
show("addmm", lambda x: torch.addmm(x, tensor(3, 2, phase=0.5), tensor(2, 4, phase=0.9), beta=0.5, alpha=-2), M)
show("addmm_bias", lambda x: torch.addmm(x, tensor(3, 2, phase=0.5), tensor(2, 4, phase=0.9)), tensor(4))
show("addmm_a", lambda x: torch.addmm(V[:2], x, tensor(4, 2, phase=0.9)), M)
show("addmv", lambda x: torch.addmv(tensor(3, phase=0.5), x, tensor(4, phase=0.9), alpha=3), M)
show("baddbmm", lambda x: torch.baddbmm(tensor(3, 1, phase=0.5), x, tensor(2, 4, 2, phase=0.9), beta=2), B)
show("bilinear", lambda x: F.bilinear(x, tensor(2, 3, 2, phase=0.5), tensor(3, 4, 2, phase=0.7), tensor(3, phase=0.9)), B)
show("bilinear_w", lambda x: F.bilinear(tensor(5, 3, phase=0.5), tensor(5, 4, phase=0.7), x), B)
for order, p in {"0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0, "half": 0.5, "greatest": math.inf}.items():
    show("dist_" + order, lambda x: torch.dist(x, tensor(3, 4, phase=0.5), p=p) + 0 * x.sum(), M)
    show("cdist_" + order, lambda x: torch.cdist(x, tensor(2, 4, phase=0.5), p=p), B)
    show("pdist_" + order, lambda x: F.pdist(x, p=p), M)
show("cdist_same", lambda x: torch.cdist(x, x.detach()), M)
show("cdist_product", lambda x: torch.cdist(x, tensor(3, 4, phase=0.5)), tensor(26, 4))
show("cdist_product_b", lambda x: torch.cdist(tensor(2, 27, 3, phase=0.5), x), tensor(2, 3))
