#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two "hosts" on this machine: network namespaces with host names of their own, between which mpirun starts programs. Source it;
# needs root, iproute2 and mpirun.
#   make_hosts       sets $host_a and $host_b (their names), address_a and address_b, and the folder $dir, which is also their
#                    HOME; all is gone when the script ends. Where there can be none the script says so and ends with 77.
#   mpirun_on_hosts SLOTS arguments…   mpirun as started on $host_a, SLOTS on each host, 120 seconds at most

skip() {
  echo "SKIPPED: $*"
  exit 77
}

make_hosts() {
  local program host
  for program in ip mpirun unshare hostname; do
    command -v $program >/dev/null || skip "two hosts need $program (Debian: iproute2 openmpi-bin util-linux hostname)"
  done
  host_a=weft$$a host_b=weft$$b
  # Tests run side by side: a network of this process's own.
  local net=10.$((231 + $$ % 8)).$(($$ / 8 % 256))
  address_a=$net.1 address_b=$net.2 network=$net.0/24
  ip netns add $host_a 2>/dev/null || skip "network namespaces need root, and a kernel that has them"
  dir=$(mktemp -d /tmp/weft_hosts.XXXXXX)
  trap 'ip netns del $host_a; ip netns del $host_b 2>/dev/null || true; rm -rf "$dir"' EXIT
  ip netns add $host_b
  ip link add $host_a netns $host_a type veth peer name $host_b netns $host_b 2>/dev/null || skip "this kernel has no veth"
  ip -n $host_a addr add $address_a/24 dev $host_a
  ip -n $host_b addr add $address_b/24 dev $host_b
  for host in $host_a $host_b; do
    ip -n $host link set $host up
    ip -n $host link set lo up
  done
  # What mpirun takes for ssh: its first argument is the host, and there is only one other.
  cat > "$dir/agent" <<AGENT
#!/bin/bash
shift
unset MASTER_PORT  # as ssh, which takes no variables along
exec ip netns exec $host_b unshare --uts bash -c "hostname $host_b; \$*"
AGENT
  chmod +x "$dir/agent"
  export HOME=$dir OMP_NUM_THREADS=1 CUDA_VISIBLE_DEVICES=  # both would take the same GPU, which nccl refuses
}

mpirun_on_hosts() {
  local slots=$1
  shift
  ip netns exec $host_a unshare --uts bash -c "hostname $host_a; exec timeout 120 mpirun --allow-run-as-root --bind-to none \
    --host $address_a:$slots,$address_b:$slots --mca plm_rsh_agent $dir/agent --mca btl tcp,self \
    --mca btl_tcp_if_include $network --mca oob_tcp_if_include $network -x HOME -x CUDA_VISIBLE_DEVICES \"\$@\"" mpirun "$@"
}
