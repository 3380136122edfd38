#!/bin/sh
# device.sh - a change of the types between libgrad and device modules comes with a new LG_DEVICE_TYPES, so that a module of
# another time is refused and not called. device.txt holds the number and the hash of the types that it stands for.
# device.sh SOURCE_ROOT [CC]
set -eu
root=$1
text=$(echo '#include "kernels.h"' | ${2:-cc} -E -I"$root/kernels" - |
        awk -v kernels="$root/kernels/" '/^# [0-9]+ "/ {mine = index($3, kernels) > 0 && $3 !~ /\.def"/; next} mine' | tr -d ' \t\n')
[ "${#text}" -gt 5000 ] || { echo "the types could not be read"; exit 1; }
number=$(sed -n 's/^#define LG_DEVICE_TYPES \([0-9]*\).*/\1/p' "$root/kernels/kernels.h")
now="$number $(printf %s "$text" | sha256sum | cut -c 1-32)"
known=$(cat "$root/tests/abi/device.txt")
[ "$now" = "$known" ] && echo "$now" && exit 0
if [ "${now%% *}" = "${known%% *}" ]; then
        echo "the types of kernels/*.h have changed, and LG_DEVICE_TYPES has not: raise it, and write into tests/abi/device.txt:"
        echo "$((number + 1)) ${now#* }"
else
        echo "LG_DEVICE_TYPES is $number; write into tests/abi/device.txt:"
        echo "$now"
fi
exit 1
