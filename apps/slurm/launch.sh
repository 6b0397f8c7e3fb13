# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Source it in a batch script with the name of a file of sites/, which loads the site's modules, then:
#   weft_launch PROGRAM…   runs the program as the ranks of this job: one for each GPU, or as many as --ntasks or --ntasks-per-node says.
#     WEFT_CONTAINER       an image: the program runs in it
#     WEFT_LAUNCHER        srun (the default) or mpirun
# A program that is told of the time limit (#SBATCH --signal=USR1@…) and ends with 75, "my checkpoint is written", is queued
# again; the job's exit code is the program's.

source "$(dirname "${BASH_SOURCE[0]}")/sites/$1.sh"

# In front of the program where an image is asked for, unless the site has its own way.
if ! declare -F weft_container >/dev/null; then
  weft_container() {
    apptainer exec --nv --bind "$PWD" "$WEFT_CONTAINER" "$@"
  }
fi

# As many ranks as srun starts: --ntasks, or --ntasks-per-node (one without it) on each node.
weft_ranks() {
  echo "${SLURM_NTASKS:-$((${SLURM_NNODES:-1} * ${SLURM_NTASKS_PER_NODE:-1}))}"
}

# mpirun's --map-by, for the same ranks on each node as srun starts there.
weft_mapping() {
  local ranks nodes=${SLURM_NNODES:-1}
  ranks=$(weft_ranks)
  if [[ -z ${SLURM_NTASKS:-} ]]; then
    echo "ppr:${SLURM_NTASKS_PER_NODE:-1}:node"
  elif [[ ${SLURM_TASKS_PER_NODE:-} == *,* ]]; then
    echo slot  # 4,2: these are the slots that mpirun finds
  elif [[ ${SLURM_TASKS_PER_NODE:-} =~ ^([0-9]+)(\(x[0-9]+\))?$ ]]; then
    echo "ppr:${BASH_REMATCH[1]}:node"
  else
    echo "ppr:$(((ranks + nodes - 1) / nodes)):node"
  fi
}

weft_facts() {
  echo "job ${SLURM_JOB_ID:-none}${SLURM_RESTART_COUNT:+, attempt $((SLURM_RESTART_COUNT + 1))}: ${SLURM_NNODES:-1} nodes" \
    "${SLURM_JOB_NODELIST:-$(hostname)}, $(weft_ranks) ranks, by ${WEFT_LAUNCHER:-srun}${WEFT_CONTAINER:+, in $WEFT_CONTAINER}"
}

weft_launch() {
  [[ $# -gt 0 ]] || { echo "usage: sbatch SCRIPT PROGRAM…" >&2; return 2; }
  if [[ ${SLURM_HET_SIZE:-${SLURM_PACK_SIZE:-1}} -gt 1 ]]; then
    echo "error: expected one component, got a heterogeneous job of ${SLURM_HET_SIZE:-$SLURM_PACK_SIZE}: srun would start ranks in the first alone" >&2
    return 2
  fi
  weft_facts
  # One thread per core that the task has; a task that is told nothing would take the node's.
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}
  local launcher
  case ${WEFT_LAUNCHER:-srun} in
    srun) launcher=(srun --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}") ;;
    mpirun) launcher=(mpirun -np "$(weft_ranks)" --map-by "$(weft_mapping)" --bind-to none) ;;
    *) echo "error: WEFT_LAUNCHER: expected srun or mpirun, got '$WEFT_LAUNCHER'" >&2; return 2 ;;
  esac
  if [[ -n ${WEFT_CONTAINER:-} ]]; then
    export -f weft_container
    launcher+=(bash -c 'weft_container "$@"' in_container)
  fi

  # In the background, so that a signal for this shell reaches the ranks (mpirun forwards it to them).
  "${launcher[@]}" "$@" &
  local ranks=$! status told=yes
  trap 'told=yes; kill -USR1 $ranks' USR1
  while [[ $told == yes ]]; do  # a signal ends the wait, not the ranks
    told=no status=0
    wait "$ranks" || status=$?
  done
  trap - USR1
  if [[ $status -eq 75 ]]; then
    echo "stopped with a checkpoint: queued again"
    # Slurm ends this script; a script that ends by itself first may end the job instead.
    scontrol requeue "$SLURM_JOB_ID" && sleep 60
  fi
  return "$status"
}
