#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each kind of forbidden include in a tree of its own and expects tools/check_layers ($1) to find just that.
set -euo pipefail
check=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{kernels,core,io,nn,optim,data,dist/{group,ddp,fsdp,tensor},train,apps/support,apps/train}

expect() {  # expect FILE LINE REPORT: with this line in the file, the report is this text ("" for none)
  echo "$2" > "$tree/$1"
  local report
  report=$("$check" "$tree" || true)
  rm "$tree/$1"
  if [[ $report != "${3:+check_layers: $1:1: $3}" ]]; then
    echo "$1 with $2: expected '$3', got '$report'"
    exit 1
  fi
}

expect core/a.h '#include "nn/module.h"' 'core must not include nn/module.h'
expect kernels/a.cu '#include "core/tensor.h"' 'kernels must not include core/tensor.h'
expect core/a.cpp '#include "io/seal.h"' 'core must not include io/seal.h'
expect io/a.cpp '#include "data/dataset.h"' 'io must not include data/dataset.h'
expect nn/a.cpp '#include "optim/optimizers.h"' 'nn must not include optim/optimizers.h'
expect data/a.h ' # include "dist/ddp/ddp.h"' 'data must not include dist/ddp/ddp.h'
expect dist/ddp/a.cpp '#include "apps/support/flags.h"' 'dist must not include apps/support/flags.h'
expect dist/group/a.cpp '#include "dist/ddp/ddp.h"' 'dist/group must not include dist/ddp/ddp.h'
expect dist/fsdp/a.cpp '#include "dist/tensor/partition.h"' 'dist/fsdp must not include dist/tensor/partition.h'
expect dist/ddp/b.cpp '#include "train/engine.h"' 'dist must not include train/engine.h'
expect train/a.cpp '#include "apps/support/flags.h"' 'train must not include apps/support/flags.h'
expect apps/support/a.cpp '#include "apps/train/a.h"' 'apps/support must not include apps/train/a.h'
expect core/a.cpp '#include <cuda_runtime.h>' 'CUDA header cuda_runtime.h outside emulator/, kernels/ and dist/group/nccl*'
expect dist/group/a.cpp '#include <nccl.h>' 'CUDA header nccl.h outside emulator/, kernels/ and dist/group/nccl*'
expect nn/a.cpp '#include "core/tensor.h"' ''
expect data/a.cpp '#include "io/npy.h"' ''
expect dist/fsdp/a.cpp '#include "dist/ddp/flat_buffers.h"' ''
expect apps/train/a.cpp '#include "apps/support/flags.h"' ''
expect kernels/a.cu '#include <cuda_bf16.h>' ''
expect dist/group/nccl_group.cpp '#include <nccl.h>' ''
expect nn/a.cpp '#include "nn/module.h"' ''
