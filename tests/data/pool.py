"""pool.py - writes pool.txt: pooling as PyTorch computes it in f64, for tests/test_pool.c. See golden.py."""
import torch.nn.functional as F
from golden import show, tensor

X = tensor(2, 2, 6, 5)
show("max_2", lambda x: F.max_pool2d(x, 2), X)
show("max_3_2_1", lambda x: F.max_pool2d(x, 3, 2, 1), X)
show("max_pairs", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), (1, 2)), X)
show("max_ceil", lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), X)
show("max_alone", lambda x: F.max_pool2d(x[0], 2), X)
show("avg_2", lambda x: F.avg_pool2d(x, 2), X)
show("avg_3_2_1", lambda x: F.avg_pool2d(x, 3, 2, 1), X)
show("avg_pairs", lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0)), X)
show("avg_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), X)
show("avg_ceil_no_count", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), X)
show("avg_divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), X)
show("adaptive_avg_1", lambda x: F.adaptive_avg_pool2d(x, 1), X)
show("adaptive_avg_pair", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), X)
show("adaptive_avg_more", lambda x: F.adaptive_avg_pool2d(x, (7, 8)), X)
show("adaptive_max", lambda x: F.adaptive_max_pool2d(x, (4, 3)), X)
show("max_1d", lambda x: F.max_pool1d(x[:, :, 0], 2, 1), X)
show("avg_1d", lambda x: F.avg_pool1d(x[:, :, 0], 3, 2, 1), X)
show("adaptive_avg_1d", lambda x: F.adaptive_avg_pool1d(x[0, :, 0], 3), X)
