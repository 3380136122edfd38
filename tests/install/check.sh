#!/bin/bash
# check.sh - installs a build into a fresh prefix and builds a program against it, in every way that README names.
#
# check.sh SOURCE_ROOT BUILD_FOLDER
#
# The last line is "N passed, N failed, N skipped".
set -u
root=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$root/tests/install/train.c
passed=0 failed=0 skipped=0

# way NAME COMMAND...: counts it; what it printed is shown where it fails.
way() {
        local name=$1
        shift
        if "$@" >"$work/log" 2>&1; then
                passed=$((passed + 1))
                echo "$name: $(tail -n 1 "$work/log")"
        else
                failed=$((failed + 1))
                echo "$name: failed"
                cat "$work/log"
        fi
}

installed() {
        DESTDIR=$work/root meson install -C "$build" --no-rebuild --quiet || return 1
        pc=$(find "$work/root" -name libgrad.pc)
        [ -n "$pc" ] || { echo 'there is no libgrad.pc'; return 1; }
        prefix=$work/root$(sed -n 's/^prefix=//p' "$pc") # under DESTDIR it lies at another place than it was made for
        sed -i "s|^prefix=.*|prefix=$prefix|" "$pc"
        export PKG_CONFIG_PATH=${pc%/*}
        folder=$(pkg-config --variable=libdir libgrad)
        [ "$folder" = "$prefix/lib" ] && [ -f "$prefix/include/grad.h" ] && [ -f "$prefix/include/grad/types.h" ] &&
                [ -e "$folder/libgrad.so.1" ] && [ -f "$folder/libgrad.a" ] && echo "$folder"
}

# Each installed program has its manual, and each name of README is there.
manuals() {
        local name count=0
        for name in "$prefix"/bin/*; do
                [ -f "$prefix/share/man/man1/${name##*/}.1" ] || { echo "${name##*/} has no manual"; return 1; }
                count=$((count + 1))
        done
        echo "$count programs with manuals" && [ $count -ge 2 ]
}

# What Debian asks of its own libraries and programs: full RELRO, no stack that runs, canaries, checked functions.
hardened() {
        local file
        for file in "$folder"/libgrad*.so.1 "$prefix"/bin/*; do
                readelf -lW "$file" >"$work/segments"
                grep -q GNU_RELRO "$work/segments" || { echo "$file has no RELRO"; return 1; }
                grep 'GNU_STACK' "$work/segments" | grep -q 'RW ' || { echo "$file has a stack that runs"; return 1; }
                readelf -dW "$file" | grep -q 'BIND_NOW\|FLAGS_1.*NOW' || { echo "$file binds late"; return 1; }
                nm -D "$file" | grep -q '__stack_chk_fail' || { echo "$file has no stack protector"; return 1; }
        done
        nm -D "$folder/libgrad.so.1" | grep '__[a-z]*_chk@' | grep -qv '__\(printf\|sprintf\|strcat\)_chk' ||
                { echo 'built without _FORTIFY_SOURCE'; return 1; }
        echo 'RELRO, stack protector, _FORTIFY_SOURCE'
}

# with COMPILER ARGUMENT...: against the shared library, and run with it.
with() {
        "$@" "$program" -x none $(pkg-config --cflags --libs libgrad) -o "$work/train" &&
                LD_LIBRARY_PATH=$folder ldd "$work/train" | grep -q "libgrad.so.1 => $folder" &&
                LD_LIBRARY_PATH=$folder "$work/train"
}

# The module of each MPI that meson has found is there; libgrad.so links none of them, and a program finds its own.
processes() {
        local name count=0 way
        for name in openmpi mpich; do
                ldd "$folder/libgrad.so.1" | grep -i 'libmpi' && return 1
                grep -q "libgrad-$name.so.1" "$build/build.ninja" || continue
                count=$((count + 1))
                ldd "$folder/libgrad-$name.so.1" | grep -q 'libmpi' || { echo "libgrad-$name.so.1 links no MPI"; return 1; }
                way=(-n 2)
                [ $name = mpich ] || way+=(--allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
                command -v mpirun.$name >/dev/null || continue
                LD_LIBRARY_PATH=$folder timeout 60 mpirun.$name "${way[@]}" "$prefix/bin/lg-info" --group >"$work/ranks" ||
                        { cat "$work/ranks"; return 1; }
                grep -q '^2 processes' "$work/ranks" || { cat "$work/ranks"; return 1; }
        done
        echo "$count modules"
}

# The archive and what it needs, where the shared library lies beside it: README's line.
static() {
        cc "$program" $(pkg-config --cflags --libs --static libgrad | sed 's/-lgrad/-l:libgrad.a/') -o "$work/train" &&
                ! ldd "$work/train" | grep libgrad && "$work/train"
}

# cmake_project TARGET [shared]: C and C++ programs by CMake's find_package, which use the shared library or must not.
cmake_project() {
        local name count
        rm -rf "$work/cmake"
        cmake_find "$1" 0.3 && cmake --build "$work/cmake" || return 1
        for name in train train_cpp train_pkgconfig; do
                LD_LIBRARY_PATH=$folder "$work/cmake/$name" || return 1
        done
        count=$(LD_LIBRARY_PATH=$folder ldd "$work/cmake/train" "$work/cmake/train_cpp" | grep -c "libgrad.so.1 => $folder")
        [ "$count" = "$([ "${2-}" = shared ] && echo 2 || echo 0)" ] || { echo "$count programs use libgrad.so.1"; return 1; }
}

cmake_find() {
        cmake -S "$root/tests/install/cmake" -B "$work/cmake" -DPROGRAM="$program" -DCMAKE_PREFIX_PATH="$prefix" -DTARGET="$1" \
                -DVERSION="$2" "${@:3}"
}

# Versions that are newer, or of another minor number, are not found, and the message says which one is there.
cmake_versions() {
        local version=$(sed -n 's/^set(PACKAGE_VERSION \(.*\))/\1/p' "$folder/cmake/libgrad/libgradConfigVersion.cmake") wanted
        for wanted in "$version" "${version%.*}" "$version;EXACT"; do
                rm -rf "$work/cmake"
                cmake_find libgrad::libgrad "$wanted" || return 1
        done
        for wanted in "${version%.*}.99" 0.2 0.99 1 "${version%.*}.99;EXACT"; do
                rm -rf "$work/cmake"
                cmake_find libgrad::libgrad "$wanted" >"$work/found" 2>&1 && { echo "version $wanted was found"; return 1; }
                grep -q "libgradConfig.cmake, version: $version" "$work/found" || { cat "$work/found"; return 1; }
        done
        echo "version $version only"
}

# The package of a build with one library, whose files are those installed.
cmake_alone() {
        meson setup "$work/$1" "$root" -Ddefault_library="$1" -Disas=portable -Dmodels=disabled -Dcuda=disabled &&
                cp "$work/$1/libgrad/libgradConfig.cmake" "$folder/cmake/libgrad" && cmake_project libgrad::libgrad "$@" || return 1
        [ "$1" = shared ] || return 0
        rm -rf "$work/cmake"
        cmake_find libgrad::static 0.3 >"$work/found" 2>&1 && { echo 'there is a target libgrad::static'; return 1; }
        grep -q 'libgrad::static' "$work/found" && echo 'libgrad::libgrad only'
}

subproject() {
        "$root/tests/install/subproject.sh" "$root" "$@"
}

uninstalled() {
        ninja -C "$build" uninstall || return 1
        find "$work/root" ! -type d >"$work/left"
        [ ! -s "$work/left" ] || { cat "$work/left"; return 1; }
        echo 'nothing is left'
}

way installed installed
[ $failed = 0 ] || exit 1
way manuals manuals
way hardened hardened
way 'C11' with cc -std=c11 -Wall -Wextra -Werror
way 'C17' with cc -std=c17 -Wall -Wextra -Werror
way 'C++17' with c++ -std=c++17 -Werror -x c++
way 'C++20' with c++ -std=c++20 -Wall -Wextra -Werror -x c++
way 'C by clang' with clang -std=c11 -Wall -Wextra -Werror
way 'C++17 by clang' with clang++ -std=c++17 -Werror -Wno-c++20-designator -x c++
way 'C++20 by clang' with clang++ -std=c++20 -Wall -Wextra -Werror -x c++
way 'libgrad.a' static
if command -v cmake >/dev/null; then
        way 'CMake' cmake_project libgrad::libgrad shared
        way 'CMake, libgrad.a' cmake_project libgrad::static
        way 'CMake, versions' cmake_versions
        way 'CMake, static only' cmake_alone static
        way 'CMake, shared only' cmake_alone shared
else
        skipped=5
        echo 'CMake: skipped, it is not installed'
fi
way 'subproject' subproject
way 'subproject, static' subproject -Ddefault_library=static -Dlibgrad:zlib=disabled
way processes processes
way uninstalled uninstalled
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
