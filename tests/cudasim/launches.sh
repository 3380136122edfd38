# launches.sh GPU_BENCH: what an Adam step of each model launches, libraries' calls included: no more than it did.
set -u
bench=$1 bad=0
while read -r model most; do
        line=$("$bench" --seconds 250 --batch 4 "$model" | grep '"launches"')
        now=$(printf '%s\n' "$line" | sed 's/.*"launches": \([0-9]*\).*/\1/')
        echo "$model: ${now:-no} launches, at most $most"
        [ "${now:-0}" -gt 0 ] && [ "$now" -le "$most" ] || bad=1
done <<TABLE
mlp 13
lenet 35
cnn 29
resnet18 188
TABLE
exit $bad
