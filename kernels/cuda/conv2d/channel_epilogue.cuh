// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/gemm/tile_moments.cuh"

namespace weft::kernels::cuda {

/// A convolution's epilogue: + bias, norm (conv2d_norm's vectors, var none: no norm), + residual, ReLU; and
/// the request for statistics of y.
struct ChannelEpilogue {
  View bias, mean, var, weight, norm_bias, residual;
  double eps = 0;
  bool relu = false;
  TileMoments* moments = nullptr;

  /// The epilogue for a y with rows `pitch` elements apart.
  template <class T>
  Epilogue<T> on(const View& y, int64_t pitch) const {
    using Sum = Accumulate<T>;
    const auto address = reinterpret_cast<uintptr_t>(y.data) | reinterpret_cast<uintptr_t>(residual.data);
    Epilogue<T> epilogue{y.data, bias.data, 1, false, false, false, pitch % 4 == 0 && address % 16 == 0};
    epilogue.residual = residual.data;
    epilogue.relu_last = relu;
    epilogue.norm = {static_cast<const Sum*>(mean.data), static_cast<const Sum*>(var.data),
                     static_cast<const Sum*>(weight.data), static_cast<const Sum*>(norm_bias.data),
                     static_cast<Sum>(eps)};
    return epilogue;
  }
};

}  // namespace weft::kernels::cuda
