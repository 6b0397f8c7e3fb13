#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# counts.sh SGEMM_CUDA FAST.CU: appends to counts.tsv, in the current folder, counts for the model of time (benchmarks/time_model/validate) of these
# clones' programs at published sizes. Cubins give the registers. Needs nvcc, ptxas and weft-emulate in PATH.
# SGEMM's kernels on an H100 are counted from `-gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=sm_90` with `--gpu h100`.
set -euo pipefail
[[ $# == 2 ]] || { sed -n '3,5s/^# //p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build() { nvcc -O2 -std=c++17 -cudart shared "$@"; }
count() { weft-emulate --gpu "$1" --time-waves 1 --time-table counts.tsv "${@:2}" unchecked; }
build -gencode arch=compute_80,code=compute_80 -gencode arch=compute_86,code=sm_86 -I "$1/src" "$here/sgemm_ladder.cu" -o sgemm
build -gencode arch=compute_90a,code=[compute_90a,sm_90a] -I "$2" "$here/fast_matmul.cu" -o fast -lcuda
build -gencode arch=compute_90a,code=[compute_90a,sm_90a] -I "$2" "$here/fast_sum.cu" -o fast_sum
count a6000 ./sgemm 4096 1 11
count h100 ./fast 4096 2 12
count h100 ./fast 4096 1 1
for n in 6144 8192; do count h100 ./fast $n 11 11; done
for k in 1 2 3 5; do count h100 ./fast_sum 1073741824 $k $k; done
