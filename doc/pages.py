"""pages.py - pages of Markdown, example programs and the list of contents as Doxygen is to see them; used by filter.py."""
import collections
import glob
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'doc'))
import filter as headers  # noqa: E402

CONTENTS = 'doc/contents.md'


def found(*patterns):
    return [path for pattern in patterns for path in sorted(glob.glob(pattern, root_dir=ROOT))]


def pages():
    return found('README.md', 'doc/*.md', 'libgrad/README.md', 'CHANGELOG.md')


def examples():
    return found('models/examples/*.c', 'models/examples/*.cpp')


def reference():
    """Returns the public headers in the order of the contents."""
    return re.findall(r'^- (\S+\.h)$', read(CONTENTS), re.M)


def header_file(path):
    return os.path.join(ROOT, 'kernels/types.h' if path == 'libgrad/grad/types.h' else path)


def home_of_examples():
    return 'doc/examples.md' if 'doc/examples.md' in pages() else CONTENTS


def read(path):
    return open(os.path.join(ROOT, path), encoding='utf-8').read()


def label(path):
    """Returns the name of a page for Doxygen: that of its file alone would be README more than once."""
    return 'mainpage' if path == CONTENTS else re.sub(r'\W', '_', os.path.splitext(path)[0].lower())


def title(path):
    return 'Introduction' if path == 'README.md' else read(path).partition('\n')[0].strip('# ').replace('`', '')


def anchor(path, heading):
    """Returns the name of a heading, made from the one that a repository's web page gives it."""
    return f'{label(path)}-' + re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-')


def target(page, link):
    """Returns what Doxygen calls the target of a link in a page, or '' if the manual does not have it."""
    path, _, heading = link.partition('#')
    path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if path in pages():
        return anchor(path, heading) if heading else label(path)
    if path in examples():
        return label(path)
    if path in ('models/examples', 'libgrad/grad'):
        return anchor(home_of_examples(), 'Programs') if path == 'models/examples' else anchor(CONTENTS, 'Reference')
    return os.path.basename(path) if re.fullmatch(r'libgrad/(grad/)?\w+\.h', path) else ''


def linked(page, text):
    """Changes links to other files into what Doxygen finds; those that are not in the manual into plain text."""
    def link(match):
        if match.group(1) == '!':
            return f'![{match.group(2)}]({os.path.basename(match.group(3))})'  # found by IMAGE_PATH
        to = target(page, match.group(3))
        return f'[{match.group(2)}](@ref {to})' if to else match.group(2)
    return re.sub(r'(!?)\[([^]]+)\]\((?!https?:)([^)\s]+)\)', link, text)


def first_sentence(text):
    """Returns the first sentence of a page that begins with a paragraph, without links and after ": ", or ''."""
    paragraph = re.match(r'\n*(?![#\s|>-])((?:.+\n)+)', text)
    if not paragraph:
        return ''
    sentence = re.match(r'.*?[.:](?=\s)', ' '.join(paragraph.group(1).split()) + ' ').group(0)
    return ': ' + re.sub(r'\[([^]]+)\]\([^)]*\)', r'\1', sentence).rstrip(':.').replace('**', '') + '.'


def subject(path):
    """Returns what the first comment of a program says of it."""
    return re.sub(r'\n \* *', ' ', re.match(r'/\* \S+ - (.*?)(\n \*\n| \*/)', read(path), re.S).group(1))


def item(path):
    """Returns the lines of the contents for a page, a header or an example."""
    if path == 'cheatsheet.html':
        return '- <a href="cheatsheet.html">Cheat sheet</a>: every call with its arguments and options, on two pages.'
    if path in pages():
        return f'- \\subpage {label(path)} "{title(path)}"{code_spans(first_sentence(read(path).partition(chr(10))[2]))}'
    if path in examples():
        return f'- \\subpage {label(path)} "{os.path.basename(path)}": {subject(path)}'
    header = headers.header_comments.read(header_file(path))
    parts = ', '.join(f'\\ref {headers.anchor(header, s)} "{s.title}"' for s, _ in headers.sections(header) if s.title)
    return f'- \\ref {header.name} "{header.name}": {header.title}' + (f'<br/>\n  <span class="parts">{parts}</span>' if parts else '')


def contents(text):
    """Fills in the list of contents: what exists of what it names, and the pages that it does not name."""
    made = 'libgrad/grad/types.h', 'cheatsheet.html'  # in the build folder

    def replace(match):
        paths = match.group(0).replace('- ', '').split()
        if paths[0] in pages():
            paths += [path for path in pages() if path not in [*paths, CONTENTS]]
        return '\n'.join(item(path) for path in paths if path in made or os.path.exists(os.path.join(ROOT, path))) + '\n'
    return re.sub(r'(^- .*\n)+', replace, text, flags=re.M)


def programs():
    """Returns the list of example programs, for the page about them."""
    return '\n## Programs\nEach is one file that needs only `<grad.h>`.\n\n' + '\n'.join(map(item, examples())) + '\n'


def code_spans(text):
    return re.sub(r'`([^`]+)`', r'``\1``', text)  # Doxygen reads a single backquote before ' as a quotation


def page(path):
    """Prints a page: headings get labels, and links the names that Doxygen has for their targets."""
    path = os.path.relpath(path, ROOT)
    rest = read(path).partition('\n')[2]
    if path == CONTENTS:
        rest = contents(rest)
    if path == home_of_examples():
        rest += programs()
    used = collections.Counter()

    def labelled(match):
        name = anchor(path, match.group(2))
        used[name] += 1
        return f'{match.group(0)} {{#{name}{f"-{used[name] - 1}" if used[name] > 1 else ""}}}'
    parts = re.split(r'(^ *```.*?^ *```$)', rest, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r'^(##+) (.*)$', labelled, parts[i], flags=re.M)
        parts[i] = linked(path, parts[i] if path == CONTENTS else code_spans(parts[i]))
    print(f'# {title(path)} {{#{label(path)}}}\n{"".join(parts)}')


def example(path):
    """Prints a page with the text of an example program, in which Doxygen links the calls."""
    path = os.path.relpath(path, ROOT)
    name = os.path.basename(path)
    print(f'/** \\page {label(path)} {name}\n\\include {name}\n*/')
