#!/usr/bin/env python3
"""examples.py - the examples in the comments of the public headers compile as C and as C++, without a warning.

examples.py SOURCE_ROOT COMPILER ARGUMENT...: an example is an expression or statements, and may begin with functions, up to
a line "..."; it finds NAMES. "Examples:" are several expressions. tests/mistakes/check.py compiles them by every compiler.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools'))
import header_comments  # noqa: E402

NAMES = '''lg_ctx *c; FILE *f;
lg_tensor *x, *y, *w, *b, *h, *p, *t, *mask, *loss, *scores, *weights, *images, *labels, *ids, *index, *target, *i;
lg_module *net, *m, *lstm, *gpt, *block, *head, *teacher, *student; lg_outputs out;
lg_optimizer *opt; lg_scheduler *warmup, *cosine, *decay; lg_ema *average; lg_scaler *scaler; lg_check_report r;
lg_dataset *d, *data, *train, *valid, *test; lg_loader *l, *loader, *batches; lg_batch sample;
lg_sample *s; lg_custom_call *call; lg_device dev; lg_device_info_t info; int order; int64_t steps, epochs;
lg_checkpoint *k; lg_weights *file; const char *path; lg_weight weight;
lg_function *fn; lg_custom_fn *cube, *cube_backward; lg_sample_fn *make_sample; lg_collate_fn *collate;
lg_transform *first, *second; lg_transform_fn *invert; lg_group *g;'''
# What a name is in one header alone.
OTHER = {'attention.h': 'lg_tensor *q, *k, *v, *seen, *memory, *source; lg_module *blocks; lg_kv_cache *cache; lg_tensor *(*next)(lg_tensor *y);',
         'pointwise.h': 'lg_tensor *a, *b;', 'image.h': 'lg_tensor *theta, *grid;', 'dist.h': 'lg_tensor *a, *mean, *log_std, *advantage;',
         'index.h': 'lg_tensor *src, *values, *j;',
         'statistics.h': 'lg_tensor *sorted, *values, *boundaries, *test, *n, *max, *mean;',
         'sequence.h': 'lg_tensor *q, *cos, *sin, *logits, *lengths, *starts;',
         'arrange.h': 'lg_tensor *grid[2];',
         'norm.h': 'lg_tensor *mean, *var;', 'loss.h': 'lg_tensor *var, *anchor, *positive, *negative, *times, *lengths;', 'recurrent.h': 'lg_tensor *lengths;',
         'fft.h': 'lg_tensor *s;', 'linalg.h': 'lg_tensor *a, *k, *q, *r, *u, *s, *v, *vt;',
         'board.h': 'lg_board *b; int64_t step;',
         'files.h': 'lg_csv *t, *train, *test;', 'tensor.h': 'float *data;', 'nn.h': 'lg_forward_fn *block; void *p;',
         'tokenizer.h': 'lg_tokenizer *t; lg_text_stream stream; int64_t id;', 'data.h': 'lg_dataset *a, *b; FILE *files;', 'check.h': 'lg_function *f;', 'functional.h': 'lg_tensor *v, *hv[4], *grads[4];', 'optim.h': 'lg_tensor *norm;', 'schedule.h': 'lg_closure_fn *next_loss;', 'profile.h': 'lg_profiler *p; lg_tensor *noise, *noisy;', 'record.h': 'lg_recorder *r;', 'state.h': 'lg_loader *loader; char name[8];'}
WARNINGS = ['-Wall', '-Wextra', '-Wpedantic', '-Wmissing-field-initializers', '-Wno-unused', '-Wno-unused-result',
            '-Wno-unused-parameter', '-Wno-uninitialized', '-Wno-maybe-uninitialized', '-Wno-unknown-warning-option']


def all_examples(root):
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


def source(root, plain=False):
    """All examples as C, and their number; plain: without options by name."""
    examples = [e for e in all_examples(root) if not plain or 'LG_OPTIONS(' not in e[2]]
    if plain:
        examples = [(name, line, without_options(code)) for name, line, code in examples]
    return '#include <grad.h>\n#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\n' + \
        '\n'.join(function(n, *e) for n, e in enumerate(examples)), len(examples)


def without_options(code):
    """The same calls without options by name, each an argument ".name = value"."""
    while match := re.search(r',\s*\.\w+ = ', code):
        depth, end = 0, match.end()
        while depth > 0 or code[end] not in ',)':
            depth += (code[end] in '({') - (code[end] in ')}')
            end += 1
        code = code[:match.start()] + code[end:]
    return re.sub(r'\(\.\w+ = [^()]*\)', '()', code)


def main():
    text, count = source(sys.argv[1])
    ends = {}
    with tempfile.TemporaryDirectory() as folder:
        for language, standard in (('c', '-std=c11'), ('c++', '-std=c++20')):
            path = os.path.join(folder, 'examples')
            with open(path, 'w', encoding='ascii') as file:
                file.write(text)
            ends[language] = subprocess.run(sys.argv[2:] + ['-x', language, standard, '-fsyntax-only', *WARNINGS, '-Werror', path],
                                            check=False).returncode
    print(f'{count} examples, ' + ', '.join(f'{name}: {"failed" if end else "ok"}' for name, end in ends.items()))
    return 1 if any(ends.values()) or count < 100 else 0


if __name__ == '__main__':
    sys.exit(main())
