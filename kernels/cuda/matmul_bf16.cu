// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/matmul_problem.cuh"

namespace weft::kernels::WEFT_DEVICE {

template <>
void matmul_of<bf16>(const Queue& queue, const View& y, const View& a, const View& b, const View& bias,
                     const MatmulArguments& arguments) {
  matmul_by_layout<bf16>(queue, y, a, b, bias, arguments);
}

}  // namespace weft::kernels::WEFT_DEVICE
