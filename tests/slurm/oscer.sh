#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The OUAI demo's batch script ($1), submitted to a real Slurm as its users do, with the programs in $2: two ranks on one node.
# Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
script=$1 programs=$2
source "$(dirname "$0")/cluster.sh"
enter_cluster
export HOME=$cluster OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60 WEFT_BIN=$programs
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT GPUS_PER_NODE
mkdir "$cluster/work"
cd "$cluster/work"

fail() { echo "error: $*" >&2; cat ./*.out >&2; exit 1; }
# What this machine has instead of two nodes of the partition gpu; its GPUs are Slurm's alone.
sbatch_wait --nodes=1 --ntasks=1 --cpus-per-task=1 --mem=100 --partition=p "$script" -e 1 -b 8 -lr 1e-3 \
  --weights random --model vit_tiny4 --data random:40x32x32x3 --precision f32 --workers 1 --device cpu || fail "the job: $job_state"
log=$(echo ouai_demo-*.out)
expect() {  # expect COUNT LINE
  local got
  got=$(grep -cE "^$2\$" "$log" || true)
  [[ $got -eq $1 ]] || fail "expected $1 lines '$2', got $got"
}
expect 1 'Node IP: [0-9.]+'
for rank in 0 1; do
  for line in 'linear probe' epoch finetuning; do expect "$([[ $line == epoch ]] && echo 2 || echo 1)" "$rank $line"; done
done
expect 2 "\{'validation accuracy': tensor\([0-9.]+\)\}"
[[ $(wc -l < "runs/ouai_demo/OUAI Demo/metrics.jsonl") -eq 2 ]] || fail "expected the accuracy of two epochs in metrics.jsonl"
echo "submit.sh: $(grep -c accuracy "$log") epochs on two ranks, $(grep 'Node IP' "$log")"
