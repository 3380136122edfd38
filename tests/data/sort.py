"""sort.py - writes sort.txt: sorting and choosing as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/sort.py > tests/data/sort.txt (golden.py tells the format).
"""
from golden import show, tensor

A = tensor(3, 4)
B = tensor(2, 3, 4)
C = tensor(2, 7)

show("max_1", lambda x: x.max(1).values, A)
show("max_0_keep", lambda x: x.max(0, keepdim=True).values, B)
show("min_2", lambda x: x.min(2).values, B)
show("sort_1", lambda x: x.sort(1).values, B)
show("sort_0_descending", lambda x: x.sort(0, descending=True).values, A)
show("topk_3_1", lambda x: x.topk(3, 1).values, C)
show("topk_2_0_smallest", lambda x: x.topk(2, 0, largest=False).values, A)
