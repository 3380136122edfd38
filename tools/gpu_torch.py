"""gpu_torch.py - measures in PyTorch what gpu_bench measures in libgrad, for the comparison in tools/gpu-check.

gpu_torch.py [--device NAME] [--small] [--tf32] [--seconds S] [--batch N] [--modes eager,graph,compile] PART...
A part is "versions", "kernels", "ops", "transfers" or a model's name. Figures, the first and the last line are lines of
JSON in the format of gpu_bench; a figure has its mode as "by". Kernels are the rows of gpu_torch_kernels.py.
Exit status 1: a figure of mode eager failed (failures of graph and compile are only reported); 3: figures were left out
when the seconds were over.
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

sys.dont_write_bytecode = True
from gpu_torch_kernels import ROWS, bf16, f16, f32, f64  # noqa: E402

warnings.filterwarnings("ignore")
REPEATS, WARM_UP, REPEAT, LONGEST, CHAIN = 7, 0.03, 0.02, 1.0, 100
QUICK_REPEATS, QUICK_WARM_UP, QUICK_REPEAT = 5, 0.015, 0.01  # for kernels, which are many
SHORT = {f32: "f32", f16: "f16", bf16: "bf16", f64: "f64"}
counts = {"figures": 0, "failed_figures": 0, "left_out": 0}


def tell(**figure):
    print(json.dumps(figure), flush=True)


def figure(**what):
    counts["figures"] += 1
    counts["failed_figures"] += "failed" in what and what["by"] == "eager"
    tell(**what)


def time_is_over(o):
    over = time.perf_counter() > o.end
    counts["left_out"] += over
    return over


def wait(o):
    if o.device != "cpu":
        torch.cuda.synchronize()


def seconds_of(o, run, calls):
    start = time.perf_counter()
    for _ in range(calls):
        run()
    wait(o)
    return time.perf_counter() - start


def time_calls(o, run, quick=False):
    """Returns the microseconds of a call: the median of several repeats, each of many calls and one wait."""
    repeats, warm_up, repeat = (QUICK_REPEATS, QUICK_WARM_UP, QUICK_REPEAT) if quick else (REPEATS, WARM_UP, REPEAT)
    if o.small:
        repeats, warm_up, repeat = 1, 0, 0
    start = time.perf_counter()
    once, warm = seconds_of(o, run, 1), time.perf_counter() + warm_up
    while time.perf_counter() < warm:
        once = seconds_of(o, run, 2) / 2
    n = int(min(max(repeat / max(once, 1e-7), 1), 5000))
    seconds = []
    while not seconds or (len(seconds) < repeats and time.perf_counter() < min(o.end, start + LONGEST)):
        seconds.append(seconds_of(o, run, n) / n)
    return statistics.median(seconds) * 1e6


def words(e):
    lines = str(e).strip().splitlines() or [type(e).__name__]
    return lines[0][:200]


# ---- kernels ----

def measure_row(o, name, dtype, size, make):
    if o.small:
        size = tuple(min(n, 8) for n in size)
    what = dict(part="kernels", by="eager", name=name, dtype="tf32" if o.tf32 else SHORT[dtype],
                size=" x ".join(map(str, size)))
    try:
        figure(**what, us=time_calls(o, make(o, dtype, size), quick=True))
    except Exception as e:
        figure(**what, failed=words(e))
    if o.device != "cpu":
        torch.cuda.empty_cache()


def measure_kernels(o):
    for name, dtypes, size, make in ROWS:
        if o.tf32 and (f32 not in dtypes or not name.startswith(("gemm", "conv2d")) or "depthwise" in name):
            continue
        for dtype in (f32,) if o.tf32 else dtypes:
            if not time_is_over(o):
                measure_row(o, name, dtype, size, make)


# ---- small ops ----

def captured(o, run):
    """Captures run() in a CUDA graph and returns a function that replays it."""
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
            if mode == "compile" or (mode == "graph" and o.device == "cpu") or time_is_over(o):
                continue
            try:
                us = time_calls(o, captured(o, run) if mode == "graph" else run) / ops
                figure(part="ops", by=mode, name=name, us=us)
            except Exception as e:
                figure(part="ops", by=mode, name=name, failed=words(e))


# ---- transfers ----

def measure_transfers(o):
    n = 1 << 12 if o.small else 1 << 26
    device = torch.rand(n, device=o.device)
    host = device.cpu() if o.device != "cpu" else device.clone()
    rows = [("host to device", lambda: host.to(o.device)), ("device to host", lambda: device.to("cpu")),
            ("on the device", device.clone)]
    if o.device != "cpu":
        pinned = host.pin_memory()
        rows += [("pinned host to device", lambda: pinned.to(o.device, non_blocking=True)),
                 ("device to pinned host", lambda: pinned.copy_(device, non_blocking=True))]
        others = [d for d in range(torch.cuda.device_count()) if torch.device("cuda", d) != device.device]
        if others:
            rows.append(("device to device", lambda: device.to(torch.device("cuda", others[0]))))
    for name, run in rows:
        if time_is_over(o):
            continue
        try:
            figure(part="transfers", by="eager", name=name, bytes=4 * n, us=time_calls(o, run))
        except Exception as e:
            figure(part="transfers", by="eager", name=name, failed=words(e))


# ---- training ----

def network(name):
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data"))
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


def launches_of(o, step):
    """Returns the number of kernels that a step launches, by PyTorch's profiler, without copies and fills; None if unknown."""
    cuda = torch.profiler.ProfilerActivity.CUDA
    try:
        with torch.profiler.profile(activities=[cuda]) as p:
            step()
            wait(o)
        return sum(e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset"))
                   for e in p.events()) or None
    except Exception as e:
        print("gpu_torch.py: launches are not counted:", words(e), file=sys.stderr)
        return None


def measure_model(o, name):
    for mode in o.modes:
        if (mode == "graph" and o.device == "cpu") or time_is_over(o):
            continue
        what = dict(part="steps", by=mode, name=name, batch=o.batch, tf32=o.tf32)
        try:
            if o.device != "cpu":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
            step = training_step(o, name, mode)
            us = time_calls(o, step)
            what["peak"] = torch.cuda.max_memory_allocated() if o.device != "cpu" else 0
            launches = launches_of(o, step) if mode == "eager" and o.device != "cpu" else None
            if launches:
                what["launches"] = launches
            figure(**what, us=us)
        except Exception as e:
            figure(**what, failed=words(e))


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
    tell(part="begin", by="torch", tf32=o.tf32, parts=o.parts)
    for part in o.parts:
        if part == "versions":
            device = torch.cuda.get_device_name(o.device) if o.device != "cpu" else "cpu"
            cudnn = torch.backends.cudnn.version() if o.device != "cpu" else None
            tell(part="versions", torch=torch.__version__, cuda=torch.version.cuda, cudnn=cudnn, device=device)
        elif part == "kernels":
            measure_kernels(o)
        elif part == "ops":
            measure_ops(o)
        elif part == "transfers":
            measure_transfers(o)
        else:
            measure_model(o, part)
    tell(part="end", by="torch", **counts)
    return 1 if counts["failed_figures"] else 3 if counts["left_out"] else 0


if __name__ == "__main__":
    sys.exit(main())
