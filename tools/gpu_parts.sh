# gpu_parts.sh - the requirements of tools/gpu-check, and its parts build, suite and train; sourced by tools/gpu-check.

# ---- facts about the machine, and requirements ----

# macros FILE NAME...: prints the numbers that a header defines under these names, with dots between them.
macros() {
        local file=$1 text=''
        shift
        [ -f "$file" ] || return 1
        for name in "$@"; do
                text+=.$(sed -n "s/^#define *$name *\([0-9]*\).*/\1/p" "$file" | head -n 1)
        done
        echo "${text#.}"
}

fact() {
        echo "| $1 | ${2:-not there} |" >>"$work/facts"
}

# compiles COMPILER LANGUAGE TEXT [ARGUMENT...]: succeeds if TEXT compiles and links.
compiles() {
        local compiler=$1 language=$2 text=$3
        shift 3
        printf '%s\nint main(void) { return 0; }\n' "$text" | "$compiler" -x "$language" - -o "$work/a.out" "$@" >/dev/null 2>&1
}

# found_header COMPILER NAME: prints the path at which the compiler finds a header.
found_header() {
        echo "#include <$2>" | "$1" -E -isystem "$cuda/include" -x c++ - 2>/dev/null |
                sed -n "s|^# 1 \"\(/[^\"]*/$2\)\".*|\1|p" | head -n 1
}

# add_path VARIABLE FOLDER: puts FOLDER in front of a list of paths.
add_path() {
        export "$1=$2${!1:+:${!1}}"
}

# Checks that the folder made by tools/gpu-pack is complete and unchanged, and uses its files.
use_deps() {
        local bad
        [ -f "$deps/SHA256SUMS" ] || { missing "$deps/SHA256SUMS"; return; }
        bad=$(cd "$deps" && sha256sum -c SHA256SUMS 2>/dev/null | sed -n 's/: FAILED.*//p')
        for name in $bad; do
                missing "$deps/$name ($([ -e "$deps/$name" ] && echo 'not what gpu-pack wrote' || echo 'not there'))"
        done
        add_path CPATH "$deps/include"
        add_path LIBRARY_PATH "$deps/lib"
        add_path LD_LIBRARY_PATH "$deps/lib"
        data=$deps/fashion-mnist
}

# Uses cuBLAS, cuDNN, cuFFT, cuSOLVER and NCCL of NVIDIA's Python packages if the toolkit has none.
use_python_packages() {
        local folder
        for header in cublasLt.h cudnn.h cufftXt.h cusolverDn.h nccl.h; do
                [ -z "$(found_header c++ $header)" ] || continue
                while read -r folder; do
                        [ -f "$folder/include/$header" ] || continue
                        add_path CPATH "$folder/include"
                        add_path LD_LIBRARY_PATH "$folder/lib"
                        mkdir -p "$work/lib"
                        for file in "$folder"/lib/libcublasLt.so.*; do
                                [ ! -e "$file" ] || ln -sf "$file" "$work/lib/libcublasLt.so"
                        done
                        add_path LIBRARY_PATH "$work/lib"
                        break
                done < <("$python" -c 'import glob, nvidia
for base in nvidia.__path__:
    print("\n".join(glob.glob(base + "/*")))' 2>/dev/null)
        done
}

missing() {
        lacks+=("$1")
}

# needs_of: adds to `lacks` what the requested parts need and this machine does not have.
needs_of() {
        if asked build; then
                for name in cc c++ meson ninja; do
                        command -v $name >/dev/null || missing "$name"
                done
                compiles cc c '#include <zlib.h>' || missing zlib.h
                compiles cc c '' -lz || missing libz.so
                compiles cc c '#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>' || missing cmocka.h
                compiles cc c '' -lcmocka || missing libcmocka.so
                [ $simulated = yes ] || command -v nvcc >/dev/null || missing nvcc
                for name in cuda_runtime.h cublasLt.h cudnn.h cufftXt.h cusolverDn.h; do
                        [ -n "$(found_header c++ $name)" ] || missing "$name"
                done
        fi
        command -v "$python" >/dev/null || missing "$python"
        if asked train; then
                for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
                        ls "$data/$name"-ubyte* >/dev/null 2>&1 || missing "$data/$name-ubyte"
                done
        fi
        if asked sanitizer; then
                [ $simulated = no ] || missing 'a GPU, for compute-sanitizer (the simulation checks accesses by itself)'
                command -v compute-sanitizer >/dev/null || missing compute-sanitizer
        fi
        if [ $peer = torch ] && { asked kernels || asked steps; }; then
                case $torch in *'with CUDA') ;; *) missing "PyTorch with CUDA in $python (--peer none does without)" ;; esac
        fi
}

card() {
        local query=name,driver_version,compute_cap,memory.total,memory.used,clocks.sm,clocks.max.sm,clocks.mem,power.limit
        local names=(card driver 'compute capability' memory 'memory in use before' 'clock at rest' 'greatest clock' \
                'memory clock' 'power limit') i=0
        nvidia-smi --query-gpu=$query --format=csv,noheader -i 0 2>/dev/null >"$work/card" || return 1
        while IFS= read -r value; do
                fact "${names[i++]}" "${value# }"
        done < <(tr , '\n' <"$work/card")
        arch=$(cut -d , -f 3 "$work/card" | tr -d ' .')
        case $arch in '' | *[!0-9]*) arch='' ;; *) arch=sm_$arch ;; esac
        fact 'others on it' "$(nvidia-smi --query-compute-apps=pid --format=csv,noheader -i 0 2>/dev/null | wc -l) processes"
}

versions() {
        fact CUDA "$(nvcc --version 2>/dev/null | sed -n 's/.*release \(.*\)/\1/p')"
        fact cuBLAS "$(macros "$(found_header c++ cublas_api.h)" CUBLAS_VER_MAJOR CUBLAS_VER_MINOR CUBLAS_VER_PATCH)"
        fact cuDNN "$(macros "$(found_header c++ cudnn_version.h)" CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)"
        fact cuFFT "$(macros "$(found_header c++ cufft.h)" CUFFT_VER_MAJOR CUFFT_VER_MINOR CUFFT_VER_PATCH)"
        fact cuSOLVER "$(macros "$(found_header c++ cusolver_common.h)" CUSOLVER_VER_MAJOR CUSOLVER_VER_MINOR CUSOLVER_VER_PATCH)"
        fact NCCL "$(macros "$(found_header c++ nccl.h)" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)"
        fact compute-sanitizer "$(compute-sanitizer --version 2>/dev/null | sed -n 's/^Version *//p')"
        fact compilers "$(cc --version 2>/dev/null | head -n 1), meson $(meson --version 2>/dev/null)"
        fact PyTorch "$torch"
        fact 'brought along' "$([ -z "$deps" ] || tr '\n' ';' <"$deps/VERSIONS" 2>/dev/null)"
}

# look: collects facts. Before anything is built, records one failure that names everything missing.
look() {
        local list lacks=()
        fact date "$(date -u '+%Y-%m-%d %H:%M UTC')"
        fact commit "$(git log -1 --format='%h %s' 2>/dev/null || cat .commit 2>/dev/null ||
                sed -n "1s/.* version: '\([^']*\)'.*/version \1, not a git checkout/p" "$root/meson.build")"
        fact machine "$cores cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo)"
        if [ $simulated = yes ]; then
                fact card 'simulated by tests/cudasim'
        elif ! card; then
                fact card 'nvidia-smi is not there or sees none'
                [ -n "$(ldconfig -p 2>/dev/null | grep 'libcuda\.so\.1')" ] ||
                        missing 'a GPU: nvidia-smi sees none, libcuda.so.1 is not there (see --simulated)'
        fi
        ! command -v nvcc >/dev/null || cuda=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
        [ -z "$deps" ] || use_deps
        ! command -v c++ >/dev/null || use_python_packages
        limited "$(least 90 "$(left)")" "$python" -c 'import torch
print(torch.__version__, "with CUDA" if torch.cuda.is_available() else "without CUDA")' >"$work/torch" 2>/dev/null
        torch=$(cat "$work/torch")
        versions
        needs_of
        [ ${#lacks[@]} != 0 ] || return 0
        list=$(printf '%s; ' "${lacks[@]}")
        failed+=("missing: ${list%; }")
}

# ---- parts ----

build_it() {
        local options=(--buildtype=release -Dmodels=enabled -Dtests=enabled) verb=() code end=$((SECONDS + limit))
        if [ $simulated = yes ]; then
                options+=(-Disas=portable -Dcuda=disabled -Dcudasim=enabled)
        else
                options+=(-Dcuda=enabled -Dcudasim=disabled ${arch:+"-Dgpu_archs=['$arch']"})
                ! nvcc --help 2>/dev/null | grep -q split-compile || export NVCC_APPEND_FLAGS=--split-compile=0
        fi
        [ ! -f "$build/build.ninja" ] || verb=(--reconfigure)
        {
                limited "$limit" meson setup "${verb[@]}" "$build" "${options[@]}" &&
                        limited $((end - SECONDS)) ninja -k 0 -j "$cores" -C "$build"
        } >"$out/build.log" 2>&1 </dev/null
        code=$?
        echo "\`meson setup ${options[*]}\` and ninja on $cores cores."
        case $code in
        0) return 0 ;;
        124 | 137) why="not built in $limit s"; return 3 ;;
        esac
        echo '```'
        grep -nE 'FAILED|rror' "$out/build.log" | head -n 20 | cut -c 1-300
        tail -n 5 "$out/build.log" | cut -c 1-300
        echo '```'
        why=$(grep -E 'rror' "$out/build.log" | head -n 1 | cut -c 1-200)
        return 1
}

# built PROGRAM: succeeds if PROGRAM, a path in the build folder, was built.
built() {
        [ -x "$build/$1" ] && return 0
        why="$1 was not built; add build to --parts"
        return 1
}

open_device() {
        [ -x "$build/tools/gpu_bench" ] || { echo 'gpu_bench was not built; add build to --parts'; return 1; }
        {
                printf '\n## device\n\n```\n'
                timeout "$(least 60 "$(left)")" "$build/tools/lg-info" 2>&1 | head -n 60
                echo '```'
        } >>"$work/body"
        timeout "$(least 60 "$(left)")" "$build/tools/gpu_bench" device
}

# ---- MPS: the suite's processes share the GPU without taking turns ----

# Says something to MPS's control daemon, in its own folder if this script started it.
tell_mps() {
        timeout 20 nvidia-cuda-mps-control <<<"$1" >/dev/null 2>&1
}

# Starts MPS for the suite if it is there, does not run and works. It changes no setting of the card.
start_mps() {
        local said='not there'
        if [ $simulated = no ] && command -v nvidia-cuda-mps-control >/dev/null; then
                said='was running'
                if ! tell_mps get_server_list; then
                        mkdir "$work/mps"
                        mps=$work/mps
                        export CUDA_MPS_PIPE_DIRECTORY=$mps CUDA_MPS_LOG_DIRECTORY=$mps
                        said='used for the suite'
                        timeout 20 nvidia-cuda-mps-control -d >/dev/null 2>&1 3>&- &&
                                timeout 60 "$build/tools/gpu_bench" device >/dev/null 2>&1 ||
                                { said='does not work here'; stop_mps; }
                fi
        fi
        fact MPS "$said"
}

stop_mps() {
        [ -n "$mps" ] || return 0
        tell_mps quit
        mps=''
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# run_suite LOG ARGUMENT...: lets meson run tests, and appends their outcomes to LOG.
run_suite() {
        local to=$1 log=$build/meson-logs/gpu-check.json code
        shift
        rm -f "$log"
        limited $((end - SECONDS)) meson test -C "$build" --no-rebuild --logbase gpu-check "$@" >>"$out/suite.log" 2>&1 </dev/null
        code=$?
        [ ! -f "$log" ] || cat "$log" >>"$to"
        return $code
}

suite() {
        local name=cuda log=$work/suite.json code list end=$((SECONDS + limit)) names=()
        [ $simulated = no ] || name=cudasim
        list=$(meson test -C "$build" --no-rebuild --list --suite $name 2>/dev/null | grep -c ' / ')
        [ "$list" -ge 30 ] || { why="only $list tests of the suite $name were built"; return 1; }
        start_mps
        run_suite "$log" --suite "$name" --num-processes "$(least 6 "$cores")"
        code=$?
        # A fault of one process ends all that share the GPU through MPS: what failed is run again without it.
        [ -z "$mps" ] || mapfile -t names < <("$python" tools/gpu_report.py suite "$log" "$list" 2>/dev/null |
                sed -n 's|^[*][*].* / \(.*\)[*][*]: .*|\1|p')
        stop_mps
        if [ ${#names[@]} != 0 ]; then
                echo "Failed with MPS, and run again without: ${names[*]}."
                run_suite "$log" --num-processes 1 "${names[@]}"
                code=$?
        fi
        [ -f "$log" ] || { why=$(tail -n 1 "$out/suite.log"); return 1; }
        "$python" tools/gpu_report.py suite "$log" "$list" >"$work/suite" 2>&1
        set -- $?
        cat "$work/suite"
        if [ $code = 124 ] || [ $code = 137 ]; then
                why="the suite did not end in $limit s; $(head -n 1 "$work/suite")"
                [ "$1" != 1 ] || return 1
                return 3
        fi
        why=$(head -n 1 "$work/suite")
        [ "$1" = 0 ] && [ $code = 0 ]
}

# train MODEL DEVICE STEPS BATCH: trains and writes the losses to $work/MODEL.DEVICE.log.
train() {
        local lr=0.01
        [ "$1" != resnet18 ] || lr=0.001
        NVIDIA_TF32_OVERRIDE=0 limited "$limit" "$build/models/fashion-mnist" --data "$images" --model "$1" --device "$2" \
                --steps "$3" --batch "$4" --optimizer sgd --lr $lr --schedule none --seed 1 --log-steps 1 --quiet \
                >"$work/$1.$2.log" 2>&1 </dev/null
}

# Prints lines of a model, its steps on the device, its steps on the CPU, and the batch size.
train_rows() {
        if [ $simulated = yes ]; then
                printf '%s\n' 'mlp 8 8 16' 'lenet 5 5 8' 'cnn 1 1 2'
        else
                printf '%s\n' 'mlp 300 300 64' 'lenet 300 300 64' 'cnn 300 300 64' 'resnet18 200 20 64'
        fi
}

training() {
        local code=0 end=$((SECONDS + limit)) model steps cpu_steps batch images=$data
        built models/fashion-mnist || return 1
        if [ $simulated = yes ]; then
                images=$work/images
                mkdir -p "$images"
                "$python" tools/gpu_report.py cut "$data" "$images" 160 16 || return 1
        fi
        echo 'SGD, f32, the same seed on the CPU and on cuda:0, Fashion-MNIST. The first 5 losses (resnet18: 3) may differ by 1e-3,'
        echo 'relatively; the mean of the last ten that both have by a tenth (or 0.01); a run of 50 steps or more must lower the loss.'
        echo
        echo '| model | CPU steps | CUDA steps | first 5 apart | CPU loss | CUDA loss | CPU accuracy | CUDA accuracy | |'
        echo '|---|---|---|---|---|---|---|---|---|'
        while read -r model steps cpu_steps batch; do
                limit=$((end - SECONDS))
                [ $limit -gt 3 ] || { why="no time for $model"; code=$((code ? code : 3)); continue; }
                aside train "$model" cuda:0 "$steps" "$batch"
                train "$model" cpu "$cpu_steps" "$batch"
                wait
                "$python" tools/gpu_report.py losses "$model" "$work/$model.cpu.log" "$work/$model.cuda:0.log" ||
                        { code=1; why="$model: $(tail -n 1 "$work/$model.cuda:0.log" | cut -c 1-150)"; }
                for device in cpu cuda:0; do
                        { echo "== $model on $device"; cat "$work/$model.$device.log"; } >>"$out/training.log"
                done
        done < <(train_rows)
        return $code
}
