#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# JUWELS Booster: two nodes of four A100. Submit it from the Weft folder:
#   sbatch --account=YOURS apps/slurm/juwels_booster_many_nodes.sh build/bin/train_image --data cifar100:DIR --out runs/a --resume auto --usr1 stop
#SBATCH --partition=booster --gres=gpu:4
#SBATCH --nodes=2 --ntasks-per-node=4
#SBATCH --cpus-per-task=12 --time=01:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append
#SBATCH --output=%x-%j.out
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
source "${WEFT_SLURM:-apps/slurm}/launch.sh" juwels_booster
weft_launch "$@"
