#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs train_image ($1) in a real Slurm, two tasks on this machine: every way of starting ranks ends in the same bits, a program
# in an allocation waits for nobody, and a job that is told to end is requeued and ends in the bits of one that was left alone.
# Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
train_image=$1
source "$(dirname "$0")/cluster.sh"
enter_cluster
dir=$cluster
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60 TRAIN="$train_image" DIR="$dir"
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export HOME=$dir  # the job's cookie
ARGS="--data random:96x8x8x3 --model resnet8 --augment cifar --batch-size 12 --epochs 3 --workers 0 --lr 0.02 --device cpu"
export ARGS

fail() {
  echo "error: $*" >&2
  exit 1
}
run() {  # run NAME COMMAND…: the output in NAME.log; a status that is not 0 ends the test
  local name=$1 status=0
  shift
  timeout 120 "$@" > "$dir/$name.log" 2>&1 || status=$?
  [[ $status -eq 0 ]] || { tail -n 30 "$dir/$name.log" >&2; fail "$name ended with status $status"; }
}
expect_world() {  # expect_world NAME RANKS: what its config.toml says
  grep -q "$2" "$dir/$1/config.toml" || { head -n 5 "$dir/$1/config.toml" >&2; fail "$1: expected '$2' in config.toml"; }
}
expect_same() {  # expect_same A B: the same weights, bit for bit
  cmp -s "$dir/$1.safetensors" "$dir/$2.safetensors" || fail "$1 and $2 ended in different weights"
  echo "$1 and $2 end in the same weights"
}
command_of() { echo "exec \$TRAIN \$ARGS --backend ${2:-gloo} --out \$DIR/$1 --export \$DIR/$1.safetensors"; }

# Slurm's own variables; torchrun's names set from them (the way of many batch scripts); PMIx with Open MPI.
run slurm srun -n 2 --overcommit bash -c "$(command_of slurm)"
run exported srun -n 2 --overcommit bash -c "export RANK=\$SLURM_PROCID LOCAL_RANK=\$SLURM_LOCALID WORLD_SIZE=\$SLURM_NTASKS \
  MASTER_ADDR=localhost MASTER_PORT=$(free_port); $(command_of exported)"
run pmix srun -n 2 --overcommit --mpi=pmix bash -c "$(command_of pmix auto)"
for name in slurm exported pmix; do expect_world "$name" "2 ranks"; done
expect_same slurm exported
expect_same slurm pmix

# A program in an allocation of two tasks is alone: it does not wait for a second one.
run allocation salloc -n 2 --overcommit bash -c "$(command_of allocation)"
if grep -q "2 ranks" "$dir/allocation/config.toml"; then fail "a program in an allocation took itself for a rank"; fi
echo "a program in an allocation is alone"

# A requeue: Slurm's warning comes (here by hand: --signal=USR1@… counts in minutes), the ranks save and end with 75.
cat > "$dir/job.sh" <<'EOF'
#!/bin/bash
#SBATCH --ntasks=2 --overcommit --requeue --open-mode=append
srun --overcommit bash -c 'exec $TRAIN $ARGS --epochs 160 --backend gloo --usr1 stop --resume auto --out $DIR/requeued --export $DIR/requeued.safetensors'
status=$?
echo "attempt ${SLURM_RESTART_COUNT:-0} ended with $status"
[[ $status -eq 75 ]] && scontrol requeue "$SLURM_JOB_ID" && sleep 60  # Slurm ends this script; ended first, it may end the job
exit $status
EOF
run whole srun -n 2 --overcommit bash -c 'exec $TRAIN $ARGS --epochs 160 --backend gloo --out $DIR/whole --export $DIR/whole.safetensors'
job=$(sbatch --parsable --output="$dir/requeued.log" "$dir/job.sh")
for _ in $(seq 300); do
  [[ -f $dir/requeued/metrics.jsonl && $(wc -l < "$dir/requeued/metrics.jsonl") -ge 6 ]] && break
  sleep 0.1
done
scancel --signal=USR1 "$job"  # to the step's tasks
for _ in $(seq 900); do
  wake_requeued "$job"
  grep -q "attempt 1 ended" "$dir/requeued.log" && break
  sleep 0.2
done
grep -q "attempt 0 ended with 75" "$dir/requeued.log" || { cat "$dir/requeued.log" >&2; fail "expected the first attempt to end with 75"; }
grep -q "attempt 1 ended with 0" "$dir/requeued.log" || { cat "$dir/requeued.log" >&2; fail "expected the second attempt to end with 0"; }
expect_same whole requeued
