#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The batch scripts of train_vit in the folder $1, submitted to a real Slurm as their users do, with the programs in $2: data
# parallel, tensor parallel, and a second job that goes on. Needs root, slurm-wlm and munge; says so and is skipped (exit code 77)
# without.
set -euo pipefail
scripts=$1 programs=$2
source "$(dirname "$0")/cluster.sh"
enter_cluster
export HOME=$cluster OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
mkdir "$cluster/work"
cd "$cluster/work"
"$programs/make_fields" --out fields --channels 4 --rows 16 --columns 32 --times 41 > fields.txt
export WEFT_NERSC_VIT=$scripts TRAIN_VIT=$programs/train_vit YAML_CONFIG=$PWD/fields/ViT.yaml

fail() { echo "error: $*" >&2; cat ./*.log >&2; exit 1; }
# submit NAME SCRIPT FLAGS…: two tasks on one node, on what this machine has instead of A100s.
submit() {
  local name=$1 script=$2
  shift 2
  sbatch_wait MASTER_PORT="$(free_port)" --nodes=1 --ntasks-per-node=2 --cpus-per-task=1 --output="$name.log" \
    "$scripts/$script" --config=base --device=cpu "$@" || fail "$name: $job_state"
  for rank in 0 1; do grep -q -- "DONE ---- rank $rank" "$name.log" || fail "$name: rank $rank is not done"; done
}
losses() { grep -oE 'Avg (train|val) loss=[0-9.]+' "$@"; }

submit data submit.sh --num_iters 10
submit model submit_mp.sh --num_iters 10 --row_parallel_size=2
[[ $(losses data.log | wc -l) -eq 4 ]] || fail "expected the losses of two epochs"
for grid in 2GPU 2MP; do [[ -s fields/logs/base/$grid/00/checkpoint.safetensors ]] || fail "no checkpoint of $grid"; done
# Six digits; sums come in another order.
paste <(losses data.log | cut -d= -f2) <(losses model.log | cut -d= -f2) |
  awk '{ d = $1 - $2; if (d > 5e-6 || d < -5e-6) exit 1 }' || fail "both grids should print the same losses"
submit more submit_mp.sh --num_iters 15 --row_parallel_size=2 --resume
grep -q 'resumed from .*/2MP/00/checkpoint.safetensors at epoch 3, step 10' more.log || fail "the second job did not go on"
[[ $(losses more.log | wc -l) -eq 2 ]] || fail "expected the losses of one more epoch"
echo "submit.sh and submit_mp.sh: the same losses; a second job went on at step 10"
