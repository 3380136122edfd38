"""gpu_torch.py - what gpu_bench measures, in PyTorch: its peer in tools/gpu-check.

gpu_torch.py [--device NAME] [--small] [--tf32] [--seconds S] [--batch N] [--modes eager,graph,compile] PART...
A part is "versions", "kernels", "ops" or a model's name. Each figure is a line of JSON as of gpu_bench, with the mode
as "by". Names and sizes of kernels are those of gpu_kernels.c.
"""
import argparse
import json
import os
import statistics
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
REPEATS, WARM_UP, REPEAT, CHAIN = 7, 0.03, 0.02, 100
f32, f16, bf16, f64 = torch.float32, torch.float16, torch.bfloat16, torch.float64
SHORT = {f32: "f32", f16: "f16", bf16: "bf16", f64: "f64"}


def tell(**figure):
    print(json.dumps(figure), flush=True)


def wait(o):
    if o.device != "cpu":
        torch.cuda.synchronize()


def spend(o, run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    wait(o)
    return time.perf_counter() - start


def time_calls(o, run):
    """Microseconds of a call: the median of several repeats of many calls and one wait."""
    once, warm = spend(o, run, 1), time.perf_counter() + WARM_UP
    while not o.small and time.perf_counter() < warm:
        once = spend(o, run, 2) / 2
    n = int(min(max(REPEAT / max(once, 1e-7), 1), 5000))
    seconds = []
    while not seconds or (len(seconds) < (3 if o.small else REPEATS) and time.perf_counter() < o.end):
        seconds.append(spend(o, run, n) / n)
    return statistics.median(seconds) * 1e6


def words(e):
    lines = str(e).strip().splitlines() or [type(e).__name__]
    return lines[0][:200]


# ---- kernels: each takes (o, dtype, size) and returns what to call ----

def values(o, dtype, *size):
    return torch.empty(size, dtype=dtype, device=o.device).uniform_(-1, 1)


def derivative(y, inputs, g):
    return lambda: torch.autograd.grad(y, inputs, g, retain_graph=True)


def flat(function):
    def make(o, dtype, size):
        x = values(o, dtype, *size)
        return lambda: function(x)
    return make


def add(o, dtype, size):
    x, y = values(o, dtype, *size), values(o, dtype, *size)
    return lambda: x + y


def add_row(o, dtype, size):
    x, y = values(o, dtype, *size), values(o, dtype, size[1])
    return lambda: x + y


def layer_norm(o, dtype, size, backward=False):
    x, w, b = values(o, dtype, *size), values(o, dtype, size[1]), values(o, dtype, size[1])
    if not backward:
        return lambda: F.layer_norm(x, size[1:], w, b)
    for t in (x, w, b):
        t.requires_grad_()
    return derivative(F.layer_norm(x, size[1:], w, b), (x, w), values(o, dtype, *size))


def images(o, dtype, size):
    return values(o, dtype, size[0], size[1], size[2], size[2])


def batch_norm(o, dtype, size, backward=False):
    x, w = images(o, dtype, size).requires_grad_(), values(o, dtype, size[1]).requires_grad_()
    b = values(o, dtype, size[1])
    if not backward:
        return lambda: F.batch_norm(x, None, None, w, b, training=True)
    b.requires_grad_()
    return derivative(F.batch_norm(x, None, None, w, b, training=True), (x, w), images(o, dtype, size))


def cross_entropy(o, dtype, size, backward=False):
    x, y = values(o, dtype, *size).requires_grad_(), torch.randint(0, size[1], size[:1], device=o.device)
    if not backward:
        return lambda: F.cross_entropy(x, y)
    return derivative(F.cross_entropy(x, y), (x,), torch.ones((), dtype=dtype, device=o.device))


def max_pool(o, dtype, size, backward=False):
    x = images(o, dtype, size).requires_grad_()
    if not backward:
        return lambda: F.max_pool2d(x, 2)
    y = F.max_pool2d(x, 2)
    return derivative(y, (x,), torch.ones_like(y))


def index_select(o, dtype, size):
    x, y = values(o, dtype, *size), torch.randperm(size[0], device=o.device)
    return lambda: torch.index_select(x, 0, y)


def optimizer(o, size, make):
    parameters = [values(o, f32, size[1]).requires_grad_() for _ in range(size[0])]
    for p in parameters:
        p.grad = torch.ones_like(p)
    return make(parameters).step


def gemm(o, dtype, size):
    m, n, k = size[:3]
    batch = size[3:]
    x, y = values(o, dtype, *batch, m, k), values(o, dtype, *batch, k, n)
    return lambda: x @ y


def conv(o, dtype, size, backward=False):
    x, w = images(o, dtype, size).requires_grad_(), values(o, dtype, size[1], size[1], 3, 3).requires_grad_()
    if not backward:
        return lambda: F.conv2d(x, w, padding=1)
    y = F.conv2d(x, w, padding=1)
    return derivative(y, (x, w), torch.ones_like(y))


def backward_of(make):
    return lambda o, dtype, size: make(o, dtype, size, backward=True)


FLAT, WIDE, IMAGES = (1 << 26,), (16384, 4096), (64, 64, 112)
ROWS = [
    ("copy", f32, (1 << 28,), flat(torch.clone)),
    ("add", f32, FLAT, add), ("add", f16, FLAT, add), ("add a row", f32, WIDE, add_row),
    ("relu", f32, FLAT, flat(torch.relu)), ("relu", f16, FLAT, flat(torch.relu)), ("gelu", f32, FLAT, flat(F.gelu)),
    ("copy every second", f32, WIDE, flat(lambda x: x[:, ::2].contiguous())),
    ("copy transposed", f32, WIDE, flat(lambda x: x.t().contiguous())),
    ("uniform", f32, FLAT, flat(torch.rand_like)),
    ("sum", f32, WIDE, flat(torch.sum)), ("sum of rows", f32, WIDE, flat(lambda x: x.sum(1))),
    ("sum of columns", f32, WIDE, flat(lambda x: x.sum(0))),
    ("softmax", f32, WIDE, flat(lambda x: x.softmax(1))), ("softmax", f16, WIDE, flat(lambda x: x.softmax(1))),
    ("layer_norm", f32, WIDE, layer_norm), ("layer_norm backward", f32, WIDE, backward_of(layer_norm)),
    ("batch_norm", f32, IMAGES, batch_norm), ("batch_norm backward", f32, IMAGES, backward_of(batch_norm)),
    ("cross_entropy", f32, WIDE, cross_entropy), ("cross_entropy backward", f32, WIDE, backward_of(cross_entropy)),
    ("max_pool2d", f32, IMAGES, max_pool), ("max_pool2d backward", f32, IMAGES, backward_of(max_pool)),
    ("index_select", f32, WIDE, index_select),
    ("sort", f32, (4096, 4096), flat(lambda x: torch.sort(x, dim=1, stable=True))),
    ("adam", f32, (160, 65536), lambda o, _, size: optimizer(o, size, lambda p: torch.optim.Adam(p, fused=True))),
    ("sgd momentum", f32, (160, 65536),
     lambda o, _, size: optimizer(o, size, lambda p: torch.optim.SGD(p, 1e-3, momentum=0.9, fused=True))),
] + [("gemm", dtype, size, gemm) for dtype, size in (
    (f32, (512, 512, 512)), (f32, (2048,) * 3), (f32, (8192,) * 3), (f32, (64, 128, 784)), (f32, (512, 512, 64, 96)),
    (f16, (2048,) * 3), (f16, (8192,) * 3), (bf16, (2048,) * 3), (bf16, (8192,) * 3), (f64, (4096,) * 3))
] + [("conv2d" + " backward" * (make is not conv), dtype, size, make) for dtype in (f32, f16)
     for size in ((64, 64, 56), (64, 256, 14)) for make in (conv, backward_of(conv))]


def measure_kernels(o):
    left_out = 0
    for name, dtype, size, make in ROWS:
        if o.tf32 and (dtype != f32 or not name.startswith(("gemm", "conv2d"))):
            continue
        if time.perf_counter() > o.end:
            left_out += 1
            continue
        if o.small:
            size = tuple(min(n, 8) for n in size)
        figure = dict(part="kernels", by="eager", name=name, dtype="tf32" if o.tf32 else SHORT[dtype],
                      size=" x ".join(map(str, size)))
        try:
            tell(**figure, us=time_calls(o, make(o, dtype, size)))
        except Exception as e:
            tell(**figure, failed=words(e))
        if o.device != "cpu":
            torch.cuda.empty_cache()
    if left_out:
        tell(part="kernels", by="eager", left_out=left_out)


# ---- small ops ----

def captured(o, run):
    """run as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def measure_ops(o):
    x, y = torch.rand(32, device=o.device), torch.rand(32, device=o.device)
    z = torch.full((32,), 0.95, device=o.device, requires_grad=True)

    def chain():
        t = x
        for _ in range(CHAIN):
            t = t + y

    def both_ways():
        t = x
        for _ in range(CHAIN):
            t = t * z
        torch.autograd.grad(t, z, y)
    for name, run, ops in (("add of 32 elements", lambda: x + y, 1), ("chain of 100 adds of 32 elements", chain, CHAIN),
                           ("chain of 100 products, forward and backward", both_ways, CHAIN)):
        for mode in o.modes:
            if mode == "compile" or (mode == "graph" and o.device == "cpu"):
                continue
            try:
                us = time_calls(o, captured(o, run) if mode == "graph" else run) / ops
                tell(part="ops", by=mode, name=name, us=us)
            except Exception as e:
                tell(part="ops", by=mode, name=name, failed=words(e))


# ---- training ----

def network(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data"))
    sys.dont_write_bytecode = True
    import models
    return getattr(models, name)()


def training_step(o, name, mode):
    net = network(name).to(o.device)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True, capturable=mode == "graph")
    x, y = torch.rand(o.batch, 1, 28, 28, device=o.device), torch.zeros(o.batch, dtype=torch.long, device=o.device)
    forward = torch.compile(net) if mode == "compile" else net

    def step():
        loss = F.cross_entropy(forward(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    return captured(o, step) if mode == "graph" else step


def measure_model(o, name):
    for mode in o.modes:
        if mode == "graph" and o.device == "cpu":
            continue
        figure = dict(part="steps", by=mode, name=name, batch=o.batch, tf32=o.tf32)
        try:
            if o.device != "cpu":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            us = time_calls(o, training_step(o, name, mode))
            peak = torch.cuda.max_memory_allocated() if o.device != "cpu" else 0
            tell(**figure, peak=peak, us=us)
        except Exception as e:
            tell(**figure, failed=words(e))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--small", action="store_true")
    p.add_argument("--tf32", action="store_true")
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--modes", default="eager,graph")
    p.add_argument("parts", nargs="+")
    o = p.parse_args()
    o.modes, o.end = o.modes.split(","), time.perf_counter() + o.seconds
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = o.tf32
    for part in o.parts:
        if part == "versions":
            device = torch.cuda.get_device_name(o.device) if o.device != "cpu" else "cpu"
            cudnn = torch.backends.cudnn.version() if o.device != "cpu" else None
            tell(part="versions", torch=torch.__version__, cuda=torch.version.cuda, cudnn=cudnn, device=device)
        elif part == "kernels":
            measure_kernels(o)
        elif part == "ops":
            measure_ops(o)
        else:
            measure_model(o, part)


if __name__ == "__main__":
    main()
