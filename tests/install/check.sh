#!/bin/sh
# check.sh - installs a build into a fresh prefix and builds a program against it through pkg-config, in three ways.
# check.sh SOURCE_ROOT BUILD_FOLDER
set -eu
root=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR="$work/root" meson install -C "$build" --no-rebuild >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
pc=$(find "$work/root" -name libgrad.pc)
[ -n "$pc" ] || { echo "no libgrad.pc is installed"; exit 1; }
# What was installed under DESTDIR lies at another prefix.
prefix=$(sed -n 's/^prefix=//p' "$pc")
export PKG_CONFIG_PATH="$(dirname "$pc")"
config="pkg-config --define-variable=prefix=$work/root$prefix"
folder=$($config --variable=libdir libgrad)
[ -f "$work/root$prefix/include/grad.h" ] && [ -f "$work/root$prefix/include/grad/types.h" ]
[ -e "$folder/libgrad.so.0" ] && [ -f "$folder/libgrad.a" ]
program=$root/tests/install/train.c

${CC:-cc} -std=c11 "$program" $($config --cflags --libs libgrad) -o "$work/shared"
LD_LIBRARY_PATH="$folder" ldd "$work/shared" | grep -q 'libgrad.so.0 => /'
LD_LIBRARY_PATH="$folder" "$work/shared"

# static: the archive instead of the shared library, and what it needs
rm "$folder"/libgrad.so*
${CC:-cc} -std=c11 "$program" $($config --cflags --libs --static libgrad) -o "$work/static"
"$work/static"

if command -v "${CXX:-c++}" >/dev/null; then
        ${CXX:-c++} -std=c++20 -x c++ "$program" -x none $($config --cflags --libs --static libgrad) -o "$work/cxx"
        "$work/cxx"
fi
echo "installed, found by pkg-config, linked shared and static"
