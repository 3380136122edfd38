#!/bin/sh
# examples.sh - the programs of models/examples: each runs briefly and learns what it says.
#
# examples.sh NAME PROGRAM TEXT [MPIRUN...]
# With $LG_TEST_BRIEF each only runs, and learns nothing.
# examples.sh alone FOLDER FLAGS: each compiles by the command in its first comment, where FLAGS are what pkg-config says,
# and has fewer than 100 lines.
set -u
name=$1 brief=${LG_TEST_BRIEF:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C # a sample of bytes is no text of any other locale
status=0
complain()
{
        echo "$name: $1"
        status=1
}

# run ARGUMENT...: the program succeeds and has nothing to complain of.
run()
{
        "$program" "$@" >"$work/out" 2>"$work/err" || complain "exit $?"
        [ ! -s "$work/err" ] || complain "$(cat "$work/err")"
        cat "$work/out"
}

# steps N: so many, or as few as there can be
steps()
{
        [ -z "$brief" ] && echo "$1" || echo 2
}

# needs WORDS: without an argument, the program says in one line which ones it takes
needs()
{
        "$program" >"$work/out" 2>"$work/err"
        [ $? = 2 ] || complain 'without an argument it does not end with 2'
        [ "$(cat "$work/out" "$work/err")" = "usage: $program $1" ] || complain "without an argument it says: $(cat "$work/err")"
}

# last WORDS: the number behind the last of these words that the program printed
last()
{
        sed -n "s/.*$1 \([+-]\{0,1\}[0-9][0-9.e+-]*\).*/\1/p" "$work/out" | tail -n 1
}

# holds CONDITION: of numbers; a number that is missing makes it false
holds()
{
        [ -n "$brief" ] || awk "BEGIN { exit !($1) }" || complain "it does not hold that $1"
}

# Of the bytes of a file, in nats: what a model that knows nothing but their frequencies comes to.
entropy()
{
        od -An -v -tu1 "$1" | awk '{ for (i = 1; i <= NF; i++) { n[$i]++; all++ } }
                END { for (b in n) h -= n[b] / all * log(n[b] / all); print h }'
}

# compiles FILE FLAGS: by its own command
compiles()
{
        command=$(sed -n 's/^ \*     \(c[c+]* -std=.*\) && \.\/a\.out.*/\1/p' "$1")
        case $command in
        "cc -std=c11 ${1##*/} "* | "c++ -std=c++20 ${1##*/} "*) ;;
        *) complain "$1 does not say how it is compiled: $command"; return ;;
        esac
        command -v "${command%% *}" >/dev/null || { echo "$1: there is no ${command%% *}"; return; }
        command=$(echo "$command" | sed "s|\$(pkg-config --cflags --libs libgrad)|$2|")
        (cd "${1%/*}" && eval "$command -Wall -Wextra -Wpedantic -Werror -o '$work/program'") || complain "$1: $command"
}

if [ "$name" = alone ]; then
        count=0
        for file in "$2"/*.c "$2"/*.cpp; do
                lines=$(wc -l <"$file")
                [ "$lines" -lt 100 ] || complain "$file has $lines lines"
                head -n 1 "$file" | grep -q "^/\* ${file##*/} - " || complain "$file does not begin with its name"
                compiles "$file" "$3"
                count=$((count + 1))
        done
        [ "$count" -ge 10 ] || complain "there are $count examples"
        exit $status
fi

program=$2 text=$3
network=$(cd "$(dirname "$0")" && pwd)/data/onnx_head.onnx
if [ -n "$brief" ]; then
        head -c 3000 "$text" >"$work/text"
        text=$work/text
fi
case $name in
burgers)
        run "$(steps 200)"
        holds "$(last loss) <= 1e-4 && $(last 'largest error') < 0.2"
        ;;
data_parallel)
        shift 3
        run
        holds "$(last accuracy) > 0.97"
        loss=$(last loss)
        if [ $# -gt 0 ]; then # by mpirun
                "$@" -n 2 "$program" >"$work/out" 2>"$work/err" || complain "two processes: exit $?: $(cat "$work/err")"
                [ "$(grep -c '^2 processes, by ' "$work/out")" = 1 ] || complain 'not two processes'
                holds "$(last loss) - $loss < 1e-3 && $loss - $(last loss) < 1e-3"
        fi
        ;;
fno)
        run "$(steps 150)"
        holds "$(last 'on 64 points') < 0.15 && $(last 'on 256 points') < 0.15"
        ;;
gpt)
        needs 'FILE [EPOCHS]'
        run "$text" "$(steps 2)"
        holds "$(last loss) < $(entropy "$text") - 0.2"
        [ "$(sed -n '/^The/,$p' "$work/out" | wc -c)" -gt 290 ] || complain 'it does not go on'
        ;;
gru)
        needs 'FILE [EPOCHS]'
        run "$text" "$(steps 3)"
        holds "$(last after) < 0.6 * $(last before)"
        ;;
lstm)
        run "$(steps 400)"
        holds "$(last after) < 0.1 * $(last before)"
        ;;
maml)
        run "$(steps 500)"
        holds "$(last after) < 0.5 * $(last adaptation)"
        holds "$(last error) < 1e-6"
        ;;
mixed)
        run "$(steps 60)"
        for way in f32 bf16 f16 'bf16 parameters' recompute; do
                line=$(grep "^$way  *loss" "$work/out") || complain "no line of $way"
                echo "$line" >"$work/out.way"
                holds "$(sed 's/.*accuracy \([0-9.]*\).*/\1/' "$work/out.way") > 0.9"
                eval "$(echo "$way" | tr -d ' ')=$(sed 's/.* \([0-9.]*\) MB$/\1/' "$work/out.way")"
        done
        holds "$bf16 < 0.8 * $f32 && $f16 < 0.8 * $f32 && $bf16parameters < 0.8 * $f32 && $recompute < 0.8 * $f32"
        ;;
onnx_head)
        needs 'FILE [STEPS [SIZE]]'
        program=$(cd "$(dirname "$program")" && pwd)/${program##*/}
        cd "$work"
        run "$network" "$(steps 600)"
        holds "$(last before) > 0.8 && $(last after) < 0.45"
        grep -q '^head.onnx: the same scores$' "$work/out" || complain 'the file gives other scores'
        ;;
own_op)
        run "$(steps 400)"
        holds "$(last 'first derivative:.*error') < 1e-7 && $(last 'second derivative:.*error') < 1e-6"
        holds "$(last 'cosh): y =') > 1.8 && $(last 'cosh): y =') < 2.1 && $(last 'cosh):.* x') > -1.2 && $(last 'cosh):.* x') < -0.9"
        ;;
pinn)
        run "$(steps 1000)"
        holds "$(last 'largest error') < 1e-2"
        ;;
raii)
        run "$(steps 200)"
        holds "$(last 'test accuracy') > 0.9"
        grep -q '^caught: lg_uniform: ' "$work/out" || complain 'no exception'
        ;;
gaussian_process)
        run "$(steps 200)"
        holds "$(last error) < 0.08 && $(last inside) > 0.8 && $(last noise) > 0.07 && $(last noise) < 0.14"
        ;;
regression)
        run
        holds "$(last 'validation loss') < 0.1 && $(last epoch) < 100"
        ;;
recorded)
        run "$(steps 600)"
        holds "$(last 'function.*loss') == $(last 'recording.*loss') && $(last 'recording.*loss') < 0.05"
        [ -n "$brief" ] || grep -q ', 597 of 600 recorded, ' "$work/out" || complain 'other runs are recorded'
        ;;
reinforce)
        run "$(steps 50)"
        holds "$(last 'mean length') > 4 * 22"
        ;;
seq2seq)
        run "$(steps 400)"
        holds "$(last right) > 0.9"
        ;;
threads)
        run "$(steps 10)"
        [ "$(grep -c ', weights equal$' "$work/out")" = 2 ] || complain 'the weights differ'
        holds "$(last 'seed 1: accuracy') > 0.9 && $(last 'seed 2: accuracy') > 0.9"
        ;;
unet)
        run "$(steps 150)"
        holds "$(last 'IoU of discs') > 0.6 && $(last 'of squares') > 0.7"
        ;;
wgan_gp)
        run "$(steps 1000)"
        holds "$(last 'modes found:') >= 6 && $(last 'near a mode:') > 50"
        ;;
*) complain 'there is no such example' ;;
esac
exit $status
