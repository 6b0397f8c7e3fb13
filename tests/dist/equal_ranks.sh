#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# n ranks equal one, on every host backend: runs dist_equal_ranks as threads, as processes over Gloo and under mpirun, and
# wants the same bits from all. Usage: equal_ranks.sh BIN_FOLDER [all]: 20 steps on 3 ranks on the CPU; with `all` on 1 to 4
# ranks. GPUs: emulator.ranks_equal_one, DdpOnGpu and FsdpOnGpu.
set -euo pipefail
bin=$1
export WEFT_COLLECTIVES=own OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
dir=$(mktemp -d /tmp/weft_equal.XXXXXX)
trap 'rm -rf "$dir"' EXIT

backends="gloo mpi"
command -v mpirun >/dev/null || { backends=gloo; echo "SKIPPED: backend mpi needs mpirun (Debian: openmpi-bin)"; }

# run BACKEND RANKS ARGUMENTS…: one line per case
run() {
  local backend=$1 ranks=$2
  shift 2
  case $backend in
    threads) "$bin/dist_equal_ranks" "$@" "$ranks" ;;
    gloo) "$bin/weft-run" --nproc_per_node "$ranks" "$bin/dist_equal_ranks" "$@" ;;
    mpi) mpirun --allow-run-as-root --oversubscribe --bind-to none -np "$ranks" "$bin/dist_equal_ranks" "$@" ;;
  esac
}

matrix() {  # DEVICE STEPS RANKS…
  local device=$1 steps=$2 ranks backend
  shift 2
  for ranks in "$@"; do
    for backend in threads $backends; do
      timeout 1200 bash -c "$(declare -f run); bin='$bin'; run $backend $ranks $device $steps" > "$dir/$backend" 2> "$dir/errors" ||
        { echo "$device, $ranks ranks, $backend failed:"; cat "$dir/$backend"; tail -n 20 "$dir/errors"; exit 1; }
      diff "$dir/threads" "$dir/$backend" ||
        { echo "$device, $ranks ranks: threads (<) and $backend (>) differ"; exit 1; }
    done
    awk -v what="$device, $ranks ranks, $steps steps" -v backends="threads $backends" '
      { if ($8 > most) most = $8; if ($8 / $10 > share) share = $8 / $10; if ($6 / $10 > share) share = $6 / $10 }
      END { gsub(" ", " = ", backends)
            printf "%s: %d cases, %s bit for bit; weights off by %.1e at most, %.0f%% of what they may be\n", what, NR, backends, most, 100 * share
            exit NR == 30 ? 0 : 1 }' "$dir/threads"
  done
}

if [ "${2:-}" = all ]; then
  matrix cpu 20 1 2 3 4
else
  matrix cpu 20 3
fi
