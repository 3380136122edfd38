"""ops.py - writes ops.txt: losses, soft-max and reductions of fixed inputs as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/ops.py > tests/data/ops.txt. Each line is a name and numbers: the
result, then its gradient by x (of the sum of the result weighted by 1, 2, 3, ... where it has several elements).
"""
import torch
import torch.nn.functional as F
from golden import show

X = torch.tensor([[0.5, -1.25, 2.0, 0.1], [1.5, 0.3, -0.7, 2.2], [-0.4, 0.9, 0.25, -1.1]], dtype=torch.float64)
T = torch.tensor([2, 0, 3])
Y = torch.arange(12, dtype=torch.float64).reshape(3, 4) / 4 - 1
IMAGE = torch.sin(torch.arange(24, dtype=torch.float64)).reshape(2, 3, 4)
IMAGE_T = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]])

show("softmax_0", lambda x: F.softmax(x, 0), X)
show("softmax_1", lambda x: F.softmax(x, 1), X)
show("log_softmax_1", lambda x: F.log_softmax(x, -1), X)
show("log_softmax_0", lambda x: F.log_softmax(x, 0), X)
show("glu_1", lambda x: F.glu(x, -1), X)
show("glu_image", lambda x: F.glu(x, 2), IMAGE)
show("cross_entropy", lambda x: F.cross_entropy(x, T), X)
show("cross_entropy_sum", lambda x: F.cross_entropy(x, T, reduction="sum"), X)
show("cross_entropy_none", lambda x: F.cross_entropy(x, T, reduction="none"), X)
show("cross_entropy_ignore", lambda x: F.cross_entropy(x, T, ignore_index=0), X)
show("cross_entropy_smooth", lambda x: F.cross_entropy(x, T, label_smoothing=0.1), X)
show("cross_entropy_smooth_ignore", lambda x: F.cross_entropy(x, T, label_smoothing=0.3, ignore_index=3), X)
show("cross_entropy_image", lambda x: F.cross_entropy(x, IMAGE_T, label_smoothing=0.2), IMAGE)
show("cross_entropy_one", lambda x: F.cross_entropy(x[0], T[0]), X)
show("mse", lambda x: F.mse_loss(x, Y), X)
show("mse_sum", lambda x: F.mse_loss(x, Y, reduction="sum"), X)
show("mse_none", lambda x: F.mse_loss(x, Y, reduction="none"), X)
show("var_1", lambda x: x.var(1), X)
show("var_all_biased", lambda x: x.var(unbiased=False), X)
show("amax_0", lambda x: x.amax(0), X)
show("gelu", lambda x: F.gelu(x), X)
show("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), X)
show("softplus", lambda x: F.softplus(x, 1.5, 2.0), X)
show("elu", lambda x: F.elu(x, 1.3), X)
show("leaky_relu", lambda x: F.leaky_relu(x, 0.1), X)
show("silu", lambda x: F.silu(x), X)
show("pow", lambda x: (x * x + 0.5) ** 2.5, X)
show("linear", lambda x: F.linear(x, Y, Y[:, 0]), X)
