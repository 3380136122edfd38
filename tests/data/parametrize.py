"""parametrize.py - writes parametrize.txt: layers with weight norm, spectral norm and orthogonal weights as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/parametrize.py > tests/data/parametrize.txt
"""
import torch
from torch.nn.utils import parametrizations
from golden import show, tensor

X = tensor(2, 4, phase=0.3)
IMAGE = tensor(1, 2, 3, 3, phase=0.3)


def layer(make, norm, values, **options):
    """A function that runs the layer with its parameters that are named `values`, x for the first."""
    def run(x):
        m = norm(make().double(), "weight", **options)
        state = {"parametrizations.weight." + name: tensor(*shape, phase=phase) for name, shape, phase in values[1:]}
        return torch.func.functional_call(m, {"parametrizations.weight." + values[0]: x, **state},
                                          IMAGE if isinstance(m, torch.nn.modules.conv._ConvNd) else X)
    return run


def linear():
    return torch.nn.Linear(4, 3, bias=False)


def conv():
    return torch.nn.Conv2d(2, 3, 2, bias=False)


def up():
    return torch.nn.ConvTranspose2d(2, 3, 2, bias=False)


W = parametrizations.weight_norm
show("weight_norm", layer(linear, W, ["original1", ("original0", (3, 1), 1)]), tensor(3, 4))
show("weight_norm_of_g", layer(linear, W, ["original0", ("original1", (3, 4), 1)]), tensor(3, 1))
show("weight_norm_dim", layer(linear, W, ["original1", ("original0", (1, 4), 1)], dim=1), tensor(3, 4))
show("weight_norm_whole", layer(linear, W, ["original1", ("original0", (), 1)], dim=None), tensor(3, 4))
show("weight_norm_conv", layer(conv, W, ["original1", ("original0", (3, 1, 1, 1), 1)]), tensor(3, 2, 2, 2))


def spectral(make, evaluate, **options):
    """One forward from vectors by formula; in training its result is that of the improved vectors."""
    def run(x):
        m = make().double()
        rows = options.get("dim", 1 if isinstance(m, torch.nn.ConvTranspose2d) else 0)
        m = parametrizations.spectral_norm(m, "weight", **options)
        p = m.parametrizations.weight[0]
        p._u.copy_(torch.nn.functional.normalize(tensor(p._u.numel(), phase=0.5), dim=0))
        p._v.copy_(torch.nn.functional.normalize(tensor(p._v.numel(), phase=0.9), dim=0))
        m.train(not evaluate)
        y = torch.func.functional_call(m, {"parametrizations.weight.original": x}, X if make is linear else IMAGE)
        return torch.cat([y.reshape(-1), p._u, p._v])
    return run


show("spectral_norm", spectral(linear, False), tensor(3, 4))
show("spectral_norm_evaluated", spectral(linear, True), tensor(3, 4))
show("spectral_norm_steps", spectral(linear, False, n_power_iterations=3, dim=1), tensor(3, 4))
show("spectral_norm_conv", spectral(conv, False), tensor(3, 2, 2, 2))
show("spectral_norm_up", spectral(up, False), tensor(2, 3, 2, 2))


def orthogonal(columns, rows, map):
    """The weight made of x, with a base by formula."""
    def run(x):
        m = parametrizations.orthogonal(torch.nn.Linear(columns, rows, bias=False).double(), "weight", map)
        n = max(columns, rows)
        m.parametrizations.weight[0].base.copy_(tensor(n, n, phase=0.5))
        return torch.func.functional_call(m, {"parametrizations.weight.original": x}, torch.eye(columns).double()).mT
    return run


for map in None, "matrix_exp", "cayley", "householder":
    show(f"orthogonal_{map or 'auto'}", orthogonal(4, 4, map), tensor(4, 4))
    show(f"orthogonal_{map or 'auto'}_wide", orthogonal(4, 3, map), tensor(3, 4))
    show(f"orthogonal_{map or 'auto'}_tall", orthogonal(2, 4, map), tensor(4, 2))
