"""gpu_report.py - what tools/gpu-check leaves to Python: a cut of the data set, losses beside each other, tables.

gpu_report.py cut DATA FOLDER TRAIN TEST      the first images of Fashion-MNIST, as files of their own
gpu_report.py losses NAME CPU_LOG CUDA_LOG    a line of a table: what fashion-mnist --log-steps 1 printed on both
gpu_report.py suite FILE COUNT                the outcome of COUNT tests, from meson's testlog.json; 3: some did not run
gpu_report.py figures FILE                    tables of what gpu_bench and gpu_torch.py printed
Exit status 1: losses differ, a test or a figure failed.
"""
import gzip
import json
import os
import re
import statistics
import struct
import sys

FIRST_STEPS, TOLERANCE, END_TOLERANCE = {"resnet18": 3}, 1e-3, 0.1  # 5 steps of the others
KERNELS = """
### Kernels

Microseconds of a call, many calls and one wait. Share: of the speed of the better copy (bytes; what only reads or only
writes may pass it), or of the best product of that dtype, PyTorch's included (operations as a plain convolution has them,
of which other algorithms need fewer). Ratio: libgrad's time over PyTorch's; below 1 libgrad is faster."""
OPS = """
### Small ops

Microseconds for one op; of a chain: its time over 100, backward included where it is named."""
STEPS = """
### Training steps

Forward, backward and Adam on a batch that is on the device already; microseconds, the median of all rounds, and in
brackets the ratio of libgrad's time to it; below 1 libgrad is faster."""


def table(head, rows):
    print("\n| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


# ---- images ----

def cut(data, folder, train, test):
    """The first images and labels of Fashion-MNIST, as a data set of its own."""
    for part, count in (("train", int(train)), ("t10k", int(test))):
        for name, side in (("images-idx3", 28), ("labels-idx1", 1)):
            path = os.path.join(data, "%s-%s-ubyte" % (part, name))
            opener, path = (open, path) if os.path.exists(path) else (gzip.open, path + ".gz")
            with opener(path, "rb") as f:
                magic, _ = struct.unpack(">II", f.read(8))
                rest = f.read((magic % 256 - 1) * 4 + count * side * side)
            with open(os.path.join(folder, os.path.basename(path).removesuffix(".gz")), "wb") as f:
                f.write(struct.pack(">II", magic, count) + rest)
    return 0


# ---- losses ----

def read_losses(path):
    with open(path, errors="replace") as f:
        text = f.read()
    accuracy = re.findall(r"^test accuracy (\S+)", text, re.M)
    return [float(v) for v in re.findall(r"^step \d+  loss (\S+)", text, re.M)], accuracy[-1] if accuracy else "none"


def losses(name, cpu_log, cuda_log):
    """A row of the table of part 5, and which of the demands it does not meet."""
    (cpu, cpu_accuracy), (cuda, cuda_accuracy) = read_losses(cpu_log), read_losses(cuda_log)
    common = min(len(cpu), len(cuda))
    if not common:
        print("| %s | %d | %d | - | - | - | - | - | no losses to compare |" % (name, len(cpu), len(cuda)))
        return 1

    def apart(a, b):
        return abs(a - b) / max(abs(a), 1e-6) if a == a and b == b else float("inf")
    steps_compared = FIRST_STEPS.get(name, 5)
    first = max(map(apart, cpu[:steps_compared], cuda[:steps_compared]))
    last = min(10, common)
    end_cpu, end_cuda = (statistics.fmean(v[common - last:common]) for v in (cpu, cuda))
    wrong = []
    if first > TOLERANCE or first != first:
        wrong.append("the first steps differ by more than %g" % TOLERANCE)
    if not abs(end_cpu - end_cuda) <= END_TOLERANCE * max(abs(end_cpu), 0.1):
        wrong.append("losses after %d steps differ by more than a tenth" % common)
    if len(cuda) >= 50 and not statistics.fmean(cuda[-10:]) < 0.9 * statistics.fmean(cuda[:5]):
        wrong.append("it does not learn")
    if cuda_accuracy == "none":
        wrong.append("cuda:0 did not come to its end")
    print("| %s | %d | %d | %.1e | %.5g | %.5g | %s | %s | %s |" % (
        name, len(cpu), len(cuda), first, end_cpu, end_cuda, cpu_accuracy, cuda_accuracy, "; ".join(wrong) or "good"))
    return 1 if wrong else 0


# ---- the suite ----

def suite(path, count):
    """Counts and failures from meson's testlog.json, a test a line. A test that was skipped did not pass."""
    good, bad, skipped, slow = 0, [], [], []
    with open(path, errors="replace") as f:
        for line in f:
            test = json.loads(line)
            slow.append((test.get("duration", 0), test["name"].split(" / ")[-1]))
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                good += 1
            else:
                (skipped if test["result"] == "SKIP" else bad).append(test)
    missing = int(count) - good - len(bad) - len(skipped)
    print("%s tests: %d passed, %d failed, %d skipped, %d not run." % (count, good, len(bad), len(skipped), missing))
    if slow:
        print("Slowest: " + ", ".join("%s %.1f s" % (name, s) for s, name in sorted(slow, reverse=True)[:5]) + ".")
    for test in skipped:
        print("Skipped: %s." % test["name"])
    for test in bad:
        text = (test.get("stdout") or "") + (test.get("stderr") or "")
        lines = [line[:300] for line in text.splitlines()
                 if line.strip() and not line.startswith(("[ RUN", "[       OK"))]
        print("\n**%s**: %s\n```\n%s\n```" % (test["name"], test["result"], "\n".join(lines[-15:])))
    return 1 if bad or skipped or not good else 3 if missing else 0


# ---- figures ----

def number(value, digits=3):
    return "-" if value is None else "%.*g" % (digits, value) if abs(value) < 1000 else "%.0f" % value


def middle(figures, key):
    found = [f[key] for f in figures if key in f]
    return statistics.median(found) if found else None


def ratio(ours, theirs):
    return "%.2f" % (ours / theirs) if ours and theirs else "-"


def kernels(figures):
    ours = [f for f in figures if "by" not in f and "us" in f]
    theirs = {(f["name"], f["dtype"], f["size"]): f["us"] for f in figures if "by" in f and "us" in f}
    if not ours:
        return
    copies = [f["bytes"] / f["us"] / 1e3 for f in ours if f["name"] == "copy"]
    best = {}
    for f in ours:
        if f["name"] == "gemm":
            us = min(f["us"], theirs.get((f["name"], f["dtype"], f["size"]), f["us"]))
            best[f["dtype"]] = max(best.get(f["dtype"], 0), f["flops"] / us / 1e6)
    rows = []
    for f in ours:
        key = (f["name"], f["dtype"], f["size"])
        speed, share = "-", "-"
        if f["flops"]:
            speed = number(f["flops"] / f["us"] / 1e6) + " TFLOP/s"
            if best.get(f["dtype"]):
                share = "%.0f %%" % (100 * f["flops"] / f["us"] / 1e6 / best[f["dtype"]])
        elif f["bytes"]:
            speed = number(f["bytes"] / f["us"] / 1e3) + " GB/s"
            if copies:
                share = "%.0f %%" % (100 * f["bytes"] / f["us"] / 1e3 / max(copies))
        peer = theirs.get(key)
        rows.append([f["name"], f["dtype"], f["size"], number(f["us"], 4), speed, share, number(peer, 4),
                     ratio(f["us"], peer)])
    print(KERNELS)
    table(["kernel", "dtype", "size", "us", "speed", "share", "PyTorch us", "ratio"], rows)


def by_mode(figures):
    modes = {}
    for f in figures:
        modes.setdefault(f.get("by", "libgrad"), []).append(f)
    return modes


def ops(figures):
    print(OPS)
    rows = []
    for name in dict.fromkeys(f["name"] for f in figures):
        modes = by_mode(f for f in figures if f["name"] == name)
        us = {mode: middle(found, "us") for mode, found in modes.items()}
        rows.append([name] + [number(us.get(mode)) for mode in ("libgrad", "eager", "graph")] +
                    [ratio(us.get("libgrad"), us.get("eager"))])
    table(["op", "libgrad", "PyTorch eager", "PyTorch CUDA graph", "libgrad / eager"], rows)


def steps(figures):
    print(STEPS)
    rows, memory = [], []
    for name, batch, tf32 in dict.fromkeys((f["name"], f["batch"], f["tf32"]) for f in figures):
        modes = by_mode(f for f in figures if (f["name"], f["batch"], f["tf32"]) == (name, batch, tf32))
        us = {mode: middle(found, "us") for mode, found in modes.items()}
        peak = {mode: middle(found, "peak") for mode, found in modes.items()}
        row = [name, str(batch), "TF32" if tf32 else "f32", number(us.get("libgrad"), 4)]
        for mode in ("eager", "graph", "compile"):
            row.append("%s (%s)" % (number(us[mode], 4), ratio(us.get("libgrad"), us[mode])) if us.get(mode) else "-")
        rows.append(row)
        memory.append(row[:3] + [number(peak[m] / 2**20, 4) if peak.get(m) else "-"
                                 for m in ("libgrad", "eager", "graph", "compile")])
    head = ["model", "batch", "products", "libgrad", "PyTorch eager", "PyTorch CUDA graph", "torch.compile"]
    table(head, rows)
    print("Peak memory in MiB, parameters, gradients and Adam's moments included:")
    table(head, memory)


def figures(path):
    found, left_out = [], 0
    with open(path, errors="replace") as f:
        for line in f:
            try:
                found.append(json.loads(line))
            except ValueError:
                print("- not understood: `%s`" % line.strip()[:200])
    for f in found:
        if f["part"] == "versions":
            print("PyTorch %s, CUDA %s, cuDNN %s, on %s." % (f["torch"], f["cuda"], f["cudnn"], f["device"]))
        left_out += f.get("left_out", 0)
    for part, show in (("kernels", kernels), ("ops", ops), ("steps", steps)):
        of_part = [f for f in found if f["part"] == part and "name" in f]
        if of_part:
            show(of_part)
    if left_out:
        print("Left out for want of time: %d kernels.\n" % left_out)
    failed = [f for f in found if "failed" in f]
    for f in failed:
        print("- %s %s %s %s failed%s: %s" % (f["part"], f["name"], f.get("dtype", ""), f.get("size", ""),
                                              " in PyTorch (%s)" % f["by"] if "by" in f else "", f["failed"]))
    return 1 if any("by" not in f for f in failed) or not any("us" in f and "by" not in f for f in found) else 0


if __name__ == "__main__":
    call = {"cut": cut, "losses": losses, "suite": suite, "figures": figures}
    sys.exit(call[sys.argv[1]](*sys.argv[2:]))
