// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/conv2d_sm90.cuh"
#include "kernels/cuda/convert.cuh"

// Convolutions of images with 1 to 7 channels (a ResNet's stem: 3) on the main loop of gemm_wgmma.cuh. TMA wants
// pixels of 16 bytes, and 64 k of one tap would be 3 channels and 61 zeros. So images are packed first: 4 channels
// (or 8) to a pixel, zeros to the left and right of each row. There a row of the filter is one run of memory, and its
// windows overlap: neighbouring windows begin stride pixels apart, a multiple of 16 bytes.
//
//   packed row   | 0 0 0 x0 x1 x2 x3 x4 x5 …  |     4 channels each, padding 3, stride 2
//   window 0       [16 pixels = 64 channels]        of which the filter's 7 are multiplied by something
//   window 1           [16 pixels = 64 channels]
//
// To the main loop this is a convolution over images of Q columns with 64 channels by filters of R x 1 taps; the
// filters are packed in the same way, with zeros where a window is wider than they are. The weight's gradient comes out
// packed, in f32, and is picked from there.
//
// Bytes of packing: C elements read and 4 (8) written per pixel; for a ResNet's stem at batch 256 187 MB beside the 411
// MB of y: less than the loads by single elements that gemm_mma.cuh would do. Flops: 64 / (S C) times those that
// count, for 7 x 7 x 3 three times, which is still less than y's way to memory.

namespace weft::kernels::WEFT_DEVICE {

/// Whether the driver takes im2col maps whose pixels overlap. Its documentation builds each stride up from the sizes
/// below it, and does not say what becomes of a smaller one. `data`: any address on the device.
inline bool im2col_pixels_may_overlap(const void* data) {
  const auto ask = [&] {
    constexpr int kChannels = 64, kApart = 8, kRow = 16 * kApart + kChannels;  // windows of 128 bytes, 16 apart
    Im2colTensor windows{};
    windows.data = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(data) & ~uintptr_t{15});
    windows.dtype = DType::bf16;
    windows.n = 1;
    windows.h = 8;
    windows.w = 16;
    windows.c = windows.channels = windows.pixels = kChannels;
    windows.stride_h = windows.stride_w = 1;
    windows.swizzle = Swizzle::bytes128;
    windows.pitches = {2 * kApart, 2 * kRow, 2 * kRow * 8};
    try {
      im2col_map("im2col_pixels_may_overlap", windows);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
#ifdef WEFT_SIMT
  return ask();  // tests change it
#else
  static const bool allowed = ask();
  return allowed;
#endif
}

/// How images are packed.
struct StemPacking {
  static constexpr int kWindow = 64;  ///< channels of a window

  int channels;     ///< of a packed pixel: 4 or 8
  int64_t columns;  ///< of a packed row

  explicit StemPacking(const Conv2dShape& shape)
      : channels(shape.stride.w % 2 == 0 && shape.C <= 4 ? 4 : 8),
        columns((shape.Q - 1) * shape.stride.w + kWindow / channels) {}

  /// x: the images' memory.
  bool fits(const Queue& queue, const Conv2dShape& shape, const void* x) const {
    return has_wgmma(queue) && shape.groups == 1 && shape.C < 8 && shape.O % 8 == 0 && shape.dilation.w == 1 &&
           shape.S * channels <= kWindow && shape.stride.h <= 8 && shape.padding.h < 128 &&
           (shape.R - 1) * shape.dilation.h < 128 && !shape.is_empty() &&
           shape.N * shape.H * columns < int64_t{1} << 31 && im2col_pixels_may_overlap(x);
  }
  /// The convolution that is left.
  Conv2dShape packed(const Conv2dShape& shape) const {
    Conv2dShape result = shape;
    result.W = shape.Q;
    result.C = result.group_C = kWindow;
    result.S = 1;
    result.stride.w = 1;
    result.padding.w = 0;
    return result;
  }
  /// Images of overlapping windows over the packed rows.
  View windows(void* data, DType dtype, const Conv2dShape& shape) const {
    View view = View::dense(data, dtype, {shape.N, shape.H, shape.Q, kWindow});
    const int64_t row = columns * channels;
    view.strides = {shape.H * row, row, shape.stride.w * channels, 1};
    return view;
  }
};

/// packed[n, h, column, c] = x[n, h, column - padding, c], or 0. A thread writes a pixel, 8 or 16 bytes; grid-stride.
/// Bound by bandwidth: 80% of it.
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
    stem_pack_filters_kernel(T* packed, const T* w, int64_t count, int S, int C, int channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int k = static_cast<int>(i % StemPacking::kWindow), s = k / channels, c = k % channels;
  packed[i] = s < S && c < C ? w[(i / StemPacking::kWindow * S + s) * C + c] : T(0.0f);
}

/// The reverse, for the gradient.
template <class D>
__global__ void __launch_bounds__(256)
    stem_pick_filters_kernel(D* dw, const float* packed, int64_t count, int S, int C, int channels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int c = static_cast<int>(i % C), s = static_cast<int>(i / C % S);
  dw[i] = static_cast<D>(packed[i / C / S * StemPacking::kWindow + s * channels + c]);
}

inline dim3 blocks_of_256(int64_t count) { return dim3(static_cast<unsigned>((count + 255) / 256)); }

/// x packed, in memory of its own.
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

template <class T>
bool conv2d_forward_stem_on_wgmma(const Queue& queue, const View& y, const View& x, const View& w,
                                  const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  constexpr const char* kName = "conv2d_forward_sm90 (stem)";
  const StemPacking packing(shape);
  if (!packing.fits(queue, shape, x.data)) return false;
  const Conv2dShape packed = packing.packed(shape);
  const int64_t count = shape.O * shape.R * StemPacking::kWindow;
  const Workspace filters(queue, static_cast<size_t>(count) * sizeof(T), kName);
  launch(queue, kName, blocks_of_256(count), dim3(256), 0, &stem_pack_filters_kernel<T>, filters.as<T>(),
         static_cast<const T*>(w.data), count, static_cast<int>(shape.S), static_cast<int>(shape.C), packing.channels);
  const PackedImages<T> images(queue, kName, x, packing, shape);
  const View packed_w = View::dense(filters.data(), w.dtype, {shape.O, shape.R, 1, StemPacking::kWindow});
  return conv2d_forward_on_wgmma<T>(queue, y, images.windows(), packed_w, epilogue, packed);
}

template <class T>
bool conv2d_backward_weight_stem_on_wgmma(const Queue& queue, const View& dw, const View& dy, const View& x,
                                          const Conv2dShape& shape) {
  constexpr const char* kName = "conv2d_backward_weight_sm90 (stem)";
  const StemPacking packing(shape);
  if (!packing.fits(queue, shape, x.data) || reinterpret_cast<uintptr_t>(dy.data) % 16 != 0) return false;
  const Conv2dShape packed = packing.packed(shape);
  const Workspace sums(queue, static_cast<size_t>(shape.O * shape.R * StemPacking::kWindow) * sizeof(float), kName);
  {
    const PackedImages<T> images(queue, kName, x, packing, shape);
    const View packed_dw = View::dense(sums.data(), DType::f32, {shape.O, shape.R, 1, StemPacking::kWindow});
    if (!conv2d_backward_weight_on_wgmma<T>(queue, packed_dw, dy, images.windows(), packed)) return false;
  }
  const int64_t count = dw.numel();
  const auto pick = [&]<class D>() {
    launch(queue, kName, blocks_of_256(count), dim3(256), 0, &stem_pick_filters_kernel<D>, static_cast<D*>(dw.data),
           sums.as<float>(), count, static_cast<int>(shape.S), static_cast<int>(shape.C), packing.channels);
  };
  dw.dtype == DType::f32 ? pick.template operator()<float>() : pick.template operator()<T>();
  return true;
}

}  // namespace weft::kernels::WEFT_DEVICE
