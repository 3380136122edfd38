#!/bin/sh
# changes.sh - layout.py sees every change that breaks programs, and lets pass what does not.
# changes.sh FOLDER_OF_THIS [CC]
set -eu
here=$1 cc=${2:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# change FILE SED_EXPRESSION WORDS: the changed header is refused with these words; without words it passes.
change()
{
        rm -rf "$work/new"
        cp -r "$here/base" "$work/new"
        sed "$2" "$here/base/grad/$1" >"$work/new/grad/$1"
        if cmp -s "$here/base/grad/$1" "$work/new/grad/$1"; then
                echo "$2 changes nothing in $1"
                status=1
                return
        fi
        python3 "$here/layout.py" "$here/base" "$work/new" "$cc" >"$work/out" 2>&1 && passed=1 || passed=0
        if [ -z "$3" ] && [ $passed = 0 ]; then
                echo "$2 in $1 is refused:"
                cat "$work/out"
                status=1
        elif [ -n "$3" ] && { [ $passed = 1 ] || ! grep -qF "$3" "$work/out"; }; then
                echo "$2 in $1 should be refused with \"$3\":"
                cat "$work/out"
                status=1
        fi
}

change conv.h 's/^} lg_conv2d_options;/int64_t later LG_DEFAULT; &/' ''
change optim.h 's/^} lg_sgd_options;/double later LG_DEFAULT;\nlg_list_in more LG_DEFAULT; &/' ''
change data.h 's/^} lg_batch;/lg_tensor *later; &/' ''
change context.h 's/LG_ERR_CUDA = 9,/& LG_ERR_LATER = 10,/' ''
change conv.h 's/^        int64_t groups LG_DEFAULT;/int64_t earlier LG_DEFAULT;\n&/' 'lg_conv2d_options.groups: offset and size were'
change conv.h 's/int64_t groups LG_DEFAULT;//' 'lg_conv2d_options.groups is gone'
change conv.h 's/int64_t groups LG_DEFAULT;/int groups LG_DEFAULT;/' 'lg_conv2d_options.groups: offset and size were'
change optim.h 's/^} lg_sgd_options;/bool later LG_DEFAULT; &/' 'lg_sgd_options.later stands at'
change conv.h 's/^} lg_conv2d_options;/int later LG_DEFAULT; &/' 'lg_conv2d_options ends with padding'
change base.h 's/^} lg_list;/int later; &/' 'lg_list had 16 bytes and has 24; it is passed by value'
change types.h 's/LG_U8 = 7/LG_U8 = 9/' 'LG_U8: was [7], now [9]'
change types.h 's/LG_MAX_DIMS 8/LG_MAX_DIMS 9/' 'LG_MAX_DIMS: was [8], now [9]'
change pointwise.h 's/lg_add_scalar(lg_tensor \*x, double s)/lg_add_scalar(lg_tensor *x, float s)/' 'lg_add_scalar(): was'
change pointwise.h '/lg_add_scalar(/d' 'lg_add_scalar() is gone'
change nn.h 's/\*lg_forward_fn(lg_module \*m, lg_list inputs, void \*user)/*lg_forward_fn(lg_module *m, lg_list inputs)/' 'lg_forward_fn(): was'
[ $status = 0 ] && echo "15 changes"
exit $status
