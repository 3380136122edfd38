# setup.sh - what tools/train and tools/test share: installing what is missing, building. To be sourced by bash.

# Where the clone is.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
        echo "$0: $*" >&2
        exit 2
}

as_root() {
        if [ "$(id -u)" = 0 ]; then
                DEBIAN_FRONTEND=noninteractive "$@"
        elif command -v sudo >/dev/null; then
                sudo DEBIAN_FRONTEND=noninteractive "$@"
        else
                fail "these packages are missing and need root or sudo to install: $missing"
        fi
}

# need_packages NAME...: installs those Debian packages that are not there.
need_packages() {
        local p
        missing=
        for p; do
                [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
        done
        [ -n "$missing" ] || return 0
        command -v apt-get >/dev/null || fail "these Debian packages are missing:$missing"
        echo "installing:$missing" >&2
        # shellcheck disable=SC2086
        as_root apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 && return 0
        as_root apt-get update -q >&2 || fail "apt-get update failed"
        # shellcheck disable=SC2086
        as_root apt-get install -y -q --no-install-recommends $missing >&2 || fail "could not install:$missing"
}

# need_compiler: what the library needs to be built; a compiler of the user's choice in $CC is taken as it is.
need_compiler() {
        local compiler="gcc libc6-dev"
        [ -z "${CC:-}" ] || compiler=
        # shellcheck disable=SC2086
        need_packages $compiler meson ninja-build pkg-config zlib1g-dev libopenblas-serial-dev
}

# build FOLDER OPTION...: sets up a build folder of the clone if there is none, and compiles.
build() {
        local folder=$1 log
        shift
        log=$(mktemp)
        if ! { [ -f "$root/$folder/build.ninja" ] || meson setup "$root/$folder" "$root" "$@"; } >"$log" 2>&1 ||
                ! ninja -C "$root/$folder" >>"$log" 2>&1; then
                tail -n 60 "$log" >&2
                rm -f "$log"
                fail "the build in $folder failed"
        fi
        rm -f "$log"
}
