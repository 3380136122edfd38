#!/bin/sh
# graphs.sh BUILD >tests/data/graphs.txt: what the suite and the networks convolve on cudasim.
# graphs.sh --check GRAPHS TESTS NAME...: the tests of these names convolve nothing on cuda:0 that is not in the list.
set -eu
LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDASIM_CUDNN_GRAPHS="$work/graphs"
if [ "$1" = --check ]; then
        list=$2 program=$3
        shift 3
        for name; do
                "$program" "$name" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
        done
        [ -s "$work/graphs" ] || { echo 'nothing was convolved'; exit 1; }
        grep -v '^#' "$list" | sort -u >"$work/known"
        sort -u "$work/graphs" | comm -23 - "$work/known" >"$work/new"
        [ -s "$work/new" ] || exit 0
        echo "$list is out of date (its head says how to make it); these are not in it:"
        cat "$work/new"
        exit 1
fi
suite()
{
        meson test -C "$build" --no-rebuild "$@" >"$work/out" || { cat "$work/out" >&2; exit 1; }
}
build=$1
suite 'dnn on cudasim, CUDASIM_CUDNN=1'
# a test of the cache convolves one image, two, three and so on
awk '$3 <= 3 || ($2 != "f64" && $6 != 5)' "$work/graphs" >"$work/some"
mv "$work/some" "$work/graphs"
suite 'conv on cudasim' 'faults on cudasim' 'gradients on cudasim' 'layers on cudasim' 'memory on cudasim' \
        'models on cudasim' 'step on cudasim' 'watch on cudasim'
cat "$work/graphs" >"$work/all"
# A step of 2 images stands for batches of 64, in each dtype that networks are trained in.
: >"$work/graphs"
# blank NAME COUNT: an IDX file of blank images of 28 x 28, and one of labels 0
blank()
{
        { printf "\\000\\000\\010\\003\\000\\000\\000\\00$2\\000\\000\\000\\034\\000\\000\\000\\034" && head -c $(($2 * 784)) /dev/zero; } \
                >"$work/$1-images-idx3-ubyte"
        { printf "\\000\\000\\010\\001\\000\\000\\000\\00$2" && head -c "$2" /dev/zero; } >"$work/$1-labels-idx1-ubyte"
}
blank train 2
blank t10k 2
for model in lenet cnn vgg resnet18; do
        LIBGRAD_CUDA=$build/tests/cudasim/libgrad-cuda-sim.so "$build/models/fashion-mnist" --data "$work" --batch 2 \
                --steps 1 --device cuda:0 --model "$model" >"$work/out" || { cat "$work/out" >&2; exit 1; }
done
awk '{ $3 = 64; for (i = split("f32 f16 bf16", type); i; i--) { $2 = type[i]; print } }' "$work/graphs" >>"$work/all"
cat <<'HEAD'
# Convolutions: all that the suite asks cuDNN for, and the networks of models/ with batches of 64. Made by
#   sh tests/cudasim/graphs.sh BUILD >tests/data/graphs.txt
# kind (forward, input gradient, weight gradient), dtype, images, channels, outputs; then height and width of image, kernel,
# output, stride, padding, dilation; groups, with bias, alignment
HEAD
sort -u "$work/all"
