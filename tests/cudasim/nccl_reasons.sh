#!/bin/sh
# nccl_reasons.sh LG_INFO: which NCCL there is, or why there is none.
info=$1
"$info" | grep -q 'NCCL: 2\.[0-9]*\.[0-9]*$' || { echo 'the version of NCCL is not told'; exit 1; }
CUDASIM_NCCL=0 "$info" | grep -qF 'NCCL: not used: $CUDASIM_NCCL is 0' || { echo 'its absence is not told'; exit 1; }
