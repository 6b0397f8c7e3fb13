// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/activation.h"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/gemm/epilogue_boxes.cuh"
#include "kernels/cuda/gemm/short_gelu.cuh"

// Arithmetic of the wgmma epilogue on a chunk: 16 rows x 64 columns of a warp, 32 values a lane. Registers have no
// address, so all of this is inlined.

namespace weft::kernels::cuda {

/// N values from number `from`.
template <int N, int kAll>
__device__ __forceinline__ auto part(float (&values)[kAll], int from) -> float (&)[N] {
  return reinterpret_cast<float(&)[N]>(values[from]);
}

struct Plus {
  template <int N>
  __device__ __forceinline__ void operator()(float (&values)[N], const float (&elements)[N]) const {
    WEFT_UNROLL
    for (int i = 0; i < N; ++i) values[i] += elements[i];
  }
};

/// values *= f'(elements).
template <class Y, Unary f>
struct Slope {
  template <int N>
  __device__ __forceinline__ void operator()(float (&values)[N], const float (&elements)[N]) const {
    if constexpr (sizeof(Y) == 2 && kHasShortForm<f>) {
      multiply_by_short_slope<f>(values, elements);
    } else {
      WEFT_UNROLL
      for (int i = 0; i < N; ++i) values[i] = unary_gradient<f>(values[i], elements[i], 0.0f, 0.0f);
    }
  }
};

/// Calls body(slope) for the activation whose saved argument a chunk is combined with.
template <class Y, class Body>
__device__ __forceinline__ void with_slope(Activation activation, Body&& body) {
  if (activation == Activation::relu)
    body(Slope<Y, Unary::relu>{});
  else if (activation == Activation::gelu)
    body(Slope<Y, Unary::gelu>{});
  else if (activation == Activation::gelu_tanh)
    body(Slope<Y, Unary::gelu_tanh>{});
}

/// Calls f(values, elements) for a lane's elements in a warp's 16 lines of a chunk that TMA loaded, in eights.
template <class T, class F>
__device__ __forceinline__ void combine_loaded(const EpilogueWarp& warp, const unsigned char* lines,
                                               float (&values)[32], F&& f) {
  const int line = warp.lane() % 16;  // lane map of fill_box()
  WEFT_UNROLL
  for (int j = 0; j < 8; j += 2) {
    uint32_t squares[4];
    ptx::ldmatrix_x4(squares, lines + line * 128 + ((j + warp.lane() / 16) ^ (line & 7)) * 16);
    float elements[8];
    WEFT_UNROLL
    for (int i = 0; i < 4; ++i) {
      Vec<T, 2> pair;
      memcpy(pair.data, &squares[i], sizeof(uint32_t));
      elements[2 * i] = from<float>(pair[0]);
      elements[2 * i + 1] = from<float>(pair[1]);
    }
    f(part<8>(values, 4 * j), elements);
  }
}

}  // namespace weft::kernels::cuda
