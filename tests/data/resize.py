"""resize.py - writes resize.txt: images as Pillow's resize(BILINEAR) makes them, for test_transforms.c.

Run with a Python that has Pillow: python3 tests/data/resize.py > tests/data/resize.txt. The first line names its version. A line
is an image: u8 (mode L) or f32 (mode F), height and width before and after, its pixels. Pixel i was the byte
(37 i + floor(11 i^2 / 7) + 90) mod 256, in f32 its sine.
"""
import math

import PIL
from PIL import Image

SIZES = [(1, 1, 1, 1), (1, 1, 3, 2), (5, 7, 1, 1), (5, 7, 5, 3), (5, 7, 2, 7), (5, 7, 10, 14), (4, 3, 9, 5), (9, 3, 4, 8),
         (2, 12, 5, 5), (12, 16, 5, 6), (28, 28, 14, 14), (10, 10, 11, 9), (20, 1, 3, 1), (1, 33, 1, 4)]
print("Pillow", PIL.__version__)
for h, w, to_h, to_w in SIZES:
    bytes_ = [(37 * i + 11 * i * i // 7 + 90) % 256 for i in range(h * w)]
    for kind, mode, values in ("u8", "L", bytes_), ("f32", "F", [math.sin(b) for b in bytes_]):
        image = Image.new(mode, (w, h))
        image.putdata(values)
        y = image.resize((to_w, to_h), Image.Resampling.BILINEAR)
        print(kind, h, w, to_h, to_w, *(f"{v:.9g}" for v in y.getdata()))
