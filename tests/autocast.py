#!/usr/bin/env python3
"""autocast.py HEADER: compares autocast.def with PyTorch's include/ATen/autocast_mode.h, its lists for CUDA.

Each row must have the class of the header's list that holds its name, or SAME if none does; and each name on a list
that libgrad has, as the name of an op or by another name in OTHER_NAMES, must have a row.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = {"AT_FORALL_LOWER_PRECISION_FP": "LOW", "AT_FORALL_FP32": "F32", "AT_FORALL_FP32_SET_OPT_DTYPE": "F32",
         "AT_FORALL_PROMOTE": "WIDEST"}
# PyTorch's names of what libgrad calls otherwise, or does as a part of another op.
OTHER_NAMES = {"nll_loss": "nll", "l1_loss": "l1", "smooth_l1_loss": "smooth_l1", "huber_loss": "huber", "mse_loss": "mse",
               "binary_cross_entropy_with_logits": "bce_with_logits", "linalg_vector_norm": "norm"}
# In PyTorch an error on CUDA, where libgrad takes f32.
WITHOUT_LIST = {"binary_cross_entropy"}


def classes_of(header):
    found = {}
    for name, of in LISTS.items():
        body = re.search(r"#define " + name + r"\(_\)((?:.*\\\n)*.*)", header)
        if not body:
            sys.exit(f"{name}: not in the header")
        for op in re.findall(r"_\((\w+)[,)]", body.group(1)):
            found[op] = of
    return found


def ops_of_libgrad():
    text = (ROOT / "kernels/pointwise.def").read_text() + (ROOT / "libgrad/ops/ops.def").read_text()
    return set(re.findall(r"^[A-Z_]+\((\w+)[,)]", text, re.M))


def main():
    listed = classes_of(pathlib.Path(sys.argv[1]).read_text())
    rows = re.findall(r"^ROW\((\w+), (\w+),", (ROOT / "tests/autocast.def").read_text(), re.M)
    wrong = [f"{name} is {of} here, and {listed.get(name, 'SAME')} in PyTorch"
             for of, name in rows if listed.get(name, "SAME") != of and name not in WITHOUT_LIST]
    ops, named = ops_of_libgrad(), {name for _, name in rows}
    wrong += [f"{name} is {of} in PyTorch and has no row here" for name, of in sorted(listed.items())
              if OTHER_NAMES.get(name, name) in ops and name not in named]
    print("\n".join(wrong + [f"{len(rows)} rows, {len(listed)} names on PyTorch's lists, {len(wrong)} differences"]))
    return bool(wrong)


sys.exit(main())
