"""dlpack.py - tensors to and from NumPy and PyTorch by DLPack, over the same memory.

dlpack.py LIBGRAD_SO. Without PyTorch only NumPy is tried. dlpack.sh finds a Python that has them.
"""
import ctypes
import gc
import sys
import threading

import numpy

try:
    import torch
except ImportError:
    torch = None

F32, F64, F16, BF16, I64, I32, U8, BOOL = range(1, 9)
DTYPE, ARGUMENT = 2, 5


class Shape(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int), ("size", ctypes.c_int64 * 8)]


lib = ctypes.CDLL(sys.argv[1])
P, I = ctypes.c_void_p, ctypes.c_int
for name, result, arguments in [
    ("lg_open_with", P, [P]), ("lg_close", None, [P]), ("lg_error", ctypes.c_char_p, [P]),
    ("lg_error_code_of", I, [P]), ("lg_clear_error", None, [P]), ("lg_free", None, [P]), ("lg_keep", P, [P]),
    ("lg_from_with", P, [P, P, I, Shape, P]), ("lg_transpose", P, [P, I, I]), ("lg_fill_", ctypes.c_bool, [P, ctypes.c_double]),
    ("lg_read", ctypes.c_bool, [P, P, I, ctypes.c_size_t]), ("lg_shape_of", Shape, [P]), ("lg_dtype_of", I, [P]),
    ("lg_numel", ctypes.c_int64, [P]),
    ("lg_to_dlpack", P, [P]), ("lg_from_dlpack", P, [P, P]), ("lg_live_tensors", ctypes.c_int64, [P]),
]:
    getattr(lib, name).restype, getattr(lib, name).argtypes = result, arguments

api = ctypes.pythonapi
DESTRUCTOR = ctypes.PYFUNCTYPE(None, P)
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [P, ctypes.c_char_p, P]
api.PyCapsule_GetPointer.restype, api.PyCapsule_GetPointer.argtypes = P, [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.restype, api.PyCapsule_SetName.argtypes = I, [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_IsValid.restype, api.PyCapsule_IsValid.argtypes = I, [ctypes.py_object, ctypes.c_char_p]
NEW, USED = b"dltensor", b"used_dltensor"


class Exported:
    """What numpy.from_dlpack and torch.from_dlpack take."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        m = lib.lg_to_dlpack(self.tensor)
        assert m, lib.lg_error(c)
        return api.PyCapsule_New(m, NEW, None)


def tensor(values, dtype):
    shape = Shape(values.ndim, (ctypes.c_int64 * 8)(*values.shape))
    t = lib.lg_from_with(c, values.ctypes.data, dtype, shape, None)
    assert t, lib.lg_error(c)
    return t


def imported(capsule):
    t = lib.lg_from_dlpack(c, api.PyCapsule_GetPointer(capsule, NEW))
    if t:
        api.PyCapsule_SetName(capsule, USED)
    return t


def values_of(t):
    out = numpy.empty(lib.lg_numel(t), numpy.float64)
    assert lib.lg_read(t, out.ctypes.data, F64, out.nbytes), lib.lg_error(c)
    s = lib.lg_shape_of(t)
    return out.reshape(s.size[: s.ndim])


def fails(result, code, words):
    assert not result and lib.lg_error_code_of(c) == code and words in lib.lg_error(c), lib.lg_error(c)
    lib.lg_clear_error(c)


def address(a):
    return a.data_ptr() if torch and isinstance(a, torch.Tensor) else a.ctypes.data


def out_and_in(take, dtypes):
    """From libgrad to a framework and back: one memory."""
    for name, dtype in dtypes.items():
        for wanted in [[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 4], [2, 5]]:
            t = tensor(numpy.arange(6).reshape(2, 3).astype(name), dtype)
            if len(wanted) == 3:
                t = lib.lg_transpose(t, 0, 1)
            a = take(Exported(t))
            assert str(a.dtype).endswith(name) and a.tolist() == wanted, (name, a)
            assert lib.lg_fill_(t, 7) and (a == 7).all(), name
            if torch and isinstance(a, torch.Tensor):  # NumPy gives on only what may be written
                back = imported(a.__dlpack__())
                again = take(Exported(back))
                assert address(again) == address(a) and again.tolist() == a.tolist(), name
                a[1, 1] = 9
                assert values_of(t)[1, 1] == 9 and lib.lg_dtype_of(back) == dtype, name


def in_and_out(make, dtypes):
    """From a framework to libgrad and back: one memory, whatever the layout."""
    for name, dtype in dtypes.items():
        whole = make(name)
        for a in whole, whole.T, whole[1:], whole[:, ::2], whole[1], whole[:0]:
            t = imported(a.__dlpack__())
            assert t, lib.lg_error(c)
            assert lib.lg_dtype_of(t) == dtype and values_of(t).tolist() == a.tolist(), name
            b = (torch if torch and isinstance(a, torch.Tensor) else numpy).from_dlpack(Exported(t))
            assert b.shape == a.shape and b.tolist() == a.tolist(), name
            assert a.shape[0] == 0 or address(a) == address(b), name


def lives_on(take):
    """A consumer keeps the memory after the tensor, and after the context; in any thread it ends."""
    global c
    own = c
    c = lib.lg_open_with(None)
    t = lib.lg_keep(tensor(numpy.arange(1000, dtype="float32"), F32))
    kept = [take(Exported(t)) for _ in range(20)]
    lib.lg_free(t)
    worker = threading.Thread(target=kept.__delitem__, args=(slice(0, 10),))
    worker.start()
    assert lib.lg_live_tensors(c) == 0
    lib.lg_close(c)
    worker.join()
    c = own
    assert len(kept) == 10 and kept[3][999] == 999
    worker = threading.Thread(target=kept.clear)
    worker.start()
    worker.join()
    gc.collect()


class Counted(numpy.ndarray):
    ended = 0

    def __del__(self):
        Counted.ended += 1


def producers_get_it_back():
    a = numpy.arange(4, dtype="float32").view(Counted)
    before = Counted.ended
    t = lib.lg_keep(imported(a.__dlpack__()))
    view = lib.lg_keep(lib.lg_transpose(t, 0, 0))
    del a
    gc.collect()
    lib.lg_free(t)
    assert Counted.ended == before and values_of(view).tolist() == [0, 1, 2, 3]
    lib.lg_free(view)
    assert Counted.ended == before + 1


def refusals():
    for name in "int8", "int16", "uint16", "complex64":
        capsule = numpy.zeros(3, name).__dlpack__()
        fails(imported(capsule), DTYPE, b"lg_from_dlpack: elements of type code")
        assert api.PyCapsule_IsValid(capsule, NEW)  # still the caller's, whose deleter ends it
    fails(imported(numpy.zeros(3, "float32")[::-1].__dlpack__()), ARGUMENT, b"strides must not be negative")
    fails(lib.lg_to_dlpack(tensor(numpy.zeros(3, "bool"), BOOL)), DTYPE, b"no bool")


c = lib.lg_open_with(None)
plain = {"float32": F32, "float64": F64, "float16": F16, "int64": I64, "int32": I32, "uint8": U8}
out_and_in(numpy.from_dlpack, plain)
in_and_out(lambda name: numpy.arange(12).reshape(3, 4).astype(name), plain)
lives_on(numpy.from_dlpack)
producers_get_it_back()
refusals()
if torch:
    more = dict(plain, bfloat16=BF16)
    out_and_in(torch.from_dlpack, plain)
    in_and_out(lambda name: torch.arange(12).reshape(3, 4).to(getattr(torch, name)), more)
    lives_on(torch.from_dlpack)
assert lib.lg_error(c) is None
lib.lg_close(c)
print("NumPy", numpy.__version__, "and PyTorch " + torch.__version__ if torch else "alone")
