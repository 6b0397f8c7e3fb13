#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One GPU of one node: sbatch run_one_gpu.sh [FLAGS OF one_gpu]
#SBATCH --nodes=1
#SBATCH --gres=gpu:1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=96
#SBATCH --time=00:15:00
#SBATCH --partition=booster
#SBATCH --output=%j.out
#SBATCH --error=%j.err
# The account: sbatch --account=… or the variable SBATCH_ACCOUNT. Programs are found in PATH, or in WEFT_PROGRAMS.
set -euo pipefail
if [[ -n ${WEFT_PROGRAMS:-} ]]; then PATH=$WEFT_PROGRAMS:$PATH; fi
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}}
srun ${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK} one_gpu "$@"
