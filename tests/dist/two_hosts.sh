#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpirun over two "hosts", network namespaces with host names of their own, two ranks on each: init(), then a sum, over MPI and
# over Gloo. Usage: two_hosts.sh RANK_PROGRAM. Needs root, iproute2 and mpirun; says so and is skipped (exit code 77) without.
set -euo pipefail
rank=$1
skip() {
  echo "SKIPPED: $*"
  exit 77
}
for program in ip mpirun unshare hostname; do
  command -v $program >/dev/null || skip "two hosts need $program (Debian: iproute2 openmpi-bin util-linux hostname)"
done
a=weft$$a b=weft$$b
ip netns add $a 2>/dev/null || skip "network namespaces need root, and a kernel that has them"
dir=$(mktemp -d /tmp/weft_hosts.XXXXXX)
trap 'ip netns del $a; ip netns del $b 2>/dev/null || true; rm -rf "$dir"' EXIT
ip netns add $b
ip link add $a netns $a type veth peer name $b netns $b 2>/dev/null || skip "this kernel has no veth"
ip -n $a addr add 10.231.8.1/24 dev $a
ip -n $b addr add 10.231.8.2/24 dev $b
for host in $a $b; do
  ip -n $host link set $host up
  ip -n $host link set lo up
done

# What mpirun takes for ssh: its first argument is the host, and there is only one other.
cat > "$dir/agent" <<EOF
#!/bin/bash
shift
exec ip netns exec $b unshare --uts bash -c "hostname $b; \$*"
EOF
chmod +x "$dir/agent"
export HOME=$dir OMP_NUM_THREADS=1
# Without MASTER_ADDR rank 0 tells its address through MPI.
for master in "-x MASTER_ADDR=10.231.8.1" ""; do for backend in mpi gloo; do
  output=$(ip netns exec $a unshare --uts bash -c "hostname $a; exec timeout 60 mpirun --allow-run-as-root --bind-to none -np 4 \
    --host 10.231.8.1:2,10.231.8.2:2 --mca plm_rsh_agent $dir/agent --mca btl tcp,self --mca btl_tcp_if_include 10.231.8.0/24 \
    --mca oob_tcp_if_include 10.231.8.0/24 $master -x HOME $rank sum $backend" 2>&1) ||
    { echo "$backend, '$master' failed: $output"; exit 1; }
  for r in 0 1 2 3; do
    grep -qx "rank $r of 4, local $((r % 2)) of 2, Open MPI, $backend, sum 10" <<< "$output" ||
      { echo "$backend: rank $r should say its place and the sum 10: $output"; exit 1; }
  done
  echo "two hosts of two ranks under mpirun, $backend, ${master:-no MASTER_ADDR}: sum 10 on all"
done; done
