"""gpu_report.py - parts of tools/gpu-check in Python: a small data set, a comparison of losses, tables of figures.

gpu_report.py cut DATA FOLDER TRAIN TEST      writes the first images of Fashion-MNIST as a small data set
gpu_report.py losses NAME CPU_LOG CUDA_LOG    prints a table row that compares logs of fashion-mnist --log-steps 1
gpu_report.py suite FILE COUNT                prints the outcome of COUNT tests, from meson's testlog.json
gpu_report.py figures FILE                    prints a report of the figures of gpu_bench and gpu_torch.py
gpu_report.py coverage FILE                   checks that each kernel and each family of pointwise.def has a figure
Exit status 1: losses differ, a test or a figure failed, a requested part has no figure, or a kernel has no row; 3: nothing
failed, but tests did not run or figures were left out because the time was over. The last line of "figures" begins with
"Complete" (0), "Incomplete" (3) or "Failed" (1).
"""
import datetime
import gzip
import json
import os
import re
import statistics
import struct
import sys

FIRST_STEPS, TOLERANCE, END_TOLERANCE = {"resnet18": 3}, 1e-3, 0.1  # first steps compared; 5 for other models
KERNELS = """
### Kernels

Microseconds of a call, many calls and one wait. Share: of the speed of the best copy, PyTorch's included (bytes; what
only reads or only writes may pass it), or of the best product of that dtype, PyTorch's included (operations as a plain
convolution has them, of which other algorithms need fewer). Ratio: libgrad's time over PyTorch's; below 1 libgrad is
faster."""
OPS = """
### Small ops

Microseconds for one op; of a chain: its time over 100, backward included where it is named."""
STEPS = """
### Training steps

Forward, backward and Adam on a batch that is on the device already; microseconds, the median of all rounds, and in
brackets the ratio of libgrad's time to it; below 1 libgrad is faster."""
LAUNCHES = """Launches of one step: libgrad's own kernels and calls of cuBLASLt and cuDNN, each of which launches one or
more; kernels of PyTorch's eager step by its profiler, its libraries' included:"""
PREDICTED = """
### Predictions

Of tools/gpu_predicted.txt, made for an H100: in each cell the prediction, what was measured, and its ratio to the middle of
the prediction. Microseconds, except for launches."""
TRANSFERS = """
### Transfers

GB/s of one copy after another and one wait, of f32 in host memory that is pageable unless it is called pinned. libgrad
has no copy to pinned memory."""
ERRORS = """
### Errors

max|x - ref| / max(1, max|ref|) of results and gradients on the device beside f64 on the CPU, from the same inputs, and
how much of its limit that is; results that are no numbers of a float dtype must be equal."""
PREDICTED_COLUMNS = ["launches", "libgrad", "eager", "graph", "compile"]  # of tools/gpu_predicted.txt
TOOLS = os.path.dirname(os.path.abspath(__file__))
WORST = 20  # rows of the first table of errors, at least
FLOATS = {"f32", "f16", "bf16"}
# Kernels that need a figure in fewer dtypes; those of plain are of integers.
FEWER = {name: {"f32"} for name in ("arange", "unscale", "rescale", "plain", "plain_scalar")}
FEWER.update({name: {"f32", "f64"} for name in ("fft", "cholesky", "lu", "triangular", "qr", "eigh", "svd")})


def table(head, rows):
    print("\n| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


# ---- images ----

def cut(data, folder, train, test):
    """Writes the first `train` and `test` images of Fashion-MNIST and their labels to `folder` as a data set."""
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
    """Prints a row of the table of training, with the conditions that the losses do not meet. Returns 1 if there are any."""
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
    """Prints counts and failures from meson's testlog.json, which has a test per line. A skipped test counts as not passed; of a
    test that was run again the last outcome counts."""
    tests = {}
    with open(path, errors="replace") as f:
        for line in f:
            test = json.loads(line)
            tests[test["name"]] = test
    skipped = [test for test in tests.values() if test["result"] == "SKIP"]
    bad = [test for test in tests.values() if test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")]
    good = len(tests) - len(skipped) - len(bad)
    slow = [(test.get("duration", 0), name.split(" / ")[-1]) for name, test in tests.items()]
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


def best_speeds(ours, theirs):
    """Returns bytes per microsecond of the fastest copy, and operations per microsecond of the fastest product by dtype."""
    copy, product = 0, {}
    for f in ours:
        us = min(f["us"], theirs.get((f["name"], f["dtype"], f["size"]), f["us"]))
        if f["name"] == "copy":
            copy = max(copy, f["bytes"] / us)
        elif f["name"].startswith("gemm"):
            product[f["dtype"]] = max(product.get(f["dtype"], 0), f["flops"] / us)
    return copy, product


def kernels(figures):
    ours = [f for f in figures if "by" not in f and f.get("us")]
    theirs = {(f["name"], f["dtype"], f["size"]): f["us"] for f in figures if "by" in f and f.get("us")}
    copy, product = best_speeds(ours, theirs)
    rows = []
    for f in ours:
        key = (f["name"], f["dtype"], f["size"])
        amount, unit, scale, best = ((f["flops"], "TFLOP/s", 1e6, product.get(f["dtype"])) if f["flops"] else
                                     (f["bytes"], "GB/s", 1e3, copy))
        speed = amount / f["us"]
        peer = theirs.get(key)
        rows.append([*key, number(f["us"], 4), "%s %s" % (number(speed / scale), unit) if amount else "-",
                     "%.3g %%" % (100 * speed / best) if amount and best else "-",
                     number(peer, 4), ratio(f["us"], peer)])
    print(KERNELS)
    if copy:
        print("Best copy: %s GB/s." % number(copy / 1e3), " ".join(
            "Best product of %s: %s TFLOP/s." % (dtype, number(speed / 1e6)) for dtype, speed in product.items()))
    table(["kernel", "dtype", "size", "us", "speed", "share", "PyTorch us", "ratio"], rows)
    alone = sorted({row[0] for row in rows if row[-1] == "-"})
    if theirs and alone:
        print("Without a figure of PyTorch's, in one size or dtype at least: %s.\n" % "; ".join(alone))


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


def compare_with_predictions(measured):
    """Prints steps beside their predictions; `measured` is {(model, products): {column: number}}."""
    def cell(text, found):
        predicted = statistics.fmean(map(float, text.split("-")))
        return "%s, %s" % (text, "%s, %.2f" % (number(found, 4), found / predicted) if found else "-")
    with open(os.path.join(TOOLS, "gpu_predicted.txt")) as f:
        lines = [line.split()[1:] for line in f if line.startswith("step ")]
    rows = [[model, products] + [cell(text, measured[model, products].get(c)) for c, text in zip(PREDICTED_COLUMNS, texts)]
            for model, products, *texts in lines if (model, products) in measured]
    if rows:
        print(PREDICTED)
        table(["model", "products"] + PREDICTED_COLUMNS, rows)


def steps(figures):
    print(STEPS)
    rows, memory, launches, measured = [], [], [], {}
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
        launches.append(row[:3] + [number(middle(modes.get(m, []), "launches"), 6) for m in ("libgrad", "eager")])
        if batch == 64:
            measured[name, row[2]] = {"launches": middle(modes.get("libgrad", []), "launches"), **us}
    head = ["model", "batch", "products", "libgrad", "PyTorch eager", "PyTorch CUDA graph", "torch.compile"]
    table(head, rows)
    print("Peak memory in MiB, parameters, gradients and Adam's moments included:")
    table(head, memory)
    print(LAUNCHES)
    table(head[:5], launches)
    compare_with_predictions(measured)


def transfers(figures):
    print(TRANSFERS)
    rows = []
    for name in dict.fromkeys(f["name"] for f in figures):
        speed = {}
        for f in figures:
            if f["name"] == name and f.get("us"):
                speed.setdefault(f.get("by", "libgrad"), []).append(f["bytes"] / f["us"] / 1e3)
        ours, theirs = (statistics.median(speed[m]) if m in speed else None for m in ("libgrad", "eager"))
        rows.append([name, number(ours), number(theirs), ratio(theirs, ours)])
    table(["copy", "libgrad GB/s", "PyTorch GB/s", "time, libgrad / PyTorch"], rows)


def share_of_limit(f):
    return float("inf") if "failed" in f else f["error"] / f["limit"] if f["limit"] else 0


def errors(figures):
    """Prints a row for each op, ordered by the worst share of a limit over its dtypes."""
    print(ERRORS)
    ops = {}
    for f in figures:
        ops.setdefault(f["name"], {})[f["dtype"]] = f
    dtypes = list(dict.fromkeys(f["dtype"] for f in figures))
    for dtype in dtypes:
        found = [f for f in figures if f["dtype"] == dtype]
        limits = ", ".join("%g" % limit for limit in sorted({f["limit"] for f in found} - {0}))
        print("- %s: %d results and gradients, %d above the limit of %s, %d equal" % (
            dtype, len(found), sum("failed" in f for f in found), limits, sum(f.get("error") == 0 for f in found)))
    order = sorted(ops, key=lambda name: -max(map(share_of_limit, ops[name].values())))

    def cell(f):
        if f is None:
            return "-"
        error = "%.1e" % f["error"] if "error" in f else "none"
        return error + (" **failed**" if "failed" in f else " (%.0f %%)" % (100 * share_of_limit(f)))
    rows = [[name] + [cell(ops[name].get(dtype)) for dtype in dtypes] for name in order]
    bad = sum(any("failed" in f for f in ops[name].values()) for name in order)
    first = max(WORST, bad)
    print("\nAll that failed and the worst others:")
    table(["op"] + dtypes, rows[:first])
    if rows[first:]:
        print("<details><summary>The other %d</summary>" % len(rows[first:]))
        table(["op"] + dtypes, rows[first:])
        print("</details>\n")


def read_figures(path):
    """Returns the figures, and the lines that are not figures."""
    found, strange = [], []
    with open(path, errors="replace") as f:
        for line in f:
            try:
                figure = json.loads(line)
                figure["part"]
                found.append(figure)
            except (ValueError, KeyError, TypeError):
                strange.append(line.strip()[:200])
    return found, strange


PARTS = {"kernels", "ops", "transfers", "errors", "versions"}  # any other part is a model


def runs(found):
    """Returns (begin, figures, end) of each run, which are its first line, figures and last line; end is None if it was cut off."""
    all_runs = []
    for f in found:
        if f["part"] == "begin":
            all_runs.append([f, [], None])
        elif all_runs and f["part"] == "end":
            all_runs[-1][2] = f
        elif all_runs:
            all_runs[-1][1].append(f)
    return all_runs


def gaps(found):
    """Returns messages about figures left out because the time was over, and about other parts that have no figure."""
    late, missing = [], []
    for begin, printed, end in runs(found):
        who = "gpu_torch.py" if "by" in begin else "gpu_bench"
        if end is None:
            late.append("%s %s was cut off after %d figures" % (who, " ".join(begin["parts"]), len(printed)))
        elif end["left_out"]:
            late.append("%s left %d figures out" % (who, end["left_out"]))
        else:
            missing += ["%s printed nothing of %s" % (who, part) for part in begin["parts"]
                        if not any(f["part"] == part if part in PARTS else f.get("name") == part for f in printed)]
    return late, missing


def figures(path):
    found, strange = read_figures(path)
    print("Figures of %s UTC." % datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M"))
    for f in found:
        if f["part"] == "versions":
            print("PyTorch %s, CUDA %s, cuDNN %s, on %s." % (f["torch"], f["cuda"], f["cudnn"], f["device"]))
    for part, show in (("kernels", kernels), ("ops", ops), ("steps", steps), ("transfers", transfers),
                       ("errors", errors)):
        of_part = [f for f in found if f["part"] == part and "name" in f]
        if of_part:
            show(of_part)
    late, missing = gaps(found)
    failed = [f for f in found if "failed" in f]
    for f in failed:
        print("- %s %s %s %s failed%s: %s" % (f["part"], f["name"], f.get("dtype", ""), f.get("size", ""),
                                              " in PyTorch (%s)" % f["by"] if "by" in f else "", f["failed"]))
    for line in missing + late:
        print("- " + line)
    for line in strange:
        print("- not understood: `%s`" % line)
    bad = sum(f.get("by") in (None, "eager") for f in failed) + len(missing)
    count = sum("name" in f and "failed" not in f for f in found)
    if not any("name" in f and "by" not in f and "failed" not in f for f in found):
        bad, late = bad or 1, late + ["libgrad has no figure"]
    print("\n" + ("Failed: %d figures or parts" % bad if bad else "Incomplete" if late else "Complete") +
          "; %d figures%s." % (count, "".join("; " + line for line in late)))
    return 1 if bad else 3 if late else 0


# ---- coverage ----

def kernels_there_are():
    """Returns (name, members): each kernel of kernels.def and updates.def, each family of pointwise.def and of its derivatives."""
    folder = os.path.join(TOOLS, "..", "kernels")
    needed = []
    for file in "kernels.def", "updates.def":
        with open(os.path.join(folder, file)) as f:
            needed += [(name, {name}) for name in re.findall(r"^(?:KERNEL|UPDATE)\((\w+)", f.read(), re.M)]
    with open(os.path.join(folder, "pointwise.def")) as f:
        lines = re.findall(r"^([A-Z_]+)\((\w+)", f.read(), re.M)
    slopes = {"UNARY": ["_da"], "BINARY": ["_da", "_db"], "TERNARY": ["_da", "_db"]}
    for family in dict.fromkeys(family for family, _ in lines):
        for suffix in [""] + slopes.get(family, []):
            needed.append((family.lower() + suffix, {name + suffix for f, name in lines if f == family}))
    return needed


def coverage(path):
    found, _ = read_figures(path)
    measured = {}
    for f in found:
        if f["part"] == "kernels" and "by" not in f and "name" in f:
            for name in f["kernels"].split():
                measured.setdefault(name, set()).add(f["dtype"])
    needed, bad = kernels_there_are(), 0
    for name, members in needed:
        absent = FEWER.get(name, FLOATS) - set().union(*(measured.get(member, set()) for member in members))
        if absent:
            bad += 1
            print("%s has no row in gpu_kernels.def of %s" % (name, ", ".join(sorted(absent))))
    unknown = set(measured) - set().union(*(members for _, members in needed))
    for name in sorted(unknown):
        print("rows name a kernel %s, which there is not" % name)
    print("%d kernels and families, %d without a row" % (len(needed), bad))
    return 1 if bad or unknown or not needed else 0


if __name__ == "__main__":
    call = {"cut": cut, "losses": losses, "suite": suite, "figures": figures, "coverage": coverage}
    if len(sys.argv) < 2 or sys.argv[1] not in call:
        sys.stderr.write("usage: gpu_report.py %s ...\n" % "|".join(call))
        sys.exit(2)
    sys.exit(call[sys.argv[1]](*sys.argv[2:]))
