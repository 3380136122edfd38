"""doc.py - the HTML of ninja doc shows the text that it is made from: comments of headers word for word, code as code.

doc.py ROOT DOXYGEN DOXYFILE HTML: makes it in the folder HTML and reads it.
"""
import glob
import html
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
root, doxygen, doxyfile, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(root, 'tools'))
import header_comments  # noqa: E402

UNSEEN = {'lg_end_mark', 'lg_memory_stats_with'}  # they serve macros
wrong = []


def letters(text):
    return ''.join(text.split())


def shown(path):
    """The letters that a reader of a page sees, with code between backquotes."""
    text = re.sub(r'<script.*?</script>', '', open(path, encoding='utf-8').read(), flags=re.S)
    wrong.extend(f'{path}: a description ends within a sentence: {line}' for line in re.findall(r'.*\bal\.?\s*<', text))
    text = html.unescape(re.sub(r'<[^>]*>', '', re.sub(r'</?code>', '`', text)))
    wrong.extend(f'{path}: an entity: {line}' for line in re.findall(r'.*&#?\w+;.*', text))
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


subprocess.run([doxygen, doxyfile], check=True)
pages = '\n'.join(shown(path) for path in glob.glob(os.path.join(folder, '*.html')))
texts = [*comments(), *(span for page in ('README.md', 'libgrad/README.md', 'CHANGELOG.md') for span in code(page))]
wrong.extend(f'not shown: {text}' for text in texts if letters(text) not in pages)
print(f'{len(texts)} texts', *wrong, sep='\n')
sys.exit(len(wrong) > 0 or len(texts) < 3000)
