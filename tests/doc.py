"""doc.py - the HTML of ninja doc shows the text that it is made from: comments of headers word for word, code as code.

Every page of Markdown, header and example is in the contents, every link inside the manual arrives, the search knows every
function, and the cheat sheet has every function and option, on two pages.

doc.py ROOT DOXYGEN DOXYFILE HTML: makes it in the folder HTML and reads it.
"""
import glob
import html
import html.parser
import os
import re
import subprocess
import sys
import urllib.parse

sys.dont_write_bytecode = True
root, doxygen, doxyfile, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(root, 'doc'))
import cheatsheet  # noqa: E402
import filter as headers  # noqa: E402
import pages as manual  # noqa: E402
from filter import header_comments  # noqa: E402

UNSEEN = {'lg_end_mark', 'lg_memory_stats_with'}  # they serve macros
wrong = []


def letters(text):
    return ''.join(text.split())


def found(pattern, text):
    """What a pattern finds, with what stands before it."""
    return [text[max(0, match.start() - 60):match.end()] for match in re.finditer(pattern, text)]


def shown(path):
    """The letters that a reader of a page sees, with code between backquotes."""
    text = re.sub(r'<script.*?</script>', '', open(path, encoding='utf-8').read(), flags=re.S)
    wrong.extend(f'{path}: a description ends within a sentence: {line}' for line in found(r'\bal\.?\s*<', text))
    text = html.unescape(re.sub(r'<[^>]*>', '', re.sub(r'</?code>', '`', text)))
    wrong.extend(f'{path}: an entity: {line}' for line in found(r'&#?\w+;', text))
    return letters(text)


def comments():
    """The paragraphs of comments in headers, without the marks of lists."""
    for path in glob.glob(os.path.join(root, 'libgrad/grad/*.h')):
        for d in header_comments.read(path).declarations:
            own = d.kind in ('macro', 'type') and not d.name.startswith('lg_') or d.name.endswith('_in')  # the header's
            if not own and d.name not in UNSEEN:
                for text in [d.comment, d.trailing] + [comment for _, comment in d.members]:
                    for _, lines in header_comments.parts(text):
                        yield re.sub('^- ', '', '\n'.join(lines), flags=re.M)


def code(page):
    """What stands between backquotes in a page of Markdown."""
    text = open(os.path.join(root, page), encoding='utf-8').read()
    return re.findall(r'`[^`]+`', re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S))


class Links(html.parser.HTMLParser):
    """Collects what a page of HTML refers to, and the names that others can refer to."""
    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(open(path, encoding='utf-8').read())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names |= {attrs[key] for key in ('id', 'name') if key in attrs}
        self.links += [attrs[key] for key in ('href', 'src', 'data') if attrs.get(key)]


def broken_links(files):
    """Yields the links to files or places that the manual does not have."""
    read = {os.path.basename(path): Links(path) for path in files}
    for name, page in read.items():
        for link in page.links:
            path, _, place = urllib.parse.unquote(link).partition('#')
            if re.match(r'https?:|javascript:|mailto:', link):
                continue
            if path and not os.path.exists(os.path.join(folder, path)):
                yield f'{name}: a link to {link}, which does not exist'
            elif place and (path or name) in read and place not in read[path or name].names:
                yield f'{name}: a link to {link}: the page has no such place'


def lost_files():
    """Yields the links of pages of Markdown to files that the repository does not have."""
    for page in manual.pages():
        for link in re.findall(r'\]\((?!https?:|#)([^)\s#]+)', re.sub(r'`[^`]*`', '', manual.read(page))):
            if not os.path.exists(os.path.join(root, os.path.dirname(page), link)):
                yield f'{page}: a link to {link}, which does not exist'


def functions():
    """Yields the names of the calls that programs write."""
    for path in glob.glob(os.path.join(root, 'libgrad/grad/*.h')):
        header = header_comments.read(path)
        macros = headers.called(header.declarations)
        for d in header.declarations:
            if d.kind == 'function' and d.name.startswith('lg_') and headers.public(d, macros):
                yield macros[d.name].name if d.name in macros else d.name


def options():
    """Yields the names of the options of all calls."""
    for path in glob.glob(os.path.join(root, 'libgrad/grad/*.h')):
        for d in header_comments.read(path).declarations:
            if d.kind == 'struct' and d.name.endswith('_options'):
                yield from re.findall(r'(\w+)(?:\[[^]]*\]|\)\([^)]*\))?[,;]', ' '.join(code for code, _ in d.members))


subprocess.run([doxygen, doxyfile], check=True)
files = glob.glob(os.path.join(folder, '*.html'))
pages = '\n'.join(map(shown, files))
texts = [*comments(), *(span for page in manual.pages() if page != manual.CONTENTS for span in code(page))]
wrong.extend(f'not shown: {text}' for text in texts if letters(text) not in pages)
wrong.extend([*broken_links(files), *lost_files()])
listed = Links(os.path.join(folder, 'index.html')).links
if manual.home_of_examples() != manual.CONTENTS:
    listed += Links(os.path.join(folder, f'{manual.label(manual.home_of_examples())}.html')).links
for path in [*manual.pages(), *manual.examples(), *manual.found('libgrad/grad.h', 'libgrad/grad/*.h')]:
    name = os.path.basename(path).replace('_', '__').replace('.', '_8') if path.endswith('.h') else manual.label(path)
    if path != manual.CONTENTS and f'{name}.html' not in listed:
        wrong.append(f'{path} is not in the contents')
index = ''.join(open(path, encoding='utf-8').read() for path in glob.glob(os.path.join(folder, 'search/*.js')))
wrong.extend(f'the search does not find {name}' for name in functions() if f"'{name}'" not in index)
sheet = open(os.path.join(folder, 'cheatsheet.html'), encoding='utf-8').read()
wrong.extend(f'{name} is not on the cheat sheet' for name in {*functions()} - {*re.findall(r'\blg_\w+', sheet)})
wrong.extend(f'the option {name} is not on the cheat sheet' for name in {*options()} - {*re.findall(r'\.(\w+)', sheet)})
pdf = os.path.join(folder, 'cheatsheet.pdf')
if os.path.exists(pdf) and cheatsheet.count_pages(pdf) != 2:
    wrong.append(f'the cheat sheet has {cheatsheet.count_pages(pdf)} pages, not 2')
print(f'{len(texts)} texts, {len(files)} pages, {len({*functions()})} functions', *wrong, sep='\n')
sys.exit(len(wrong) > 0 or len(texts) < 3000)
