// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matmul_problem.cuh"

namespace weft::kernels::cuda {

template <>
bool matmul_wgmma<f16>(const Queue& queue, const MatmulCall& call);

template <>
void matmul_of<f16>(const Queue& queue, const MatmulCall& call) {
  if (!matmul_wgmma<f16>(queue, call)) matmul_by_layout<f16>(queue, call);
}

template <>
bool row_sums_matmul_wgmma<f16>(const Queue& queue, const MatmulCall& call);

template <>
void row_sums_matmul_of<f16>(const Queue& queue, const MatmulCall& call) {
  if (!row_sums_matmul_wgmma<f16>(queue, call)) row_sums_matmul<f16>(queue, call);
}

}  // namespace weft::kernels::cuda
