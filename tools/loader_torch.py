"""loader_torch.py - compares the images per second of libgrad's loader and of PyTorch's DataLoader with torchvision.

loader_torch.py LOADER_BENCH [SECONDS]: measures both by turns on 60,000 images of 28 by 28 bytes, shuffled, in batches of
128, with RandomCrop(28, padding=4), RandomHorizontalFlip, conversion to float, Normalize. PyTorch's images are tensors,
which is faster than PIL images, and the faster of torchvision's two sets of transforms counts. The speed is that of the
fastest epoch (of 6,000 images in PyTorch).
"""
import subprocess
import sys
import time

import torch
import torchvision
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision import transforms as v1
from torchvision.transforms import v2

COUNT = 60000


class Images(Dataset):
    def __init__(self, transform):
        self.x = torch.randint(0, 256, (COUNT, 1, 28, 28), dtype=torch.uint8)
        self.y = torch.randint(0, 10, (COUNT,))
        self.transform = transform

    def __len__(self):
        return COUNT

    def __getitem__(self, i):
        return self.transform(self.x[i]), self.y[i]


KINDS = {
    "v1": v1.Compose([v1.RandomCrop(28, padding=4), v1.RandomHorizontalFlip(), v1.ConvertImageDtype(torch.float32),
                      v1.Normalize((0.286,), (0.353,))]),
    "v2": v2.Compose([v2.RandomCrop(28, padding=4), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
                      v2.Normalize((0.286,), (0.353,))]),
}


def of_torch(workers, kind, seconds):
    data = Subset(Images(KINDS[kind]), range(6000))
    loader = DataLoader(data, 128, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    for _ in loader:  # starts the workers
        pass
    best, end = 0, time.monotonic() + seconds
    while best == 0 or time.monotonic() < end:
        begin, count = time.monotonic(), 0
        for x, _ in loader:
            count += len(x)
        best = max(best, count / (time.monotonic() - begin))
    return best


def main():
    if len(sys.argv) < 2:
        sys.stderr.write("usage: loader_torch.py PROGRAM [SECONDS]\n")
        sys.exit(2)
    program, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "2"
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}; images a second")
    for workers in 0, 1, 2:
        ours = float(subprocess.run([program, str(workers), seconds], check=True, capture_output=True, text=True).stdout)
        theirs = {kind: of_torch(workers, kind, float(seconds)) for kind in KINDS}
        kind = max(theirs, key=theirs.get)
        print(f"workers {workers}: libgrad {ours:9.0f}, PyTorch {theirs[kind]:7.0f} ({kind}), ratio {ours / theirs[kind]:.1f}")


if __name__ == "__main__":
    main()
