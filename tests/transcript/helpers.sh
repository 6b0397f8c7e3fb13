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

# numbers: the numbers of stdin's text, one a line.
numbers() { grep -oE -- '-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?'; }

# near BOUND A B: whether two files hold as many numbers, one a line, and no two are further apart; prints those that are.
near() { paste -d' ' "$2" "$3" | awk -v bound="$1" '{ n++ } NF != 2 || !(($1 - $2) ^ 2 <= bound ^ 2) { print; far = 1 } END { exit far || !n }'; }

# free_port: a port that nobody had a moment ago.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# torch_file: what a checkpoint of PyTorch's format holds, as JSON (torch_file.py).
torch_file() { "$WEFT"/tests/transcript/torch_file.py "$@"; }

# on_gpu PROGRAM…: with --device of this machine's GPU, or of the emulated one where there is none.
on_gpu() { env -u CUDA_VISIBLE_DEVICES "$@" --device "$([ -e /dev/nvidiactl ] && echo cuda || echo "emulated:${WEFT_TEST_GPU:-h100}")"; }

# distance A B: how far two lists of numbers (JSON, nested or not) are apart: ‖a - b‖ / ‖b‖.
distance() {
  jq -n --slurpfile a "$1" --slurpfile b "$2" 'def norm: map(. * .) | add | sqrt;
    [$a, $b] | map(flatten) | if map(length) | .[0] == .[1] then (transpose | map(.[0] - .[1]) | norm) / (.[1] | norm) else error("not as many numbers") end'
}

# mpi N PROGRAM…: PROGRAM on N ranks of Open MPI, which leave a busy processor to one another.
mpi() { mpirun --mca mpi_yield_when_idle 1 --allow-run-as-root --oversubscribe --bind-to none -np "$@"; }

# until_true COMMAND…: waits until it succeeds, at most two minutes.
until_true() { for _ in $(seq 2400); do eval "$*" > /dev/null 2>&1 && return; sleep 0.05; done; echo "not in two minutes: $*"; return 1; }
