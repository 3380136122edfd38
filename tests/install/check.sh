#!/bin/sh
# check.sh SOURCE - builds and installs libgrad into a folder, and a program outside the tree against it by pkg-config,
# shared and static; runs both.
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
meson setup "$out/build" "$1" --prefix="$out/prefix" --libdir=lib --buildtype=release -Dtests=false -Dmodels=false \
        -Disas=portable >"$out/log" 2>&1 || { cat "$out/log"; exit 1; }
meson install -C "$out/build" >"$out/log" 2>&1 || { cat "$out/log"; exit 1; }
cp "$1/tests/install/train.c" "$out"
cd "$out"
export PKG_CONFIG_PATH="$out/prefix/lib/pkgconfig"
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror train.c $(pkg-config --cflags --libs libgrad) -o shared
LD_LIBRARY_PATH="$out/prefix/lib" ./shared
mkdir static && cp "$out"/prefix/lib/*.a static
gcc -std=c11 train.c $(pkg-config --cflags libgrad) -Lstatic $(pkg-config --static --libs libgrad) -o static/train
./static/train
