#!/bin/sh
# symbols.sh LIBRARY SOURCE - only lg_ symbols are exported, and ops.def and the headers name the same ops.
set -u
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[TDBR]/ {print $3}')
bad=0
for symbol in $exported; do
        case $symbol in
        lg__*) echo "private but exported: $symbol"; bad=1 ;;
        lg_*) ;;
        *) echo "exported without the prefix: $symbol"; bad=1 ;;
        esac
done
rows() { sed -nE "s/^($1)\(([a-z0-9_]+),.*/\2/p" "$2"; }
elementwise=$(rows 'UNARY|BINARY|TERNARY|COMPARE|COMPARE_SCALAR' "$2/kernels/pointwise.def")
structural=$(rows 'OP|COMPOSITE' "$2/libgrad/ops/ops.def")
[ -n "$elementwise" ] && [ -n "$structural" ] || { echo 'no rows were found'; exit 1; }
# Rows whose function has another name, or none: parts of other functions.
inner=' view slice_grad class_weights '
for op in $elementwise $structural; do
        case $inner in *" $op "*) continue ;; esac
        printf '%s\n' $exported | grep -qxE "lg_${op}_?" || { echo "in a list but not exported: $op"; bad=1; }
done
declared=$(grep -ohE 'lg_tensor \*lg_[a-z0-9_]+\(' "$2/libgrad/grad/pointwise.h" "$2/libgrad/grad/ops.h" |
        sed -E 's/.*lg_([a-z0-9_]+)\(/\1/; s/_$//')
for op in $declared; do
        printf '%s\n' $elementwise $structural | grep -qx "$op" || { echo "declared but in no list: $op"; bad=1; }
done
exit $bad
