// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"

#include "kernels/allocator.h"
#include "kernels/cuda/batch_norm.cuh"

// Geometry: batch_norm.cuh. 1. sums of dy and dy xhat per channel and chunk, and the residual's gradient: that is dy
// where the ReLU let it through, so from here on it replaces dy and y. 2. up to 32 lanes per channel join the
// chunks. 3. dx. Without a residual y is not read: whether it was above 0 follows from x, bit for bit as forward
// computed it. Bytes per element of size e, two passes: 5e (dy and x twice, dx), with a ReLU on top of a residual 7e
// (dy, y, x twice, dresidual written and read, dx). Two rows in flight per thread and tensor; 10 flops. 85% of the
// bandwidth for 10 MB and more. Shared (1.): two accumulators per thread and channel, [256][V] each: 16 KiB for bf16.

namespace weft::kernels::WEFT_DEVICE {

using namespace channelwise;

namespace {

/// Where the ReLU let x through.
enum class Mask { everywhere, from_y, from_x };

template <class T>
struct Incoming {
  const T* dy;
  const T* x;
  const T* y;  // from_y only
};

/// The units at one position: dy, 0 where the ReLU was once clear_masked() has been called, and x.
template <int V, Mask mask, class T>
struct Units {
  Vec<T, V> dy, x, y;

  __device__ __forceinline__ void load(const Incoming<T>& in, const int64_t at) {
    dy = Vec<T, V>::load(in.dy + at);
    x = Vec<T, V>::load(in.x + at);
    if constexpr (mask == Mask::from_y) y = Vec<T, V>::load(in.y + at);
  }
  __device__ __forceinline__ void clear_masked(const Accumulate<T>* mean, const Accumulate<T>* scale,
                                               const Accumulate<T>* bias) {
    using A = Accumulate<T>;
    if constexpr (mask == Mask::from_y) {
      WEFT_UNROLL
      for (int i = 0; i < V; ++i)
        if (!(from<A>(y[i]) > A(0))) dy[i] = to<T>(A(0));
    } else if constexpr (mask == Mask::from_x) {
      WEFT_UNROLL
      for (int i = 0; i < V; ++i) {
        const T y = to<T>(normalized(from<A>(x[i]), mean[i], scale[i], bias[i]));
        if (!(from<A>(y) > A(0))) dy[i] = to<T>(A(0));
      }
    }
  }
};

/// Sums of dy and dy xhat; dresidual (or none) = the masked dy.
template <int V, Mask mask, class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) gradient_sums_kernel(Accumulate<T>* partial_dy, Accumulate<T>* partial_dyx, T* dresidual,
                                     const Incoming<T> in, const Channels<Accumulate<T>> channels, const Geometry2d g) {
  using A = Accumulate<T>;
  __shared__ A shared_dy[kThreads * V], shared_dyx[kThreads * V];
  const Position position = position_of<V>(g);
  A mean[V], scale[V], bias[V], sum_dy[V], sum_dyx[V];
  for (int i = 0; i < V; ++i) {
    const int64_t c = position.channel + i;
    mean[i] = position.valid ? channels.mean[c] : A(0);
    scale[i] = position.valid ? channels.invstd[c] : A(0);
    if (position.valid && channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = position.valid && channels.bias != nullptr ? channels.bias[c] : A(0);
    sum_dy[i] = sum_dyx[i] = A(0);
  }
  each_rows<2>(position, g, [&]<int N>(const int64_t m) {
    Units<V, mask, T> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r].load(in, (m + r * g.rows) * g.C + position.channel);
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      units[r].clear_masked(mean, scale, bias);
      if (dresidual != nullptr) units[r].dy.store(dresidual + (m + r * g.rows) * g.C + position.channel);
      WEFT_UNROLL
      for (int i = 0; i < V; ++i) {
        const A d = from<A>(units[r].dy[i]);
        sum_dy[i] += d;
        sum_dyx[i] += d * (from<A>(units[r].x[i]) - mean[i]);
      }
    }
  });
  for (int i = 0; i < V; ++i) {
    shared_dy[i * kThreads + threadIdx.x] = sum_dy[i];
    shared_dyx[i * kThreads + threadIdx.x] = sum_dyx[i];
  }
  for (int half = g.rows / 2; half > 0; half /= 2) {
    __syncthreads();
    const int other = static_cast<int>(threadIdx.x) + half * g.columns;
    if (position.row < half) {
      for (int i = 0; i < V; ++i) {
        shared_dy[i * kThreads + threadIdx.x] += shared_dy[i * kThreads + other];
        shared_dyx[i * kThreads + threadIdx.x] += shared_dyx[i * kThreads + other];
      }
    }
  }
  if (position.row == 0 && position.valid) {
    for (int i = 0; i < V; ++i) {
      const int64_t c = position.channel + i;
      partial_dy[c * g.chunks + blockIdx.y] = shared_dy[i * kThreads + threadIdx.x];
      partial_dyx[c * g.chunks + blockIdx.y] = shared_dyx[i * kThreads + threadIdx.x] * channels.invstd[c];
    }
  }
}

template <class A>
__global__ void finish_sums_kernel(A* sum_dy, A* sum_dyx, A* dweight, A* dbias, const A* partial_dy,
                                   const A* partial_dyx, const Geometry2d g, const int lanes) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t c = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / lanes;
  A dy = 0, dyx = 0;
  if (c < g.C) {
    for (int64_t chunk = lane; chunk < g.chunks; chunk += lanes) {
      dy += partial_dy[c * g.chunks + chunk];
      dyx += partial_dyx[c * g.chunks + chunk];
    }
  }
  for (int distance = 1; distance < lanes; distance *= 2) {
    dy += __shfl_xor_sync(kAllLanes, dy, distance);
    dyx += __shfl_xor_sync(kAllLanes, dyx, distance);
  }
  if (c < g.C && lane == 0) {
    sum_dy[c] = dy;
    sum_dyx[c] = dyx;
    if (dbias != nullptr) dbias[c] = dy;
    if (dweight != nullptr) dweight[c] = dyx;
  }
}

/// dx = weight invstd (dy - mean(dy) - xhat mean(dy xhat)), dresidual = dy, either of them none; the means are the sums
/// times `share`.
template <int V, Mask mask, class T>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) gradient_kernel(T* dx, T* dresidual, const Incoming<T> in, const Channels<Accumulate<T>> channels,
                                const Accumulate<T>* sum_dy, const Accumulate<T>* sum_dyx, const Accumulate<T> share,
                                const Geometry2d g) {
  using A = Accumulate<T>;
  const Position position = position_of<V>(g);
  if (!position.valid) return;
  A mean[V], scale[V], bias[V], slope[V], constant[V];
  for (int i = 0; i < V; ++i) {
    const int64_t c = position.channel + i;
    mean[i] = channels.mean[c];
    scale[i] = channels.invstd[c];
    slope[i] = channels.invstd[c] * sum_dyx[c] * share;
    constant[i] = sum_dy[c] * share;
    if (channels.weight != nullptr) scale[i] *= channels.weight[c];
    bias[i] = channels.bias != nullptr ? channels.bias[c] : A(0);
  }
  each_rows<2>(position, g, [&]<int N>(const int64_t m) {
    Units<V, mask, T> units[N];
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) units[r].load(in, (m + r * g.rows) * g.C + position.channel);
    WEFT_UNROLL
    for (int r = 0; r < N; ++r) {
      const int64_t at = (m + r * g.rows) * g.C + position.channel;
      units[r].clear_masked(mean, scale, bias);
      if (dresidual != nullptr) units[r].dy.store(dresidual + at);
      if (dx == nullptr) continue;
      Vec<T, V> out;
      WEFT_UNROLL
      for (int i = 0; i < V; ++i)
        out[i] = to<T>(scale[i] * (from<A>(units[r].dy[i]) - constant[i] - (from<A>(units[r].x[i]) - mean[i]) * slope[i]));
      out.store(dx + at);
    }
  });
}

template <class T>
Incoming<T> incoming(const View& dy, const View& x, const View& y) {
  return {static_cast<const T*>(dy.data), static_cast<const T*>(x.data), static_cast<const T*>(y.data)};
}

/// Calls body.operator()<mask>(): registers for what other masks need would leave too few warps.
template <class Body>
void with_mask(bool relu, bool has_bias, Body&& body) {
  if (!relu)
    body.template operator()<Mask::everywhere>();
  else if (has_bias)
    body.template operator()<Mask::from_x>();
  else
    body.template operator()<Mask::from_y>();
}

template <class T>
Channels<Accumulate<T>> channels_of(const View& mean, const View& invstd, const View& weight, const View& bias) {
  using A = Accumulate<T>;
  return {mean.as<A>(), invstd.as<A>(), nullptr, optional<A>(weight), optional<A>(bias), A(0)};
}

/// The last pass.
template <class T>
void input_gradient(const Queue& queue, const char* name, const View& dx, const View& dresidual, const View& dy,
                    const View& x, const View& y, bool relu, const Channels<Accumulate<T>>& channels,
                    const Accumulate<T>* sum_dy, const Accumulate<T>* sum_dyx, Accumulate<T> share) {
  with_mask(relu, channels.bias != nullptr, [&]<Mask mask>() {
    with_width<T>(x, 4, resident_blocks(queue), {&dx, &dresidual, &dy, &x, &y}, [&]<int V>(const Geometry2d& g) {
      launch(queue, name, grid_of(g, V), dim3(kThreads), 0, &gradient_kernel<V, mask, T>, optional<T>(dx),
             optional<T>(dresidual), incoming<T>(dy, x, y), channels, sum_dy, sum_dyx, share, g);
    });
  });
}

}  // namespace

void batch_norm_backward(const Queue& queue, const View& dx, const View& dresidual, const View& dweight,
                         const View& dbias, const View& dy, const View& x, const View& y, const View& weight,
                         const View& bias, const View& save_mean, const View& save_invstd,
                         BatchNormArguments arguments) {
  check("batch_norm_backward", x);
  WEFT_CHECK(!arguments.relu || y || x.numel() == 0, "batch_norm_backward: expected the forward's output y with relu");
  const int64_t M = x.sizes[0], C = x.sizes[1];
  if (M == 0 || C == 0) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_backward", [&]<class T>() {
    using A = Accumulate<T>;
    const Channels<A> channels = channels_of<T>(save_mean, save_invstd, weight, bias);
    const Workspace sums(queue, static_cast<size_t>(2 * C) * sizeof(A), "batch_norm_backward");
    A* sum_dy = sums.as<A>();
    A* sum_dyx = sum_dy + C;
    with_width<T>(x, 8, kBlocks, {&dresidual, &dy, &x, &y}, [&]<int V>(const Geometry2d& g) {
      const Workspace partial(queue, static_cast<size_t>(2 * C * g.chunks) * sizeof(A), "batch_norm_backward");
      A* partial_dy = partial.template as<A>();
      A* partial_dyx = partial_dy + C * g.chunks;
      with_mask(arguments.relu, !!bias, [&]<Mask mask>() {
        launch(queue, "batch_norm_backward (sums)", grid_of(g, V), dim3(kThreads), 0, &gradient_sums_kernel<V, mask, T>,
               partial_dy, partial_dyx, optional<T>(dresidual), incoming<T>(dy, x, y), channels, g);
      });
      const int lanes = lanes_for(g.chunks);
      launch(queue, "batch_norm_backward (finish)", finish_grid(C, lanes), dim3(kThreads), 0, &finish_sums_kernel<A>,
             sum_dy, sum_dyx, optional<A>(dweight), optional<A>(dbias), partial_dy, partial_dyx, g, lanes);
    });
    if (!dx) return;
    const View& masked = dresidual ? dresidual : dy;
    input_gradient<T>(queue, "batch_norm_backward (dx)", dx, View::none(), masked, x, y, arguments.relu && !dresidual,
                      channels, sum_dy, sum_dyx, A(1) / static_cast<A>(M));
  });
}

void batch_norm_backward_input(const Queue& queue, const View& dx, const View& dresidual, const View& mean_dy,
                               const View& mean_dyx, const View& dy, const View& x, const View& y, const View& weight,
                               const View& bias, const View& save_mean, const View& save_invstd,
                               BatchNormArguments arguments) {
  check("batch_norm_backward_input", x);
  WEFT_CHECK(!arguments.relu || y || x.numel() == 0,
             "batch_norm_backward_input: expected the forward's output y with relu");
  if (x.numel() == 0 || (!dx && !dresidual)) return;
  with_dtype<float, bf16, f16, double>(x.dtype, "batch_norm_backward_input", [&]<class T>() {
    using A = Accumulate<T>;
    input_gradient<T>(queue, "batch_norm_backward_input", dx, dresidual, dy, x, y, arguments.relu,
                      channels_of<T>(save_mean, save_invstd, weight, bias), static_cast<const A*>(mean_dy.data),
                      static_cast<const A*>(mean_dyx.data), A(1));
  });
}

}  // namespace weft::kernels::WEFT_DEVICE
