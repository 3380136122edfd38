#!/bin/sh
# info.sh - lg-info --group: alone, and what it prints of two ranks, once.
# info.sh LG_INFO NAME_OF_THE_MPI MPIRUN...
set -eu
info=$1 name=$2
shift 2
. "$(dirname "$0")/../script.sh"
"$info" --group >"$work/out" || complain "alone: exit $?"
grep -q '^1 process: no launcher has started it' "$work/out" || complain "alone: $(cat "$work/out")"
"$@" -n 2 "$info" --group >"$work/out" 2>"$work/err" || complain "two ranks: exit $?: $(cat "$work/err")"
grep -q "^2 processes, by $name.*[0-9]\.[0-9]" "$work/out" || complain 'no version of the MPI'
[ "$(grep -c "^[01]  *cpu  *[^ ]" "$work/out")" = 2 ] || complain 'not two ranks'
# Times grow from 1 KiB to 64 MiB, and bytes / time is the other number.
awk '/iB .* us .* GB\/s$/ {
        n++
        bytes = $1 * ($2 == "KiB" ? 1024 : 1048576)
        if (n == 1) { smallest = bytes; least = $3 }
        speed = bytes / $3 / 1000
        if (!($3 > 0) || bytes != 1024 * 4 ^ (n - 1) || $5 < speed * 0.9 - 0.001 || $5 > speed * 1.1 + 0.001) wrong = 1
        last = $3 }
        END { exit wrong || n < 5 || smallest != 1024 || last < 10 * least }' "$work/out" || complain 'wrong times'
[ $status = 0 ] || cat "$work/out"
exit $status
