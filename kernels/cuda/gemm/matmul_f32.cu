// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matmul_problem.cuh"

namespace weft::kernels::cuda {

template <>
bool matmul_wgmma<float>(const Queue& queue, const MatmulCall& call);

template <>
void matmul_of<float>(const Queue& queue, const MatmulCall& call) {
  if (!allow_tf32() || !matmul_wgmma<float>(queue, call)) matmul_by_layout<float>(queue, call);
}

template <>
void row_sums_matmul_of<float>(const Queue& queue, const MatmulCall& call) {
  row_sums_matmul<float>(queue, call);
}

}  // namespace weft::kernels::cuda
