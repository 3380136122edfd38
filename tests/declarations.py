"""declarations.py - the functions and the structs of options of grad.h, for tests that are generated from them."""
import re
import subprocess

LIST_TYPES = {'lg_list_in': 'lg_list', 'lg_ints_in': 'lg_ints', 'lg_numbers_in': 'lg_numbers', 'lg_names_in': 'lg_names'}


def preprocessed(compiler):
    """grad.h by that compiler, a list of its words, on one line."""
    text = subprocess.run(compiler + ['-E', '-P', '-x', 'c', '-'], input='#include <grad.h>\n', text=True, capture_output=True,
                          check=True).stdout
    text = re.sub(r'__attribute__ ?\(\((?!visibility)(?:[^()]|\([^()]*\))*\)\)', '', text)
    return re.sub(r'\s+', ' ', text).replace('_Bool', 'bool')


def functions(text):
    """The result, the name and the parameters (type, name) of each exported function; lists have the type that C gives them."""
    found = []
    for m in re.finditer(r'__attribute__\(\(visibility\("default"\)\)\) ([^;{}()]*?)(lg_\w+) ?\(([^;{}]*?)\) ?(?=;)', text):
        result, name, inside = m.group(1).strip(), m.group(2), m.group(3).strip()
        parameters = []
        for p in inside.split(', ') if inside != 'void' else []:
            pointer = re.fullmatch(r'void \(\*(\w+)\)\(.*\)', p)
            kind, called = ('function *', pointer.group(1)) if pointer else re.fullmatch(r'(.*?) ?(\w+|\.\.\.)', p).groups()
            if called != '...':
                parameters.append((LIST_TYPES.get(kind, kind), called))
        found.append((result, name, parameters))
    if len(found) != text.count('visibility("default")') - 1:  # and lg_end_mark
        raise SystemExit('declarations.py: not all declarations of grad.h could be read')
    return found


def options(text):
    """The members (type, name) of each struct of options."""
    def member(text):
        kind, name = re.fullmatch(r'(.*?) ?(\w+)', text.strip()).groups()
        return LIST_TYPES.get(kind, kind), name
    return {m.group(2): [member(d) for d in m.group(1).split(';')
                         if re.fullmatch(r'(const )?\w+ \**(const \*)?\w+', d.strip()) and not re.search(r'_\d*$', d.strip())]
            for m in re.finditer(r'typedef struct \w+ \{([^{}]*)\} (lg_\w+_options);', text)}
