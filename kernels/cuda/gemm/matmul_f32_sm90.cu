// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matmul_sm90.cuh"

// f32 runs as tf32: the caller has checked allow_tf32().

namespace weft::kernels::cuda {

template <>
bool matmul_wgmma<float>(const Queue& queue, const MatmulCall& call) {
  return matmul_wgmma_by_layout<float>(queue, call);
}

}  // namespace weft::kernels::cuda
