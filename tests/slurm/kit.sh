#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Submits every script of apps/slurm to a real Slurm, whose one node has the sites' partitions, features and GPUs by name: two ranks
# of train_image ($1) each, which end in the same bits; with an image; and through a requeue, by srun and by mpirun ($2 says whether
# there is one). Needs root, slurm-wlm and munge; says so and is skipped (exit code 77) without.
set -euo pipefail
train_image=$1 has_mpi=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/tests/slurm/cluster.sh"
enter_cluster
dir=$cluster
export WEFT_START_TIMEOUT=60 OMP_WAIT_POLICY=passive HOME=$dir OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 ASAN_OPTIONS=detect_leaks=0
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
module() { echo "module $*"; }
export -f module
# What the images' programs would do: note what they were asked for, and run the rest.
mkdir "$dir/bin"
printf '#!/bin/bash\necho "apptainer ${*:1:5}"\nexec "${@:6}"\n' > "$dir/bin/apptainer"
printf '#!/bin/bash\necho "shifter ${*:1:2}"\nexec "${@:3}"\n' > "$dir/bin/shifter"
chmod +x "$dir"/bin/*
export PATH=$dir/bin:$PATH
arguments=(--data random:96x8x8x3 --model resnet8 --augment cifar --batch-size 12 --workers 0 --lr 0.02 --device cpu --backend gloo)

fail() {
  echo "error: $*" >&2
  exit 1
}
submit() {  # submit SCRIPT NAME SBATCH-OPTION… -- PROGRAM…: the job's number; its output goes to NAME.log
  local script=$1 name=$2 options=()
  shift 2
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  shift
  (cd "$root" && sbatch --parsable --output="$dir/$name.log" "${options[@]}" "apps/slurm/$script.sh" "$@")
}
small=(--nodes=1 --ntasks-per-node=2 --cpus-per-task=1 --overcommit)
wait_for() {  # wait_for JOB NAME: until it has ended well
  wait_for_job "$1" || { cat "$dir/$2.log" >&2; fail "$2: $job_state"; }
}

first=
for path in "$root"/apps/slurm/*_*.sh; do
  script=$(basename "$path" .sh)
  if [[ $script == vista* && $has_mpi != 1 ]]; then
    echo "SKIPPED: $script: no mpirun"
    continue
  fi
  job=$(submit "$script" "$script" "${small[@]}" -- "$train_image" "${arguments[@]}" --epochs 2 --out "$dir/$script" --export "$dir/$script.safetensors")
  wait_for "$job" "$script"
  grep -q "2 ranks, by" "$dir/$script.log" || { cat "$dir/$script.log" >&2; fail "$script: expected 2 ranks"; }
  grep -q "2 ranks" "$dir/$script/config.toml" || fail "$script: the program saw no second rank"
  [[ -n $first ]] || first=$script
  cmp -s "$dir/$first.safetensors" "$dir/$script.safetensors" || fail "$script and $first ended in different weights"
  echo "$script: the weights of $first"
done

# In an image: by srun and by mpirun.
in_images=(generic_one_node perlmutter_one_node juwels_booster_one_node)
[[ $has_mpi != 1 ]] || in_images+=(vista_many_nodes)
for script in "${in_images[@]}"; do
  job=$(WEFT_CONTAINER=weft:1 submit $script "in_$script" "${small[@]}" -- "$train_image" "${arguments[@]}" --max-steps 1 --out "$dir/image_$script")
  wait_for "$job" "in_$script"
  case $script in
    perlmutter*) expected="shifter --image=weft:1 --module=gpu,nccl-plugin" ;;
    *) expected="apptainer exec --nv --bind $root weft:1" ;;
  esac
  [[ $(grep -cF "$expected" "$dir/in_$script.log") -eq 2 ]] || { cat "$dir/in_$script.log" >&2; fail "$script: expected two ranks in '$expected'"; }
  echo "$script: in its image"
done

# The build job: the site's modules, then tools/install (here one that notes what it is told).
mkdir -p "$dir/source/tools"
printf '#!/bin/bash\necho "install $* with JOBS=$JOBS"\n' > "$dir/source/tools/install"
chmod +x "$dir/source/tools/install"
job=$(cd "$dir/source" && WEFT_SLURM=$root/apps/slurm WEFT_SITE=perlmutter sbatch --parsable --output="$dir/build.log" --cpus-per-task=2 \
  --overcommit "$root/apps/slurm/build.job" "$dir/prefix" --as-is)
wait_for "$job" build
for line in "module load PrgEnv-gnu cudatoolkit nccl cray-hdf5" "install --prefix $dir/prefix --as-is with JOBS=2"; do
  grep -qx -- "$line" "$dir/build.log" || { cat "$dir/build.log" >&2; fail "build.job: expected '$line'"; }
done
echo "build.job: modules, then tools/install"

# Nothing to run.
job=$(submit generic_one_gpu nothing "${small[@]}" --)
for _ in $(seq 100); do grep -q usage "$dir/nothing.log" 2>/dev/null && break; sleep 0.2; done
grep -q "usage: sbatch SCRIPT PROGRAM" "$dir/nothing.log" || fail "expected the usage of a job without a program"

# The time limit: Slurm's warning, here by hand, to the step's tasks or to the batch shell.
requeue() {  # requeue SCRIPT SCANCEL-OPTION…
  local script=$1 job
  shift
  job=$(submit "$script" "requeued_$script" "${small[@]}" -- "$train_image" "${arguments[@]}" --epochs 180 --usr1 stop --resume auto \
    --out "$dir/requeued_$script" --export "$dir/requeued_$script.safetensors")
  for _ in $(seq 300); do
    [[ -f $dir/requeued_$script/metrics.jsonl && $(wc -l < "$dir/requeued_$script/metrics.jsonl") -ge 6 ]] && break
    sleep 0.1
  done
  scancel --signal=USR1 "$@" "$job"
  for _ in $(seq 300); do
    grep -q "queued again" "$dir/requeued_$script.log" && break
    sleep 0.2
  done
  grep -q "queued again" "$dir/requeued_$script.log" || { cat "$dir/requeued_$script.log" >&2; fail "$script was not queued again"; }
  for _ in $(seq 300); do
    wake_requeued "$job"
    grep -q "attempt 2" "$dir/requeued_$script.log" && break
    sleep 0.5
  done
  wait_for "$job" "requeued_$script"
  cmp -s "$dir/whole.safetensors" "$dir/requeued_$script.safetensors" || fail "$script: a requeued run ended in other weights"
  echo "$script: stopped, queued again, the weights of a run that was left alone"
}
job=$(submit generic_one_node whole "${small[@]}" -- "$train_image" "${arguments[@]}" --epochs 180 --out "$dir/whole" --export "$dir/whole.safetensors")
wait_for "$job" whole
requeue generic_one_node
if [[ $has_mpi == 1 ]]; then requeue vista_many_nodes --batch; fi
