#!/usr/bin/env python3
"""autocast.py: compares the classes of calls.def with what torch.autocast("cuda") does; needs PyTorch, but no GPU.

PyTorch runs each call's function under autocast on fake CUDA tensors, which have a dtype and no memory: so functions
that PyTorch makes of others have the class of those.
"""
import pathlib
import re
import sys
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

ROOT = pathlib.Path(__file__).resolve().parent.parent
# PyTorch's names where they are others.
NAMES = {"nll": "nll_loss", "l1": "l1_loss", "smooth_l1": "smooth_l1_loss", "huber": "huber_loss", "mse": "mse_loss",
         "bce": "binary_cross_entropy", "bce_with_logits": "binary_cross_entropy_with_logits", "gelu_tanh": "gelu",
         "grid_sample": "grid_sampler"}
# Calls of more than torch.name(x) or torch.name(x, y).
CALLS = {
    "conv1d": lambda x, y, i: torch.conv1d(x, y.reshape(4, 4, 2)),
    "conv2d": lambda x, y, i: torch.conv2d(x[None], y.reshape(4, 2, 2, 2)),
    "conv_transpose1d": lambda x, y, i: torch.conv_transpose1d(x, y.reshape(4, 4, 2)),
    "conv_transpose2d": lambda x, y, i: torch.conv_transpose2d(x[None], y.reshape(2, 4, 2, 2)),
    "attention": lambda x, y, i: F.scaled_dot_product_attention(x[None], y[None], y[None]),
    "linear": lambda x, y, i: F.linear(x, y[0]),
    "prelu": lambda x, y, i: F.prelu(x, y[0, 0]),
    "layer_norm": lambda x, y, i: F.layer_norm(x, (4,)),
    "rms_norm": lambda x, y, i: F.rms_norm(x, (4,)),
    "group_norm": lambda x, y, i: F.group_norm(x, 2),
    "nll_loss": lambda x, y, i: F.nll_loss(x[0], i),
    "cross_entropy": lambda x, y, i: F.cross_entropy(x[0], i),
    "logsumexp": lambda x, y, i: torch.logsumexp(x, 0),
    "scatter_add": lambda x, y, i: torch.scatter_add(x[0, 0], 0, i, y[0, 1]),
    "where": lambda x, y, i: torch.where(x > y, x, y),
    "lerp": lambda x, y, i: torch.lerp(x, y, 0.5),
    "batch_norm": lambda x, y, i: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda x, y, i: F.instance_norm(x),
    "sort": lambda x, y, i: torch.sort(x)[0],
    "topk": lambda x, y, i: torch.topk(x, 2)[0],
    "cat": lambda x, y, i: torch.cat((x, y)),
    "stack": lambda x, y, i: torch.stack((x, y)),
    "gather": lambda x, y, i: torch.gather(x[0, 0], 0, i),
    "index_select": lambda x, y, i: torch.index_select(x, 1, i),
    "embedding": lambda x, y, i: F.embedding(i, x[0]),
    "embedding_bag": lambda x, y, i: F.embedding_bag(i[None], x[0]),
    "interpolate": lambda x, y, i: F.interpolate(x, scale_factor=2),
    "pixel_shuffle": lambda x, y, i: F.pixel_shuffle(x.permute(1, 0, 2), 2),
    "fold": lambda x, y, i: F.fold(x, 3, 2),
    "lp_pool1d": lambda x, y, i: F.lp_pool1d(x, 2, 2), "lp_pool2d": lambda x, y, i: F.lp_pool2d(x, 2, 2),
    "lp_pool3d": lambda x, y, i: F.lp_pool3d(x[None], 2, 2),
    "max_unpool1d": lambda x, y, i: F.max_unpool1d(x, i.expand(2, 4, 4), 2),
    "max_unpool2d": lambda x, y, i: F.max_unpool2d(x, i.expand(2, 4, 4), 2),
    "max_unpool3d": lambda x, y, i: F.max_unpool3d(x[None], i.expand(1, 2, 4, 4), 2),
    "fractional_max_pool2d": lambda x, y, i: F.fractional_max_pool2d(x, 2, output_size=2),
    "fractional_max_pool3d": lambda x, y, i: F.fractional_max_pool3d(x[None], 1, output_size=1),
    "affine_grid": lambda x, y, i: F.affine_grid(x[:, :2, :3], (2, 1, 4, 4)),
    "grid_sampler": lambda x, y, i: F.grid_sample(x[None], y[None, :1, :, :2]),
    "rotary": lambda x, y, i: x * y,
    "pad_sequence": lambda x, y, i: torch.nn.utils.rnn.pad_sequence([x, y]),
    "index_add": lambda x, y, i: torch.index_add(x, 1, i, y),
    "masked_fill": lambda x, y, i: torch.masked_fill(x, x > y, 0),
    "flip": lambda x, y, i: torch.flip(x, (0,)),
    "roll": lambda x, y, i: torch.roll(x, 1, 0),
    "repeat": lambda x, y, i: x.repeat(2, 1, 1),
    "pad": lambda x, y, i: F.pad(x, (1, 1)),
    "permute": lambda x, y, i: x.permute(2, 0, 1),
    "slice": lambda x, y, i: x[:, :, 1:3],
    "expand": lambda x, y, i: x.expand(3, 2, 4, 4),
    "reshape": lambda x, y, i: x.reshape(32),
    "contiguous": lambda x, y, i: x.transpose(0, 1).contiguous(),
    "feature_dropout": lambda x, y, i: F.dropout1d(x, 0.5),
    "alpha_dropout": lambda x, y, i: F.alpha_dropout(x, 0.5, True),
    "feature_alpha_dropout": lambda x, y, i: F.feature_alpha_dropout(x, 0.5, True),
    "diagonal": lambda x, y, i: torch.diagonal(x), "diag_embed": lambda x, y, i: torch.diag_embed(x),
    "diag": lambda x, y, i: torch.diag(x[0]), "diagflat": lambda x, y, i: torch.diagflat(x),
    "trace": lambda x, y, i: torch.trace(x[0]), "block_diag": lambda x, y, i: torch.block_diag(x[0], y[0]),
    "movedim": lambda x, y, i: torch.movedim(x, 0, 1), "rot90": lambda x, y, i: torch.rot90(x),
    "narrow": lambda x, y, i: torch.narrow(x, 1, 0, 2), "unflatten": lambda x, y, i: torch.unflatten(x, 1, (2, 2)),
    "tile": lambda x, y, i: torch.tile(x, (2,)), "repeat_interleave": lambda x, y, i: torch.repeat_interleave(x, 2, 0),
    "repeat_interleave_by": lambda x, y, i: torch.repeat_interleave(x, 2, 0),
    "cartesian_prod": lambda x, y, i: torch.cartesian_prod(x[0, 0], y[0, 0]),
    "combinations": lambda x, y, i: x.expand(2, 2, 4, 4),
    "einsum": lambda x, y, i: torch.einsum("bij,bkj->bik", x, y), "outer": lambda x, y, i: torch.outer(x[0, 0], y[0, 0]),
    "tensordot": lambda x, y, i: torch.tensordot(x, y, dims=([2], [1])),
    "kron": lambda x, y, i: torch.kron(x, y), "cross": lambda x, y, i: torch.cross(x[:, :3], y[:, :3], 1),
    "addmm": lambda x, y, i: torch.addmm(x[0], y[0], y[1]), "addmv": lambda x, y, i: torch.addmv(x[0, 0], y[0], y[1, 0]),
    "baddbmm": lambda x, y, i: torch.baddbmm(x, y, y),
    "bilinear": lambda x, y, i: F.bilinear(x[0], y[0], torch.cat((x, y))[:, :4]),
    "clamp": lambda x, y, i: torch.clamp(x, 0, 1),
    "leaky_relu": lambda x, y, i: F.leaky_relu(x, 0.1),
    "log_sigmoid": lambda x, y, i: F.logsigmoid(x), "lerp_scalar": lambda x, y, i: torch.lerp(x, y, 0.5),
    "add_scalar": lambda x, y, i: x + 3, "sub_scalar": lambda x, y, i: x - 3, "rsub_scalar": lambda x, y, i: 3 - x,
    "mul_scalar": lambda x, y, i: x * 3, "div_scalar": lambda x, y, i: x / 3,
    "rdiv_scalar": lambda x, y, i: 2 / x, "pow_scalar": lambda x, y, i: x ** 1.5, "rpow_scalar": lambda x, y, i: 1.5 ** x,
    "polygamma": lambda x, y, i: torch.polygamma(2, x), "threshold": lambda x, y, i: F.threshold(x, 0.5, 2),
    "fmod_scalar": lambda x, y, i: torch.fmod(x, 2), "remainder_scalar": lambda x, y, i: torch.remainder(x, 2),
    "floor_divide_scalar": lambda x, y, i: torch.floor_divide(x, 2), "xlogy_scalar": lambda x, y, i: torch.xlogy(x, 2),
    "rxlogy_scalar": lambda x, y, i: torch.xlogy(2, x), "copysign_scalar": lambda x, y, i: torch.copysign(x, -2),
    "addcmul": lambda x, y, i: torch.addcmul(x, y, y), "addcdiv": lambda x, y, i: torch.addcdiv(x, y, y),
    "round_decimals": lambda x, y, i: torch.round(x), "renorm": lambda x, y, i: torch.renorm(x, 2, 0, 8),
    "softmin": lambda x, y, i: F.softmin(x, -1),
    "maximum_scalar": lambda x, y, i: torch.clamp_min(x, 0.5), "minimum_scalar": lambda x, y, i: torch.clamp_max(x, 0.5),
}
# The argument that a row gives after x.
SECOND = {"cumsum": 0, "cumprod": 0, "logcumsumexp": 0, "softmax": -1, "log_softmax": -1, "glu": -1, "max_pool1d": 2,
          "max_pool2d": 2, "avg_pool1d": 2, "avg_pool2d": 2, "adaptive_avg_pool1d": 2, "adaptive_avg_pool2d": 2,
          "adaptive_max_pool2d": 2, "pixel_unshuffle": 2, "channel_shuffle": 2, "unfold": 2, "local_response_norm": 2, "dropout": 0.5, "max": 0, "min": 0}
# In test_autocast.c instead of calls.def.
BY_HAND = [("LOW", "prelu", False), ("SAME", "bernoulli", False)]
# On CUDA an error in PyTorch, where libgrad takes f32; without values of no known size; of a dtype that is given.
WITHOUT_CLASS = {"binary_cross_entropy", "masked_select", "cast"}

def promoted():
    header = pathlib.Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
    body = re.search(r"#define AT_FORALL_PROMOTE\(_\)((?:.*\\\n)*.*)", header.read_text())
    return set(re.findall(r"_\((\w+)[,)]", body.group(1)))


def run(name, two, dtype):
    x, y = (torch.empty(2, 4, 4, dtype=dtype, device="cuda") for _ in range(2))
    i = torch.empty(4, dtype=torch.int64, device="cuda")
    f = getattr(F, name, None) or getattr(torch, name, None)
    out = (CALLS[name](x, y, i) if name in CALLS else f(x, SECOND[name]) if name in SECOND else
           f(x, y) if two else f(x))
    return (out if isinstance(out, torch.Tensor) else out[0]).dtype


def class_of(name, two, promotes):
    half, full = (run(name, two, dtype) for dtype in (torch.float16, torch.float32))
    return {(torch.float16, torch.float16): "LOW", (torch.float32, torch.float32): "F32"}.get(
        (half, full), "WIDEST" if name in promotes else "SAME")


def rows():
    """The class of each op, and whether it has two operands."""
    calls, pointwise = (ROOT / "tests/calls.def").read_text(), (ROOT / "kernels/pointwise.def").read_text()
    classes = {name: of for of, names in re.findall(r"^ELEMENTWISE\((\w+), ([^)]*)\)", calls, re.M) for name in names.split()}
    elementwise = re.findall(r"^(UNARY|BINARY|TERNARY)\((\w+),", pointwise, re.M)
    unknown = set(classes) - {name for _, name in elementwise}
    if unknown:
        sys.exit(f"calls.def has classes of {', '.join(sorted(unknown))}, which are not in pointwise.def")
    return [(classes.get(name, "SAME"), name, family == "BINARY") for family, name in elementwise] + [
        (of, name, "x[1]" in call) for of, name, call in re.findall(r"^CALL\(\w+, (\w+),\s+lg_(\w+)\((.*)", calls, re.M)]


def main():
    found, promotes, wrong = rows() + BY_HAND, promoted(), []
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.float16)
    with FakeTensorMode():
        for of, op, two in dict.fromkeys(found):
            name = NAMES.get(op, op)
            is_of = of if name in WITHOUT_CLASS else class_of(name, two, promotes)
            if is_of != of:
                wrong.append(f"{op} is {of} here, and {is_of} in PyTorch")
    print("\n".join(wrong + [f"{len(found)} calls, {len(wrong)} differences"]))
    return bool(wrong)


sys.exit(main())
