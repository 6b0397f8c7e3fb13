# SPDX-License-Identifier: Apache-2.0
# The place of this task of a Slurm step, in the variables by which ranks find each other. Source it in every task:
#   srun bash -c "source export_DDP_vars.sh; train_multi_gpu …"
# MASTER_ADDR comes from the batch script: export MASTER_ADDR=$(hostname)
export RANK=$SLURM_PROCID
export WORLD_RANK=$SLURM_PROCID
export LOCAL_RANK=$SLURM_LOCALID
export WORLD_SIZE=$SLURM_NTASKS
export MASTER_PORT=${MASTER_PORT:-29500}
