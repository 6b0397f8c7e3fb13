// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/image.h"

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/vec.cuh"
#include "kernels/cuda/wrong_index.cuh"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

struct Shape {
  int64_t N, H, W, C, P, Q;
};

/// Selects one of four values; an indexed array would be in local memory.
__device__ inline float channel_of(const float (&values)[4], int c) {
  return c == 0 ? values[0] : c == 1 ? values[1] : c == 2 ? values[2] : values[3];
}

// Grid-stride, 256 threads per block, no barrier. A thread owns V neighbouring elements of one row of the output: 16
// bytes, or one element if rows of the output are no multiple of 16 bytes; they belong to up to V pixels. Bytes per
// element: 1 read (a byte at a time, neighbours from L1), size_of(y) written; 3 flops and some 10 operations for its
// position. 70% of the bandwidth.
template <int V, class T>
__global__ void image_normalize_kernel(T* y, const uint8_t* x, const int32_t* crop, const Shape s,
                                       const ImageNormalizeArguments arguments) {
  using A = Accumulate<T>;
  const int channels = static_cast<int>(s.C);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, per_row = s.Q * s.C / V;
  const int64_t units = s.N * s.P * per_row;
  for (int64_t unit = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; unit < units; unit += step) {
    const int64_t row = unit / per_row, first = (unit - row * per_row) * V, n = row / s.P, p = row - n * s.P;
    const bool flip = crop != nullptr && crop[n * 3 + 2] != 0;
    const int64_t top = crop != nullptr ? crop[n * 3] : (s.H - s.P) / 2;
    const int64_t left = crop != nullptr ? crop[n * 3 + 1] : (s.W - s.Q) / 2;
    const int64_t h = top + p;
    int64_t q = first / s.C;
    int c = static_cast<int>(first - q * s.C);
    Vec<T, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const int64_t w = left + (flip ? s.Q - 1 - q : q);
      const bool inside = h >= 0 && h < s.H && w >= 0 && w < s.W;
      const A value = inside ? static_cast<A>(x[((n * s.H + h) * s.W + w) * s.C + c]) / A(255) : A(0);
      out[i] =
          to<T>((value - static_cast<A>(channel_of(arguments.mean, c))) / static_cast<A>(channel_of(arguments.std, c)));
      if (++c == channels) c = 0, ++q;
    }
    out.store(y + unit * V);
  }
}

}  // namespace

void image_normalize(const Queue& queue, const View& y, const View& x, const View& crop,
                     ImageNormalizeArguments arguments) {
  WEFT_CHECK(x.rank == 4 && y.rank == 4 && x.is_contiguous() && y.is_contiguous() && x.sizes[0] == y.sizes[0] &&
                 x.sizes[3] == y.sizes[3] && x.sizes[3] <= 4,
             "image_normalize: expected contiguous [N, H, W, C] and [N, P, Q, C] with C <= 4, got ", x, " and ", y);
  WEFT_CHECK(!crop || (crop.is_contiguous() && crop.numel() == 3 * x.sizes[0]),
             "image_normalize: expected crop i32[", x.sizes[0], ",3], got ", crop);
  const Shape s{x.sizes[0], x.sizes[1], x.sizes[2], x.sizes[3], y.sizes[1], y.sizes[2]};
  with_dtype<float, bf16, double>(y.dtype, "image_normalize", [&]<class T>() {
    constexpr int V = kVecSize<T>;
    const auto run = [&](auto kernel, int v) {
      launch(queue, "image_normalize", dim3(blocks_for(y.numel() / v, kThreads)), dim3(kThreads), 0, kernel, y.as<T>(),
             static_cast<const uint8_t*>(x.as<uint8_t>()),
             crop ? static_cast<const int32_t*>(crop.as<int32_t>()) : nullptr, s, arguments);
    };
    if (s.Q * s.C % V == 0 && vectorizable({y.data}))
      run(&image_normalize_kernel<V, T>, V);
    else
      run(&image_normalize_kernel<1, T>, 1);
  });
}

namespace {

/// Rows and, within a row of `row_size` elements, elements; `images` of `rows` rows each.
struct Box {
  int64_t images, rows, row_size, top, bottom, first, last;
};

// Grid-stride, 256 threads per block, no barrier. A thread owns V neighbouring elements of one row of the output: 16
// bytes, or one element if rows are no multiple of 16 bytes. It reads the other image only if its elements overlap the
// box. Bytes per element of size e: 3e inside the box, 2e outside; 2 flops inside. 85% of the bandwidth.
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

namespace {

// Grid-stride, 256 threads per block, one element of the targets per thread, no barrier. A batch has few elements (256
// images of 1000 classes: 1 MB); the launch dominates the cost.
__global__ void mixed_targets_kernel(float* targets, const int64_t* labels, int64_t N, int64_t C, float own,
                                     float other, const WrongIndexReport report) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < N * C; i += step) {
    const int64_t n = i / C, c = i - n * C, label = labels[n], before = labels[n == 0 ? N - 1 : n - 1];
    const bool known = label >= 0 && label < C && before >= 0 && before < C;
    if (c == 0 && (label < 0 || label >= C)) report(label, n);
    targets[i] = known ? (c == label ? own : 0.0f) + (c == before ? other : 0.0f) : NAN;
  }
}

}  // namespace

void mixed_targets(const Queue& queue, const View& targets, const View& labels, double own) {
  WEFT_CHECK(targets.rank == 2 && labels.rank == 1 && targets.sizes[0] == labels.sizes[0] &&
                 targets.dtype == DType::f32 && targets.is_contiguous() && labels.is_contiguous(),
             "mixed_targets: expected contiguous targets f32 [N, C] and labels [N], got ", targets, " and ", labels);
  launch(queue, "mixed_targets", dim3(blocks_for(targets.numel(), kThreads)), dim3(kThreads), 0, &mixed_targets_kernel,
         targets.as<float>(), static_cast<const int64_t*>(labels.as<int64_t>()), targets.sizes[0], targets.sizes[1],
         static_cast<float>(own), static_cast<float>(1 - own),
         WrongIndexReport{wrong_index_record(queue.device),
                          {.text = WrongIndex::Text::label, .op = "mixed_targets", .limit = targets.sizes[1]}});
}

}  // namespace weft::kernels::cuda
