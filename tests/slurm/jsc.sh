#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# apps/jsc's job scripts ($1) with the programs in $2, submitted to a real Slurm as their users do, with a few images ($3).
# Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
scripts=$1 programs=$2 images=$3
source "$(dirname "$0")/cluster.sh"
enter_cluster
export HOME=$cluster OMP_NUM_THREADS=1 WEFT_PROGRAMS=$programs
mkdir "$cluster/work"
cd "$cluster/work"
for place in train/ants train/bees val/ants val/bees; do
  mkdir -p "data/hymenoptera_data/$place"
  cp "$images"/{baseline,grey}.jpg "data/hymenoptera_data/$place"
done

fail() { echo "$*"; cat ./*.out ./*.err; exit 1; }
# submit NAME TASKS: the script, on what this machine has instead of its nodes and GPUs.
submit() {
  local name=$1 tasks=$2
  sbatch_wait --nodes=1 --ntasks-per-node="$tasks" --cpus-per-task=1 --gres=none --partition=p \
    --output=$name.out --error=$name.err "$scripts/$name.sh" --epochs 1 --device cpu || fail "$name: $job_state"
  grep -q '^Epoch 0: train_cross_entropy=' "$name.out" || fail "$name printed no epoch"
  grep -qE '^elapsed: 00 hours [0-9]{2} min [0-9]{2} sec$' "$name.out" || fail "$name printed no elapsed time"
  [[ -s image_classification_model.pt ]] || fail "$name left no model"
  echo "$name: $(grep elapsed "$name.out")"
}
submit run_one_gpu 1
rm image_classification_model.pt
submit run_ddp 2
grep -q '^ranks   2 over gloo (Slurm)' run_ddp.err || fail "run_ddp did not find two ranks"
[[ $(ls tb_logs/my_model) == $'version_0\nversion_1' ]] || fail "expected version_0 and version_1, got $(ls tb_logs/my_model)"
