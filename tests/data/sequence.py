"""sequence.py - writes sequence.txt: rotary embedding, padded sequences and bags of embeddings, as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/sequence.py > tests/data/sequence.txt
"""
import torch
import torch.nn.functional as F
from golden import show, tensor
from torch.nn.utils.rnn import pad_sequence

X = tensor(2, 2, 3, 4)
COS, SIN = tensor(3, 2, phase=0.3), tensor(3, 2, phase=0.9)
EACH_COS, EACH_SIN = tensor(2, 3, 2, phase=0.3), tensor(2, 3, 2, phase=0.9)
W = tensor(4, 5)
INDEX = torch.tensor([[1, 0, 3], [3, 3, 1]])
FLAT = torch.tensor([1, 0, 3, 3, 3, 1, 2])
OFFSETS = torch.tensor([0, 0, 3, 3, 7])
FACTORS = tensor(7, phase=0.5)


def halves(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rotary(x, cos, sin):
    """The usual form in PyTorch; cos and sin have an element for each of x."""
    return x * cos + halves(x) * sin


def both(t):
    return torch.cat((t, t), -1)


def interleaved(x, cos, sin):
    """Products of complex numbers, as in Llama's first code."""
    return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous()) * torch.complex(cos, sin)).flatten(-2)


def partly(f, x):
    return torch.cat((f(x[..., :4]), x[..., 4:]), -1)


def bag(x, index, **options):
    return F.embedding_bag(index, x, **options)


WIDE = tensor(2, 3, 7)
show("rotary", lambda x: rotary(x, both(COS), both(SIN)), X)
show("rotary_interleaved", lambda x: interleaved(x, COS, SIN), X)
show("rotary_of_samples", lambda x: rotary(x, both(EACH_COS)[:, None], both(EACH_SIN)[:, None]), X)
show("rotary_before_heads", lambda x: rotary(x, both(COS)[:, None], both(SIN)[:, None]), tensor(2, 3, 2, 4))
show("rotary_dims", lambda x: partly(lambda t: rotary(t, both(COS), both(SIN)), x), WIDE)
show("rotary_dims_interleaved", lambda x: partly(lambda t: interleaved(t, EACH_COS, EACH_SIN), x), WIDE)
show("rotary_cos", lambda t: rotary(X, both(t), both(SIN)), tensor(3, 2))
show("rotary_sin", lambda t: rotary(X, both(EACH_COS)[:, None], both(t)[:, None]), tensor(2, 3, 2))
show("rotary_sin_interleaved", lambda t: interleaved(X, COS, t), tensor(3, 2))
show("pad_sequence", lambda x: pad_sequence([x[:2], x * x, x[1:2]], padding_value=0.5), W)
show("pad_sequence_batch_first", lambda x: pad_sequence([x[:0], x[:1], x], batch_first=True), W)
show("bag_mean", lambda x: bag(x, INDEX), W)
show("bag_sum", lambda x: bag(x, INDEX, mode="sum"), W)
show("bag_max", lambda x: bag(x, INDEX, mode="max"), W)
show("bag_offsets", lambda x: bag(x, FLAT, offsets=OFFSETS), W)
show("bag_offsets_sum", lambda x: bag(x, FLAT, offsets=OFFSETS, mode="sum"), W)
show("bag_offsets_max", lambda x: bag(x, FLAT, offsets=OFFSETS, mode="max"), W)
show("bag_last_offset", lambda x: bag(x, FLAT, offsets=OFFSETS, mode="sum", include_last_offset=True), W)
show("bag_padding", lambda x: bag(x, FLAT, offsets=OFFSETS, padding_idx=3), W)
show("bag_padding_sum", lambda x: bag(x, INDEX, mode="sum", padding_idx=0), W)
show("bag_padding_max", lambda x: bag(x, FLAT, offsets=OFFSETS, mode="max", padding_idx=-1), W)
show("bag_factors", lambda x: bag(x, FLAT, offsets=OFFSETS, mode="sum", per_sample_weights=FACTORS), W)
show("bag_of_factors", lambda t: bag(W, FLAT, offsets=OFFSETS, mode="sum", per_sample_weights=t), tensor(7))
show("bag_of_factors_padding", lambda t: bag(W, FLAT, offsets=OFFSETS, mode="sum", per_sample_weights=t, padding_idx=3), tensor(7))
