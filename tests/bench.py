"""bench.py - lg-bench runs every item, its figures are numbers, its networks are those of PyTorch's definitions.

bench.py LG_BENCH [TORCH_PYTHON [MODULE]]. It fails on crashes and wrong answers, never on speed. With a Python that has torch,
the networks of tools/lg_bench/torch_peer.py are counted, too; with the module for Open MPI, two processes train.
"""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARAMETERS = {"rl-mlp": 4 * 64 + 64 + 64 * 64 + 64 + 64 * 2 + 2, "pinn": 2 * 64 + 2 * (64 * 64 + 64) + 64 + 1,
              "mlp-small": 101770, "mlp-wide": 669706, "lenet": 61706, "cnn": 1199882,
              "resnet18": 11173962,  # torchvision's with a 3x3 stem and ten classes
              "encoder": 4 * (2 * 512 + 256 * 768 + 768 + 256 * 256 + 256 + 2 * 256 * 1024 + 1024 + 256) + 512 + 2570,
              "lstm": 4 * 256 * (128 + 256 + 2) + 2570, "gru": 3 * 256 * (128 + 256 + 2) + 2570}
# Batch, multiplications of a forward pass of one sample, and those of its first layer, which needs no gradient of its input.
PRODUCTS = {"rl-mlp": (32, 4480, 256), "mlp-small": (64, 101632, 100352), "mlp-wide": (128, 668672, 401408),
            "lenet": (64, 416520, 117600), "cnn": (64, 11992448, 194688), "resnet18": (32, 555422720, 1769472),
            "encoder": (8, 128 * 786432 * 4 + 4 * 2 * 128 * 128 * 256 + 2560, 0),
            "lstm": (32, 100 * 1024 * 384 + 2560, 100 * 1024 * 128), "gru": (32, 100 * 768 * 384 + 2560, 100 * 768 * 128)}
for whole in "lenet", "encoder":
    PARAMETERS[whole + "-1"] = PARAMETERS[whole]
    PRODUCTS[whole + "-1"] = (1, *PRODUCTS[whole][1:])
wrong = []


def expect(good, what):
    if not good:
        wrong.append(what)


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=500)


def check_figures(a):
    name = a["name"]
    expect("failed" not in a, f"{name}: {a}")
    for key in "us", "cpu_us", "samples", "calls", "per_second", "peak":
        expect(a.get(key, 0) > 0, f"{name}: {key} is {a.get(key)}")
    expect(a.get("least", 1) <= a.get("low", 0) <= a.get("us", 0) <= a.get("high", 0) <= a.get("most", 0),
           f"{name}: quartiles do not ascend: {a}")
    expect(a.get("parameters") == PARAMETERS.get(name), f"{name}: {a.get('parameters')} parameters")
    if name in PRODUCTS:
        batch, forward, first = PRODUCTS[name]
        expect(a.get("flops") and abs(a["flops"] / (batch * (6 * forward - 2 * first)) - 1) < 1e-5,
               f"{name}: {a.get('flops')} operations, not {batch * (6 * forward - 2 * first)}")
    if "/" in name:
        expect(a.get("bytes", 0) >= 4 * (65536 if name.endswith("/cache") else 16777216), f"{name}: {a.get('bytes')} bytes")


def check_all(program):
    """Every item, and the limits before them."""
    names = [line.split()[0] for line in run(program, "--list").stdout.splitlines()]
    expect(len(names) == len(set(names)) > 30, f"--list: {names}")
    done = run(program, "--json", "--seconds", "0.01", "--threads", "2")
    expect(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
    head, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    for key in "threads", "flops", "memory", "cache":
        expect(head[key] > 0, f"{key} is {head[key]}")
    expect([a["name"] for a in answers] == names, f"other items than --list has: {[a['name'] for a in answers]}")
    for a in answers:
        check_figures(a)


def check_options(program):
    for arguments, message in ((["--only", "lenet,nope"], 'no item "nope"'), (["--only", ""], 'no item ""'),
                               (["--only", "gelu/"], 'no item "gelu/"'), (["--seconds", "x"], "expected a number"),
                               (["--seconds", "nan"], "expected a number"), (["--threads", "1.5"], "whole number"),
                               (["--threads", "-1"], "expected a number"), (["lenet"], "--only NAMES")):
        done = run(program, *arguments)
        expect(done.returncode == 2 and message in done.stderr, f"{arguments}: {done.returncode}, {done.stderr}")
    done = run(program, "--device", "tpu")
    expect(done.returncode == 1 and "tpu" in done.stderr, f"--device tpu: {done.returncode}, {done.stderr}")
    expect("--seconds" in run(program, "--help").stdout, "--help")
    listed = run(program, "--only", "sum,mlp-wide", "--list").stdout.split("\n")
    expect([line.split(" ")[0] for line in listed] == ["mlp-wide", "sum/cache", "sum/memory", ""], f"--only: {listed}")
    table = run(program, "--only", "sum/cache", "--seconds", "0").stdout
    expect("limits:" in table and "sum/cache" in table, f"the table: {table}")


def check_serve(program):
    done = run(program, "--serve", "--seconds", "0", text="run sum/cache 0\nhello\nrun nope 1\nrun sum/cache -1\nrun adam/cache 0\n")
    head, *answers = [json.loads(line) for line in done.stdout.splitlines()]
    expect(done.returncode == 0 and head["peer"] == "libgrad", f"--serve: {done.returncode}, {head}")
    expect([("failed" in a) for a in answers] == [False, True, True, True, False], f"--serve: {answers}")


def check_driver(program):
    """Its options; and two sides by turns, which need nothing but lg-bench itself."""
    driver = [sys.executable, "-B", os.path.join(ROOT, "tools", "bench")]
    expect("--setup-peers" in run(*driver, "--help").stdout, "tools/bench --help")
    for arguments in (["--threads", "-1"], ["--rounds", "0"], ["--seconds", "0"], ["--vs", "jax", "--device", "cuda"],
                      ["--vs", "jax", "--amp", "bf16"], ["--vs", "f32"], ["--vs", "eager"], ["--amp", "f64"]):
        expect(run(*driver, *arguments).returncode == 2, f"tools/bench takes {arguments}")
    for arguments in (["--vs", "/nowhere"], ["--vs", "torch", "--python", "/nowhere"]):
        done = run(*driver, "--program", program, *arguments)
        expect(done.returncode == 1 and "/nowhere" in done.stderr, f"tools/bench {arguments}: {done.returncode}, {done.stderr}")
    mixed = [*driver, "--program", program, "--amp", "bf16", "--only", "rl-mlp,mlp-small", "--rounds", "1", "--seconds", "0.01"]
    for arguments in ([], ["--vs", "f32"]):
        expect("mlp-small" in run(*mixed, *arguments).stdout, f"tools/bench --amp bf16 {arguments}")
    recorded = [*driver, "--program", program, "--recorded", "--only", "rl-mlp,pinn,lenet-1", "--rounds", "1", "--seconds", "0.01"]
    for arguments in ([], ["--vs", "eager"]):
        expect(run(*recorded, *arguments).stdout.count("us") >= 3, f"tools/bench --recorded {arguments}")
    both = [*driver, "--program", program, "--vs", program, "--only", "sum/cache,mlp-small", "--rounds", "3", "--seconds", "0.03"]
    heads, *results = [json.loads(line) for line in run(*both, "--json").stdout.splitlines()]
    expect(list(heads["heads"]) == ["libgrad", "other"], f"heads: {heads}")
    expect([r["item"] for r in results] == ["mlp-small", "sum/cache"], f"items: {results}")
    for result in results:
        own, other = result["sides"]["libgrad"], result["sides"]["other"]
        ratios = sorted(b / a for a, b in zip(own["rounds"], other["rounds"]))
        expect(len(ratios) == 3 and other["ratio"] == ratios[1] and other["ratios"] == [ratios[0], ratios[2]],
               f"ratios of {other} and {own}")
        expect(own["share"] > 0, f"share: {own}")
    table = run(*both).stdout
    expect("mlp-small" in table and "ratio" in table, f"the table: {table}")


def check_torch(python):
    text = "".join(f"run {name} 0\n" for name in PARAMETERS)
    done = run(python, "-B", os.path.join(ROOT, "tools", "lg_bench", "torch_peer.py"), "--threads", "1", text=text)
    counts = {a["name"]: a.get("parameters") for a in map(json.loads, done.stdout.splitlines()[1:])}
    expect(counts == PARAMETERS, f"PyTorch's networks: {counts} {done.stderr}")


def check_processes(program, python, module):
    """Two processes beside one, and beside PyTorch's where there is one."""
    driver = [sys.executable, "-B", os.path.join(ROOT, "tools", "bench"), "--program", program, "--processes"]
    for arguments in (["1"], ["2", "--vs", "jax"], ["2", "--amp", "bf16"], ["2", "--clock", "cpu"], ["2", "--device", "cuda"]):
        expect(run(*driver, *arguments).returncode == 2, f"tools/bench takes --processes {arguments}")
    if not module:
        return
    os.environ["LIBGRAD_MPI"] = module
    both = [*driver, "2", *(["--vs", "torch", "--python", python] if python else []), "--rounds", "3", "--seconds", "0.03"]
    done = run(*both, "--only", "rl-mlp,op-chain,mlp-small", "--json")
    expect(done.returncode == 1 and len(done.stdout.splitlines()) == 4, f"--processes: {done.stdout} {done.stderr}")
    heads, chain, agent, small = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["libgrad", "alone", *(["DDP", "PyTorch"] if python else [])]
    expect(list(heads["heads"]) == names, f"heads: {heads}")
    expect("trains no module" in chain.get("failed", ""), f"op-chain on two processes: {chain}")
    for result, batch in (agent, 32), (small, 64):
        own = result["sides"]["libgrad"]
        for name, processes in zip(names, (2, 1, 2, 1)):
            a = result["sides"][name]
            more = 2 // processes
            ratios = sorted(more * t / mine for t, mine in zip(a["rounds"], own["rounds"]))
            expect(a["processes"] == processes and a["batch"] == batch, f"{name}: {a}")
            expect(a["ratio"] == ratios[1] and a["best"] == more * min(a["rounds"]) / min(own["rounds"]), f"{name}: {a}, {own}")
    table = run(*both, "--only", "lenet").stdout
    expect("lenet" in table and "samples per second" in table, f"the table: {table}")


def main():
    check_all(sys.argv[1])
    check_options(sys.argv[1])
    check_serve(sys.argv[1])
    check_driver(sys.argv[1])
    if len(sys.argv) > 2 and sys.argv[2]:
        check_torch(sys.argv[2])
    check_processes(sys.argv[1], *(sys.argv[2:4] + ["", ""])[:2])
    print("\n".join(wrong) or "every item ran")
    return 1 if wrong else 0


sys.exit(main())
