#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four nodes of four A100, each node one copy of the model:
#   sbatch submit_mp.sh --config=mp --row_parallel_size=4
#SBATCH -C gpu
#SBATCH -q regular
#SBATCH -N 4
#SBATCH --gpus-per-node 4
#SBATCH --ntasks-per-node 4
#SBATCH --cpus-per-task 32
#SBATCH --time 01:00:00
#SBATCH --signal=TERM@120
#SBATCH -o %x-%j.out
folder=${WEFT_NERSC_VIT:-${SLURM_SUBMIT_DIR:-$(dirname "$0")}}
export WEFT_NERSC_VIT=$folder
exec bash "$folder/submit.sh" "$@"
