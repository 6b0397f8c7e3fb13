#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# docs/clusters.md as its reader follows it, in a real Slurm of one node with the programs in $1: the lines of the page that it marks,
# word by word, in an interactive job and as a batch job. Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
programs=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/slurm/cluster.sh"
enter_cluster
export HOME=$cluster SCRATCH=$cluster/scratch PATH=$programs:$PATH OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60
export ASAN_OPTIONS=detect_leaks=0 CUDA_VISIBLE_DEVICES=
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
mkdir "$SCRATCH" "$cluster/weft"
cp -r "$root/apps" "$cluster/weft"
cd "$cluster/weft"

fail() { echo "error: $*" >&2; exit 1; }
# The marked blocks of the page, one file each.
awk -v folder="$cluster" '/^<!-- tests\/slurm\/walk.sh/ { marked = 1; next }
  marked && /^```sh$/ { ++blocks; inside = 1; marked = 0; next }
  /^```$/ { inside = 0 }
  inside { print > (folder "/block" blocks) }' "$root/docs/clusters.md"
[[ -s $cluster/block1 && -s $cluster/block2 && ! -e $cluster/block3 ]] || fail "expected two marked blocks in docs/clusters.md"

# Interactive: on this machine's node, without its GPUs.
salloc -Q -N 1 --overcommit bash -c "srun --pty bash $cluster/block1" < /dev/null > "$cluster/interactive.log" 2>&1 || { cat "$cluster/interactive.log"; fail "the interactive job failed"; }
grep -q '^GPU usable: ' "$cluster/interactive.log" || { cat "$cluster/interactive.log"; fail "weft-info did not answer"; }
grep -q '2 ranks' "$SCRATCH/runs/first/config.toml" || fail "expected two ranks in the interactive job"
grep -q 'loss/val' "$cluster/interactive.log" || { cat "$cluster/interactive.log"; fail "weft-watch drew no loss"; }
[[ -s $SCRATCH/runs/first/summary.json ]] || fail "the interactive run did not end"
echo "interactive: two epochs on two ranks, drawn"

# Submitted: two tasks instead of four.
export SBATCH_OVERCOMMIT=1
sed -e "s|^sbatch |sbatch --ntasks-per-node=2 --cpus-per-task=1 --overcommit |" -e '/^tail/i for _ in $(seq 600); do compgen -G "generic_one_node.sh-*.out" > /dev/null && break; sleep 0.1; done' \
  -e '/^weft-watch/i for _ in $(seq 600); do [[ -s $SCRATCH/runs/second/metrics.jsonl ]] && break; sleep 0.1; done' "$cluster/block2" > "$cluster/submitted"
timeout 180 bash -e "$cluster/submitted" > "$cluster/submitted.log" 2>&1 || { cat "$cluster/submitted.log" ./*.out; fail "the lines that submit failed"; }
for words in '^Submitted batch job [0-9]+' 'JOBID +PARTITION' 'PARTITION +AVAIL' '^wrote curves.html: 2 runs'; do
  grep -qE "$words" "$cluster/submitted.log" || { cat "$cluster/submitted.log"; fail "expected '$words'"; }
done
grep -q '2 ranks' "$SCRATCH/runs/second/config.toml" || fail "expected two ranks in the batch job"
[[ -s $SCRATCH/runs/second/summary.json ]] || fail "weft-watch --follow ended before the run"
grep -q '<svg' curves.html || fail "expected curves in curves.html"
echo "submitted: three epochs on two ranks, followed until their end"
