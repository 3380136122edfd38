# derivatives.py - writes derivatives.txt: torch.autograd.functional's results for the functions of tests/test_derivatives.c, in f64.
#
# x (3) and w (2, 3) have the values sin(i + 1) and cos(i). One line a result: its name, then its values in row-major order.
import math

import torch
from torch.autograd import functional as F

torch.set_default_dtype(torch.float64)
x = torch.tensor([math.sin(i + 1) for i in range(3)])
w = torch.tensor([math.cos(i) for i in range(6)]).reshape(2, 3)
t, u = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([0.3 * i - 1 for i in range(6)]).reshape(2, 3)
v = torch.tensor([0.7, -1.3])


def vector(x, w):
    return torch.tanh(w @ x) * torch.sum(x * x)


def scalar(x, w):
    return torch.sum(torch.tanh(w @ x) ** 3 * torch.exp(x[0]))


samples = torch.stack([x, 2 * x, x - 1, x * x])
results = {
    "value": vector(x, w),
    "vjp": F.vjp(vector, (x, w), v)[1],
    "jvp": F.jvp(vector, (x, w), (t, u))[1],
    "jacobian": F.jacobian(vector, (x, w)),
    "hessian": F.hessian(lambda x: scalar(x, w), x),
    "hvp": F.hvp(scalar, (x, w), (t, u))[1],
    "per_sample": torch.func.vmap(torch.func.grad(lambda w, s: scalar(s, w)), (None, 0))(w, samples),
    "losses": torch.stack([scalar(s, w) for s in samples]),
}
with open(__file__.replace(".py", ".txt"), "w") as f:
    for name, parts in results.items():
        for i, part in enumerate(parts if isinstance(parts, tuple) else (parts,)):
            f.write("%s_%d %d %s\n" % (name, i, part.numel(), " ".join("%.17g" % n for n in part.flatten().tolist())))
