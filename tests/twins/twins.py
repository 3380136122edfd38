"""twins.py - weights to and from PyTorch, by safetensors files: networks of models/ give the logits of their twins.

twins.py PROGRAM DATA. PROGRAM is twins.c's; the twins are DATA/models.py's. python.sh finds a Python that has torch and safetensors.
$LG_TEST_IMAGES: how many test images resnet18 sees, a multiple of 25; lenet sees 1,000.
"""
import gzip
import os
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from safetensors.torch import load_file, save_file

program, data = sys.argv[1:]
sys.dont_write_bytecode = True  # nothing is written beside models.py
folder = os.environ.get("LIBGRAD_DATA", "/usr/share/datasets/fashion-mnist")
sys.path.insert(0, data)
import models

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "u8": torch.uint8, "bool": torch.bool}
LIMITS = {"f32": 1e-4, "f64": 1e-8}
STEPS = 20  # as in twins.c


def idx(name, header):
    """The bytes behind the header of a file of the test set."""
    path = os.path.join(folder, name)
    with (gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")) as f:
        return numpy.frombuffer(f.read(), numpy.uint8, offset=header)


def put_images(path, count):
    images = torch.from_numpy(idx("t10k-images-idx3-ubyte", 16)[:count * 784] / numpy.float32(255)).reshape(count, 1, 28, 28)
    labels = torch.from_numpy(idx("t10k-labels-idx1-ubyte", 8)[:count].astype("int64"))
    save_file({"images": images, "labels": labels}, path)
    return images


def logits_of(net, images):
    net.eval()
    with torch.no_grad():
        return torch.cat([net(part) for part in images.split(100)])


def check(words, ours, theirs, limit):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (words, ours.dtype, ours.shape)
    assert theirs.std(dim=0).min() > 1e-3, f"{words}: the images are all the same to this network"
    error = ((ours - theirs).abs().max() / max(1.0, theirs.abs().max())).item()
    print(f"{words}: {len(ours)} images, largest error {error:.1e}", flush=True)
    assert error <= limit, words


def run(*arguments):
    subprocess.run([program, *arguments], check=True)


def at(name):
    return os.path.join(work, name)


def twin(make, dtype, x):
    """A network with weights, and statistics of three batches, that no other has."""
    torch.manual_seed(3)
    net = make().to(DTYPES[dtype])
    for m in net.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(m.weight, 0.5, 1.5)
            torch.nn.init.uniform_(m.bias, -0.2, 0.2)
            m.momentum = None  # the statistics are the means of all batches
    with torch.no_grad():
        for part in x[:24].split(8):
            net(part)
    return net


def from_pytorch(name, make, dtype, images):
    """Logits by weights and statistics that come from PyTorch."""
    x = images.to(DTYPES[dtype])
    net = twin(make, dtype, x)
    save_file(net.state_dict(), at("weights"))
    run("load", name, dtype, at("weights"), at("images"), at("result"))
    wanted = logits_of(net, x)
    check(f"{name} in {dtype}, from PyTorch", load_file(at("result"))["logits"], wanted, LIMITS[dtype])
    return net, wanted


def to_pytorch(name, make, dtype, images):
    """The other way round."""
    run("train", name, dtype, at("weights"), at("images"), at("result"))
    weights = load_file(at("weights"))
    net = make().to(DTYPES[dtype])
    assert {k: (v.dtype, v.shape) for k, v in weights.items()} == {k: (v.dtype, v.shape) for k, v in net.state_dict().items()}
    net.load_state_dict(weights)  # strict: no name is missing or left over
    assert all(v == STEPS for k, v in net.state_dict().items() if k.endswith("num_batches_tracked"))
    check(f"{name} in {dtype}, to PyTorch", load_file(at("result"))["logits"], logits_of(net, images.to(DTYPES[dtype])),
          LIMITS[dtype])


def torchvision_names():
    """torchvision's names of the parts of resnet18, and what they are called here."""
    names = ["conv1", "0.0", "bn1", "0.1", "fc", "12"]
    for i in range(8):
        ours, theirs = 2 + i, f"layer{i // 2 + 1}.{i % 2}"
        for k in (0, 1):
            names += [f"{theirs}.conv{k + 1}", f"{ours}.0.block.{2 * k}.0", f"{theirs}.bn{k + 1}", f"{ours}.0.block.{2 * k}.1"]
        names += [f"{theirs}.downsample", f"{ours}.0.shortcut"]
    return names


def by_other_names(net, wanted):
    """Weights of a resnet18 in torchvision's names, which lg_load changes."""
    names = torchvision_names()
    back = sorted(((ours, theirs) for theirs, ours in zip(names[::2], names[1::2])), key=lambda pair: -len(pair[0]))
    state = {}
    for name, value in net.state_dict().items():
        ours, theirs = next(pair for pair in back if name.startswith(pair[0] + "."))
        state[theirs + name[len(ours):]] = value
    assert "layer2.0.downsample.0.weight" in state and len(state) == len(net.state_dict())
    save_file(state, at("weights"))
    run("load", "resnet18", "f32", at("weights"), at("images"), at("result"), *names)
    check("resnet18 in f32, by torchvision's names", load_file(at("result"))["logits"], wanted, LIMITS["f32"])


def sequences():
    """Attention and transformers: names and shapes of all weights, and results by weights of either."""
    x, k = torch.randn(5, 3, 16), torch.randn(7, 3, 16)
    nn, of = torch.nn, {"affine": True, "track_running_stats": True}
    volumes = lambda: nn.Sequential(nn.Conv3d(2, 4, (3, 1, 2), padding=(1, 2, 1), padding_mode="replicate"), nn.BatchNorm3d(4),
                                    nn.InstanceNorm3d(4, **of), nn.ConvTranspose3d(4, 2, 2, stride=2), nn.Dropout3d(), nn.MaxPool3d(2),
                                    nn.AdaptiveAvgPool3d(3))
    signals = lambda: nn.Sequential(nn.ConvTranspose1d(2, 4, 3, stride=2), nn.InstanceNorm1d(4, **of), nn.ReflectionPad1d((2, 1)),
                                    nn.MaxPool1d(2))
    for name, make, inputs in (("volumes", volumes, (torch.randn(2, 2, 4, 5, 6), torch.zeros(1))),
                               ("signals", signals, (torch.randn(2, 2, 9), torch.zeros(1))),
                               ("attention", lambda: torch.nn.MultiheadAttention(16, 4), (x, k, k)),
                               ("attention-shared", lambda: nn.MultiheadAttention(16, 4, add_bias_kv=True, add_zero_attn=True), (x, k, k)),
                               ("attention-sizes", lambda: torch.nn.MultiheadAttention(16, 4, kdim=12, vdim=20),
                                (x, torch.randn(7, 3, 12), torch.randn(7, 3, 20))),
                               ("transformer", lambda: torch.nn.Transformer(16, 4, 2, 1, 24), (x, k)),
                               ("transformer-pre", lambda: torch.nn.Transformer(16, 4, 2, 1, 24, norm_first=True), (x, k))):
        net = make().eval()
        for p in net.parameters():
            torch.nn.init.normal_(p, 0, 0.3)
        save_file(net.state_dict(), at("weights"))
        save_file({key: value.clone() for key, value in zip("xkv", inputs)}, at("inputs"))
        run("sequences", name, at("weights"), at("inputs"), at("result"), at("new"))
        got = load_file(at("result"))
        for which in "theirs", "ours":
            if which == "ours":
                net.load_state_dict(load_file(at("new")))  # strict: no name is missing or left over
            with torch.no_grad():
                wanted = net(*(inputs if inputs[1].dim() > 1 else inputs[:1]))
            wanted = wanted[0] if isinstance(wanted, tuple) else wanted
            error = ((got[which] - wanted).abs().max() / max(1.0, wanted.abs().max())).item()
            print(f"{name}, {which} weights: largest error {error:.1e}", flush=True)
            assert got[which].shape == wanted.shape and error <= 1e-5, (name, which)


def bits(name, dtype):
    count = 40 * dtype.itemsize
    k = numpy.arange(count)
    return (k % 3 == 0 if name == "bool" else (k * 37 + 11) % 256).astype("uint8")


def dtypes():
    tensors = {name: torch.frombuffer(bytearray(bits(name, d)), dtype=d).reshape(5, 8) for name, d in DTYPES.items()}
    save_file(tensors, at("from"))
    run("dtypes", at("from"), at("to"))
    got = load_file(at("to"))
    assert got.keys() == DTYPES.keys(), got.keys()
    for name, d in DTYPES.items():
        assert got[name].dtype == d and got[name].shape == (5, 8), name
        assert got[name].contiguous().view(torch.uint8).numpy().tobytes() == bits(name, d).tobytes(), name
    print("8 dtypes: bit for bit, both ways", flush=True)


with tempfile.TemporaryDirectory() as work:
    dtypes()
    sequences()
    for name, make, count in ("lenet", models.lenet, 1000), ("resnet18", models.resnet18, int(os.environ.get("LG_TEST_IMAGES", 25))):
        images = put_images(at("images"), count)
        for dtype in LIMITS:
            start = time.time()
            net, wanted = from_pytorch(name, make, dtype, images)
            if name == "resnet18" and dtype == "f32":
                by_other_names(net, wanted)
            to_pytorch(name, make, dtype, images)
            print(f"{time.time() - start:.0f} s", flush=True)
