"""windows.py - writes windows.txt: windows of images, and images in another order, as PyTorch computes them in f64, for
tests/test_windows.c. See golden.py."""
import torch
import torch.nn.functional as F
from golden import i64, show, tensor

X = tensor(2, 3, 5, 7)
show("unfold", lambda x: F.unfold(x, 2), X)
show("unfold_padded", lambda x: F.unfold(x, 3, padding=1, stride=2), X)
show("unfold_pairs", lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=(0, 2), stride=(1, 3)), X)
show("unfold_alone", lambda x: F.unfold(x[0], (5, 1), stride=3), X)
show("fold", lambda x: F.fold(x, 4, 2), tensor(2, 8, 9))
show("fold_apart", lambda x: F.fold(x, 4, 2, stride=2), tensor(2, 8, 4))
show("fold_padded", lambda x: F.fold(x, (5, 7), 3, padding=1, stride=2), tensor(1, 18, 12))
show("fold_pairs", lambda x: F.fold(x, (5, 7), (2, 3), dilation=(2, 1), padding=(0, 2), stride=(1, 3)), tensor(2, 6, 9))
show("fold_alone", lambda x: F.fold(x[0], (5, 4), (2, 2), dilation=2), tensor(2, 8, 6))

show("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), tensor(2, 8, 3, 2))
show("pixel_shuffle_alone", lambda x: F.pixel_shuffle(x, 3), tensor(9, 2, 1))
show("pixel_shuffle_more", lambda x: F.pixel_shuffle(x, 2), tensor(2, 1, 2, 4, 2, 3))
show("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), tensor(2, 3, 4, 6))
show("pixel_unshuffle_more", lambda x: F.pixel_unshuffle(x, 3), tensor(1, 2, 2, 3, 6))
show("channel_shuffle", lambda x: torch.channel_shuffle(x, 3), tensor(2, 6, 3, 2))
show("channel_shuffle_signals", lambda x: torch.channel_shuffle(x, 2), tensor(2, 8, 3))
show("channel_shuffle_volumes", lambda x: torch.channel_shuffle(x, 2), tensor(1, 4, 2, 1, 3))

show("response", lambda x: F.local_response_norm(x, 5), tensor(2, 7, 3, 2))
show("response_even", lambda x: F.local_response_norm(x, 4, alpha=2, beta=0.5, k=0.7), tensor(2, 7, 3, 2))
show("response_wide", lambda x: F.local_response_norm(x, 9, alpha=1, beta=-1.5, k=3), tensor(2, 3, 2))
show("response_volumes", lambda x: F.local_response_norm(x, 3, alpha=1), tensor(2, 5, 2, 1, 2))

show("lp_2", lambda x: F.lp_pool2d(x, 2, 2), X)
show("lp_3", lambda x: F.lp_pool2d(x.abs(), 3, (2, 3), (1, 2)), X)
show("lp_ceil", lambda x: F.lp_pool2d(x, 2, 3, 2, ceil_mode=True), X)
show("lp_root", lambda x: F.lp_pool2d(x.abs(), 0.5, 2, 3), X)
show("lp_of_zeros", lambda x: F.lp_pool2d(torch.relu(x), 2, (1, 2)), X)
show("lp_alone", lambda x: F.lp_pool2d(x[0], 4, 2, 1), X)
show("lp_1d", lambda x: F.lp_pool1d(x[0], 2, 3, 2), X)
show("lp_1d_ceil", lambda x: F.lp_pool1d(x[0, 0], 2, 3, 2, ceil_mode=True), X)
V = tensor(2, 2, 3, 4, 5)
show("lp_3d", lambda x: F.lp_pool3d(x, 2, 2), V)
show("lp_3d_ceil", lambda x: F.lp_pool3d(x, 2, (1, 2, 3), (1, 2, 2), ceil_mode=True), V)

U = tensor(2, 2, 2, 3)
show("unpool", lambda x: F.max_unpool2d(x, i64(2, 2, 2, 3, top=24), 2), U)
show("unpool_equal", lambda x: F.max_unpool2d(x, i64(2, 2, 2, 3, top=4), 2), U)
show("unpool_padded", lambda x: F.max_unpool2d(x, i64(2, 2, 2, 3, top=15), 3, 2, 1), U)
show("unpool_pairs", lambda x: F.max_unpool2d(x, i64(2, 2, 2, 3, top=20), (2, 3), (3, 1), (0, 1), output_size=(7, 3)), U)
show("unpool_alone", lambda x: F.max_unpool2d(x[0], i64(2, 2, 3, top=35), 2, output_size=(5, 7)), U)
show("unpool_1d", lambda x: F.max_unpool1d(x[0], i64(2, 2, 3, top=6), 2), U)
show("unpool_1d_size", lambda x: F.max_unpool1d(x[0, 0], i64(2, 3, top=8), 3, 2, output_size=(8,)), U)
show("unpool_3d", lambda x: F.max_unpool3d(x, i64(2, 1, 2, 1, 3, top=48), 2), tensor(2, 1, 2, 1, 3))
show("unpool_3d_size", lambda x: F.max_unpool3d(x[0], i64(1, 2, 1, 3, top=40), 2, output_size=(4, 2, 5)), tensor(2, 1, 2, 1, 3))


def fractional(name, pool, x, kernel, **options):
    sides = x.dim() - 2
    samples = i64(x.shape[0], x.shape[1], sides, top=64).double() / 64
    def values(x):
        return pool(x, kernel, _random_samples=samples, **options)
    show(name, values, x)
    show(f"{name}_indices", lambda x: values(x) * 0 + pool(x, kernel, _random_samples=samples, return_indices=True, **options)[1], x)


W = tensor(2, 3, 9, 11)
fractional("fractional", F.fractional_max_pool2d, W, 2, output_size=5)
fractional("fractional_pairs", F.fractional_max_pool2d, W, (3, 2), output_size=(4, 7))
fractional("fractional_ratio", F.fractional_max_pool2d, W, 2, output_ratio=(0.6, 0.6))
fractional("fractional_ratios", F.fractional_max_pool2d, W, 2, output_ratio=(0.4, 0.8))
fractional("fractional_one", F.fractional_max_pool2d, W, (2, 3), output_size=(1, 9))
fractional("fractional_3d", F.fractional_max_pool3d, tensor(2, 2, 5, 6, 7), 2, output_size=(3, 4, 4))
fractional("fractional_3d_ratio", F.fractional_max_pool3d, tensor(2, 2, 5, 6, 7), (1, 2, 3), output_ratio=(0.5, 0.5, 0.5))
