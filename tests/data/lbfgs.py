# lbfgs.py - writes lbfgs.txt: steps of torch.optim.LBFGS in f64 on the problem of tests/test_lbfgs.c.
#
# a (2, 3) and b (2) have the values sin(i + 1), i = 0 to 7 over both. With p the eight values, the loss is the sum of bend (p[i + 1]
# - p[i]^2)^2 + (1 - p[i])^2, Rosenbrock's function: bend is 100, or 1 for the plain variants, whose steps without a line search would
# otherwise make a difference of one unit in the last place 1e-8. A line: the variant, the number of steps, the loss at the beginning of the
# last step, a, b.
import math

import torch

STEPS = 1, 2, 3, 5, 10, 20, 200
VARIANTS = {
    "plain": dict(lr=0.2, max_iter=4),
    "plain_short": dict(lr=0.1, max_iter=3, history_size=2),
    "plain_calls": dict(lr=0.05, max_iter=10, max_eval=6),
    "wolfe": dict(lr=1, max_iter=4, line_search_fn="strong_wolfe"),
    "wolfe_short": dict(lr=0.5, max_iter=2, history_size=3, line_search_fn="strong_wolfe"),
    "wolfe_calls": dict(lr=5, max_iter=10, max_eval=4, line_search_fn="strong_wolfe"),
    "wolfe_maximize": dict(lr=1, max_iter=4, line_search_fn="strong_wolfe", maximize=True),
    "wolfe_tolerant": dict(lr=1, max_iter=50, tolerance_grad=1e-2, tolerance_change=1e-4, line_search_fn="strong_wolfe"),
    "wolfe_default": dict(lr=1, line_search_fn="strong_wolfe"),
}

with open(__file__.replace(".py", ".txt"), "w") as f:
    for name, options in VARIANTS.items():
        values = torch.tensor([math.sin(i + 1) for i in range(8)], dtype=torch.float64)
        a, b = values[:6].reshape(2, 3).clone().requires_grad_(), values[6:].clone().requires_grad_()
        opt = torch.optim.LBFGS([a, b], **options)

        def closure():
            opt.zero_grad()
            p = torch.cat([a.reshape(-1), b])
            bend = 1 if name.startswith("plain") else 100
            loss = torch.sum(bend * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2)
            loss = -loss if options.get("maximize") else loss
            loss.backward()
            return loss

        for step in range(1, STEPS[-1] + 1):
            loss = opt.step(closure)
            if step in STEPS:
                numbers = [loss.item()] + a.flatten().tolist() + b.tolist()
                f.write("%s %d %s\n" % (name, step, " ".join("%.17g" % n for n in numbers)))
