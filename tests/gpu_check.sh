# gpu_check.sh ROOT BUILD: tools/gpu-check over the simulated device passes where all is well, and only there.
set -u
root=$1 build=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() {
        cat "$work/out"
        echo "$*"
        exit 1
}
# verdict STATUS PATTERN ARGUMENT...: what gpu-check ends with.
verdict() {
        status=$1 pattern=$2
        shift 2
        "$root/tools/gpu-check" --out "$work/report" "$@" >"$work/out" 2>&1
        code=$?
        [ $code = "$status" ] || fail "gpu-check $*: exit status $code, not $status"
        tail -n 1 "$work/out" | grep -Eq "$pattern" || fail "gpu-check $*: the last line is not '$pattern'"
}
# stub STATUS LINE: a build whose gpu_bench prints that line and ends so.
stub() {
        mkdir -p "$work/stub/tools"
        printf '#!/bin/sh\n[ "$1" = device ] && exit 0\necho '"'%s'"'\nexit %s\n' "$2" "$1" >"$work/stub/tools/gpu_bench"
        cp "$work/stub/tools/gpu_bench" "$work/stub/tools/lg-info"
        chmod +x "$work/stub/tools/gpu_bench" "$work/stub/tools/lg-info"
}
# images COUNT NAME: IDX files of random images of 28 x 28, and of labels 0.
images() {
        local count
        count=$(printf '\\%03o' "$1")
        { printf "\\000\\000\\010\\003\\000\\000\\000$count\\000\\000\\000\\034\\000\\000\\000\\034" && head -c $(($1 * 784)) /dev/urandom; } \
                >"$work/data/$2-images-idx3-ubyte"
        { printf "\\000\\000\\010\\001\\000\\000\\000$count" && head -c "$1" /dev/zero; } >"$work/data/$2-labels-idx1-ubyte"
}
mkdir "$work/data"
images 170 train
images 20 t10k

verdict 0 '^passed$' --simulated --build "$build" --data "$work/data" --parts train,steps
grep -q '^not asked for: build, suite, kernels, sanitizer$' "$work/out" || fail 'it does not say what was not asked for'
grep -q '^passed$' "$work/report/report.md" || fail 'the report has no verdict'

verdict 2 'there is no tests; there are: build suite' --simulated --parts build,tests
verdict 2 'whole number' --simulated --minutes 0
verdict 2 'no such folder' --simulated --deps "$work/none"
verdict 1 '^failed: missing: .*a GPU, for compute-sanitizer' --simulated --build "$build" --parts sanitizer
verdict 1 "^failed: missing: .*$work/none/t10k-labels" --simulated --build "$build" --data "$work/none" --parts train
verdict 1 '^failed: device \(gpu_bench was not built' --simulated --build "$work/none" --parts suite

# What was packed must be whole.
mkdir -p "$work/deps/include" "$work/deps/lib" "$work/deps/fashion-mnist"
echo one >"$work/deps/include/zlib.h"
echo two >"$work/deps/include/cmocka.h"
(cd "$work/deps" && sha256sum include/zlib.h include/cmocka.h >SHA256SUMS)
echo changed >"$work/deps/include/zlib.h"
rm "$work/deps/include/cmocka.h"
verdict 1 'zlib.h \(not what gpu-pack wrote\).*cmocka.h \(not there\)' --simulated --build "$build" --deps "$work/deps" --parts steps

# Figures that failed, that were left out, that are not there.
stub 1 '{"part": "begin", "tf32": false, "parts": ["mlp"]}
{"part": "steps", "name": "mlp", "batch": 2, "tf32": false, "failed": "on purpose"}
{"part": "end", "figures": 1, "failed_figures": 1, "left_out": 0}'
verdict 1 '^failed: steps \(' --simulated --build "$work/stub" --parts steps
stub 3 '{"part": "begin", "tf32": false, "parts": ["mlp"]}
{"part": "steps", "name": "mlp", "batch": 2, "tf32": false, "peak": 1, "us": 5.0}
{"part": "end", "figures": 1, "failed_figures": 0, "left_out": 2}'
verdict 3 '^incomplete: steps \(' --simulated --build "$work/stub" --parts steps
stub 0 ''
verdict 1 '^failed: steps \(' --simulated --build "$work/stub" --parts steps
stub 139 '{"part": "begin", "tf32": false, "parts": ["mlp"]}'
verdict 1 '^failed: steps \(' --simulated --build "$work/stub" --parts steps
echo good
