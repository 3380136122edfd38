#!/usr/bin/env python3
"""editor.py - grad/editor.h, by which an editor that knows C shows each call with its arguments and options.

editor.py HEADER... prints it. A call that takes any number of arguments is a macro, lg_sum(...), of which an editor shows
the definition only. So each is defined again, by the same text with its comment in it, and is declared as a function.
"""
import re
import sys

sys.dont_write_bytecode = True
import filter as headers  # noqa: E402

HEAD = '''/* editor.h - the calls with options as editors show them; grad.h includes it if LG_DOCUMENTATION is defined. */
// IWYU pragma: private, include <grad.h>
#ifndef LG_EDITOR_H
#define LG_EDITOR_H

LG_BEGIN'''
NAME = re.compile(r'(?<=\(\*)\w+(?=\)\()|\w+(?=(\[\w*\])?;$)')  # of a member of a struct


def call(d, macro, structs):
    """The macro with the function's declaration and comment, and the declaration with the comment."""
    macros = {d.name: macro}
    code = headers.signature(d, macros)
    text = headers.brief(d, macros)
    if struct := re.search(r'(\w+) options\)', code):
        text += '\n\nOptions, given by name:'
        for member, said in structs[struct.group(1)].members:
            for one in headers.each(member):
                text += f'\n  .{NAME.search(one).group(0)}: {said} [{one.rstrip(";")}]'
    text = text.replace('*/', '* /')
    parameters, body = re.match(r'#\s*define \w+(\([^)]*\)) (.*)', macro.code).groups()
    # clang-format, which formats what the editor shows, would fill its lines.
    print(f'\n#undef {macro.name}\n#define {macro.name}{parameters} /* clang-format off */ /*\n{code}\n\n{text}\n*/ {body}')
    print(f'/* {text} */\n' + re.sub(rf'\b{macro.name}\(', f'({macro.name})(', code, count=1))


def main(paths):
    read = [headers.header_comments.read(path) for path in paths]
    structs = {d.name: d for header in read for d in header.declarations if d.kind == 'struct'}
    print(HEAD)
    for header in read:
        macros = headers.called(header.declarations)
        for d in header.declarations:
            if d.name in macros and '...)' in macros[d.name].code.split(')')[0] + ')':
                call(d, macros[d.name], structs)
    print('\nLG_END_C\n#endif')


main(sys.argv[1:])
