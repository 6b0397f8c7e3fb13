#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes of Perlmutter with four GPUs each; Weft was built with the modules that are loaded here.
#   sbatch submit_batch_modules.sh
#SBATCH --constraint gpu
#SBATCH --qos debug
#SBATCH --nodes 2
#SBATCH --ntasks-per-node 4
#SBATCH --gpus-per-node 4
#SBATCH --cpus-per-task 32
#SBATCH --time 00:10:00
#SBATCH --job-name ddp
#SBATCH --output module_job_log_%j.out

# WEFT_MODULES: what the build needed, as in WEFT_MODULES="PrgEnv-gnu cudatoolkit nccl". WEFT_BIN: where the program lies.
if type module &> /dev/null && [[ -n $WEFT_MODULES ]]; then
  module load $WEFT_MODULES
fi
cd "${SLURM_SUBMIT_DIR:-.}" || exit 1
export PATH="${WEFT_BIN:+$WEFT_BIN:}$PATH:$PWD"  # here last: no hostname of a folder that others can write
MASTER_ADDR=$(hostname)
export MASTER_ADDR

# shellcheck disable=SC2016  # the task's shell: names are its arguments, and no text that it reads as commands
srun -l bash -c 'source export_DDP_vars.sh; exec train_multi_gpu "$@"' bash \
  --yaml_config="${YAML_CONFIG:-./configs/default.yaml}" --config="${CONFIG:-default}" --run_num=ddp-module
