#!/usr/bin/env python3
"""reached.py MODULE LIST...: fails and names the kernels of MODULE that no test launched, by the lists that they wrote ($PTX_LAUNCHED)."""
import os
import subprocess
import sys

module, *lists = sys.argv[1:]
lines = {line.strip() for name in lists if os.path.exists(name) and os.path.getmtime(name) > os.path.getmtime(module) for line in open(name)}
kernels, launched = ({line[2:] for line in lines if line[0] == mark} for mark in '-+')
print(f'{len(launched)} of {len(kernels)} kernels were launched')
missing = sorted(name for name in kernels - launched if 'probe' not in name)  # probe: loaded to see whether the GPU is too old
if missing:
    print(subprocess.run(['c++filt'], input='\n'.join(missing), text=True, capture_output=True, check=True).stdout)
sys.exit(1 if missing or not kernels else 0)
