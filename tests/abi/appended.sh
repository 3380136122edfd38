#!/bin/sh
# appended.sh - the library with a member appended to three structs of options and to lg_batch: programs that know nothing
# of it run as before, and one that uses it with today's library is told.
# appended.sh SOURCE_ROOT WORK_FOLDER
set -eu
root=$1 work=$2
here=$root/tests/abi
mkdir -p "$work"
rm -rf "$work/tree"
mkdir "$work/tree"
(cd "$root" && tar cf - meson.build meson_options.txt libgrad kernels transport tests/meson.build tools models doc) | tar xf - -C "$work/tree"

append() # header, struct, member
{
        sed -i "s/^} $2;/        $3\n&/" "$work/tree/libgrad/grad/$1"
        grep -qF "$3" "$work/tree/libgrad/grad/$1"
}
append ops.h lg_reduce_options 'double later LG_DEFAULT;'
append conv.h lg_conv2d_options 'lg_pair later LG_DEFAULT;'
append optim.h lg_sgd_options 'lg_tensor *later LG_DEFAULT;'
append data.h lg_batch 'lg_tensor *later;'

# At that depth and with those options ccache has the objects that .ci/run made before.
for tree in "$root" "$work/tree"; do
        build=$tree/build-ci/library
        mkdir -p "$tree/build-ci"
        [ -e "$build/build.ninja" ] || meson setup "$build" "$tree" --werror -Dtests=disabled -Dmodels=disabled -Dcuda=disabled \
                -Disas=portable -Ddefault_library=shared >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
        ninja -C "$build" >>"$build.log" 2>&1 || { tail -n 40 "$build.log"; exit 1; }
        mkdir -p "$build/include/grad"
        cp "$tree/libgrad/grad.h" "$build/include/"
        cp "$tree"/libgrad/grad/*.h "$tree/kernels/types.h" "$build/include/grad/"
done
now=$root/build-ci/library later=$work/tree/build-ci/library

run() # library's build folder, include folder, file...
{
        build=$1 include=$2
        shift 2
        ${CC:-cc} -std=c11 -I"$include" "$@" -o "$work/run" -L"$build/libgrad" -lgrad -Wl,-rpath,"$build/libgrad"
        "$work/run"
}
python3 "$here/layout.py" "$here/base" "$later/include"
run "$later" "$here/base" "$here/program.c"
run "$later" "$here/base" "$here/padding.c"
run "$now" "$later/include" "$here/program.c" # which uses nothing new
cat >"$work/newer.c" <<'END'
/* newer.c - uses an option that the library it runs with does not know. */
#include <grad.h>
#include <string.h>

int main(void)
{
        lg_ctx *c = lg_open();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2)), *y = lg_sum(x, .dims = LG_DIMS(1));
        if (!y || lg_error(c))
                return 1;
        y = lg_sum(x, .later = 1);
        bool told = !y && lg_error_code_of(c) == LG_ERR_ARGUMENT && strstr(lg_error(c), "newer libgrad");
        puts(lg_error(c));
        lg_close(c);
        return !told;
}
END
run "$now" "$later/include" "$work/newer.c"
echo "programs of older and newer headers run"
