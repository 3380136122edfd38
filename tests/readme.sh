#!/bin/sh
# readme.sh - README's programs, out of its text: they compile without a warning, run, and print what README says.
# readme.sh SOURCE_ROOT INCLUDE_ARGUMENTS LIBRARY_FOLDER JSON [PYTHON]: JSON: 1 if weights are saved; PYTHON has torch and safetensors
set -eu
root=$1 include=$2 lib=$3 json=$4 python=${5-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
status=0
complain()
{
        echo "$1"
        status=1
}

# block HEADING LANGUAGE: the first block of that language below a heading
block()
{
        awk -v heading="## $1" -v begin="\`\`\`$2" '
                /^## / { at = $0 == heading }
                /^```$/ { if (on) exit }
                on { print }
                at && $0 == begin { on = 1 }' "$root/README.md"
}
# compile NAME: NAME.c
compile()
{
        # shellcheck disable=SC2086
        cc -std=c11 -Wall -Wextra -Werror $include "$1.c" -L"$lib" -lgrad -Wl,-rpath,"$lib" -o "$1" || { echo "$1.c does not compile"; exit 1; }
}
# program NAME HEADING
program()
{
        block "$2" c >"$1.c"
        grep -q '^int main' "$1.c" || { echo "README has no program below \"$2\""; exit 1; }
        compile "$1"
}
# runs NAME: prints to NAME.out, and nothing that is wrong
runs()
{
        "./$1" >"$1.out" 2>"$1.err" || complain "$1: exit $?"
        [ ! -s "$1.err" ] || complain "$1: $(cat "$1.err")"
}
# same FILE FILE: the numbers in brackets are equal but for rounding
same()
{
        for file in "$1" "$2"; do
                tr -d '[:space:]' <"$file" | sed 's/^[^[]*\[*//; s/\].*//' | tr ',' '\n' >"$file.numbers"
                [ "$(wc -w <"$file.numbers")" = 10 ] || complain "$file has not ten numbers: $(cat "$file")"
        done
        paste "$1.numbers" "$2.numbers" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 0.0002) wrong = 1; if ($1 != 0) some = 1 }
                END { exit wrong || !some }' || complain "$1 and $2 differ: $(cat "$1" "$2")"
}

program loop 'A training loop, line by line'
program own 'Own data'
runs own
[ "$(grep -c '^epoch [1-4]  loss [0-9.]*  test accuracy [01]\.[0-9]*$' own.out)" = 4 ] || complain "own: not four epochs: $(cat own.out)"
awk 'END { exit !($NF > 0.95) }' own.out || complain "own: it does not learn: $(cat own.out)"

program save 'Save, load, resume'
program weights 'Weights from PyTorch'
if [ "$json" = 0 ]; then
        echo 'without cJSON nothing is saved: not run'
        exit $status
fi
runs save
sed 's/^accuracy //; s/, of what was loaded / /' save.out | awk '{ exit !($1 == $2 && $1 > 0.9) }' || complain "save: $(cat save.out)"
mv net.safetensors straight
rm run.safetensors
# The same program, which ends without a word after a save in each of three epochs.
sed 's|lg_checkpoint_save(run, .*|{ & if (getenv("CUT") \&\& epoch == atoi(getenv("CUT"))) _Exit(9); }|
        1i #include <stdlib.h>' save.c >cut.c
grep -q _Exit cut.c || complain "save.c has no save in its loop"
compile cut
for epoch in 1 4 9; do
        code=0
        CUT=$epoch ./cut || code=$?
        [ $code = 9 ] && [ ! -e net.safetensors ] || complain "save: it was not cut in epoch $epoch"
done
runs save
cmp -s net.safetensors straight || complain "save: a run that was cut and goes on ends with other weights"

if [ -n "$python" ]; then
        block 'Weights from PyTorch' python >theirs.py
        "$python" theirs.py >theirs.out || complain "theirs.py: exit $?"
else # a file of libgrad's, with the same names, in place of PyTorch's
        echo 'no Python with torch and safetensors: the file is of libgrad'
        sed 's|lg_load(net, "torch.safetensors")|lg_save(net, "torch.safetensors")|; /grad.safetensors/d
                s|lg_open()|lg_open(.seed = 7)|' weights.c >theirs.c
        compile theirs
        runs theirs
fi
runs weights
same weights.out theirs.out
if [ -n "$python" ]; then
        {
                sed '/^save_file(/,$d' theirs.py
                echo 'import safetensors.torch'
                sed -n 's/^- Back in Python: `\(.*\)`\.$/\1/p' "$root/README.md"
                echo 'print(net(torch.ones(1, 1, 28, 28)))'
        } >back.py
        grep -q '^net.load_state_dict' back.py || complain "README has no way back to Python"
        "$python" back.py >back.out || complain "back.py: exit $?"
        same back.out weights.out
fi
exit $status
