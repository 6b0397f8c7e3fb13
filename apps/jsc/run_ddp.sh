#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four nodes of four GPUs, a rank for each GPU: sbatch run_ddp.sh [FLAGS OF ddp]
#SBATCH --nodes=4
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=24
#SBATCH --time=00:15:00
#SBATCH --partition=booster
#SBATCH --output=%j.out
#SBATCH --error=%j.err
# The account: sbatch --account=… or the variable SBATCH_ACCOUNT. Programs are found in PATH, or in WEFT_PROGRAMS.
set -euo pipefail
if [[ -n ${WEFT_PROGRAMS:-} ]]; then PATH=$WEFT_PROGRAMS:$PATH; fi
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0,1,2,3}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}
srun ${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK} ddp "$@"
