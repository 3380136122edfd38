#!/bin/sh
# trace.sh PROGRAM CHECK PYTHON MODEL: the trace of a profile and its tables say the same, and broken ones are found.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$1" "$4" "$work/trace.json" "$work/tables" || exit 1
"$3" "$2" "$work/trace.json" "$work/tables" && "$3" "$2" --broken "$work/trace.json" "$work/tables"
