# roots.sh - fresh Debian 12 systems, each in a folder, to build, install and test in. To be sourced by bash, as root.
# shellcheck shell=bash
#
# The first root is made by debootstrap, the others are copies of it. Commands in a root run in namespaces of their own for
# mounts and processes, so that both end with the command, and nothing is mounted for the rest of the machine.

roots_mirror=http://deb.debian.org/debian

# roots_begin FOLDER: the roots are made in a new folder below this one, which roots_end removes.
roots_begin() {
        [ "$(id -u)" = 0 ] || { echo 'fresh Debian roots are made as root' >&2; return 1; }
        command -v debootstrap >/dev/null || { echo 'debootstrap is missing' >&2; return 1; }
        roots=$(mktemp -d "$1/roots.XXXXXX") && chmod 755 "$roots"
}

roots_end() {
        [ -z "${roots-}" ] || rm -rf --one-file-system "$roots"
}

# isolated ARGUMENT OF unshare...: in namespaces that end with it.
isolated() {
        unshare --mount --pid --fork --kill-child "$@"
}

# root_base: a minimal Debian with the lists of its packages and a user "builder", made once.
root_base() {
        [ ! -d "$roots/base" ] || return 0
        isolated debootstrap --variant=minbase bookworm "$roots/making" "$roots_mirror" &&
                cp /etc/resolv.conf "$roots/making/etc/" &&
                cp -r /etc/apt/apt.conf.d/. "$roots/making/etc/apt/apt.conf.d/" &&
                root_in making root apt-get update && root_in making root useradd --create-home --shell /bin/bash builder &&
                mv "$roots/making" "$roots/base"
}

# root_new NAME PACKAGE...: a fresh root with these packages; $roots/NAME is its folder.
root_new() {
        local name=$1
        shift
        root_base && cp -a --reflink=auto "$roots/base" "$roots/$name" &&
                root_in "$name" root apt-get install -y --no-install-recommends "$@"
}

# root_in NAME USER COMMAND...: runs it there, in USER's home.
root_in() {
        local name=$1 user=$2 home=/home/$2
        shift 2
        [ "$user" != root ] || home=/root
        isolated --mount-proc="$roots/$name/proc" chroot --userspec="$user:$user" "$roots/$name" \
                env -i --chdir="$home" HOME="$home" USER="$user" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
                PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
