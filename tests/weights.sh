#!/bin/sh
# weights.sh - lg-weights on files of this folder and on small ones: figures, differences, exit statuses, wrong files.
# weights.sh LG_WEIGHTS WEIGHTS_OF_DATA ONNX_OF_DATA
set -eu
program=$(realpath "$1") other=$2 network=$3
. "$(dirname "$0")/script.sh"

# file NAME HEADER DATA: a safetensors file; DATA as printf takes it
file()
{
        length=$(printf %s "$2" | wc -c)
        {
                printf "\\$(printf %03o $((length % 256)))\\$(printf %03o $((length / 256)))\\000\\000\\000\\000\\000\\000"
                printf %s "$2"
                printf "$3"
        } >"$work/$1"
}

# runs CODE ARGUMENTS...: exit status and standard output
runs()
{
        code=$1 got=0
        shift
        "$program" "$@" >"$work/out" 2>"$work/err" || got=$?
        [ $got = "$code" ] || complain "$*: exit $got, not $code: $(cat "$work/out" "$work/err")"
}
# says LINE: a line of the output, whose spaces count as one
says()
{
        sed 's/  */ /g' "$work/out" | grep -qxF -e "$1" || complain "no line \"$1\" in: $(cat "$work/out")"
}
# fails WORDS ARGUMENTS...: exit status 2
fails()
{
        words=$1
        shift
        runs 2 "$@"
        grep -q -e "$words" "$work/err" || complain "$*: says \"$(cat "$work/err")\", not \"$words\""
}

# 1 2 3 4 in f32: mean 2.5, deviation sqrt(5 / 3); then 1 NaN, inf, -inf; i64 7, and 2^53 + 1; an empty one; a dtype of others
one='\000\000\200\077' two='\000\000\000\100' three='\000\000\100\100' four='\000\000\200\100' nan='\000\000\300\177'
inf='\000\000\200\177' minus='\000\000\200\377' big='\001\000\000\000\000\000\040\000'
header='{"__metadata__":{"by":"hand","esc":"a\u001b[31mb"},
"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"n":{"dtype":"F32","shape":[4],"data_offsets":[16,32]},
"i":{"dtype":"I64","shape":[1],"data_offsets":[32,40]},"e":{"dtype":"F32","shape":[3,0],"data_offsets":[40,40]},
"c\u009bx":{"dtype":"U8","shape":[],"data_offsets":[40,41]},"m":{"dtype":"I16","shape":[2],"data_offsets":[41,45]}}'
file a "$header" "$one$two$three$four$one$nan$inf$minus$big\\005mmmm"
runs 0 "$work/a"
says 'tensor dtype shape mean std NaN inf'
says 'w F32 (2, 2) 2.5 1.291 0 0'
says 'n F32 (4) 1 - 1 2'
says 'i I64 (1) 9.0072e+15 - 0 0'
says 'e F32 (3, 0) - - 0 0'
says 'c?x U8 () 5 - 0 0'
says 'm I16 (2) - - - -'
says 'tensors: 6, values: 12, bytes: 45'
says 'by hand'
says 'esc a?[31mb'
[ ! -s "$work/err" ] || complain "a file is listed, but: $(cat "$work/err")"
cd "$work" && cp a ./--help
runs 0 -- --help
cd - >/dev/null

# What the safetensors package wrote.
runs 0 "$other"
says 'f16 F16 (1, 4) 16376 32752 0 0'
says 'bool BOOL (3) 0.66667 0.57735 0 0'
says 'u8 U8 (5) 102.2 106.44 0 0'
says 'f32 F32 (3) -1.2 1.8385 0 1'
runs 0 "$other" "$other"
says 'in both: 11, of them the same: 11, only in the first: 0, only in the second: 0'

# differs NAME HEADER DATA LINE...: from x, whose tensors are w, f32 1 2, and i, i64 2^53 + 1
differs()
{
        file "$1" "$2" "$3"
        shift 3
        runs 1 "$work/x" "$work/y"
        for line in "$@"; do
                says "$line"
        done
}
w='"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}' i='"i":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}'
file x "{$w,$i}" "$one$two$big"
file y "{$i,$w}" "$one$two$big"
runs 0 "$work/x" "$work/y"
differs y "{$w,$i}" "$one$two\\002\\000\\000\\000\\000\\000\\040\\000" 'i: 1 of 1 values differ, by at most 1' \
        'in both: 2, of them the same: 1, only in the first: 0, only in the second: 0'
differs y "{$w,$i}" "$four$one$big" 'w: 2 of 2 values differ, by at most 3'
differs y "{$w,$i}" "$one$nan$big" 'w: 1 of 2 values differ; NaN in one file only: 1'
differs y "{$w,$i}" "$three$nan$big" 'w: 2 of 2 values differ, by at most 2; NaN in one file only: 1'
differs y "{$w,$i}" "$inf$two$big" 'w: 1 of 2 values differ, by at most inf'
differs y "{\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},$i}" "$one$two$big" 'w: shape (2) and (1, 2)'
differs y "{\"w\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},$i}" "$one$two$big" \
        'w: shape (2) and (1); dtype F32 and F64'
differs y '{"w":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}' \
        '\001\000\000\000\002\000\000\0000' 'w: dtype F32 and I32' "only in $work/x: i I64 (1)" "only in $work/y: v U8 ()" \
        'in both: 1, of them the same: 0, only in the first: 1, only in the second: 1'
differs y '{"w":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},"i":{"dtype":"U64","shape":[1],"data_offsets":[8,16]}}' \
        "\\001\\000\\000\\000\\001\\000\\000\\000$big" 'w: dtype F32 and I32; 1 of 2 values differ, by at most 1' \
        'i: dtype I64 and U64'
file x "{$w,$i}" "$one$nan$big"
file y "{$w,$i}" "$one\\001\\000\\300\\377$big" # another NaN
runs 0 "$work/x" "$work/y"
file x "{$w,$i}" "\\000\\000\\000\\000$two$big"
file y "{$w,$i}" "\\000\\000\\000\\200$two$big" # -0
runs 0 "$work/x" "$work/y"
# More values than are read at once: the last one of 100,000 differs.
header='{"z":{"dtype":"U8","shape":[100000],"data_offsets":[0,100000]}}'
file x "$header" "$(printf %099999d 0)1"
file y "$header" "$(printf %099999d 0)4"
runs 1 "$work/x" "$work/y"
says 'z: 1 of 100000 values differ, by at most 3'
runs 0 "$work/x"
says 'z U8 (100000) 48 0.0031623 0 0'

# An ONNX file that PyTorch wrote.
runs 0 "$network"
says 'conv2.weight F32 (16, 8, 3, 3) -0.0012749 0.083971 0 0'
says 'tensors: 14, values: 1604, bytes: 6416'
says 'input image float (batch, 1, 16, 16)'
says 'opset 20'
says 'output scores float (batch, 4)'
says 'producer pytorch 2.15.0+cu132'
runs 0 "$network" "$network"
says 'in both: 14, of them the same: 14, only in the first: 0, only in the second: 0'
file x '{"fc.bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' "$one$two$three$four"
runs 1 "$work/x" "$network"
says 'fc.bias: 4 of 4 values differ, by at most 3.91264'
says 'in both: 1, of them the same: 0, only in the first: 0, only in the second: 13'
fails 'lg_weights_open: .*/none.onnx cannot be opened' "$work/none.onnx"
cp "$work/a" "$work/a.onnx"
fails 'a.onnx' "$work/a.onnx"
: >"$work/empty.onnx"
fails 'this is no ONNX file' "$work/empty.onnx"
for bytes in 1 100 4000 9000; do
        head -c $bytes "$network" >"$work/short.onnx"
        fails 'lg_weights_open: "*.*short.onnx"*: ' "$work/short.onnx"
done
printf '\010\012\102\002\020\143\072\000' >"$work/new.onnx" # a graph without nodes, of opset 99
fails 'its opset is 99' "$work/new.onnx"
# Of a dtype that libgrad lacks, int16, and of 2 raw bytes with 4 dimensions of 2^31, which is refused.
printf '\010\012\102\002\020\021\072\015\052\013\010\001\020\005\102\001m\112\002\001\000' >"$work/i16.onnx"
runs 0 "$work/i16.onnx"
says 'm int16 (1) - - - -'
printf '\010\012\102\002\020\021\072\015\052\013\010\002\020\001\102\001m\112\002\001\000' >"$work/size.onnx"
fails 'm: its data has another size than its shape' "$work/size.onnx"

# What is not known to be the same is no success.
fails 'not compared.*: 1' "$work/a" "$work/a"
says 'm: not compared, its dtype is I16'
fails 'lg_weights_open: .*/nowhere cannot be opened' "$work/nowhere"
fails 'lg_weights_open: .*/nowhere cannot be opened' "$work/a" "$work/nowhere"
fails 'lg_weights_open: .*/nowhere cannot be opened' "$work/nowhere" "$work/a"
fails 'not a regular file' "$work"
fails 'not a regular file' "$work/a" /dev/null
: >"$work/empty"
fails 'it has 0 bytes' "$work/empty"
fails 'is no safetensors file' "$program"
fails 'is no safetensors file' "$work/a" "$program"
head -c 400 "$work/a" >"$work/short"
fails 'short' "$work/short"
file bad '{"b":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}' '\001\002'
fails 'element 1 of "b" is 2, no bool' "$work/bad"
fails 'element 1 of "b" is 2, no bool' "$work/bad" "$work/bad"
fails '^usage: ' --wrong
fails '^usage: '
fails '^usage: ' --
fails '^usage: ' "$work/a" "$work/a" "$work/a"
runs 0 --help
says 'usage: lg-weights FILE [OTHER]'
for arguments in "$work/x" "$work/x $work/y" --help; do
        got=0
        "$program" $arguments >/dev/full 2>"$work/err" || got=$?
        [ $got = 2 ] || complain "$arguments on a full disk: exit $got, not 2"
        grep -q 'standard output cannot be written' "$work/err" || complain "$arguments on a full disk: says \"$(cat "$work/err")\""
done
exit $status
