// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/conv2d/conv2d_shape.cuh"
#include "kernels/cuda/conv2d/conv2d_stem.cuh"
#include "kernels/cuda/gemm/gemm.cuh"

namespace weft::kernels::cuda {

/// x as the im2col matrix of its convolution: line (n, p, q) holds the pixels under the window of that output position,
/// columns (r, s, c) of the first group. The forward reads the matrix along its columns, the weight gradient along its
/// lines.
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
  // Steps of at most 16 lines fit into an int.
  const int64_t image_span = shape.P * shape.stride.h * shape.W * shape.C;
  pixels.vector = allows_vector_load<T>(x.data, shape.group_C) &&
                  (kMajor == Major::depth || (image_span < int64_t{1} << 31 &&
                                              (shape.P * shape.Q > 16 || pixels.image_pitch < int64_t{1} << 26)));
  pixels.span_h = static_cast<int>(shape.P * shape.stride.h);
  pixels.span_w = static_cast<int>(shape.Q * shape.stride.w);
  pixels.next_row = static_cast<int>((shape.stride.h * shape.W - shape.Q * shape.stride.w) * shape.C);
  pixels.next_image = static_cast<int>(pixels.image_pitch - image_span);
  return pixels;
}

/// A packed stem (conv2d_stem.cuh) as the convolution that window_pixels() reads: a pixel is the distance between two
/// windows, and a window is one tap's channels. For two-byte elements.
struct PackedStem {
  StemPacking packing;
  Conv2dShape packed;
  bool fits;

  explicit PackedStem(const Conv2dShape& shape) : packing(shape, 8), packed(shape), fits(packing.fits(shape)) {
    packed.W = packing.columns / shape.stride.w;
    packed.C = shape.stride.w * packing.channels;
    packed.group_C = packing.window;
    packed.S = 1;
    packed.stride.w = 1;
    packed.padding.w = 0;
  }
};

}  // namespace weft::kernels::cuda
