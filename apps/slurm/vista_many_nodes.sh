#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Vista: several nodes of one GH200 (one node is one GPU). Submit it from the Weft folder:
#   sbatch --account=YOURS apps/slurm/vista_many_nodes.sh build/bin/train_image --data cifar100:DIR --out runs/a --resume auto --usr1 stop
#SBATCH --partition=gh
#SBATCH --nodes=2 --ntasks-per-node=1
#SBATCH --cpus-per-task=72 --time=01:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue --open-mode=append
#SBATCH --output=%x-%j.out
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"
source "${WEFT_SLURM:-apps/slurm}/launch.sh" vista
weft_launch "$@"
