#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage: slurm.sh RANK_PROGRAM WEFT_RUN HAVE_MPI
# A real Slurm with one node, munge and all, in a folder of its own, and the ways in which users start ranks below it. Exit
# code 77: not tested, because that takes root and the packages slurm-wlm and munge.
set -euo pipefail
rank=$1 weft_run=$2 have_mpi=$3
export PATH=$PATH:/usr/sbin:/sbin
for program in slurmctld slurmd srun sbatch munged mungekey; do
  if [[ $(id -u) -ne 0 ]] || ! command -v $program >/dev/null; then
    echo "NOT TESTED: a real Slurm takes root and the packages slurm-wlm and munge ($program)"
    exit 77
  fi
done

# munged insists on folders that nobody else can write, all the way up.
folder=$(mktemp -d /run/weft_slurm.XXXXXX)
chmod 755 "$folder"
pids=()
finish() {
  for file in "$folder"/*.pid; do [[ -s $file ]] && kill -KILL "$(cat "$file")" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap finish EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'; }

mungekey --create --keyfile="$folder/key"
munged --force --key-file="$folder/key" --socket="$folder/munge" --pid-file="$folder/munged.pid" \
  --log-file="$folder/munged.log" --seed-file="$folder/seed"
host=$(hostname)
cat >"$folder/slurm.conf" <<CONF
ClusterName=weft
SlurmctldHost=$host
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$folder/munge
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$host CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
mkdir "$folder/state" "$folder/spool"
export SLURM_CONF=$folder/slurm.conf HOME=$folder OMP_NUM_THREADS=1
slurmctld -f "$SLURM_CONF"
slurmd -f "$SLURM_CONF"
for _ in $(seq 100); do
  [[ $(sinfo -h -o %t 2>/dev/null) == idle ]] && break
  sleep 0.2
done
[[ $(sinfo -h -o %t) == idle ]] || { cat "$folder"/*.log; exit 1; }

# expect NAME RANKS "launcher, backend, sum" COMMAND…: each rank has printed its line.
expect() {
  local name=$1 ranks=$2 words=$3 output
  shift 3
  output=$(timeout 60 "$@" 2>&1) || { echo "$name failed: $output"; exit 1; }
  for ((r = 0; r < ranks; r++)); do
    grep -qx "rank $r of $ranks, local $r of $ranks, $words" <<<"$output" || { echo "$name: rank $r should say '$words': $output"; exit 1; }
  done
  echo "$name: $ranks ranks, $words"
}
# refuse NAME TEXT COMMAND…: it fails with this text.
refuse() {
  local name=$1 text=$2 output
  shift 2
  if output=$(timeout 60 "$@" 2>&1); then echo "$name should fail: $output"; exit 1; fi
  grep -qF "$text" <<<"$output" || { echo "$name should say '$text': $output"; exit 1; }
  echo "$name: refused"
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
fi
