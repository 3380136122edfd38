#!/bin/sh
# dlpack.sh - libgrad beside NumPy and PyTorch, in the first Python ($LG_PYTHON, of $PATH, the system's) that has them.
# dlpack.sh PROGRAM LIBGRAD_SO
set -eu
for modules in numpy,torch numpy; do
        for python in "${LG_PYTHON:-python3}" python3 /usr/bin/python3; do
                "$python" -c "import $modules" 2>/dev/null || continue
                exec "$python" "$1" "$2"
        done
done
echo "no Python here has NumPy"
exit 77
