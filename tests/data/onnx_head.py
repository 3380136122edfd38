#!/usr/bin/env python3
"""onnx_head.py - makes onnx_head.onnx: a small network, trained by PyTorch to tell the directions of stripes.

The example onnx_head trains its head for another task. It needs torch, onnx and onnxscript: onnx_head.py FOLDER"""
import sys
import onnx
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.fc = nn.Linear(64, 4)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 2), 1))


def batch(n):
    """Stripes in one of four directions, of random wavelengths and phases, with noise."""
    kind = torch.randint(4, (n,))
    angle = kind.float()[:, None, None] * torch.pi / 4
    length, phase = 3 + 4 * torch.rand(n, 1, 1), 6 * torch.rand(n, 1, 1)
    y, x = torch.meshgrid(torch.arange(16.), torch.arange(16.), indexing='ij')
    stripes = torch.sin(2 * torch.pi * (x * angle.cos() + y * angle.sin()) / length + phase)
    return (stripes + 0.3 * torch.randn(n, 16, 16))[:, None], kind


def main():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for step in range(200):
        x, kind = batch(64)
        loss = nn.functional.cross_entropy(net(x), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, kind = batch(1000)
    net.eval()
    print('accuracy', (net(x).argmax(1) == kind).float().mean().item())
    path = sys.argv[1] + '/onnx_head.onnx'
    torch.onnx.export(net, (x[:2],), path, input_names=['image'], output_names=['scores'],
                      dynamic_shapes=({0: torch.export.Dim('batch')},), external_data=False, optimize=False)
    model = onnx.load(path)
    for part in [model, model.graph, *model.graph.node, *model.graph.value_info]: # traces of the exporter
        del part.metadata_props[:]
    onnx.save(model, path)


main()
