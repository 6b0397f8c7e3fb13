// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include "kernels/cuda/batch_norm_on_chip.cuh"

// Training where the chip holds x's rows: one launch, batch_norm_on_chip.cuh. Else, and with statistics that are given,
// in batch_norm.cuh's geometry: 1. the chunks' statistics (batch_norm_statistics.cu), unless they are given. 2. each
// block joins those of its channels, normalises, adds the residual and applies ReLU; the blocks of the first chunk also
// keep the statistics and move the running ones. Backwards over x, whose last rows the first pass, or the convolution
// that made x, has left in L2. Bytes per element of size e: 3e (x twice, y), 4e with a residual: two passes; statistics
// given, and inference, 2e and 3e. Four rows in flight per thread and tensor; 8 flops. 85% of the bandwidth for 10 MB
// and more.

namespace weft::kernels::WEFT_DEVICE {

using namespace channelwise;

namespace {

template <int V, class T>
__global__ void __launch_bounds__(kThreads, 1) normalize_kernel(const Norm<T> norm, const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_mean[kTile], shared_invstd[kTile];
  const Channels<A>& channels = norm.channels;
  const bool joins = norm.training.parts.count > 0;
  if (joins) {
    const int width = g.columns * V;
    const Moments<A> batch = join_parts(norm.training.parts, g.C, width);
    const int64_t c = static_cast<int64_t>(blockIdx.x) * width + threadIdx.x;
    if (static_cast<int>(threadIdx.x) < width && c < g.C) {
      const A var = batch.m2 / batch.n, invstd = A(1) / sqrt(var + channels.eps);
      shared_mean[threadIdx.x] = batch.mean;
      shared_invstd[threadIdx.x] = invstd;
      if (blockIdx.y == 0) norm.training.keep(batch, invstd, c);
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
  with_flags(norm, [&]<bool kResidual, bool kRelu>() {
    each_rows<4>(position, [&]<int N>(const int64_t at) {
      Vec<T, V> unit[N];
      WEFT_UNROLL
      for (int r = 0; r < N; ++r) unit[r] = Vec<T, V>::load(norm.x + at + r * position.step);
      normalize_rows<kResidual, kRelu>(norm, unit, at, position.step, mean, scale, bias);
    });
  });
}

template <class T>
Norm<T> norm_of(const View& y, const View& x, const View& residual, const Channels<Accumulate<T>>& channels,
                const Training<Accumulate<T>>& training, bool relu) {
  return {y.as<T>(), static_cast<const T*>(x.data), static_cast<const T*>(residual.data), channels, training, relu};
}

/// By the statistics that the training's parts will be.
template <class T>
Norm<T> training_norm(const View& y, const View& save_mean, const View& save_invstd, const View& total,
                      const View& running_mean, const View& running_var, const View& x, const View& weight,
                      const View& bias, const View& residual, const BatchNormArguments& arguments) {
  using A = Accumulate<T>;
  const Channels<A> channels{
      nullptr, nullptr, nullptr, optional<A>(weight), optional<A>(bias), static_cast<A>(arguments.eps)};
  const Training<A> training{{},
                             save_mean.as<A>(),
                             save_invstd.as<A>(),
                             optional<A>(total),
                             optional<A>(running_mean),
                             optional<A>(running_var),
                             static_cast<A>(arguments.momentum)};
  return norm_of<T>(y, x, residual, channels, training, arguments.relu);
}

template <class T>
void normalize(const Queue& queue, const char* name, const View& y, const View& x, const View& residual,
               const Norm<T>& norm) {
  with_width<T>(x, 2, resident_blocks(queue), {&y, &x, &residual}, [&]<int V>(const Geometry2d& g) {
    launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &normalize_kernel<V, T>, norm, g);
  });
}

/// Bytes that a block may ask for; 0: unknown.
int shared_memory(const Queue& queue) {
  int bytes = 0;
  if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, queue.device.index) == cudaSuccess)
    return bytes;
  cudaGetLastError();  // the next call starts clean
  return 0;
}

/// Where a block's or cluster's shared memory holds x's rows: the whole forward, and true.
template <class T>
bool forward_on_chip(const Queue& queue, const Norm<T>& norm, int64_t M, int64_t C) {
  if (sizeof(T) == 8 || !vectorizable({norm.y, norm.x, norm.residual}, {C * static_cast<int64_t>(sizeof(T))}))
    return false;
  if constexpr (sizeof(T) < 8) {
    const int most = most_rows(shared_memory(queue));
    const bool clusters = has_wgmma(queue);
    const OnChip plan = plan_on_chip(M, C, kVecSize<T>, clusters ? most_blocks_of_cluster<T>(queue, most) : 1, most);
    if (plan.columns == 0) return false;
    if (clusters)
      norm_on_clusters(queue, norm, plan);
    else
      launch(queue, kOnChip, grid_of(plan, kVecSize<T>), dim3(kThreads), plan.bytes(), on_chip<T, OneBlock>, norm,
             plan);
  }
  return true;
}

}  // namespace

void batch_norm_forward(const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
                        const View& running_mean, const View& running_var, const View& x, const View& weight,
                        const View& bias, const View& residual, BatchNormArguments arguments) {
  check("batch_norm_forward", x);
  if (x.numel() == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_forward", [&]<class T>() {
    auto norm = training_norm<T>(y, save_mean, save_invstd, View::none(), running_mean, running_var, x, weight, bias,
                                 residual, arguments);
    if (forward_on_chip(queue, norm, x.sizes[0], x.sizes[1])) return;
    const ChunkStatistics chunks(queue, "batch_norm_forward (statistics)", x);
    norm.training.parts = chunks.parts<Accumulate<T>>();
    normalize(queue, "batch_norm_forward (normalize)", y, x, residual, norm);
  });
}

void batch_norm_of_parts(const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
                         const View& total, const View& running_mean, const View& running_var, const View& x,
                         const View& weight, const View& bias, const View& residual, const View& parts,
                         BatchNormArguments arguments) {
  check("batch_norm_of_parts", x);
  const int64_t C = x.sizes[1], n = parts.sizes[0];
  WEFT_CHECK(parts.rank == 2 && parts.is_contiguous() && n > 0 && parts.sizes[1] == 2 * C + 1,
             "batch_norm_of_parts: expected contiguous parts [n, ", 2 * C + 1, "], got ", parts);
  if (C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_of_parts", [&]<class T>() {
    auto norm = training_norm<T>(y, save_mean, save_invstd, total, running_mean, running_var, x, weight, bias, residual,
                                 arguments);
    norm.training.parts = {parts.as<Accumulate<T>>(), n};
    normalize(queue, "batch_norm_of_parts", y, x, residual, norm);
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
    normalize(queue, "batch_norm_inference", y, x, residual, norm_of<T>(y, x, residual, channels, {}, arguments.relu));
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
