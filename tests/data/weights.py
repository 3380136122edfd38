#!/usr/bin/env python3
"""weights.py - tests/data/weights.safetensors, written by the safetensors package, and a check of one that libgrad wrote.

    pip install safetensors==0.5.3 numpy
    weights.py write FILE
    weights.py check FILE     # of: LG_TEST_WEIGHTS=FILE tests/tests_private safetensors
"""
import struct
import sys

sys.path.pop(0)  # nothing of this folder is imported
import safetensors


def bf16(values):
    return b"".join(struct.pack("<f", v)[2:] for v in values)  # exact ones only


TEXT = 'quote " backslash \\ slash / newline \n tab \t bell \x07 delete \x7f \u00e9 \u20ac \U0001d11e'
METADATA = {"format": "pt", 'a "key"\n': TEXT, "": "empty key", "empty": ""}
# name: (dtype of the file, of the package, shape, bytes)
TENSORS = {
    "f64": ("F64", "float64", [2, 2], struct.pack("<4d", 0.1, -2.5, 1e300, float("-inf"))),
    "f32": ("F32", "float32", [3], struct.pack("<3f", 0.1, -2.5, float("inf"))),
    "f16": ("F16", "float16", [1, 4], struct.pack("<4e", 1.0, -2.0, 65504.0, 2**-24)),
    "bf16": ("BF16", "bfloat16", [3], bf16([1.0, -2.0, 2.0**100])),
    "i64": ("I64", "int64", [2], struct.pack("<2q", -(2**63), 2**53 + 1)),
    "i32": ("I32", "int32", [2, 1], struct.pack("<2i", -(2**31), 2**31 - 1)),
    "u8": ("U8", "uint8", [5], bytes([0, 1, 127, 128, 255])),
    "bool": ("BOOL", "bool", [3], bytes([1, 0, 1])),
    "0d": ("I64", "int64", [], struct.pack("<q", 42)),
    "empty": ("F32", "float32", [3, 0, 2], b""),
    "\u00fcn\u00efc\u00f6d\u20ac.\U0001d11e \"quoted\" \\ \n": ("F32", "float32", [1], struct.pack("<f", 3.0)),
}


def check(path):
    data = open(path, "rb").read()
    got = dict(safetensors.deserialize(data))
    assert got.keys() == TENSORS.keys(), got.keys()
    for name, (dtype, _, shape, values) in TENSORS.items():
        t = got[name]
        assert (t["dtype"], t["shape"], bytes(t["data"])) == (dtype, shape, values), (name, t)
    with safetensors.safe_open(path, "np") as f:
        assert f.metadata() == METADATA, f.metadata()
    (header,) = struct.unpack("<Q", data[:8])
    assert header % 8 == 0
    print(f"{path}: {len(got)} tensors and {len(METADATA)} strings are right")


if len(sys.argv) == 3 and sys.argv[1] == "write":
    tensors = {name: {"dtype": d, "shape": s, "data": b} for name, (_, d, s, b) in TENSORS.items()}
    open(sys.argv[2], "wb").write(safetensors.serialize(tensors, METADATA))
elif len(sys.argv) == 3 and sys.argv[1] == "check":
    check(sys.argv[2])
else:
    sys.exit(__doc__)
