#!/bin/sh
# fashion.sh - fashion-mnist --group on drawn images: figures of one process, files by rank 0, signals, and ranks that fail.
# fashion.sh PROGRAM MPI MPIRUN...
set -eu
program=$1 mpi=$2
shift 2
mpirun="$*"
. "$(dirname "$0")/../script.sh"
. "$(dirname "$0")/../images.sh"
images train 65
images t10k 21
export OMP_NUM_THREADS=1

# A rank writes the number of its process and its status.
cat >"$work/rank" <<'END'
#!/bin/sh
work=${0%/*} rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} code=0
"$@" &
echo $! >"$work/pid.$rank"
wait $! || code=$?
echo $code >"$work/exit.$rank"
exit $code
END
chmod +x "$work/rank"
data="--data $work --quiet --seed 3 --timeout 20"
[ "$mpi" != openmpi ] || mpirun="$mpirun --enable-recovery" # a rank that fails does not end the others

# alone ARGUMENTS..., ranks N ARGUMENTS...: must succeed
alone()
{
        "$program" $data "$@" >"$work/out" 2>"$work/err" || complain "$*: exit $?: $(cat "$work/err")"
}
ranks()
{
        n=$1
        shift
        rm -f "$work"/exit.*
        $mpirun -n "$n" "$work/rank" "$program" --group $data "$@" >"$work/out" 2>"$work/err" ||
                complain "$n ranks, $*: exit $?: $(cat "$work/err")"
        sed -i '/^\[/d' "$work/out" "$work/err" # words of libraries below MPI: [hwloc/linux] failed to find sysfs
        [ "$(cat "$work"/exit.* | grep -c '^0$')" = "$n" ] || complain "$n ranks, $*: not all succeed: $(cat "$work/err")"
}
# near FILE FILE TOLERANCE: the same words and, but for rounding, the same numbers
near()
{
        sed 's/  [0-9.]* s$//' "$1" >"$work/near.1"
        sed 's/  [0-9.]* s$//' "$2" >"$work/near.2"
        paste -d '\n' "$work/near.1" "$work/near.2" | awk -v most="$3" '
                NR % 2 { n = split($0, a); next }
                { if (split($0, b) != n) wrong = 1
                  for (i = 1; i <= n; i++) { d = a[i] - b[i]; if (d < 0) d = -d
                        if (a[i] != b[i] && (a[i] !~ /^[0-9.]+$/ || d > most)) wrong = 1 } }
                END { exit wrong || NR < 4 }' || complain "$4: $(cat "$1") but $(cat "$2")"
}

# One process with the whole batch, the last of which is smaller and does not divide; --group without a launcher.
same_figures()
{
        alone --model mlp --batch 20 --epochs 2 --log-steps 1 --report
        cp "$work/out" "$work/one"
        alone --group --model mlp --batch 20 --epochs 2 --log-steps 1 --report
        near "$work/one" "$work/out" 0 '--group alone'
        ranks 2 --model mlp --batch 10 --epochs 2 --log-steps 1 --report
        near "$work/one" "$work/out" 0.0001 '2 ranks'
        [ ! -s "$work/err" ] || complain "2 ranks say $(cat "$work/err")"
        ranks 4 --model mlp --batch 5 --epochs 2 --log-steps 1 --report
        near "$work/one" "$work/out" 0.0001 '4 ranks'
        set -- --model resnet18 --steps 4 --log-steps 1 --optimizer sgd --lr 0.001 --schedule none
        alone "$@" --batch 20
        grep '^step' "$work/out" >"$work/one"
        ranks 2 "$@" --batch 10 --sync-batch-norm
        grep '^step' "$work/out" >"$work/synchronised"
        near "$work/one" "$work/synchronised" 0.01 '--sync-batch-norm'
        ranks 2 "$@" --batch 10 --steps 1
        grep '^step 1' "$work/out" >"$work/own" || true
        grep -qxFf "$work/synchronised" "$work/own" && complain 'without --sync-batch-norm the first loss is the same'
        return 0
}

# Rank 0 writes; what 2 ranks have begun goes on with 1 and with 4.
files()
{
        set -- --model mlp --epochs 3 --schedule none --ema 0.9
        alone "$@" --batch 20 --csv "$work/one.csv" --save "$work/one"
        tail -n 1 "$work/out" >"$work/last"
        ranks 2 "$@" --batch 10 --save "$work/two" --steps 6 --csv "$work/two.csv" --keep-best "$work/best" --onnx "$work/net"
        [ -s "$work/best" ] && [ -s "$work/two" ] && [ -s "$work/net" ] || complain 'rank 0 has not written all files'
        for n in 1 4; do
                cp "$work/two" "$work/go"
                cp "$work/two.csv" "$work/go.csv"
                ranks $n "$@" --batch $((20 / n)) --save "$work/go" --resume "$work/go" --csv "$work/go.csv"
                grep -q 'the run goes on after step 6 of 12' "$work/err" || complain "resumed by $n: $(cat "$work/err")"
                [ "$(wc -l <"$work/err")" = 1 ] || complain "resumed by $n, more than rank 0 speaks: $(cat "$work/err")"
                for name in one go; do
                        cut -d , -f 1-4 "$work/$name.csv" | tr ',' ' ' >"$work/$name.figures"
                done
                near "$work/one.figures" "$work/go.figures" 0.0001 "resumed by $n"
        done
        fails 2 'times the number of processes' 2 "$@" --batch 20 --resume "$work/two"
        ranks 2 "$@" --batch 10 --resume "$work/nowhere" --steps 1
        [ "$(grep -c 'this run begins' "$work/err")" = 1 ] || complain "a run that begins: $(cat "$work/err")"
}

# fails CODE WORDS N ARGUMENTS...: every rank has that status, and one of them these words
fails()
{
        code=$1 words=$2 n=$3
        shift 3
        rm -f "$work"/exit.*
        if [ "$1" = : ]; then # of two kinds
                shift
                $mpirun "$@" >"$work/out" 2>"$work/err" || true
        else
                $mpirun -n "$n" "$work/rank" "$program" --group $data "$@" >"$work/out" 2>"$work/err" || true
        fi
        grep -q "fashion-mnist: .*$words" "$work/err" || complain "$*: not \"$words\" but $(cat "$work/err")"
        [ "$mpi" = openmpi ] || return 0
        [ "$(cat "$work"/exit.* | grep -c "^$code\$")" = "$n" ] || complain "$*: not all end with $code: $(cat "$work"/exit.*)"
}

# What is wrong on one rank is an error on both, with the words of the one.
one_is_wrong()
{
        head -c 100 "$work/two" >"$work/short"
        set -- "$work/rank" "$program" --group $data --model mlp --epochs 3 --schedule none --ema 0.9 --batch 10
        fails 2 'it is missing on .*, but not everywhere' 2 : -n 1 "$@" --resume "$work/two" : -n 1 "$@" --resume "$work/none"
        fails 2 'have read different files' 2 : -n 1 "$@" --resume "$work/two" : -n 1 "$@" --resume "$work/one"
        fails '[12]' 'rank 1: .*short' 2 : -n 1 "$@" --resume "$work/two" : -n 1 "$@" --resume "$work/short"
        [ "$mpi" != openmpi ] || grep -q 'rank 0: .*rank 1 failed: .*short' "$work/err" || complain "rank 0 says $(cat "$work/err")"
        fails '[12]' 'rank 1: ' 2 : -n 1 "$@" : -n 1 "$@" --device cuda:77
}

# signal NAME RANK: sent to a rank of a long run as soon as its file is there
signalled()
{
        rm -f "$work/cut" "$work"/exit.* "$work"/pid.*
        $mpirun -n 2 "$work/rank" "$program" --group $data --model mlp --epochs 1000000 --schedule none --batch 10 --save "$work/cut" \
                >"$work/out" 2>"$work/err" &
        job=$! i=0
        while [ ! -s "$work/cut" ] || ! grep -q '^epoch 3' "$work/out"; do
                i=$((i + 1))
                [ $i -lt 300 ] || break
                sleep 0.1
        done
        kill "-$1" "$(cat "$work/pid.$2")"
        wait $job || true
}
signals()
{
        for name in INT TERM; do
                signalled $name 1
                [ "$(cat "$work"/exit.* | grep -c '^0$')" = 2 ] || complain "$name to rank 1: $(cat "$work"/exit.* "$work/err")"
                step=$(sed -n 's/^step \([0-9]*\) of [0-9]* is saved; this goes on, by mpirun as before:$/\1/p' "$work/out")
                [ -n "$step" ] || complain "$name to rank 1: $(tail -n 2 "$work/out")"
                ranks 1 --model mlp --epochs 1000000 --schedule none --batch 20 --resume "$work/cut" --steps "${step:-0}"
                grep -q "goes on after step $step of" "$work/err" || complain "$name to rank 1 has saved: $(cat "$work/err")"
        done
        [ "$mpi" = openmpi ] || return 0
        data="$data --timeout 3"
        signalled KILL 1
        [ "$(cat "$work/exit.0")" = 1 ] && grep -q 'fashion-mnist: rank 0: .*rank 1' "$work/err" ||
                complain "rank 1 is killed, and rank 0 ends with $(cat "$work/exit.0"): $(cat "$work/err")"
}

same_figures
files
one_is_wrong
signals
exit $status
