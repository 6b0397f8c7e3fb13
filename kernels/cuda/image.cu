// SPDX-License-Identifier: Apache-2.0
#include "kernels/image.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"

// Grid-stride, 256 threads a block, no barrier. A thread owns one output pixel (up to 4 channels): neighbours write
// neighbouring bytes. Bytes per channel: 1 read, size_of(y) written; 3 flops. 70% of the bandwidth.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

struct Shape {
  int64_t N, H, W, C, P, Q;
};

template <class T>
__global__ void image_normalize_kernel(T* y, const uint8_t* x, const int32_t* place, const Shape s,
                                       const ImageNormalizeArguments arguments) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, pixels = s.N * s.P * s.Q;
  for (int64_t pixel = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; pixel < pixels; pixel += step) {
    const int64_t row = pixel / s.Q, q = pixel - row * s.Q, n = row / s.P, p = row - n * s.P;
    const bool flip = place != nullptr && place[n * 3 + 2] != 0;
    const int64_t top = place != nullptr ? place[n * 3] : (s.H - s.P) / 2;
    const int64_t left = place != nullptr ? place[n * 3 + 1] : (s.W - s.Q) / 2;
    const int64_t h = top + p, w = left + (flip ? s.Q - 1 - q : q);
    const bool inside = h >= 0 && h < s.H && w >= 0 && w < s.W;
#pragma unroll
    for (int c = 0; c < 4; ++c) {  // a constant count keeps mean and std out of local memory
      if (c >= s.C) break;
      const A value = inside ? static_cast<A>(x[((n * s.H + h) * s.W + w) * s.C + c]) / A(255) : A(0);
      y[pixel * s.C + c] = to<T>((value - static_cast<A>(arguments.mean[c])) / static_cast<A>(arguments.std[c]));
    }
  }
}

}  // namespace

void image_normalize(const Queue& queue, const View& y, const View& x, const View& place,
                     ImageNormalizeArguments arguments) {
  WEFT_CHECK(x.rank == 4 && y.rank == 4 && x.is_contiguous() && y.is_contiguous() && x.sizes[0] == y.sizes[0] &&
                 x.sizes[3] == y.sizes[3] && x.sizes[3] <= 4,
             "image_normalize: expected contiguous [N, H, W, C] and [N, P, Q, C] with C <= 4, got ", x, " and ", y);
  WEFT_CHECK(!place || (place.is_contiguous() && place.numel() == 3 * x.sizes[0]),
             "image_normalize: expected place i32[", x.sizes[0], ",3], got ", place);
  const Shape s{x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3], y.sizes[1], y.sizes[2]};
  with_dtype<float, bf16, double>(y.dtype, "image_normalize", [&]<class T>() {
    launch(queue, "image_normalize", dim3(blocks_for(s.N * s.P * s.Q, kThreads)), dim3(kThreads), 0,
           &image_normalize_kernel<T>, y.as<T>(), static_cast<const uint8_t*>(x.as<uint8_t>()),
           place ? static_cast<const int32_t*>(place.as<int32_t>()) : nullptr, s, arguments);
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
