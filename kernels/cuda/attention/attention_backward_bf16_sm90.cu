// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_backward_wgmma.cuh"

namespace weft::kernels::cuda {

template <>
bool attention_backward_wgmma<bf16>(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                                    const View& q, const View& k, const View& v, const View& y,
                                    const AttentionShape& shape, const AttentionProblem<float>& problem) {
  return attention_backward_on_wgmma<bf16>(queue, dq, dk, dv, dy, q, k, v, y, shape, problem);
}

}  // namespace weft::kernels::cuda
