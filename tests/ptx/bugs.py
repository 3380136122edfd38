#!/usr/bin/env python3
"""bugs.py SIMULATOR PTX CONTRACTED: runs the bugs of bugs.cu on the simulator, as PTX, and as PTX with contraction and filled registers,
prints a table of results, and fails unless each is the expected one."""
import re
import subprocess
import sys

# Bug: words of the message or the first results on each way, with "found" for a result that shows the bug: on a GPU's results (PTX) by
# being those of a GPU, otherwise by a pattern of what was never set.
EXPECTED = {
    'contract': ('0', '0', 'found 5.96046448e-08'),
    'shift': ('1.07374182e+09 2.14748365e+09 1 2', 'found 1.07374182e+09 2.14748365e+09 0 0', 'found 1.07374182e+09 2.14748365e+09 0 0'),
    'convert': ('-2.14748365e+09 -2.14748365e+09 -2.14748365e+09 300 0 3e+09 1.2949673e+09 300',
                'found 0 2.14748365e+09 -2.14748365e+09 300 0 3e+09 0 300', 'found 0 2.14748365e+09 -2.14748365e+09 300 0 3e+09 0 300'),
    'divide': ('found Floating point exception', 'found -1 -1 7 7', 'found -1 -1 7 7'),
    'misaligned': ('9', 'found the address is misaligned', 'found the address is misaligned'),
    'beyond': ('found -nan -nan -nan -nan', 'found -nan -nan -nan -nan', 'found -nan -nan -nan -nan'),
    'host_pointer': ('7', 'found the address is outside of it', 'found the address is outside of it'),
    'unset': ('0', '0', 'found -3.38947906e+38'),
    'functions': ('2.45960331 6.04964781 14.8797321 36.5982399', 'found 2.45960331 6.04964828 14.8797321 36.5982399',
                  'found 2.45960331 6.04964828 14.8797321 36.5982399'),
    'no_barrier': ('found -nan -nan', 'found -nan -nan', 'found -nan -nan'),
    'lanes': ('found waits for lanes that do not come',) * 3,
}
SIGNALS = {-8: 'Floating point exception', -11: 'Segmentation fault'}

bad = 0
print(f'{"bug":14}{"simulator":12}{"PTX":12}contracted, filled')
for bug, ways in EXPECTED.items():
    finds = []
    for program, expected in zip(sys.argv[1:], ways):
        ran = subprocess.run([program, bug], capture_output=True, text=True)
        said = (SIGNALS.get(ran.returncode) or ran.stderr or ran.stdout).strip()
        found, words = expected.startswith('found '), expected.removeprefix('found ')
        right = words in said if re.match('[A-Za-z]', words) else (said + ' ').startswith(words + ' ')
        finds.append('found' if found else '-')
        if not right:
            finds[-1] = f'WRONG: {said}, not {words}'
            bad += 1
    print(f'{bug:14}' + ''.join(f'{x:12}' for x in finds).rstrip())
sys.exit(1 if bad else 0)
