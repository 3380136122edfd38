#!/bin/sh
# gpt.sh - the program of language models on a small text: options, losses, files, runs that are ended and resumed.
# gpt.sh LG_GPT MANUAL
set -eu
program=$1 manual=$2
. "$(dirname "$0")/script.sh"
. "$(dirname "$0")/options.sh"

# A text whose letters follow from those before them, and its bytes as tokens of 16 bits.
i=0
while [ $i -lt 60 ]; do
        echo "$i green bottles hanging on the wall, $i green bottles"
        i=$((i + 1))
done >"$work/text"
LC_ALL=C awk 'BEGIN { for (i = 1; i < 128; i++) code[sprintf("%c", i)] = i }
        { for (i = 1; i <= length($0); i++) printf "\\%03o\\000", code[substr($0, i, 1)]; printf "\\012\\000" }' "$work/text" >"$work/octal"
printf "$(cat "$work/octal")" >"$work/text.bin"

# runs ARGUMENTS...: a short training
runs()
{
        "$program" --data "$work/text" --length 16 --batch 4 --steps 8 --threads 1 --quiet "$@" >"$work/out" 2>"$work/err" ||
                complain "$*: exit $?: $(cat "$work/err")"
}
# number NAME: the number behind a word of the last line
number()
{
        sed -n "\$s/.*$1 \\([0-9.]*\\).*/\\1/p" "$work/out"
}
# near A B PART: whether two numbers differ by that part at most
near()
{
        awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { exit !(a > 0 && b > 0 && (a - b) ^ 2 <= (part * b) ^ 2) }'
}

runs --steps 150 --lr 0.01 --log-steps 1 --eval "$work/text" --out "$work/model" --board "$work/runs"
for tag in loss/train:150 'learning rate:150' loss/test:1 values/transformer.wpe.weight:10 gradients/transformer.wpe.weight:10; do
        [ "$(written "$work/runs" "${tag%:*}")" = "${tag#*:}" ] || complain "--board: not ${tag#*:} of ${tag%:*}"
done
[ "$(grep -c '^step [0-9]*/150  loss [0-9.]*  rate ' "$work/out")" = 150 ] || complain "--log-steps 1: not 150 losses"
loss=$(number loss)
awk -v l="$loss" 'BEGIN { exit !(l > 0 && l < 2) }' || complain "the loss after 150 steps is $loss"
awk -v l="$loss" -v p="$(number perplexity)" 'BEGIN { d = exp(l) - p; exit !(d < 0.001 && d > -0.001) }' || complain "the perplexity is not exp($loss)"
# What was written is read again: the same loss, also from tokens, and about the same in 16 bits.
"$program" --from "$work/model" --eval "$work/text" --length 16 --batch 4 --threads 1 --quiet >"$work/out"
[ "$(number loss)" = "$loss" ] || complain "--from what --out wrote: $(cat "$work/out"), not $loss"
"$program" --from "$work/model" --eval "$work/text.bin" --length 16 --batch 4 --threads 1 --quiet >"$work/out"
[ "$(number loss)" = "$loss" ] || complain "the text as tokens: $(cat "$work/out"), not $loss"
"$program" --from "$work/model" --eval "$work/text" --length 16 --batch 4 --threads 1 --quiet --amp bf16 >"$work/out"
near "$(number loss)" "$loss" 0.02 || complain "--amp bf16: $(cat "$work/out"), not $loss"

# It has learnt the text by heart, and --prompt-ids prints the same as numbers.
"$program" --from "$work/model" --prompt '7 green bo' --tokens 8 --temperature 0 --threads 1 --quiet >"$work/out"
grep -q '^7 green bottles ' "$work/out" || complain "--prompt: $(cat "$work/out")"
"$program" --from "$work/model" --prompt-ids '55 32,103 114 101 101 110 32 98 111' --tokens 5 --temperature 0 --threads 1 --quiet >"$work/out"
[ "$(cat "$work/out")" = '116 116 108 101 115 ' ] || complain "--prompt-ids: $(cat "$work/out")"
for run in 1 2 3; do
        "$program" --from "$work/model" --prompt x --tokens 100 --seed $((run / 2)) --top-k 40 --top-p 0.9 --threads 1 --quiet >"$work/drawn.$run"
done
cmp -s "$work/drawn.2" "$work/drawn.3" || complain "the same seed draws another text"
cmp -s "$work/drawn.1" "$work/drawn.2" && complain "another seed draws the same text"

runs --profile "$work/trace.json"
{ grep -q '^by module ' "$work/out" && grep -q '"name":"adamw step"' "$work/trace.json"; } || complain "--profile: $(cat "$work/out")"

# The same figures: again, with layers that run twice, and with two batches of half the size.
runs --log-steps 8 --eval "$work/text" --model llama-mini
loss=$(number loss)
runs --log-steps 8 --eval "$work/text" --model llama-mini --recompute
[ "$(number loss)" = "$loss" ] || complain "--recompute: $(cat "$work/out"), not $loss"
runs --log-steps 8 --eval "$work/text" --model llama-mini --batch 2 --accumulate 2
near "$(number loss)" "$loss" 0.0001 || complain "--accumulate 2: $(cat "$work/out"), not $loss"
runs --log-steps 8 --eval "$work/text" --model llama-mini --amp bf16
near "$(number loss)" "$loss" 0.02 || complain "--amp bf16: $(cat "$work/out"), not $loss"

# A tokenizer of 15 tokens, as GPT-2's files have it, which --out copies. The words of a text follow from each other.
tokenized()
{
        mkdir "$work/words"
        echo '{"g":0,"r":1,"e":2,"n":3,"w":4,"a":5,"l":6,"\u0120":7,"gr":8,"ee":9,"gree":10,"green":11,"\u0120wa":12,"\u0120w":13,"<|endoftext|>":14}' >"$work/words/vocab.json"
        printf '#version: 0.2\ng r\ne e\ngr ee\ngree n\n\304\240 w\n\304\240w a\n' >"$work/words/merges.txt"
        i=0
        while [ $i -lt 200 ]; do
                printf 'green wall '
                i=$((i + 1))
        done >"$work/walls"
        runs --data "$work/walls" --tokenizer "$work/words" --steps 150 --lr 0.01 --out "$work/words.model"
        grep -q '"vocab_size": 15,' "$work/words.model/config.json" || complain "--tokenizer: the model has not its 15 tokens"
        cmp -s "$work/words/merges.txt" "$work/words.model/merges.txt" || complain "--out does not copy the tokenizer"
        "$program" --from "$work/words.model" --prompt 'green wa' --tokens 4 --temperature 0 --threads 1 --quiet >"$work/out" 2>&1
        [ "$(cat "$work/out")" = 'green wall green' ] || complain "--prompt by a tokenizer: $(cat "$work/out")"
        "$program" --from "$work/words.model" --prompt-ids '11 12' --tokens 4 --temperature 0 --threads 1 --quiet >"$work/out" 2>&1
        [ "$(cat "$work/out")" = '6 6 7 11 ' ] || complain "--prompt-ids: $(cat "$work/out")"
        [ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'lg-gpt-*' -newer "$work/walls")" ] || complain "a temporary file is left"
        mkdir "$work/more" "$work/bare"
        cp "$work/words/merges.txt" "$work/more"
        sed 's/}/,"x":15}/' "$work/words/vocab.json" >"$work/more/vocab.json"
        fails 2 'the tokenizer has 16 tokens, the model only 15' --from "$work/words.model" --tokenizer "$work/more" --eval "$work/walls"
        cp "$work/words.model/config.json" "$work/words.model/model.safetensors" "$work/bare"
        fails 2 'which needs a tokenizer' --from "$work/bare" --eval "$work/walls"
}
if "$program" --data "$work/text" --tokenizer "$work" 2>&1 | grep -q 'without PCRE2'; then
        echo 'without PCRE2 there are no tokenizers: not tested'
else
        tokenized
fi

# Adapters alone are trained and written; read or added to the weights, they give the same loss.
printf 'a green wall, a green wall, a green wall, a green wall\n' >"$work/wall"
set -- --from "$work/model" --length 16 --batch 1 --threads 1 --quiet
"$program" "$@" --eval "$work/wall" >"$work/out"
before=$(number loss)
"$program" "$@" --data "$work/wall" --steps 20 --lr 0.01 --lora 4 --out "$work/adapter" --eval "$work/wall" >"$work/out" 2>&1 || complain "--lora: $(cat "$work/out")"
loss=$(number loss)
awk -v a="$loss" -v b="$before" 'BEGIN { exit !(a > 0 && a < 0.8 * b) }' || complain "--lora: the loss was $before and is $loss"
[ -s "$work/adapter/adapter_config.json" ] && [ ! -e "$work/adapter/model.safetensors" ] || complain "--lora --out writes other files than adapters"
"$program" "$@" --adapter "$work/adapter" --eval "$work/wall" >"$work/out" 2>&1 || complain "--adapter: $(cat "$work/out")"
[ "$(number loss)" = "$loss" ] || complain "--adapter: $(cat "$work/out"), not $loss"
"$program" "$@" --adapter "$work/adapter" --merge --out "$work/merged" >"$work/out" 2>&1 || complain "--merge: $(cat "$work/out")"
"$program" "$@" --from "$work/merged" --eval "$work/wall" >"$work/out"
near "$(number loss)" "$loss" 0.00001 || complain "--merge: $(cat "$work/out"), not $loss"

# A run that is saved, ended and resumed, again and again, ends with the file of one that was not.
set -- --data "$work/text" --length 16 --batch 2 --accumulate 3 --steps 90 --threads 1 --seed 3 --quiet
"$program" "$@" --save "$work/straight" >"$work/out" 2>"$work/err" || complain "--save: $(cat "$work/err")"
command="'$program' $* --save '$work/cut' --save-every 7 --resume '$work/cut'"
n=0 more=yes
while [ $more = yes ]; do
        n=$((n + 1))
        eval "$command >\"\$work/out\" 2>\"\$work/err\" &"
        signal=0
        if [ $n -le 7 ]; then
                sleep "0.$((n + 2))"
                case $((n % 3)) in 0) signal=KILL ;; 1) signal=INT ;; 2) signal=TERM ;; esac
                kill -$signal $! 2>/dev/null || true
        fi
        code=0
        wait $! 2>/dev/null || code=$?
        [ $code = 0 ] || [ $signal = KILL ] || complain "part $n: exit $code: $(cat "$work/err")"
        if [ $code != 0 ] || grep -q 'is saved; this goes on:$' "$work/out"; then more=yes; else more=no; fi
        [ $n -lt 30 ] || more=no
done
[ $n -gt 1 ] || complain "no signal ended a run of 90 steps"
cmp -s "$work/straight" "$work/cut" || complain "a run that was ended in $n parts ends with another file"
fails 2 'it was begun with --amp f32 --length 16 --accumulate 3' "$@" --amp bf16 --resume "$work/straight"
fails 2 'it was begun with --amp f32 --length 16 --accumulate 3' "$@" --accumulate 1 --resume "$work/straight"
fails 2 'straight' "$@" --model llama-mini --resume "$work/straight"

fails 2 'see --help'
fails 2 'one of them is possible' --from "$work/model" --model gpt2 --eval "$work/text"
fails 2 'one of them is possible' --lora 4 --adapter "$work/adapter" --eval "$work/text"
fails 2 '--merge needs' --from "$work/model" --merge --out "$work/merged"
fails 2 'no Linear' --from "$work/model" --lora 4 --lora-on '*.q_proj' --data "$work/text"
fails 2 'exclude each other' --prompt a --prompt-ids 1
fails 2 'needs no --group' --prompt a --group
fails 2 'needs --save' --data "$work/text" --save-every 2
fails 2 'needs --data' --eval "$work/text" --save "$work/s"
fails 2 'whole number' --steps 0
fails 2 'there are f32, bf16' --amp f16
fails 2 'above 0, up to 1' --top-p 2
fails 2 'number of 0 or more' --temperature -1
fails 2 'name of a file' --data ''
fails 2 'is no option' --data "$work/text" more
fails 2 'there are gpt2-mini' --data "$work/text" --model gpt5
fails 2 'no/such' --data "$work/no/such" --quiet
fails 2 'nowhere/config.json' --from "$work/nowhere" --eval "$work/text"
fails 2 'the model has 1024 positions' --data "$work/text" --length 2000
fails 2 'numbers from 0 to 255 are needed' --prompt-ids '1 256'
fails 2 'numbers from 0 to 255 are needed' --prompt-ids ''
fails 2 'it is empty' --prompt ''
fails 2 'cuda' --data "$work/text" --device cuda:77
fails 2 'no/such' --data "$work/text" --quiet --save "$work/no/such/file"
sed 's/256/257/' "$work/model/config.json" >"$work/config"
mkdir "$work/other"
cp "$work/config" "$work/other/config.json"
cp "$work/model/model.safetensors" "$work/other"
fails 2 'have another shape than config.json says.*: transformer.wte.weight' --from "$work/other" --eval "$work/text"
fails 1 'no/such' --data "$work/text" --length 16 --steps 1 --quiet --out "$work/no/such/folder"
full 'cannot be written' "$program" --help
full 'standard output cannot be written' "$program" --data "$work/text" --length 16 --steps 1 --quiet --log-steps 1
full 'standard output cannot be written' "$program" --from "$work/model" --prompt a --tokens 2 --quiet
documented
exit $status
