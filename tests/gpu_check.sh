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
# program FILE: makes a program of the lines of a shell script on stdin.
program() {
        mkdir -p "$(dirname "$1")"
        { printf '#!/bin/sh\nwork=%s\n' "$work" && cat; } >"$1"
        chmod +x "$1"
}
# stub FOLDER STATUS LINES: a build whose gpu_bench prints these lines and ends so; if STATUS is hang, it does not end.
stub() {
        local code="exit $2"
        [ "$2" != hang ] || code='exec sleep 600'
        program "$1/tools/gpu_bench" <<STUB
[ "\$1" = device ] && exit 0
echo '$3'
$code
STUB
        program "$1/tools/lg-info" </dev/null
}
# images COUNT NAME: IDX files of random images of 28 x 28, and of labels 0.
images() {
        local count
        count=$(printf '\\%03o' "$1")
        { printf "\\000\\000\\010\\003\\000\\000\\000$count\\000\\000\\000\\034\\000\\000\\000\\034" && head -c $(($1 * 784)) /dev/urandom; } \
                >"$work/data/$2-images-idx3-ubyte"
        { printf "\\000\\000\\010\\001\\000\\000\\000$count" && head -c "$1" /dev/zero; } >"$work/data/$2-labels-idx1-ubyte"
}
begin='{"part": "begin", "tf32": false, "parts": ["mlp"]}'
figure='{"part": "steps", "name": "mlp", "batch": 64, "tf32": false, "peak": 1048576, "launches": 12, "us": 50.0}'
end='{"part": "end", "figures": 1, "failed_figures": 0, "left_out": 0}'

# A program that hangs costs its figures after that, not those before, and not more time than there is. It takes a minute,
# in which the other checks run.
hang() {
        stub "$work/hang" hang "$begin
$figure"
        "$root/tools/gpu-check" --simulated --build "$work/hang" --parts steps --minutes 1 --out "$work/hang" >"$work/hang/out" 2>&1
        echo "$? $SECONDS" >"$work/hang/end"
}
hang &

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
stub "$work/stub" 1 '{"part": "begin", "tf32": false, "parts": ["mlp"]}
{"part": "steps", "name": "mlp", "batch": 2, "tf32": false, "failed": "on purpose"}
{"part": "end", "figures": 1, "failed_figures": 1, "left_out": 0}'
verdict 1 '^failed: steps \(' --simulated --build "$work/stub" --parts steps
stub "$work/stub" 3 '{"part": "begin", "tf32": false, "parts": ["mlp"]}
{"part": "steps", "name": "mlp", "batch": 2, "tf32": false, "peak": 1, "us": 5.0}
{"part": "end", "figures": 1, "failed_figures": 0, "left_out": 2}'
verdict 3 '^incomplete: steps \(' --simulated --build "$work/stub" --parts steps
stub "$work/stub" 0 ''
verdict 1 '^failed: steps \(' --simulated --build "$work/stub" --parts steps
stub "$work/stub" 139 "$begin"
verdict 1 '^failed: steps \(' --simulated --build "$work/stub" --parts steps
# The plan has each part once, and its calls end in time.
"$root/tools/gpu-check" --plan --peer none --build 'a b' >"$work/out" || fail 'there is no plan'
[ "$(grep -c -- "--peer none --build a.* b --out gpu-report/[123] --minutes 9 --parts" "$work/out")" = 3 ] || fail 'the plan has not three calls'
[ "$(sed 's/.*--parts \([a-z,]*\).*/\1/' "$work/out" | paste -sd ,)" = build,suite,train,kernels,sanitizer,steps ] ||
        fail 'the plan has other parts'

# NCCL's headers are those of Python's packages where the toolkit has none.
program "$work/cuda/bin/nvcc" </dev/null
program "$work/cuda/bin/c++" <<STUB
exec $(command -v c++) -nostdinc "\$@"
STUB
mkdir -p "$work/wheels/nvidia/nccl/include"
printf '#define NCCL_%s\n' 'MAJOR 99' 'MINOR 1' 'PATCH 2' >"$work/wheels/nvidia/nccl/include/nccl.h"
stub "$work/stub" 0 "$begin
$figure
$end"
PATH=$work/cuda/bin:$PATH PYTHONPATH=$work/wheels verdict 0 '^passed$' --simulated --build "$work/stub" --parts steps
grep -q '^| NCCL | 99.1.2 |$' "$work/report/report.md" || fail 'NCCL of a Python package was not found'

# A machine with a GPU: its programs as stubs, which append what they are asked to $work/calls.
mkdir "$work/stub/meson-logs"
program "$work/bin/nvidia-smi" <<'STUB'
case $* in *name,driver*) echo 'Stub, 1, 9.0, 1 MiB, 0 MiB, 1 MHz, 1 MHz, 1 MHz, 1 W' ;; esac
STUB
program "$work/bin/nvidia-cuda-mps-control" <<'STUB'
control=$CUDA_MPS_PIPE_DIRECTORY/control
[ "$1" != -d ] || { echo start >>"$work/calls"; exec touch "$control"; }
read -r said
case $said in
get_server_list) [ -f "$work/daemon" ] || [ -f "$control" ] ;;
quit) echo quit >>"$work/calls"; rm "$control" ;;
esac
STUB
program "$work/bin/meson" <<'STUB'
how=alone names=$(seq 30)
[ ! -f "$CUDA_MPS_PIPE_DIRECTORY/control" ] || how=shared
case $* in
*--list*) for i in $names; do echo "libgrad:cuda / $i on cuda"; done; exit ;;
*--version*) exit ;;
*--suite*) ;;
*) names=1 ;;
esac
echo "suite, $how" >>"$work/calls"
[ "$(cat "$work/outcome")" != slow ] || exec sleep 600
for i in $names; do
        result=OK
        case "$(cat "$work/outcome") $how $i" in 'bad '*' 1' | 'mixed shared 1') result=FAIL ;; esac
        echo "{\"name\": \"libgrad:cuda / $i on cuda\", \"result\": \"$result\", \"duration\": 1}"
done >"$work/stub/meson-logs/gpu-check.json"
STUB
program "$work/bin/python" <<'STUB'
case $* in
*'import torch'*) echo '1 with CUDA'; exit ;;
*gpu_torch.py*) ;;
*) exec python3 "$@" ;;
esac
echo "${TORCHINDUCTOR_CACHE_DIR:-none} $*" >>"$work/calls"
echo '{"part": "begin", "by": "torch", "tf32": false, "parts": ["mlp"]}
{"part": "steps", "by": "eager", "name": "mlp", "batch": 64, "tf32": false, "us": 250.0}
{"part": "end", "by": "torch", "figures": 1, "failed_figures": 0, "left_out": 0}'
STUB
# on_gpu OUTCOME CALLS STATUS PATTERN: a verdict about the suite, and what was asked of the stubs.
on_gpu() {
        local calls=$2
        echo "$1" >"$work/outcome"
        : >"$work/calls"
        shift 2
        PATH=$work/bin:$PATH verdict "$@" --build "$work/stub" --peer none --parts suite
        [ "$(paste -sd ';' "$work/calls")" = "$calls" ] || fail "calls were: $(paste -sd ';' "$work/calls")"
}
on_gpu good 'start;suite, shared;quit' 0 '^passed$'
grep -q '^| MPS | used for the suite |$' "$work/report/report.md" || fail 'the report does not say that MPS was used'
on_gpu mixed 'start;suite, shared;quit;suite, alone' 0 '^passed$'
grep -q '^Failed with MPS, and run again without: 1 on cuda.$' "$work/report/report.md" || fail 'it does not say what failed with MPS'
on_gpu bad 'start;suite, shared;quit;suite, alone' 1 '^failed: suite \(30 tests: 29 passed, 1 failed'
touch "$work/daemon"
on_gpu good 'suite, alone' 0 '^passed$'
grep -q '^| MPS | was running |$' "$work/report/report.md" || fail 'it does not see that MPS is running'
rm "$work/daemon"
program "$work/stub/tools/gpu_bench" <<'STUB'
[ ! -f "$CUDA_MPS_PIPE_DIRECTORY/control" ]
STUB
on_gpu good 'start;quit;suite, alone' 0 '^passed$'
grep -q '^| MPS | does not work here |$' "$work/report/report.md" || fail 'it does not say that MPS does not work'

# A signal ends the suite, and MPS with it.
stub "$work/stub" 0 ''
echo slow >"$work/outcome"
: >"$work/calls"
PATH=$work/bin:$PATH "$root/tools/gpu-check" --out "$work/report" --build "$work/stub" --peer none --parts suite >"$work/out" 2>&1 &
check=$!
until grep -q suite "$work/calls" || ! kill -0 $check 2>/dev/null; do
        sleep 0.1
done
kill $check
wait $check
[ $? = 3 ] && tail -n 1 "$work/out" | grep -q '^incomplete: suite (ended by a signal)$' || fail 'a signal does not end it'
[ "$(paste -sd ';' "$work/calls")" = 'start;suite, shared;quit' ] || fail 'MPS was not stopped after a signal'

# Networks are compiled last, with one cache, and steps are compared with their predictions.
stub "$work/stub" 0 "$begin
$figure
$end"
: >"$work/calls"
PATH=$work/bin:$PATH verdict 0 '^passed$' --build "$work/stub" --python "$work/bin/python" --parts steps
[ "$(tail -n 2 "$work/calls" | grep -c '^/.*--modes compile')" = 2 ] && [ "$(grep -c compile "$work/calls")" = 2 ] &&
        [ "$(grep '^/' "$work/calls" | cut -d ' ' -f 1 | sort -u | wc -l)" = 1 ] || { cat "$work/calls"; fail 'compiled otherwise'; }
grep -q '^| mlp | f32 | 12, 12, 1.00 | 40, 50, 1.25 | 230-280, 250, 0.98 | 40-45, - | 150-200, - |$' "$work/report/report.md" ||
        fail 'the report has no predictions'
grep -q '^| steps | passed | [0-9]* s | 300-480 s |$' "$work/report/report.md" || fail 'the report has no predicted time'

wait
read -r code seconds <"$work/hang/end"
cp "$work/hang/out" "$work/out"
[ "$code" = 3 ] && [ "$seconds" -le 75 ] || fail "after a program that hangs: status $code after $seconds s"
grep -q '^incomplete: steps' "$work/out" && grep -q '^| mlp | 64 | f32 | 50 |' "$work/hang/report.md" || fail 'figures before a hang are lost'
echo good
