// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/attention.h"

#include "kernels/cuda/attention/attention_forward_fma.cuh"
#include "kernels/cuda/attention/attention_forward_mma.cuh"
#include "kernels/engines/dispatch.h"

namespace weft::kernels::cuda {

template <>
bool attention_forward_wgmma<bf16>(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                                   const AttentionShape& shape, const AttentionProblem<float>& problem);
template <>
bool attention_forward_wgmma<f16>(const Queue& queue, const View& y, const View& q, const View& k, const View& v,
                                  const AttentionShape& shape, const AttentionProblem<float>& problem);

void attention_forward(const Queue& queue, const View& y, const View& lse, const View& q, const View& k, const View& v,
                       const View& key_lengths, const View& key_mask, const View& state, AttentionArguments arguments) {
  const AttentionShape shape =
      attention_shape("attention_forward", q, k, v, lse, key_lengths, key_mask, state, arguments);
  check_attention_like("attention_forward", y, q);
  if (vendor::takes(vendor::AttentionCall{queue, y, lse, q, k, v, key_lengths, key_mask, arguments})) return;
  with_dtype<float, bf16, f16, double>(q.dtype, "attention_forward", [&]<class T>() {
    const auto problem = attention_problem<Accumulate<T>>(shape, lse, key_lengths, key_mask, state, arguments);
    if constexpr (sizeof(T) == 2) {
      if (attention_forward_wgmma<T>(queue, y, q, k, v, shape, problem)) return;
      if (fits_attention_mma(y) && fits_attention_mma(q) && fits_attention_mma(k) && fits_attention_mma(v))
        return attention_forward_mma<T>(queue, y, q, k, v, shape, problem);
    }
    attention_forward_fma<T>(queue, y, q, k, v, shape, problem);
  });
}

}  // namespace weft::kernels::cuda
