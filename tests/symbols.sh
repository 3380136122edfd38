#!/bin/sh
# symbols.sh - only lg_ symbols are exported; no MPI is linked; every op of ops.def has its function, every declared op its row.
# symbols.sh SOURCE_ROOT LIBGRAD_SO
set -eu
root=$1 library=$2
. "$(dirname "$0")/script.sh"

nm -D --defined-only "$library" | sed 's/@.*//' | awk '{print $NF}' | sort -u >"$work/exported"
grep -v '^lg_' "$work/exported" | grep -v '^_\(init\|fini\|edata\|end\|_bss_start\)$' >"$work/foreign" || true
[ -s "$work/foreign" ] && complain "exported, but not lg_: $(tr '\n' ' ' <"$work/foreign")"
grep '^lg__' "$work/exported" && complain "private symbols are exported"

# Who uses no group needs no MPI: modules link it.
ldd "$library" | awk '{ print $1 }' | grep -i 'mpi' && complain "$library links an MPI"

# Everything that is declared LG_API is exported, and nothing else.
echo '#include <grad.h>' | ${CC:-cc} -E -P -I"$root/libgrad" -I"$(dirname "$library")" - | tr '\n' ' ' | tr ';{' '\n\n' |
        sed -n 's/__attribute__((warn_unused_result))//; s/.*__attribute__((visibility("default")))//p' |
        sed 's/[([].*//; s/ *$//; s/.*[ *]//' | sort -u >"$work/declared"
[ "$(wc -l <"$work/declared")" -gt 200 ] || complain "the header could not be read"
for name in $(comm -23 "$work/declared" "$work/exported"); do
        complain "declared but not exported: $name"
done
for name in $(comm -13 "$work/declared" "$work/exported"); do
        complain "exported but not declared: $name"
done

# Functions that change a tensor in place.
changing="lg_add_ lg_add_scalar_ lg_all_reduce_ lg_broadcast_ lg_clamp_ lg_copy_ lg_div_ lg_div_scalar_ lg_fill_"
changing="$changing lg_floor_divide_scalar_ lg_fmod_scalar_ lg_maximum_scalar_ lg_minimum_scalar_ lg_mul_ lg_mul_scalar_"
changing="$changing lg_pow_scalar_ lg_remainder_scalar_ lg_sub_ lg_sub_scalar_"

# One scheme of names: _with and _list are behind macros, a trailing underscore means in place.
for name in $(grep '_\(with\|list\)$' "$work/exported"); do
        grep -q "^#define ${name%_*}(" "$root"/libgrad/grad/*.h || complain "$name is exported, but there is no macro ${name%_*}"
done
[ "$(grep '_$' "$work/exported" | tr '\n' ' ')" = "$changing " ] ||
        complain "a trailing underscore means in place: $(grep '_$' "$work/exported" | tr '\n' ' ')"

# The rows: pointwise ones are functions of their names; of the others, what has no function of its own is listed here.
sed -n 's/^\(UNARY\|BINARY\|TERNARY\|COMPARE\|COMPARE_SCALAR\|TEST\|PLAIN\|PLAIN_SCALAR\)(\([a-z0-9_]*\),.*/\2/p' \
        "$root/kernels/pointwise.def" | sort -u >"$work/pointwise"
sed -n 's/^\(OP\|COMPOSITE\)(\([a-z0-9_]*\)[,)].*/\2/p' "$root/libgrad/ops/ops.def" | sort -u >"$work/structural"
[ "$(wc -l <"$work/pointwise")" -gt 40 ] && [ "$(wc -l <"$work/structural")" -gt 15 ] || complain "the lists could not be read"
private="linear_relu batch_norm_relu conv2d_relu conv2d_end matmul_add pieces relu_grad slice_grad class_weights norm2 view pick pick_grad"
private="$private conv2d_input_grad conv2d_weight_grad max_pool2d_grad max_pool2d_pick avg_pool2d_grad im2col col2im weighted rotate recurrent"
private="$private gamma_draw gamma_slope poisson_draw resample sample sample_x_grad sample_weight_grad scatter_extreme"
private="$private pinv_of"
private="$private solve_system cofactors det_value logdet_value"
for name in $(cat "$work/pointwise" "$work/structural"); do
        case " $private " in *" $name "*) continue ;; esac
        grep -qx "lg_$name\(_with\)\{0,1\}" "$work/exported" || complain "ops.def has $name, but there is no lg_$name"
done

# Declared functions of tensors without a row: an op that would escape the gradient tests.
for part in pointwise ops conv norm index image statistics products arrange loss sequence linalg; do
        sed -n 's/^LG_API LG_NEW lg_tensor \*lg_\([a-z0-9_]*\)(.*/\1/p' "$root/libgrad/grad/$part.h" | sed 's/_with$//'
done | grep -vx "rotary_table\|sinusoidal_positions\|tril_indices\|triu_indices\|logspace" | sort -u >"$work/ops" # which take no tensor
[ "$(wc -l <"$work/ops")" -gt 60 ] || complain "the declarations could not be read"
sort -u "$work/pointwise" "$work/structural" >"$work/rows"
for name in $(comm -23 "$work/ops" "$work/rows"); do
        complain "lg_$name is declared but has no row in ops.def or pointwise.def"
done
[ $status = 0 ] && echo "$(wc -l <"$work/rows") rows, $(wc -l <"$work/exported") exported symbols"
exit $status
