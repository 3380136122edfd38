#!/usr/bin/env python3
"""nodes.py - runs the node tests of the package onnx through lg_onnx_load(): nodes.py PROGRAM [--device D] [PATTERN]

Prints how many pass, and for the others why; exits with 1 if a result is wrong or the program ends early."""
import collections, fnmatch, os, re, subprocess, sys, tempfile, warnings
import numpy as np

warnings.simplefilter('ignore')
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_node_model_tests

HAVE = {1, 2, 6, 7, 9, 10, 11, 16} # the values of TensorProto.DataType that libgrad has


def dtypes(model):
    g = model.graph
    for v in list(g.input) + list(g.output) + list(g.value_info):
        if v.type.WhichOneof('value') != 'tensor_type':
            yield 0
        else:
            yield v.type.tensor_type.elem_type
    for t in g.initializer:
        yield t.data_type


def plain(a):
    """Returns an array in a dtype that .npy files have: bf16 as f32."""
    return a.astype(np.float32) if a.dtype.name == 'bfloat16' else a


def is_random(t):
    """Returns whether the results are drawn: their dtypes, shapes and what they consist of are tested, not their values."""
    return 'bernoulli' in t.name or ('training_dropout' in t.name and 'zero' not in t.name)


def check_drawn(name, i, got, inputs):
    if 'bernoulli' in name:
        assert set(got.flat) <= {0, 1}, f'result {i} has other numbers than 0 and 1'
    elif got.dtype == bool: # dropout's mask
        assert got.any(), f'result {i} keeps nothing'
    else:
        kept = got != 0
        scale = got[kept] / inputs[0][kept]
        assert kept.any() and not kept.all() and np.ptp(scale) < 1e-5 and scale[0] > 1, f'result {i} is not scaled by one factor'


def tests(pattern):
    for t in load_node_model_tests():
        if not fnmatch.fnmatch(t.name, pattern):
            continue
        model = t.model if t.model is not None else onnx.load(t.model_dir + '/model.onnx')
        if not set(dtypes(model)) <= HAVE or any(n.domain not in ('', 'ai.onnx') for n in model.graph.node):
            continue
        sets = t.data_sets
        if sets is None:
            folder = t.model_dir + '/test_data_set_0'
            read = lambda kind: [numpy_helper.to_array(onnx.load_tensor(f'{folder}/{kind}_{i}.pb')) for i in range(len([f for f in os.listdir(folder) if f.startswith(kind)]))]
            sets = [(read('input'), read('output'))]
        yield t, model, [[numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else a for a in part] for part in sets[0]]


def main():
    args = sys.argv[1:]
    program, options, pattern = args.pop(0), [], '*'
    if args and args[0] == '--device':
        options = args[:2]
        args = args[2:]
    if args:
        pattern = args[0]
    with tempfile.TemporaryDirectory() as root:
        expected = {}
        for t, model, (inputs, outputs) in tests(pattern):
            folder = os.path.join(root, t.name)
            os.mkdir(folder)
            onnx.save(model, folder + '/model.onnx')
            for i, a in enumerate(inputs):
                np.save(f'{folder}/in_{i}.npy', plain(np.asarray(a)))
            expected[t.name] = (t, inputs, outputs, [v.type.tensor_type.elem_type for v in model.graph.output])
        names = sorted(expected)
        said = {}
        for i in range(0, len(names), 100):
            part = [os.path.join(root, n) for n in names[i:i + 100]]
            done = subprocess.run([program, *options, *part], capture_output=True, text=True)
            for line in done.stdout.splitlines():
                m = re.match(r'(ok )?(?:.*/)?(test_\w+)(?:: (.*))?$', line)
                if m:
                    said[m[2]] = 'ok' if m[1] else m[3]
            if done.returncode not in (0, 1):
                print('the program ended with', done.returncode, 'after', done.stdout.splitlines()[-1:], done.stderr[-3000:])
        good, wrong, refused = [], {}, {}
        for name in names:
            if said.get(name) != 'ok':
                refused[name] = said.get(name, 'nothing was said')
                continue
            t, inputs, outputs, types = expected[name]
            try:
                for i, want in enumerate(outputs):
                    want = np.asarray(want)
                    got = np.load(f'{root}/{name}/out_{i}.npy')
                    assert got.shape == want.shape, f'result {i}: shape {got.shape}, not {want.shape}'
                    if types[i] == 16:
                        want = want.astype(np.float32)
                        np.testing.assert_allclose(got.astype(np.float32), want, rtol=max(t.rtol, 1.6e-2), atol=max(t.atol, 1e-3))
                        continue
                    assert got.dtype == want.dtype, f'result {i}: {got.dtype}, not {want.dtype}'
                    if is_random(t):
                        check_drawn(name, i, got, inputs)
                        continue
                    if want.dtype.kind == 'f':
                        near = 2e-3 if want.dtype == np.float16 else 0 # sums in another order round to a neighbour
                        np.testing.assert_allclose(got, want, rtol=max(t.rtol, near), atol=t.atol)
                    else:
                        np.testing.assert_array_equal(got, want)
                good.append(name)
            except (AssertionError, FileNotFoundError) as e:
                wrong[name] = ' '.join(str(e).split())[:200]
        kinds = collections.Counter(re.sub(r'"[^"]*"|\d+', '#', w)[:120] for w in refused.values())
        for name, why in sorted(wrong.items()):
            print(f'wrong: {name}: {why}')
        for name, why in sorted(refused.items()):
            print(f'refused: {name}: {why}')
        single = [n for n in names if '_expanded' not in n]
        print(f'{len(single)} node tests: {sum(n in good for n in single)} pass; {len(names) - len(single)} expanded ones: '
              f'{len(good) - sum(n in good for n in single)} pass; {len(wrong)} wrong, {len(refused)} refused')
        sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
