"""loss.py - writes loss.txt: losses of fixed values as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/loss.py > tests/data/loss.txt
"""
import torch
import torch.nn.functional as F
from golden import show, tensor

X = tensor(3, 4)
Y = tensor(3, 4, phase=0.7)
IMAGE = tensor(2, 3, 4)
T = torch.tensor([2, 0, 3])
IMAGE_T = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]])
W = torch.tensor([0.5, 1, 2, 0.25], dtype=torch.float64)
W3 = torch.tensor([0.5, 0, 2], dtype=torch.float64)
LP = lambda x: F.log_softmax(x, 1)
Q = F.softmax(Y, 1)
IMAGE_Q = F.softmax(tensor(2, 3, 4, phase=0.7), 1)
Q0 = torch.where(Q < 0.1, torch.zeros_like(Q), Q)

show("nll", lambda x: F.nll_loss(LP(x), T), X)
show("nll_sum", lambda x: F.nll_loss(LP(x), T, reduction="sum"), X)
show("nll_none", lambda x: F.nll_loss(LP(x), T, reduction="none"), X)
show("nll_ignore", lambda x: F.nll_loss(x, T, ignore_index=0), X)
show("nll_weight", lambda x: F.nll_loss(x, T, weight=W), X)
show("nll_weight_ignore", lambda x: F.nll_loss(x, T, weight=W, ignore_index=3, reduction="sum"), X)
show("nll_weight_none", lambda x: F.nll_loss(x, T, weight=W, ignore_index=3, reduction="none"), X)
show("nll_one", lambda x: F.nll_loss(x[0], T[0]), X)
show("nll_image", lambda x: F.nll_loss(LP(x), IMAGE_T, weight=W3), IMAGE)
show("nll_image_none", lambda x: F.nll_loss(LP(x), IMAGE_T, reduction="none"), IMAGE)
show("cross_entropy_weight", lambda x: F.cross_entropy(x, T, weight=W), X)
show("cross_entropy_weight_smooth", lambda x: F.cross_entropy(x, T, weight=W, label_smoothing=0.2), X)
show("cross_entropy_weight_ignore",
     lambda x: F.cross_entropy(x, T, weight=W, label_smoothing=0.2, ignore_index=0), X)
show("cross_entropy_weight_sum", lambda x: F.cross_entropy(x, T, weight=W, reduction="sum"), X)
show("cross_entropy_weight_none",
     lambda x: F.cross_entropy(x, T, weight=W, label_smoothing=0.2, reduction="none"), X)
show("cross_entropy_weight_image", lambda x: F.cross_entropy(x, IMAGE_T, weight=W3), IMAGE)
show("cross_entropy_soft", lambda x: F.cross_entropy(x, Q), X)
show("cross_entropy_soft_sum", lambda x: F.cross_entropy(x, Q, reduction="sum"), X)
show("cross_entropy_soft_none", lambda x: F.cross_entropy(x, Q0, reduction="none"), X)
show("cross_entropy_soft_smooth", lambda x: F.cross_entropy(x, Q, label_smoothing=0.2), X)
show("cross_entropy_soft_weight", lambda x: F.cross_entropy(x, Q, weight=W), X)
show("cross_entropy_soft_weight_none",
     lambda x: F.cross_entropy(x, Q, weight=W, label_smoothing=0.2, reduction="none"), X)
show("cross_entropy_soft_image", lambda x: F.cross_entropy(x, IMAGE_Q, weight=W3), IMAGE)
show("cross_entropy_soft_image_none",
     lambda x: F.cross_entropy(x, IMAGE_Q, label_smoothing=0.1, reduction="none"), IMAGE)
show("cross_entropy_soft_one", lambda x: F.cross_entropy(x[0], Q[0], weight=W), X)
show("cross_entropy_soft_of_target", lambda x: F.cross_entropy(Y, x, weight=W, label_smoothing=0.2), X)
show("l1", lambda x: F.l1_loss(x, Y), X)
show("l1_sum", lambda x: F.l1_loss(x, Y, reduction="sum"), X)
show("l1_none", lambda x: F.l1_loss(x, Y, reduction="none"), X)
show("huber", lambda x: F.huber_loss(x, Y), X)
show("huber_delta", lambda x: F.huber_loss(x, Y, delta=0.6, reduction="none"), X)
show("smooth_l1", lambda x: F.smooth_l1_loss(x, Y), X)
show("smooth_l1_beta", lambda x: F.smooth_l1_loss(x, Y, beta=0.6, reduction="none"), X)
show("smooth_l1_zero", lambda x: F.smooth_l1_loss(x, Y, beta=0.0, reduction="sum"), X)
show("bce", lambda x: F.binary_cross_entropy(torch.sigmoid(x), Q), X)
show("bce_none", lambda x: F.binary_cross_entropy(torch.sigmoid(x), Q, reduction="none"), X)
show("bce_with_logits", lambda x: F.binary_cross_entropy_with_logits(x * 3, Q), X)
show("bce_with_logits_weight",
     lambda x: F.binary_cross_entropy_with_logits(x * 3, Q, pos_weight=W, reduction="none"), X)
show("kl_div", lambda x: F.kl_div(LP(x), Q0), X)
show("kl_div_none", lambda x: F.kl_div(LP(x), Q0, reduction="none"), X)
show("kl_div_batch", lambda x: F.kl_div(LP(x), Q0, reduction="batchmean"), X)
show("kl_div_log", lambda x: F.kl_div(LP(x), torch.log(Q), reduction="sum", log_target=True), X)
show("kl_div_of_target", lambda x: F.kl_div(LP(Y), F.softmax(x, 1), reduction="sum"), X)
