#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The ranks of train_image ($1) started by a real torchrun: on one node, on two (two invocations, numbered by hand, and by
# the elastic c10d rendezvous), and started again after a rank was killed: while it connects (by the library $3), and while all
# train. Each run ends in the bits of weft-run ($2).
# Needs a Python with PyTorch; says so and is skipped (exit code 77) without.
set -euo pipefail
train_image=$1 weft_run=$2 kill_at_connect=$3
for python in "${PYTHON:-python3}" /usr/bin/python3; do
  "$python" -c "import torch.distributed.run" 2>/dev/null && break
  python=
done
[[ -n $python ]] || { echo "SKIPPED: no Python here has PyTorch (Debian: python3-torch)"; exit 77; }
echo "torchrun of PyTorch $("$python" -c "import torch; print(torch.__version__)")"

dir=$(mktemp -d /tmp/weft_torchrun.XXXXXX)
trap 'rm -rf "$dir"' EXIT
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60 HOME=$dir DIR=$dir TRAIN=$train_image
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
export ARGS="--data random:480x8x8x3 --model resnet8 --augment cifar --batch-size 12 --epochs 30 --workers 0 --lr 0.02 --device cpu"

fail() {
  echo "error: $*" >&2
  exit 1
}
free_port() { "$python" -c "import socket; s = socket.socket(); s.bind(('', 0)); print(s.getsockname()[1])"; }
# -r and -t: PyTorch 1.13 below Python 3.11 starts nothing where its outputs are not redirected.
torchrun() { timeout 200 "$python" -m torch.distributed.run -r 1 -t 1 --log_dir "$dir/logs" --no_python "$@"; }
command_of() { echo "exec \$TRAIN \$ARGS --resume auto --out \$DIR/$1 --export \$DIR/$1.safetensors"; }
wait_for() {  # wait_for NAME PROCESS…
  local name=$1 process status=0
  shift
  for process in "$@"; do wait "$process" || status=$?; done
  [[ $status -eq 0 ]] || { tail -n 40 "$dir/$name".*log >&2; fail "$name ended with status $status"; }
}
expect_same() {  # as weft-run's two or four ranks
  cmp -s "$dir/$1.safetensors" "$dir/$2.safetensors" || fail "$1 and $2 ended in different weights"
  echo "$1 ends in the weights of $2"
}

for ranks in 2 4; do
  timeout 200 "$weft_run" --nproc_per_node $ranks bash -c "$(command_of weft_run_$ranks)" > "$dir/weft_run_$ranks.log" 2>&1 ||
    { tail -n 20 "$dir/weft_run_$ranks.log" >&2; fail "weft-run"; }
done

torchrun --nproc_per_node 2 --master_port "$(free_port)" bash -c "$(command_of one_node)" > "$dir/one_node.log" 2>&1 &
wait_for one_node $!
expect_same one_node weft_run_2

port=$(free_port) processes=()
for node in 0 1; do
  torchrun --nnodes 2 --node_rank $node --nproc_per_node 2 --master_addr localhost --master_port "$port" \
    bash -c "$(command_of two_nodes)" > "$dir/two_nodes.$node.log" 2>&1 &
  processes+=($!)
done
wait_for two_nodes "${processes[@]}"
expect_same two_nodes weft_run_4

port=$(free_port) processes=()
for node in 0 1; do
  torchrun --nnodes 2 --nproc_per_node 2 --rdzv_backend c10d --rdzv_endpoint "localhost:$port" --rdzv_id 7 \
    bash -c "$(command_of elastic)" > "$dir/elastic.$node.log" 2>&1 &
  processes+=($!)
done
wait_for elastic "${processes[@]}"
expect_same elastic weft_run_4

# Rank 1 is killed at its first connect to rank 0's store, to its membership, to rank 0; all are started again.
for connect in 1 2 3; do
  torchrun --nproc_per_node 2 --max_restarts 1 --rdzv_backend c10d --rdzv_endpoint "localhost:$(free_port)" --rdzv_id "1$connect" bash -c "
    if [[ \$RANK = 1 && \$TORCHELASTIC_RESTART_COUNT = 0 ]]; then
      export LD_PRELOAD=$kill_at_connect KILL_AT_CONNECT=$connect
    fi
    $(command_of "start$connect")" > "$dir/start$connect.log" 2>&1 &
  wait_for "start$connect" $!
  grep -q "exitcode: -9" "$dir/start$connect.log" || fail "rank 1 was not killed at connect $connect"
  expect_same "start$connect" weft_run_2
done

# Rank 1 is killed behind the first checkpoint; all are started again and go on from there. (torchrun makes one of two dollars.)
torchrun --nproc_per_node 2 --max_restarts 1 --rdzv_backend c10d --rdzv_endpoint "localhost:$(free_port)" --rdzv_id 8 bash -c "
  if [[ \$RANK = 1 && \$TORCHELASTIC_RESTART_COUNT = 0 ]]; then
    rank=\$BASHPID
    (while [[ ! -e \$DIR/killed/checkpoint_last.safetensors ]]; do sleep 0.02; done; kill -9 \$rank) &
  fi
  $(command_of killed)" > "$dir/killed.log" 2>&1 &
wait_for killed $!
grep -q "rank 1 (process [0-9]* on .*) has died" "$dir/killed.log" && grep -q "resumed from" "$dir/killed.log" ||
  { tail -n 40 "$dir/killed.log" >&2; fail "expected rank 0 to name rank 1, and a second start to resume"; }
expect_same killed weft_run_2
