// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_forward_wgmma.cuh"

namespace weft::kernels::cuda {

template <>
bool attention_forward_wgmma<f16>(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                                  const AttentionShape& shape, const AttentionProblem<float>& problem) {
  return attention_forward_on_wgmma<f16>(queue, y, q, k, v, shape, problem);
}

}  // namespace weft::kernels::cuda
