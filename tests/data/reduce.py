"""reduce.py - writes reduce.txt: reductions and running products as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/reduce.py > tests/data/reduce.txt (golden.py tells the format).
Element 0 of every x is 0.
"""
import math

import torch
from golden import show, tensor

A = tensor(3, 4)
B = tensor(2, 3, 4)
C = tensor(2, 7)
norm = torch.linalg.vector_norm

show("prod", lambda x: x.prod(), A)
show("prod_0", lambda x: x.prod(0), A)
show("prod_1_keep", lambda x: x.prod(1, keepdim=True), C)
show("prod_0_2", lambda x: x.prod(2).prod(0), B)
show("std", lambda x: x.std(), A)
show("std_1", lambda x: x.std(1), A)
show("std_0_2_biased", lambda x: x.std((0, 2), unbiased=False, keepdim=True), B)
show("norm_2", lambda x: norm(x, 2), A)
show("norm_2_1", lambda x: norm(x, 2, 1), A)
show("norm_1_0_2", lambda x: norm(x, 1, (0, 2)), B)
show("norm_inf_1", lambda x: norm(x, math.inf, 1, keepdim=True), A)
show("norm_0_0", lambda x: norm(x, 0, 0) + 0 * x.sum(0), A)
show("norm_half_1", lambda x: norm(x, 0.5, 1), A)
show("norm_1_5", lambda x: norm(x, 1.5), B)
show("norm_3_1", lambda x: norm(x, 3, 1), B)
show("logsumexp_1", lambda x: x.logsumexp(1), A)
show("logsumexp_0_2", lambda x: (300 * x).logsumexp((0, 2), keepdim=True), B)
show("logcumsumexp_1", lambda x: x.logcumsumexp(1), C)
show("logcumsumexp_0", lambda x: (300 * x).logcumsumexp(0), A)
show("cumprod_1", lambda x: x.cumprod(1), B)
show("cumprod_0", lambda x: x.cumprod(0), A)
