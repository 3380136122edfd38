# figures.sh PYTHON GPU_BENCH GPU_REPORT: every part of gpu_bench over the simulated device, and the report of it.
set -u
python=$1 bench=$2 report=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() {
        echo "$*"
        exit 1
}
# status EXPECTED WHAT COMMAND...: its output into $work/out
status() {
        local expected=$1 what=$2 code
        shift 2
        "$@" >"$work/out" 2>&1
        code=$?
        [ $code = "$expected" ] || { tail -n 15 "$work/out"; fail "$what: exit status $code, not $expected"; }
}

status 0 'gpu_bench' "$bench" --small --batch 2 --seconds 100 kernels ops transfers mlp lenet errors
cp "$work/out" "$work/figures"
status 0 'gpu_bench --tf32' "$bench" --small --batch 2 --seconds 100 --tf32 kernels mlp errors
cat "$work/out" >>"$work/figures"
status 0 'the report' "$python" "$report" figures "$work/figures"
for section in Kernels 'Small ops' 'Training steps' Transfers Errors; do
        grep -q "^### $section" "$work/out" || fail "the report has no section $section"
done
for row in '| gemm | f16 |' '| gemm | tf32 |' '| pinned host to device |' '| mlp | 2 | TF32 |' '| conv2d backward |' \
        '| log1p |'; do
        grep -qF "$row" "$work/out" || fail "the report has no row $row"
done
tail -n 1 "$work/out" | grep -q '^Complete; [0-9]* figures\.$' || fail 'the report is not complete'
grep '"name": "lenet"' "$work/figures" | grep -q '"launches": [1-9]' || fail 'launches are not counted'

# Every kernel has a row; one without is told.
status 0 'coverage' "$python" "$report" coverage "$work/figures"
grep -v '"name": "cumsum' "$work/figures" >"$work/fewer"
status 1 'coverage without cumsum' "$python" "$report" coverage "$work/fewer"
grep -q '^cumsum has no row' "$work/out" || fail 'coverage does not say that cumsum has no row'

# No time, a run that was cut off, a part without figures, a figure that failed.
status 3 'gpu_bench without time' "$bench" --small --seconds 0 kernels ops
grep -q '"part": "end", "figures": 0, "failed_figures": 0, "left_out": [1-9]' "$work/out" || fail 'nothing was left out'
cat "$work/figures" "$work/out" >"$work/late"
status 3 'the report of figures left out' "$python" "$report" figures "$work/late"
tail -n 1 "$work/out" | grep -q '^Incomplete; .*gpu_bench left' || fail 'the report does not say what was left out'
head -n 20 "$work/figures" >"$work/cut"
status 3 'the report of a run cut off' "$python" "$report" figures "$work/cut"
grep -v '"part": "ops"' "$work/figures" >"$work/fewer"
status 1 'the report without ops' "$python" "$report" figures "$work/fewer"
grep -q 'gpu_bench printed nothing of ops' "$work/out" || fail 'the report does not say that ops are not there'
sed 's/\("name": "tanh", "dtype": "f16".*\)}$/\1, "failed": "on purpose"}/' "$work/figures" >"$work/wrong"
status 1 'the report of a failure' "$python" "$report" figures "$work/wrong"
grep -q '^| tanh |.*\*\*failed\*\*' "$work/out" || fail 'the table does not show what failed'
tail -n 1 "$work/out" | grep -q '^Failed: 1 ' || fail 'the report does not say that it failed'
# What is no model.
status 1 'gpu_bench of no such model' "$bench" --small --seconds 100 nosuchmodel
grep -q '"name": "nosuchmodel".*"failed"' "$work/out" || fail 'an unknown model is not told'
