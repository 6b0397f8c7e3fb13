// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matmul_problem.cuh"

namespace weft::kernels::cuda {

template <>
bool matmul_wgmma<bf16>(const Queue& queue, const MatmulCall& call);

template <>
void matmul_of<bf16>(const Queue& queue, const MatmulCall& call) {
  if (!matmul_wgmma<bf16>(queue, call)) matmul_by_layout<bf16>(queue, call);
}

template <>
bool row_sums_matmul_wgmma<bf16>(const Queue& queue, const MatmulCall& call);

template <>
void row_sums_matmul_of<bf16>(const Queue& queue, const MatmulCall& call) {
  if (!row_sums_matmul_wgmma<bf16>(queue, call)) row_sums_matmul<bf16>(queue, call);
}

}  // namespace weft::kernels::cuda
