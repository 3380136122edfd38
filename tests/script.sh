# script.sh - what test scripts share: a folder that goes with them, and complaints. They end by exit $status.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
complain()
{
        echo "$1"
        status=1
}
