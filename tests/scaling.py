"""scaling.py - tools/scaling.py finds the parameters that made up data, fits what was measured, and predicts what doc/scaling.md says.

scaling.py [GROUP_BENCH MODULE MPIRUN]: with them, two ranks are measured, too, however long it takes them.
"""
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(ROOT, "tools", "scaling.py")
wrong = []


def expect(good, what):
    if not good:
        wrong.append(what)


def near(a, b, tolerance):
    return abs(a / b - 1) <= tolerance


def run(*words):
    return subprocess.run([sys.executable, "-B", TOOL, *words], capture_output=True, text=True, timeout=100)


def load():
    spec = importlib.util.spec_from_file_location("scaling", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_up(noise):
    """By TCP: 30 us and 8 GB/s; 50 us, 4 GB/s up to 512 KiB, 5 GB/s up to 4 MiB and 2 GB/s beyond. Through shared memory a line."""
    points = {"tcp": [], "shm": []}
    for k in range(21):
        b = int(65536 * 2 ** (k // 2) * (1 + k % 2 / 2))
        first, beyond = min(b, 1 << 19), max(b - (1 << 22), 0)
        tcp = 30e-6 + b / 8e9 if b < 131072 else 50e-6 + first / 4e9 + (b - first - beyond) / 5e9 + beyond / 2e9
        for way, t in ("tcp", tcp), ("shm", 10e-6 + b / 4e9):
            points[way].append({"bytes": b, "least": t * (1 + noise * (-1) ** (k // 2)), "sum": b / 40e9})
    return points


def check_fit(scaling):
    tcp, shm = (scaling.fit(made_up(0)[way], scaling.LONG[way]) for way in ("tcp", "shm"))
    for what, got, want in (("short latency", tcp["short"][0], 30e-6), ("short rate", 1 / tcp["short"][1], 8e9),
                            ("latency", tcp["latency"], 50e-6), ("turn", 1 / tcp["turn"], 4e9), ("inside", 1 / tcp["inside"], 5e9), ("beyond", 1 / tcp["beyond"], 2e9),
                            ("knee", tcp["knee"], 1 << 22), ("sum", 1 / tcp["sum"], 40e9), ("shm latency", shm["latency"], 10e-6),
                            ("shm inside", 1 / shm["inside"], 4e9), ("shm beyond", 1 / shm["beyond"], 4e9)):
        expect(near(got, want, 1e-3), f"{what} is {got}, not {want}")
    for noise, status in (0, 0), (0.05, 0), (0.5, 1):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(made_up(noise), f)
            f.flush()
            done = run("--fit", "--data", f.name)
        expect(done.returncode == status, f"a deviation of {noise}: exit status {done.returncode} {done.stdout} {done.stderr}")


def check_formulas(scaling):
    """By hand: 16 MiB on 16 ranks, and NCCL's ring and tree."""
    way = {"latency": 12e-6, "inside": 0, "beyond": 1 / 4e9, "sum": 1 / 20e9}
    models, network = {"tcp": way, "shm": way}, {"latency": 20e-6, "rate": 1e9, "way": "tcp"}
    b = 16 << 20
    want = 60e-6 + 30 * 2e-6 + 4 * 60 * 2e-6 + 30 / 16 * b / 1e9  # pieces of 256 KiB: four turns; the network is slower
    expect(near(scaling.libgrad_seconds(16, b, network, models), want, 1e-9), "libgrad on a slow network")
    want += 30 / 16 * b * (1 / 4e9 - 1 / 20e9) + b / 20e9 - 30 / 16 * b / 1e9
    expect(near(scaling.libgrad_seconds(16, b, {**network, "rate": 1e12}, models), want, 1e-9), "libgrad on slow processors")
    fast = {"latency": 1e-6, "rate": 50e9}
    expect(near(scaling.nccl_seconds(8, 1 << 26, fast), 8.4e-6 + 14 * 9.6e-6 + 14 / 8 * 2 ** 26 / 50e9, 1e-9), "a ring")
    expect(near(scaling.nccl_seconds(1024, 4096, fast), 20 * 50e-6 + 2 * 4096 / 45e9, 1e-9), "a tree")
    parameters = 2 * scaling.BUCKET // 4  # two buckets, after two thirds of the step and at its end
    expect(near(scaling.exposed(3.0, parameters, lambda b: 0.5), 0.5, 1e-9), "what a short all_reduce adds")
    expect(near(scaling.exposed(3.0, parameters, lambda b: 2.5), 4.0, 1e-9), "what a long all_reduce adds")


def check_page():
    done = run("--fit", "--data", os.path.join(ROOT, "tests", "data", "scaling.json"))
    expect(done.returncode == 0 and "greatest deviation" in done.stdout, f"recorded data: {done.stdout} {done.stderr}")
    table = run("--predict").stdout
    with open(os.path.join(ROOT, "doc", "scaling.md"), encoding="ascii") as f:
        page = f.read()
    expect(table.count("\n") == 14 and table in page, f"doc/scaling.md has another table than tools/scaling.py --predict:\n{table}")
    expect(run().returncode == 2, "tools/scaling.py without options")
    expect(run("--fit", "--build", "/nowhere").returncode == 1, "tools/scaling.py --build /nowhere")


def check_measured(program, module, mpirun):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = subprocess.run([mpirun, *root, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-n", "2", program,
                           "0.01", "65536", "4194304"], capture_output=True, text=True, timeout=100, env={**os.environ, "LIBGRAD_MPI": module})
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 0 and [p["bytes"] for p in lines] == [65536, 4194304], f"group_bench: {done.stdout} {done.stderr}")
    for p in lines:
        expect(p["ranks"] == 2 and p["calls"] >= 5 and 0 < p["least"] <= p["median"] and math.isfinite(p["median"]) and p["sum"] > 0,
               f"group_bench: {p}")


def main():
    scaling = load()
    check_fit(scaling)
    check_formulas(scaling)
    check_page()
    if len(sys.argv) > 3:
        check_measured(*sys.argv[1:])
    print("\n".join(wrong) or "the model holds")
    return 1 if wrong else 0


sys.dont_write_bytecode = True
sys.exit(main())
