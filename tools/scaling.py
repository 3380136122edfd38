#!/usr/bin/env python3
"""scaling - models the time of an all_reduce of gradients, and how data-parallel training scales with it.

    tools/scaling.py --fit [--build FOLDER] [--save FILE]   # measures two ranks here and fits the model
    tools/scaling.py --fit --data FILE                      # fits the model to saved measurements
    tools/scaling.py --predict [--data FILE]                # efficiency of weak scaling on 8 to 1024 ranks

libgrad's all_reduce of B bytes on n ranks: each rank announces the operation to the others by a header, sends each of them
its part of every piece, adds up the parts that it receives, and sends the sum to all. With the latency L, the rate R of a
network card, the time o that a message costs the processor, and the bytes per second that processors copy (C) and add (S):

    T = 3 L + 2 (n - 1) o + turns 4 (n - 1) o + max(V / R, V / C + B / S),   V = 2 (n - 1) / n B,   turns = B / (n piece)

(Hockney's model of a message, L + bytes / R, in the sum of Rabenseifner's algorithm, 2 (n - 1) / n B per rank: Thakur,
Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.) On two ranks of one
machine the time is a latency plus a piecewise linear function of the size: the slope changes after the first turn, with
which the next ones overlap, and where the arrays no longer fit in the caches. Short messages, which Open MPI sends without
asking the other rank first, have another line.

NCCL: the faster of ring and tree, with the latencies of its protocol "Simple" between machines (NCCL, src/graph/tuning.cc):

    ring = 8.4 us + 2 (n - 1) 9.6 us + V / R,   tree = 2 log2(n) 50 us + 2 B / (0.9 R)
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDED = os.path.join(ROOT, "tests", "data", "scaling.json")
PIECE, WINDOW, STAGING = 1 << 18, 4, 16 << 20  # as in libgrad/group/messages.h
# Bytes of a message, with its header, from which on Open MPI 4.1 sends it only after the other rank has asked for it
# (btl_vader_eager_limit, btl_tcp_eager_limit).
LONG = {"shm": 1 << 12, "tcp": 1 << 16}
WAYS = {"shm": [], "tcp": ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]}
TURN = 2 * PIECE  # bytes that two ranks reduce in one turn
RANKS = 8, 16, 64, 256, 1024
BUCKET = 25 << 20
US = 1e-6


class Failure(Exception):
    """An error whose message is for the user."""


# ---- measuring ----

def merge(runs):
    """Returns the fastest of several runs for each size, as other programs may have used the same cores."""
    return [min(lines, key=lambda p: p["least"]) for lines in zip(*runs)]


def measure(build, runs):
    """Returns the lines of group_bench on two ranks, for each of WAYS."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    program = os.path.join(build, "tools", "group_bench")
    if not mpirun or not os.path.exists(program):
        raise Failure(f"needs Open MPI's mpirun and {program}: ninja -C {build} tools/group_bench libgrad/libgrad-openmpi.so.1")
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    environment = {"LIBGRAD_MPI": os.path.join(build, "libgrad", "libgrad-openmpi.so.1"), **os.environ}
    found = {}
    for way, options in WAYS.items():
        command = [mpirun, *root, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", *options, "-n", "2",
                   program]
        answers = []
        for _ in range(runs):
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            if done.returncode:
                raise Failure(f"{' '.join(command)}: {done.stderr}")
            answers.append([json.loads(line) for line in done.stdout.splitlines()])
        found[way] = merge(answers)
    return found


# ---- fitting ----

def solve(rows, wanted):
    """Solves least squares by the normal equations and Gaussian elimination. Returns None if they are singular."""
    n = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) for j in range(n)] + [sum(r[i] * w for r, w in zip(rows, wanted))] for i in range(n)]
    for i in range(n):
        best = max(range(i, n), key=lambda k: abs(a[k][i]))
        a[i], a[best] = a[best], a[i]
        if abs(a[i][i]) < 1e-300:
            return None
        for k in range(n):
            if k != i:
                f = a[k][i] / a[i][i]
                a[k] = [x - f * y for x, y in zip(a[k], a[i])]
    return [a[i][n] / a[i][i] for i in range(n)]


def basis(b, bounds):
    """Returns a row of the linear model: 1 for the latency, and how many of b bytes lie in each interval between the bounds."""
    edges = [0, *bounds, math.inf]
    return [1] + [min(max(b - low, 0), high - low) for low, high in zip(edges, edges[1:])]


def lines(points, bounds):
    """Returns the sum of squared relative errors, and [latency, seconds per byte of each interval]; None if one is negative."""
    rows = [[x / p["least"] for x in basis(p["bytes"] * 1e-6, [b * 1e-6 for b in bounds])] for p in points]
    found = solve(rows, [1] * len(points))
    if not found or min(found) < 0:
        return None
    error = sum((sum(x * y for x, y in zip(row, found)) - 1) ** 2 for row in rows)
    return error, [found[0]] + [x * 1e-6 for x in found[1:]]


def fit(points, limit):
    """Fits the model of a way by least squares of relative errors. Each size is tried as the knee, where the slope changes."""
    short, long = ([p for p in points if (p["bytes"] / 2 >= limit) == is_long] for is_long in (False, True))
    knees = sorted(p["bytes"] for p in points if p["bytes"] > TURN)[:-2]
    tried = [(found, knee) for knee in knees for found in [lines(long, [TURN, knee])] if found]
    first = lines(short, []) if short else (0, (0, 0))
    if not tried or not first:
        raise Failure("no positive latency and slopes fit what was measured")
    (_, (latency, turn, inside, beyond)), knee = min(tried)
    last = max(points, key=lambda p: p["bytes"])
    return {"short": first[1], "latency": latency, "turn": turn, "inside": inside, "beyond": beyond, "knee": knee, "limit": limit,
            "sum": last["sum"] / last["bytes"]}


def fitted(m, b):
    if b / 2 < m["limit"]:
        return m["short"][0] + m["short"][1] * b
    return sum(x * y for x, y in zip(basis(b, [TURN, m["knee"]]), (m["latency"], m["turn"], m["inside"], m["beyond"])))


def fit_all(found):
    return {way: fit(points, LONG[way]) for way, points in found.items()}


def show_fit(found, models):
    """Prints the fitted models and the deviation of each measured time. Returns the greatest deviation."""
    worst = 0
    for way, points in found.items():
        m = models[way]
        short = f"short messages {m['short'][0] / US:.1f} us and {1e-9 / m['short'][1]:.2f} GB/s; " if m["short"][1] else ""
        print(f"{way}: {short}messages from {m['limit'] >> 10} KiB on {m['latency'] / US:.1f} us and {1e-9 / m['turn']:.2f} GB/s up to "
              f"{TURN / 2 ** 20:g} MiB, {1e-9 / m['inside']:.2f} GB/s up to {m['knee'] / 2 ** 20:g} MiB, {1e-9 / m['beyond']:.2f} GB/s beyond; adding alone {1e-9 / m['sum']:.1f} GB/s")
        print(f"{'KiB':>8} {'measured':>11} {'fitted':>11} {'deviation':>10}")
        for p in points:
            model = fitted(m, p["bytes"])
            deviation = model / p["least"] - 1
            worst = max(worst, abs(deviation))
            print(f"{p['bytes'] // 1024:8} {p['least'] / US:8.1f} us {model / US:8.1f} us {100 * deviation:8.1f} %")
    return worst


# ---- predicting ----

# Assumptions: latency of a message from program to program, rate, and the way whose processor costs are assumed.
NETWORKS = {
    "10 Gbit/s Ethernet": {"latency": 30 * US, "rate": 10e9 / 8, "way": "tcp"},
    "100 Gbit/s Ethernet": {"latency": 20 * US, "rate": 100e9 / 8, "way": "tcp"},
    "400 Gbit/s InfiniBand": {"latency": 2 * US, "rate": 400e9 / 8, "way": "shm"},
}
# FLOP of a sample (forward and backward), samples of a step on each rank, FLOP/s of a rank.
MODELS = {
    "resnet18": {"parameters": 11.17e6, "flop": 3.33e9, "cpu": (32, 1e12), "gpu": (256, 30e12)},
    "encoder, 1 G": {"parameters": 1e9, "flop": 6 * 1e9 * 512, "cpu": (8, 1e12), "gpu": (16, 400e12)},
}


def libgrad_seconds(n, b, network, models):
    m = models[network["way"]]
    o = models["shm"]["latency"] / 6  # two ranks: a header, a part and a sum are sent, and as many received
    piece = min(PIECE, STAGING // WINDOW // n // 8 * 8)
    turns = math.ceil(b / (piece * n))
    volume = 2 * (n - 1) / n * b
    return (3 * network["latency"] + 2 * (n - 1) * o + turns * 4 * (n - 1) * o
            + max(volume / network["rate"], volume * (m["beyond"] - m["sum"]) + b * m["sum"]))


def nccl_seconds(n, b, network):
    lag = network["latency"]
    ring = 8.4 * US + 2 * (n - 1) * max(9.6 * US, lag) + 2 * (n - 1) / n * b / network["rate"]
    tree = 2 * math.log2(n) * max(50 * US, lag) + 2 * b / (0.9 * network["rate"])
    return min(ring, tree)


def exposed(step, parameters, seconds):
    """Returns the seconds that communication adds to a step. Buckets become ready during its last two thirds, the backward."""
    count = max(1, math.ceil(4 * parameters / BUCKET))
    over = 0
    for i in range(count):
        ready = step / 3 + step * 2 / 3 * (i + 1) / count
        over = max(over, ready) + seconds(4 * parameters / count)
    return over - step


def predict(models):
    """Yields (model, algorithm, network, step, [efficiency for each of RANKS], steps to accumulate for 90 % on the most ranks)."""
    for name, model in MODELS.items():
        for kind in "cpu", "gpu":
            batch, rate = model[kind]
            step = batch * model["flop"] / rate
            for network_name, network in NETWORKS.items():
                added = [exposed(step, model["parameters"],
                                 lambda b, n=n: libgrad_seconds(n, b, network, models) if kind == "cpu" else nccl_seconds(n, b, network))
                         for n in RANKS]
                yield (name, {"cpu": "libgrad, CPU", "gpu": "NCCL, GPU"}[kind], network_name, step,
                       [step / (step + a) for a in added], max(1, math.ceil(9 * added[-1] / step - 1e-9)))


def show_predictions(models):
    print("| model | all_reduce | network | step | " + " | ".join(str(n) for n in RANKS) + " | accumulate |")
    print("|---|---|---|---|" + "---|" * (len(RANKS) + 1))
    for name, algorithm, network, step, efficiencies, accumulate in predict(models):
        time = f"{step:.1f} s" if step >= 1 else f"{step * 1e3:.0f} ms"
        print(f"| {name} | {algorithm} | {network} | {time} | " + " | ".join(f"{100 * e:.0f} %" for e in efficiencies)
              + f" | {accumulate} |")


def main():
    p = argparse.ArgumentParser(prog="tools/scaling.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--fit", action="store_true", help="measured and fitted times; exit status 1: one deviates by more than 20 %%")
    p.add_argument("--predict", action="store_true", help="a table of efficiencies, in Markdown")
    p.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="FOLDER", help="with tools/group_bench; default: build")
    p.add_argument("--runs", type=int, default=2, metavar="N", help="that are measured, of which the fastest counts; default 2")
    p.add_argument("--data", metavar="FILE", help="what --save saved; --predict without --fit: tests/data/scaling.json")
    p.add_argument("--save", metavar="FILE", help="what was measured")
    o = p.parse_args()
    if not o.fit and not o.predict:
        p.error("--fit, --predict or both")
    data = o.data or (None if o.fit else RECORDED)
    if data:
        with open(data, encoding="ascii") as f:
            found = json.load(f)
    else:
        found = measure(os.path.abspath(o.build), o.runs)
    if o.save:
        with open(o.save, "w", encoding="ascii") as f:
            f.write("{\n" + ",\n".join(f' "{way}": [\n  ' + ",\n  ".join(map(json.dumps, points)) + "]" for way, points in found.items())
                    + "}\n")
    models, worst = fit_all(found), 0
    if o.fit:
        worst = show_fit(found, models)
        print(f"greatest deviation {100 * worst:.1f} %")
    if o.predict:
        show_predictions(models)
    return 1 if worst > 0.2 else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as e:
        print(f"tools/scaling.py: {e}", file=sys.stderr)
        sys.exit(1)
