# optim.py - writes optim.txt: 100 steps of PyTorch's optimisers in f64 on the problem of tests/test_optim.c.
#
# p[i] starts at sin(i + 1); the gradient at step t is p[i] (1 + i / 4) + cos(t + i). One line a variant: its name, p at the end
# (average: its exponential moving average, which is p itself after the first step).
import math

import torch

N, STEPS = 6, 100
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
        p = torch.tensor([math.sin(i + 1) for i in range(N)], dtype=torch.float64, requires_grad=True)
        opt = make([p])
        factor = torch.tensor([1 + i / 4 for i in range(N)], dtype=torch.float64)
        for t in range(STEPS):
            p.grad = p.detach() * factor + torch.tensor([math.cos(t + i) for i in range(N)], dtype=torch.float64)
            if name in CLIPS:
                CLIPS[name]([p])
            opt.step()
            average = p.detach().clone() if t == 0 else DECAY * average + (1 - DECAY) * p.detach()
        last = average if name == "average" else p
        f.write(name + " " + " ".join("%.17g" % x for x in last.tolist()) + "\n")
