#!/bin/sh
# cuda_module.sh LG_INFO LIBGRAD MODULE: libgrad.so knows nothing of CUDA; the module loads where there is no GPU, and says so.
set -u
fail() {
        echo "$*"
        exit 1
}
ldd "$2" | grep -Ei 'cuda|cublas|cudnn|nvidia' && fail "$2 links a library of CUDA"
[ -n "${3:-}" ] || exit 0
text=$(LIBGRAD_CUDA=$3 "$1") || fail "lg-info: $text"
echo "$text"
if ls /dev/nvidia0 >/dev/null 2>&1; then
        echo "$text" | grep -q '^cuda:0' || fail 'the GPU is not found'
        exit 0
fi
echo "$text" | grep -q 'no CUDA: there is no device cuda:0: there is no NVIDIA driver' || fail 'there should be no device'
broken=$(LIBGRAD_CUDA=/nonexistent/module.so "$1")
echo "$broken" | grep -q 'its module could not be loaded: /nonexistent/module.so' || fail "a missing module: $broken"
alien=$(LIBGRAD_CUDA=libm.so.6 "$1")
echo "$alien" | grep -q 'another version of libgrad' || fail "a module of another kind: $alien"
