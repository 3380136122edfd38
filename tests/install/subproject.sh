#!/bin/sh
# subproject.sh - builds a project that brings libgrad along, and runs its program.
#
# subproject.sh SOURCE_ROOT [ARGUMENTS OF meson setup]...
#
# Without optimisation, which takes most of the time.
# For another machine or C library: --cross-file SOURCE_ROOT/tests/install/subproject/NAME.ini; NAME: m32, musl, aarch64.
set -eu
root=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/subprojects"
ln -s "$root" "$work/subprojects/libgrad"
cp "$root/tests/install/subproject/meson.build" "$root/tests/install/train.c" "$work"
meson setup "$work/build" "$work" --wrap-mode=forcefallback -Dlibgrad:isas=portable -Doptimization=0 "$@"
ninja -C "$work/build"
if find "$work/build" -name 'test_*' -o -name fashion-mnist | grep .; then
        echo "libgrad's tests and programs were built, too"
        exit 1
fi
meson test -C "$work/build" --no-rebuild --verbose
