"""order.py - writes order.txt: order statistics, differences, and writing by index, as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/order.py > tests/data/order.txt
"""
import torch
from golden import i64, show, tensor

M = tensor(4, 5)
B = tensor(2, 3, 4)
SRC = tensor(2, 3, 4, phase=0.7)
V = tensor(7)
NAN = float("nan")


def holed(x):
    """x with NaN where 2 sin(...) of that place is above 1.2."""
    return torch.where(tensor(*x.shape, phase=0.7) > 1.2, NAN, x)


def ties(x):
    return x.round()


# ---- order.c, cummax.c ----
show("kthvalue_2_1", lambda x: x.kthvalue(2, 1).values, M)
show("kthvalue_keep", lambda x: x.kthvalue(3, -2, keepdim=True).values, B)
show("median_all", lambda x: x.median(), M)
show("median_1", lambda x: x.median(1).values, B)
show("median_keep", lambda x: x.median(-1, keepdim=True).values, B)
show("nanmedian_all", lambda x: holed(x).nanmedian(), M)
show("nanmedian_0", lambda x: holed(x).nanmedian(0).values, M)
show("mode_1", lambda x: (x * 0.4 + ties(x)).mode(1).values, B)
for name in "linear", "lower", "higher", "midpoint", "nearest":
    show("quantile_" + name, lambda x: x.quantile(torch.tensor([0.3, 0.5, 1], dtype=torch.float64), 1, interpolation=name), B)
show("quantile_all", lambda x: x.quantile(0.37), M)
show("quantile_keep", lambda x: x.quantile(torch.tensor([0, 0.9], dtype=torch.float64), 0, keepdim=True), B)
show("nanquantile_1", lambda x: holed(x).nanquantile(0.6, 1), M)
show("nanquantile_all", lambda x: holed(x).nanquantile(torch.tensor([0.1, 0.6], dtype=torch.float64)), B)
show("cummax_1", lambda x: x.cummax(1).values, B)
show("cummax_0", lambda x: ties(x).cummax(0).values * x, M)
show("cummin_last", lambda x: x.cummin(-1).values, B)

# ---- count.c ----
show("bincount", lambda x: torch.zeros(6).double().scatter_add(0, i64(7, top=5), x), V)
show("nansum_0", lambda x: holed(x).nansum(0), M)
show("nanmean_1", lambda x: holed(x).nanmean(1), B)
show("aminmax_1", lambda x: torch.cat(list(x.aminmax(dim=1))), B)
show("var_mean", lambda x: torch.cat(torch.var_mean(x, 1)), B)
show("std_mean", lambda x: torch.cat(torch.std_mean(x, 0, correction=0)), M)
show("diff", lambda x: x.diff(), M)
show("diff_2", lambda x: x.diff(2, 1, prepend=SRC[:, :2], append=SRC[:, 2:]), B)
show("diff_0", lambda x: x.diff(n=3, dim=0), M)

# ---- scatter.c; what PyTorch leaves open, several elements for one place, is not written here but in tests ----
O = torch.tensor([[2, 0, 1], [1, 2, 3]])
show("scatter_1", lambda x: x.scatter(1, O, SRC[0, :2, :3]), M)
show("scatter_src", lambda x: SRC[:, 0].scatter(1, O, x[:2, :3]), M[:2, :3])
show("scatter_scalar", lambda x: x.scatter(0, i64(3, 4, top=4), -1.5), M)
for reduce in "sum", "prod", "mean", "amax", "amin":
    for own in True, False:
        name = f"scatter_{reduce}" + ("" if own else "_alone")
        show(name, lambda x: x.scatter_reduce(1, i64(2, 3, 4, top=3), SRC, reduce, include_self=own), B)
        show(name + "_src", lambda x: SRC.scatter_reduce(1, i64(2, 3, 4, top=3), x, reduce, include_self=own), B)
show("scatter_amax_ties", lambda x: ties(x).scatter_reduce(1, i64(2, 3, 4, top=3), x.detach().round(), "amax") * x, B)
show("index_copy", lambda x: x.index_copy(1, torch.tensor([2, 0]), SRC[:, :2]), B)
show("index_copy_src", lambda x: SRC.index_copy(1, torch.tensor([2, 0]), x), B[:, :2])
show("index_fill", lambda x: x.index_fill(1, torch.tensor([-1, 0]), 2.5), M)
for reduce in "prod", "mean", "amax", "amin":
    show("index_" + reduce, lambda x: x.index_reduce(1, torch.tensor([2, 0, 2]), SRC, reduce), B)
show("index_mean_alone_src", lambda x: SRC.index_reduce(1, torch.tensor([2, 0, 2]), x, "mean", include_self=False), B)

# ---- index.c ----
I = torch.tensor([1, 0, -1, 1])
J = torch.tensor([[2], [0]])
MASK = i64(2, 3, top=3) == 1
show("index_rows", lambda x: x[I], M)
show("index_both", lambda x: x[I, J], M)
show("index_middle", lambda x: x[:, J, :], B)
show("index_apart", lambda x: x[torch.tensor([[0, 1]]), :, J], B)
show("index_last_two", lambda x: x[:, torch.tensor([0, 2]), torch.tensor([-1, 1])], B)
show("index_mask", lambda x: x[MASK], B)
show("index_mask_late", lambda x: x[:, i64(3, 4, top=3) == 1], B)
show("index_put", lambda x: x.index_put((torch.tensor([2, 0]), torch.tensor([-1, 3])), SRC[0, 0, :2]), M)
show("index_put_values", lambda x: SRC.index_put((torch.tensor([1, 0]), torch.tensor([2, 0])), x), M[:2, :4])
show("index_put_wide", lambda x: SRC.index_put((torch.tensor([1, 0, 1]),), x, accumulate=True), B[0, :1])
show("take", lambda x: x.take(torch.tensor([[3, -1], [3, 0]])), M)
show("take_along_dim", lambda x: x.take_along_dim(torch.tensor([[2, 0, 2]]), 1), M)
show("put", lambda x: x.put(torch.tensor([3, -1]), SRC[0, 0, :2]), M)
show("put_sum_src", lambda x: SRC.put(torch.tensor([3, -1, 3, 4, 5, 6, 7]), x, accumulate=True), V)
show("masked_scatter", lambda x: x.masked_scatter(i64(3, 1, top=2) == 1, SRC), B)
show("masked_scatter_src", lambda x: SRC.masked_scatter(i64(2, 3, 4, top=3) == 1, x), M)
