#!/bin/sh
# release.sh - one version everywhere; every file that is installed belongs to one Debian package.
# release.sh SOURCE_ROOT BUILD_FOLDER MESON
set -eu
root=$1 build=$2 meson=$3
. "$(dirname "$0")/script.sh"

version=$(sed -n "1s/.* version: '\([^']*\)'.*/\1/p" "$root/meson.build")
[ -n "$version" ] || complain "meson.build has no version in its first line"
# same FILE FOUND: the version that was found in FILE is meson.build's.
same()
{
        [ "$2" = "$version" ] || complain "$1 has the version \"$2\", meson.build \"$version\""
}
# number NAME: the value of grad.h's LG_VERSION_NAME
number()
{
        sed -n "s/^#define LG_VERSION_$1 \([0-9]*\)\$/\1/p" "$root/libgrad/grad.h"
}
same libgrad/grad.h "$(sed -n 's/^#define LG_VERSION "\(.*\)"$/\1/p' "$root/libgrad/grad.h")"
same "libgrad/grad.h's three numbers" "$(number MAJOR).$(number MINOR).$(number PATCH)"
same CHANGELOG.md "$(sed -n 's/^## \([0-9.][0-9.]*\).*/\1/p' "$root/CHANGELOG.md" | head -n 1)"
same tools/debian/changelog "$(sed -n '1s/^libgrad (\(.*\)-[^-]*) .*/\1/p' "$root/tools/debian/changelog")"
for manual in "$root"/models/*.1 "$root"/tools/*.1; do
        same "${manual#"$root"/}" "$(sed -n '1s/.*"libgrad \([0-9.]*\)".*/\1/p' "$manual")"
done

# The lists of the packages have Debian's folders: the prefix is /usr, and lib has a folder for each machine.
"$meson" introspect --installed "$build" | tr ',' '\n' | sed -n 's/.*": "\([^"]*\)".*/\1/p' >"$work/paths"
prefix=$(sed -n 's|/include/grad\.h$||p' "$work/paths")
[ -n "$prefix" ] || complain "include/grad.h is not installed"
sed "s|^$prefix/|usr/|; s|^usr/lib[^/]*/|usr/lib/|; s|^usr/lib/\([a-z0-9_]*-linux-[a-z]*/\)\{0,1\}|usr/lib/any/|" "$work/paths" |
        grep -v '/libgrad-cuda\.so\.0$' | sort >"$work/installed" # the CUDA module is not packaged
[ "$(wc -l <"$work/installed")" -ge 25 ] || complain "only $(wc -l <"$work/installed") files are installed"
while read -r file; do
        found=''
        for list in "$root"/tools/debian/*.install; do
                name=${list##*/}
                while read -r pattern _; do
                        # shellcheck disable=SC2254
                        case $file in $pattern) found="$found $name" ;; esac
                done <"$list"
        done
        case $found in
        '') complain "$file is in no package: add it to one of tools/debian/*.install" ;;
        ' '*' '*) complain "$file is listed more than once:$found" ;;
        esac
done <"$work/installed"
[ $status = 0 ] && echo "version $version, $(wc -l <"$work/installed") files in packages"
exit $status
