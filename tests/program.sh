#!/bin/sh
# program.sh - the training program on a few drawn images: options, figures, files, wrong uses, full disks; lg-info's too.
# program.sh FASHION_MNIST LG_INFO MANUAL
set -eu
program=$1 info=$2 manual=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
complain()
{
        echo "$1"
        status=1
}

# images NAME COUNT: an IDX file of 28 x 28 bytes and one of labels 0 ... 9
images()
{
        {
                printf '\000\000\010\003\000\000\000'
                printf "\\$(printf %03o "$2")"
                printf '\000\000\000\034\000\000\000\034'
                head -c $(($2 * 784)) /dev/urandom
        } >"$work/$1-images-idx3-ubyte"
        {
                printf '\000\000\010\001\000\000\000'
                printf "\\$(printf %03o "$2")"
                i=0
                while [ $i -lt "$2" ]; do
                        printf "\\00$((i % 8))"
                        i=$((i + 1))
                done
        } >"$work/$1-labels-idx1-ubyte"
}
images train 60
images t10k 20

# runs ARGUMENTS...: must end with an accuracy
runs()
{
        "$program" --data "$work" --batch 20 --epochs 2 --threads 1 "$@" >"$work/out" 2>"$work/err" ||
                complain "$*: exit $?: $(cat "$work/err")"
        tail -n 1 "$work/out" | grep -q '^test accuracy [01]\.[0-9]\{4\}$' || complain "$*: no accuracy at the end"
}
runs --model mlp --schedule none
runs --model mlp --schedule step --optimizer sgd --lr 0.01
runs --model lenet --schedule cosine --quiet
runs --model lenet --csv "$work/a.csv" --report
[ "$(wc -l <"$work/a.csv")" = 3 ] || complain "the CSV file has not one line for each epoch"
grep -q '^Ankle boot .* [01]\.[0-9]\{4\}\|^Ankle boot .* -' "$work/out" || complain "the report has no line for each class"
cp "$work/out" "$work/first"
runs --model lenet --csv "$work/b.csv" --report
sed 's/[0-9.]* s$//' "$work/first" >"$work/1"
sed 's/[0-9.]* s$//' "$work/out" >"$work/2"
cmp -s "$work/1" "$work/2" || complain "the same seed gives other figures"
runs --model mlp --schedule none --steps 4 --log-steps 1
[ "$(grep -c '^step [1-4]  loss [0-9.]*$' "$work/out")" = 4 ] || complain "--log-steps 1 --steps 4: not four losses"
grep '^step 4' "$work/out" >"$work/1"
runs --model mlp --schedule none --log-steps 4
grep '^step' "$work/out" >"$work/2"
cmp -s "$work/1" "$work/2" || complain "--log-steps 4 does not print the fourth of six losses alone, or another one"
if command -v gnuplot >/dev/null; then
        runs --model mlp --plot "$work/a.png"
        [ "$(head -c 4 "$work/a.png" | tail -c 3)" = PNG ] || complain "the picture is no PNG"
        [ ! -e "$work/a.png.csv" ] || complain "a temporary file is left"
fi

# fails CODE WORDS ARGUMENTS...
fails()
{
        code=$1 words=$2
        shift 2
        got=0
        "$program" "$@" >"$work/out" 2>"$work/err" || got=$?
        [ $got = "$code" ] || complain "$*: exit $got, not $code"
        grep -q -e "$words" "$work/err" || complain "$*: says \"$(cat "$work/err")\", not \"$words\""
}
fails 2 'there are mlp, lenet' --model alexnet
fails 2 'there are none, onecycle' --schedule fast
fails 2 'whole number' --epochs 0
fails 2 'whole number' --log-steps often
fails 2 'there is no train-images' --data "$work/nowhere"
fails 2 'cannot be written' --data "$work" --csv "$work/no/such.csv"
fails 2 'cuda' --data "$work" --device cuda:77
# full WORDS ARGUMENTS...: a disk that is full, as the standard output
full()
{
        words=$1 got=0
        shift
        "$@" >/dev/full 2>"$work/err" || got=$?
        [ $got = 1 ] || complain "$* on a full disk: exit $got, not 1"
        grep -q -e "$words" "$work/err" || complain "$* on a full disk: says \"$(cat "$work/err")\", not \"$words\""
}
full 'cannot be written' "$program" --help
full 'standard output cannot be written' "$program" --data "$work" --epochs 1 --quiet
full 'cannot be written' "$program" --data "$work" --epochs 1
full 'cannot be written' "$program" --data "$work" --epochs 1 --quiet --log-steps 1
full 'cannot be written' "$info"
full 'cannot be written' "$info" --help
fails 1 '/dev/full cannot be written' --data "$work" --epochs 1 --csv /dev/full
head -c 1000 "$work/train-images-idx3-ubyte" >"$work/short"
mv "$work/short" "$work/train-images-idx3-ubyte"
fails 2 'train-images' --data "$work"
# Every option of --help is in the manual.
for option in $("$program" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p'); do
        grep -q -- "$(echo "$option" | sed 's/-/\\\\-/g')" "$manual" || complain "the manual lacks $option"
done
"$program" --help | grep -q -e '--report' || complain "--help tells not all"
exit $status
