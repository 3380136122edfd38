"""elementwise.py - writes elementwise.txt: what PyTorch makes of fixed values, in f64.

Run with a Python that has torch: python3 tests/data/elementwise.py > tests/data/elementwise.txt
"""
import torch
import torch.nn.functional as F
from golden import show, tensor

X = tensor(3, 4)
Y = tensor(3, 4, phase=0.7)
P = Y * Y + 0.1


def floor_divide(a, b):
    return torch.div(a, b, rounding_mode="floor")


show("exp2", torch.exp2, X)
show("log2", lambda x: torch.log2(x * x + 0.5), X)
show("log10", lambda x: torch.log10(x * x + 0.5), X)
show("tan", lambda x: torch.tan(x * 0.6), X)
show("asin", lambda x: torch.asin(x * 0.48), X)
show("acos", lambda x: torch.acos(x * 0.48), X)
show("atan", torch.atan, X)
show("sinh", torch.sinh, X)
show("cosh", torch.cosh, X)
show("asinh", torch.asinh, X)
show("acosh", lambda x: torch.acosh(x * x + 1.2), X)
show("atanh", lambda x: torch.atanh(x * 0.48), X)
show("logit", lambda x: torch.logit(x * 0.2 + 0.5), X)
show("erfc", torch.erfc, X)
show("log_sigmoid", lambda x: F.logsigmoid(x * 3), X)
show("relu6", lambda x: F.relu6(x * 4), X)
show("selu", F.selu, X)
show("celu", lambda x: F.celu(x, 2.0), X)
show("mish", lambda x: F.mish(x * 2), X)
show("hardtanh", lambda x: F.hardtanh(x, -1, 1.5), X)
show("hardsigmoid", lambda x: F.relu6(x * 2 + 3) / 6, X)  # the derivative of F.hardsigmoid has 1/6 in f32
show("hardswish", lambda x: F.hardswish(x * 2), X)
show("hardshrink", lambda x: F.hardshrink(x, 0.5), X)
show("softshrink", lambda x: F.softshrink(x, 0.5), X)
show("tanhshrink", F.tanhshrink, X)
show("floor", lambda x: torch.floor(x * 2), X)
show("ceil", lambda x: torch.ceil(x * 2), X)
show("round", lambda x: torch.round(x * 2), X)
show("trunc", lambda x: torch.trunc(x * 2), X)
show("frac", lambda x: torch.frac(x * 2), X)
show("fmod_a", lambda x: torch.fmod(x * 3, Y), X)
show("fmod_b", lambda x: torch.fmod(Y * 3, x + 2.5), X)
show("remainder_a", lambda x: torch.remainder(x * 3, Y), X)
show("remainder_b", lambda x: torch.remainder(Y * 3, x + 2.5), X)
show("floor_divide_a", lambda x: floor_divide(x * 3, Y), X)
show("floor_divide_b", lambda x: floor_divide(Y * 3, x + 2.5), X)
show("atan2_a", lambda x: torch.atan2(x, Y), X)
show("atan2_b", lambda x: torch.atan2(Y, x), X)
show("xlogy_a", lambda x: torch.xlogy(x, P), X)
show("xlogy_b", lambda x: torch.xlogy(Y, x * x + 0.1), X)
show("logaddexp_a", lambda x: torch.logaddexp(x * 9, Y), X)
show("logaddexp_b", lambda x: torch.logaddexp(Y, x * 9), X)
show("lerp_a", lambda x: torch.lerp(x, Y, 0.3), X)
show("lerp_b", lambda x: torch.lerp(Y, x, 0.8), X)
show("lerp_w", lambda x: torch.lerp(Y, P, x), X)
