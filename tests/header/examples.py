#!/usr/bin/env python3
"""examples.py - the examples in the comments of the public headers compile as C and as C++, without a warning.

examples.py SOURCE_ROOT COMPILER ARGUMENT...: an example is an expression or statements, and may begin with functions, up to
a line "..."; it finds NAMES.
"""
import glob
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
root, compiler = sys.argv[1], sys.argv[2:]
sys.path.insert(0, os.path.join(root, 'tools'))
import header_comments  # noqa: E402

NAMES = '''lg_ctx *c; FILE *f;
lg_tensor *x, *y, *w, *b, *h, *p, *t, *mask, *loss, *scores, *weights, *images, *labels, *ids, *index, *target, *i;
lg_module *net, *m, *lstm, *gpt, *block, *head, *teacher, *student; lg_outputs out;
lg_optimizer *opt; lg_scheduler *warmup, *cosine, *decay; lg_ema *average; lg_scaler *scaler; lg_check_report r;
lg_dataset *d, *data, *train, *valid, *test; lg_loader *l, *loader, *batches; lg_batch sample;
lg_sample *s; lg_custom_call *call; lg_device dev; lg_device_info_t info; int order; int64_t steps, epochs;
lg_checkpoint *k; lg_weights *file; const char *path; lg_weight weight;
lg_check_fn *fn; lg_custom_fn *cube, *cube_backward; lg_sample_fn *make_sample; lg_collate_fn *collate;
lg_transform *first, *second; lg_transform_fn *invert; lg_group *g;'''
# What a name is in one header alone.
OTHER = {'norm.h': 'lg_tensor *mean, *var;',
         'files.h': 'lg_csv *t, *train, *test;', 'tensor.h': 'float *data;', 'nn.h': 'lg_forward_fn *block; void *p;',
         'data.h': 'lg_dataset *a, *b; FILE *files;', 'check.h': 'lg_check_fn *f;', 'optim.h': 'lg_tensor *norm;', 'state.h': 'lg_loader *loader; char name[8];'}


def all_examples():
    for path in sorted(glob.glob(os.path.join(root, 'libgrad/grad/*.h'))):
        header = header_comments.read(path)
        texts = {header.text: 1, **{s.text: 1 for s in header.sections}}
        for d in reversed(header.declarations):
            texts[d.comment] = d.line
        for text, line in texts.items():
            for example, lines in header_comments.parts(text):
                if example:
                    yield header.name, line, '\n'.join(lines).rstrip()


def function(number, name, line, example):
    """A function around an example, whose lines compilers number as those of the header."""
    before, dots, code = example.partition('\n...\n')
    if not example.startswith('static') or not dots:
        before, code = '', example
    code = '\n'.join('' if text.strip() == '...' else text for text in code.split('\n'))
    if not code.rstrip().endswith((';', '}')):
        code = code + ' {}' if code.startswith('for ') else f'(void)({code});'
    return f'#line {line} "{name}"\n{before}\nstatic bool example_{number}(void)\n{{\n{NAMES}\n{{\n{OTHER.get(name, "")}\n{{\n' \
        f'#line {line} "{name}"\n{code}\n}}\n}}\nreturn true;\n}}\n'


def main():
    examples, ends = list(all_examples()), {}
    source = '#include <grad.h>\n#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\n'
    source += '\n'.join(function(n, *e) for n, e in enumerate(examples))
    with tempfile.TemporaryDirectory() as folder:
        for language, standard in (('c', '-std=c11'), ('c++', '-std=c++20')):
            path = os.path.join(folder, 'examples')
            open(path, 'w', encoding='ascii').write(source)
            ends[language] = subprocess.run(
                compiler + ['-x', language, standard, '-fsyntax-only', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-Wno-unused',
                            '-Wno-unused-result', '-Wno-uninitialized', '-Wno-maybe-uninitialized', path], check=False).returncode
    print(f'{len(examples)} examples, ' + ', '.join(f'{name}: {"failed" if end else "ok"}' for name, end in ends.items()))
    return 1 if any(ends.values()) or len(examples) < 100 else 0


sys.exit(main())
