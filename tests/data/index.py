"""index.py - writes index.txt: picking and placing by index, masks, padding, joining, as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/index.py > tests/data/index.txt
"""
import torch
import torch.nn.functional as F
from golden import i64, show, tensor

M = tensor(4, 5)
B = tensor(2, 3, 4)
SRC = tensor(2, 3, 4, phase=0.7)


def embedding(x):
    return F.embedding(i64(2, 3, top=4), x)


show("gather_0", lambda x: x.gather(0, i64(6, 3, top=4)), M)
show("gather_1", lambda x: x.gather(1, i64(3, 7, top=5)), M)
show("gather_middle", lambda x: x.gather(-2, i64(2, 5, 3, top=3)), B)
show("gather_turned", lambda x: x.t().gather(0, i64(2, 4, top=5)), M)
show("scatter_add_0", lambda x: x.scatter_add(0, i64(3, 4, top=4), SRC[1]), M)
show("scatter_add_last", lambda x: x.scatter_add(2, i64(2, 2, 3, top=4), SRC), B)
show("scatter_add_src", lambda x: SRC.scatter_add(1, i64(2, 3, 4, top=3), x), B)
show("index_select_0", lambda x: x.index_select(0, i64(6, top=4)), M)
show("index_select_1", lambda x: x.index_select(1, i64(4, top=3)), B)
show("index_select_last", lambda x: x.index_select(-1, i64(3, top=4)), B)
show("index_add_0", lambda x: x.index_add(0, torch.tensor([1, 1]), SRC.reshape(-1)[:10].reshape(2, 5)), M)
show("index_add_src", lambda x: SRC.index_add(1, torch.tensor([2, 0, 2]), x), B)
show("embedding", embedding, M)
show("embedding_padding", lambda x: F.embedding(i64(2, 3, top=4), x, padding_idx=2), M)
show("embedding_padding_zero", lambda x: F.embedding(i64(2, 3, top=4), x, padding_idx=0), M)
show("embedding_padding_end", lambda x: F.embedding(i64(2, 3, top=4), x, padding_idx=-1), M)


def limited(i, x, **options):
    return torch.cat([F.embedding(i, x, **options).reshape(6, 5), x])


show("embedding_max_norm", lambda x: limited(i64(2, 3, top=4), x, max_norm=1.5), M)
show("embedding_bag_max_norm", lambda x: torch.cat([F.embedding_bag(i64(2, 3, top=4), x, max_norm=1.5, mode="sum"), x]), M)
show("embedding_max_norm_1", lambda x: limited(i64(2, 3, top=3), x, max_norm=2.5, norm_type=1.0), M)
show("embedding_max_norm_far", lambda x: limited(i64(2, 3, top=4), x, max_norm=1.2, norm_type=float("inf")), M)
show("embedding_max_norm_zero", lambda x: limited(i64(2, 3, top=2), x, max_norm=0.0), M)
show("one_hot", lambda x: x @ F.one_hot(i64(5, top=7), 7).double(), M)
show("masked_fill", lambda x: x.masked_fill(i64(3, 1, top=2) == 1, -4.5), B)
show("masked_fill_wide", lambda x: x.masked_fill(i64(2, 1, 5, top=3) == 1, 2), M)
show("masked_select", lambda x: x.masked_select(i64(2, 3, 4, top=3) == 1), B)
show("masked_select_wide", lambda x: x.masked_select(i64(2, 1, 5, top=3) == 1), M)
show("masked_select_narrow", lambda x: x.masked_select(i64(3, 1, top=2) == 1), B)
show("tril", lambda x: x.tril(), M)
show("tril_1", lambda x: x.tril(1), B)
show("triu_minus", lambda x: x.triu(-1), M)
show("triu_far", lambda x: x.triu(9), M)
show("flip", lambda x: x.flip(0, 2) * x, B)
show("roll", lambda x: x.roll(2, 1), B)
show("roll_back", lambda x: x.roll(-7, -1), M)
show("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=-0.5), B)
show("pad_reflect", lambda x: F.pad(x, (2, 1, 1, 0), mode="reflect"), B)
show("pad_replicate", lambda x: F.pad(x, (2, 1, 3, 0), mode="replicate"), B)
show("pad_circular", lambda x: F.pad(x, (4, 1, 0, 2), mode="circular"), B)
show("pad_crop", lambda x: F.pad(x, (-1, 1, 2, -2)), M)
show("stack", lambda x: torch.stack([x, x * 2, SRC], 1), B)
show("stack_last", lambda x: torch.stack([x, x * x], -1), M)
show("split", lambda x: torch.cat([p * (i + 2) for i, p in enumerate(x.split(2, 1))], 1), M)
show("chunk", lambda x: torch.cat([p * (i + 2) for i, p in enumerate(x.chunk(3, 0))], 0), M)
show("repeat", lambda x: x.repeat(2, 3), M)
show("repeat_front", lambda x: x.repeat(2, 1, 1, 2), B)
