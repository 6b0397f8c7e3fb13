#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What apps/slurm/launch.sh ($1) starts for the variables of a job, without Slurm and MPI: srun and mpirun print their line.
set -euo pipefail
launch=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf '#!/bin/bash\necho "$(basename "$0") $*"\n' | tee "$dir/srun" > "$dir/mpirun"
chmod +x "$dir/srun" "$dir/mpirun"
export PATH=$dir:$PATH
failed=0
# expect 'NAME=VALUE…' LINE: with these variables of Slurm the last line is LINE
expect() {
  local variables line
  read -ra variables <<< "$1"
  line=$(env -u SLURM_NTASKS -u SLURM_NTASKS_PER_NODE -u SLURM_TASKS_PER_NODE -u SLURM_HET_SIZE -u SLURM_PACK_SIZE -u SLURM_CPUS_PER_TASK \
    -u WEFT_CONTAINER WEFT_LAUNCHER=mpirun SLURM_JOB_ID=1 "${variables[@]}" bash -c 'source "$0" generic; weft_launch prog 2>&1' "$launch" | tail -n 1) || true
  [[ $line == "$2" ]] || { echo "error: $1: expected '$2', got '$line'" >&2; failed=1; }
}
mpirun() { echo "mpirun -np $1 --map-by $2 --bind-to none prog"; }

expect "SLURM_NNODES=2 SLURM_NTASKS_PER_NODE=4" "$(mpirun 8 ppr:4:node)"
expect "SLURM_NNODES=2" "$(mpirun 2 ppr:1:node)"
expect "SLURM_NNODES=2 SLURM_TASKS_PER_NODE=16(x2)" "$(mpirun 2 ppr:1:node)"  # without --ntasks srun starts one on each
expect "SLURM_NNODES=2 SLURM_NTASKS=8" "$(mpirun 8 ppr:4:node)"
expect "SLURM_NNODES=2 SLURM_NTASKS=7" "$(mpirun 7 ppr:4:node)"
expect "SLURM_NNODES=2 SLURM_NTASKS=6 SLURM_TASKS_PER_NODE=4,2" "$(mpirun 6 slot)"
expect "SLURM_NNODES=3 SLURM_NTASKS=6 SLURM_TASKS_PER_NODE=2(x3)" "$(mpirun 6 ppr:2:node)"
expect "SLURM_NNODES=1 SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=4 SLURM_TASKS_PER_NODE=2" "$(mpirun 2 ppr:2:node)"
expect "SLURM_NNODES=1 SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=4" "$(mpirun 2 ppr:2:node)"
expect "SLURM_NNODES=2 SLURM_NTASKS=4 WEFT_LAUNCHER=srun" "srun --kill-on-bad-exit=1 --cpus-per-task=1 prog"
expect "SLURM_NNODES=1 WEFT_LAUNCHER=orterun" "error: WEFT_LAUNCHER: expected srun or mpirun, got 'orterun'"
expect "SLURM_NNODES=1 SLURM_HET_SIZE=2" \
  "error: expected one component, got a heterogeneous job of 2: srun would start ranks in the first alone"

# The first line counts the same ranks.
facts=$(env -u SLURM_NTASKS SLURM_JOB_ID=1 SLURM_NNODES=2 SLURM_NTASKS_PER_NODE=4 SLURM_JOB_NODELIST='n[1-2]' \
  bash -c 'source "$0" generic; weft_launch prog' "$launch" | sed -n 1p)
[[ $facts == "job 1: 2 nodes n[1-2], 8 ranks, by srun" ]] || { echo "error: facts: '$facts'" >&2; failed=1; }
exit $failed
