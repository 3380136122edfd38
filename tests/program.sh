#!/bin/sh
# program.sh - the training program on a few drawn images: options, figures, files, wrong uses, full disks; lg-info's too.
# program.sh FASHION_MNIST LG_INFO MANUAL
set -eu
program=$1 info=$2 manual=$3
. "$(dirname "$0")/script.sh"
. "$(dirname "$0")/options.sh"

. "$(dirname "$0")/images.sh"
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
runs --model mlp --schedule none --log-steps 4 --group # no launcher has started it
grep '^step' "$work/out" >"$work/1"
cmp -s "$work/1" "$work/2" || complain "--group alone prints other losses"
runs --model mlp --schedule none --log-steps 4 --board "$work/runs/one"
grep '^step' "$work/out" >"$work/1"
cmp -s "$work/1" "$work/2" || complain "--board changes the losses"
for tag in loss/step:1 loss/train:2 loss/test:2 accuracy/test:2 'learning rate:2' values/1.weight:2 gradients/1.bias:2; do
        [ "$(written "$work/runs/one" "${tag%:*}")" = "${tag#*:}" ] || complain "--board: not ${tag#*:} of ${tag%:*}"
done
runs --model mlp --schedule none --steps 4 --log-steps 1 --board "$work/runs/two" --save "$work/boarded"
runs --model mlp --schedule none --log-steps 1 --board "$work/runs/two" --resume "$work/boarded"
[ "$(written "$work/runs/two" loss/step)" = 6 ] || complain "--board of a run in two parts: not 6 losses"
[ "$(written "$work/runs/two" brain.Event:2)" = 2 ] || complain "--board of a run in two parts: not two files"
fails 2 'lg_board_open: .* cannot be made: Not a directory' --data "$work" --board "$work/a.csv"
if command -v gnuplot >/dev/null; then
        runs --model mlp --epochs 1 --quiet --plot "$work/a.png"
        [ ! -s "$work/err" ] || complain "gnuplot says $(cat "$work/err")" # of one epoch, on axes of no width
        [ "$(head -c 4 "$work/a.png" | tail -c 3)" = PNG ] || complain "the picture is no PNG"
        [ ! -e "$work/a.png.csv" ] || complain "a temporary file is left"
fi

# The range test: lines of the table, the file with the same figures, and a suggestion that is one of its rates.
set -- --data "$work" --batch 20 --threads 1 --model mlp --seed 3 --find-lr
"$program" "$@" --csv "$work/rates.csv" >"$work/out" 2>"$work/err" || complain "--find-lr: exit $?: $(cat "$work/err")"
[ "$(head -n 1 "$work/rates.csv")" = rate,loss,smoothed_loss ] || complain "--find-lr --csv: another first line"
n=$(grep -c '^ *[0-9][-.e0-9]*  *[0-9][.0-9]*  [0-9][.0-9]*$' "$work/out")
[ "$n" -gt 30 ] && [ "$(wc -l <"$work/rates.csv")" = $((n + 1)) ] || complain "--find-lr: $n lines, but $(wc -l <"$work/rates.csv") in the file"
found=$(sed -n 's/^suggested learning rate \([0-9][-.e0-9]*\)$/\1/p' "$work/out")
grep -q "^ *$found  " "$work/out" || complain "--find-lr suggests \"$found\", which is no rate of its table"
"$program" "$@" --quiet --steps 200 >"$work/out" 2>"$work/err" || complain "--find-lr --steps 200: exit $?: $(cat "$work/err")"
grep -q '^suggested learning rate' "$work/out" && [ "$(wc -l <"$work/out")" = 1 ] || complain "--find-lr --quiet says more or less"
if command -v gnuplot >/dev/null; then
        "$program" "$@" --quiet --plot "$work/rates.png" >"$work/out" 2>"$work/err" || complain "--find-lr --plot: exit $?"
        [ ! -s "$work/err" ] || complain "gnuplot says $(cat "$work/err")"
        [ "$(head -c 4 "$work/rates.png" | tail -c 3)" = PNG ] || complain "the picture of --find-lr is no PNG"
fi
fails 2 'needs no --predict, --group, --save' "$@" --save "$work/none"
fails 2 'needs no --predict, --group, --save' "$@" --group
fails 2 'find the rate with --amp bf16' "$@" --amp f16
fails 2 'needs --steps from 10 to 1000000' "$@" --steps 9
fails 1 '/dev/full cannot be written' "$@" --csv /dev/full
full 'the standard output cannot be written' "$program" "$@" --quiet

runs --model lenet --ema 0.9 --keep-best "$work/best" --onnx "$work/net.onnx"
grep -q image "$work/net.onnx" && grep -q scores "$work/net.onnx" && grep -q 0.weight "$work/net.onnx" || complain "--onnx writes no network"
[ "$(wc -c <"$work/net.onnx")" -gt 100000 ] || complain "--onnx writes no weights"
rm "$work/best" "$work/net.onnx"

# lasting FILE: the figures of a CSV file that do not depend on the clock
lasting()
{
        sed 's/,[^,]*$//' "$1"
}
# A run that is saved, ended and resumed, again and again, ends with the file and the figures of one that was not.
saved_runs()
{
        set -- --data "$work" --batch 20 --epochs 2 --threads 1 --model mlp --ema 0.9 --seed 3 --schedule none --quiet
        "$program" "$@" --save "$work/straight" --keep-best "$work/best" >/dev/null 2>"$work/err" ||
                complain "--save: $(cat "$work/err")"
        [ -s "$work/best" ] || complain "--keep-best writes no file"
        "$program" "$@" --save "$work/cut" --save-every 2 --steps 4 --resume "$work/cut" >/dev/null 2>"$work/err"
        grep -q 'cut is not there yet: this run begins' "$work/err" || complain "--resume does not say that the run begins"
        "$program" "$@" --save "$work/cut" --resume "$work/cut" >/dev/null 2>"$work/err"
        grep -q 'the run goes on after step 4 of 6' "$work/err" || complain "--resume does not say where it goes on"
        cmp -s "$work/cut" "$work/straight" || complain "a run that --steps cut off and --resume finished saves another file"

        set -- --data "$work" --batch 20 --epochs 200 --threads 1 --model mlp --ema 0.9 --seed 3 --quiet
        "$program" "$@" --save "$work/long" --csv "$work/long.csv" >"$work/long.out" 2>&1 || complain "a run of 200 epochs fails"
        command="'$program' $* --save '$work/it'\\''s' --csv '$work/parts.csv'"
        n=0 more=yes
        while [ $more = yes ]; do
                n=$((n + 1))
                eval "$command >\"\$work/out\" 2>\"\$work/err\" &" # in the background, Ctrl-C is ignored until the program takes it
                if [ $n -le 9 ]; then
                        sleep "0.$n"
                        if [ $((n % 3)) = 0 ]; then signal=TERM; else signal=INT; fi
                        kill -$signal $! 2>/dev/null || true
                fi
                wait $! || complain "part $n: exit $?: $(cat "$work/err")"
                if grep -q 'is saved; this goes on:$' "$work/out"; then command=$(tail -n 1 "$work/out"); else more=no; fi
        done
        [ $n -gt 1 ] || complain "Ctrl-C did not end a run of 200 epochs"
        tail -n 1 "$work/out" | grep -q '^test accuracy' || complain "a run that Ctrl-C ended has no accuracy at its end"
        [ "$(tail -n 1 "$work/out")" = "$(tail -n 1 "$work/long.out")" ] || complain "a run that Ctrl-C ended has another accuracy at its end"
        cmp -s "$work/long" "$work/it's" || complain "a run that Ctrl-C ended in $n parts ends with another file"
        sed 's/,[^,]*$//' "$work/long.csv" >"$work/1"
        sed 's/,[^,]*$//' "$work/parts.csv" >"$work/2"
        cmp -s "$work/1" "$work/2" || complain "a run that Ctrl-C ended in $n parts has other figures"
        [ -z "$(find "$work" -name '.*.tmp')" ] || complain "temporary files are left"
}

# loss: the test loss of the last epoch that $work/out tells
loss()
{
        sed -n 's/^epoch.* test loss \([0-9.]*\) .*/\1/p' "$work/out" | tail -n 1
}
# Shifted and mirrored images: the same ones for any number of threads, also where a run is cut, and in training alone.
augmented_runs()
{
        set -- --data "$work" --batch 20 --epochs 3 --threads 1 --model mlp --seed 3 --schedule none --quiet
        for workers in 0 1 3 auto; do
                "$program" "$@" --augment --workers $workers --save-every 2 --save "$work/augmented.$workers" --csv "$work/$workers.csv" >"$work/out" ||
                        complain "--augment --workers $workers: exit $?"
                cmp -s "$work/augmented.0" "$work/augmented.$workers" || complain "--augment --workers $workers ends with another file"
                [ "$(lasting "$work/0.csv")" = "$(lasting "$work/$workers.csv")" ] || complain "--augment --workers $workers: other figures"
        done
        for steps in 2 4 7; do # in the midst of each epoch
                "$program" "$@" --augment --workers 3 --steps $steps --save "$work/shifts" --resume "$work/shifts" --csv "$work/shifts.csv" \
                        >/dev/null 2>&1 || complain "--augment --steps $steps: exit $?"
        done
        fails 2 'it was begun with --augment' "$@" --resume "$work/shifts"
        fails 2 'it was begun with --amp f32, not bf16' "$@" --augment --amp bf16 --resume "$work/shifts"
        "$program" "$@" --augment --workers 1 --save "$work/shifts" --resume "$work/shifts" --csv "$work/shifts.csv" >/dev/null 2>&1 ||
                complain "--augment, resumed: exit $?"
        cmp -s "$work/augmented.0" "$work/shifts" || complain "a run with --augment that was cut and resumed ends with another file"
        "$program" "$@" --save "$work/plain" --csv "$work/plain.csv" >/dev/null || complain "--save: exit $?"
        cmp -s "$work/plain" "$work/shifts" && complain "--augment changes nothing"
        fails 2 'it was begun without --augment' "$@" --augment --resume "$work/plain"
        set -- "$@" --lr 0 --epochs 1
        "$program" "$@" >"$work/out"
        plain=$(loss)
        "$program" "$@" --augment >"$work/out"
        [ -n "$plain" ] && [ "$plain" = "$(loss)" ] || complain "--augment changes the test images"
}

# predicts PICTURE WEIGHTS LOSS: the probability of Dress, which is the label, is exp(-LOSS); the others follow in their order
predicts()
{
        "$program" --predict "$1" --weights "$2" >"$work/out" 2>"$work/err" || complain "--predict $1: exit $?: $(cat "$work/err")"
        [ "$(grep -c '^[A-Z][a-zA-Z/ -]* [01]\.[0-9]\{4\}$' "$work/out")" = 10 ] || complain "--predict $1 does not print ten classes"
        sed 's/.* //' "$work/out" >"$work/numbers"
        sort -rn "$work/numbers" | cmp -s - "$work/numbers" || complain "--predict $1: the best is not first"
        awk -v loss="$3" '/^Dress/ { p = $2 } { sum += $NF } END {
                wrong = p - exp(-loss); if (wrong < 0) wrong = -wrong
                exit !(loss > 0 && wrong < 0.0002 && sum > 0.999 && sum < 1.001) }' "$work/out" ||
                complain "--predict $1: test loss $3 is another probability than that of Dress: $(cat "$work/out")"
}
# A picture gets the probabilities that it has in a test set; the latter has it alone.
predictions()
{
        mkdir "$work/one"
        cp "$work"/train-* "$work/one"
        printf '\000\000\010\001\000\000\000\001\003' >"$work/one/t10k-labels-idx1-ubyte"
        # 7 y + x in 28 x 28 pixels; 100 in 3 x 2 pixels, which stays 100 where it is resized
        printf '\211PNG\015\012\032\012\000\000\000\015IHDR\000\000\000\034\000\000\000\034\010\000\000\000\000Wf\200H\000\000\000/IDATx\332cb`dbfaec\347\340\344\342\346\341\345\343\027\020\024\022\026\021\025\023\227\220\224\222fb\307\003F\045G\045G\226$\000\220\272\026_\353\273\007c\000\000\000\000IEND\256B`\202' >"$work/slope.png"
        printf '\211PNG\015\012\032\012\000\000\000\015IHDR\000\000\000\003\000\000\000\002\010\000\000\000\000\270\0379\306\000\000\000\016IDATx\332cHIIa\000b\000\011h\002Y\244HU\042\000\000\000\000IEND\256B`\202' >"$work/grey.png"
        for name in slope grey; do
                printf '\000\000\010\003\000\000\000\001\000\000\000\034\000\000\000\034' >"$work/one/t10k-images-idx3-ubyte"
                awk -v slope=$([ $name = grey ] || echo 1) 'BEGIN {
                        for (i = 0; i < 784; i++) printf "\\%03o", slope ? 7 * int(i / 28) + i % 28 : 100 }' >"$work/octal"
                printf "$(cat "$work/octal")" >>"$work/one/t10k-images-idx3-ubyte"
                rm -f "$work/one.run" "$work/one.best"
                "$program" --data "$work/one" --model mlp --batch 20 --epochs 1 --quiet --seed 5 --save "$work/one.run" \
                        --keep-best "$work/one.best" "$@" >"$work/out" || complain "a test set of one image: exit $?"
                loss=$(loss)
                predicts "$work/$name.png" "$work/one.run" "$loss"
                predicts "$work/$name.png" "$work/one.best" "$loss"
        done
        grep -q 'grey.png: 3 x 2 pixels, resized to 28 x 28' "$work/err" || complain "--predict does not say that it resizes"
        "$program" --predict "$work/slope.png" --resume "$work/one.run" >"$work/1" && "$program" --predict "$work/slope.png" \
                --weights "$work/one.run" >"$work/2" && cmp -s "$work/1" "$work/2" || complain "--predict does not take the weights of --resume"
        rm -r "$work/one"
}
wrong_predictions()
{
        set -- --predict "$work/slope.png"
        fails 2 'needs --weights FILE' "$@"
        fails 2 'no/such' "$@" --weights "$work/no/such"
        fails 2 'no safetensors file' "$@" --weights "$work/slope.png"
        fails 2 'it has the weights of --model mlp, not cnn' "$@" --weights "$work/one.best" --model cnn
        fails 2 'it has the weights of --model mlp, not cnn' "$@" --weights "$work/one.run" --model cnn
        fails 2 'no/such.png' --predict "$work/no/such.png" --weights "$work/one.best"
        fails 2 'is no PNG' --predict "$work/one.best" --weights "$work/one.best"
        full 'cannot be written' "$program" "$@" --weights "$work/one.best"
        [ ! -s "$work/out" ] || complain "a wrong --predict prints something"
}

# What does not fit, and what cannot be written.
wrong_files()
{
        set -- --data "$work" --batch 20 --epochs 2 --quiet --resume "$work/straight"
        fails 2 'straight: it is a run of --model mlp, not lenet' "$@" --ema 0.9 --schedule none
        fails 2 'was begun with other options; .*--ema' "$@" --model mlp --schedule none
        fails 2 'was begun with other options; .*--batch' "$@" --model mlp --ema 0.9 --schedule none --batch 10
        fails 2 'was begun with other options; .*--optimizer' "$@" --model mlp --ema 0.9 --schedule none --optimizer sgd
        fails 2 'was begun with other options; .*--schedule' "$@" --model mlp --ema 0.9
        fails 2 'was begun with other options; .*--schedule.*lg_one_cycle_lr, but here lg_cosine_lr' "$@" --model mlp --ema 0.9 --resume "$work/long" --schedule cosine
        fails 2 'is no run of this program' "$@" --resume "$work/best"
        fails 2 'a.csv' "$@" --resume "$work/a.csv"
        fails 2 'no/such' --data "$work" --quiet --save "$work/no/such/file"
        fails 2 'is no regular file' --data "$work" --quiet --save "$work"
        fails 2 'no/such' --data "$work" --epochs 1 --quiet --keep-best "$work/no/such/file"
        [ ! -s "$work/out" ] || complain "--keep-best cannot be written, and the run begins"
        fails 2 'is no regular file' --data "$work" --quiet --keep-best "$work"
        fails 2 'no/such' --data "$work" --epochs 1 --quiet --onnx "$work/no/such/file"
        [ ! -s "$work/out" ] || complain "--onnx cannot be written, and the run begins"
        fails 2 'is no regular file' --data "$work" --quiet --onnx "$work"
        fails 2 'a file of its own' --data "$work" --quiet --save "$work/one" --onnx "$work/one"
        fails 2 'need two files' --data "$work" --quiet --save "$work/one" --keep-best "$work/one"
}

stops_early()
{
        "$program" --data "$work" --batch 20 --epochs 50 --quiet --threads 1 --lr 0 --early-stop 3 --schedule none --model mlp \
                --save "$work/early" >"$work/out" || complain "--early-stop: exit $?"
        [ "$(grep -c '^epoch' "$work/out")" = 4 ] || complain "--early-stop 3 of a run that never gets better: not 4 epochs"
        grep -q '^3 epochs were not better than epoch 1 with test accuracy' "$work/out" || complain "--early-stop does not say why"
        "$program" --data "$work" --batch 20 --epochs 50 --quiet --threads 1 --lr 0 --early-stop 3 --schedule none --model mlp \
                --resume "$work/early" >"$work/out" 2>/dev/null || complain "--early-stop, resumed: exit $?"
        [ "$(grep -c '^epoch' "$work/out")" = 0 ] || complain "a run that was stopped early goes on"
}

fails 2 'there are mlp, lenet' --model alexnet
fails 2 'there are none, onecycle' --schedule fast
fails 2 'whole number' --epochs 0
fails 2 'whole number' --log-steps often
fails 2 'less than 1' --ema 1
fails 2 'whole number' --early-stop 0
fails 2 'needs --save' --save-every 3
fails 2 'a whole number or "auto"' --workers many
fails 2 'from 0 to 1024' --workers 2000
fails 2 'needs --predict' --weights "$work/a.csv"
fails 2 'needs --weights FILE' --predict "$work/a.png"
fails 2 'needs --group' --sync-batch-norm
fails 2 'needs no --group' --predict "$work/a.png" --weights "$work/a.csv" --group
fails 2 'whole number' --group --timeout 0
fails 2 'name of a file' --predict ''
fails 2 'name of a file' --save ''
fails 2 'there is no train-images' --data "$work/nowhere"
fails 2 'cannot be written' --data "$work" --csv "$work/no/such.csv"
fails 2 'cuda' --data "$work" --device cuda:77
full 'cannot be written' "$program" --help
full 'standard output cannot be written' "$program" --data "$work" --epochs 1 --quiet
full 'cannot be written' "$program" --data "$work" --epochs 1
full 'cannot be written' "$program" --data "$work" --epochs 1 --quiet --log-steps 1
full 'cannot be written' "$info"
full 'cannot be written' "$info" --help
fails 1 '/dev/full cannot be written' --data "$work" --epochs 1 --csv /dev/full
"$program" --data "$work" --epochs 1 --quiet --save "$work/none" >/dev/null 2>"$work/err" || complain "--save: $(cat "$work/err")"
saved_runs
augmented_runs
wrong_files
stops_early
if "$program" --predict "$work/none" --weights "$work/none" 2>&1 | grep -q 'without libpng; .*libpng-dev'; then
        echo 'without libpng nothing is predicted: not tested'
else
        predictions
        predictions --ema 0.5
        wrong_predictions
fi
head -c 1000 "$work/train-images-idx3-ubyte" >"$work/short"
mv "$work/short" "$work/train-images-idx3-ubyte"
fails 2 'train-images' --data "$work"
documented
"$program" --help | grep -q -e '--report' || complain "--help tells not all"
exit $status
