#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each kind of forbidden include in a house of its own and expects tools/check_layers ($1) to find just that.
set -euo pipefail
check=$1
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
mkdir -p "$house"/{kernels,core,nn,optim,data,dist,apps/support,apps/train}

expect() {  # expect FILE LINE REPORT: with this line in the file, the report is this text ("" for none)
  echo "$2" > "$house/$1"
  local report
  report=$("$check" "$house" || true)
  rm "$house/$1"
  if [[ $report != "${3:+check_layers: $1:1: $3}" ]]; then
    echo "$1 with $2: expected '$3', got '$report'"
    exit 1
  fi
}

expect core/a.h '#include "nn/module.h"' 'core must not include nn/module.h'
expect kernels/a.cu '#include "core/tensor.h"' 'kernels must not include core/tensor.h'
expect nn/a.cpp '#include "optim/sgd.h"' 'nn must not include optim/sgd.h'
expect data/a.h ' # include "dist/ddp.h"' 'data must not include dist/ddp.h'
expect dist/a.cpp '#include "apps/support/flags.h"' 'dist must not include apps/support/flags.h'
expect apps/support/a.cpp '#include "apps/train/a.h"' 'apps/support must not include apps/train/a.h'
expect core/a.cpp '#include <cuda_runtime.h>' 'CUDA header cuda_runtime.h outside emulator/, kernels/ and dist/nccl*'
expect dist/a.cpp '#include <nccl.h>' 'CUDA header nccl.h outside emulator/, kernels/ and dist/nccl*'
expect nn/a.cpp '#include "core/tensor.h"' ''
expect apps/train/a.cpp '#include "apps/support/flags.h"' ''
expect kernels/a.cu '#include <cuda_bf16.h>' ''
expect dist/nccl_group.cpp '#include <nccl.h>' ''
expect nn/a.cpp '#include "nn/module.h"' ''
