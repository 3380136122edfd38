#!/usr/bin/env python3
"""filter.py - a public header as Doxygen is to see it: each call as programs write it, with its comment.

The macro lg_sum(...) and the function lg_sum_with(x, options) behind it become one function, lg_sum(x, options); the
helpers of macros are left out. Sections become named groups of members. filter.py FILE prints the result.
"""
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tools'))
import header_comments  # noqa: E402

# Macros that are no calls, but that programs write. All others without lg_ serve the header itself.
WORDS = {'LG_SHAPE', 'LG_SHAPE_0D', 'LG_DIMS', 'LG_ALL_DIMS', 'LG_PAIR', 'LG_INTS', 'LG_NUMBERS', 'LG_LIST', 'LG_NAMES',
         'LG_LIST_OF', 'LG_INTS_OF', 'LG_NUMBERS_OF', 'LG_NAMES_OF', 'LG_DEVICE', 'LG_NO_DEVICE', 'LG_FIELD',
         'LG_RAGGED_FIELD', 'LG_FIELDS', 'LG_ZERO', 'LG_ZERO_INT', 'LG_AUTO', 'LG_INFINITY', 'LG_MAX', 'LG_END',
         'LG_VERSION', 'LG_VERSION_MAJOR', 'LG_VERSION_MINOR', 'LG_VERSION_PATCH'}
# Parameters of functions that macros fill in.
FILLED_IN = r'(size_t (size|report_size)|lg_dtype memory|lg_state_kind kind)'


def escape(text):
    """Text that neither Doxygen nor its Markdown changes, except for code between backquotes. A full stop before a space
    would end a brief description."""
    parts = text.split('`')
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r'[\\@&$#<>%*|\[\]]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])', r'\\\g<0>', parts[i])
        parts[i] = re.sub(r'\bet al\.\s+', r'et al.\\ ', parts[i]).replace('"', '&quot;')
    return '`'.join(parts)


def prose(text):
    """Paragraphs, lists and examples of a comment."""
    out = []
    for example, lines in header_comments.parts(text):
        text = '\n'.join(lines)
        out.append(f'\\code{{.c}}\n{text}\n\\endcode' if example else escape(text))
    return '\n'.join(out)


def comment(text, before='/** ', after=' */'):
    return before + prose(text).replace('*/', '* /') + after


def brief(d, macros):
    """What is said of a declaration: the comment of the macro in front of it, its own, and what follows it."""
    parts = [macros[d.name].comment if d.name in macros else d.comment, d.trailing]
    return '\n'.join(part for part in parts if part)


def signature(d, macros):
    code = d.code
    if d.name in macros:
        code = re.sub(rf'\b{d.name}\b', macros[d.name].name, code)
        code = re.sub(rf', {FILLED_IN}(?=[,)])', '', code)
    code = re.sub(r'const (lg_\w+_options) \*options', r'\1 options', code)
    code = re.sub(r'(\w+) \*const \*(\w+)\)', r'\1 *\2, ...)', code)
    code = re.sub(r'(lg_\w+)_in\b', r'\1', code)
    return code.replace(' ;', ';')


def struct(d, functions, macros):
    lines = [comment(d.comment if not d.name.endswith('_options') else options(d, functions, macros))]
    lines.append(f'typedef struct {d.name} {{')
    for code, text in d.members:
        for one in each(code):
            lines.append(comment(text or one.rstrip(';')) + '\n' + re.sub(r'(lg_\w+)_in\b', r'\1', one))
    return '\n'.join(lines + [f'}} {d.name};'])


def each(code):
    """Members that are declared together, one by one."""
    match = re.match(r'(.*?\w) (\**\w+(?:\[[^]]*\])?(?:, \**\w+(?:\[[^]]*\])?)+);$', code)
    return [f'{match.group(1)} {name};' for name in match.group(2).split(', ')] if match else [code]


def options(d, functions, macros):
    """What is said of a struct of options: whose they are, and its own comment if that is not another's."""
    users = [macros[f.name].name + '()' for f in functions if f.name in macros and f' {d.name} *options' in f.code]
    own = d.comment if d.comment not in {f.comment for f in functions} else ''
    whose = f'Options of {", ".join(users)}, given by name.' if users else 'Options, given by name.'
    return own or whose


def enum(d):
    lines = [comment(d.comment or d.name), f'typedef enum {d.name} {{']
    for code, text in d.members:
        lines.append(comment(text or code.split()[0]) + '\n' + code)
    return '\n'.join(lines + [f'}} {d.name};'])


def public(d, macros):
    if d.kind == 'macro':
        if d.name.startswith('lg_'):
            return d.name not in {m.name for m in macros.values()}
        return d.name in WORDS or re.match(r'LG_(MAX|CUSTOM|TRACE)_', d.name) is not None
    if d.kind == 'type':
        return d.code.startswith('typedef struct') and d.code.count(' ') == 3
    return d.name != 'lg_end_mark' and (d.kind != 'function' or '(' in d.code)


def macro(d):
    arguments = re.match(r'#\s*define \w+(\([^)]*\))?', d.code).group(1) or ''
    arguments = re.sub(r'_(?=[,)])', '', arguments)
    value = '' if arguments else re.sub(r'#\s*define \w+ ?', ' ', d.code)
    return f'{comment(brief(d, {}) or d.name)}\n#define {d.name}{arguments}{value}'


def show(d, macros, functions):
    if d.kind == 'struct':
        return struct(d, functions, macros)
    if d.kind == 'enum':
        return enum(d)
    if d.kind == 'macro':
        return macro(d)
    return comment(brief(d, macros) or d.name) + '\n' + signature(d, macros)


def called(declarations):
    """The macros in front of functions, by the function's name."""
    functions = {d.name for d in declarations if d.kind == 'function'}
    return {d.name + end: d for d in declarations if d.kind == 'macro' for end in ('_with', '_list')
            if d.name + end in functions}


def sections(header):
    """Returns (section, its public declarations), in order; what is before the first section has one without a title."""
    macros, found = called(header.declarations), []
    for d in header.declarations:
        if public(d, macros):
            if not found or found[-1][0] is not d.section:
                found.append((d.section, []))
            found[-1][1].append(d)
    return found


def anchor(header, section):
    return re.sub(r'\W+', '_', f'{header.name}_{section.title}')


def main(path):
    if not path.endswith('.h'):
        import pages
        return pages.page(path) if path.endswith('.md') else pages.example(path)
    header = header_comments.read(path)
    macros = called(header.declarations)
    functions = [d for d in header.declarations if d.kind == 'function']
    print(comment(f'\n{header.title}\n\n{header.text}', '/** \\file\n'))
    for section, declarations in sections(header):
        if section.title:
            text = comment(section.text, '', '')
            print(f'/** \\name {escape(section.title)}\n\\anchor {anchor(header, section)}\n{text}\n@{{ */')
        for d in declarations:
            print(show(d, macros, functions) + '\n')
        if section.title:
            print('/** @} */\n')


if __name__ == '__main__':
    main(sys.argv[1])
