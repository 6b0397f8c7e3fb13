// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul_problem.cuh"

namespace weft::kernels::WEFT_DEVICE {

template <>
void matmul_of<bf16>(const Queue& queue, const MatmulCall& call) {
  matmul_by_layout<bf16>(queue, call);
}

}  // namespace weft::kernels::WEFT_DEVICE
