#!/bin/sh
# steps.sh FASHION_MNIST: some steps of training give the same losses on cuda:0 as on the CPU, and each run the same again.
set -eu
export NVIDIA_TF32_OVERRIDE=0 # rounded operands would take the losses apart
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
eight='[\000*32][\001*32][\002*32][\003*32][\004*32][\005*32][\006*32][\007*32]'
# noise COUNT: so many bytes, the same each time
noise()
{
        python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(int(sys.argv[1])))' "$1"
}
# images NAME COUNT: an IDX file of 28 x 28 bytes and one of labels 0 ... 7
images()
{
        count=$(printf '\\%03o' "$2")
        { printf "\\000\\000\\010\\003\\000\\000\\000$count\\000\\000\\000\\034\\000\\000\\000\\034" && noise $(($2 * 784)); } \
                >"$work/$1-images-idx3-ubyte"
        { printf "\\000\\000\\010\\001\\000\\000\\000$count" && noise "$2" | LC_ALL=C tr '\000-\377' "$eight"; } \
                >"$work/$1-labels-idx1-ubyte"
}
images train 120
images t10k 10
# losses DEVICE MODEL STEPS
losses()
{
        "$program" --data "$work" --batch 8 --device "$1" --model "$2" --steps "$3" --log-steps 1 --seed 3 >"$work/out" ||
                { cat "$work/out" >&2; return 1; }
        sed -n 's/^step .*loss //p' "$work/out"
}
for run in 'mlp 8' 'lenet 8' 'cnn 2'; do
        set -- $run
        losses cpu "$1" "$2" >"$work/cpu"
        losses cuda:0 "$1" "$2" >"$work/cuda"
        paste "$work/cpu" "$work/cuda" | awk -v model="$1" -v steps="$2" -v worst=0 '
                { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d; if (!(d <= 1e-3)) wrong = 1 }
                END { print model ": " NR " steps, losses differ by at most " worst; exit wrong || NR != steps }'
done
