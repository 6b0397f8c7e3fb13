# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What transcripts call besides programs. jq reads JSON, `weft-weights diff` compares weights.

# of FILE KEY: the values of a key in a file of JSON lines (metrics.jsonl), one a line.
of() { jq -r --arg key "$2" 'select(has($key)) | .[$key]' "$1"; }

# same A B: whether two files have the same bytes; says nothing if so.
same() { cmp "$1" "$2"; }

# fails COMMAND…: what it prints, and behind that its exit code.
fails() { local said; said=$("$@" 2>&1); echo "$said [$?]"; }

# ranks N PROGRAM…: PROGRAM on N ranks of this machine.
ranks() { weft-run --nproc_per_node "$@"; }
