#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpirun over two "hosts", network namespaces with host names of their own, two ranks on each: init(), then a sum, over MPI and
# over Gloo. Usage: two_hosts.sh RANK_PROGRAM. Needs root, iproute2 and mpirun; says so and is skipped (exit code 77) without.
set -euo pipefail
rank=$1
source "$(dirname "$0")/../support/two_hosts.sh"
make_hosts

# Without MASTER_ADDR rank 0 tells its address through MPI; a MASTER_PORT that only one host has does not count then.
for master in "-x MASTER_ADDR=$address_a" ""; do for backend in mpi gloo; do
  if [[ -z $master ]]; then export MASTER_PORT=29501; fi
  # shellcheck disable=SC2086
  output=$(mpirun_on_hosts 2 -np 4 $master "$rank" sum $backend 2>&1) ||
    { echo "$backend, '$master' failed: $output"; exit 1; }
  for r in 0 1 2 3; do
    grep -qx "rank $r of 4, local $((r % 2)) of 2, Open MPI, $backend, sum 10" <<< "$output" ||
      { echo "$backend: rank $r should say its place and the sum 10: $output"; exit 1; }
  done
  echo "two hosts of two ranks under mpirun, $backend, ${master:-no MASTER_ADDR}: sum 10 on all"
done; done
