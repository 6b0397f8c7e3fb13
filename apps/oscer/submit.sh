#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The OUAI demo on two nodes of two GPUs: sbatch submit.sh [FLAGS OF ouai_demo]
#   GPUS_PER_NODE  ranks on each node (2)
#   WEFT_BIN       the folder of weft-run and ouai_demo (default: they are in PATH)
#   MODULES        modules to load first
#SBATCH --job-name=ouai_demo
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=32
#SBATCH --gres=gpu:2
#SBATCH --mem=64G
#SBATCH --time=24:00:00
#SBATCH --output=ouai_demo-%j.out
set -euo pipefail
for module in ${MODULES:-}; do module load "$module"; done
if [[ -n ${WEFT_BIN:-} ]]; then export PATH="$WEFT_BIN:$PATH"; fi

head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
# Its first IPv4 address: some hosts name ::1 or a link-local address first. The name where it has none.
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address | tr ' ' '\n' | grep -m1 -E '^[0-9]+(\.[0-9]+){3}$' || true)
head_node_ip=${head_node_ip:-$head_node}
echo "Node IP: $head_node_ip"

[[ $# -gt 0 ]] || set -- -e 5 -b 256 -lr 1e-3
srun weft-run --nnodes "$SLURM_JOB_NUM_NODES" --nproc_per_node "${GPUS_PER_NODE:-2}" --rdzv_id "$SLURM_JOB_ID" \
  --rdzv_backend c10d --rdzv_endpoint "$head_node_ip:64425" ouai_demo "$@"
