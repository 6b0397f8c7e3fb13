#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The ways in which users start ranks below Slurm: every rank ($1) says its place, and $2 is weft-run; $3 is 1 in a build with MPI.
# And ranks that are killed or stopped while they connect, by the library $4.
# Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
rank=$1 weft_run=$2 have_mpi=$3 kill_at_connect=$4
source "$(dirname "$0")/cluster.sh"
enter_cluster
export HOME=$cluster OMP_NUM_THREADS=1

# expect NAME RANKS "launcher, backend, sum" COMMAND…: each rank has printed its line.
expect() {
  local name=$1 ranks=$2 words=$3 output
  shift 3
  output=$(timeout 180 "$@" 2>&1) || { echo "$name failed: $output"; exit 1; }
  for ((r = 0; r < ranks; r++)); do
    grep -qx "rank $r of $ranks, local $r of $ranks, $words" <<<"$output" || { echo "$name: rank $r should say '$words': $output"; exit 1; }
  done
  echo "$name: $ranks ranks, $words"
}
# refuse NAME TEXT COMMAND…: it fails with this text.
refuse() {
  local name=$1 text=$2 output
  shift 2
  if output=$(timeout 180 "$@" 2>&1); then echo "$name should fail: $output"; exit 1; fi
  grep -qF "$text" <<<"$output" || { echo "$name should say '$text': $output"; exit 1; }
  echo "$name: refused"
}

# lost SIGNAL CONNECT FLAGS…: rank 2 of three gets the signal at one of its connects, and srun leaves the others alone: they end by
# themselves within WEFT_TIMEOUT and name it. One that is stopped is killed by srun, ten seconds after them.
lost() {
  local signal=$1 connect=$2 output status=0 begin=$SECONDS
  shift 2
  output=$(WEFT_TIMEOUT=10 timeout 180 srun -K0 -W 10 -n 3 --overcommit "$@" bash -c "if [ \$SLURM_PROCID = 2 ]; then
    export LD_PRELOAD=$kill_at_connect KILL_AT_CONNECT=$connect KILL_WITH=$(kill -l $signal); fi; exec $rank sum" 2>&1) || status=$?
  if ((status == 0 && connect > 1)); then  # it has made fewer connects
    lost "$signal" $((connect - 1)) "$@"
    return
  fi
  ((SECONDS - begin < 60)) || { echo "signal $signal at connect $connect: the ranks ended after $((SECONDS - begin)) s: $output"; exit 1; }
  if ((status == 0)) || ! grep -q "error: .*rank 2" <<<"$output"; then
    echo "signal $signal at connect $connect: the others should name rank 2: $output"
    exit 1
  fi
  echo "srun $*, signal $signal at connect $connect: all ended after $((SECONDS - begin)) s"
}

expect "srun" 2 "Slurm, gloo, sum 3" srun -n 2 "$rank" sum
expect "srun with one task" 1 "Slurm, alone, sum 1" srun -n 1 "$rank" sum
expect "srun with exported variables" 2 "RANK and WORLD_SIZE, gloo, sum 3" srun -n 2 bash -c \
  "export RANK=\$SLURM_PROCID LOCAL_RANK=\$SLURM_LOCALID WORLD_SIZE=\$SLURM_NTASKS MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port); exec $rank sum"
expect "plain program in an allocation of two tasks" 1 "alone, alone, sum 1" salloc -Q -n 2 "$rank" sum
expect "srun of weft-run" 2 "RANK and WORLD_SIZE, gloo, sum 3" srun -n 1 -c 2 "$weft_run" --nproc_per_node 2 "$rank" sum
refuse "srun, backend mpi" "Slurm has started 2 tasks, but each would be an MPI world of its own). Start with srun --mpi=pmix" srun -n 2 "$rank" sum mpi
expect "srun --mpi=pmi2" 2 "PMI, gloo, sum 3" srun --mpi=pmi2 -n 2 "$rank" sum
if [[ $have_mpi == 1 ]]; then
  expect "srun --mpi=pmix" 2 "PMIx, mpi, sum 3" srun --mpi=pmix -n 2 "$rank" sum
  expect "mpirun in an allocation" 2 "Open MPI, mpi, sum 3" salloc -Q -n 2 mpirun --allow-run-as-root -np 2 "$rank" sum
  lost STOP 5 --mpi=pmix  # inside of MPI_Init
fi
for connect in 1 2 3 4; do lost KILL $connect; done
lost STOP 3
