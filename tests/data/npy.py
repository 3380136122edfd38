"""npy.py - writes npy.txt: arrays in NumPy's formats, as NumPy writes them.

Run with a Python that has NumPy: python3 tests/data/npy.py > tests/data/npy.txt. A line is a file: npy or npz, its name, then
of npy files the dtype that they have here, the number of dimensions, the sizes and the values in C order; at last all bytes.

python3 tests/data/npy.py check PROGRAM: runs PROGRAM npy_write, reads what it writes into $LG_TEST_NPY, and compares.
"""
import io
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = {'f8': 'f64', 'f4': 'f32', 'f2': 'f16', 'i8': 'i64', 'i4': 'i32', 'i2': 'i32', 'i1': 'i32', 'u1': 'u8', 'b1': 'bool',
        'u2': 'i32', 'u4': 'i64', 'u8': 'i64'}


def line(name, array, version=None):
    f = io.BytesIO()
    np.lib.format.write_array(f, array, version=version)
    kind = HERE[array.dtype.kind + str(array.dtype.itemsize)]
    values = [repr(v if kind[0] == 'f' else int(v)) for v in array.flatten('C').tolist()]
    print('npy', name, kind, array.ndim, *array.shape, *values, f.getvalue().hex())


def values(kind, n):
    """The n values begin with the ends of the range where these are whole numbers that f64 has."""
    if kind == 'b1':
        return np.arange(n) % 3 == 0
    if kind[0] == 'f':
        return (np.arange(n) - 2.25) * 1.5
    ends = [np.iinfo(kind).min, np.iinfo(kind).max] if kind[1] != '8' else [-(1 << 53) if kind[0] == 'i' else 0, 1 << 53]
    return np.array((ends + list(range(n)))[:n])


def npz(name, save, **arrays):
    f = io.BytesIO()
    save(f, **arrays)
    print('npz', name, f.getvalue().hex())


def write():
    for kind in HERE:
        for order in '<>':
            if kind[1] == '1' and order == '>':
                continue
            for layout in 'CF':
                a = np.array(values(kind, 6).reshape(2, 3).astype(order + kind), order=layout)
                line(f'{kind}{"le" if order == "<" else "be"}{layout}', a)
    line('0d', np.array(1.5, '<f4'))
    line('1d', np.arange(3, dtype='<i4'))
    line('empty', np.zeros((0,), '<f4'))
    line('emptyF', np.zeros((3, 0, 2), '>f8', order='F'))
    line('8d', np.array(np.arange(6).reshape(1, 2, 1, 3, 1, 1, 1, 1), '<u1'))
    line('3dF', np.array(np.arange(24).reshape(2, 3, 4), '>i2', order='F'))
    line('extremes', np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7976931348623157e308], '<f8'))
    line('big', np.arange(3000, dtype='>i2'))
    line('version2', np.arange(3, dtype='<f4'), (2, 0))
    line('version3', np.arange(3, dtype='<f4'), (3, 0))
    x, y = np.arange(6, dtype='<f4').reshape(2, 3), np.array([7, -8], '<i8')
    npz('stored', np.savez, x=x, y=y, **{'layers/0.weight': x.T})
    npz('deflated', np.savez_compressed, x=x, zeros=np.zeros((40, 50), '<f4'), **{'größe': y})


def check(folder):
    expect = {'f32': np.array([[1, -2.5], [0, 3]], '<f4'), 'f64': np.array([[1, -2.5], [0, 3]], '<f8'),
              'f16': np.array([[1, -2.5], [0, 3]], '<f2'), 'i64': np.array([[1, -2], [0, 3]], '<i8'),
              'i32': np.array([[1, -2], [0, 3]], '<i4'), 'u8': np.array([[1, 254], [0, 3]], 'u1'),
              'bool': np.array([[True, True], [False, True]]), '0d': np.array(2.5, '<f4'), 'empty': np.zeros((0, 3), '<f4'),
              'transposed': np.array([[1, 0], [-2.5, 3]], '<f4'), '1d': np.arange(3, dtype='<i8'),
              'large': (np.arange(300000) % 251).astype('<f4').reshape(3, 100000)}
    archive = os.path.join(folder, 'all.npz')
    both = [(name, np.load(os.path.join(folder, name + '.npy'))) for name in expect]
    if os.path.exists(archive):
        with np.load(archive) as z:
            assert sorted(z.files) == sorted(expect), z.files
            both += [(name, z[name]) for name in expect]
    for name, got in both:
        assert got.dtype == expect[name].dtype and got.shape == expect[name].shape, (name, got.dtype, got.shape)
        assert np.array_equal(got, expect[name]) and got.flags.c_contiguous, (name, got)
    print(len(both), 'arrays are as they should be')


if sys.argv[1:2] == ['check']:
    with tempfile.TemporaryDirectory() as written:
        subprocess.run([sys.argv[2], 'npy_write'], env={**os.environ, 'LG_TEST_NPY': written}, check=True, capture_output=True)
        check(written)
else:
    write()
