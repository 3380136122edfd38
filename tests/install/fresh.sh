#!/bin/bash
# fresh.sh WAY - what README says of installing, verbatim, on this machine, which should be a fresh one, as root.
#
# WAY: "script" runs README's block with tools/install, "hand" the one without. Then the program of README's first C block is
# compiled and run against what was installed, removed again, and nothing may be left.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
. tests/install/blocks.sh
find /usr/local -type f -o -type l | sort >/tmp/before
case $1 in
script) lines=$(block '^    tools/install$') ;;
hand) lines=$(block '^    meson install ') ;;
*) echo "fresh.sh: script or hand" >&2; exit 2 ;;
esac
[ -n "$lines" ] || { echo "README has no such block" >&2; exit 1; }
echo "$lines" | sed 's/^/+ /'
bash -euc "$lines"
work=$(mktemp -d)
training_loop >"$work/train.c"
cd "$work"
lines=$(cd "$root" && block '^    cc train.c')
echo "$lines" | sed 's/^/+ /'
bash -euc "$lines"
cd "$root"
lines=$(block '^    .*uninstall$')
[ "$1" != hand ] || lines=$(block '^    ninja .*uninstall$')
echo "$lines" | sed 's/^/+ /'
bash -euc "$lines"
find /usr/local -type f -o -type l | sort | diff /tmp/before - || { echo "uninstalling left or took something" >&2; exit 1; }
echo "installed, used and removed in $SECONDS s"
