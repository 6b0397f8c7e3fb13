#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One node of four A100, data parallel:
#   sbatch [-N NODES] submit.sh --config=bs64_opt
# ENABLE_PROFILING=1 PROFILE_OUTPUT=NAME sbatch submit.sh …: Nsight Systems records the fourth epoch of rank 0.
#SBATCH -C gpu
#SBATCH -q debug
#SBATCH --gpus-per-node 4
#SBATCH --ntasks-per-node 4
#SBATCH --cpus-per-task 32
#SBATCH --time 00:30:00
#SBATCH --signal=TERM@120
#SBATCH -o %x-%j.out

# Slurm copies this script elsewhere: submit it from its folder, or say where that is.
folder=${WEFT_NERSC_VIT:-${SLURM_SUBMIT_DIR:-$(dirname "$0")}}
program=${TRAIN_VIT:-$folder/train_vit}
MASTER_ADDR=$(hostname)
export MASTER_ADDR
export HDF5_USE_FILE_LOCKING=FALSE        # Lustre without locks
export FI_MR_CACHE_MONITOR=userfaultfd    # libfabric and memory that goes and comes: otherwise hangs

profile=()
if [[ ${ENABLE_PROFILING:-0} == 1 ]]; then
  profile=(nsys profile "--trace=cuda,nvtx" -c cudaProfilerApi --force-overwrite true -o "${PROFILE_OUTPUT:-profile}")
fi
set -x
# shellcheck disable=SC2016  # the task's shell: names and flags are its arguments, and no text that it reads as commands
srun -u bash -c 'source "$0/export_DDP_vars.sh"; exec "$@"' "$folder" "${profile[@]}" "$program" \
  --yaml_config="${YAML_CONFIG:-$folder/config/ViT.yaml}" "$@"
