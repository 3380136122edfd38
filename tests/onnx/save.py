#!/usr/bin/env python3
"""save.py - checks ONNX files that lg_onnx_save() writes, one for each module and op: save.py PROGRAM [--keep FOLDER] [PATTERN]

Runs save_models in each dtype. Of each file: onnx.checker, and the outputs of ONNX Runtime (of onnx.reference for bf16) for
two sizes of a batch. Prints what fails, then counts, and exits with 1 if anything fails or too many modules are refused."""
import collections, glob, os, re, subprocess, sys, tempfile, warnings
import numpy as np

warnings.simplefilter('ignore')
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

NEAR = {'f32': 1e-5, 'f16': 2e-3, 'bf16': 2e-2} # of the largest output
# Modules that have no form in ONNX, and why. What is refused must be one of these.
REFUSED = {'fractional_max_pool2d': 'random places', 'fractional_max_pool3d': 'random places',
           'adaptive_log_softmax_target': 'reads the targets', 'embedding_max_norm': 'changes the weight',
           'lstm_projection': 'ONNX has no projection'}
for why, names in {'no operator': 'erfinv lgamma digamma polygamma atan2 cummax cummin mode diagonal diag_embed diag diagflat trace',
                   'random': 'dropout feature_dropout alpha_dropout feature_alpha_dropout',
                   'size by values': 'unique unique_consecutive histc masked_select repeat_interleave_by',
                   'losses': 'cross_entropy cross_entropy_rows cross_entropy_smoothed cross_entropy_weighted cross_entropy_mean nll '
                             'nll_mean bce bce_mean bce_with_logits bce_with_logits_weighted bce_with_logits_mean kl_div kl_div_mean '
                             'multilabel_soft_margin'}.items():
    REFUSED |= {'op_' + name: why for name in names.split()}
# ONNX Runtime has no such sums of f16.
NO_RUNTIME = {'op_scatter_add', 'op_scatter_add_often', 'op_index_add', 'op_index_add_often'}
# Modules that onnx.reference runs wrongly or not at all: groups, lengths, ReLU of recurrent layers. It also rounds each
# step of an op to bf16: of ops alone, bf16 files are checked but not run.
NO_REFERENCE = {'conv_transpose2d_options', 'lstm_lengths', 'rnn_relu', 'rnn_cell_relu'}


def runner(path, dtype):
    """Returns the names of inputs, and a function of a dictionary of inputs that gives the outputs."""
    if dtype == 'bf16':
        e = ReferenceEvaluator(path)
        return e.input_names, lambda feeds: e.run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    s = onnxruntime.InferenceSession(path, options, providers=['CPUExecutionProvider'])
    return [i.name for i in s.get_inputs()], lambda feeds: s.run(None, feeds)


def arrays(folder, kind, batch):
    return [np.load(f'{folder}/{kind}_{batch}_{i}.npy') for i in range(len(glob.glob(f'{folder}/{kind}_{batch}_*.npy')))]


def check(folder, dtype):
    """Returns the largest error, relative to the largest output, or raises an exception."""
    path, far = folder + '/model.onnx', 0
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    name = os.path.basename(folder)
    if dtype == 'bf16' and (name in NO_REFERENCE or name.startswith('op_')) or dtype == 'f16' and name in NO_RUNTIME:
        return 0
    names, run = runner(path, dtype)
    for batch in (2, 5):
        inputs, wanted = arrays(folder, 'in', batch), arrays(folder, 'out', batch)
        if batch == 5 and not wanted: # all sizes are fixed
            continue
        feeds = {n: a.astype(onnx.helper.tensor_dtype_to_np_dtype(types[n])) for n, a in zip(names, inputs, strict=True)}
        found = run(feeds)
        assert len(found) == len(wanted), f'{len(found)} outputs, not {len(wanted)}'
        for got, want in zip(found, wanted):
            assert got.shape == want.shape, f'shape {got.shape}, not {want.shape}'
            if dtype != 'bf16':
                assert got.dtype == want.dtype, f'{got.dtype}, not {want.dtype}'
            got, want = got.astype(np.float64), want.astype(np.float64)
            if want.size:
                off = np.where((got == want) | (np.isnan(got) & np.isnan(want)), 0, np.abs(got - want))
                far = max(far, off.max() / max(np.abs(want[np.isfinite(want)]).max(initial=0), 1e-6))
    assert far <= NEAR[dtype], f'by {far:.2g}'
    return far


def main():
    args = sys.argv[1:]
    program, keep = args.pop(0), None
    if args and args[0] == '--keep':
        keep = args[1]
        args = args[2:]
    failed = 0
    with tempfile.TemporaryDirectory() as root:
        root = keep or root
        for dtype in NEAR:
            folder = f'{root}/{dtype}'
            os.makedirs(folder, exist_ok=True)
            done = subprocess.run([program, folder, dtype, *args], capture_output=True, text=True)
            lines = [re.match(r'(saved|refused|differs) (\w+)(?:: (.*))?$', line) for line in done.stdout.splitlines()]
            if done.returncode not in (0, 1) or not all(lines) or not lines:
                print(f'{dtype}: the program ended with {done.returncode}: {done.stdout[-300:]} {done.stderr[-1000:]}')
                failed += 1
            count = collections.Counter()
            errors = []
            for _, name, why in (m.groups() for m in lines if m and m[1] == 'refused'):
                count['refused'] += 1
                known = name in REFUSED
                failed += not known
                if not known:
                    print(f'{dtype}: refused: {name}: {why}')
            for said, name, why in (m.groups() for m in lines if m and m[1] != 'refused'):
                try:
                    if said == 'differs':
                        failed += 1
                        print(f'{dtype}: read again: {name}: {why}')
                    errors.append((check(f'{folder}/{name}', dtype), name))
                    count['good'] += 1
                except Exception as e:
                    print(f'{dtype}: wrong: {name}: ' + ' '.join(str(e).split())[:300])
                    count['wrong'] += 1
            failed += count['wrong']
            worst = max(errors, default=(0, 'none'))
            missing = sorted(REFUSED.keys() - {m[2] for m in lines if m and m[1] == 'refused'})
            if missing and not args:
                failed += 1
                print(f'{dtype}: not refused any more: {missing}')
            print(f'{dtype}: {count["good"]} good, {count["wrong"]} wrong, {count["refused"]} refused; largest error {worst[0]:.2g} ({worst[1]})')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
