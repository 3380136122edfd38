#!/bin/sh
# check.sh - grad.h and its parts as C11 and C++20 under every warning, with gcc and clang.
# check.sh SOURCE_ROOT INCLUDE_ARGUMENTS LIBRARY_FOLDER
set -eu
root=$1 lib=$3
IFS=' '
flags="$2 -Wall -Wextra -Wpedantic -Wshadow -Wmissing-field-initializers -Werror"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0

compile() # compiler, standard, language, output options..., file
{
        "$@" $flags || { echo "failed: $*"; exit 1; }
        checked=$((checked + 1))
}

for pair in gcc:g++ clang:clang++; do
        cc=${pair%:*} cxx=${pair#*:}
        command -v "$cc" >/dev/null && command -v "$cxx" >/dev/null || { echo "no $cc and $cxx here"; continue; }
        echo 'int main() { return 0; }' >"$work/try.cpp"
        "$cxx" -std=c++20 "$work/try.cpp" -o "$work/try" 2>/dev/null || { echo "$cxx does not work here"; continue; }
        for part in "$root"/libgrad/grad/*.h types.h; do
                part=$(basename "$part" .h)
                echo "#include <grad/$part.h>" >"$work/part.c"
                echo "int part(void); int part(void) { return 0; }" >>"$work/part.c"
                compile "$cc" -std=c11 -c "$work/part.c" -o "$work/part.o"
                compile "$cxx" -std=c++20 -x c++ -c "$work/part.c" -o "$work/part.o"
        done
        for documentation in '' -DLG_DOCUMENTATION; do
                compile "$cc" $documentation -std=c11 -c "$root/tests/header/alone.c" -o "$work/alone.o"
                compile "$cxx" $documentation -std=c++20 -x c++ -c "$root/tests/header/alone.c" -o "$work/alone.o"
        done
        compile "$cc" -std=c11 "$root/tests/header/macros.c" -o "$work/macros-c" -L"$lib" -lgrad -Wl,-rpath,"$lib"
        compile "$cxx" -std=c++20 -x c++ "$root/tests/header/macros.c" -o "$work/macros-cxx" -L"$lib" -lgrad -Wl,-rpath,"$lib"
        "$work/macros-c"
        "$work/macros-cxx"
done
[ "$checked" -gt 0 ] || exit 77
echo "$checked compilations"
