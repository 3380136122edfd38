# setup.sh - functions shared by tools/train, tools/test and .ci/run: installing packages, building. Sourced by bash.

as_root() {
        if [ "$(id -u)" = 0 ]; then
                "$@"
        elif command -v sudo >/dev/null; then
                sudo "$@"
        else
                echo "packages are missing and neither root nor sudo is at hand; install: ${missing[*]}" >&2
                return 1
        fi
}

# reported WORDS LOG COMMAND...: runs COMMAND with its output in LOG. Prints WORDS, every five seconds the last line of LOG,
# and after a failure the end of LOG.
reported() {
        local words=$1 log=$2 ticks=0 pid code
        shift 2
        echo "$words"
        "$@" >"$log" 2>&1 </dev/null &
        pid=$!
        while kill -0 $pid 2>/dev/null; do
                sleep 0.2
                ticks=$((ticks + 1))
                [ $((ticks % 25)) != 0 ] || echo "  $((ticks / 5)) s: $(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c 1-100)"
        done
        code=0
        wait $pid || code=$?
        [ $code = 0 ] || tail -n 40 "$log"
        return $code
} >&2

# reported_here WORDS COMMAND...: does the same with a temporary LOG.
reported_here() {
        local words=$1 log code=0
        shift
        log=$(mktemp)
        reported "$words" "$log" "$@" || code=$?
        rm -f "$log"
        return $code
}

# need_packages NAME...: installs the Debian packages of the list that are not installed yet.
need_packages() {
        command -v dpkg-query >/dev/null || { echo 'not a Debian system: install by hand what README.md names' >&2; return 0; }
        missing=()
        for package in "$@"; do
                [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
        done
        [ ${#missing[@]} = 0 ] && return 0
        reported_here 'reading the lists of packages' as_root apt-get update &&
                reported_here "installing ${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
                        apt-get install -y --no-install-recommends "${missing[@]}"
}

build_packages=(gcc libc6-dev meson ninja-build pkg-config zlib1g-dev libpng-dev libdlpack-dev)
train_packages=("${build_packages[@]}" dataset-fashion-mnist)
mpi_packages=(openmpi-bin libopenmpi-dev)
pack_packages=(gcc binutils libcmocka-dev zlib1g-dev dataset-fashion-mnist)
test_packages=("${train_packages[@]}" g++ libcmocka-dev doxygen \
        libopenmpi-dev openmpi-bin libmpich-dev mpich \
        libpcre2-dev libutf8proc-dev libzip-dev libbz2-dev libssl-dev) # the last two are needed to link libzip statically

command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin

# configure FOLDER OPTION...: makes a meson build folder if FOLDER is none yet.
configure() {
        local folder=$1
        shift
        [ -e "$folder/build.ninja" ] || reported_here "configuring $folder" meson setup "$folder" "$@"
}

# reconfigure_for_mpi FOLDER: configures FOLDER again if an MPI was installed after it was made.
reconfigure_for_mpi() {
        local name
        for name in openmpi:ompi-c mpich:mpich; do
                if pkg-config --exists "${name#*:}" && ! grep -q "libgrad-${name%:*}.so.1" "$1/build.ninja" &&
                        ! grep -q "^${name%:*} = disabled" "$1/meson-private/cmd_line.txt"; then
                        reported_here "configuring $1 again, for messages between processes" meson setup --reconfigure "$1"
                        return
                fi
        done
}

# build_installed WORDS FOLDER: builds only the targets that meson install installs, no examples, benchmarks or tests.
build_installed() {
        local targets
        targets=$(meson introspect --targets "$2" | python3 -c 'import json, os, sys
for target in json.load(sys.stdin):
    for path in target["filename"] if target["installed"] else []:
        print(os.path.relpath(path, sys.argv[1]))' "$2")
        mapfile -t targets <<<"$targets"
        reported_here "$1" ninja -C "$2" "${targets[@]}"
}

# beating COMMAND...: runs COMMAND, and prints the time every eight seconds unless the output is a terminal.
beating() {
        local pid beat='' code=0
        if [ ! -t 1 ]; then
                (while sleep 8; do echo "  $SECONDS s"; done) &
                beat=$!
        fi
        "$@" || code=$?
        [ -z "$beat" ] || kill "$beat" 2>/dev/null
        return $code
}
