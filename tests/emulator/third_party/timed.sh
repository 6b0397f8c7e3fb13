#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timed.sh SGEMM_CUDA FAST.CU: on an H100 or H200, writes measured.tsv: times of these clones' kernels, without Weft (timed.h), beside cuBLAS as
# kernel 0 where libcublas.so.13 is found. `benchmarks/time_model/validate --measured measured.tsv` compares them with predictions.
# From compute_90 SGEMM's step 12 becomes other code, so its PTX is compute_80's.
set -euo pipefail
[[ $# == 2 ]] || { sed -n '3,5s/^# //p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build() { nvcc -O3 -DNDEBUG -std=c++17 -w "$@"; }
build -gencode arch=compute_80,code=sm_90 -I "$1/src" "$here/sgemm_ladder.cu" -o sgemm
build --use_fast_math --expt-relaxed-constexpr -gencode arch=compute_90a,code=sm_90a -I "$2" "$here/fast_matmul.cu" -o fast -lcuda
build -gencode arch=compute_90a,code=sm_90a -I "$2" "$here/fast_sum.cu" -o fast_sum
(
  ./sgemm 4096 1 12 timed
  ./fast 4096 1 12 timed
  ./fast 6144 11 11 timed
  ./fast 8192 11 12 timed
  ./fast_sum 1073741824 1 3 timed
  ./fast_sum 1073741824 5 5 timed
) > measured.tsv
