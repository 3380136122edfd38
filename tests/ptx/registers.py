#!/usr/bin/env python3
"""registers.py REPORT...: fails and names kernels that spill registers, or use more than 128 without a reason in MORE; reports: of ptxas -v."""
import re
import subprocess
import sys

MOST = 128
# Kernels that may use more: a regular expression of names; most registers; the reason.
MORE = [
    (r'layer_norm_rows<double|input_slopes<double.*lg_layer_norm_vjp_args', 184, 'rows of f64 stay in registers, two for each element'),
    (r'softmax_vjp_rows<double', 164, 'rows of f64 stay in registers, two for each element'),
]

kernels = []
for report in sys.argv[1:]:
    text = open(report).read()
    for name, spilled, used in re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", text, re.S):
        kernels.append((name, int(spilled), int(used)))
names = subprocess.run(['c++filt'], input='\n'.join(k[0] for k in kernels), text=True, capture_output=True, check=True).stdout.splitlines()
bad = 0
for name, (_, spilled, used) in zip(names, kernels):
    most = next((n for pattern, n, _ in MORE if re.search(pattern, name)), MOST)
    if spilled or used > most:
        print(f'{name}: {used} registers, at most {most}; {spilled} bytes are spilled')
        bad += 1
print(f'{len(kernels)} kernels, {bad} with too many registers')
sys.exit(1 if bad or not kernels else 0)
