#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Submits the three job scripts of the folder $2 to a real Slurm of one machine, as their users do; the programs are in $1.
# Needs root, slurm-wlm, munge and mpirun; says so and is skipped (exit code 77) without.
set -euo pipefail
bin=$1 scripts=$2
source "$(dirname "$0")/../slurm/cluster.sh"
enter_cluster
dir=$cluster
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive WEFT_START_TIMEOUT=60 HOME=$dir
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT TMPDIR_SHM

fail() {
  echo "error: $*" >&2
  exit 1
}
# What an installation looks like.
mkdir -p "$dir/ml-dist/weft/venv/libexec/weft/ml_dist" "$dir/ml-dist/weft/data/MNIST/raw"
ln -s "$bin" "$dir/ml-dist/weft/venv/bin"
for name in mnist base_training ddp_training horovod_training; do
  ln -s "$bin/$name" "$dir/ml-dist/weft/venv/libexec/weft/ml_dist/$name"
done
# 128 images of noise for training, 50 for testing, in ten classes.
python3 - "$dir/ml-dist/weft/data/MNIST/raw" <<'EOF2'
import os, struct, sys
for part, count in (("train", 128), ("t10k", 50)):
    with open(f"{sys.argv[1]}/{part}-images-idx3-ubyte", "wb") as out:
        out.write(struct.pack(">4I", 0x803, count, 28, 28) + os.urandom(count * 784))
    with open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte", "wb") as out:
        out.write(struct.pack(">2I", 0x801, count) + bytes(i % 10 for i in range(count)))
EOF2

submit() {  # submit NAME TASKS ENVIRONMENT…: runs NAME_pytorch.job to its end; its output in NAME$suffix.log
  local name=$1 tasks=$2 log=$1${suffix:-}
  shift 2
  sbatch_wait ML_DIST_PATH="$dir/ml-dist" ML_DIST_TRAIN_ARGS="--epochs 2 --save-model --device cpu" "$@" \
    --partition=p --constraint= --ntasks-per-node="$tasks" --overcommit --output="$dir/$log.log" "$scripts/${name}_pytorch.job" ||
    { cat "$dir/$log.log" >&2; fail "$log: $job_state"; }
}
expect() {  # expect NAME COUNT PATTERN: so many lines of its output match
  local got
  got=$(grep -cE "$3" "$dir/$1.log" || true)
  [[ $got -eq $2 ]] || { cat "$dir/$1.log" >&2; fail "$1: expected $2 lines of '$3', got $got"; }
}
number='[0-9]+\.[0-9]'
submit base 1
expect base 2 "^Train Epoch: [12] \[0/128 \(0%\)\]	Loss: ${number}{6}$"
expect base 2 "^Test set: Average loss: ${number}{4}, Accuracy: [0-9]+/50 \([0-9]+%\)$"
submit ddp 1 ML_DIST_GPUS_PER_NODE=2
expect ddp 4 "^Train Epoch: [12] \[0/64 \(0%\)\]	Loss: ${number}{6} $"
expect ddp 4 "^Test set: Average loss: ${number}{4}, Accuracy: [0-9]+/50 \([0-9]+%\)$"
submit horovod 2
expect horovod 4 "^Train Epoch: [12] \[0/64 \(0%\)\]	Loss: ${number}{6}$"
expect horovod 4 "^Test set: Average loss: ${number}{4}, Accuracy: ${number}{4}%$"
for name in base ddp horovod; do
  for key in TEST_NAME FRAMEWORK TRAIN_SCRIPT OUTPUT DATA VENV CONTAINER; do expect $name 1 "^### $key: "; done
  expect $name 1 '^real	'
  compgen -G "$dir/ml-dist/weft/output/weft-$name-*/mnist_cnn.pt" > /dev/null || fail "$name has left no mnist_cnn.pt"
  echo "$name: its lines and its model are there"
done

# In the image, whose programs are in its PATH; apptainer notes what it was asked for, and runs the rest.
mkdir "$dir/fake"
printf '#!/bin/bash\necho "apptainer ${*:1:5}"\nexec "${@:6}"\n' > "$dir/fake/apptainer"
chmod +x "$dir/fake/apptainer"
touch "$dir/weft.sif"
image=(ML_DIST_USE_CONTAINER=1 ML_DIST_CONTAINER="$dir/weft.sif" PATH="$dir/fake:$bin:$PATH")
suffix=_image
submit base 1 "${image[@]}" ML_DIST_TEST_NAME=image-base
submit ddp 1 "${image[@]}" ML_DIST_TEST_NAME=image-ddp ML_DIST_GPUS_PER_NODE=2
submit horovod 2 "${image[@]}" ML_DIST_TEST_NAME=image-horovod
for name in base ddp horovod; do
  expect ${name}_image "$([[ $name == horovod ]] && echo 2 || echo 1)" "^apptainer run --nv -B $dir/ml-dist:$dir/ml-dist $dir/weft\.sif$"
  expect ${name}_image "$([[ $name == base ]] && echo 2 || echo 4)" "^Test set: Average loss: "
  compgen -G "$dir/ml-dist/weft/output/image-$name-*/mnist_cnn.pt" > /dev/null || fail "$name has left no mnist_cnn.pt from its image"
  echo "$name: the same in its image"
done

# What is not there is said before anything runs; a shell's own DATA, OUTPUT and the like are none of the job's.
if env DATA=/their/data OUTPUT=/their/output CONTAINER_NAME=theirs VENV=/their/venv ML_DIST_PATH="$dir/elsewhere" SLURM_JOB_NAME=x bash "$scripts/base_pytorch.job" 2> "$dir/refusal.log"; then
  fail "base_pytorch.job should miss its program"
fi
grep -q '^!!! there is no program .*base_training: set ML_DIST_VENV to what Weft was installed to$' "$dir/refusal.log" ||
  { cat "$dir/refusal.log" >&2; fail "base_pytorch.job should say what it misses"; }
! grep -E 'their' "$dir/refusal.log" || fail "base_pytorch.job took variables of the shell"
