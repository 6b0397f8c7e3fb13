// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/attention.h"

#include "kernels/cuda/attention/attention_backward_fma.cuh"
#include "kernels/cuda/attention/attention_backward_mma.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/engines/dispatch.h"
#include "kernels/runtime/allocator.h"

namespace weft::kernels::cuda {

template <>
bool attention_backward_wgmma<bf16>(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                                    const View& q, const View& k, const View& v, const View& y,
                                    const AttentionShape& shape, const AttentionProblem<float>& problem);
template <>
bool attention_backward_wgmma<f16>(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                                   const View& q, const View& k, const View& v, const View& y,
                                   const AttentionShape& shape, const AttentionProblem<float>& problem);

namespace {

constexpr int kDeltaThreads = 128;

/// delta[b,h,i] = sum over d of dy y. kLanes lanes per row, each with kUnit neighbours at a time; a block's rows belong
/// to one head. No shared memory. Reads 2 D elements and writes 1 per row: memory-bound, expected 80% of the bandwidth.
template <int kUnit, int kLanes, class T, class A>
__global__ void attention_delta_kernel(A* delta, const AttentionTensor<const T> dy, const AttentionTensor<const T> y,
                                       int N, int H, int D) {
  const AttentionPosition position(N, kDeltaThreads / kLanes, H);
  const int lane = static_cast<int>(threadIdx.x) % kLanes, i = position.first + static_cast<int>(threadIdx.x) / kLanes;
  A sum = 0;
  if (i < N) {
    const T* const left = dy.head(position.b, position.h) + i * dy.row_stride;
    const T* const right = y.head(position.b, position.h) + i * y.row_stride;
    for (int d = lane * kUnit; d < D; d += kLanes * kUnit) {
      const auto from_left = Vec<T, kUnit>::load(left + d), from_right = Vec<T, kUnit>::load(right + d);
      WEFT_UNROLL
      for (int e = 0; e < kUnit; ++e) sum += from<A>(from_left[e]) * from<A>(from_right[e]);
    }
  }
  for (int distance = kLanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (lane == 0 && i < N) delta[(static_cast<int64_t>(position.b) * H + position.h) * N + i] = sum;
}

}  // namespace

void attention_backward(const Queue& queue, const View& dq, const View& dk, const View& dv, const View& dy,
                        const View& q, const View& k, const View& v, const View& y, const View& lse,
                        const View& key_lengths, const View& key_mask, const View& state,
                        AttentionArguments arguments) {
  const AttentionShape shape =
      attention_shape("attention_backward", q, k, v, lse, key_lengths, key_mask, state, arguments);
  check_attention_backward("attention_backward", dq, dk, dv, dy, q, k, y);
  if (shape.B * shape.H == 0) return;
  if (vendor::takes(
          vendor::AttentionCall{queue, y, lse, q, k, v, key_lengths, key_mask, arguments, dy, dq, dk, dv, true}))
    return;
  with_dtype<float, bf16, f16, double>(q.dtype, "attention_backward", [&]<class T>() {
    using A = Accumulate<T>;
    auto problem = attention_problem<A>(shape, lse, key_lengths, key_mask, state, arguments);
    if constexpr (sizeof(T) == 2) {
      if (attention_backward_wgmma<T>(queue, dq, dk, dv, dy, q, k, v, y, shape, problem)) return;
    }
    const Workspace delta(queue, static_cast<size_t>(shape.B * shape.H * shape.N) * sizeof(A), "attention_backward");
    problem.delta = delta.template as<A>();
    const auto sum_rows = [&]<int kUnit, int kLanes>() {
      launch(queue, "attention_backward (delta)", attention_grid(shape.B * shape.H, shape.N, kDeltaThreads / kLanes),
             dim3(kDeltaThreads), 0, &attention_delta_kernel<kUnit, kLanes, T, A>, problem.delta,
             AttentionTensor<const T>(dy), AttentionTensor<const T>(y), problem.N, problem.H, problem.D);
    };
    if constexpr (sizeof(T) == 2) {
      if (fits_attention_mma(dy) && fits_attention_mma(y))
        sum_rows.template operator()<8, 8>();
      else
        sum_rows.template operator()<1, 32>();
    } else {
      sum_rows.template operator()<1, 32>();
    }
    if constexpr (sizeof(T) == 2) {
      const View* const views[] = {&dq, &dk, &dv, &dy, &q, &k, &v};
      if (std::all_of(std::begin(views), std::end(views), [](const View* view) { return fits_attention_mma(*view); }))
        return attention_backward_mma<T>(queue, dq, dk, dv, dy, q, k, v, shape, problem);
    }
    attention_backward_fma<T>(queue, dq, dk, dv, dy, q, k, v, shape, problem);
  });
}

}  // namespace weft::kernels::cuda
