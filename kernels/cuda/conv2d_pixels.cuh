// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/conv2d_shape.cuh"
#include "kernels/cuda/gemm.cuh"

namespace weft::kernels::WEFT_DEVICE {

/// x as the matrix that its convolution multiplies: line (n, p, q) holds the pixels under the window of that output
/// position, columns (r, s, c) of the first group. The forward reads it along the columns, the weight gradient along
/// the lines.
template <class T, Major kMajor>
PixelOperand<T, kMajor> window_pixels(const View& x, const Conv2dShape& shape) {
  PixelOperand<T, kMajor> pixels{};
  pixels.data = static_cast<const T*>(x.data);
  pixels.image_pitch = shape.H * shape.W * shape.C;
  pixels.height = static_cast<int>(shape.H);
  pixels.width = static_cast<int>(shape.W);
  pixels.pitch = static_cast<int>(shape.C);
  pixels.lines = static_cast<int>(shape.N * shape.P * shape.Q);
  pixels.columns = static_cast<int>(shape.R * shape.S * shape.group_C);
  pixels.positions = Divider(shape.P * shape.Q);
  pixels.positions_w = Divider(shape.Q);
  pixels.channels = Divider(shape.group_C);
  pixels.taps_w = static_cast<int>(shape.S);
  pixels.step_h = static_cast<int>(shape.stride.h);
  pixels.step_w = static_cast<int>(shape.stride.w);
  pixels.origin_h = static_cast<int>(-shape.padding.h);
  pixels.origin_w = static_cast<int>(-shape.padding.w);
  pixels.tap_h = static_cast<int>(shape.dilation.h);
  pixels.tap_w = static_cast<int>(shape.dilation.w);
  pixels.vector = allows_vector_load<T>(x.data, shape.group_C);
  return pixels;
}

}  // namespace weft::kernels::WEFT_DEVICE
