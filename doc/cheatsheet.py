#!/usr/bin/env python3
"""cheatsheet.py - the whole API by subject on two pages: each call with the names of its arguments and options.

cheatsheet.py FILE.html [WEASYPRINT FILE.pdf]: reads the public headers and writes the page, which links the reference in the
same folder; then a PDF by the program WeasyPrint, in the largest type that fits.
"""
import html
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import filter as headers  # noqa: E402
import pages  # noqa: E402

SIZES = 4.6, 4.2, 3.9, 3.6, 3.3, 3.0  # points; which fits depends on the fonts of the machine, and each one tried takes seconds
SHARED = 3  # options of so many functions are named once, where their struct is declared

STYLE = '''
@page { size: A4; margin: 6mm }
body { font: 11.5px/1.35 "Liberation Sans Narrow", "Arial Narrow", "DejaVu Sans Condensed", sans-serif; color: #1a1a1a;
        background: #fff; margin: 1em }
h1 { font-size: 150%; margin: 0; display: inline }
main { columns: 23em; column-gap: 1.4em; column-rule: 1px solid #d0d4da; margin-top: 0.6em }
h2 { font-size: 115%; margin: 0.6em 0 0.1em; padding: 0 0.2em; background: #d6e6f5; break-after: avoid }
h3 { font-size: 100%; margin: 0.25em 0 0; color: #50607a; break-after: avoid }
p { margin: 0; padding-left: 0.8em; text-indent: -0.8em; break-inside: avoid }
a { color: inherit; text-decoration: none }
i { font-style: normal; color: #7a3d00 }
span, small { color: #5a6270 }
small { font-size: 85%; font-weight: normal }
.pdf { color: #1a4f8a; text-decoration: underline }
@media print {
        body { font-size: SIZEpt; line-height: 1.14; margin: 0 }
        main { columns: 4; column-gap: 2.5mm; margin-top: 1mm }
        h2:first-child { margin-top: 0 }
        .pdf { display: none }
}
'''
# Types that need no word, because most calls return them or their names say so.
OBVIOUS = r'void|bool|lg_\w+(?<!_t) \*'


def name_of(code):
    """Returns the name that a parameter or a member declares."""
    pointer = re.search(r'\(\*\s*(\w+)\)', code)
    return pointer.group(1) if pointer else re.findall(r'\w+', re.sub(r'\[[^]]*\]|;', '', code))[-1]


def split(parameters):
    """Splits a list of parameters at the commas outside brackets."""
    return [p.strip() for p in re.split(r',(?![^(]*\))', parameters) if p.strip() not in ('', 'void')]


def words(names):
    """Returns names of options, between which a line may end: it never does before a full stop alone."""
    return '<i>' + ' '.join(f'\u200b.{name}' for name in names) + '</i>'


def members(d):
    return [name_of(one) for code, _ in d.members for one in headers.each(code)]


class Sheet:
    """The declarations of all headers, and how each is written on the sheet."""
    def __init__(self, read):
        self.headers = read
        self.macros, self.options, self.users = {}, {}, {}
        for header in read:
            self.macros.update(headers.called(header.declarations))
            self.options.update({d.name: d for d in header.declarations if d.name.endswith('_options')})
        for header in read:
            for d in header.declarations:
                if d.kind == 'function':
                    for name in re.findall(r'\w+_options(?= \*options)', d.code):
                        self.users[name] = self.users.get(name, 0) + 1

    def shared(self, name):
        return self.users.get(name, 0) >= SHARED

    def option_names(self, name):
        if self.shared(name):
            return f'<i>{name.removeprefix("lg_").removesuffix("_options")}&nbsp;…</i>'
        return words(members(self.options[name]))

    def arguments(self, d):
        """Returns the arguments of a call, or None for a constant."""
        macro = d if d.kind == 'macro' else self.macros.get(d.name)
        named = macro and re.match(r'#\s*define \w+\(([^.)]*)\)', macro.code)
        if d.kind == 'macro' and not named:
            return '…'
        code = named.group(1) if named else re.search(r'\w+\((.*)\);', headers.signature(d, self.macros)).group(1)
        words = []
        for parameter in split(code):
            options = re.fullmatch(r'(\w+_options) options', parameter)
            words.append(self.option_names(options.group(1)) if options else
                         '…' if parameter == '...' else html.escape(name_of(parameter).rstrip('_')))
        return ', '.join(words)

    def returned(self, d):
        """Returns what is said of the type of a result, if anything."""
        if d.kind != 'function':
            return ' <span>a callback</span>' if d.kind == 'callback' else ''
        result = re.match(r'(?:const )?(.*?)\w+\(', headers.signature(d, self.macros)).group(1).strip()
        return '' if re.fullmatch(OBVIOUS, result) else f' <span>→ {"text" if result == "char *" else result.replace("_t *", "_t")}</span>'

    def entry(self, d):
        """Returns (what is named, what follows the names), or None if the sheet leaves d out."""
        name = self.macros[d.name].name if d.name in self.macros else d.name
        if d.kind in ('function', 'macro', 'callback'):
            constant = re.match(r'#\s*define \w+(?!\w|\() *(\d+$)?', d.code)
            follows = f'{" = " if constant.group(1) else ""}{constant.group(1) or ""}' if constant else \
                f'({self.arguments(d)}){self.returned(d)}'
        elif d.kind == 'enum':
            follows = ': ' + ' '.join(code.split()[0].rstrip(',') for code, _ in d.members)
        elif d.kind == 'struct' and name.endswith('_options'):
            if not self.shared(name):
                return None
            name = name.removeprefix('lg_').removesuffix('_options')
            return f'<i>{name}&nbsp;…</i>', ' is ' + words(members(d))
        elif d.kind == 'struct' and not re.search(r'LG_(DEVICE|FIELDS?)_HEAD', d.code):
            follows = ': ' + words(members(d))
        else:
            return None
        return f'<b>{name}</b>', follows

    def entries(self, declarations):
        """Returns paragraphs; names that are followed by the same share one."""
        found = []
        for entry in filter(None, map(self.entry, declarations)):
            if found and found[-1][1] == entry[1] and not entry[0].startswith('<i>'):
                found[-1][0].append(entry[0])
            else:
                found.append(([entry[0]], entry[1]))
        return [f'<p>{", ".join(names)}{follows}</p>' for names, follows in found]

    def page(self, version, size, pdf):
        yield f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>libgrad {version}: cheat sheet</title>'
        yield '<meta name="viewport" content="width=device-width">'
        yield f'<style>{STYLE.replace("SIZE", str(size))}</style></head><body>'
        yield f'<h1>libgrad {version}</h1> <b>grad.h on two pages.</b>'
        yield 'Arguments come in the order shown; <i>.options</i> follow by name, in any order: lg_sum(x, .dims = LG_DIMS(1)). '
        yield 'Names like <i>create …</i> stand for the options listed with them. '
        yield (f'<a class="pdf" href="{pdf}">As PDF</a>' if pdf else '') + '<main>'
        for header in self.headers:
            link = header.name.replace('_', '__').replace('.', '_8') + '.html'
            yield f'<h2><a href="{link}">{header.name}</a> <small>{html.escape(header.title)}</small></h2>'
            for section, declarations in headers.sections(header):
                if entries := self.entries(declarations):
                    if section.title:
                        yield f'<h3><a href="{link}#{headers.anchor(header, section)}">{html.escape(section.title)}</a></h3>'
                    yield from entries
        yield '</main></body></html>'


def count_pages(pdf):
    with open(pdf, 'rb') as f:
        return len(re.findall(rb'/Type /Page\b', f.read()))


def main(path, weasyprint='', pdf=''):
    sheet = Sheet([headers.header_comments.read(pages.header_file(name)) for name in pages.reference()
                   if name != 'libgrad/grad.h'])
    version = re.search(r'define LG_VERSION "(.*?)"', pages.read('libgrad/grad.h')).group(1)
    for size in SIZES:
        with open(path, 'w', encoding='utf-8') as f:
            f.write('\n'.join(sheet.page(version, size, os.path.basename(pdf))) + '\n')
        if pdf:
            subprocess.run([weasyprint, '-q', path, pdf], check=True)
        if not pdf or count_pages(pdf) <= 2:
            break


if __name__ == '__main__':
    main(*sys.argv[1:])
