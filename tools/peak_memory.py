"""peak_memory.py [batch [steps [threads]]] - measures in PyTorch what models/peak_memory.c measures, for tools/peak-memory."""
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data"))
sys.dont_write_bytecode = True
from models import resnet18  # noqa: E402


def status(name):
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return -1


batch, steps, threads = (int(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((1, 32), (2, 2), (3, 0)))
if threads:
    torch.set_num_threads(threads)
net = resnet18(3, 10)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
before = status("VmRSS:")
for _ in range(steps):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("peak %d bytes above %d before; torch %s; loss %.4f" %
      (status("VmHWM:") - before, before, torch.__version__, loss.item()))
