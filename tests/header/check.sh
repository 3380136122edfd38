#!/bin/sh
# check.sh SOURCE BUILD - the public header alone, and every macro of it once, as C11 and C++20 by each compiler there is.
set -u
here=$1/tests/header
flags="-Wall -Wextra -Wpedantic -Werror -I$1/libgrad -I$2/libgrad"
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
bad=0
ran=0
compile() { # compiler, language options, source, program ("" only compiles)
        command -v "$1" >/dev/null || return 0
        ran=$((ran + 1))
        if [ -z "$4" ]; then
                $1 $2 $flags -c "$3" -o "$out/o" || { echo "$1 $2 $3 failed"; bad=1; }
        else
                $1 $2 $flags "$3" -o "$out/program" "$4" -lm &&
                        LD_LIBRARY_PATH="$(dirname "$4")" "$out/program" || { echo "$1 $2 $3 failed"; bad=1; }
        fi
}
printf '#include <grad.h>\nint main(void) { return 0; }\n' >"$out/alone.c"
printf '#include <grad.h>\nint main() { return 0; }\n' >"$out/alone.cpp"
cp "$here/macros.c" "$out/macros.cpp"
library=$2/libgrad/libgrad.so
for c in gcc clang; do
        compile $c -std=c11 "$out/alone.c" ''
        compile $c -std=c11 "$here/macros.c" "$library"
done
for cxx in g++ clang++; do
        compile $cxx -std=c++20 "$out/alone.cpp" ''
        compile $cxx -std=c++20 "$out/macros.cpp" "$library"
done
for part in "$1"/libgrad/grad/*.h; do
        printf '#include <grad/%s>\nint main(void) { return 0; }\n' "$(basename "$part")" >"$out/part.c"
        compile gcc -std=c11 "$out/part.c" ''
done
[ $ran -ge 10 ] || { echo "only $ran compilations ran"; bad=1; }
exit $bad
