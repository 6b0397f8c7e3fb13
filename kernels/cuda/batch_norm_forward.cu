// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include "kernels/cuda/batch_norm_moments.cuh"

// Geometry: batch_norm.cuh. Training: the chunks' statistics (batch_norm_statistics.cu), up to 32 lanes per channel
// join them and move the running ones, a third kernel normalises, adds the residual and applies ReLU. Bytes per element
// of size e: 3e (x twice, y), 4e with a residual: two passes; inference 2e and 3e. Two rows in flight per thread and
// tensor; 8 flops. 85% of the bandwidth for 10 MB and more.

namespace weft::kernels::WEFT_DEVICE {

using namespace channelwise;

namespace {

template <class A>
__global__ void finish_statistics_kernel(A* save_mean, A* save_invstd, A* running_mean, A* running_var,
                                         const A* partial_mean, const A* partial_m2, const Geometry2d g,
                                         const int lanes, const A eps, const A momentum) {
  const int64_t c = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  const Moments<A> batch = join_chunks(partial_mean, partial_m2, g, c, lanes);
  if (c < g.C && threadIdx.x % static_cast<unsigned>(lanes) == 0) {
    const A var = batch.m2 / batch.n;
    save_mean[c] = batch.mean;
    save_invstd[c] = A(1) / sqrt(var + eps);
    move_running(running_mean, running_var, batch, c, momentum);
  }
}

template <int V, class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) normalize_kernel(T* y, const T* x, const T* residual, const Channels<Accumulate<T>> channels,
                                 const Geometry2d g, const bool relu) {
  using A = Accumulate<T>;
  const Position position = position_of<V>(g);
  if (!position.valid) return;
  A mean[V], scale[V], bias[V];
  for (int i = 0; i < V; ++i) {
    const int64_t c = position.channel + i;
    mean[i] = channels.mean[c];
    scale[i] = channels.invstd != nullptr ? channels.invstd[c] : A(1) / sqrt(channels.var[c] + channels.eps);
    if (channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = channels.bias != nullptr ? channels.bias[c] : A(0);
  }
  each_rows<2>(position, g, [&]<int N>(const int64_t m) {
    Vec<T, V> unit[N], extra[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      const int64_t at = (m + r * g.rows) * g.C + position.channel;
      unit[r] = Vec<T, V>::load(x + at);
      if (residual != nullptr) extra[r] = Vec<T, V>::load(residual + at);
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
      out.store(y + (m + r * g.rows) * g.C + position.channel);
    }
  });
}

template <class T>
void normalize(const Queue& queue, const char* name, const View& y, const View& x, const View& residual,
               const Channels<Accumulate<T>>& channels, bool relu) {
  with_width<T>(x, 4, resident_blocks(queue), {&y, &x, &residual}, [&]<int V>(const Geometry2d& g) {
    launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &normalize_kernel<V, T>, y.as<T>(),
           static_cast<const T*>(x.data), static_cast<const T*>(residual.data), channels, g, relu);
  });
}

}  // namespace

void batch_norm_forward(const Queue& queue, const View& y, const View& save_mean, const View& save_invstd,
                        const View& running_mean, const View& running_var, const View& x, const View& weight,
                        const View& bias, const View& residual, BatchNormArguments arguments) {
  check("batch_norm_forward", x);
  if (x.numel() == 0) return;
  const ChunkStatistics chunks(queue, "batch_norm_forward (statistics)", x);
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_forward", [&]<class T>() {
    using A = Accumulate<T>;
    launch(queue, "batch_norm_forward (finish)", finish_grid(x.sizes[1], chunks.lanes()), dim3(kThreads), 0,
           &finish_statistics_kernel<A>, save_mean.as<A>(), save_invstd.as<A>(), optional<A>(running_mean),
           optional<A>(running_var), chunks.mean<A>(), chunks.m2<A>(), chunks.geometry(), chunks.lanes(),
           static_cast<A>(arguments.eps), static_cast<A>(arguments.momentum));
    const Channels<A> channels{save_mean.as<A>(),   save_invstd.as<A>(), nullptr,
                               optional<A>(weight), optional<A>(bias),   static_cast<A>(arguments.eps)};
    normalize<T>(queue, "batch_norm_forward (normalize)", y, x, residual, channels, arguments.relu);
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
    normalize<T>(queue, "batch_norm_inference", y, x, residual, channels, arguments.relu);
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
