// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/attention_lengths.h"

#include "kernels/cuda/attention/attention_shape.cuh"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ int clamped(int64_t length, int most) {
  return length < 0 ? 0 : length < most ? static_cast<int>(length) : most;
}

/// One thread per batch entry; 16 bytes each.
__global__ void attention_lengths_kernel(int32_t* to, const int64_t* key_lengths, int B, int N, int M) {
  const int b = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (b >= B) return;
  to[b] = N;
  to[B + b] = clamped(key_lengths[b], M);
}

/// Sets rows to 0 that no query sees, or that see no key: a block of 8 warps per 8 rows of one head, a lane per
/// channel. of_keys: rows are keys, from the batch element's length on; else queries, all of a batch element without
/// keys. If nothing is hidden, a block reads one number.
template <class T>
__global__ void attention_clear_kernel(const AttentionTensor<T> to, float* lse, const int64_t* key_lengths, int rows,
                                       int H, int D, bool of_keys) {
  const AttentionPosition position(rows, kThreads / 32, H);
  const int64_t length = key_lengths[position.b];
  const int row = position.first + static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (row >= rows || length > (of_keys ? row : 0)) return;
  T* const line = to.head(position.b, position.h) + row * to.row_stride;
  for (int d = lane; d < D; d += 32) line[d] = T(0.0f);
  if (lse != nullptr && lane == 0) lse[(static_cast<int64_t>(position.b) * H + position.h) * rows + row] = -INFINITY;
}

void clear(const Queue& queue, const View& view, float* lse, const View& key_lengths, bool of_keys) {
  const int64_t B = view.sizes[0], rows = view.sizes[1], H = view.sizes[2];
  with_dtype<bf16, f16>(view.dtype, "attention", [&]<class T>() {
    launch(queue, "attention_clear", attention_grid(B * H, rows, kThreads / 32), dim3(kThreads), 0,
           &attention_clear_kernel<T>, AttentionTensor<T>(view), lse, static_cast<const int64_t*>(key_lengths.data),
           static_cast<int>(rows), static_cast<int>(H), static_cast<int>(view.sizes[3]), of_keys);
  });
}

}  // namespace

void attention_lengths(const Queue& queue, int32_t* queries_and_keys, const View& key_lengths, int64_t N, int64_t M) {
  const int64_t B = key_lengths.numel();
  launch(queue, "attention_lengths", dim3(static_cast<unsigned>((B + kThreads - 1) / kThreads)), dim3(kThreads), 0,
         &attention_lengths_kernel, queries_and_keys, static_cast<const int64_t*>(key_lengths.data),
         static_cast<int>(B), static_cast<int>(N), static_cast<int>(M));
}

void attention_clear_results(const Queue& queue, const View& y, const View& lse, const View& key_lengths) {
  clear(queue, y, static_cast<float*>(lse.data), key_lengths, false);
}

void attention_clear_gradients(const Queue& queue, const View& dq, const View& dk, const View& dv,
                               const View& key_lengths) {
  clear(queue, dq, nullptr, key_lengths, false);
  clear(queue, dk, nullptr, key_lengths, true);
  clear(queue, dv, nullptr, key_lengths, true);
}

}  // namespace weft::kernels::cuda
