#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The workflow's own batch scripts in a real Slurm of this machine: sbatch submit_batch_modules.sh, and submit_batch_shifter.sh
# with a shifter that runs its command as it is. $1: folder of the programs, $2: apps/nersc, $3: tests/slurm.
set -euo pipefail
bin=$1 nersc=$2
source "$3/cluster.sh"
enter_cluster
export HOME=$cluster OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60
work=$cluster/work
mkdir -p "$work/configs" "$cluster/bin"
cp "$nersc"/export_DDP_vars.sh "$work"
cat > "$work/configs/default.yaml" <<'YAML'
default: &DEFAULT {num_samples: 8, img_size: 8, depth: 2, batch_size: 4, valid_batch_size: 4, max_epochs: 2}
YAML
printf '#!/bin/bash\nexec "$@"\n' > "$cluster/bin/shifter"
chmod +x "$cluster/bin/shifter"
cd "$work"

fail() {
  echo "error: $*" >&2
  cat "$work"/*_job_log_* >&2 || true
  exit 1
}
for kind in module shifter; do
  script=submit_batch_modules.sh
  [[ $kind == shifter ]] && script=submit_batch_shifter.sh
  # This machine is one node without GPUs, and has no Perlmutter around it.
  grep -vE -- '^#SBATCH --(constraint|qos|gpus-per-node|module|cpus-per-task)' "$nersc/$script" > "$script"
  port=$(free_port)
  sbatch_wait WEFT_BIN="$bin" PATH="$cluster/bin:$PATH" MASTER_PORT="$port" --nodes 1 --ntasks-per-node 2 --overcommit "$script" ||
    fail "$script: $job_state"
  log=$(echo "$kind"_job_log_*.out)
  [[ -f $log ]] || fail "$script: no $log"
  for rank in 0 1; do
    grep -qx "$rank: running on rank $rank with world size 2" "$log" || fail "$script: rank $rank does not say who it is"
    grep -qx "$rank: Training complete" "$log" || fail "$script: rank $rank does not say that it is done"
  done
  [[ $(grep -c "^0: Time taken for epoch [12] is " "$log") -eq 2 ]] || fail "$script: expected the lines of two epochs"
  [[ -f outputs/default/ddp-$kind/checkpoints/ckpt.tar ]] || fail "$script: no checkpoint"
  echo "$script: two ranks, two epochs, a checkpoint"
done

# The same line by hand, with the variables that Slurm would set.
MASTER_PORT=$(free_port)
export MASTER_ADDR=127.0.0.1 MASTER_PORT
for rank in 0 1; do
  env -u SLURM_CONF SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NTASKS=2 PATH="$bin:$PATH" \
    bash -c "source export_DDP_vars.sh; train_multi_gpu --yaml_config=./configs/default.yaml --config=default --run_num=byhand" \
    > "byhand_job_log_$rank.out" 2>&1 &
done
wait -n || fail "a rank ended with $?"
wait -n || fail "a rank ended with $?"
grep -qx "running on rank 1 with world size 2" byhand_job_log_1.out || fail "rank 1 does not say who it is"
echo "export_DDP_vars.sh by hand: two ranks"
