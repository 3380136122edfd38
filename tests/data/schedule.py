# schedule.py - writes schedule.txt: learning rates of two groups, and the first one's momentum or beta1, at steps 0 to 100 of
# PyTorch's schedules, for tests/test_schedule.c. One line a schedule: its name, then lr 0, lr 1 and momentum of each step.
import math

import torch
from torch.optim.lr_scheduler import *  # noqa: F403

STEPS = 100


def metric(t):
    return abs(30 - t) / 30 + 0.1 * math.sin(t)


SCHEDULES = {
    "step": lambda o: StepLR(o, 7, 0.5),
    "multi_step": lambda o: MultiStepLR(o, [3, 10, 10, 40], 0.3),
    "exponential": lambda o: ExponentialLR(o, 0.97),
    "cosine": lambda o: CosineAnnealingLR(o, 30, 0.001),
    "cosine_restarts": lambda o: CosineAnnealingWarmRestarts(o, 7),
    "cosine_restarts_longer": lambda o: CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "polynomial": lambda o: PolynomialLR(o, 30),
    "polynomial_power": lambda o: PolynomialLR(o, 60, 2.5),
    "multiplicative": lambda o: MultiplicativeLR(o, lambda t: 0.9 ** (t // 5)),
    "cyclic": lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=12),
    "cyclic_halved": lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=5, step_size_down=9, mode="triangular2",
                                        base_momentum=0.5, max_momentum=0.7),
    "cyclic_range": lambda o: CyclicLR(o, 0.01, 0.1, step_size_up=8, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "linear": lambda o: LinearLR(o, total_iters=12),
    "linear_down": lambda o: LinearLR(o, 1.0, 0.25, 40),
    "constant": lambda o: ConstantLR(o, 0.5, 8),
    "lambda": lambda o: LambdaLR(o, lambda t: 0.9 ** (t // 5)),
    "one_cycle": lambda o: OneCycleLR(o, 0.5, 101),
    "one_cycle_linear": lambda o: OneCycleLR(o, 0.5, 101, pct_start=0.2, anneal_strategy="linear", div_factor=10,
                                             final_div_factor=100, base_momentum=0.8, max_momentum=0.9),
    "one_cycle_three": lambda o: OneCycleLR(o, 0.5, 101, three_phase=True, cycle_momentum=False),
    "plateau": lambda o: ReduceLROnPlateau(o, factor=0.5, patience=4, cooldown=2, min_lr=1e-4),
    "plateau_max": lambda o: ReduceLROnPlateau(o, "max", factor=0.7, patience=3, threshold=0.01, threshold_mode="abs"),
    "sequential": lambda o: SequentialLR(o, [LinearLR(o, total_iters=10), CosineAnnealingLR(o, 60),
                                             ExponentialLR(o, 0.9)], [10, 70]),
    "chained": lambda o: ChainedScheduler([ConstantLR(o, 0.1, 5), ExponentialLR(o, 0.95), StepLR(o, 20, 0.5)]),
}

with open(__file__.replace(".py", ".txt"), "w") as f:
    for name, make in SCHEDULES.items():
        a, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
        opt = torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.02}], lr=0.1, momentum=0.9)
        s = make(opt)
        numbers = []
        for t in range(STEPS + 1):
            if t:
                opt.step()
                s.step(metric(t)) if name.startswith("plateau") else s.step()
            numbers += [opt.param_groups[0]["lr"], opt.param_groups[1]["lr"], opt.param_groups[0]["momentum"]]
        f.write(name + " " + " ".join("%.12g" % v for v in numbers) + "\n")
