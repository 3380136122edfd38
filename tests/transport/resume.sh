#!/bin/sh
# resume.sh - resume.sh LIVES COMMAND...: a training of 4 ranks that is stopped, and goes on with 2 and then alone, has the
# losses of one that one process did alone.
lives=$1
shift
file=$(mktemp -u)
trap 'rm -f "$file"*' EXIT
fail() {
        echo "$1"
        exit 1
}
alone=$("$lives" "$file" 9 2>&1)
echo "$alone" | grep -q '^held$' || fail "$alone"
rm -f "$file"
for way in '4 3' '2 6' '1 9'; do
        said=$("$@" -n "${way% *}" "$lives" "$file" "${way#* }" 2>&1)
        [ "$(echo "$said" | grep -o held | wc -l)" = "${way% *}" ] || fail "$said"
        echo "$said" | grep '^step' >>"$file-steps"
done
echo "$alone" | grep '^step' | paste -d ' ' - "$file-steps" | awk '
        {far = ($3 - $6) / $3; far = far < 0 ? -far : far; most = far > most ? far : most; right += $2 == $5}
        END {printf "%d steps, at most %g apart\n", NR, most; exit !(NR == 9 && right == 9 && most <= 1e-8)}' ||
        { cat "$file-steps"; fail "$alone"; }
