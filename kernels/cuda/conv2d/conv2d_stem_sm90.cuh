// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/cuda/conv2d/conv2d_sm90.cuh"
#include "kernels/cuda/conv2d/conv2d_stem.cuh"

// Packed stems (conv2d_stem.cuh) on the main loop of gemm_wgmma.cuh. TMA needs pixels of 16 bytes, and 64 k of one tap
// would be 3 channels and 61 zeros. So windows have 64 channels: for 7 x 7 x 3 three times the useful flops, and still
// less time than storing y.

namespace weft::kernels::cuda {

/// Whether the driver accepts im2col maps with overlapping pixels. Its documentation derives each stride from the sizes
/// of inner dimensions and does not define smaller strides. `data`: any address on the device.
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
  static const bool allowed = ask();
  return allowed;
}

/// A stem's packing for wgmma, the resulting convolution, and whether TMA can read it. x: the images' memory.
struct StemOnWgmma {
  static constexpr int kWindow = 64;

  StemPacking packing;
  Conv2dShape packed;
  bool fits;

  StemOnWgmma(const Queue& queue, const Conv2dShape& shape, const void* x)
      : packing(shape, kWindow),
        packed(shape),
        fits(has_wgmma(queue) && packing.fits(shape) && packing.window == kWindow && shape.O % 8 == 0 &&
             shape.stride.h <= 8 && shape.padding.h < 128 && (shape.R - 1) * shape.dilation.h < 128 &&
             im2col_pixels_may_overlap(x)) {
    packed.W = shape.Q;
    packed.C = packed.group_C = kWindow;
    packed.S = 1;
    packed.stride.w = 1;
    packed.padding.w = 0;
  }
};

template <class T>
bool conv2d_forward_stem_on_wgmma(const Queue& queue, const View& y, const View& x, const View& w,
                                  const ChannelEpilogue& epilogue, const Conv2dShape& shape) {
  const StemOnWgmma stem(queue, shape, x.data);
  if (!stem.fits) return false;
  return stem_forward<T>(queue, "conv2d_forward_sm90 (stem)", x, w, stem.packing, shape,
                         [&](const View& images, const View& filters) {
                           return conv2d_forward_on_wgmma<T>(queue, y, images, filters, epilogue, stem.packed);
                         });
}

template <class T>
bool conv2d_backward_weight_stem_on_wgmma(const Queue& queue, const View& dw, const View& dy, const View& x,
                                          const Conv2dShape& shape) {
  const StemOnWgmma stem(queue, shape, x.data);
  if (!stem.fits || reinterpret_cast<uintptr_t>(dy.data) % 16 != 0) return false;
  return stem_backward_weight<T>(queue, "conv2d_backward_weight_sm90 (stem)", dw, x, stem.packing, shape,
                                 [&](const View& packed_dw, const View& images) {
                                   return conv2d_backward_weight_on_wgmma<T>(queue, packed_dw, dy, images, stem.packed);
                                 });
}

}  // namespace weft::kernels::cuda
