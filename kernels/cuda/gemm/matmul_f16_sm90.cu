// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matmul_sm90.cuh"

namespace weft::kernels::cuda {

template <>
bool matmul_wgmma<f16>(const Queue& queue, const MatmulCall& call) {
  return matmul_wgmma_by_layout<f16>(queue, call);
}

template <>
bool row_sums_matmul_wgmma<f16>(const Queue& queue, const MatmulCall& call) {
  return row_sums_matmul_wgmma_by_tma<f16>(queue, call);
}

}  // namespace weft::kernels::cuda
