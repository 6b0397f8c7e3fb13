// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matmul_problem.cuh"

namespace weft::kernels::cuda {

template <>
void matmul_of<double>(const Queue& queue, const MatmulCall& call) {
  matmul_by_layout<double>(queue, call);
}

template <>
void row_sums_matmul_of<double>(const Queue& queue, const MatmulCall& call) {
  row_sums_matmul<double>(queue, call);
}

}  // namespace weft::kernels::cuda
