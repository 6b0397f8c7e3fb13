#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# multinode.sh [flags of finetune]: finetune on every node of an allocation, one launcher per node. mpirun starts it once per node:
#   mpirun -np 2 --map-by ppr:1:node multinode.sh
# GPUS_PER_NODE (1) is the number of ranks per node, MASTER_PORT (1234) where the nodes meet, MIXED_PRECISION (no) no or bf16.
set -euo pipefail
LOCAL_RANK=${OMPI_COMM_WORLD_RANK:?is not set: start multinode.sh with mpirun}
if [[ -n ${SLURM_JOB_NODELIST:-} ]] && command -v scontrol >/dev/null; then
  RANKS=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ' ')
else
  RANKS=${HOSTS:-$(hostname)}  # without Slurm: HOSTS="gpu1 gpu2"
fi
read -ra hosts <<< "$RANKS"
MAIN_RANK=${hosts[0]}
NNODES=${NNODES:-${#hosts[@]}}
export MAIN_RANK RANKS NNODES LOCAL_RANK
export GPUS_PER_NODE=${GPUS_PER_NODE:-1}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ $here == */libexec/weft/vista ]] && PATH=$here/../../../bin:$PATH  # as installed; elsewhere it is anybody's bin
export PATH=$here:$PATH
[[ $LOCAL_RANK -eq 0 ]] && generate_config.sh
for _ in $(seq 300); do
  [[ -f multi_config.yaml ]] && break
  sleep 0.1
done

command=(weft-run --config_file multi_config.yaml --num_machines "$NNODES" --machine_rank="$LOCAL_RANK"
         --main_process_ip="$MAIN_RANK" --main_process_port="${MASTER_PORT:-1234}" --rdzv_backend static
         --num_processes $((NNODES * GPUS_PER_NODE)) finetune "$@")
echo "Training command: ${command[*]}"
exec "${command[@]}"
