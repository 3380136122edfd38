#!/usr/bin/env python3
"""layout.py - what programs compiled with an older header rely on is still so in the newest.

layout.py OLD_INCLUDE NEW_INCLUDE [CC [CXX]]: where grad.h and grad/ are, in one folder or in several with colons between. Structs keep their members where they were;
new members stand behind the former size, without padding among them; values keep their size, enumerators their numbers,
functions their types; and C++ sees in the newest header what C sees. Prints what is not so.
"""
import re
import subprocess
import sys
import tempfile

# Passed by value or kept in arrays: frozen.
VALUES = ['lg_shape', 'lg_dims', 'lg_pair', 'lg_ints', 'lg_numbers', 'lg_list', 'lg_names', 'lg_device', 'lg_scope', 'lg_random_state']
GUARD = r'no(thing|_value)_\d*'  # members without room
LIMITS = ['LG_MAX_DIMS', 'LG_CUSTOM_MAX', 'LG_MAX_OUTPUTS', 'LG_TRACE_MAX', 'LG_ZERO_INT', 'LG_MAX']


def folders(include):
    return ['-I' + folder for folder in include.split(':')]


def preprocessed(include, cc):
    text = subprocess.run([cc, '-E', '-P', *folders(include), '-x', 'c', '-'], input='#include <grad.h>\n', text=True,
                          capture_output=True, check=True).stdout
    text = re.sub(r'__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|__extension__', '', text)
    return re.sub(r'\s+', ' ', text)


def members(body):
    names = []
    for declaration in body.split(';'):
        for part in declaration.split(','):
            pointer = re.search(r'\(\s*\*\s*(\w+)\s*\)', part)
            name = pointer or re.search(r'(\w+)\s*(?:\[[^\]]*\]\s*)*$', part)
            if name and (part is declaration or declaration.count('(') == 0 or pointer):
                names.append(name.group(1))
            if pointer:
                break
    return names


class Header:
    def __init__(self, include, cc):
        text = preprocessed(include, cc)
        self.structs = {m.group(2): members(m.group(1)) for m in
                        re.finditer(r'typedef struct \w* ?\{([^{}]*)\} (lg_\w+);', text)}
        self.enums = [name for m in re.finditer(r'typedef enum \w* ?\{([^{}]*)\} lg_\w+;', text)
                      for name in re.findall(r'\b(LG_\w+)\b(?=\s*[,=}]|\s*$)', m.group(1))]
        self.functions = {}
        for m in re.finditer(r'[;}] ?((?:extern )?(?:const )?\w[\w ]*\*?[ *]*)\b(lg_\w+)\(((?:[^();]|\([^()]*\))*)\) ?(?=;)', text):
            parameters = re.sub(r'\b\w+(?=,|$)', lambda p: p.group(0) if p.group(0) == 'void' else '', m.group(3))
            self.functions[m.group(2)] = re.sub(r'\s+', '', m.group(1) + '(' + parameters + ')')
        self.numbers = self.measured(include, cc, ['-x', 'c'])

    def measured(self, include, compiler, language):
        lines = ['#include <grad.h>', '#include <stddef.h>', 'int main(void) {']
        for struct, names in self.structs.items():
            lines.append(f'printf("{struct} %zu\\n", sizeof({struct}));')
            for name in [name for name in names if not re.fullmatch(GUARD, name)]:
                lines.append(f'printf("{struct}.{name} %zu %zu\\n", offsetof({struct}, {name}), sizeof((({struct} *)0)->{name}));')
        for name in self.enums + LIMITS:
            lines.append(f'printf("{name} %lld\\n", (long long){name});')
        lines.append('return 0; }')
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([compiler, '-w', *folders(include), *language, '-', '-o', folder + '/measure'], input='\n'.join(lines),
                           text=True, check=True)
            out = subprocess.run([folder + '/measure'], text=True, capture_output=True, check=True).stdout
        return {line.split()[0]: [int(n) for n in line.split()[1:]] for line in out.splitlines()}


def compare(old, new):
    wrong = []
    for name, value in old.numbers.items():
        now = new.numbers.get(name)
        if now is None:
            wrong.append(f'{name} is gone')
        elif name in old.structs:
            if name in VALUES and now != value:
                wrong.append(f'{name} had {value[0]} bytes and has {now[0]}; it is passed by value')
        elif now != value:
            what = 'offset and size were' if '.' in name else 'was'
            wrong.append(f'{name}: {what} {value}, now {now}')
    for struct, names in old.structs.items():
        added = [n for n in new.structs.get(struct, []) if n not in names and not re.fullmatch(GUARD, n)]
        if not added:
            continue
        end = old.numbers[struct][0]
        for name in added:
            offset, size = new.numbers[f'{struct}.{name}']
            if offset != end:
                wrong.append(f'{struct}.{name} stands at {offset}, but the members before it end at {end}')
            end = offset + size
        if end != new.numbers[struct][0]:
            wrong.append(f'{struct} ends with padding behind its new members, which may be garbage: '
                         f'{end} of {new.numbers[struct][0]} bytes are members')
    for name, kind in old.functions.items():
        if name not in new.functions:
            wrong.append(f'{name}() is gone')
        elif new.functions[name] != kind:
            wrong.append(f'{name}(): was {kind}, is {new.functions[name]}')
    return wrong


def main():
    cc = sys.argv[3] if len(sys.argv) > 3 else 'cc'
    old, new = Header(sys.argv[1], cc), Header(sys.argv[2], cc)
    if len(old.structs) < 60 or len(old.functions) < 250 or len(old.enums) < 25:
        print(f'the old header could not be read: {len(old.structs)} structs, {len(old.functions)} functions, '
              f'{len(old.enums)} enumerators')
        return 1
    wrong = compare(old, new)
    if len(sys.argv) > 4:
        seen = new.measured(sys.argv[2], sys.argv[4], ['-x', 'c++', '-std=c++20'])
        wrong += [f'{name} is {value} in C and {seen.get(name)} in C++' for name, value in new.numbers.items()
                  if seen.get(name) != value]
    for line in wrong:
        print(line)
    print(f'{len(old.structs)} structs, {len(old.functions)} functions, {len(old.enums)} enumerators: '
          f'{len(wrong)} differences')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
