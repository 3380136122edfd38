# gpu_measure.sh - the parts kernels, steps and sanitizer of tools/gpu-check, which sources this file.

# figures SECONDS COMMAND...: appends lines of JSON to $jsonl. The program ends by itself after SECONDS, or before the part
# must, and reports what it left out; the longer limit here is for a program that hangs.
figures() {
        local seconds code
        seconds=$(least "$1" $((end - SECONDS - 3)))
        shift
        if [ "$seconds" -le 0 ]; then
                echo "- no time was left for \`${*##*/}\`" >>"$work/notes"
                [ $state = 1 ] || state=3
                return
        fi
        set -- "$@" --seconds "$seconds"
        seconds=$(least $((seconds + 60)) $((end - SECONDS))) # 60 s more, to finish a network that is being compiled
        echo "== $*" >>"$out/measure.log"
        limited "$seconds" "$@" >>"$jsonl" 2>>"$out/measure.log" </dev/null
        code=$?
        case $code in
        0 | 1 | 3) return ;; # failures are in the lines of JSON, and reported by gpu_report.py
        124 | 137) echo "- \`${*##*/}\` was ended after $seconds s" >>"$work/notes"; [ $state = 1 ] || state=3 ;;
        *) echo "- \`${*##*/}\` ended with exit status $code: $(tail -n 1 "$out/measure.log")" >>"$work/notes"; state=1 ;;
        esac
}

# measured NAME FUNCTION: runs FUNCTION, which measures figures, and prints them as tables.
measured() {
        local end=$((SECONDS + limit)) jsonl=$out/$1.jsonl state=0 code
        local bench=("$build/tools/gpu_bench") peer=("$python" tools/gpu_torch.py)
        built tools/gpu_bench || return 1
        : >"$jsonl"
        : >"$work/notes"
        "$2"
        "$python" tools/gpu_report.py figures "$jsonl" >"$work/tables"
        code=$?
        cat "$work/tables" "$work/notes"
        why=$(cat "$work/notes" - <<<"$(tail -n 1 "$work/tables")" | head -n 1 | cut -c 1-200)
        [ $code = 1 ] || [ $state = 0 ] || code=$state
        return $code
}

kernels() {
        [ $simulated = no ] || echo 'Of a simulation: only that each figure is there means something.'
        measured kernels kernel_figures || return
        "$python" tools/gpu_report.py coverage "$out/kernels.jsonl"
}

kernel_figures() {
        if [ $simulated = yes ]; then
                figures "$limit" "${bench[@]}" --small --batch 2 errors kernels transfers ops
                return
        fi
        figures 60 "${bench[@]}" errors transfers
        figures 20 "${bench[@]}" --tf32 errors
        figures 60 "${bench[@]}" kernels
        [ $peer = none ] || figures 60 "${peer[@]}" versions kernels transfers
        # Alternate between libgrad and PyTorch, so that changes of the machine's speed affect both.
        for _ in 1 2; do
                figures 10 "${bench[@]}" ops
                [ $peer = none ] || figures 10 "${peer[@]}" ops
        done
        figures 20 "${bench[@]}" --tf32 kernels
        [ $peer = none ] || figures 20 "${peer[@]}" --tf32 kernels
}

steps() {
        measured steps step_figures
}

step_figures() {
        local models=(mlp lenet cnn resnet18) tf32 runs=2
        if [ $simulated = yes ]; then
                figures "$limit" "${bench[@]}" --small --batch 2 mlp lenet
                return
        fi
        [ $peer = none ] || figures 5 "${peer[@]}" versions
        for _ in 1 2; do
                for tf32 in '' --tf32; do
                        figures 15 "${bench[@]}" $tf32 "${models[@]}"
                        [ $peer = none ] || figures 20 "${peer[@]}" $tf32 "${models[@]}"
                done
        done
        # Compiling takes minutes: it comes last, with all the time that is left, and the second run finds what the first compiled.
        export TORCHINDUCTOR_CACHE_DIR=$work/inductor
        for tf32 in '' --tf32; do
                [ $peer = none ] || figures $(((end - SECONDS) / runs--)) "${peer[@]}" $tf32 --modes compile "${models[@]}"
        done
        nvidia-smi --query-gpu=clocks.sm,temperature.gpu,power.draw --format=csv,noheader -i 0 2>/dev/null |
                sed 's/^/Clock, temperature and power at the end: /; s/$/./' >>"$work/notes"
}

# ---- compute-sanitizer ----

# sanitize TOOL NAME PROGRAM...: runs PROGRAM under TOOL once and writes the summary to $work/NAME.TOOL.sum.
sanitize() {
        local tool=$1 name=$2 code each
        shift 2
        each=$(least 60 $((end > SECONDS ? end - SECONDS : 0)))
        # racecheck skips the kernels of NVIDIA's libraries.
        [ "$tool" != racecheck ] ||
                set -- --kernel-name-exclude kns=cublas,kns=nvjet,kns=cutlass,kns=cudnn,kns=cufft,kns=cusolver,kns=fft,kns=sm80_,kns=sm90_ "$@"
        limited "$each" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 99 "$@" \
                >"$work/$name.$tool.out" 2>&1 </dev/null
        code=$?
        if [ $code = 124 ] || [ $code = 137 ]; then
                echo "not ended in $each s"
        else
                grep -E 'SUMMARY' "$work/$name.$tool.out" | tail -n 1 | sed 's/^=* *//'
                [ $code = 0 ] || echo "exit status $code"
        fi | paste -sd , >"$work/$name.$tool.sum"
        grep -hsE '^=========' "$work/$name.$tool.out" | head -n 60 >"$work/$name.$tool.log"
}

# clean FILE: succeeds if the summary reports no errors and the run ended normally.
clean() {
        grep -E ' 0 errors| 0 hazards' "$1" | grep -qv 'exit status'
}

sanitizer() {
        local name tool code=0 lanes end=$((SECONDS + limit)) names=(kernels)
        lanes=$(least 6 $(((cores + 1) / 2)))
        built tools/gpu_bench && built tests/tests || return 1
        sanitize memcheck probe "$build/tools/gpu_bench" --small --seconds 5 ops
        grep -q 'ERROR SUMMARY: 0 errors' "$work/probe.memcheck.sum" ||
                { why="it does not work here: $(grep -m 1 -i 'error\|supported' "$work/probe.memcheck.out")"; return 1; }
        for name in pointwise elementwise reduce reduce_made cumsum matmul conv pool batch_norm layer_norm gather embedding pad flip \
                sort softmax cross_entropy loss optim random draw; do
                names+=("$name")
        done
        export LG_TEST_DEVICE=cuda:0 LG_TEST_DATA=$root/tests/data LIBGRAD_SHADOW=$build/tests/shadow/libgrad-shadow.so
        for name in "${names[@]}"; do
                for tool in memcheck racecheck; do
                        while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do
                                wait -n
                        done
                        set -- "$build/tests/tests" "$name"
                        [ "$name" != kernels ] || set -- "$build/tools/gpu_bench" --small --seconds 20 kernels
                        aside sanitize $tool "$name" "$@"
                done
        done
        wait
        echo '| program | memcheck | racecheck |'
        echo '|---|---|---|'
        for name in "${names[@]}"; do
                echo "| $name | $(cat "$work/$name.memcheck.sum") | $(cat "$work/$name.racecheck.sum") |"
                for tool in memcheck racecheck; do
                        { echo "== $name $tool"; cat "$work/$name.$tool.log"; } >>"$out/sanitizer.log"
                        clean "$work/$name.$tool.sum" && continue
                        if grep -q 'not ended' "$work/$name.$tool.sum"; then
                                code=$((code ? code : 3))
                                why=${why:-$name under $tool did not end}
                        else
                                [ $code = 1 ] || why="$name under $tool: $(cat "$work/$name.$tool.sum")"
                                code=1
                        fi
                done
        done
        return $code
}
