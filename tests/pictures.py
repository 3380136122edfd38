"""pictures.py - the pictures of the manual are what their sources give now, up to the layout.

pictures.py ROOT STEP_GRAPH: STEP_GRAPH is the program built from doc/pictures/step.c. Skipped without Graphviz.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

root, step_graph = sys.argv[1:]
folder = os.path.join(root, 'doc/pictures')
SVG = '{http://www.w3.org/2000/svg}'
MOST = 525  # points: 700 pixels
wrong = []


def parts(path):
    """Returns the nodes, edges and frames of a picture with their texts, in an order that no layout changes."""
    groups = ElementTree.parse(path).getroot().iter(SVG + 'g')
    return sorted((g.get('class'), g.findtext(SVG + 'title') or '', *(''.join(t.itertext()).strip() for t in g.iter(SVG + 'text')))
                  for g in groups if g.get('class') in ('node', 'edge', 'cluster'))


def differences(name, made):
    """Returns what the file `name` in git has otherwise than the file `made`."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return [f'{name} is missing']
    if name.endswith('.dot'):
        return [] if open(path).read() == open(made).read() else [f'{name} is not what the program prints now']
    old, new = parts(path), parts(made)
    width = float(ElementTree.parse(path).getroot().get('width').removesuffix('pt'))
    return [f'{name}: {part} is in only one of the two' for part in old + new if (part in old) != (part in new)] + \
        ([f'{name}: nothing is in it'] if len(old) < 3 else []) + \
        ([f'{name} is {width} points wide, more than {MOST}'] if width > MOST else [])


if not shutil.which('dot'):
    print('skipped: Graphviz (dot) is not installed')
    sys.exit(77)
with tempfile.TemporaryDirectory() as work:
    build = os.path.dirname(os.path.dirname(os.path.abspath(step_graph)))
    subprocess.run([os.path.join(folder, 'make'), build, work], check=True)
    made = sorted(os.listdir(work))
    for name in made:
        wrong += differences(name, os.path.join(work, name))
    sources = {os.path.basename(p)[:-4] for p in glob.glob(os.path.join(folder, '*.dot'))}
    pictures = {os.path.basename(p)[:-4] for p in glob.glob(os.path.join(folder, '*.svg'))}
    wrong += [f'{name}: a source without a picture, or a picture without a source' for name in sources ^ pictures]
for name in 'training.png', 'find_lr.png':
    with open(os.path.join(folder, name), 'rb') as f:
        if f.read(8) != b'\x89PNG\r\n\x1a\n':
            wrong.append(f'{name} is no PNG')
print(f'{len(pictures)} pictures', *wrong, sep='\n')
sys.exit(len(wrong) > 0 or len(pictures) < 6)
