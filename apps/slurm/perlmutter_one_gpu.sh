#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Perlmutter: one A100 of a shared node. Submit it from the Weft folder:
#   sbatch --account=YOURS apps/slurm/perlmutter_one_gpu.sh build/bin/train_image --data cifar100:DIR --out runs/a --resume auto --usr1 stop
#SBATCH --constraint=gpu --qos=shared
#SBATCH --nodes=1 --ntasks-per-node=1 --gpus-per-node=1
#SBATCH --cpus-per-task=32 --time=01:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append
#SBATCH --output=%x-%j.out
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
source "${WEFT_SLURM:-apps/slurm}/launch.sh" perlmutter
weft_launch "$@"
