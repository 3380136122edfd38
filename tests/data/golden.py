"""golden.py - what the scripts beside it share: tensors by a formula, and lines for tests/golden.h.

Run a script with a Python that has torch: python3 tests/data/conv.py > tests/data/conv.txt
"""
import torch


def tensor(*shape, phase=0.0):
    """2 sin(1.3 i + phase): golden_tensor() of tests/golden.h."""
    n = 1
    for s in shape:
        n *= s
    return (2 * torch.sin(1.3 * torch.arange(n, dtype=torch.float64) + phase)).reshape(shape)


def i64(*shape, top):
    """(7 i + 3) mod top: golden_index() of tests/golden.h."""
    n = 1
    for s in shape:
        n *= s
    return ((7 * torch.arange(n) + 3) % top).reshape(shape)


def show(name, f, x):
    """A line: f(x), then the gradient by x of the sum of f(x) weighted by 1, 2, 3, ..."""
    x = x.clone().requires_grad_(True)
    y = f(x)
    w = torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)
    (y * w).sum().backward()
    numbers = torch.cat([y.detach().reshape(-1), x.grad.reshape(-1)]).tolist()
    print(name, *("%.17g" % v for v in numbers))


class Trigamma(torch.autograd.Function):
    """PyTorch's own trigamma has an error of 1e-10; Hurwitz' zeta function is exact."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.special.zeta(torch.tensor(2.0, dtype=torch.float64), x)

    @staticmethod
    def backward(ctx, g):
        return g * torch.polygamma(2, ctx.saved_tensors[0])


class Digamma(torch.autograd.Function):
    """torch.digamma with the derivative by Trigamma."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.polygamma(0, x)

    @staticmethod
    def backward(ctx, g):
        return g * Trigamma.apply(ctx.saved_tensors[0])
