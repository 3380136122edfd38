#!/bin/sh
# hosts.sh - hosts.sh MPIRUN COLLECTIVE PARALLEL LIVES: two processes on two hosts, which are network namespaces of this
# machine with a host name each: what groups do, and what happens when the network between them is cut. Open MPI's own
# messages go by another network. Needs root and iproute2; 77: this machine does not allow it.
mpirun=$1 collective=$2 parallel=$3 lives=$4
a=lg-a-$$ b=lg-b-$$
folder=$(mktemp -d)
trap 'ip netns del $a; ip netns del $b; rm -rf "$folder"' EXIT 2>/dev/null
join() {
        ip link add "$1" netns $a type veth peer name "$1" netns $b &&
                ip -n $a addr add "$2.1/24" dev "$1" && ip -n $b addr add "$2.2/24" dev "$1" &&
                ip -n $a link set "$1" up && ip -n $b link set "$1" up
}
{ ip netns add $a && ip netns add $b && ip -n $a link set lo up && ip -n $b link set lo up && join control 10.97.0 &&
        join data 10.97.1 && ip netns exec $a unshare --uts true; } 2>"$folder/why" || { cat "$folder/why"; exit 77; }
cat >"$folder/remote" <<END
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c "hostname lg-b; \$*"
END
chmod +x "$folder/remote"

# hosts COMMAND...: on both; what it says is kept.
hosts() {
        printf 'hostname lg-a\nexec "$@"\n' >"$folder/local"
        said=$(PMIX_MCA_plog='^default' timeout 100 ip netns exec $a unshare --uts sh "$folder/local" "$mpirun" \
                --allow-run-as-root --enable-recovery --bind-to none --mca plm_rsh_agent "$folder/remote" \
                --mca oob_tcp_if_include 10.97.0.0/24 --mca btl tcp,self --mca btl_tcp_if_include 10.97.1.0/24 \
                --mca mpi_yield_when_idle 1 --host lg-a:1,10.97.0.2:1 -x LIBGRAD_MPI -n 2 "$@" 2>&1)
        [ "$(echo "$said" | grep -o held | wc -l)" = 2 ] && return
        echo "$*: $said"
        exit 1
}
hosts "$collective"
hosts "$parallel" lenet adam f64 3 1e-8 small
(sleep 3; ip -n $b link set data down) &
hosts "$lives" "$folder/run" 0 99 0
wait
