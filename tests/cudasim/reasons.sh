#!/bin/sh
# reasons.sh LG_INFO: why there is no CUDA, or which, in words that help.
set -u
status=0
# told WORDS VARIABLE=VALUE...
told()
{
        words=$1
        shift
        text=$(env "$@" "$info" 2>&1) && echo "$text" | grep -qF "$words" && return
        echo "with $*: \"$words\" is not in:"
        echo "$text"
        status=1
}
info=$1
told 'cuda:1     simulated device 1' CUDASIM_DEVICES=2
told 'cuDNN: not used: $CUDASIM_CUDNN is 0' CUDASIM_CUDNN=0
told 'no CUDA: there is no device cuda:0: cudaGetDeviceCount: no CUDA-capable device is detected' CUDASIM_DEVICES=0
told 'the driver knows CUDA 12.2, but' CUDASIM_DRIVER=12020
told 'cuda:0 cannot be used: simulated device 0 has compute capability 9.0, for which this build has no kernels' CUDASIM_OLD=1
told 'no CUDA: there is no device cuda:0: $LIBGRAD_CUDA does not name its module' LIBGRAD_CUDA=
env "$info" --bench | grep -q '^cuda:0 .*GB/s.*GB/s.*GB/s.*GB/s' || { echo '--bench measures nothing'; status=1; }
"$info" --nonsense >/dev/null 2>&1 && { echo '--nonsense is taken'; status=1; }
exit $status
