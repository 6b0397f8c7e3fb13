# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What transcripts call besides programs. jq reads JSON, `weft-weights diff` compares weights.

# of FILE KEY: the values of a key in a file of JSON lines (metrics.jsonl), one a line.
of() { jq -r --arg key "$2" 'select(has($key)) | .[$key]' "$1"; }

# same A B: whether two files have the same bytes; says nothing if so.
same() { cmp "$1" "$2"; }

# ranks N PROGRAM…: PROGRAM on N ranks of this machine.
ranks() { weft-run --nproc_per_node "$@"; }

# until_true COMMAND…: waits until it succeeds, at most two minutes.
until_true() { for _ in $(seq 2400); do eval "$*" > /dev/null 2>&1 && return; sleep 0.05; done; echo "not in two minutes: $*"; return 1; }

# state FILE: what a checkpoint or a safetensors file holds, a line each (weights.py); apart NORM LARGEST A B [PREFIX]: whether two lie within bounds.
state() { "$WEFT"/tests/transcript/weights.py state "$@"; }
apart() { "$WEFT"/tests/transcript/weights.py apart "$@"; }
# same_state A B: whether both checkpoints hold the same bits; says what differs.
same_state() { diff <(state "$1") <(state "$2"); }

# torch_file: what a checkpoint of PyTorch's format holds, as JSON (torch_file.py).
torch_file() { "$WEFT"/tests/transcript/torch_file.py "$@"; }
