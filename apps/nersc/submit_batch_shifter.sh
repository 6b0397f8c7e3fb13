#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same in a container: an image with the CUDA libraries and what Weft was built with, and NCCL from the machine.
#   sbatch --image=IMAGE submit_batch_shifter.sh
#SBATCH --constraint gpu
#SBATCH --qos debug
#SBATCH --nodes 2
#SBATCH --ntasks-per-node 4
#SBATCH --gpus-per-node 4
#SBATCH --cpus-per-task 32
#SBATCH --time 00:10:00
#SBATCH --job-name ddp
#SBATCH --module=gpu,nccl-2.18
#SBATCH --output shifter_job_log_%j.out

# WEFT_BIN: where the program lies, as seen in the container.
cd "${SLURM_SUBMIT_DIR:-.}" || exit 1
export PATH="${WEFT_BIN:+$WEFT_BIN:}$PATH:$PWD"  # here last: no hostname of a folder that others can write
MASTER_ADDR=$(hostname)
export MASTER_ADDR

# shellcheck disable=SC2016  # the task's shell: names are its arguments, and no text that it reads as commands
srun -l shifter bash -c 'source export_DDP_vars.sh; exec train_multi_gpu "$@"' bash \
  --yaml_config="${YAML_CONFIG:-./configs/default.yaml}" --config="${CONFIG:-default}" --run_num=ddp-shifter
