#!/usr/bin/env python3
"""clangd.py SOURCE_ROOT BUILD_FOLDER - an editor with clangd shows calls with their options, and finds no fault in examples.

All that clangd gets is a file .clangd with the folders of the headers and LG_DOCUMENTATION.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

root, build = sys.argv[1:]
TEXT = '''#include <grad.h>
lg_tensor *f(lg_tensor *x, lg_tensor *w)
{
        lg_tensor *y = lg_conv2d(x, w, NULL, .stride = 2, .padding = 1);
        lg_tensor *z = lg_conv2d(x, w, NULL, .di);
        return lg_conv
'''
CALL = 'lg_conv2d(lg_tensor *x, lg_tensor *w, lg_tensor *b, lg_conv2d_options options)'
TEXT_PARTS = ['Computes a 2-d convolution', '.stride: step of the kernel over the input, at least 1; default 1', '.padding: ', '.groups: ']
# What is asked at the end of which part of TEXT, and what the answer contains.
ASKED = [('hover', 'y = lg_con', [f'lg_tensor *{CALL}', *TEXT_PARTS]), ('completion', 'return lg_conv', [CALL, *TEXT_PARTS]),
         ('completion', '.di', ['dilation', 'dilations'])]
if not shutil.which('clangd'):
    print('clangd is not installed')
    sys.exit(77)


def place(part):
    lines = TEXT[:TEXT.index(part) + len(part)].split('\n')
    return {'line': len(lines) - 1, 'character': len(lines[-1])}


def converse(folder, messages):
    """clangd's messages: answers by their id, complaints by the name of the file."""
    with open(f'{folder}/.clangd', 'w', encoding='utf-8') as file:
        file.write(f'CompileFlags: {{Add: [-DLG_DOCUMENTATION, -I{root}/libgrad, -I{build}/libgrad]}}\n')
    bodies = [json.dumps({'jsonrpc': '2.0', 'method': method, 'params': params, **more}) for method, params, more in messages]
    said = subprocess.run(['clangd', '--sync', '--log=error', '--background-index=0'], cwd=folder, text=True, check=True,
                          input=''.join(f'Content-Length: {len(body)}\r\n\r\n{body}' for body in bodies), stdout=subprocess.PIPE).stdout
    said = [json.loads(part) for part in re.split(r'Content-Length: \d+\s+', said)[1:]]
    return {m['id']: m['result'] for m in said if 'result' in m}, {
        os.path.basename(m['params']['uri']): m['params']['diagnostics'] for m in said if m.get('method', '').endswith('Diagnostics')}


with tempfile.TemporaryDirectory() as work:
    files = {os.path.basename(path): open(path, encoding='ascii').read() for path in glob.glob(f'{root}/models/examples/*.c')}
    answers, complaints = converse(work, [
        ('initialize', {'processId': None, 'rootUri': f'file://{work}', 'capabilities': {}}, {'id': 'start'}),
        *(('textDocument/didOpen', {'textDocument': {'uri': f'file://{work}/{name}', 'languageId': 'c', 'version': 1, 'text': text}}, {})
          for name, text in {**files, 'text.c': TEXT}.items()),
        *((f'textDocument/{method}', {'textDocument': {'uri': f'file://{work}/text.c'}, 'position': place(part)}, {'id': i})
          for i, (method, part, _) in enumerate(ASKED)),
        ('shutdown', None, {'id': 'end'}), ('exit', None, {})])
wrong = [f'{name}: {said["message"]}' for name in files for said in complaints.get(name, [{'message': 'clangd says nothing'}])]
wrong += [] if complaints['text.c'] else ['clangd finds no fault in a call without an end']
for i, (method, part, parts) in enumerate(ASKED):
    wrong += [f'{method} at "{part}" has no "{wanted}": {answers.get(i)}' for wanted in parts if wanted not in str(answers.get(i))]
wrong += ['completion would include editor.h'] if 'grad/editor.h' in str(answers) else []
print(f'{len(files)} examples, {len(ASKED)} questions', *wrong, sep='\n')
sys.exit(len(wrong) > 0 or len(files) < 5)
