// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/batch_norm.h"

#include "kernels/cuda/norm/batch_norm_moments.cuh"

// Geometry: batch_norm.cuh. Training: pass 1 computes the chunks' statistics (batch_norm_statistics.cu), unless they
// are given. In pass 2 each block combines the statistics of its channels, normalises, adds the residual and applies
// ReLU; the blocks of the first chunk also save the statistics and update the running statistics. Pass 2 goes backwards
// over x, because the last rows are still in L2 from pass 1 or from the convolution that wrote x. Bytes per element of
// size e: 3e (x twice, y), 4e with a residual: two passes; statistics given, and inference, 2e and 3e. Four rows in
// flight per thread and tensor; 8 flops. 85% of the bandwidth for 10 MB and more.

namespace weft::kernels::cuda {

using namespace channelwise;

namespace {

/// The batch's statistics in training: their source and their outputs (total and the running statistics may be
/// nullptr).
template <class A>
struct Training {
  Parts<A> parts;  // count 0: inference
  A *save_mean, *save_invstd, *total, *running_mean, *running_var;
  A momentum;
};

/// Bit i: whether number i of eight is above 0; a NaN is not. Two numbers at a time: size + 0x7fff has bit 15 where size
/// is not 0, and 0x8000 + infinity - size where it is no NaN.
template <class T>
__device__ uint8_t above_zero(const Vec<T, 8>& numbers) {
  constexpr uint32_t kHalves = 0x00010001, kInfinity = std::is_same_v<T, bf16> ? 0x7f80 : 0x7c00;
  uint32_t pairs[4], bits = 0;
  memcpy(pairs, numbers.data, sizeof(pairs));
  WEFT_UNROLL
  for (int j = 0; j < 4; ++j) {
    const uint32_t size = pairs[j] & 0x7fff * kHalves;
    const uint32_t above =
        (size + 0x7fff * kHalves) & ((0x8000 + kInfinity) * kHalves - size) & ~pairs[j] & 0x8000 * kHalves;
    bits |= above >> (15 - 2 * j);  // bits 2 j and 2 j + 16
  }
  return static_cast<uint8_t>(bits | bits >> 15);
}

template <int V, class T>
__global__ void __launch_bounds__(kThreads, 1)
    normalize_kernel(T* y, uint8_t* mask, const T* x, const T* residual, const Channels<Accumulate<T>> channels,
                     const Training<Accumulate<T>> training, const Geometry2d g, const bool relu) {
  using A = Accumulate<T>;
  __shared__ A shared_mean[kTile], shared_invstd[kTile];
  const bool joins = training.parts.count > 0;
  if (joins) {
    const int width = g.columns * V;
    const Moments<A> batch = join_parts(training.parts, g.C, width);
    const int64_t c = static_cast<int64_t>(blockIdx.x) * width + threadIdx.x;
    if (static_cast<int>(threadIdx.x) < width && c < g.C) {
      const A var = batch.n > A(0) ? batch.m2 / batch.n : A(0);  // all ranks' batches may be empty
      const A invstd = A(1) / sqrt(var + channels.eps);
      shared_mean[threadIdx.x] = batch.mean;
      shared_invstd[threadIdx.x] = invstd;
      if (blockIdx.y == 0) {
        training.save_mean[c] = batch.mean;
        training.save_invstd[c] = invstd;
        move_running(training.running_mean, training.running_var, batch, c, training.momentum);
        if (c == 0 && training.total != nullptr) training.total[0] = batch.n;
      }
    }
    __syncthreads();
  }
  const Position position = position_of<V>(g, Sweep::back);
  if (!position.valid) return;
  A mean[V], scale[V], bias[V];
  WEFT_UNROLL
  for (int i = 0; i < V; ++i) {
    const int64_t c = position.channel + i;
    mean[i] = joins ? shared_mean[position.column + i] : channels.mean[c];
    scale[i] = joins ? shared_invstd[position.column + i] : A(1) / sqrt(channels.var[c] + channels.eps);
    if (channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = channels.bias != nullptr ? channels.bias[c] : A(0);
  }
  each_rows<4>(position, [&]<int N>(const int64_t at) {
    Vec<T, V> unit[N], extra[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      unit[r] = Vec<T, V>::load(x + at + r * position.step);
      if (residual != nullptr) extra[r] = Vec<T, V>::load(residual + at + r * position.step);
    }
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      Vec<T, V> out;
      WEFT_UNROLL
      for (int i = 0; i < V; ++i) {
        A value = normalized(from<A>(unit[r][i]), mean[i], scale[i], bias[i]);
        if (residual != nullptr) value += from<A>(extra[r][i]);
        if (relu && value < A(0)) value = A(0);
        out[i] = to<T>(value);
      }
      out.store(y + at + r * position.step);
      if constexpr (V == 8)
        if (mask != nullptr) mask[(at >> 3) + r * (position.step >> 3)] = above_zero(out);
    }
  });
}

template <class T>
void normalize(const Queue& queue, const char* name, const View& y, const View& mask, const View& x,
               const View& residual, const Channels<Accumulate<T>>& channels, const Training<Accumulate<T>>& training, bool relu) {
  with_width<T>(x, 2, resident_blocks(queue), {&y, &x, &residual}, [&]<int V>(const Geometry2d& g) {
    WEFT_CHECK(!mask || V == 8, name, ": a mask needs 16-bit numbers, channels by eights, and memory aligned to 16 bytes, got ", x);
    launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &normalize_kernel<V, T>, y.as<T>(),
           optional<uint8_t>(mask), static_cast<const T*>(x.data), static_cast<const T*>(residual.data), channels,
           training, g, relu);
  });
}

/// The norm with the statistics in `parts`.
template <class T>
void training_norm(const Queue& queue, const char* name, const View& y, const View& save_mean, const View& save_invstd,
                   const View& total, const View& running_mean, const View& running_var, const View& x,
                   const View& weight, const View& bias, const View& residual, const View& mask,
                   const Parts<Accumulate<T>>& parts, const BatchNormArguments& arguments) {
  using A = Accumulate<T>;
  const Channels<A> channels{
      nullptr, nullptr, nullptr, optional<A>(weight), optional<A>(bias), static_cast<A>(arguments.eps)};
  const Training<A> training{parts,
                             save_mean.as<A>(),
                             save_invstd.as<A>(),
                             optional<A>(total),
                             optional<A>(running_mean),
                             optional<A>(running_var),
                             static_cast<A>(arguments.momentum)};
  normalize<T>(queue, name, y, mask, x, residual, channels, training, arguments.relu);
}

}  // namespace

void batch_norm_forward(const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
                        const View& running_mean, const View& running_var, const View& x, const View& weight,
                        const View& bias, const View& residual, const View& mask, BatchNormArguments arguments) {
  check("batch_norm_forward", x);
  if (x.numel() == 0) return;
  const ChunkStatistics chunks(queue, "batch_norm_forward (statistics)", x);
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_forward", [&]<class T>() {
    training_norm<T>(queue, "batch_norm_forward (normalize)", y, save_mean, save_invstd, View::none(), running_mean,
                     running_var, x, weight, bias, residual, mask, chunks.parts<Accumulate<T>>(), arguments);
  });
}

void batch_norm_of_parts(const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
                         const View& total, const View& running_mean, const View& running_var, const View& x,
                         const View& weight, const View& bias, const View& residual, const View& parts,
                         const View& mask, BatchNormArguments arguments) {
  check("batch_norm_of_parts", x);
  const int64_t C = x.sizes[1], n = parts.sizes[0];
  WEFT_CHECK(parts.rank == 2 && parts.is_contiguous() && n > 0 && parts.sizes[1] == 2 * C + 1,
             "batch_norm_of_parts: expected contiguous parts [n, ", 2 * C + 1, "], got ", parts);
  if (C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_of_parts", [&]<class T>() {
    training_norm<T>(queue, "batch_norm_of_parts", y, save_mean, save_invstd, total, running_mean, running_var, x,
                     weight, bias, residual, mask, {parts.as<Accumulate<T>>(), n}, arguments);
  });
}

void batch_norm_inference(const Queue& queue, const View& y, const View& x, const View& running_mean,
                          const View& running_var, const View& weight, const View& bias, const View& residual,
                          BatchNormArguments arguments) {
  check("batch_norm_inference", x);
  if (x.numel() == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_inference", [&]<class T>() {
    using A = Accumulate<T>;
    const Channels<A> channels{running_mean.as<A>(), nullptr,           running_var.as<A>(),
                               optional<A>(weight),  optional<A>(bias), static_cast<A>(arguments.eps)};
    normalize<T>(queue, "batch_norm_inference", y, View::none(), x, residual, channels, {}, arguments.relu);
  });
}

}  // namespace weft::kernels::cuda
