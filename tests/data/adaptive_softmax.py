"""adaptive_softmax.py - writes adaptive_softmax.txt: AdaptiveLogSoftmaxWithLoss as PyTorch computes it in f64.

Run with a Python that has torch: python3 tests/data/adaptive_softmax.py > tests/data/adaptive_softmax.txt
"""
import torch
from golden import i64, show, tensor


def module(cutoffs, **options):
    """A module of 8 features and 20 classes with the parameters of parameters() in test_adaptive_softmax.c."""
    m = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs, **options).double()
    for k, p in enumerate(m.parameters()):
        p.data = tensor(*p.shape, phase=0.1 + k) / 4
    return m


X = tensor(6, 8)
T = i64(6, top=20)
show("loss", lambda x: module([4, 11])(x, T).loss, X)
show("output", lambda x: module([4, 11])(x, T).output, X)
show("log_prob", lambda x: module([4, 11]).log_prob(x), X)
show("biased", lambda x: module([5], div_value=2.0, head_bias=True)(x, T).output, X)
show("biased_log_prob", lambda x: module([5], div_value=2.0, head_bias=True).log_prob(x), X)
show("without_features", lambda x: module([4, 11, 19], div_value=3.0)(x, T).output, X)
show("frequent", lambda x: module([4, 11])(x, T % 4).output, X)
show("one_sample", lambda x: module([4, 11])(x, torch.tensor(13)).output, X[0])
show("one_loss", lambda x: module([4, 11])(x, torch.tensor(2)).loss, X[0])
