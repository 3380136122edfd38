#!/bin/sh
# deaths.sh - deaths.sh TIMES RANK LIVES COMMAND...: of three processes, RANK is killed at that many random moments; the
# others must say "held" each time. $LG_TEST_DEATHS=20 is the long test.
times=${LG_TEST_DEATHS:-$1} rank=$2 lives=$3
shift 3
file=$(mktemp -u)
i=0
while [ $i -lt "$times" ]; do
        ms=$(($(od -A n -N 2 -t u2 /dev/urandom) % 700))
        said=$(timeout 60 "$@" -n 3 "$lives" "$file" 0 "$rank" "$ms" 2>&1)
        if [ "$(echo "$said" | grep -o held | wc -l)" != 2 ]; then
                echo "rank $rank killed after $ms ms:"
                echo "$said" | grep -v '^step'
                rm -f "$file"*
                exit 1
        fi
        rm -f "$file"*
        i=$((i + 1))
done
echo "$times deaths of rank $rank, and each time the others held"
