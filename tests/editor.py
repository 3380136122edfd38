#!/usr/bin/env python3
"""editor.py SOURCE_ROOT EDITOR_H COMPILER ARGUMENT... - LG_DOCUMENTATION declares each call with options as its function has it,
shows all its options, and changes no program.
"""
import glob
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import declarations  # noqa: E402

root, header, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
ON = ['-DLG_DOCUMENTATION']
DECLARED = re.compile(r'([\w *]+)\((lg_\w+)\)\(([^;{}]*)\);')
FILLED_IN = [('size_t', 'size'), ('size_t', 'report_size'), ('lg_dtype', 'memory')]  # by macros


def output(*arguments):
    return subprocess.run([*compiler, *arguments], text=True, stdout=subprocess.PIPE, check=True).stdout


def called(parameters):
    """The parameters of the call in front of a function: options by value, any number of objects."""
    *first, (kind, last) = [p for p in parameters if p not in FILLED_IN]
    return first + [(re.sub(r'^const (\w+_options) \*$', r'\1', kind).replace('*const *', '*'), last)]


text = declarations.preprocessed(compiler + ON)
functions = {name: (result, parameters) for result, name, parameters in declarations.functions(text)}
exported = DECLARED.sub(r'__attribute__((visibility("default"))) \1\2(\3);', text)
calls = {name: (result, parameters) for result, name, parameters in declarations.functions(exported) if name not in functions}
options = declarations.options(text)
shown = re.split(r'^#undef (lg_\w+)$', open(header, encoding='ascii').read(), flags=re.M)
shown = dict(zip(shown[1::2], shown[2::2]))
wrong = [f'{name} is not declared' for name, (_, parameters) in functions.items()
         if parameters and parameters[-1][0].endswith('_options *') and name[:-len('_with')] not in calls]
for name, call in calls.items():
    result, parameters = functions.get(name + '_with') or functions[name + '_list']
    if call != (result, called(parameters)):
        wrong.append(f'{name} is {call}; the function is {result, parameters}')
    wrong += [f'{name} does not show .{option}' for _, option in options.get(call[1][-1][0], [])
              if shown[name].count(f'\n  .{option}: ') != 2]
programs = [*glob.glob(f'{root}/models/examples/*.c'), f'{root}/tests/mistakes/correct.c']
for program in programs:
    output(*ON, '-fsyntax-only', '-Wall', '-Wextra', '-Werror', program)
    plain, documented = (output(*flags, '-E', '-P', program) for flags in ([], ON))
    if plain.split() != DECLARED.sub('', documented).split():
        wrong.append(f'{program} is another program with LG_DOCUMENTATION')
print(f'{len(calls)} calls, {len(programs)} programs', *wrong, sep='\n')
sys.exit(len(wrong) > 0 or len(calls) < 150 or len(programs) < 5)
