# optim.py - writes optim.txt: 200 steps of PyTorch's optimisers in f64 on the problem of tests/test_optim.c.
#
# p[i] starts at sin(i + 1); the gradient at step t is p[i] (1 + i / 4) + cos(t + i). One line a variant: its name, p at the end
# (average: its exponential moving average, which is p itself after the first step; names that end in _matrix: p is 2 x 3,
# and in _tall: 3 x 2). PyTorch has no Lion and no LAMB, and its Muon iterates in bf16: these are written here from the papers.
import math
import sys

import torch

torch.set_default_dtype(torch.float64)  # of the scalars that NAdam and ASGD store
N, STEPS = 6, 200


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, algorithm 2."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                g = -p.grad if group["maximize"] else p.grad
                c = b1 * m + (1 - b1) * g
                p -= lr * (torch.sign(c) + group["weight_decay"] * p)
                m.copy_(b2 * m + (1 - b2) * g)


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi(z) = z."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01, maximize=False):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr = group["betas"], group["lr"]
            for p in group["params"]:
                s = self.state[p]
                m, v = s.setdefault("m", torch.zeros_like(p)), s.setdefault("v", torch.zeros_like(p))
                t = s["t"] = s.get("t", 0) + 1
                g = -p.grad if group["maximize"] else p.grad
                m.copy_(b1 * m + (1 - b1) * g)
                v.copy_(b2 * v + (1 - b2) * g * g)
                r = (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + group["eps"])
                u = r + group["weight_decay"] * p
                x, y = float((p * p).sum()) ** 0.5, float((u * u).sum()) ** 0.5
                p -= lr * (x / y if x > 0 and y > 0 else 1.0) * u


class Muon(torch.optim.Muon):
    """PyTorch's own step, around the iteration of Jordan et al. 2024 in f64."""

    def step(self):
        def iterate(g, coefficients, steps, eps):
            (a, b, c), x = coefficients, g.clone()
            x = x.T if g.size(0) > g.size(1) else x
            x = x / max(float(x.norm()), eps)
            for _ in range(steps):
                y = x @ x.T
                x = a * x + (b * y + c * y @ y) @ x
            return x.T if g.size(0) > g.size(1) else x

        module = sys.modules["torch.optim._muon"]
        was, module._zeropower_via_newtonschulz = module._zeropower_via_newtonschulz, iterate
        super().step()
        module._zeropower_via_newtonschulz = was


VARIANTS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
    "sgd_decay": lambda p: torch.optim.SGD(p, lr=0.01, weight_decay=0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "sgd_dampening": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, dampening=0.3, weight_decay=0.1),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.8, nesterov=True, weight_decay=0.1),
    "sgd_maximize": lambda p: torch.optim.SGD(p, lr=0.001, momentum=0.5, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "adam_betas": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.5, 0.9), eps=1e-3),
    "adam_beta_zero": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.0, 0.9)),
    "adam_maximize": lambda p: torch.optim.Adam(p, lr=0.001, maximize=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adamw_default": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "adamax_betas": lambda p: torch.optim.Adamax(p, lr=0.02, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1),
    "adamax_maximize": lambda p: torch.optim.Adamax(p, lr=0.001, maximize=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "rmsprop_decay": lambda p: torch.optim.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-3, weight_decay=0.1),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.001, momentum=0.9, centered=True),
    "rmsprop_maximize": lambda p: torch.optim.RMSprop(p, lr=0.001, maximize=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "adagrad_decay": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.01, weight_decay=0.1),
    "adagrad_initial": lambda p: torch.optim.Adagrad(p, lr=0.1, initial_accumulator_value=0.5, eps=1e-3),
    "adagrad_maximize": lambda p: torch.optim.Adagrad(p, lr=0.01, maximize=True),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "adadelta_rho": lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.5, eps=1e-3, weight_decay=0.1),
    "adadelta_rho_zero": lambda p: torch.optim.Adadelta(p, lr=0.1, rho=0.0, eps=1e-2),
    "adadelta_maximize": lambda p: torch.optim.Adadelta(p, lr=0.1, maximize=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "nadam_betas": lambda p: torch.optim.NAdam(p, lr=0.02, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1, momentum_decay=0.1),
    "nadam_decoupled": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "nadam_maximize": lambda p: torch.optim.NAdam(p, lr=0.001, maximize=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "radam_betas": lambda p: torch.optim.RAdam(p, lr=0.02, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1),
    "radam_short": lambda p: torch.optim.RAdam(p, lr=0.01, betas=(0.9, 0.5)),
    "radam_decoupled": lambda p: torch.optim.RAdam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "radam_maximize": lambda p: torch.optim.RAdam(p, lr=0.001, maximize=True),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.01),
    "asgd_decay": lambda p: torch.optim.ASGD(p, lr=0.1, lambd=0.1, alpha=0.5, t0=20, weight_decay=0.1),
    "asgd_maximize": lambda p: torch.optim.ASGD(p, lr=0.001, maximize=True),
    "asgd_average": lambda p: torch.optim.ASGD(p, lr=0.1, lambd=0.1, alpha=0.5, t0=20),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "rprop_sizes": lambda p: torch.optim.Rprop(p, lr=0.1, etas=(0.3, 1.5), step_sizes=(1e-2, 0.2)),
    "rprop_maximize": lambda p: torch.optim.Rprop(p, lr=0.001, maximize=True),
    "lion": lambda p: Lion(p, lr=0.01),
    "lion_decay": lambda p: Lion(p, lr=0.01, betas=(0.5, 0.8), weight_decay=0.1),
    "lion_maximize": lambda p: Lion(p, lr=0.001, maximize=True),
    "lamb": lambda p: Lamb(p, lr=0.01),
    "lamb_decay": lambda p: Lamb(p, lr=0.01, betas=(0.5, 0.9), eps=1e-3, weight_decay=0.1),
    "lamb_maximize": lambda p: Lamb(p, lr=0.001, maximize=True),
    "adafactor": lambda p: torch.optim.Adafactor(p),
    "adafactor_matrix": lambda p: torch.optim.Adafactor(p),
    "adafactor_rates_tall": lambda p: torch.optim.Adafactor(p, lr=0.1, beta2_decay=-0.5, eps=(1e-3, 1e-2), d=2.0, weight_decay=0.1),
    "adafactor_maximize": lambda p: torch.optim.Adafactor(p, lr=0.001, maximize=True),
    "muon_matrix": lambda p: Muon(p),
    "muon_tall": lambda p: Muon(p, lr=0.01, momentum=0.8, weight_decay=0.2, nesterov=False),
    "muon_steps_matrix": lambda p: Muon(p, lr=0.01, ns_coefficients=(2.0, -1.5, 0.5), ns_steps=3, eps=10.0),
    "muon_rms_tall": lambda p: Muon(p, lr=0.01, adjust_lr_fn="match_rms_adamw"),
    "muon_unclamped_matrix": lambda p: Muon(p, lr=0.01, adjust_lr_fn="spectral_unclamped"),
    "muon_vector": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "clip_norm": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "clip_three": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "clip_greatest": lambda p: torch.optim.Adam(p, lr=0.01),
    "clip_value": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
    "average": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
}

CLIPS = {
    "clip_norm": lambda p: torch.nn.utils.clip_grad_norm_(p, 1.5),
    "clip_three": lambda p: torch.nn.utils.clip_grad_norm_(p, 1.0, 3),
    "clip_greatest": lambda p: torch.nn.utils.clip_grad_norm_(p, 0.5, math.inf),
    "clip_value": lambda p: torch.nn.utils.clip_grad_value_(p, 0.4),
}
DECAY = 0.95

with open(__file__.replace(".py", ".txt"), "w") as f:
    for name, make in VARIANTS.items():
        shape = (2, 3) if name.endswith("_matrix") else (3, 2) if name.endswith("_tall") else (N,)
        p = torch.tensor([math.sin(i + 1) for i in range(N)]).reshape(shape).requires_grad_()
        opt = make([p])
        factor = torch.tensor([1 + i / 4 for i in range(N)]).reshape(shape)
        for t in range(STEPS):
            p.grad = p.detach() * factor + torch.tensor([math.cos(t + i) for i in range(N)]).reshape(shape)
            if name in CLIPS:
                CLIPS[name]([p])
            opt.step()
            average = p.detach().clone() if t == 0 else DECAY * average + (1 - DECAY) * p.detach()
        last = average if name == "average" else opt.state[p]["ax"] if name == "asgd_average" else p
        f.write(name + " " + " ".join("%.17g" % x for x in last.flatten().tolist()) + "\n")
