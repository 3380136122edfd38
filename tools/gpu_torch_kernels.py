"""gpu_torch_kernels.py - the rows of gpu_kernels.def in PyTorch: names, dtypes, sizes, and functions that make the call.

A function make(o, dtype, size) makes tensors on o.device and returns the function to be timed.
"""
import os
import re

import torch
import torch.nn as nn
import torch.nn.functional as F

f32, f16, bf16, f64 = torch.float32, torch.float16, torch.bfloat16, torch.float64


def values(o, dtype, *size):
    return torch.empty(size, dtype=dtype, device=o.device).uniform_(-1, 1)


def derivative(y, inputs, g):
    return lambda: torch.autograd.grad(y, inputs, g, retain_graph=True)


def flat(function):
    """Times function(x)."""
    def make(o, dtype, size):
        x = values(o, dtype, *size)
        return lambda: function(x)
    return make


def nonzero(o, dtype, size):
    mask = values(o, dtype, *size) > 0
    return lambda: mask.nonzero()


def searchsorted(o, dtype, size):
    line, x = values(o, dtype, size[1]).sort().values, values(o, dtype, *size)
    return lambda: torch.searchsorted(line, x)


def flat_backward(function):
    """Times the gradient of function(x)."""
    def make(o, dtype, size):
        x = values(o, dtype, *size).requires_grad_()
        y = function(x)
        return derivative(y, (x,), values(o, dtype, *y.shape))
    return make


def two(function):
    def make(o, dtype, size):
        x, y = values(o, dtype, *size), values(o, dtype, *size)
        return lambda: function(x, y)
    return make


def integers(function):
    """Times function(x, y) of i32."""
    def make(o, dtype, size):
        x, y = ((values(o, dtype, *size) * 1e6).to(torch.int32) for _ in range(2))
        return lambda: function(x, y)
    return make


def convert(o, dtype, size):
    x = values(o, f16 if dtype == f32 else f32, *size)
    return lambda: x.to(dtype)


def made(function):
    """Times the creation of values, function(number, dtype, device)."""
    return lambda o, dtype, size: lambda: function(size[0], dtype, o.device)


def add_row(o, dtype, size):
    x, y = values(o, dtype, *size), values(o, dtype, size[1])
    return lambda: x + y


def mul_backward(o, dtype, size):
    x, y = values(o, dtype, *size).requires_grad_(), values(o, dtype, *size).requires_grad_()
    return derivative(x * y, (x, y), values(o, dtype, *size))


def where(o, dtype, size, backward=False):
    x, y = values(o, dtype, *size).requires_grad_(), values(o, dtype, *size).requires_grad_()
    condition = values(o, dtype, *size) > 0
    if not backward:
        return lambda: torch.where(condition, x, y)
    return derivative(torch.where(condition, x, y), (x, y), values(o, dtype, *size))


def bias_of_relu(o, dtype, size):
    x, w, b = values(o, dtype, size[0], 16), values(o, dtype, size[1], 16), values(o, dtype, size[1]).requires_grad_()
    return derivative(F.relu(F.linear(x, w, b)), (b,), values(o, dtype, *size))


def layer_norm(o, dtype, size, backward=False):
    x, w, b = (values(o, dtype, *n).requires_grad_() for n in (size, size[1:], size[1:]))
    if not backward:
        return lambda: F.layer_norm(x, size[1:], w, b)
    return derivative(F.layer_norm(x, size[1:], w, b), (x, w), values(o, dtype, *size))


def images(o, dtype, size):
    """Returns images stored with channels last, as in libgrad."""
    return values(o, dtype, size[0], size[2], size[2], size[1]).permute(0, 3, 1, 2)


def group_norm(o, dtype, size, backward=False):
    x = values(o, dtype, size[0], size[1], size[2], size[2]).requires_grad_()
    w, b = (values(o, dtype, size[1]).requires_grad_() for _ in range(2))
    if not backward:
        return lambda: F.group_norm(x, size[1] // 2, w, b)
    y = F.group_norm(x, size[1] // 2, w, b)
    return derivative(y, (x, w), torch.ones_like(y))


def batch_norm(o, dtype, size, backward=False, training=True):
    x = images(o, dtype, size).requires_grad_()
    w, b = (values(o, dtype, size[1]).requires_grad_() for _ in range(2))
    mean, var = values(o, dtype, size[1]), torch.ones(size[1], dtype=dtype, device=o.device)
    if not backward:
        return lambda: F.batch_norm(x, mean, var, w, b, training=training)
    return derivative(F.batch_norm(x, None, None, w, b, training=True), (x, w), images(o, dtype, size))


def cross_entropy(o, dtype, size, backward=False, weighted=False):
    x, y = values(o, dtype, *size).requires_grad_(), torch.randint(0, size[1], size[:1], device=o.device)
    w = torch.full(size[1:], 0.5, dtype=dtype, device=o.device) if weighted else None
    if not backward:
        return lambda: F.cross_entropy(x, y, weight=w)
    return derivative(F.cross_entropy(x, y), (x,), torch.ones((), dtype=dtype, device=o.device))


def gather(o, dtype, size, way="forward"):
    x, index = values(o, dtype, *size).requires_grad_(), torch.randint(0, size[1], size, device=o.device)
    src = values(o, dtype, *size)
    if way == "add":
        return lambda: torch.scatter_add(x.detach(), 1, index, src)
    if way == "put":
        return lambda: torch.scatter(x.detach(), 1, index, src)
    return derivative(x.gather(1, index), (x,), src) if way == "backward" else lambda: x.gather(1, index)


def index_select(o, dtype, size):
    x, y = values(o, dtype, *size), torch.randperm(size[0], device=o.device)
    return lambda: torch.index_select(x, 0, y)


def embedding(o, dtype, size, backward=False):
    x, index = values(o, dtype, *size[:2]).requires_grad_(), torch.randint(0, size[0], size[2:], device=o.device)
    if not backward:
        return lambda: F.embedding(index, x)
    y = F.embedding(index, x)
    return derivative(y, (x,), torch.ones_like(y))


def rotary(o, dtype, size):
    x = values(o, dtype, *size)
    angles = torch.outer(torch.arange(size[1]), 10000.0 ** (-torch.arange(0, size[2], 2) / size[2])).repeat(1, 2).to(o.device)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def rotated():
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin
    return rotated


def pool(function):
    def make(o, dtype, size, backward=False):
        x = images(o, dtype, size).requires_grad_()
        if not backward:
            return lambda: function(x, 2)
        y = function(x, 2)
        return derivative(y, (x,), torch.ones_like(y))
    return make


def interpolate(o, dtype, size, backward=False):
    x = images(o, dtype, size).requires_grad_()
    if not backward:
        return lambda: F.interpolate(x, scale_factor=2, mode="bilinear")
    y = F.interpolate(x, scale_factor=2, mode="bilinear")
    return derivative(y, (x,), torch.ones_like(y))


def grid_sample(o, dtype, size, backward=False):
    x = values(o, dtype, size[0], size[1], size[2], size[2]).requires_grad_()
    grid = values(o, dtype, size[0], size[2], size[2], 2).requires_grad_()
    if not backward:
        return lambda: F.grid_sample(x, grid, align_corners=False)
    y = F.grid_sample(x, grid, align_corners=False)
    return derivative(y, (x, grid), torch.ones_like(y))


def parameters_of(o, dtype, size):
    parameters = [values(o, dtype, size[1]).requires_grad_() for _ in range(size[0])]
    for p in parameters:
        p.grad = torch.ones_like(p)
    return parameters


def optimizer(make):
    return lambda o, dtype, size: make(parameters_of(o, dtype, size)).step


def scaled(o, dtype, size):
    parameters = parameters_of(o, dtype, size)
    opt, scaler = torch.optim.Adam(parameters, fused=True), torch.amp.GradScaler(o.device)
    loss = torch.ones((), device=o.device)

    def run():
        scaler.scale(loss)
        scaler.step(opt)
        scaler.update()

    return run


def clip(o, dtype, size):
    parameters = parameters_of(o, dtype, size)
    return lambda: nn.utils.clip_grad_norm_(parameters, 1)


def gemm(o, dtype, size, transposed=""):
    m, n, k = size[:3]
    batch = size[3:]
    x, y = values(o, dtype, *batch, m, k), values(o, dtype, *batch, k, n)
    x, y = x.t() if transposed == "a" else x, y.t() if transposed == "b" else y
    return lambda: x @ y


def attention(o, dtype, size, backward=False):
    q, k, v = (values(o, dtype, *size).requires_grad_() for _ in range(3))
    if not backward:
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return derivative(y, (q, k, v), torch.ones_like(y))


def lstm(o, dtype, size, backward=False):
    steps, batch, n = size
    m = torch.nn.LSTM(n, n, dtype=dtype, device=o.device)
    x = values(o, dtype, steps, batch, n).requires_grad_()
    if not backward:
        return lambda: m(x)
    y = m(x)[0]
    return derivative(y, (x, m.weight_ih_l0, m.weight_hh_l0), torch.ones_like(y))


def complex_line(function):
    """Times function(x) of complex x."""
    def make(o, dtype, size):
        x = torch.view_as_complex(values(o, dtype, *size, 2))
        return lambda: function(x)
    return make


def definite(function):
    """Times function(x) of positive definite matrices."""
    def make(o, dtype, size):
        x = values(o, dtype, *(size if size[0] > 1 else ()), *size[1:], size[1])
        x = x @ x.mT / size[1] + torch.eye(size[1], dtype=dtype, device=o.device)
        return lambda: function(x)
    return make


def conv(way, depthwise=False):
    def make(o, dtype, size):
        x = images(o, dtype, size)
        groups = size[1] if depthwise else 1
        w = values(o, dtype, size[1], size[1] // groups, size[3], size[3]).contiguous(memory_format=torch.channels_last)
        if way == "forward":
            return lambda: F.conv2d(x, w, padding=size[3] // 2, groups=groups)
        by = (w if way == "wgrad" else x).requires_grad_()
        y = F.conv2d(x, w, padding=size[3] // 2, groups=groups)
        return derivative(y, (by,), torch.ones_like(y))
    return make


def backward_of(make):
    return lambda o, dtype, size: make(o, dtype, size, backward=True)


SHORT_FLOATS = (f16, bf16)
FLOATS, DOUBLES = (f32,) + SHORT_FLOATS, (f32, f64)
FLAT, WIDE, SQUARE, IMAGES, TABLE = (1 << 26,), (16384, 4096), (4096, 4096), (64, 64, 112), (16384, 512, 16384)
PARAMETERS, SEQUENCES = (160, 65536), (8, 12, 1024, 64)
CONVOLUTIONS = (64, 64, 56, 3), (64, 256, 14, 3), (64, 256, 56, 1)
ROWS = [
    ("copy", (f32,), (1 << 28,), flat(torch.clone)), ("copy", SHORT_FLOATS, FLAT, flat(torch.clone)),
    ("convert", FLOATS, FLAT, convert),
    ("copy every second", FLOATS, WIDE, flat(lambda x: x[:, ::2].contiguous())),
    ("copy transposed", FLOATS, WIDE, flat(lambda x: x.t().contiguous())),
    ("fill", FLOATS, FLAT, flat(lambda x: x.fill_(0.5))),
    ("arange", (f32,), FLAT, made(lambda n, dtype, device: torch.arange(0, n, 1, dtype=dtype, device=device))),
    ("uniform", FLOATS, FLAT, made(lambda n, dtype, device: torch.rand(n, dtype=dtype, device=device))),
    ("normal", FLOATS, FLAT, made(lambda n, dtype, device: torch.randn(n, dtype=dtype, device=device))),
    ("dropout", FLOATS, FLAT, flat(lambda x: F.dropout(x, 0.5))),
    ("relu", FLOATS, FLAT, flat(torch.relu)), ("relu backward", FLOATS, FLAT, flat_backward(torch.relu)),
    ("gelu", FLOATS, FLAT, flat(F.gelu)), ("gelu backward", FLOATS, FLAT, flat_backward(F.gelu)),
    ("add", FLOATS, FLAT, two(torch.add)), ("add a row", FLOATS, WIDE, add_row),
    ("mul backward", FLOATS, FLAT, mul_backward),
    ("gt", FLOATS, FLAT, two(torch.gt)), ("gt_scalar", FLOATS, FLAT, flat(lambda x: x > 0.5)),
    ("isfinite", FLOATS, FLAT, flat(torch.isfinite)),
    ("bitwise_and", (f32,), FLAT, integers(torch.bitwise_and)),
    ("bitwise_and_scalar", (f32,), FLAT, integers(lambda x, y: x & 255)),
    ("where", FLOATS, FLAT, where), ("where backward", FLOATS, FLAT, backward_of(where)),
    ("gemm", FLOATS, (512,) * 3, gemm), ("gemm", FLOATS, (2048,) * 3, gemm), ("gemm", FLOATS, (8192,) * 3, gemm),
    ("gemm", (f64,), (4096,) * 3, gemm), ("gemm small", FLOATS, (64, 128, 784), gemm),
    ("gemm batched", FLOATS, (512, 512, 64, 96), gemm),
    ("gemm, b transposed", FLOATS, (2048,) * 3, lambda *a: gemm(*a, transposed="b")),
    ("gemm, a transposed", FLOATS, (2048,) * 3, lambda *a: gemm(*a, transposed="a")),
] + [
    ("conv2d" + suffix, FLOATS, size, conv(way)) for size in CONVOLUTIONS
    for suffix, way in (("", "forward"), (" dgrad", "dgrad"), (" wgrad", "wgrad"))
] + [
    ("conv2d depthwise" + suffix, FLOATS, CONVOLUTIONS[0], conv(way, depthwise=True))
    for suffix, way in (("", "forward"), (" dgrad", "dgrad"), (" wgrad", "wgrad"))
] + [
    ("attention", FLOATS, SEQUENCES, attention), ("attention backward", FLOATS, SEQUENCES, backward_of(attention)),
    ("lstm", FLOATS, (100, 64, 512), lstm), ("lstm backward", FLOATS, (100, 64, 512), backward_of(lstm)),
    ("rfft", DOUBLES, WIDE, flat(torch.fft.rfft)), ("fft", DOUBLES, WIDE, complex_line(torch.fft.fft)),
    ("fft of columns", DOUBLES, WIDE, complex_line(lambda x: torch.fft.fft(x, dim=0))),
    ("fft", DOUBLES, (1, 1 << 24), complex_line(torch.fft.fft)),
    ("solve", DOUBLES, (1, 1024), definite(lambda x: torch.linalg.solve(x, x))),
] + [
    (name, dtypes, size, definite(f)) for dtypes, size in ((DOUBLES, (1, 1024)), ((f32,), (256, 32))) for name, f in (
        ("cholesky", torch.linalg.cholesky), ("lu", torch.linalg.lu_factor), ("qr", torch.linalg.qr), ("eigh", torch.linalg.eigh),
        ("triangular_solve", lambda x: torch.linalg.solve_triangular(x, x, upper=False)),
        ("svd", lambda x: torch.linalg.svd(x, full_matrices=False)))
] + [
    (name + suffix, FLOATS, WIDE, flat(lambda x, f=f, dims=dims: f(x, *dims)))
    for name, f in (("sum", torch.sum), ("amax", torch.amax), ("argmax", torch.argmax), ("var", torch.var))
    for suffix, dims in (("", ()), (" of rows", (1,)), (" of columns", (0,)))
] + [
    ("softmax", FLOATS, WIDE, flat(lambda x: x.softmax(1))),
    ("bias and relu backward", FLOATS, WIDE, bias_of_relu),
    ("softmax backward", FLOATS, WIDE, flat_backward(lambda x: x.softmax(1))),
    ("log_softmax", FLOATS, WIDE, flat(lambda x: x.log_softmax(1))),
    ("log_softmax backward", FLOATS, WIDE, flat_backward(lambda x: x.log_softmax(1))),
    ("cumsum of rows", FLOATS, WIDE, flat(lambda x: x.cumsum(1))),
    ("cumsum of columns", FLOATS, WIDE, flat(lambda x: x.cumsum(0))),
    ("logcumsumexp of rows", FLOATS, WIDE, flat(lambda x: x.logcumsumexp(1))),
    ("logcumsumexp of columns", FLOATS, WIDE, flat(lambda x: x.logcumsumexp(0))),
    ("layer_norm", FLOATS, WIDE, layer_norm), ("layer_norm backward", FLOATS, WIDE, backward_of(layer_norm)),
    ("group_norm", FLOATS, IMAGES, group_norm), ("group_norm backward", FLOATS, IMAGES, backward_of(group_norm)),
    ("batch_norm", FLOATS, IMAGES, batch_norm), ("batch_norm backward", FLOATS, IMAGES, backward_of(batch_norm)),
    ("batch_norm in evaluation", FLOATS, IMAGES, lambda *a: batch_norm(*a, training=False)),
    ("cross_entropy", FLOATS, WIDE, cross_entropy),
    ("cross_entropy by weight", FLOATS, WIDE, lambda *a: cross_entropy(*a, weighted=True)),
    ("cross_entropy backward", FLOATS, WIDE, backward_of(cross_entropy)),
    ("gather", FLOATS, SQUARE, gather), ("gather backward", FLOATS, SQUARE, lambda *a: gather(*a, way="backward")),
    ("scatter_add", FLOATS, SQUARE, lambda *a: gather(*a, way="add")),
    ("index_select", FLOATS, WIDE, index_select),
    ("embedding", FLOATS, TABLE, embedding), ("embedding backward", FLOATS, TABLE, backward_of(embedding)),
    ("rotary", FLOATS, (64, 1024, 128), rotary),
    ("sort", FLOATS, SQUARE, flat(lambda x: torch.sort(x, dim=1, stable=True))),
    ("cummax", FLOATS, SQUARE, flat(lambda x: x.cummax(1))),
    ("searchsorted", FLOATS, SQUARE, searchsorted),
    ("scatter", FLOATS, SQUARE, lambda *a: gather(*a, way="put")),
    ("nonzero", FLOATS, SQUARE, nonzero),
    ("topk", FLOATS, SQUARE, flat(lambda x: x.topk(16, 1) if x.shape[1] > 16 else x.topk(1, 1))),
    ("max", FLOATS, SQUARE, flat(lambda x: x.max(1))),
    ("max backward", FLOATS, SQUARE, flat_backward(lambda x: x.max(1).values)),
    ("max_pool2d", FLOATS, IMAGES, pool(F.max_pool2d)),
    ("max_pool2d backward", FLOATS, IMAGES, backward_of(pool(F.max_pool2d))),
    ("avg_pool2d", FLOATS, IMAGES, pool(F.avg_pool2d)),
    ("avg_pool2d backward", FLOATS, IMAGES, backward_of(pool(F.avg_pool2d))),
    ("interpolate", FLOATS, IMAGES, interpolate), ("interpolate backward", FLOATS, IMAGES, backward_of(interpolate)),
    ("grid_sample", FLOATS, IMAGES, grid_sample), ("grid_sample backward", FLOATS, IMAGES, backward_of(grid_sample)),
    ("sgd momentum", FLOATS, PARAMETERS, optimizer(lambda p: torch.optim.SGD(p, 1e-3, momentum=0.9, fused=True))),
    ("adam", FLOATS, PARAMETERS, optimizer(lambda p: torch.optim.Adam(p, fused=True))),
    ("adam, scaled", (torch.float32,), PARAMETERS, scaled),
    ("clip by norm", FLOATS, PARAMETERS, clip),
]

# Adds the other optimisers of gpu_kernels.def that PyTorch has under the same name.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu_kernels.def")) as f:
    for name in re.findall(r'^OPTIMIZER\("(\w+)"', f.read(), re.M):
        kind = {k.lower(): v for k, v in vars(torch.optim).items()}.get(name)
        if kind and all(name != row[0] for row in ROWS):
            ROWS.append((name, FLOATS, PARAMETERS, optimizer(lambda p, kind=kind: kind(p, 1e-3, foreach=True))))
