"""models.py - losses of the networks of models/ as PyTorch trains them, from weights and batches given by a formula.

Run with a Python that has torch: python3 tests/data/models.py > tests/data/models.txt. A line is a network's name and its
losses at steps 1 to 5 (f32, SGD of momentum 0.9, lr 0.01, and 0.0003 for resnet18). The formulas are those of tests/test_models.c:
u(k, i) is a hash of two numbers in [0, 1); weight i of parameter k, of fan_in f, is (2 u(k, i) - 1) sqrt(3 / f); other
parameters of one dimension are 1 + 0.1 (2 u - 1) if they are a norm's weight, 0.1 (2 u - 1) if not; batch t has labels
(3 n + t) mod 10 and pixels 0.3 u(1000 + t, i) + 0.7 sin(0.1 (label + 1) (row + 2 column)).
"""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def u(k, i):
    x = (i.astype(np.uint64) * 2654435761 + k * 40503 + 12345) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> shift
        x = (x * factor) & 0xFFFFFFFF
    x ^= x >> 16
    return x.astype(np.float64) / 4294967296.0


def fill(net):
    for k, (name, p) in enumerate(net.named_parameters()):
        v = 2 * u(k, np.arange(p.numel())) - 1
        if p.dim() > 1:
            v = v * math.sqrt(3.0 / (p.numel() // p.shape[0]))
        else:
            v = 0.1 * v + (1.0 if name.endswith("weight") else 0.0)
        p.data.copy_(torch.from_numpy(v).reshape(p.shape).to(torch.float32))


def batch(t, count, side):
    labels = (3 * np.arange(count) + t) % 10
    noise = u(1000 + t, np.arange(count * side * side)).reshape(count, 1, side, side)
    row, column = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    wave = np.sin(0.1 * (labels[:, None, None] + 1) * (row + 2 * column)[None])
    x = 0.3 * noise + 0.7 * wave[:, None]
    return torch.from_numpy(x).to(torch.float32), torch.from_numpy(labels)


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


def conv_norm(i, o, kernel, stride):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(o))


class Residual(nn.Module):
    def __init__(self, block, shortcut):
        super().__init__()
        self.block, self.shortcut = block, shortcut

    def forward(self, x):
        return self.block(x) + self.shortcut(x)


def block(i, o, stride):
    body = nn.Sequential(conv_norm(i, o, 3, stride), nn.ReLU(), conv_norm(o, o, 3, 1))
    shortcut = conv_norm(i, o, 1, stride) if stride != 1 or i != o else nn.Identity()
    return nn.Sequential(Residual(body, shortcut), nn.ReLU())


def resnet18(channels=1, classes=10):
    layers, i = [conv_norm(channels, 64, 3, 1), nn.ReLU()], 64
    for stage in range(4):
        o = 64 << stage
        layers += [block(i, o, 2 if stage else 1), block(o, o, 1)]
        i = o
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


def train(make, count, side, lr, steps):
    net = make()
    fill(net)
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    losses = []
    for t in range(steps):
        x, y = batch(t, count, side)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    import sys
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, make, count, side, lr in (("lenet", lenet, 32, 28, 0.01), ("cnn", cnn, 32, 28, 0.01),
                                        ("resnet18", resnet18, 24, 16, 0.0003)):
        print(name, *("%.9g" % v for v in train(make, count, side, lr, steps)))
