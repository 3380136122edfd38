#!/usr/bin/env python3
"""compile.py NVCC CXX ROOT FILE.cu VARIANT OUTPUT DEPFILE: makes an object of FILE.cu whose kernels are nvcc's PTX, run on the CPU.

VARIANT: sm_75 or sm_90, with -contract (mul and add become fma where ptxas may do so) and -filled (registers that were never set hold
a pattern), as in sm_90-contract-filled. Results are kept in $LIBGRAD_PTX_CACHE (${XDG_CACHE_HOME:-~/.cache}/libgrad-ptx) by the content
of all that they are made of. With VARIANT "registers", OUTPUT is what ptxas says for sm_90; with "sm_90-module" it is nvcc's own object.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NVCC = ['-std=c++17', '--extended-lambda', '-Xcompiler=-fvisibility=hidden,-fPIC,-O0', '-DLG_NARROW=ptx_narrow()']
CXX = ['-std=c++17', '-fPIC', '-fvisibility=hidden', '-mfma', '-mf16c', '-ffp-contract=off', '-fno-strict-aliasing', '-fwrapv', '-w']
SMALL = 600_000 # characters of C++ that are worth -O1: more would be compiled longer than it runs
DAYS = 30 # results that were not used for so long are removed


def sources(file, root, found):
    """Adds file and all that it includes by a relative path to `found`."""
    if file not in found:
        found.add(file)
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', file.read_text(), re.M):
            for folder in (file.parent, root):
                if (folder / name).is_file():
                    sources((folder / name).resolve(), root, found)
                    break
    return found


def key_of(files, words):
    digest = hashlib.sha256('\0'.join(words).encode())
    for f in sorted(files):
        digest.update(f.name.encode() + b'\0' + f.read_bytes())
    return digest.hexdigest()[:24]


def version(program):
    return subprocess.run([program, '--version'], check=True, capture_output=True, text=True).stdout


def kept(name, make):
    """Returns the folder of results `name`; make(folder) fills it if there is none."""
    home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    cache = pathlib.Path(os.environ.get('LIBGRAD_PTX_CACHE') or home + '/libgrad-ptx')
    folder = cache / name
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        for old in cache.iterdir():
            if old.stat().st_mtime < time.time() - DAYS * 86400:
                shutil.rmtree(old, ignore_errors=True)
        new = pathlib.Path(tempfile.mkdtemp(prefix='new-', dir=cache))
        try:
            make(new)
            new.rename(folder)
        except OSError:
            if not folder.is_dir(): # unless another process was faster
                raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
    os.utime(folder)
    return folder


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, **more)


def main(nvcc, cxx, root, file, variant, output, depfile):
    root, cu = pathlib.Path(root), pathlib.Path(file).resolve()
    narrow = HERE / 'narrow.h'
    name, read = cu.stem, sources(cu, root, {narrow})
    arch, *ways = variant.split('-')
    key = key_of(read, [version(nvcc), arch] + NVCC)
    own = [HERE / f for f in ('compile.py', 'contract.py', 'opcodes.py', 'ptx.h', 'translate.py')] + [root / 'tests/cudasim/cudasim.h']
    pathlib.Path(depfile).write_text(f'{output}: ' + ' '.join(map(str, sorted(read) + own)) + '\n')

    def registers(folder):
        said = run(nvcc, *NVCC, '-include', narrow, '-arch=sm_90', '-Xptxas=-v', '-cubin', cu, '-o', folder / 'cubin', capture_output=True, text=True).stderr
        (folder / 'cubin').unlink()
        (folder / 'ptxas').write_text(said)

    def ptx(folder):
        code = arch.replace('sm', 'compute')
        with tempfile.TemporaryDirectory() as temporary:
            run(nvcc, *NVCC, '-include', narrow, '-lineinfo', f'-arch={code}', f'-code={code}', '-c', cu, '-o', folder / 'host.o', '--keep', '--keep-dir', temporary)
            shutil.copy(next(pathlib.Path(temporary).glob('*.ptx')), folder / 'ptx')

    if variant == 'registers':
        shutil.copyfile(kept(f'{name}-registers-{key}', registers) / 'ptxas', output)
        return
    given = kept(f'{name}-ptx-{key}', ptx)
    if 'module' in ways:
        shutil.copyfile(given / 'host.o', output)
        return
    flags = CXX + ['-ftrivial-auto-var-init=pattern'] * ('filled' in ways)

    def translated(folder):
        from translate import translate # slow, and not needed for what is kept
        code = folder / f'{name}.cpp'
        code.write_text(translate(name, given / 'ptx', 'contract' in ways))
        run(cxx, *flags, '-O1' if code.stat().st_size < SMALL else '-O0', '-I', HERE, '-I', root / 'tests/cudasim', '-isystem', pathlib.Path(nvcc).resolve().parent.parent / 'include',
            '-c', code, '-o', folder / 'kernels.o')
        run('objcopy', '--redefine-sym', f'__cudaRegisterFatBinary=ptx_open_{name}', given / 'host.o', folder / 'host.o')
        run('ld', '-r', folder / 'host.o', folder / 'kernels.o', '-o', folder / 'both.o')
        for f in (code, folder / 'kernels.o', folder / 'host.o'):
            f.unlink()

    shutil.copyfile(kept(f'{name}-{variant}-{key_of(own, [key, variant, version(cxx)] + flags)}', translated) / 'both.o', output)


if __name__ == '__main__':
    main(*sys.argv[1:])
