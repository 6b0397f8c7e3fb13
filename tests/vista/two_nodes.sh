#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Vista workflow's command lines on two "hosts" (tests/support/two_hosts.sh), one rank on each. Usage: two_nodes.sh BIN SCRIPTS.
set -euo pipefail
export PATH=$1:$PATH
scripts=$2
source "$(dirname "$0")/../support/two_hosts.sh"
make_hosts
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT SLURM_JOB_NODELIST

fail() {
  echo "error: $*" >&2
  exit 1
}
on_both() {  # on_both NAME COMMAND…: one process on each host, in the folder $dir/NAME; its stdout in NAME.log
  local name=$1
  shift
  mkdir -p "$dir/$name"
  (cd "$dir/$name" && mpirun_on_hosts 1 -np 2 --map-by ppr:1:node -x PATH "$@") > "$dir/$name.log" 2> "$dir/$name.err" ||
    { cat "$dir/$name.log" "$dir/$name.err" >&2; fail "$name ended with an error"; }
}
expect() {  # expect NAME COUNT LINE
  local got
  got=$(grep -cE "^$3\$" "$dir/$1.log" || true)
  [[ $got -eq $2 ]] || { cat "$dir/$1.log" >&2; fail "$1: expected $2 lines '$3', got $got"; }
}
expect_epochs() {  # expect_epochs NAME EPOCHS SAVED
  for rank in 0 1; do expect "$1" "$2" "\[GPU$rank\] Epoch [0-9]+ \| Batchsize: 32 \| Steps: 32"; done
  expect "$1" "$3" 'Epoch [0-9]*0 \| Training snapshot saved at snapshot\.pt'
}

on_both direct multinode 50 10
expect_epochs direct 50 5
echo "mpirun --map-by ppr:1:node multinode 50 10: five snapshots"

on_both script "$scripts/run.sh" "$address_a" 2
expect_epochs script 50 5
mv "$dir/script.log" "$dir/first.log"
on_both script "$scripts/run.sh" "$address_a" 2
expect_epochs script 10 1
expect script 2 'Loading snapshot'
expect script 2 'Resuming training from snapshot at Epoch 40'
echo "mpirun --map-by ppr:1:node run.sh HOST 2: five snapshots, then resumed at 40"

mkdir -p "$dir/finetune/data"
for part in train dev; do
  { printf 'sentence\tlabel\n'
    for i in 1 2 3 4 5 6 7 8; do printf 'a good film %d\t1\na bad film %d\t0\n' $i $i; done; } > "$dir/finetune/data/$part.tsv"
done
export HOSTS="$address_a $address_b"
on_both finetune -x HOSTS "$scripts/multinode.sh" --data data --model bert_tiny --vocab-size 100 --epochs 1 --batch-size 4
expect finetune 1 "Training command: weft-run --config_file multi_config.yaml --num_machines 2 --machine_rank=0 .* --num_processes 2 finetune .*"
expect finetune 1 "Training command: weft-run --config_file multi_config.yaml --num_machines 2 --machine_rank=1 .* --num_processes 2 finetune .*"
expect finetune 1 'ranks   2 over .*'
expect finetune 1 "\{'train_runtime': .*"
[[ -f $dir/finetune/test-trainer/checkpoint-2/model.safetensors ]] || fail "finetune has left no checkpoint of two steps"
grep -qx 'num_machines: 2' "$dir/finetune/multi_config.yaml" || fail "multi_config.yaml should name two machines"
echo "mpirun --map-by ppr:1:node multinode.sh: two ranks have trained together"
