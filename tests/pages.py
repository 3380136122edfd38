"""pages.py - what README.md and the pages of doc/ show is true: their C code compiles without a warning and prints what they show.

pages.py ROOT INCLUDE_ARGUMENTS LIBRARY_FOLDER [PYTHON]: PYTHON has torch and safetensors.

Each block of C with a main() is a program. The other blocks below a heading are one program: those with `static` at the start of a line
are functions, the others statements, which find what main() below makes. A block of text is what the blocks above it print, up
to small differences of its numbers. Links lead to files and headings that exist. Words are spelled as aspell's British
dictionary has them, or as in words.txt.
"""
import glob
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

root, include, library = sys.argv[1], sys.argv[2].split(), sys.argv[3]
python = sys.argv[4] if len(sys.argv) > 4 else None
PAGES = ['README.md', *sorted(os.path.relpath(p, root) for p in glob.glob(root + '/doc/*.md'))]
RESUME, EXCHANGE = 'Save, load, resume', 'Weights from PyTorch'  # sections with checks of their own
MAIN = '''
int main(void)
{
        lg_ctx *c = lg_open(.seed = 1);
        lg_tensor *w = lg_ones(c, LG_SHAPE(2, 3)), *image = lg_ones(c, LG_SHAPE(1, 28, 28));
        lg_dataset *train = lg_dataset_tensors(c, lg_ones(c, LG_SHAPE(64, 1, 28, 28)), lg_randint(c, 0, 10, LG_SHAPE(64)));
        lg_loader *batches = lg_loader_open(c, train, 16);
        lg_module *net = lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 784, 10));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        int epochs = 2;
        (void)opt, (void)w, (void)image, (void)batches, (void)net, (void)epochs;
        %s
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%%s\\n", lg_error(c));
        lg_close(c);
        return failed;
}
'''
FILES = '''
int main(void)
{
        lg_ctx *c = lg_open();
        lg_tensor *picture = lg_full(c, LG_SHAPE(3, 20, 10), 7, .dtype = LG_U8);
        lg_write_npy(lg_ones(c, LG_SHAPE(2, 3)), "x.npy");
        lg_write_png(picture, "cat.png");
        lg_write_png(picture, "pets/cat/1.png");
        lg_write_png(picture, "pets/dog/1.png");
        lg_close(c);
}
'''
wrong = []
blocks_of_c = 0


def read(page):
    return open(os.path.join(root, page), encoding='utf-8').read()


def sections(text):
    """The heading and the blocks (language, text) of each part of a page."""
    parts = re.split(r'^##+ (.*)$', '## \n' + text, flags=re.M)[1:]
    for heading, body in zip(parts[::2], parts[1::2]):
        yield heading, re.findall(r'^```(\w*)\n(.*?)^```$', body, flags=re.M | re.S)


def compiled(name, code, *flags):
    """The program of that code, or None with a complaint."""
    if '#include <grad.h>' not in code:
        code = '#include <grad.h>\n' + code
    with open(name + '.c', 'w') as f:
        f.write(code)
    done = subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', *flags, *include, name + '.c', '-L' + library, '-lgrad', '-lm',
                           '-Wl,-rpath,' + library, '-o', name], capture_output=True, text=True)
    if done.returncode:
        wrong.append(f'{name}.c does not compile:\n{done.stderr}')
    return './' + name if done.returncode == 0 else None


def run(command, where, env=None, fails=False):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})})
    if 'built without' in done.stderr:
        print(f'not run: {where}: {done.stderr.strip()}')
        return None
    if (done.returncode != 0 or done.stderr) and not fails:
        wrong.append(f'{where}: exit {done.returncode}: {done.stderr}{done.stdout}')
    return done


def equal(shown, printed):
    """Whether texts are equal but for numbers that differ a little."""
    a, b = shown.split(), printed.split()

    def same(x, y):
        try:
            return x == y or abs(float(x) - float(y)) <= 0.01 + 0.03 * abs(float(x))
        except ValueError:
            return x == y
    return len(a) == len(b) and all(map(same, (x.strip('[],:;') for x in a), (y.strip('[],:;') for y in b)))


def check_section(page, heading, blocks):
    """The programs of a section."""
    global blocks_of_c
    where = f'{page}, "{heading}"'
    base = re.sub(r'\W+', '_', f'{page}_{heading}')
    functions, statements, texts = [], [], []
    for i, (language, text) in enumerate(blocks):
        if language == 'c' and re.search(r'^int main', text, re.M):
            blocks_of_c += 1
            program = compiled(f'{base}{i}', text)
            done = run(program, where) if program else None
            if done and i + 1 < len(blocks) and blocks[i + 1][0] == 'text' and not equal(blocks[i + 1][1], done.stdout):
                wrong.append(f'{where}: the program prints\n{done.stdout}')
        elif language == 'c':
            blocks_of_c += 1
            (functions if re.search('^(static|#)', text, re.M) else statements).append(text)
        elif language == 'text' and not (i and blocks[i - 1][0] == 'c' and re.search(r'^int main', blocks[i - 1][1], re.M)):
            texts.append(text)
    if functions or statements:
        body = ''.join('{\n' + s + '}\n' for s in statements)
        program = compiled(base, ''.join(functions) + MAIN % body, '-Wno-unused-variable', '-Wno-unused-function')
        done = run(program, where, fails=bool(texts)) if program else None
        if done and texts and not equal(''.join(texts), done.stdout):
            wrong.append(f'{where}: the statements print\n{done.stdout}{done.stderr}')


def files():
    """The files that the pages read."""
    for folder in 'data/cifar-10-batches-bin', 'pets/cat', 'pets/dog':
        os.makedirs(folder)
    with open('iris.csv', 'w') as f:
        f.write('length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n6.3,3.3,virginica\n')
    for n in range(1, 6):
        with open(f'data/cifar-10-batches-bin/data_batch_{n}.bin', 'wb') as f:
            f.write(bytes(3073))
    with open('book.txt', 'w') as f:
        f.write(read('README.md')[:1000])
    digits = b'\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02abcd'
    with open('train-images-idx3-ubyte.gz', 'wb') as f:
        f.write(subprocess.run(['gzip'], input=digits, capture_output=True, check=True).stdout)
    program = compiled('files', FILES)
    if program:
        subprocess.run([program])


def block(page, heading, language):
    """The first block of a language below a heading."""
    found = [t for h, blocks in sections(read(page)) if h == heading for kind, t in blocks if kind == language]
    return found[0] if found else wrong.append(f'{page}: nothing in {language} below "{heading}"') or ''


def check_resume(page, heading):
    """A run that ends within a save of an epoch, and goes on, has the weights of one that was not cut."""
    code = block(page, heading, 'c')
    cut = re.sub(r'lg_checkpoint_save\(run, .*',
                 r'{ \g<0> if (getenv("CUT") && epoch == atoi(getenv("CUT"))) _Exit(9); }', '#include <stdlib.h>\n' + code)
    if cut.count('_Exit') != 1:
        wrong.append(f'{page}: the loop of "{heading}" has no save')
    names = ['run.safetensors', 'net.safetensors']
    program = compiled('cut', cut)
    weights = []
    for stops in [], ['1', '4', '9']:
        for name in names:
            if os.path.exists(name):
                os.remove(name)
        for epoch in stops:
            if subprocess.run([program], env={**os.environ, 'CUT': epoch}).returncode != 9:
                wrong.append(f'{page}: "{heading}" was not cut in epoch {epoch}')
        done = run(program, heading)
        numbers = re.findall(r'[\d.]+', done.stdout)
        if len(numbers) != 2 or numbers[0] != numbers[1] or float(numbers[0]) < 0.9:
            wrong.append(f'{page}, "{heading}": {done.stdout}')
        weights.append(open(names[1], 'rb').read())
    if weights[0] != weights[1]:
        wrong.append(f'{page}, "{heading}": a run that was cut and goes on ends with other weights')


def check_exchange(page, heading):
    """The same network computes the same ten numbers in PyTorch and here, with weights from either."""
    theirs = block(page, heading, 'python')
    back = re.search(r'^- Back in Python: `(.*)`\.$', read(page), re.M)
    if python:
        first = run([python, '-c', theirs], heading)
    else:
        print('no Python with torch and safetensors: the weights are of libgrad')
        make = re.sub(r'lg_load\(net, "torch.safetensors"\)', 'lg_save(net, "torch.safetensors")', block(page, heading, 'c'))
        first = run(compiled('theirs', make.replace('lg_open()', 'lg_open(.seed = 7)')), heading)
    second = run(compiled('ours', block(page, heading, 'c')), heading)
    outputs = [first, second]
    if python and back:
        again = re.sub(r'^save_file.*', 'import safetensors.torch\n' + back[1], theirs, flags=re.M)
        outputs.append(run([python, '-c', again], heading))
    lists = [[float(x) for x in re.findall(r'-?\d+\.\d+(?:e-?\d+)?', o.stdout[o.stdout.find('['):])][:10] for o in outputs if o]
    for numbers in lists[1:]:
        if len(numbers) != 10 or not any(numbers) or max(abs(a - b) for a, b in zip(lists[0], numbers)) > 2e-4:
            wrong.append(f'{page}, "{heading}": {lists}')
    if python and not back:
        wrong.append(f'{page} has no way back to Python')


def check_links(page):
    def anchors(text):
        text = re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S)
        return {re.sub(r'[^\w\- ]', '', h.lower()).strip().replace(' ', '-') for h in re.findall(r'^#+ (.*)$', text, re.M)}
    text = re.sub(r'^```.*?^```$', '', read(page), flags=re.M | re.S)
    for target in re.findall(r'\]\(([^)\s]+)\)', re.sub(r'`[^`]*`', '', text)):
        if re.match(r'https?:', target):
            continue
        path, _, anchor = target.partition('#')
        full = os.path.normpath(os.path.join(root, os.path.dirname(page), path)) if path else os.path.join(root, page)
        if not os.path.exists(full):
            wrong.append(f'{page}: the link {target} leads nowhere')
        elif anchor and anchor not in anchors(open(full, encoding='utf-8').read()):
            wrong.append(f'{page}: the link {target} leads to no heading')


def check_examples(page):
    """What the page of examples shows is what the first comment of each program says."""
    shown = re.sub(r'\s+', ' ', read(page))
    for path in glob.glob(root + '/models/examples/*.c*'):
        comment = open(path, encoding='utf-8').read().split('*/')[0]
        for line in re.findall(r'^ \*     (.*)$', comment, re.M):
            if re.sub(r'\s+', ' ', line) not in shown:
                wrong.append(f'{page}: {os.path.basename(path)} says: {line}')


def check_spelling(pages):
    if not shutil.which('aspell'):
        print('no aspell: words are not checked')
        return
    known = set(open(os.path.join(root, 'tests/words.txt'), encoding='utf-8').read().split())
    for page in pages:
        text = re.sub(r'^```.*?^```$', '', read(page), flags=re.M | re.S)
        text = re.sub(r'^    .*$', '', text, flags=re.M)  # commands
        text = re.sub(r'`[^`]*`|\]\([^)]*\)|https?:\S+|<[^>]*>', ' ', html.unescape(text))
        text = re.sub(r'\S*/\S*', ' ', text)  # paths
        words = re.findall(r"(?<![\w.])[A-Za-z][a-z]+(?![\w])", text)
        told = subprocess.run(['aspell', 'list', '--lang=en_GB'], input='\n'.join(words), capture_output=True, text=True).stdout
        unknown = sorted(set(told.split()) - known)
        if unknown:
            wrong.append(f'{page}: unknown words: {" ".join(unknown)}')


root = os.path.abspath(root)
include = ['-I' + os.path.abspath(i[2:]) if i.startswith('-I') else i for i in include]
library = os.path.abspath(library)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    files()
    for page in PAGES:
        check_links(page)
        for heading, blocks in sections(read(page)):
            if heading in (RESUME, EXCHANGE):
                blocks_of_c += 1
            else:
                check_section(page, heading, blocks)
    check_examples('doc/examples.md')
    check_links('libgrad/README.md')
    check_links('CHANGELOG.md')
    check_spelling(PAGES)
    check_resume('doc/saving.md', RESUME)
    check_exchange('doc/saving.md', EXCHANGE)
    os.chdir(root)
print(f'{len(PAGES)} pages, {blocks_of_c} blocks of C', *wrong, sep='\n')
sys.exit(bool(wrong) or blocks_of_c < 35)
