"""fft.py - writes fft.txt: Fourier transforms, complex numbers, windows and spectrograms, as PyTorch computes them in f64.

Run with a Python that has torch: python3 tests/data/fft.py > tests/data/fft.txt
"""
import torch
import torch.fft as F
from golden import show, tensor

D = torch.float64


def c(x):
    return torch.view_as_complex(x.contiguous())


def r(y):
    return torch.view_as_real(y.resolve_conj()) if y.is_complex() else y


def of(name, f, *shape):
    """f of complex x."""
    show(name, lambda x: r(f(c(x))), tensor(*shape, 2))


def real(name, f, *shape):
    show(name, lambda x: r(f(x)), tensor(*shape))


of("fft", F.fft, 3, 8)
of("fft_one", F.fft, 2, 1)
of("fft_odd", F.fft, 2, 15)
of("fft_13", F.fft, 13)
of("fft_dim", lambda x: F.fft(x, dim=0, norm="ortho"), 6, 3)
of("fft_longer", lambda x: F.fft(x, n=9, dim=1, norm="forward"), 2, 5, 2)
of("fft_shorter", lambda x: F.fft(x, n=4), 2, 7)
of("ifft", F.ifft, 2, 6)
of("ifft_forward", lambda x: F.ifft(x, norm="forward", dim=0), 5, 2)
of("ifft_ortho", lambda x: F.ifft(x, n=3, norm="ortho"), 2, 4)
real("rfft", F.rfft, 2, 8)
real("rfft_odd", lambda x: F.rfft(x, norm="ortho"), 3, 7)
real("rfft_dim", lambda x: F.rfft(x, dim=0, norm="forward"), 6, 3)
real("rfft_n", lambda x: F.rfft(x, n=5, dim=-2), 2, 4, 3)
real("rfft_one", F.rfft, 2, 1)
real("rfft_two", F.rfft, 2, 2)
of("irfft", F.irfft, 2, 5)
of("irfft_odd", lambda x: F.irfft(x, n=7, norm="ortho"), 2, 4)
of("irfft_dim", lambda x: F.irfft(x, dim=0, norm="forward"), 4, 3)
of("irfft_n", lambda x: F.irfft(x, n=10), 2, 4)
of("irfft_one", lambda x: F.irfft(x, n=1), 2, 3)
of("hfft", F.hfft, 2, 5)
of("hfft_n", lambda x: F.hfft(x, n=7, norm="ortho"), 2, 4)
real("ihfft", F.ihfft, 2, 6)
real("ihfft_odd", lambda x: F.ihfft(x, norm="forward", dim=0), 5, 2)
of("fft2", F.fft2, 2, 3, 4)
of("fft2_s", lambda x: F.fft2(x, s=(4, -1), dim=(0, 2), norm="ortho"), 3, 2, 3)
of("ifft2", F.ifft2, 3, 4)
real("rfft2", F.rfft2, 2, 3, 4)
real("rfft2_dims", lambda x: F.rfft2(x, dim=(2, 0)), 3, 2, 2)
of("irfft2", F.irfft2, 2, 3, 3)
of("irfft2_s", lambda x: F.irfft2(x, s=(4, 5), norm="ortho"), 3, 3)
of("fftn", F.fftn, 2, 3, 2)
of("fftn_s", lambda x: F.fftn(x, s=(2, 5), norm="forward"), 2, 3, 4)
of("fftn_number", F.fftn)
of("ifftn", lambda x: F.ifftn(x, dim=(0, 2)), 2, 3, 2)
real("rfftn", F.rfftn, 3, 2, 4)
real("rfftn_s", lambda x: F.rfftn(x, s=(3, 3)), 2, 4, 4)
of("irfftn", F.irfftn, 2, 3, 3)
of("irfftn_s", lambda x: F.irfftn(x, s=(3, 4, 5), dim=(2, 0, 1)), 2, 3, 2)
show("complex", lambda x: r(torch.complex(x, x.flip(0).sin())), tensor(5))
of("complex_mul", lambda x: x * c(tensor(3, 2, phase=0.5)), 2, 3)
of("complex_square", lambda x: x * x, 4)
of("complex_conj", torch.conj, 2, 3)
of("complex_abs", torch.abs, 2, 3)
of("complex_angle", torch.angle, 2, 3)
show("complex_abs_0", lambda x: c(x * torch.tensor([0.0, 1.0, 2.0], dtype=D).reshape(3, 1)).abs(), tensor(3, 2))
show("complex_angle_0", lambda x: c(x * torch.tensor([0.0, 1.0, 2.0], dtype=D).reshape(3, 1)).angle(), tensor(3, 2))
real("fftshift", lambda x: F.fftshift(x), 3, 4)
real("fftshift_dim", lambda x: F.fftshift(x, dim=1), 2, 5)
real("ifftshift", lambda x: F.ifftshift(x), 3, 4)
real("ifftshift_dim", lambda x: F.ifftshift(x, dim=-1), 2, 5)
real("fftfreq", lambda x: x * F.fftfreq(8, dtype=D), 8)
real("fftfreq_odd", lambda x: x * F.fftfreq(7, d=0.25, dtype=D), 7)
real("rfftfreq", lambda x: x * F.rfftfreq(8, d=2, dtype=D), 5)
real("rfftfreq_odd", lambda x: x * F.rfftfreq(7, dtype=D), 4)
for n in (1, 2, 6, 7):
    for periodic in (True, False):
        end = "%d%s" % (n, "" if periodic else "_symmetric")
        for name in ("hann", "hamming", "blackman", "bartlett", "kaiser"):
            w = getattr(torch, name + "_window")(n, periodic=periodic, dtype=D)
            real(name + end, lambda x, w=w: x * w, n)
real("hamming_numbers", lambda x: x * torch.hamming_window(6, True, 0.7, 0.3, dtype=D), 6)
real("kaiser_number", lambda x: x * torch.kaiser_window(6, True, 40.0, dtype=D), 6)
HANN = torch.hann_window(8, dtype=D)
S = dict(return_complex=True)
real("stft", lambda x: torch.stft(x, 8, window=HANN, **S), 20)
real("stft_batch", lambda x: torch.stft(x, 8, 3, 6, window=torch.hamming_window(6, dtype=D), **S), 2, 17)
real("stft_bare", lambda x: torch.stft(x, 6, 4, window=torch.ones(6, dtype=D), center=False, **S), 2, 18)
real("stft_two_sided", lambda x: torch.stft(x, 5, 2, window=torch.ones(5, dtype=D), onesided=False, **S), 9)
real("stft_normalized", lambda x: torch.stft(x, 8, window=HANN, normalized=True, pad_mode="constant", **S), 16)
real("stft_short_window", lambda x: torch.stft(x, 8, 2, 5, window=torch.ones(5, dtype=D), **S), 11)
of("istft", lambda x: torch.istft(x, 8, window=HANN), 5, 7)
of("istft_batch", lambda x: torch.istft(x, 8, 3, 6, window=torch.hamming_window(6, dtype=D), normalized=True), 2, 5, 4)
of("istft_length", lambda x: torch.istft(x, 8, window=HANN, length=11), 5, 7)
of("istft_longer", lambda x: torch.istft(x, 8, 4, window=torch.ones(8, dtype=D), length=30), 5, 5)
of("istft_bare", lambda x: torch.istft(x, 6, 2, window=torch.ones(6, dtype=D), center=False), 4, 5)
of("istft_two_sided", lambda x: torch.istft(x, 6, 2, window=torch.ones(6, dtype=D), onesided=False), 6, 5)
