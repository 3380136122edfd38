"""interpolate.py - writes interpolate.txt: resizing, grids and samples as PyTorch computes them in f64, for
tests/test_interpolate.c and tests/test_grid_sample.c. See golden.py."""
import torch
import torch.nn.functional as F
from golden import show, tensor

X1, X2, X3 = tensor(2, 2, 7), tensor(2, 2, 5, 7), tensor(1, 2, 3, 4, 5)
def resize(name, x, **options):
    show(name, lambda x: F.interpolate(x, **options), x)

for mode in "nearest", "nearest-exact", "area":
    name = mode.replace("-", "_")
    resize(f"{name}_1d", X1, size=12, mode=mode)
    resize(f"{name}_2d", X2, size=(11, 3), mode=mode)
    resize(f"{name}_3d", X3, size=(2, 9, 8), mode=mode)
    resize(f"{name}_scale", X2, scale_factor=(1.7, 2.3) if mode != "area" else 1.7, mode=mode)
resize("nearest_twice", X2, scale_factor=2, mode="nearest")
resize("nearest_recomputed", X2, scale_factor=1.3, mode="nearest", recompute_scale_factor=True)
for corners in False, True:
    end = "_corners" if corners else ""
    resize(f"linear{end}", X1, size=12, mode="linear", align_corners=corners)
    resize(f"bilinear{end}", X2, size=(8, 4), mode="bilinear", align_corners=corners)
    resize(f"bilinear_scale{end}", X2, scale_factor=(2.3, 0.7), mode="bilinear", align_corners=corners)
    resize(f"bicubic{end}", X2, size=(3, 11), mode="bicubic", align_corners=corners)
    resize(f"trilinear{end}", X3, size=(5, 3, 9), mode="trilinear", align_corners=corners)
    resize(f"bilinear_antialias{end}", X2, size=(2, 3), mode="bilinear", antialias=True, align_corners=corners)
    resize(f"bicubic_antialias{end}", X2, size=(2, 9), mode="bicubic", antialias=True, align_corners=corners)
resize("bilinear_same_size", X2, scale_factor=1.1, mode="bilinear")
resize("bilinear_antialias_scale", X2, scale_factor=0.45, mode="bilinear", antialias=True)
resize("bicubic_scale", X2, scale_factor=1.9, mode="bicubic")
resize("bicubic_recomputed", X2, scale_factor=1.9, mode="bicubic", recompute_scale_factor=True)
resize("bicubic_of_one", tensor(1, 2, 1, 2), size=(3, 5), mode="bicubic")

GRID2, GRID3 = tensor(2, 3, 4, 2, phase=0.7), tensor(1, 2, 3, 2, 3, phase=0.7)
for padding in "zeros", "border", "reflection":
    for mode in "bilinear", "nearest", "bicubic":
        for corners in False, True:
            def read(x, grid):
                return F.grid_sample(x, grid, mode, padding, corners)
            name = f"{mode}_{padding}{'_corners' if corners else ''}"
            show(name, lambda x: read(x, GRID2), X2)
            show(f"{name}_grid", lambda x: read(X2, x) + 0 * x.sum(), GRID2)
            if mode != "bicubic":
                show(f"volume_{name}", lambda x: read(x, GRID3), X3)
                show(f"volume_{name}_grid", lambda x: read(X3, x) + 0 * x.sum(), GRID3)
for corners in False, True:
    end = "_corners" if corners else ""
    show(f"affine{end}", lambda x: F.affine_grid(x, (2, 1, 3, 4), corners), tensor(2, 2, 3))
    show(f"affine_volume{end}", lambda x: F.affine_grid(x, (2, 1, 3, 1, 2), corners), tensor(2, 3, 4))
