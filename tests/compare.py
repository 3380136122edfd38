"""compare.py - tools/compare measures libgrad alone, and a peer that is not installed costs only its column.

compare.py BUILD
"""
import os
import re
import subprocess
import sys

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "compare")
done = subprocess.run([sys.executable, "-B", TOOL, "--only", "libgrad,torch", "--python", "/nowhere", "--brief",
                       "--build", sys.argv[1]], capture_output=True, text=True, timeout=100)
wrong = [] if done.returncode == 0 else [f"exit status {done.returncode}"]
for cell in (r"µs \| [1-9]\d* \(\d+\)", r"memory, .* MB \| [1-9]\d*\.\d", r"ms \| \d+\.\d \(", r"x³ at 2 \| 12",
             r"2x3 \| error value: LG_ERR_SHAPE, goes on", r"network for 4 \| error value: LG_ERR_SHAPE, goes on",
             r"1 GiB is left \| error value: LG_ERR_MEMORY, goes on"):
    if not re.search(cell + r".*\|\n", done.stdout):
        wrong.append(f"no cell {cell}")
if "/nowhere has no PyTorch" not in done.stderr or "libtorch" in done.stdout:
    wrong.append("no line about the missing peer, or a column of it")
print("\n".join(wrong + [done.stdout, done.stderr] if wrong else ["compared"]))
sys.exit(bool(wrong))
