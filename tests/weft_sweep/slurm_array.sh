#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A sweep as a job array of a real Slurm: weft-sweep ($1) writes the script, sbatch runs it, each task picks its point, a task whose
# program ends with a checkpoint is requeued. Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
weft_sweep=$1
source "$(dirname "$0")/../slurm/cluster.sh"
enter_cluster
export HOME=$cluster
cd "$cluster"

cat > train <<'PROGRAM'
#!/bin/bash
x=${1#--x=} out=$2
if [[ $x == 3 && ! -f $out/checkpoint ]]; then touch "$out/checkpoint"; exit 75; fi
echo "{\"step\":1,\"val_loss\":$(( (x - 2) * (x - 2) ))}" > "$out/metrics.jsonl"
PROGRAM
chmod +x train

"$weft_sweep" --grid x=1,2,3 --metric val_loss --out "a sweep" --jobs 2 --slurm --sbatch "--time=5 --overcommit" -- "$cluster/train" "--x={x}" "{run}"
grep -qx '#SBATCH --array=0-2%2' "a sweep/sweep.sbatch" || { cat "a sweep/sweep.sbatch"; exit 1; }
grep -qx '#SBATCH --time=5' "a sweep/sweep.sbatch" || { cat "a sweep/sweep.sbatch"; exit 1; }
job=$(sbatch --parsable "a sweep/sweep.sbatch")
for _ in $(seq 600); do
  for task in $(squeue -h -r -t PENDING -o %i); do wake_requeued "$task"; done
  [[ -z $(squeue -h -j "$job" 2>/dev/null) ]] && break
  sleep 0.2
done
status=0
"$weft_sweep" --out "a sweep" --rank > ranking.txt 2>&1 || status=$?
if [[ $status -ne 0 ]] || ! sed -n 2p ranking.txt | grep -q '^ *1  x=2 ' || ! grep -q 'x=3 .* 1 ' ranking.txt; then
  cat ranking.txt "a sweep"/slurm-*.log >&2
  echo "error: expected x=2 before x=1 and x=3, got the above" >&2
  exit 1
fi
[[ -f "a sweep/x=3/checkpoint" ]] || { echo "error: x=3 was not requeued" >&2; exit 1; }
cat ranking.txt
echo "three tasks, one of them requeued, are ranked"
