// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "kernels/cuda/gemm/gemm_epilogue.cuh"

namespace weft::kernels::cuda {

/// The second stage of a split-K GEMM: y[i] = alpha (partial[0][i] + partial[1][i] + …) (+ bias) (+
/// y), always in this order, so that results are the same in every run.
///
/// Grid-stride; each thread owns 4 neighbours (16 bytes of f32 per plane if the alignment allows). Bytes: `splits`
/// reads and one write per element, mostly from L2, since the planes were just written. No shared memory, no barrier.
/// If the launch has a vector, it is reduced in the same way after y.
template <class T>
__device__ __forceinline__ void add_planes(const Epilogue<T>& epilogue, const Accumulate<T>* partial, int64_t count,
                                           int columns, int splits, int64_t pitch) {
  using Sum = Accumulate<T>;
  const int64_t stride = int64_t{4} * gridDim.x * blockDim.x;
  const auto at = [&](int64_t i, int column) { return pitch == columns ? i : (i - column) / columns * pitch + column; };
  for (int64_t i = int64_t{4} * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x); i < count; i += stride) {
    Sum sums[4] = {};
    if (count % 4 == 0 && sizeof(Sum) == 4) {
      for (int split = 0; split < splits; ++split) {
        const auto part = Vec<float, 4>::load(reinterpret_cast<const float*>(partial) + split * count + i);
        WEFT_UNROLL
        for (int e = 0; e < 4; ++e) sums[e] += part[e];
      }
    } else {
      for (int split = 0; split < splits; ++split)
        for (int e = 0; e < 4; ++e) sums[e] += i + e < count ? partial[split * count + i + e] : Sum(0);
    }
    if (epilogue.vector && columns % 4 == 0) {
      const int column = static_cast<int>(i % columns);
      epilogue.template store<true>(at(i, column), column, 4, sums);
    } else {
      WEFT_UNROLL
      for (int e = 0; e < 4; ++e) {
        const Sum one[1] = {sums[e]};
        const int column = static_cast<int>((i + e) % columns);
        epilogue.template store<true>(at(i + e, column), column, i + e < count ? 1 : 0, one);
      }
    }
  }
}

/// Split-K slices of a vector [splits, count], computed together with y's slices.
template <class T>
struct SplitVector {
  Epilogue<T> epilogue{};
  const Accumulate<T>* partial = nullptr;
  int count = 0;
};

template <class T>
__global__ void __launch_bounds__(128, sizeof(Accumulate<T>) == 8 ? 2 : 8)
    split_sum_kernel(const Epilogue<T> epilogue, const Accumulate<T>* partial, int64_t count, int columns, int splits,
                     const SplitVector<T> beside, const int64_t pitch) {
  add_planes(epilogue, partial, count, columns, splits, pitch);
  if (beside.count > 0) add_planes(beside.epilogue, beside.partial, beside.count, beside.count, splits, beside.count);
}

/// The epilogue of the first stage: stores plain accumulators to a plane whose rows have n elements.
template <class T>
Epilogue<T> partial_sums_epilogue(void* partial, int64_t n) {
  return {partial, nullptr, 1, true, false, false, n % 4 == 0};
}

/// Adds the planes of `count` elements each; `columns`: columns of y; pitch: elements from row to row of y, 0: dense.
template <class T>
void split_sum(const Queue& queue, const char* name, const Epilogue<T>& epilogue, const Accumulate<T>* partial,
               int64_t count, int64_t columns, int splits, const SplitVector<T>& beside = {}, int64_t pitch = 0) {
  const int64_t blocks = std::min<int64_t>((std::max<int64_t>(count, beside.count) + 511) / 512, 4096);
  launch(queue, name, dim3(static_cast<unsigned>(blocks)), dim3(128), 0, split_sum_kernel<T>, epilogue, partial, count,
         static_cast<int>(columns), splits, beside, pitch > 0 ? pitch : columns);
}

}  // namespace weft::kernels::cuda
