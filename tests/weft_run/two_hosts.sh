#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft-run on two "hosts" (tests/support/two_hosts.sh), two ranks on each. Usage: two_hosts.sh BIN [gloo]; gloo: ranks also compute.
set -euo pipefail
export PATH=$1:$PATH
source "$(dirname "$0")/../support/two_hosts.sh"
make_hosts

on_both() {  # on_both ENDPOINT COMMAND…: what the launchers of both hosts print, in $dir/a and $dir/b
  local endpoint=$1 other
  shift
  for other in "$host_a" "$host_b"; do
    ip netns exec "$other" timeout 60 weft-run --nnodes=2 --nproc_per_node=2 --rdzv_endpoint="$endpoint" "$@" > "$dir/${other: -1}" 2>&1 &
  done
  wait -n && wait -n || { cat "$dir"/[ab]; exit 1; }
}
expect() {  # expect HOST LINE
  grep -qx "$2" "$dir/$1" || { echo "error: host $1 should print '$2'"; cat "$dir"/[ab]; exit 1; }
}

# The host of the endpoint owns the store, so it is node 0.
# shellcheck disable=SC2016
on_both "$address_b:29500" bash -c 'echo "$RANK in $GROUP_RANK at $MASTER_ADDR"'
for rank in 0 1; do expect b "$rank in 0 at $address_b"; expect a "$((rank + 2)) in 1 at $address_b"; done
echo "two hosts of two ranks: the endpoint's host is node 0"
[[ ${2:-} == gloo ]] || exit 0
on_both "$address_a:29500" dist_rank sum
for rank in 0 1; do
  expect a "rank $rank of 4, local $rank of 2, RANK and WORLD_SIZE, gloo, sum 10"
  expect b "rank $((rank + 2)) of 4, local $rank of 2, RANK and WORLD_SIZE, gloo, sum 10"
done
echo "two hosts of two ranks: sum 10 on all"
