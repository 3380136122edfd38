# options.sh - what tests of programs share: wrong uses, full disks, the manual. $program and $manual are set.
# fails CODE WORDS ARGUMENTS...
fails()
{
        code=$1 words=$2
        shift 2
        got=0
        "$program" "$@" >"$work/out" 2>"$work/err" || got=$?
        [ $got = "$code" ] || complain "$*: exit $got, not $code"
        grep -q -e "$words" "$work/err" || complain "$*: says \"$(cat "$work/err")\", not \"$words\""
}
# full WORDS ARGUMENTS...: a disk that is full, as the standard output
full()
{
        words=$1 got=0
        shift
        "$@" >/dev/full 2>"$work/err" || got=$?
        [ $got = 1 ] || complain "$* on a full disk: exit $got, not 1"
        grep -q -e "$words" "$work/err" || complain "$* on a full disk: says \"$(cat "$work/err")\", not \"$words\""
}
# documented: every option of --help is in the manual
documented()
{
        for option in $("$program" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p'); do
                grep -q -- "$(echo "$option" | sed 's/-/\\\\-/g')" "$manual" || complain "the manual lacks $option"
        done
}

# written FOLDER TAG: how often the files for TensorBoard in a folder have the tag
written()
{
        cat "$1"/events.out.tfevents.* | LC_ALL=C grep -a -o "$2" | wc -l
}
