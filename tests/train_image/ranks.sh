# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# begin_by_hand N PROGRAM…: starts ranks by hand, with torchrun's variables; their output goes into log.RANK, their processes are ${ranks[@]}.
begin_by_hand() {
  local size=$1 port rank
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  ranks=()
  rm -f log.[0-9]*  # until_true must not read those of an earlier job
  for ((rank = 0; rank < size; ++rank)); do
    (exec env RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE="$size" LOCAL_WORLD_SIZE="$size" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" OMP_NUM_THREADS=1 "${@:2}") > "log.$rank" 2>&1 &
    ranks+=($!)
  done
}

# ended: waits for the ranks, and prints their exit codes unless all are 0.
ended() {
  local process codes=()
  for process in "${ranks[@]}"; do
    wait "$process" 2> /dev/null
    codes+=($?)
  done
  [[ ${codes[*]} =~ ^[0\ ]*$ ]] || echo "exit codes ${codes[*]}"
}

by_hand() { begin_by_hand "$@"; ended; }

last() { echo "$1/checkpoint_last.safetensors"; }

# counts RUN: the whole numbers of its last checkpoint: epochs, steps, images, the global batch. losses RUN: those of its metrics.
counts() { state "$(last "$1")" | grep '^[a-z_]* [0-9]*$'; }
losses() { of "$1/metrics.jsonl" loss; }

# close A B: whether two runs had the same steps, and nearly the same losses and weights.
close() {
  apart 5e-3 2e-2 "$(last "$1")" "$(last "$2")" model/
  diff <(counts "$1") <(counts "$2")
  paste <(losses "$1") <(losses "$2") | awk '{ few += NF != 2; apart += ($1 - $2) ^ 2; size += $2 ^ 2 } END { if (few || !NR || !(apart <= 5e-3 ^ 2 * size)) print "losses" }'
}
