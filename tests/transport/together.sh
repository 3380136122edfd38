#!/bin/sh
# together.sh - together.sh N COMMAND...: N processes say "held", whatever the status.
n=$1
shift
said=$("$@" 2>&1)
[ "$(echo "$said" | grep -o held | wc -l)" = "$n" ] && exit 0
echo "$said"
exit 1
