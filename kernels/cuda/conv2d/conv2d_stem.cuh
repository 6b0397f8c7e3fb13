// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/conv2d/conv2d_shape.cuh"
#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/divider.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/runtime/allocator.h"

// Convolutions of images with 1 to 7 channels (a ResNet's stem: 3). Their pixels are not aligned to 16 bytes, and the
// pixels under a filter row are not contiguous with padding. So images are packed first: 4 (or 8) channels per pixel,
// zeros to the left and right of each row. In a packed row the pixels under a filter row are contiguous, a window.
// Windows overlap: neighbours begin stride pixels apart, a multiple of 16 bytes.
//
//   packed row   | 0 0 0 x0 x1 x2 x3 x4 x5 …  |     4 channels each, padding 3, stride 2.
//   window 0       [8 pixels = 32 channels]         7 pixels have filter taps, the last has zeros.
//   window 1           [8 pixels = 32 channels]
//
// To the main loops this is a convolution with the window's channels and filters of R x 1 taps; filters are packed in
// the same way, with zeros where the window is wider than the filter. The weight's gradient is computed packed, in f32,
// and then unpacked.
//
// Bytes of packing: C elements read and 4 (8) written per pixel; for a ResNet's stem at batch 256 this is 187 MB, and y
// has 411 MB. gemm_mma.cuh's single-element loads would cost more. Flops: window / (S C) times the useful ones, 1.5
// times for 7 x 7 x 3 in windows of 32.

namespace weft::kernels::cuda {

/// How images are packed.
struct StemPacking {
  int window;       ///< channels of a window
  int channels;     ///< channels of a packed pixel: 4 or 8
  int64_t columns;  ///< pixels of a packed row: a multiple of the stride

  /// least: minimum channels of a window; windows are multiples of 16 bytes.
  StemPacking(const Conv2dShape& shape, int least) : channels(shape.stride.w % 2 == 0 && shape.C <= 4 ? 4 : 8) {
    window = std::max(least, static_cast<int>((shape.S * channels + 7) / 8 * 8));
    const int64_t pixels = (shape.Q - 1) * shape.stride.w + window / channels;
    columns = (pixels + shape.stride.w - 1) / shape.stride.w * shape.stride.w;
  }

  bool fits(const Conv2dShape& shape) const {
    constexpr int64_t kLimit = int64_t{1} << 31;
    return shape.groups == 1 && shape.C < 8 && shape.dilation.w == 1 && !shape.is_empty() &&
           shape.N * shape.H * columns < kLimit && shape.H * columns * channels < kLimit;
  }
  /// Images of overlapping windows over the packed rows.
  View windows(void* data, DType dtype, const Conv2dShape& shape) const {
    View view = View::dense(data, dtype, {shape.N, shape.H, shape.Q, window});
    const int64_t row = columns * channels;
    view.strides = {shape.H * row, row, shape.stride.w * channels, 1};
    return view;
  }
};

/// packed[n, h, column, c] = x[n, h, column - padding, c], or 0. A thread writes a pixel, 8 or 16 bytes; grid-stride.
/// Memory-bound; expected to reach 80% of the bandwidth.
template <int kChannels, class T>
__global__ void __launch_bounds__(256)
    stem_pack_kernel(T* packed, const T* x, int64_t pixels, Divider columns, int W, int C, int padding) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pixels; i += stride) {
    int column = static_cast<int>(i);
    const int64_t row = columns.split(column);
    const int w = column - padding;
    Vec<T, kChannels> pixel;
    WEFT_UNROLL
    for (int c = 0; c < kChannels; ++c) pixel[c] = c < C && w >= 0 && w < W ? x[(row * W + w) * C + c] : T(0.0f);
    pixel.store(packed + i * kChannels);
  }
}

/// packed[o, r, s channels + c] = w[o, r, s, c], or 0.
template <class T>
__global__ void __launch_bounds__(256)
    stem_pack_filters_kernel(T* packed, const T* w, int64_t count, int S, int C, int channels, int window) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int k = static_cast<int>(i % window), s = k / channels, c = k % channels;
  packed[i] = s < S && c < C ? w[(i / window * S + s) * C + c] : T(0.0f);
}

/// The inverse, for the gradient.
template <class D>
__global__ void __launch_bounds__(256)
    stem_pick_filters_kernel(D* dw, const float* packed, int64_t count, int S, int C, int channels, int window) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int c = static_cast<int>(i % C), s = static_cast<int>(i / C % S);
  dw[i] = static_cast<D>(packed[i / C / S * window + s * channels + c]);
}

inline dim3 blocks_of_256(int64_t count) { return dim3(static_cast<unsigned>((count + 255) / 256)); }

/// x packed, in a workspace.
template <class T>
class PackedImages {
 public:
  PackedImages(const Queue& queue, const char* name, const View& x, const StemPacking& packing,
               const Conv2dShape& shape)
      : memory_(queue, static_cast<size_t>(shape.N * shape.H * packing.columns * packing.channels) * sizeof(T), name),
        windows_(packing.windows(memory_.data(), x.dtype, shape)) {
    const int64_t pixels = shape.N * shape.H * packing.columns;
    const auto pack = [&](auto kernel) {
      launch(queue, name, dim3(blocks_for(pixels, 256)), dim3(256), 0, kernel, memory_.template as<T>(),
             static_cast<const T*>(x.data), pixels, Divider(packing.columns), static_cast<int>(shape.W),
             static_cast<int>(shape.C), static_cast<int>(shape.padding.w));
    };
    packing.channels == 4 ? pack(&stem_pack_kernel<4, T>) : pack(&stem_pack_kernel<8, T>);
  }
  const View& windows() const { return windows_; }

 private:
  Workspace memory_;
  View windows_;
};

/// Packs both operands and calls convolve(images, filters).
template <class T, class Convolve>
bool stem_forward(const Queue& queue, const char* name, const View& x, const View& w, const StemPacking& packing,
                  const Conv2dShape& shape, Convolve&& convolve) {
  const int64_t count = shape.O * shape.R * packing.window;
  const Workspace filters(queue, static_cast<size_t>(count) * sizeof(T), name);
  launch(queue, name, blocks_of_256(count), dim3(256), 0, &stem_pack_filters_kernel<T>, filters.as<T>(),
         static_cast<const T*>(w.data), count, static_cast<int>(shape.S), static_cast<int>(shape.C), packing.channels,
         packing.window);
  const PackedImages<T> images(queue, name, x, packing, shape);
  return convolve(images.windows(), View::dense(filters.data(), w.dtype, {shape.O, shape.R, 1, packing.window}));
}

/// Calls convolve(dw, images) with packed operands, then unpacks dw unless it returned false.
template <class T, class Convolve>
bool stem_backward_weight(const Queue& queue, const char* name, const View& dw, const View& x,
                          const StemPacking& packing, const Conv2dShape& shape, Convolve&& convolve) {
  const Workspace sums(queue, static_cast<size_t>(shape.O * shape.R * packing.window) * sizeof(float), name);
  {
    const PackedImages<T> images(queue, name, x, packing, shape);
    if (!convolve(View::dense(sums.data(), DType::f32, {shape.O, shape.R, 1, packing.window}), images.windows()))
      return false;
  }
  const int64_t count = dw.numel();
  const auto pick = [&]<class D>() {
    launch(queue, name, blocks_of_256(count), dim3(256), 0, &stem_pick_filters_kernel<D>, static_cast<D*>(dw.data),
           sums.as<float>(), count, static_cast<int>(shape.S), static_cast<int>(shape.C), packing.channels,
           packing.window);
  };
  dw.dtype == DType::f32 ? pick.template operator()<float>() : pick.template operator()<T>();
  return true;
}

}  // namespace weft::kernels::cuda
