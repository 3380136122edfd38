# scaler.py - writes scaler.txt: torch.amp.GradScaler over 10,000 steps of one optimiser, and of two, for tests/test_scaler.c.
# A line is the name of a run, a step after which the scale is another one, that scale, and how many updates each optimiser
# has made by then. The last line of a run is that of its last step.
import torch

STEPS = 10000


def run(f, name, optimisers):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=20)
    weights = [torch.zeros((), requires_grad=True) for _ in range(optimisers)]
    opts = [torch.optim.SGD([w], lr=1.0) for w in weights]
    seed, last = 1, scaler.get_scale()
    for t in range(STEPS):
        for w, opt in zip(weights, opts):
            seed = (seed * 1103515245 + 12345) % 2**31
            draw = seed >> 8
            odd = draw % 40 == 0 if t < 3000 or t >= 6100 else t >= 6000
            slope = (float("inf") if draw // 40 % 2 else float("nan")) if odd else 1.0
            opt.zero_grad()
            scaler.scale(w * slope).backward()
        for opt in opts:
            scaler.step(opt)
        scaler.update()
        if scaler.get_scale() != last or t == STEPS - 1:
            last = scaler.get_scale()
            print(name, t, last.hex(), *[int(-w.item()) for w in weights], file=f)


with open(__file__.replace(".py", ".txt"), "w") as f:
    run(f, "one", 1)
    run(f, "two", 2)
