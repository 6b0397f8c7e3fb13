// SPDX-License-Identifier: Apache-2.0
#include "kernels/image_mix.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"

// Grid-stride, 256 threads a block, no barrier. A thread owns V neighbouring elements of one row of the output: 16
// bytes, or one element where rows are no multiple of that. It reads the other image only where its elements touch
// the box. Bytes per element of size e: 3e inside the box, 2e outside; 2 flops inside. 85% of the bandwidth.

namespace weft::kernels::WEFT_DEVICE {

namespace {

constexpr int kThreads = 256;

/// Rows and, within a row of `row_size` elements, elements; `images` of `rows` rows each.
struct Box {
  int64_t images, rows, row_size, top, bottom, first, last;
};

template <int V, class T>
__global__ void image_mix_kernel(T* y, const T* x, const Box box, Accumulate<T> own, Accumulate<T> other) {
  using A = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, per_row = box.row_size / V;
  const int64_t units = box.images * box.rows * per_row;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const int64_t row = unit / per_row, begin = (unit - row * per_row) * V, n = row / box.rows, p = row - n * box.rows;
    Vec<T, V> out = Vec<T, V>::load(x + unit * V);
    if (p >= box.top && p < box.bottom && begin + V > box.first && begin < box.last) {
      const int64_t row_before = (n == 0 ? box.images - 1 : n - 1) * box.rows + p;
      const Vec<T, V> before = Vec<T, V>::load(x + row_before * box.row_size + begin);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        if (begin + i < box.first || begin + i >= box.last) continue;
        out[i] = own == A(0) ? before[i] : to<T>(fma(other, from<A>(before[i]), own * from<A>(out[i])));
      }
    }
    out.store(y + unit * V);
  }
}

}  // namespace

void image_mix(const Queue& queue, const View& y, const View& x, ImageMixArguments a) {
  check_image_mix(y, x, a);
  const int64_t C = x.sizes[3];
  const Box box{x.sizes[0], x.sizes[1], x.sizes[2] * C, a.top, a.bottom, a.left * C, a.right * C};
  with_dtype<float, double, bf16, f16>(x.dtype, "image_mix", [&]<class T>() {
    using A = Accumulate<T>;
    constexpr int V = kVecSize<T>;
    const auto run = [&](auto kernel, int v) {
      launch(queue, "image_mix", dim3(blocks_for(y.numel() / v, kThreads)), dim3(kThreads), 0, kernel, y.as<T>(),
             static_cast<const T*>(x.as<T>()), box, static_cast<A>(a.own), static_cast<A>(1 - a.own));
    };
    if (box.row_size % V == 0 && vectorizable({y.data, x.data}))
      run(&image_mix_kernel<V, T>, V);
    else
      run(&image_mix_kernel<1, T>, 1);
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
