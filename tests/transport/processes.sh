#!/bin/sh
# processes.sh - tools/processes: its status is that of the processes, their threads are cores / N, and signals reach them.
# processes.sh TOOLS_PROCESSES
set -eu
processes=$1
. "$(dirname "$0")/../script.sh"
cores=$(env -u OMP_NUM_THREADS nproc)
unset OMP_NUM_THREADS

# gives CODE WORDS ARGUMENTS...
gives()
{
        code=$1 words=$2 got=0
        shift 2
        "$processes" "$@" >"$work/out" 2>&1 || got=$?
        [ $got = "$code" ] || complain "$*: exit $got, not $code: $(cat "$work/out")"
        [ -z "$words" ] || grep -q -e "$words" "$work/out" || complain "$*: says \"$(cat "$work/out")\", not \"$words\""
}
gives 2 'a number from 1' none true
gives 2 'a command is needed' 1 --oversubscribe
gives 2 "$cores cores: they would wait for each other" $((cores + 1)) true
gives 0 "^0 of 1: $cores threads$" 1 sh -c 'echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE: $OMP_NUM_THREADS threads'
gives 0 "^$cores of $((cores + 1)): 1 threads$" $((cores + 1)) --oversubscribe \
        sh -c 'echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE: $OMP_NUM_THREADS threads'
OMP_NUM_THREADS=7 gives 0 '^7$' 1 sh -c 'echo $OMP_NUM_THREADS'
gives 3 '' 2 --oversubscribe sh -c 'exit $((3 * OMPI_COMM_WORLD_RANK))'
gives 137 'rank 1 was killed by signal 9' 2 --oversubscribe sh -c '[ $OMPI_COMM_WORLD_RANK = 0 ] || kill -9 $$; echo up'
gives 127 '' 2 --oversubscribe "$work/no/such"

# A signal to it is SIGTERM to all, and it waits for them.
"$processes" 2 --oversubscribe sh -c 'trap "exit 5" TERM; echo up; while :; do sleep 0.05; done' >"$work/out" 2>&1 &
i=0
until [ "$(grep -c up "$work/out")" = 2 ] || [ $i = 200 ]; do
        i=$((i + 1))
        sleep 0.05
done
got=0
kill -TERM $!
wait $! || got=$?
[ $got = 5 ] || complain "SIGTERM: exit $got, not 5: $(cat "$work/out")"

# Also if it comes before they have begun.
"$processes" 2 --oversubscribe sleep 60 >"$work/out" 2>&1 &
sleep 0.2
got=0
kill -TERM $!
wait $! || got=$?
[ $got = 143 ] || complain "SIGTERM at the start: exit $got, not 143: $(cat "$work/out")"
exit $status
