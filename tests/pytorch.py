#!/usr/bin/env python3
"""pytorch.py SOURCE_ROOT COMPILER ARGUMENT... - the names of doc/pytorch.md are those of grad.h and, where torch is, of torch.

Each public function that makes a tensor, a module, an optimiser or a schedule has a place in the page, or is in ELSEWHERE.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
root, compiler = sys.argv[1], sys.argv[2:]
sys.path.insert(0, os.path.join(root, 'tests'))
import declarations  # noqa: E402

# What PyTorch has in other packages, or not at all.
ELSEWHERE = set('''lg_read_npy lg_read_npz lg_read_png lg_read_idx lg_csv_numbers lg_csv_integers lg_csv_categories lg_weights_read
    lg_keep lg_escape'''.split())


def torch_has(torch, name):
    at = torch
    for part in name.split('.')[1:]:
        if not hasattr(at, part):
            try:
                __import__(at.__name__ + '.' + part)
            except (ImportError, AttributeError):
                return part in getattr(at, '__annotations__', {}) or part == 'training'
        at = getattr(at, part)
    return True


def main():
    page = open(os.path.join(root, 'doc/pytorch.md'), encoding='ascii').read()
    text = declarations.preprocessed(compiler)
    functions = {re.sub('_(with|list)$', '', name): result for result, name, _ in declarations.functions(text)}
    header = ''.join(open(os.path.join(root, 'libgrad/grad', name), encoding='utf-8').read()
                     for name in os.listdir(os.path.join(root, 'libgrad/grad')))
    named = set(re.findall(r'\blg_\w+', page))
    wrong = [f'{name} is not in grad.h' for name in sorted(named - set(re.findall(r'\blg_\w+', header)))]
    makes = re.compile(r'lg_(tensor|module|optimizer|scheduler) \*')
    wrong += [f'{name} is not in doc/pytorch.md' for name, result in functions.items()
              if makes.fullmatch(result.replace('LG_NEW ', '')) and name not in named | ELSEWHERE]
    theirs = sorted(set(re.findall(r'`(torch\.[\w.]+)`', page.partition('\n## What is missing\n')[0]))) # names that PyTorch had are missing, too
    try:
        import torch
        wrong += [f'PyTorch {torch.__version__} has no {name}' for name in theirs if not torch_has(torch, name)]
    except ImportError:
        print('there is no torch: its names are not checked')
    print('\n'.join([f'{len(named)} names of libgrad, {len(theirs)} of PyTorch, {len(wrong)} complaints'] + wrong))
    return bool(wrong) or len(theirs) < 200


sys.exit(main())
