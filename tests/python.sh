#!/bin/sh
# python.sh MODULE... - prints the first Python ($LG_PYTHON, of $PATH, the system's) that has these modules; fails if none
# has.
cd / || exit # a folder of tests/ has the name of a module, and Python would take it for that
for python in "${LG_PYTHON:-python3}" python3 /usr/bin/python3; do
        "$python" -c 'import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))' "$@" \
                2>/dev/null && exec "$python" -c 'import sys; print(sys.executable)'
done
exit 1
