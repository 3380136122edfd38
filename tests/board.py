"""board.py - what TensorBoard reads from the files that tests_private board writes.

board.py PROGRAM: runs PROGRAM board files_for_tensorboard, which writes into $LG_TEST_BOARD, and compares what EventAccumulator gives.
board.py FOLDER --killed: reads the files that killed processes have left (LG_TEST_KILLED=FOLDER LG_TEST_KILLS=1000 PROGRAM board_faults killed).
"""
import io
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2

ALL = {'scalars': 0, 'histograms': 0, 'images': 0, 'tensors': 0}
VALUES = np.array([-1e25, -3, -2.5, -1e-13, 0, 0, 1e-12, 0.25, 0.26, 7, 1e19])


def usual_edges():
    """The default of torch.utils.tensorboard.SummaryWriter.add_histogram."""
    v, edges = 1e-12, []
    while v < 1e20:
        edges.append(v)
        v *= 1.1
    return [-v for v in edges[::-1]] + [0] + edges


def same_histogram(got, values, edges):
    """num, min, max, sums, and the count of each bin; beyond the edges one bin more on each side."""
    want, _ = np.histogram(values, bins=edges)
    assert got.num == len(values) and got.min == values.min() and got.max == values.max(), got
    assert math.isclose(got.sum, values.sum(), rel_tol=1e-14, abs_tol=1e-14), got
    assert math.isclose(got.sum_squares, (values ** 2).sum(), rel_tol=1e-14), got
    bins = {limit: count for limit, count in zip(got.bucket_limit, got.bucket) if count}
    inside = {edges[i + 1]: n for i, n in enumerate(want) if n}
    below = (values < edges[0]).sum()
    if below:
        inside[edges[0]] = below
    assert bins == inside, (bins, inside)
    assert got.bucket[0] == 0 and list(got.bucket_limit) == sorted(got.bucket_limit), got


def same_picture(event, want):
    from PIL import Image
    got = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    assert (event.height, event.width) == want.shape[:2] and np.array_equal(got, want), (event.height, event.width)


def check_curves(read):
    quarter = [(e.step, e.value) for e in read.Scalars('curve/quarter')]
    assert quarter == [(i, i / 4) for i in range(1, 16)] + [(i, -i) for i in range(16, 19)], quarter
    third = [(e.step, e.value) for e in read.Scalars('curve/third')]
    assert [step for step, _ in third] == list(range(1, 16)), third
    for step, value in third:
        want = math.nan if step == 9 else -math.inf if step == 10 else float(np.float32(step / 3))
        assert value == want or math.isnan(value) and math.isnan(want), third
    everything = EventAccumulator(folder, ALL, purge_orphaned_data=False).Reload().Scalars('curve/quarter')
    assert [e.step for e in everything] == list(range(1, 21)) + [16, 17, 18], everything


def check_histograms(read):
    tags = read.Tags()['histograms']
    assert tags == ['usual', 'even', 'finite', 'none'], tags
    (usual,), (even,), (finite,), (none,) = map(read.Histograms, tags)
    assert [e.step for e in (usual, even, finite, none)] == [2, 3, 4, 5]
    same_histogram(usual.histogram_value, VALUES, usual_edges())
    same_histogram(finite.histogram_value, VALUES, usual_edges())
    same_histogram(even.histogram_value, VALUES[1:10], list(np.linspace(-3, 7, 6)))
    assert none.histogram_value.num == 0 and not list(none.histogram_value.bucket)


def check_pictures(read):
    if not read.Tags()['images']:
        print('without libpng')
        return
    (grey,), (rows,) = read.Images('grey'), read.Images('rows')
    assert (grey.step, rows.step) == (7, 8)
    same_picture(grey, np.arange(48, dtype='u1').reshape(6, 8))
    two = (np.arange(120, dtype='f4') / np.float32(119) * 255).astype('u1').reshape(2, 3, 4, 5)
    same_picture(rows, two.transpose(2, 0, 3, 1).reshape(4, 10, 3))


def check(read):
    check_curves(read)
    check_histograms(read)
    check_pictures(read)
    (note,) = read.Tensors('note')
    assert note.step == 6 and list(note.tensor_proto.string_val) == ['# A *title*\n€'.encode()], note
    assert list(note.tensor_proto.tensor_shape.dim[0].ListFields()[0][1:]) == [1], note
    plugin = read.SummaryMetadata('note').plugin_data.plugin_name
    assert plugin == 'text', plugin
    print('TensorBoard reads', {kind: tags for kind, tags in read.Tags().items() if tags})


def check_killed(root):
    """Every file is read up to its last whole record."""
    files = records = 0
    for name in os.listdir(root):
        for file in os.listdir(os.path.join(root, name)):
            events = [event_pb2.Event.FromString(e) for e in RawEventFileLoader(os.path.join(root, name, file)).Load()]
            steps = [(e.step, e.summary.value[0].tag) for e in events[1:]]
            assert steps == [(i // 2 + 1, 'ih'[i % 2]) for i in range(len(steps))], name
            accumulated = EventAccumulator(os.path.join(root, name), ALL).Reload()
            assert not steps or [e.step for e in accumulated.Scalars('i')] == [s for s, tag in steps if tag == 'i'], name
            files, records = files + 1, records + len(events)
    print(files, 'files of killed processes are readable, with', records, 'records')


if sys.argv[2:] == ['--killed']:
    check_killed(sys.argv[1])
else:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], 'board', 'files_for_tensorboard'], env={**os.environ, 'LG_TEST_BOARD': folder}, check=True,
                       capture_output=True)
        check(EventAccumulator(folder, ALL).Reload())
