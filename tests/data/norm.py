"""norm.py - writes norm.txt: normalisations of fixed inputs as PyTorch computes them in f64. See golden.py."""
import torch
import torch.nn.functional as F
from golden import show, tensor

X = tensor(2, 3, 2, 2, phase=1)


def batch_norm(x, w=None, b=None, eps=1e-5):
    return F.batch_norm(x, None, None, w, b, training=True, eps=eps)


def rms_norm(x, w, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


def running(x, momentum):
    mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    for i in range(3):
        F.batch_norm(x.detach() * (i + 1) + i, mean, var, training=True, momentum=momentum)
    return torch.cat([mean, var]) + 0 * x.sum()


def v(n, phase):
    return tensor(n, phase=phase)


show("batch_norm", lambda x: batch_norm(x, v(3, 0.5), v(3, 2)), tensor(4, 3))
show("batch_norm_1d", lambda x: batch_norm(x, v(3, 0.5), v(3, 2)), tensor(2, 3, 4))
show("batch_norm_2d", lambda x: batch_norm(x, v(3, 0.5), v(3, 2), 0.1), tensor(2, 3, 2, 2))
show("batch_norm_3d", lambda x: batch_norm(x), tensor(2, 2, 2, 1, 2))
show("batch_norm_w", lambda w: batch_norm(X, w, v(3, 2)), tensor(3))
show("batch_norm_b", lambda b: batch_norm(X, v(3, 0.5), b), tensor(3))
show("batch_norm_eval", lambda x: F.batch_norm(x, v(3, 1), v(3, 0.3) ** 2, v(3, 0.5), v(3, 2)), tensor(2, 3, 2))
show("batch_norm_eval_plain", lambda x: F.batch_norm(x, v(3, 1), v(3, 0.3) ** 2, eps=0.1), tensor(4, 3))
show("running", lambda x: running(x, 0.1), tensor(4, 3))
show("running_slow", lambda x: running(x, 0.01), tensor(2, 3, 2))
show("layer_norm", lambda x: F.layer_norm(x, (4,), v(4, 0.5), v(4, 2)), tensor(3, 4))
show("layer_norm_2", lambda x: F.layer_norm(x, (3, 2), tensor(3, 2, phase=0.5), eps=0.1), tensor(2, 3, 2))
show("layer_norm_plain", lambda x: F.layer_norm(x, (3,)), tensor(2, 2, 3))
show("layer_norm_all", lambda x: F.layer_norm(x, (5,)), tensor(5))
show("layer_norm_w", lambda w: F.layer_norm(X, (2, 2), w, tensor(2, 2, phase=2)), tensor(2, 2))
show("layer_norm_b", lambda b: F.layer_norm(X, (2, 2), None, b), tensor(2, 2))
show("rms_norm", lambda x: rms_norm(x, v(4, 0.5), 1e-3), tensor(3, 4))
show("rms_norm_w", lambda w: rms_norm(X, w, torch.finfo(torch.float64).eps), tensor(2))
show("group_norm", lambda x: F.group_norm(x, 2, v(4, 0.5), v(4, 2)), tensor(2, 4, 3))
show("group_norm_plain", lambda x: F.group_norm(x, 2), tensor(2, 6))
show("group_norm_w", lambda w: F.group_norm(X, 1, w, v(3, 2), 0.1), tensor(3))
show("group_norm_b", lambda b: F.group_norm(X, 3, v(3, 0.5), b), tensor(3))
show("instance_norm", lambda x: F.instance_norm(x, None, None, v(3, 0.5), v(3, 2)), tensor(2, 3, 4))
show("normalize", lambda x: F.normalize(x), tensor(2, 3, 2))
show("cosine_similarity", lambda x: F.cosine_similarity(x, tensor(2, 3, 2, phase=2)), tensor(2, 3, 2))
show("cosine_similarity_wide", lambda x: F.cosine_similarity(tensor(4, 3), x, dim=-1, eps=2), tensor(3))
show("normalize_last", lambda x: F.normalize(x, dim=-1, eps=3), tensor(4, 3))
