// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/rotary.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/unroll.cuh"
#include "kernels/cuda/vec.cuh"

// Grid-stride, 128 threads per block, no shared memory, no barrier. A thread owns V pairs of channels of one token in
// kHeads heads: the angles are the same in each, and a sine costs as much as many bytes.
//   unit  = ((token B T) x (groups of kHeads heads)) x (D / 2 / V)
// Threads of a warp are neighbours in memory. V elements are 16 bytes where both halves of all rows are aligned; else V
// is 1. An element is read once and written once. 80% of the bandwidth for bf16 with V = 8.

namespace weft::kernels::cuda {

namespace {

constexpr int kThreads = 128, kHeads = 4;

struct Rows {
  int64_t T, H, D, groups;
  int64_t stride[3];  ///< x's
};

template <int V, class T>
__global__ void rotary_kernel(T* y, const T* x, const Rows rows, const int64_t units, const RotaryArguments arguments) {
  using S = Accumulate<T>;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t half = rows.D / 2, per_row = half / V;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const int64_t row = unit / per_row, pair = (unit - row * per_row) * V;
    const int64_t token = row / rows.groups, head = (row - token * rows.groups) * kHeads;
    const int64_t b = token / rows.T, t = token - b * rows.T;
    S cosine[V], sine[V];
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) {
      const S angle = static_cast<S>(arguments.first + t) * static_cast<S>(arguments.frequencies[pair + i]);
      cosine[i] = static_cast<S>(arguments.scale) * cos(angle);
      sine[i] = static_cast<S>(arguments.back ? -arguments.scale : arguments.scale) * sin(angle);
    }
    const T* in = x + b * rows.stride[0] + t * rows.stride[1] + head * rows.stride[2] + pair;
    T* out = y + (token * rows.H + head) * rows.D + pair;
    for (int64_t h = head; h < head + kHeads && h < rows.H; ++h, in += rows.stride[2], out += rows.D) {
      const Vec<T, V> a = Vec<T, V>::load(in), a_half = Vec<T, V>::load(in + half);
      Vec<T, V> turned, turned_half;
      WEFT_UNROLL
      for (int i = 0; i < V; ++i) {
        const S left = from<S>(a[i]), right = from<S>(a_half[i]);
        turned[i] = to<T>(left * cosine[i] - right * sine[i]);
        turned_half[i] = to<T>(right * cosine[i] + left * sine[i]);
      }
      turned.store(out);
      turned_half.store(out + half);
    }
  }
}

}  // namespace

void rotary(const Queue& queue, const View& y, const View& x, const RotaryArguments& arguments) {
  check_rotary(y, x);
  if (x.numel() == 0) return;
  const Rows rows{x.sizes[1],
                  x.sizes[2],
                  x.sizes[3],
                  (x.sizes[2] + kHeads - 1) / kHeads,
                  {x.strides[0], x.strides[1], x.strides[2]}};
  with_dtype<float, bf16, f16, double>(x.dtype, "rotary", [&]<class T>() {
    constexpr int kWide = kVecSize<T>;
    const int64_t half_bytes = rows.D / 2 * static_cast<int64_t>(sizeof(T));
    bool wide = vectorizable({x.data, y.data}, {half_bytes});
    for (const int64_t stride : rows.stride) wide = wide && stride * static_cast<int64_t>(sizeof(T)) % 16 == 0;
    const int64_t units = x.sizes[0] * rows.T * rows.groups * (rows.D / 2 / (wide ? kWide : 1));
    const int64_t blocks = std::min<int64_t>((units + kThreads - 1) / kThreads, 1 << 20);
    launch(queue, "rotary", dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0,
           wide ? &rotary_kernel<kWide, T> : &rotary_kernel<1, T>, static_cast<T*>(y.data),
           static_cast<const T*>(x.data), rows, units, arguments);
  });
}

}  // namespace weft::kernels::cuda
