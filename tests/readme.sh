#!/bin/sh
# readme.sh - README's C code, out of its text: all of it compiles without a warning, runs, and prints what README shows.
# readme.sh SOURCE_ROOT INCLUDE_ARGUMENTS LIBRARY_FOLDER [PYTHON]: PYTHON has torch and safetensors
set -eu
root=$1 include=$2 lib=$3 python=${4-}
seen=0
. "$(dirname "$0")/script.sh"
cd "$work"

# blocks HEADING LANGUAGE: the blocks of that language below a heading, each with a line @@ after it
blocks()
{
        awk -v heading="## $1" -v begin="\`\`\`$2" '
                /^## / { at = $0 == heading }
                /^```$/ { if (on) print "@@"; on = 0 }
                on { print }
                at && $0 == begin { on = 1 }' "$root/README.md"
}
# block HEADING LANGUAGE: the first of them
block()
{
        blocks "$1" "$2" | sed '/^@@$/,$d'
}
# compile NAME: NAME.c
compile()
{
        # shellcheck disable=SC2086
        cc -std=c11 -Wall -Wextra -Werror ${2-} $include "$1.c" -L"$lib" -lgrad -Wl,-rpath,"$lib" -o "$1" || { echo "$1.c does not compile"; exit 1; }
}
# program NAME HEADING
program()
{
        block "$2" c >"$1.c"
        grep -q '^int main' "$1.c" || { echo "README has no program below \"$2\""; exit 1; }
        compile "$1"
        seen=$((seen + $(blocks "$2" c | grep -c '^@@$')))
}
# fragment NAME HEADING: blocks that begin with "static" are functions, the others statements, which find what README's text
# speaks of. It ends with status 1 and the message if the context has an error.
fragment()
{
        {
                echo '#include <grad.h>'
                blocks "$2" c | awk -v RS='@@\n' '/^static/'
                cat <<'EOT'
int main(void)
{
        lg_ctx *c = lg_open(.seed = 1);
        lg_tensor *w = lg_ones(c, LG_SHAPE(2, 3)), *image = lg_ones(c, LG_SHAPE(1, 28, 28));
        lg_dataset *train = lg_dataset_tensors(c, lg_ones(c, LG_SHAPE(64, 1, 28, 28)), lg_randint(c, 0, 10, LG_SHAPE(64)));
        lg_loader *batches = lg_loader_open(c, train, 16);
        lg_module *net = lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 784, 10));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        int epochs = 2;
        (void)opt, (void)w, (void)image, (void)batches, (void)net, (void)epochs;
        {
EOT
                blocks "$2" c | awk -v RS='@@\n' '!/^static/ { print "{"; print; print "}" }'
                cat <<'EOT'
        }
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
EOT
        } >"$1.c"
        compile "$1" '-Wno-unused-variable -Wno-unused-function'
        seen=$((seen + $(blocks "$2" c | grep -c '^@@$')))
        "./$1" >"$1.out" 2>"$1.err" && return
        if blocks "$2" text | sed '/^@@$/d' | cmp -s - "$1.out"; then # the error that README shows
                return
        elif grep -q 'built without' "$1.err"; then
                echo "not run: $2: $(cat "$1.err")"
        else
                complain "$2: $(cat "$1.err" "$1.out")"
        fi
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

# The files that "Data from files" and "NumPy" read.
files()
{
        mkdir -p data/cifar-10-batches-bin pets/cat pets/dog
        printf 'length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n6.3,3.3,virginica\n' >iris.csv
        for n in 1 2 3 4 5; do
                head -c 3073 /dev/zero >data/cifar-10-batches-bin/data_batch_$n.bin
        done
        head -c 1000 "$root/README.md" >book.txt
        printf '\0\0\010\003\0\0\0\001\0\0\0\002\0\0\0\002abcd' | gzip >train-images-idx3-ubyte.gz
        cat >files.c <<'EOT'
#include <grad.h>
int main(void)
{
        lg_ctx *c = lg_open();
        lg_tensor *picture = lg_full(c, LG_SHAPE(3, 20, 10), 7, .dtype = LG_U8);
        lg_write_npy(lg_ones(c, LG_SHAPE(2, 3)), "x.npy");
        lg_write_png(picture, "cat.png");
        lg_write_png(picture, "pets/cat/1.png");
        lg_write_png(picture, "pets/dog/1.png");
        lg_close(c);
}
EOT
        compile files
        ./files
}

# What README shows of the loop is what it prints, within a hundredth.
program loop 'A first training loop'
runs loop
block 'A first training loop' text | paste - loop.out | awk '
        $1 != "epoch" || $1 $3 $5 $6 != $8 $10 $12 $13 || $2 != $9 { wrong = 1 }
        { d = $7 - $14; if (d < -0.01 || d > 0.01) wrong = 1 }
        END { exit wrong || NR != 5 }' || complain "loop: not what README shows: $(cat loop.out)"

files
fragment evaluation 'Evaluation'
fragment sequences 'Sequences of varying length'
fragment from_files 'Data from files'
[ ! -s from_files.err ] && { cmp -s cat.png copy.png || complain "copy.png is another picture"; }
fragment numpy 'NumPy and other frameworks'
fragment network 'Your own network'
fragment op 'Your own op'
[ ! -s op.out ] || complain "op: $(cat op.out)"
fragment mixed 'Mixed precision and memory'
fragment wrong 'When something goes wrong'
[ -s wrong.err ] || complain 'wrong: README shows an error that is none'
fragment gpu 'On a GPU'
fragment processes 'Several processes'

program own 'Own data'
runs own
[ "$(grep -c '^epoch [1-4]  loss [0-9.]*  test accuracy [01]\.[0-9]*$' own.out)" = 4 ] || complain "own: not four epochs: $(cat own.out)"
awk 'END { exit !($NF > 0.95) }' own.out || complain "own: it does not learn: $(cat own.out)"

program save 'Save, load, resume'
program weights 'Weights from PyTorch'
[ "$seen" = "$(grep -c '^```c$' "$root/README.md")" ] || complain "$seen of README's blocks of C are compiled"
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
